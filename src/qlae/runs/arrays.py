"""Check the arrays of ``sample.npz`` and ``pictures.npz``, so that their readers can rely on types and shapes.

Like ``results.json``, the files may have been edited, damaged or written by another version.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..observations import MAX_MAGNITUDE, Observations

#: Types and dimensions of the arrays. A dimension with a name has the same size in all arrays of a file.
FORMS: dict[str, tuple[str, tuple[str | int, ...]]] = {
    "indices": ("iu", ("images",)),
    "sources": ("iuf", ("images", "sources")),
    "step": ("iu", ()),
    "latents": ("f", ("images", "latents")),
    "codes": ("iu", ("images", "latents")),
    "psnr": ("f", ("images",)),
    "errors": ("f", ("images",)),
    "variances": ("f", ("images",)),
    "feature_errors": ("f", ("features",)),
    "feature_variances": ("f", ("features",)),
    "originals": ("pixels", ("examples", "side", "side", 3)),
    "reconstructions": ("pixels", ("examples", "side", "side", 3)),
    "interventions": ("pixels", ("samples", "steps", "latents", "side", "side", 3)),
    "intervention_steps": ("iuf", ("steps", "latents")),
    "interpolations": ("pixels", ("samples", "even steps", "latents", "side", "side", 3)),
    "interpolation_steps": ("f", ("even steps", "latents")),
    "strips": ("pixels", ("latents", "strip steps", "side", "side", 3)),
    "strip_codes": ("iu", ("latents", 2)),
    "generated": ("pixels", ("generated", "side", "side", 3)),
}
PIXELS = ("side", "side", 3)
RAW = "raw_"  # prefix of the arrays of the raw weights
WORDS = {"iu": "whole numbers", "iuf": "numbers", "f": "numbers with fractions", "pixels": "bytes"}
MIN_STEPS = {"strip steps": 2}  # both ends


def check_arrays(
    arrays: Mapping[str, NDArray[Any]], required: Collection[str] = (), observations: Observations | None = None
) -> None:
    """Raise a ``ValueError`` that names the first array which is missing, or is not as `FORMS` says.

    Args:
        arrays: by name. Others than those of `FORMS` pass.
        required: names that must be there.
        observations: what arrays of pixels hold, if not square RGB images of bytes.
    """
    for name in (*required, *(["strip_codes"] if "strips" in arrays else [])):
        if name not in arrays:
            raise ValueError(f"it has no array {name!r}")
    sizes: dict[str, int] = {}
    for name, array in arrays.items():
        if (form := FORMS.get(name.removeprefix(RAW))) is not None:
            kinds, dimensions = _form_of(form, observations)
            _check_type(name, array, kinds)
            _check_shape(name, array.shape, dimensions, sizes)


def _form_of(
    form: tuple[str, tuple[str | int, ...]], observations: Observations | None
) -> tuple[str, tuple[str | int, ...]]:
    """Return type and dimensions of an array whose last dimensions, if they are pixels, are those of observations."""
    kinds, dimensions = form
    if kinds != "pixels" or observations is None or observations.is_standard:
        return form
    shape = (*dimensions[: -len(PIXELS)], *observations.shape)
    return (kinds if observations.dtype == "uint8" else "f"), shape


def _check_type(name: str, array: NDArray[Any], kinds: str) -> None:
    fits = array.dtype == np.uint8 if kinds == "pixels" else array.dtype.kind in kinds
    if not fits:
        raise ValueError(f"{name!r} must hold {WORDS[kinds]}, got {array.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name!r} holds numbers that are not finite")
    if name != "sources" and array.size and max(abs(int(array.min())), abs(int(array.max()))) > MAX_MAGNITUDE:
        raise ValueError(f"{name!r} holds numbers larger than {MAX_MAGNITUDE:g}")


def _check_shape(name: str, shape: tuple[int, ...], dimensions: tuple[str | int, ...], sizes: dict[str, int]) -> None:
    """Compare a shape with what earlier arrays have said about its dimensions, and remember what it says."""
    expected = [size if isinstance(size, int) else sizes.get(size) for size in dimensions]
    fits = len(shape) == len(dimensions)
    for size, known, dimension in zip(shape, expected, dimensions, strict=False):
        least = 0 if dimension == "sources" else MIN_STEPS.get(str(dimension), 1)
        fits = fits and size >= least and known in (None, size)
    named = dict(zip((d for d in dimensions if isinstance(d, str)), shape, strict=False))
    if not fits or any(shape[i] != named.get(str(d), shape[i]) for i, d in enumerate(dimensions)):
        text = ", ".join(str(d if known is None else known) for d, known in zip(dimensions, expected, strict=True))
        raise ValueError(f"{name!r} must have the shape ({text}), got {shape}")
    sizes |= named
