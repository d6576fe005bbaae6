"""Types of arguments that several verbs share, and the way from arguments to data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

from tyro.conf import arg

if TYPE_CHECKING:
    from ..data import SourceDataset

Name = Annotated[str, arg(metavar="NAME")]
Directory = Annotated[Path, arg(metavar="RUN")]
OptionalInt = Annotated[int | None, arg(metavar="INT")]
OptionalFloat = Annotated[float | None, arg(metavar="FLOAT")]
OptionalPath = Annotated[Path | None, arg(metavar="PATH")]


class DataArguments(Protocol):
    """What a verb must have to name its data."""

    @property
    def data(self) -> str: ...
    @property
    def resolution(self) -> int: ...
    @property
    def sources(self) -> tuple[str, ...]: ...
    @property
    def data_path(self) -> Path | None: ...
    @property
    def source_file(self) -> Path | None: ...


def load(arguments: DataArguments, *, show: bool = True) -> "SourceDataset":
    """The data that a verb names; real files are prepared under a bar the first time."""
    from ..data import load_data
    from ..progress import growing_bar

    with growing_bar("reading", show=show) as report:
        return load_data(
            arguments.data,
            resolution=arguments.resolution,
            sources=arguments.sources or None,
            path=arguments.data_path,
            source_file=arguments.source_file,
            progress=report,
        )
