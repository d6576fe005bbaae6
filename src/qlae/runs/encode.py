"""The codes of a data set as a table: one row per image, vector or series (`qlae.encode`, ``qlae encode``)."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._progress import progress_bar
from ..data import SourceDataset, load_from_config
from ..data.anndata_files import SUFFIX, is_anndata, is_anndata_file
from ..data.model_inputs import is_picture_file, load_matching, pictures_in, to_model_inputs
from ..data.tables import is_frame
from ..models.model import CHUNK, Model
from .anndata_codes import describe_codes, set_codes, write_anndata
from .code_tables import codes_in, ids_of, require_table_path, table_of_codes, write_table
from .latent_names import Names, names_file
from .load_model import load


def encode(
    run: str | os.PathLike[str],
    data: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    numbers: bool = False,
    device: str = "auto",
    show: bool = True,
) -> pd.DataFrame:
    """Return the codes of observations as a table, or their latents if these are continuous.

    The first columns identify the observations: their files, the identifiers of a table, unit and start of the windows
    of a recording, or their numbers. There is one column for each latent. Latents and values that were named, in the
    explorer or by `name_latents`, appear under these names.

    Args:
        run: the run directory, the folder of an exported model, or the name of a shipped one.
        data: the observations, or their name or path; by default those that the run was trained on.
        out: also write the table to this file, a ``.csv``, ``.parquet`` or ``.npz``, which must not exist. If the data
            are an AnnData, an ``.h5ad`` is a copy of it with the codes, as `add_codes` adds them.
        numbers: the values that codes stand for instead of the codes.
        device: where the model runs.
        show: whether to draw a progress bar.
    """
    to_cells = out is not None and is_anndata_file(out)
    if out is not None:
        require_table_path(Path(out), also=[SUFFIX])
    model = load(run, device=device)
    if numbers and model.latent.num_outputs != model.latent.num_latents:
        raise ValueError("the codes of this model stand for vectors, not for numbers")
    if to_cells:
        _cells_of(data, model)
    loaded = _load(run, model, data, show=show)
    images = to_model_inputs(loaded, model.observations)
    transform = model.encode if model.latent.has_codes and not numbers else model.latents
    parts = []
    with progress_bar("encoding", len(loaded), show=show) as report:
        for start in range(0, len(loaded), CHUNK):
            parts.append(transform(images[start : start + CHUNK]))
            report(start + len(parts[-1]))
    codes, names = np.concatenate(parts), Names(names_file(run), []).read()
    table = table_of_codes(ids_of(loaded), codes, names)
    if to_cells:
        write_anndata(_cells_of(data, model), Path(str(out)), codes, describe_codes(run, model, names))
    elif out is not None:
        write_table(Path(out), table)
    return table


def encode_to_file(run: str | os.PathLike[str], out: str | os.PathLike[str], **options: Any) -> Path:
    """Write the table of `encode` to a file and return its path; options are those of `encode`."""
    encode(run, out=out, **options)
    return Path(out)


def add_codes(
    adata: Any,
    run: str | os.PathLike[str],
    data: SourceDataset | None = None,
    *,
    device: str = "auto",
    show: bool = True,
) -> Any:
    """Add the codes of cells to an AnnData, and return it: ``obsm["X_qlae"]`` (n, num_latents).

    ``uns["qlae"]`` describes the codes: the model, the names of latents, and the number of values of each.

    Args:
        adata: the AnnData, which is changed.
        run: the run directory, the folder of an exported model, or the name of a shipped one.
        data: the cells as `load_data` returned them, if the model was trained on data in memory; by default `adata` is
            read as the file of the training data was.
        device: where the model runs.
        show: whether to draw a progress bar.
    """
    model = load(run, device=device)
    names = Names(names_file(run), []).read()
    table = encode(run, adata if data is None else data, device=device, show=show)
    if len(table) != adata.n_obs:
        raise ValueError(f"data has {len(table):,} rows, and the AnnData has {adata.n_obs:,} cells")
    codes = codes_in(table, model.latent, names, "the table").codes
    set_codes(adata, codes, describe_codes(run, model, names))
    return adata


def _cells_of(data: Any, model: Model) -> Any:
    """Return the AnnData, or the path of the file, that an ``.h5ad`` of codes copies."""
    spec = None if model.origin is None else model.origin.config.data.spec
    if data is None or isinstance(data, SourceDataset):
        data = getattr(spec if data is None else data.spec, "path", None)
    if not (is_anndata(data) or (isinstance(data, str | os.PathLike) and is_anndata_file(data))):
        raise ValueError("codes become an .h5ad only if the data are an AnnData or an .h5ad; write a .csv instead")
    return data


def _load(run: str | os.PathLike[str], model: Model, data: Any, *, show: bool) -> SourceDataset:
    """Return the data to encode, read as the training data were."""
    config = None if model.origin is None else model.origin.config.data
    if isinstance(data, SourceDataset):
        return data
    if data is None:
        if config is None or config.spec is None:
            raise ValueError(f"the images that {run} was trained on are not known; pass others with data=…")
        return load_from_config(config)
    spec = None if config is None else config.spec
    data = Path(data) if isinstance(data, os.PathLike) else data  # as a text, "./shapes3d" would be "shapes3d"
    is_file = isinstance(data, str | Path) and not is_picture_file(data)
    if is_file or is_frame(data) or (is_anndata(data) and spec is not None):
        with progress_bar("reading", show=show) as report:
            return load_matching(data, model.observations, spec, progress=report)
    rows = to_model_inputs(data, model.observations, spec)
    loaded = SourceDataset(rows, name="array", origin="real", observations=model.observations)
    pictures = pictures_in(data) or ()
    if pictures and all(isinstance(item, str | Path) for item in pictures):
        loaded.file_names = tuple(os.fspath(item) for item in pictures)
    return loaded
