"""The codes of observations as a table: a CSV with one row per image, vector or series.

Latents and values that were named in the explorer appear under these names.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._io import require_new, write_bytes
from .._progress import progress_bar
from ..data import SourceDataset, load_from_config
from ..data.model_inputs import load_matching, to_model_inputs
from ..models.model import CHUNK
from .latent_names import Names, names_file
from .load_model import load


def encode_to_csv(
    run: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    data: SourceDataset | str | os.PathLike[str] | None = None,
    numbers: bool = False,
    device: str = "auto",
    show: bool = True,
) -> Path:
    """Write the codes of all images, or their latents if these are continuous, as a CSV.

    Args:
        run: the run directory, the folder of an exported model, or the name of a shipped one.
        out: the file to write, which must not exist.
        data: the images, or their name or path; by default those that the run was trained on.
        numbers: write the values that codes stand for instead of the codes.
        device: where the model runs.
        show: whether to draw a progress bar.
    """
    path = Path(out)
    require_new(path)
    model = load(run, device=device)
    if numbers and model.latent.num_outputs != model.latent.num_latents:
        raise ValueError("the codes of this model stand for vectors, not for numbers")
    if data is None:
        if model.origin is None or model.origin.config.data.spec is None:
            raise ValueError(f"the images that {run} was trained on are not known; pass others with data=…")
        data = load_from_config(model.origin.config.data)
    elif not isinstance(data, SourceDataset):
        where = data if isinstance(data, str) else Path(data)  # as a path, "./shapes3d" would be "shapes3d"
        with progress_bar("reading", show=show) as report:
            spec = None if model.origin is None else model.origin.config.data.spec
            data = load_matching(where, model.observations, spec, progress=report)
    images = to_model_inputs(data, model.observations)
    latent = model.latent
    names = Names(names_file(run), []).read()
    encode = model.encode if latent.has_codes and not numbers else model.latents
    parts = []
    with progress_bar("encoding", len(data), show=show) as report:
        for start in range(0, len(data), CHUNK):
            parts.append(encode(images[start : start + CHUNK]))
            report(start + len(parts[-1]))
    write_bytes(path, _as_csv(np.concatenate(parts), data, names).encode())
    return path


def _as_csv(table: NDArray[Any], data: SourceDataset, names: dict[str, Any]) -> str:
    has_codes = np.issubdtype(table.dtype, np.integer)
    files = data.file_names
    rows = pd.Index(
        range(len(data)) if files is None else files, name=data.observations.traits.one if files is None else "file"
    )
    frame = pd.DataFrame(table, rows, dtype=object if has_codes else None)
    for j in frame if has_codes else ():
        known = names["values"].get(str(j), {})
        frame[j] = [known.get(str(code), code) for code in frame[j]]
    frame.columns = [names["latents"].get(str(j), f"z{j}") for j in frame]
    return str(frame.to_csv(float_format="%.6g", lineterminator="\n"))
