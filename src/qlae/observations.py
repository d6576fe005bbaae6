"""What a model observes, described once: images, vectors, series or rows of tables, their shape and their scale.

Networks, losses, scores, pictures and files ask an ``Observations`` object instead of assuming images. Whatever depends
on the kind is named in one table, ``KINDS``; nothing else compares kinds. A kind names its implementations as
``"module:attribute"``, which are imported on first use, since they import this module.
"""

import dataclasses
import math
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ._checks import require_known
from ._parsing import parse
from .columns import TableColumn

MAX_CHANNELS = 16  # of an image
MIN_SIDE, MAX_SIDE = 8, 256  # pixels of an image; squares of 512, 1024, … pixels are accepted as well
COLOURS = 3
MAX_MAGNITUDE = 1e18  # in files of a run; larger numbers are damage, and their squares would overflow
IMAGES, VECTORS, SERIES, TABLES = "images", "vectors", "series", "tables"  # names of the kinds
DTYPES = ("uint8", "float32", "float64")


@dataclass(frozen=True)
class Kind:
    """What depends on the kind of observations.

    Attributes:
        name: in ``config.json``.
        axes: names of the axes of one observation in an array.
        one, many: the noun for observations in messages, singular and plural.
        networks: the default encoder and decoder, a name in ``registry.NETWORKS``.
        form: the class that turns arrays into inputs of networks and outputs into arrays, and measures errors.
        fidelity: the class that measures and scores reconstructions.
        drawing: the class that draws them.
        view: the class that shows them in the explorer.
        effects: the class that measures what latents change in them, for `qlae.describe`.
        sheet: the function that draws a data set before anything is trained, as `qlae data inspect` does.
        size: returns a description of the size of an observation.
        check: raises a ``ValueError`` if an observation cannot have a shape of so many axes.
        has_bytes: whether arrays may hold bytes; all may hold floats.
    """

    name: str
    axes: tuple[str, ...]
    one: str
    many: str
    networks: str
    form: str
    fidelity: str
    drawing: str
    view: str
    effects: str
    sheet: str
    size: Callable[[tuple[int, ...]], str]
    check: Callable[[tuple[int, ...]], object] = len
    has_bytes: bool = False

    def load(self, part: str) -> Any:
        """Return the class or function that an attribute such as ``form`` names; this imports its module."""
        return pkgutil.resolve_name(getattr(self, part))


def _check_image(shape: tuple[int, ...]) -> None:
    height, width, channels = shape
    if not 1 <= channels <= MAX_CHANNELS:
        hint = "; move the channels to the last axis" if height <= MAX_CHANNELS else ""
        raise ValueError(f"images must have 1 to {MAX_CHANNELS} channels, got {channels} in (h, w, c) = {shape}{hint}")
    if height != width or channels != COLOURS:  # custom networks may take squares of any size
        require_sides(height, width)


def require_sides(height: int, width: int) -> None:
    """Raise an error for images that the networks of qlae cannot take."""
    is_large = height == width and height > MAX_SIDE and height.bit_count() == 1
    if not is_large and not (min(height, width) >= MIN_SIDE and max(height, width) <= MAX_SIDE):
        raise ValueError(
            f"the networks take images with {MIN_SIDE} to {MAX_SIDE} pixels per side, or squares of 512, 1024, … "
            f"pixels, got {height}×{width}; resize the images"
        )


def _check_series(shape: tuple[int, ...]) -> None:
    if shape[0] < MIN_SIDE:
        raise ValueError(
            f"series must have at least {MIN_SIDE} time steps, got (t, c) = {shape}; shorter ones can "
            "be vectors: series.reshape(len(series), -1)"
        )


def _image_size(shape: tuple[int, ...]) -> str:
    height, width, channels = shape
    return f"{height}×{width}" if channels == COLOURS else f"{height}×{width}, {_count(channels, 'channel')}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            name=IMAGES,
            axes=("h", "w", "c"),
            one="image",
            many="images",
            networks="paper",
            form="qlae.models.forms:ImageForm",
            fidelity="qlae.scoring.fidelity:Psnr",
            drawing="qlae.report.image_pictures:ImagePictures",
            view="qlae.explorer.observation_views:ImageView",
            effects="qlae.description.image_effects:ImageEffects",
            sheet="qlae.data.inspection:contact_sheet",
            size=_image_size,
            check=_check_image,
            has_bytes=True,
        ),
        Kind(
            name=VECTORS,
            axes=("d",),
            one="vector",
            many="vectors",
            networks="vectors",
            form="qlae.models.forms:VectorForm",
            fidelity="qlae.scoring.fidelity:ExplainedVariance",
            drawing="qlae.report.vectors_and_series:VectorPictures",
            view="qlae.explorer.observation_views:VectorView",
            effects="qlae.description.vector_effects:VectorEffects",
            sheet="qlae.report.vectors_and_series:vector_sheet",
            size=lambda shape: _count(shape[0], "feature"),
        ),
        Kind(
            name=TABLES,
            axes=("d",),
            one="row",
            many="rows",
            networks="vectors",
            form="qlae.models.table_form:TableForm",
            fidelity="qlae.scoring.table_fidelity:TableFidelity",
            drawing="qlae.report.vectors_and_series:VectorPictures",
            view="qlae.explorer.observation_views:TableView",
            effects="qlae.description.table_effects:TableEffects",
            sheet="qlae.report.vectors_and_series:vector_sheet",
            size=lambda shape: _count(shape[0], "feature"),
        ),
        Kind(
            name=SERIES,
            axes=("t", "c"),
            one="series",
            many="series",
            networks="series",
            form="qlae.models.forms:SeriesForm",
            fidelity="qlae.scoring.fidelity:ExplainedVariance",
            drawing="qlae.report.vectors_and_series:SeriesPictures",
            view="qlae.explorer.observation_views:SeriesView",
            effects="qlae.description.series_effects:SeriesEffects",
            sheet="qlae.report.vectors_and_series:series_sheet",
            size=lambda shape: f"{shape[0]:,} time steps of {_count(shape[1], 'channel')}",
            check=_check_series,
        ),
    )
}


@dataclass(frozen=True)
class Observations:
    """The description of a data set's observations.

    Attributes:
        kind: a name in ``KINDS``.
        shape: of one observation in an array: (h, w, c), (d,) or (t, c).
        dtype: of the array, one of ``DTYPES``.
        feature_names: of the last axis; empty if it has no names.
        offset, scale: one number per entry of the last axis; networks see ``(x − offset) / scale``. Empty for bytes,
            which are divided by 255. For vectors and series they are mean and standard deviation; for images of floats,
            the lowest value and the range, unless all values lie in [0, 1].
        columns: of a table with categories, dates or missing values; empty for other data.
    """

    kind: str
    shape: tuple[int, ...]
    dtype: str = "uint8"
    feature_names: tuple[str, ...] = ()
    offset: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    columns: tuple[TableColumn, ...] = ()

    def __post_init__(self) -> None:
        kind = KINDS[require_known(self.kind, KINDS, "kind of observations")]
        if len(self.shape) != len(kind.axes) or not all(type(n) is int and n >= 1 for n in self.shape):
            raise ValueError(f"{kind.many} have the shape ({', '.join(kind.axes)}), got {self.shape}")
        kind.check(self.shape)
        require_known(self.dtype, DTYPES, "dtype of observations")
        for name in ("feature_names", "offset", "scale"):
            entries = getattr(self, name)
            if entries and len(entries) != self.num_features:
                raise ValueError(f"{self.num_features} features need as many entries of {name}, got {len(entries)}")
        if len(self.offset) != len(self.scale) or not all(math.isfinite(x) for x in (*self.offset, *self.scale)):
            raise ValueError("offset and scale must be finite numbers, as many of one as of the other")
        if not all(scale > 0 for scale in self.scale):
            raise ValueError(f"scale must be above 0, got {min(self.scale)}")
        if (self.kind == TABLES) != bool(self.columns):
            raise ValueError("tables have columns, and other observations have none")
        if self.columns and self.feature_names != tuple(name for own in self.columns for name in own.features):
            raise ValueError("feature_names must be those of the columns")
        if len(set(self.feature_names)) < len(self.feature_names):
            twice = next(name for name in self.feature_names if self.feature_names.count(name) > 1)
            raise ValueError(f"feature_names must be distinct, got {twice!r} twice")

    @property
    def traits(self) -> Kind:
        """What depends on the kind."""
        return KINDS[self.kind]

    @property
    def num_features(self) -> int:
        """Entries of the last axis: features of a vector, channels of an image or of a series."""
        return self.shape[-1]

    @property
    def num_entries(self) -> int:
        """Numbers in one observation."""
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features, or "x0", "x1", … if they have none."""
        return self.feature_names or tuple(f"x{i}" for i in range(self.num_features))

    @property
    def is_standard(self) -> bool:
        """Whether these are the paper's observations: square RGB images of bytes."""
        plain = not (self.feature_names or self.offset) and self.dtype == "uint8"
        return plain and len(self.shape) == 3 and self.shape == (self.shape[0], self.shape[0], COLOURS)

    @property
    def size(self) -> str:
        """A description of the size of one observation, such as "64×64" or "12 features"."""
        return self.traits.size(self.shape)

    def with_sample_axis(self) -> str:
        """Describe the shape and type of an array of observations, such as "(n, 64, 64, 3) uint8"."""
        return f"(n, {', '.join(map(str, self.shape))}) {self.dtype}"

    def difference(self, other: "Observations") -> str | None:
        """Explain why a model of these observations cannot take others; return None if it can."""
        if (self.kind, self.shape) != (other.kind, other.shape):
            return f"the model takes {self.traits.many} of {self.size}, data has {other.traits.many} of {other.size}"
        if [column.facts for column in self.columns] != [column.facts for column in other.columns]:
            return (
                "the model takes a table with other columns; pass a data frame or a file, which is read as the model's"
            )
        if self.feature_names and other.feature_names and self.feature_names != other.feature_names:
            pairs = zip(self.feature_names, other.feature_names, strict=True)
            mine, theirs = next(pair for pair in pairs if pair[0] != pair[1])
            return (
                f"the model takes the features {', '.join(self.feature_names)}, in this order; data has {theirs!r} in "
                f"the place of {mine!r}"
            )
        return None

    def describe(self) -> dict[str, Any]:
        """Return what a results file says of observations that are not the paper's."""
        described = self.to_dict()
        columns = {key: described[key] for key in ("feature_names", "columns") if self.columns}
        return {"kind": self.kind, "shape": list(self.shape), "dtype": self.dtype} | columns

    def to_dict(self) -> dict[str, Any]:
        """Return plain data without empty entries, ready for JSON."""
        fields = dataclasses.asdict(self)
        fields["columns"] = [_without_empty(column) for column in fields["columns"]]
        return _without_empty(fields)


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in fields.items() if value}


def square_images(resolution: int) -> Observations:
    """Return the description of the paper's images: ``resolution`` × ``resolution`` pixels of three bytes."""
    return Observations(IMAGES, (resolution, resolution, COLOURS))


def described_observations(description: Mapping[str, Any]) -> Observations:
    """Return the observations of a data set from its description in ``results.json``."""
    if "observations" in description:
        return parse(description["observations"], Observations, "data.observations")
    return square_images(description["resolution"])
