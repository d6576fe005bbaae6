"""Codes in an AnnData: ``obsm["X_qlae"]``, and their description in ``uns["qlae"]``."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._io import require_new
from .._version import __version__
from ..data.anndata_files import require_anndata
from ..models.model import Model
from .code_tables import latent_columns

KEY = "qlae"  # in uns; in obsm X_qlae
PARTIAL = ".partial"


def describe_codes(run: str | os.PathLike[str], model: Model, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of codes that an AnnData holds, in types that an ``.h5ad`` can hold."""
    num_latents = model.latent.num_latents
    description: dict[str, Any] = {
        "run": Path(run).name,
        "model": "" if model.origin is None else str(model.origin.config.model),
        "version": __version__,
        "latents": np.array(latent_columns(num_latents, names), dtype=object),
    }
    if model.latent.has_codes:
        description["num_values"] = np.asarray(getattr(model.latent, "num_values", ()), dtype=np.int64)
    return description


def set_codes(adata: Any, codes: NDArray[Any], description: Mapping[str, Any]) -> None:
    """Set codes (n, num_latents) and their description in an AnnData."""
    adata.obsm[f"X_{KEY}"] = codes
    adata.uns[KEY] = dict(description)


def write_anndata(source: Any, out: Path, codes: NDArray[Any], description: Mapping[str, Any]) -> None:
    """Write a copy of an AnnData, or of an ``.h5ad``, with codes to a new ``.h5ad``.

    A file is copied as it is, whatever its size, and the codes are added to the copy.
    """
    require_new(out)
    h5py, _ = require_anndata(out)
    from anndata.io import write_elem

    partial = out.with_name(f".{out.name}{PARTIAL}")
    try:
        if isinstance(source, str | os.PathLike):
            shutil.copyfile(source, partial)
        else:
            source.write_h5ad(partial)
        with h5py.File(partial, "r+") as file:
            if isinstance(file["obs"], h5py.Dataset):
                raise ValueError(
                    f"{source} was written before AnnData 0.7, and codes cannot be added to such a file: write them to "
                    "a .csv, or read the file with anndata.read_h5ad and call qlae.add_codes"
                )
            for group in ("obsm", "uns"):
                if group not in file:
                    write_elem(file, group, {})
            write_elem(file["obsm"], f"X_{KEY}", codes)
            write_elem(file["uns"], KEY, dict(description))
        os.replace(partial, out)
    finally:
        partial.unlink(missing_ok=True)
