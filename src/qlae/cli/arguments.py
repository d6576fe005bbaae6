"""Types of arguments that several commands share, and a function that loads the data they name."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import UseAppendAction, arg

if TYPE_CHECKING:
    from ..data import SourceDataset

Name = Annotated[str, arg(metavar="NAME")]
Directory = Annotated[Path, arg(metavar="RUN")]
# Help shows the default of an option behind its text. These types have none that would inform: their text says it.
Flag = Annotated[bool, arg(help_behavior_hint="")]
OptionalName = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]
OptionalInt = Annotated[int | None, arg(metavar="INT", help_behavior_hint="")]
OptionalPath = Annotated[Path | None, arg(metavar="PATH", help_behavior_hint="")]
Names = Annotated[tuple[str, ...], arg(metavar="[NAME …]", help_behavior_hint="")]
ScoredWeights = Annotated[Literal["averaged", "raw"] | None, arg(metavar="{averaged,raw}", help_behavior_hint="")]
Aggregate = Annotated[
    Literal["reruns", "all-seeds", "authors"] | None, arg(metavar="{reruns,all-seeds,authors}", help_behavior_hint="")
]
Imports = Annotated[tuple[str, ...], arg(name="import", metavar="MODULE"), UseAppendAction]


@dataclass(frozen=True)
class DataOptions:
    """Which data to use.

    Attributes:
        resolution: Height and width of the images in pixels, 8 to 256, or 512, 1024; 64 by default. Image files may
            have another shape: 60x90 is a height of 60 and a width of 90. Images in an .npy or .npz keep their size and
            channels by default.
        grey: Give image files one channel instead of three.
        sources: Sources that vary, such as --sources "floor hue" shape; the others are fixed. By default all sources
            vary.
        continuous: Let sources take any value in their range instead of only those of the grid.
        correlated: Pairs of sources with a correlation, such as --correlated "scale,orientation,0.7".
        num_images: Draw this many images at random instead of rendering every combination once. With --continuous
            or --correlated, the default is 100,000.
        noise: Standard deviation of Gaussian noise on the pixels, as a fraction of the range from black to white.
        data_path: Read the published files of the data set from here instead of rendering it.
        source_file: Sources of your own images: a .csv (a header, then one line per image that begins with its file
            name) or a .npy.
        source_columns: Columns of a table (CSV, Parquet) that are sources; the others are features.
        drop_columns: Columns of a table to leave out, such as row numbers.
        kind: What an array holds, images, vectors or series, where its shape does not tell it.
    """

    resolution: Annotated[str | None, arg(metavar="PIXELS", help_behavior_hint="")] = None
    grey: Flag = False
    sources: Names = ()
    continuous: Flag = False
    correlated: Annotated[tuple[str, ...], arg(metavar="[PAIR …]", help_behavior_hint="")] = ()
    num_images: OptionalInt = None
    noise: float = 0.0
    data_path: OptionalPath = None
    source_file: OptionalPath = None
    source_columns: Names = ()
    drop_columns: Names = ()
    kind: OptionalName = None


def load(name: str, options: DataOptions, *, show: bool = True) -> "SourceDataset":
    """Return the data that a command names; files are prepared on first use, with a progress bar."""
    from .._progress import growing_bar
    from ..data import load_data

    with growing_bar("reading", show=show) as report:
        return load_data(
            name,
            resolution=options.resolution,
            grey=options.grey,
            sources=options.sources or None,
            continuous=options.continuous,
            correlated=dict(correlation(pair) for pair in options.correlated) or None,
            num_images=options.num_images,
            noise=options.noise,
            path=options.data_path,
            source_file=options.source_file,
            source_columns=options.source_columns,
            drop_columns=options.drop_columns,
            kind=options.kind,
            progress=report,
        )


def with_imports(command: str, imports: tuple[str, ...]) -> str:
    """Return a command line followed by the ``--import`` options that it needs."""
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
