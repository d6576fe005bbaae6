"""Types of arguments that several verbs share, and the way from arguments to data."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

if TYPE_CHECKING:
    from ..data import SourceDataset

Name = Annotated[str, arg(metavar="NAME")]
Directory = Annotated[Path, arg(metavar="RUN")]
OptionalName = Annotated[str | None, arg(metavar="NAME")]
OptionalInt = Annotated[int | None, arg(metavar="INT")]
OptionalFloat = Annotated[float | None, arg(metavar="FLOAT")]
OptionalPath = Annotated[Path | None, arg(metavar="PATH")]


@dataclass(frozen=True)
class DataOptions:
    """Which form of the data."""

    resolution: int = 64
    """Pixels a side; the networks take 8, 16, 32, 64, 128, …"""
    sources: tuple[str, ...] = ()
    """Sources that vary, such as --sources "floor hue" shape, the others fixed; all if none is given."""
    continuous: bool = False
    """Let sources take any value in their range instead of the grid's."""
    correlated: tuple[str, ...] = ()
    """Pairs of sources that go together, such as --correlated "scale,orientation,0.7"."""
    num_images: OptionalInt = None
    """Draw so many images at random instead of all combinations once; 100,000 with --continuous or --correlated."""
    noise: float = 0.0
    """Standard deviation of noise on the pixels, as a share of the range from black to white."""
    data_path: OptionalPath = None
    """Read the published files of the data set from here instead of rendering it."""
    source_file: OptionalPath = None
    """For images of your own, their sources: a CSV (a header, then a line an image, its file's name first) or .npy."""


def load(name: str, options: DataOptions, *, show: bool = True) -> "SourceDataset":
    """The data that a verb names; real files are prepared under a bar the first time."""
    from .._progress import growing_bar
    from ..data import load_data

    with growing_bar("reading", show=show) as report:
        return load_data(
            name,
            resolution=options.resolution,
            sources=options.sources or None,
            continuous=options.continuous,
            correlated=dict(correlation(pair) for pair in options.correlated) or None,
            num_images=options.num_images,
            noise=options.noise,
            path=options.data_path,
            source_file=options.source_file,
            progress=report,
        )


def correlation(pair: str) -> tuple[tuple[str, str], float]:
    """Two sources and their correlation from ``"scale,orientation,0.7"``."""
    try:
        first, second, value = (part.strip() for part in pair.split(","))
        return (first, second), float(value)
    except ValueError:
        raise ValueError(
            f'--correlated takes "source,source,number", such as "scale,orientation,0.7", got {pair!r}'
        ) from None


def weight(pair: str) -> tuple[str, float]:
    """A loss term and its weight from ``"kl=4"``."""
    name, _, value = pair.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise ValueError(f'--weights takes "term=number", such as kl=4, got {pair!r}') from None
