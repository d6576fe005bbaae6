"""``DataSpec``: the description of a data set, from which it is loaded.

Each kind of data is a frozen dataclass whose fields are its options. ``load_data``, the command line, plans and
``config.json`` build one and nothing else, so two runs have the same data if their specs and checksums are equal.
``registry.DATA`` lists the kinds; code outside the package can register its own:

    @DATA.register("greys")
    @dataclass(frozen=True, kw_only=True)
    class Greys(DataSpec):
        resolution: int = 64

        def read(self, progress=None): ...  # returns a SourceDataset
"""

from __future__ import annotations

import dataclasses
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known, whole_number
from .._parsing import parse
from ..observations import IMAGES, Observations
from .dataset import NoisyImages, Progress, SourceDataset
from .hold_out import HOLD_OUT, require_share
from .pictures import DEFAULT_RESOLUTION, GREY, PictureSize, wanted_size
from .sources import GREY_SETS, draw_levels, smooth_sources, split_sources


@dataclass(frozen=True, kw_only=True)
class DataSpec(ABC):
    """The description of a data set. A subclass declares its options as fields.

    Attributes:
        name: of the data set.
        title: the name of this kind of data in messages.
        path_fields: the fields that hold paths of files.
        known_names: the names that data of this kind may have; empty if they may have any.
    """

    title: ClassVar[str] = "the data set"
    path_fields: ClassVar[tuple[str, ...]] = ()
    known_names: ClassVar[Collection[str]] = ()

    name: str = ""

    def __post_init__(self) -> None:
        """Bring options to their canonical form; raise a ``ValueError`` for values that are not possible."""
        if self.known_names:
            require_known(self.name, self.known_names, "data set")

    @property
    def is_random(self) -> bool:
        """Whether the seed matters."""
        return False

    @abstractmethod
    def read(self, progress: Progress | None = None) -> SourceDataset:
        """Return the data set; `load` records the spec in it."""

    def load(self, *, progress: Progress | None = None) -> SourceDataset:
        """Load the data set.

        Args:
            progress: called with (images done, number of images) while files are read.
        """
        data = self.read(progress)
        data.spec = self
        return data

    def preview(self) -> Observations:
        """Return the description of the observations, reading no more than necessary; statistics may be missing."""
        return self.load().observations

    def paths(self) -> dict[str, str]:
        """Return the paths of the files that are read, by field."""
        return {name: path for name in self.path_fields if (path := getattr(self, name))}

    def require_files(self) -> None:
        """Raise a ``ValueError`` if a file does not exist."""
        for path in self.paths().values():
            if not Path(path).exists():
                raise ValueError(f"{path} does not exist")

    def without_folders(self) -> Self:
        """Return the spec with the names of its files only, which stay the same if files move with their folder."""
        return dataclasses.replace(self, **{name: Path(path).name for name, path in self.paths().items()})

    def _set(self, **values: Any) -> None:
        """Set fields in ``__post_init__``, where options get their canonical form."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class UserData(DataSpec):
    """Data of the user's, of which some rows are held out from training.

    `read` sets ``groups`` of the data set if rows belong together, and ``spans`` if they are windows that may overlap.

    Attributes:
        hold_out: share of the rows, in [0, 1); None if the data set that is read says it. `data_spec` fills in the
            default; a description that does not have this field is of data that are trained on as a whole.
    """

    default_hold_out: ClassVar[float | None] = HOLD_OUT

    hold_out: float | None = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hold_out is not None:
            self._set(hold_out=require_share(self.hold_out))

    def load(self, *, progress: Progress | None = None) -> SourceDataset:
        data = super().load(progress=progress)
        return data if self.hold_out is None else data.with_hold_out(self.hold_out)


@dataclass(frozen=True, kw_only=True)
class NoisyData(DataSpec):
    """Images that may have noise.

    Attributes:
        noise: the standard deviation of Gaussian noise on the pixels, as a fraction of the range from black to white.
        seed: determines the noise, and the draw of kinds that draw at random; 0 if nothing is random.
    """

    noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise < 0:
            raise ValueError(f"noise must be a standard deviation of 0 or more, got {self.noise!r}")
        whole_number("seed", self.seed, at_least=0)
        self._set(noise=float(self.noise), seed=self.seed if self.is_random else 0)

    @property
    def is_random(self) -> bool:
        return super().is_random or bool(self.noise)

    def load(self, *, progress: Progress | None = None) -> SourceDataset:
        data = super().load(progress=progress)
        if not self.noise:
            return data
        if data.observations.dtype != "uint8":
            raise ValueError(f"noise is for images of bytes, and {data.name} has {data.observations.traits.many}")
        images = NoisyImages(data.images, self.noise, self.seed)
        return data.with_images(images, {"noise": self.noise, "noise_seed": self.seed})


@dataclass(frozen=True, kw_only=True)
class SquareImages(NoisyData):
    """Square images of a built-in data set, with as many channels as it has.

    Attributes:
        resolution: height and width in pixels, a number (or its text).
    """

    resolution: int | tuple[int, int] | str = DEFAULT_RESOLUTION

    def __post_init__(self) -> None:
        super().__post_init__()
        size = self.size
        if size.height != size.width or wanted_size(self.resolution).channels == GREY:
            raise ValueError(
                f"{self.name} has square images: give resolution as one number; other shapes are for image files"
            )
        self._set(resolution=size.height)

    @property
    def size(self) -> PictureSize:
        """Height, width and channels."""
        return wanted_size(self.resolution, grey=self.name in GREY_SETS)

    def preview(self) -> Observations:
        return Observations(IMAGES, self.size.shape)


@dataclass(frozen=True, kw_only=True)
class ResizedImages(NoisyData):
    """Images that are scaled and cropped to one size.

    Attributes:
        resolution: height and width in pixels: one number, a pair, or a text such as ``"60x90"``.
        grey: whether they have one channel instead of three.
    """

    resolution: int | tuple[int, int] | str = DEFAULT_RESOLUTION
    grey: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        size = self.size
        self._set(resolution=size.resolution, grey=size.channels == GREY)

    @property
    def size(self) -> PictureSize:
        """Height, width and channels."""
        return wanted_size(self.resolution, grey=self.grey)

    def preview(self) -> Observations:
        return Observations(IMAGES, self.size.shape)


@dataclass(frozen=True, kw_only=True)
class SampledData(DataSpec):
    """Data with known sources: all their combinations, or a random sample.

    Attributes:
        sources: the sources that vary, in the order of the data set; empty for all.
        fixed: levels of the other sources, by default the middle of the range.
        num_images: the size of a random sample; None for the default.
        continuous: whether all sources, or some by name, take any value in their range.
        correlated: pairs of sources and the correlation of each.
        seed: determines the draw; 0 if nothing is random.
    """

    sources: tuple[str, ...] = ()
    fixed: dict[str, int] = field(default_factory=dict)
    num_images: int | None = None
    continuous: bool | tuple[str, ...] = False
    correlated: tuple[tuple[str, str, float], ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        varying, constant = split_sources(self.source_sizes, self.sources, self.fixed)
        if self.num_images is not None:
            whole_number("num_images", self.num_images)
        whole_number("seed", self.seed, at_least=0)
        if len({frozenset(pair) for *pair, _ in self.correlated}) < len(self.correlated):
            raise ValueError(f"correlated names a pair of sources twice: {self.correlated}; give each pair once")
        self._set(
            sources=() if not constant else tuple(varying),
            fixed=constant,
            continuous=self.continuous or False,
            seed=self.seed if self.is_random else 0,
        )

    @property
    @abstractmethod
    def source_sizes(self) -> Mapping[str, int]:
        """All sources of the data set and the number of levels of each."""

    @property
    def is_random(self) -> bool:
        return super().is_random or bool(self.num_images or self.continuous or self.correlated)

    @property
    def varying(self) -> dict[str, int]:
        """The sources that vary and the number of levels of each."""
        return {name: size for name, size in self.source_sizes.items() if name not in self.fixed}

    def draw(
        self,
        num_rows: int,
        *,
        categories: tuple[str, ...],
        circular: tuple[str, ...] = (),
        smooth: tuple[str, ...] = (),
    ) -> tuple[NDArray[np.float64], list[str], dict[str, Any]]:
        """Draw levels (n, number of varying sources); also return the continuous sources, and facts about the draw.

        n is `num_rows` if `num_images` is None. Sources in `smooth` always are continuous, `categories` never.
        """
        smooth = (*smooth, *smooth_sources(list(self.varying), self.continuous, categories))
        names = [name for name in self.varying if name in smooth]
        levels = draw_levels(
            self.varying,
            self.num_images or num_rows,
            smooth=names,
            circular=circular,
            correlated={(first, second): value for first, second, value in self.correlated},
            seed=self.seed,
        )
        pairs = [list(entry) for entry in self.correlated]
        return levels, names, {"drawn": {"continuous": names, "correlated": pairs, "seed": self.seed}}


def build_spec(cls: type[DataSpec], options: Mapping[str, Any]) -> DataSpec:
    """Return a spec of a kind from options as a user writes them; relative paths become absolute.

    An option that the kind does not have is an error, unless it is None or empty.
    """
    fields = [f.name for f in dataclasses.fields(cls)]
    for option, value in options.items():
        is_given = not (value is None or value is False or (isinstance(value, list | tuple | dict) and not value))
        is_given &= option != "hold_out" or value != 0  # what other data do anyway
        if option not in fields and is_given:
            known = ", ".join(name for name in fields if name not in ("name", "data")) or "none"
            called = f"{cls.title} {options.get('name') or options.get('path') or ''}".strip()
            raise ValueError(f"{option} does not apply to {called}; options that do: {known}")
    given = {name: value for name, value in options.items() if name in fields and value is not None}
    if issubclass(cls, UserData):
        given.setdefault("hold_out", cls.default_hold_out)
    if "data" in fields:  # in memory
        return cls(**given)
    for name in cls.path_fields:
        if isinstance(given.get(name), str | Path) and given[name]:
            given[name] = os.path.abspath(given[name])
    if isinstance(pairs := given.get("correlated"), Mapping):
        given["correlated"] = [[*pair, number] if isinstance(pair, tuple) else pair for pair, number in pairs.items()]
    try:
        return parse(_to_plain(given), cls, "data")
    except ValueError as error:
        if isinstance(error.__cause__, ValueError):  # a value that the spec itself rejects
            raise error.__cause__ from None
        raise


def _to_plain(value: Any) -> Any:
    """Return options as JSON would hold them."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _to_plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(entry) for entry in value]
    return value
