"""Read the files of an evaluation, ``results.json``, ``sample.npz`` and ``pictures.npz``, and check their content.

The files may have been edited or damaged, so they are checked once, where they are read, and others can rely on them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from .._checks import shortened
from .._io import read_json
from .._parsing import MAX_MAGNITUDE, Count, parse
from ..metrics import known_scores
from ..observations import MAX_MAGNITUDE as MAX_ENTRY
from ..observations import Observations, described_observations

WEIGHTS = ("averaged", "raw")
#: Entries that say how a metric was computed.
DETAILS = ("dci",)
#: Larger numbers are damage.
MAX_COUNT = 2**53
#: Entries of the scores that are texts.
TEXTS = ("infoe_input", "protocol", "forest", "split", "normalisation")
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


@dataclass(frozen=True)
class _Results:
    """The entries of ``results.json`` that readers rely on; there may be others."""

    model: str
    protocol: str
    seed: Count
    steps: Count
    num_samples: Count
    seconds: float
    data: dict[str, Any]
    averaged: dict[str, Any]
    raw: dict[str, Any]
    prune: bool = True
    warnings: list[str] = field(default_factory=list)
    versions: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Data:
    """The description of the data; ``described_observations`` checks that of the observations."""

    name: str
    origin: str
    num_images: Count
    source_names: list[str]
    source_sizes: list[Count]
    drawn: dict[str, Any] | None = None
    observations: dict[str, Any] | None = None
    resolution: Count | None = None  # if observations are square images of bytes

    def __post_init__(self) -> None:
        if self.observations is None and self.resolution is None:
            raise ValueError("observations or resolution must be given")
        if len(self.source_sizes) != len(self.source_names):
            raise ValueError(f"source_sizes must be a list of {len(self.source_names)} numbers")


@dataclass(frozen=True)
class _Drawn:
    """How sources of generated data were drawn."""

    continuous: list[str]


@dataclass(frozen=True)
class _Curve:
    """Scores of parts of the sample: for each score and size, the values of several draws."""

    sizes: list[Annotated[int, msgspec.Meta(gt=0, lt=MAX_COUNT)]]
    scores: dict[str, list[list[float]]]

    def __post_init__(self) -> None:
        if any(len(values) != len(self.sizes) for values in self.scores.values()):
            raise ValueError(f"scores must have one list for each of {len(self.sizes)} sizes")


@dataclass(frozen=True)
class _Scores:
    """The scores of one set of weights that are more than a number. Those of InfoMEC come together."""

    infom: float | None = None
    infoe: float | None = None
    infoc: float | None = None
    nmi: list[list[float]] | None = None
    active_latents: list[bool] | None = None
    informative_latents: list[bool] | None = None
    bootstrap: Count | None = None
    intervals: dict[str, tuple[float, float]] | None = None
    by_sample_size: _Curve | None = None

    def __post_init__(self) -> None:
        lengths = {len(flags) for flags in (self.active_latents, self.informative_latents) if flags is not None}
        if len(lengths) > 1:
            raise ValueError("informative_latents must be as long as active_latents")
        if self.intervals is not None and self.bootstrap is None:
            raise ValueError("intervals need bootstrap, the number of half samples")


def read_results(path: Path, *, remedy: str) -> dict[str, Any]:
    """Return the content of a ``results.json``.

    Args:
        path: the file.
        remedy: advice for a damaged file, the end of the error message.

    Raises:
        ValueError: the content is damaged, or of another kind than expected.
        OSError: the file is missing or the system cannot read it; the error names it.
    """
    content = read_json(path, remedy=remedy)
    try:
        check_results(content)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); {remedy}") from None
    return content


def check_results(content: dict[str, Any]) -> None:
    """Raise a ``ValueError`` that names the first entry which is missing or of another kind than expected."""
    results = parse(content, _Results, "results", allow_unknown=True)
    data = parse(results.data, _Data, "results.data", allow_unknown=True)
    described_observations(results.data)
    if data.drawn is not None:
        parse(data.drawn, _Drawn, "results.data.drawn", allow_unknown=True)
    for weights in WEIGHTS:
        _check_scores(getattr(results, weights), f"results.{weights}", len(data.source_names))


def _check_scores(scores: dict[str, Any], where: str, num_sources: int) -> None:
    parsed = parse(scores, _Scores, where, allow_unknown=True)
    if parsed.nmi is not None:
        _check_nmi(parsed, where, num_sources)
    for key in parsed.intervals or {}:
        _require_number(scores.get(key), f"{where}.{key}")
    for key, value in scores.items():
        is_detail = isinstance(value, dict | list) and (key in DETAILS or key not in known_scores())
        if not is_detail and not (isinstance(value, str) and key in TEXTS):
            _require_number(value, f"{where}.{key}")


def _check_nmi(scores: _Scores, where: str, num_sources: int) -> None:
    """Check that a matrix of NMI has a row per source and a column per latent, and comes with the other entries."""
    for key in ("infom", "infoe", "infoc", "active_latents", "informative_latents"):
        if getattr(scores, key) is None:
            raise ValueError(f"{where} has nmi and no {key}")
    assert scores.nmi is not None
    assert scores.active_latents is not None
    num_latents = len(scores.active_latents)
    if not len(scores.nmi) == num_sources > 0 or not all(len(row) == num_latents > 0 for row in scores.nmi):
        raise ValueError(f"{where}.nmi must be {num_sources} lists of {num_latents} numbers")


def _require_number(value: Any, where: str) -> None:
    if not is_number(value):
        raise ValueError(f"{where} must be a number, got {'nothing' if value is None else shortened(value)}")


def is_number(value: Any) -> bool:
    """Return whether a value of a JSON file is a finite number."""
    return type(value) in (int, float) and abs(value) < MAX_MAGNITUDE  # false for NaN too


def is_count(value: Any) -> bool:
    """Return whether a value of a JSON file is a whole number that is not negative."""
    return type(value) is int and 0 <= value < MAX_COUNT


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
            _check_array_type(name, array, kinds)
            _check_array_shape(name, array.shape, dimensions, sizes)


def _form_of(
    form: tuple[str, tuple[str | int, ...]], observations: Observations | None
) -> tuple[str, tuple[str | int, ...]]:
    """Return type and dimensions of an array whose last dimensions, if they are pixels, are those of observations."""
    kinds, dimensions = form
    if kinds != "pixels" or observations is None or observations.is_standard:
        return form
    shape = (*dimensions[: -len(PIXELS)], *observations.shape)
    return (kinds if observations.dtype == "uint8" else "f"), shape


def _check_array_type(name: str, array: NDArray[Any], kinds: str) -> None:
    fits = array.dtype == np.uint8 if kinds == "pixels" else array.dtype.kind in kinds
    if not fits:
        raise ValueError(f"{name!r} must hold {WORDS[kinds]}, got {array.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name!r} holds numbers that are not finite")
    if name != "sources" and array.size and max(abs(int(array.min())), abs(int(array.max()))) > MAX_ENTRY:
        raise ValueError(f"{name!r} holds numbers larger than {MAX_ENTRY:g}")


def _check_array_shape(
    name: str, shape: tuple[int, ...], dimensions: tuple[str | int, ...], sizes: dict[str, int]
) -> None:
    """Compare a shape with the sizes of earlier arrays, and remember its own."""
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
