"""Observations from tables of codes: the way back from ``qlae encode`` (`qlae.decode`, ``qlae decode``)."""

import os
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from .._io import require_new, write_columns, write_whole
from .._progress import progress_bar
from ..data.pictures import to_colours
from ..data.table_encoding import decode_rows
from ..models.model import CHUNK
from ..observations import IMAGES, SERIES, TABLES, Observations
from .code_tables import TABLE_SUFFIXES, NamedCodes, codes_in, read_table, write_table
from .latent_names import Names, names_file
from .load_model import load

STEP = "step"  # the column of the time steps of series


def decode(
    run: str | os.PathLike[str],
    codes: str | os.PathLike[str] | pd.DataFrame,
    *,
    out: str | os.PathLike[str] | None = None,
    device: str = "auto",
    show: bool = True,
) -> Any:
    """Return the observations that a table of codes stands for, such as `encode` returns and writes.

    They are an array, or a data frame if the model was trained on a table with categories, dates or missing values.

    Args:
        run: the run directory, the folder of an exported model, or the name of a shipped one.
        codes: the table, or its ``.csv``, ``.parquet`` or ``.npz``, with a column for each latent. Floats are taken
            for the values of latents, as ``encode(numbers=True)`` gives them.
        out: also write the observations, with the other columns of the table as their identifiers. Images become PNG
            files in a new folder; vectors and series a table, ``.csv`` or ``.parquet``, of series with one row per time
            step. All may become an ``.npz``.
        device: where the model runs.
        show: whether to draw a progress bar.
    """
    model = load(run, device=device)
    path = None if out is None else Path(out)
    if path is not None:
        _require_out(path, model.observations)
    what = "the table" if isinstance(codes, pd.DataFrame) else codes
    table = codes if isinstance(codes, pd.DataFrame) else read_table(Path(codes))
    if table.empty:
        raise ValueError(f"{what} has no rows")
    found = codes_in(table, model.latent, Names(names_file(run), []).read(), what)
    parts = []
    with progress_bar("decoding", len(table), show=show) as report:
        for start in range(0, len(table), CHUNK):
            parts.append(model.decode(found.codes[start : start + CHUNK], as_array=True))
            report(start + len(parts[-1]))
    decoded = np.concatenate(parts)
    if path is not None:
        _write(path, found, decoded, model.observations)
    return decode_rows(decoded, model.observations) if model.observations.kind == TABLES else decoded


def _require_out(path: Path, observations: Observations) -> None:
    """Raise an error unless observations can be written to a path."""
    suffix = path.suffix.lower()
    if observations.kind == IMAGES and suffix != ".npz":
        if suffix in TABLE_SUFFIXES or (path.exists() and not (path.is_dir() and not any(path.iterdir()))):
            raise ValueError(f"out must be a new folder for images, or an .npz, got {path}")
        if observations.num_features > 3:
            raise ValueError(f"images of {observations.size} do not fit into PNG files: write an .npz with out=…")
        return
    if suffix not in TABLE_SUFFIXES:
        kinds = ", ".join(TABLE_SUFFIXES) if observations.kind != IMAGES else ".npz"
        raise ValueError(f"out must end in one of {kinds} for {observations.traits.many}, got {path}")
    require_new(path)


def _write(path: Path, found: NamedCodes, decoded: NDArray[Any], observations: Observations) -> None:
    if path.suffix.lower() == ".npz":
        ids = {str(name): np.array([str(cell) for cell in found.ids[name]]) for name in found.ids}
        names = {"feature_names": np.array(observations.feature_names)} if observations.feature_names else {}
        write_columns(path, ids | {"observations": decoded} | names)
    elif observations.kind == IMAGES:
        _write_pictures(path, file_names(found.ids), decoded, observations)
    else:
        write_table(path, to_table(found.ids, decoded, observations))


def to_table(ids: pd.DataFrame, decoded: NDArray[Any], observations: Observations) -> pd.DataFrame:
    """Return vectors (n, d), one per row, or series (n, t, c), one time step per row, after what identifies them."""
    if observations.kind == SERIES:
        num_steps = decoded.shape[1]
        ids = ids.loc[ids.index.repeat(num_steps)].assign(**{STEP: np.tile(np.arange(num_steps), len(decoded))})
        decoded = decoded.reshape(-1, decoded.shape[2])
    if observations.kind == TABLES:
        features = decode_rows(decoded, observations)
    else:
        features = pd.DataFrame(decoded, columns=list(observations.names))
    ids = ids[[name for name in ids if name not in features]]
    return pd.concat([ids.reset_index(drop=True), features], axis=1)


def file_names(ids: pd.DataFrame) -> list[str]:
    """Return a distinct relative path of a PNG for each image, by what identifies it."""
    if ids.shape[1] == 0:
        ids = pd.DataFrame({"image": range(len(ids))})
    texts = ["_".join(str(cell) for cell in row) for row in ids.itertuples(index=False)]
    paths = ["/".join(part for part in PurePosixPath(text).parts if part not in ("/", "..")) for text in texts]
    if list(ids.columns) == ["file"]:
        stems = [str(PurePosixPath(path or "image").with_suffix("")) for path in paths]
        if len(set(stems)) == len(stems):
            paths = stems
    counts: Counter[str] = Counter()
    names = []
    for path in paths:
        counts[path] += 1
        names.append(f"{path or 'image'}{f'-{counts[path]}' if counts[path] > 1 else ''}.png")
    return names


def _write_pictures(folder: Path, names: list[str], images: NDArray[Any], observations: Observations) -> None:
    pixels = to_colours(images, observations)
    for name, image in zip(names, pixels, strict=True):
        picture = Image.fromarray(image[..., 0] if observations.num_features == 1 else image)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda file, picture=picture: picture.save(file, "PNG"))  # type: ignore[misc]
