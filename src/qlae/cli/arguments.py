"""Types of arguments that several verbs share, and the way from arguments to data."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import UseAppendAction, arg

if TYPE_CHECKING:
    from ..data import SourceDataset

Name = Annotated[str, arg(metavar="NAME")]
Directory = Annotated[Path, arg(metavar="RUN")]
OptionalName = Annotated[str | None, arg(metavar="NAME")]
OptionalInt = Annotated[int | None, arg(metavar="INT")]
OptionalFloat = Annotated[float | None, arg(metavar="FLOAT")]
OptionalPath = Annotated[Path | None, arg(metavar="PATH")]
ScoredWeights = Literal["averaged", "raw"] | None
Aggregate = Literal["reruns", "all-seeds", "authors"] | None
Imports = Annotated[tuple[str, ...], arg(name="import", metavar="MODULE"), UseAppendAction]


@dataclass(frozen=True)
class DataOptions:
    """Which images."""

    resolution: int = 64
    """Pixels per side; the networks take 8, 16, 32, 64, 128, …"""
    sources: tuple[str, ...] = ()
    """Sources that vary, such as --sources "floor hue" shape, while the others are fixed; all by default."""
    continuous: bool = False
    """Let sources take any value in their range instead of the grid's."""
    correlated: tuple[str, ...] = ()
    """Pairs of sources with a correlation, such as --correlated "scale,orientation,0.7"."""
    num_images: OptionalInt = None
    """Draw this number of images at random instead of every combination once; 100,000 by default with --continuous or
    --correlated."""
    noise: float = 0.0
    """Standard deviation of noise on the pixels, as a share of the range from black to white."""
    data_path: OptionalPath = None
    """Read the published files of the data set from here instead of rendering it."""
    source_file: OptionalPath = None
    """For images of your own, their sources: a CSV (a header, then one line per image, its file name first) or .npy."""


def load(name: str, options: DataOptions, *, show: bool = True) -> "SourceDataset":
    """Return the data that a verb names; real files are prepared under a progress bar the first time."""
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


def with_imports(command: str, imports: tuple[str, ...]) -> str:
    """Return a command with the ``--import`` options that it needs as well."""
    return " ".join([command, *(f"--import {name}" for name in imports)])


def correlation(pair: str) -> tuple[tuple[str, str], float]:
    """Return two sources and their correlation from ``"scale,orientation,0.7"``."""
    try:
        first, second, value = (part.strip() for part in pair.split(","))
        return (first, second), float(value)
    except ValueError:
        raise ValueError(
            f'--correlated takes "source,source,number", such as "scale,orientation,0.7", got {pair!r}'
        ) from None
