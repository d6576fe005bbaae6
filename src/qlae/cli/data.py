"""The verb over data sets: list, render, prepare, get, inspect, clear."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg, subcommand

from .arguments import DataOptions, Name, OptionalPath, load


@dataclass(frozen=True)
class List:
    """List the data sets that can be rendered, and what is kept on disk."""

    def __call__(self) -> None:
        from rich.console import Console
        from rich.table import Table

        from ..data import cache, data_names, load_data
        from ..data.sources import SOURCES

        table = Table(title="Rendered", title_justify="left")
        table.add_column("data set", no_wrap=True)
        table.add_column("images", justify="right", no_wrap=True)
        table.add_column("sources and their values")
        for name in data_names():
            data = load_data(name)
            sources = zip(data.source_names, data.source_sizes, strict=True)
            table.add_row(name, f"{len(data):,}", ", ".join(f"{source} {count}" for source, count in sources))
        Console().print(table)
        others = ", ".join(sorted(SOURCES.keys() - set(data_names())))
        print(f"Only from published files: {others} (`qlae data get`, `qlae data prepare`)")
        kept = cache.entries()
        print(f"Kept in {cache.cache_folder()}: {'nothing' if not kept else ''}".rstrip())
        for entry in kept:
            state = "" if entry.whole else ", not yet whole"
            print(f"  {entry.key}: {size(entry.num_bytes)}{state}")


@dataclass(frozen=True)
class Render:
    """Render a data set and keep it on disk, where training finds it; or write it to an .npz with --out.

    For example: qlae data render mpi3d --resolution 64
    """

    data: Positional[Name]
    """The data set."""
    images: DataOptions = field(default_factory=DataOptions)
    out: OptionalPath = None
    """An .npz to write (arrays images, sources, source_names, origin) instead; it must not exist."""

    def __call__(self) -> None:
        from .._progress import progress_bar
        from ..data import keep_on_disk

        if self.out is not None:
            require_new_file(self.out, ".npz")
        data = load(self.data, self.images)
        with progress_bar("rendering", len(data)) as report:
            if self.out is None:
                data = keep_on_disk(data, progress=report)
            else:
                data = data.in_memory(progress=report)
        if self.out is not None:
            import numpy as np

            from .._files import write_whole

            arrays = {
                "images": np.asarray(data.images),
                "sources": data.sources,
                "source_names": np.array(data.source_names),
                "origin": np.array([data.origin]),
            }
            write_whole(self.out, lambda file: np.savez(file, allow_pickle=False, **arrays))
        print(f"{self.out or 'kept on disk'}: {data}")


@dataclass(frozen=True)
class Prepare:
    """Read real files or images of your own once, resample them and keep them on disk.

    For example: qlae data prepare shapes3d --from 3dshapes.h5
    """

    data: Positional[Name]
    """A data set whose published files these are, or a name of your own, by which it is found from then on."""
    path: Annotated[Path, arg(name="from", metavar="PATH")]
    """The file, folder or archive."""
    resolution: int = 64
    """Pixels a side."""
    source_file: OptionalPath = None
    """For images of your own, their sources: a CSV (a header, then a line an image, its file's name first) or .npy."""

    def __call__(self) -> None:
        options = DataOptions(resolution=self.resolution, data_path=self.path, source_file=self.source_file)
        print(f"kept on disk: {load(self.data, options)}")


@dataclass(frozen=True)
class Get:
    """Download the published file of a data set, where a public address is known; an interrupted download goes on.

    For example: qlae data get shapes3d --to downloads
    """

    name: Positional[Name]
    """shapes3d, mpi3d-toy, mpi3d-realistic, mpi3d-real or dsprites."""
    to: Path = Path()
    """The folder for it."""

    def __call__(self) -> None:
        from .._progress import growing_bar
        from ..data.download import download

        with growing_bar(f"downloading {self.name}") as report:
            path = download(self.name, self.to, progress=report)
        print(path)


@dataclass(frozen=True)
class Inspect:
    """Write a contact sheet: random images, and one row a source sweeping its values.

    For example: qlae data inspect isaac3d
    """

    data: Positional[Name]
    """A data set, or the path of images of your own."""
    images: DataOptions = field(default_factory=DataOptions)
    out: OptionalPath = None
    """The .png to write, which must not exist; NAME.png by default."""

    def __call__(self) -> None:
        from ..data.contact_sheet import contact_sheet

        if self.out is not None:
            require_new_file(self.out, ".png")
        data = load(self.data, self.images)
        out = self.out or Path(f"{data.name}.png")
        require_new_file(out, ".png")
        print(data)
        print(contact_sheet(data, out))


@dataclass(frozen=True)
class Clear:
    """Remove what is kept on disk of a data set.

    For example: qlae data clear mpi3d
    """

    name: Positional[Name]
    """The data set, or an entry that `qlae data list` shows; `all` for everything."""

    def __call__(self) -> None:
        from ..data import cache

        freed = cache.clear(None if self.name == "all" else self.name)
        print(f"{size(freed)} freed" if freed else f"nothing of {self.name} was kept")


@dataclass(frozen=True)
class Data:
    """List, render, prepare, download, inspect or clear data sets."""

    command: (
        Annotated[List, subcommand("list", prefix_name=False)]
        | Annotated[Render, subcommand("render", prefix_name=False)]
        | Annotated[Prepare, subcommand("prepare", prefix_name=False)]
        | Annotated[Get, subcommand("get", prefix_name=False)]
        | Annotated[Inspect, subcommand("inspect", prefix_name=False)]
        | Annotated[Clear, subcommand("clear", prefix_name=False)]
    )

    def __call__(self) -> None:
        self.command()


def size(num_bytes: int) -> str:
    """Bytes as a person says them."""
    return f"{num_bytes / 1e9:.2f} GB" if num_bytes >= 1e9 else f"{num_bytes / 1e6:.2f} MB"


def require_new_file(path: Path, suffix: str) -> None:
    """An error unless a file of this kind can be written there without overwriting anything."""
    from .._files import require_new

    if path.suffix != suffix:
        raise ValueError(f"--out must end in {suffix}, got {path}")
    require_new(path)
