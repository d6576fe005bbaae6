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
from .._io import read_sealed
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
    "column_errors": ("f", ("images", "columns")),
    "column_variances": ("f", ("images", "columns")),
    "is_category": ("iu", ("columns",)),
    "num_observed": ("iu", ("columns",)),
    "hits": ("iu", ("images", "columns")),
    "majority_hits": ("iu", ("images", "columns")),
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
RAW = "raw_"  # prefix of the arrays of the raw weights
WORDS = {"iu": "whole numbers", "iuf": "numbers", "f": "numbers with fractions", "pixels": "bytes"}
LEAST = {"sources": 0, "strip steps": 2}  # sizes of dimensions; of others 1


@dataclass(frozen=True)
class _Drawn:
    """How sources of generated data were drawn."""

    continuous: list[str]


@dataclass(frozen=True)
class _Data:
    """The description of the data; ``described_observations`` checks that of the observations."""

    name: str
    origin: str
    num_images: Count
    source_names: list[str]
    source_sizes: list[Count]
    drawn: _Drawn | None = None
    observations: dict[str, Any] | None = None
    resolution: Count | None = None  # if observations are square images of bytes

    def __post_init__(self) -> None:
        if self.observations is None and self.resolution is None:
            raise ValueError("observations or resolution must be given")
        if len(self.source_sizes) != len(self.source_names):
            raise ValueError(f"source_sizes must be a list of {len(self.source_names)} numbers")


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
        rows = [flags for flags in (self.active_latents, self.informative_latents) if flags is not None]
        lengths = {len(row) for row in (*rows, *(self.nmi or ()))}
        if self.nmi is not None:
            for key in ("infom", "infoe", "infoc", "active_latents", "informative_latents"):
                if getattr(self, key) is None:
                    raise ValueError(f"it has nmi and no {key}")
        if len(lengths) > 1 or (self.nmi is not None and lengths == {0}):
            raise ValueError("active_latents, informative_latents and the rows of nmi must be equally long")
        if self.intervals is not None and self.bootstrap is None:
            raise ValueError("intervals need bootstrap, the number of half samples")


@dataclass(frozen=True)
class _HeldOut:
    """The scores of rows that took no part in the training."""

    num_samples: Count
    averaged: _Scores
    raw: _Scores


@dataclass(frozen=True)
class _Results:
    """The entries of ``results.json`` that readers rely on; there may be others."""

    model: str
    protocol: str
    seed: Count
    steps: Count
    num_samples: Count
    seconds: float
    data: _Data
    averaged: _Scores
    raw: _Scores
    prune: bool = True
    unconfirmed_latents: list[Count] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    versions: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    held_out: _HeldOut | None = None

    def __post_init__(self) -> None:
        parts = [self] if self.held_out is None else [self, self.held_out]
        for weights in WEIGHTS:
            for nmi in (getattr(part, weights).nmi for part in parts):
                if nmi is None or len(nmi) == len(self.data.source_names) > 0:
                    continue
                raise ValueError(f"{weights}.nmi must be {len(self.data.source_names)} lists of numbers")


def read_results(path: Path, *, remedy: str) -> dict[str, Any]:
    """Return the content of a ``results.json``; ``remedy``, advice for a damaged file, ends the error message."""
    content = read_sealed(path, remedy=remedy)
    try:
        parse(content, _Results, "results", allow_unknown=True)
        described_observations(content["data"])
        for weights in WEIGHTS:
            _check_numbers(content[weights], f"results.{weights}")
            if content.get("held_out") is not None:
                _check_numbers(content["held_out"][weights], f"results.held_out.{weights}")
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); {remedy}") from None
    return content


def _check_numbers(scores: dict[str, Any], where: str) -> None:
    """Raise a ``ValueError`` unless every score is a number, and so is everything that has an interval."""
    intervals = scores.get("intervals") or {}
    for key in (*scores, *intervals):
        value = scores.get(key)
        is_detail = isinstance(value, dict | list) and (key in DETAILS or key not in known_scores())
        is_text = isinstance(value, str) and key in TEXTS
        if not is_number(value) and (key in intervals or not (is_detail or is_text)):
            raise ValueError(f"{where}.{key} must be a number, got {'nothing' if value is None else shortened(value)}")


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

    ``observations`` describe the arrays of pixels, if they are not square RGB images of bytes.
    """
    for name in (*required, *(["strip_codes"] if "strips" in arrays else [])):
        if name not in arrays:
            raise ValueError(f"it has no array {name!r}")
    sizes: dict[str, int] = {}
    for name, array in arrays.items():
        kinds, dimensions = FORMS.get(name.removeprefix(RAW), ("", ()))
        if kinds == "pixels" and observations is not None and not observations.is_standard:
            kinds = kinds if observations.dtype == "uint8" else "f"
            dimensions = (*dimensions[:-3], *observations.shape)
        if kinds:
            _check_entries(name, array, kinds)
            _check_shape(name, array.shape, dimensions, sizes)


def _check_entries(name: str, array: NDArray[Any], kinds: str) -> None:
    if not (array.dtype == np.uint8 if kinds == "pixels" else array.dtype.kind in kinds):
        raise ValueError(f"{name!r} must hold {WORDS[kinds]}, got {array.dtype}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name!r} holds numbers that are not finite")
    if name != "sources" and array.size and max(abs(int(array.min())), abs(int(array.max()))) > MAX_ENTRY:
        raise ValueError(f"{name!r} holds numbers larger than {MAX_ENTRY:g}")


def _check_shape(name: str, shape: tuple[int, ...], dimensions: tuple[str | int, ...], sizes: dict[str, int]) -> None:
    """Compare a shape with the sizes of earlier arrays, and remember its own."""
    expected = tuple(sizes.get(str(each), each) for each in dimensions)
    fits = len(shape) == len(dimensions)
    for size, dimension in zip(shape, dimensions, strict=False):
        known = sizes.setdefault(dimension, size) if isinstance(dimension, str) else dimension
        fits = fits and size == known and size >= LEAST.get(str(dimension), 1)
    if not fits:
        raise ValueError(f"{name!r} must have the shape ({', '.join(map(str, expected))}), got {shape}")
