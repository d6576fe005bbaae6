"""``qlae data``: list, render, prepare, download, inspect and clear data sets."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg, subcommand

from .arguments import DataOptions, Flag, Name, OptionalPath, argument_names, in_flags, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..data import SourceDataset
    from ..data.inspection import Column

MAX_LINES = 60  # of the table of columns


@dataclass(frozen=True)
class List:
    """List the data sets that qlae has, and the images cached on disk."""

    def __call__(self) -> None:
        from rich.console import Console
        from rich.filesize import decimal
        from rich.table import Column, Table

        from ..data import cache, load_data
        from ..data.loading import registered_names
        from ..data.sources import BUNDLED_SETS, GENERATED_SETS, RENDERED_SETS

        groups = {"Rendered": RENDERED_SETS, "Generated": GENERATED_SETS, "From scikit-learn": BUNDLED_SETS}
        for title, names in groups.items():
            columns = Column("data set", no_wrap=True), Column("observations", justify="right", no_wrap=True)
            table = Table(*columns, "sources and their values", title=title, title_justify="left")
            for name in names:
                data = load_data(name)
                table.add_row(name, f"{len(data):,} {data.observations.traits.many}", _list_sources(data))
            Console().print(table)
        if registered_names():
            print(f"Registered: {', '.join(registered_names())}")
        entries = cache.entries()
        print(f"Cached in {cache.cache_folder()}: {'nothing' if not entries else ''}".rstrip())
        for entry in entries:
            state = "" if entry.is_complete else ", incomplete"
            print(f"  {entry.key}: {decimal(entry.num_bytes)}{state}")


@dataclass(frozen=True)
class Render:
    """Render a data set into the cache on disk, from which training reads it, or write it to an .npz file with --out.

    For example: qlae data render mpi3d --resolution 64

    Attributes:
        data: A rendered data set, such as mpi3d, or with --out a generated one; `qlae data list` shows them.
        out: Write an .npz file instead, with arrays images, sources, source_names and origin, and feature_names where
            there are any; it must not exist.
    """

    data: Positional[Name]
    images: DataOptions = field(default_factory=DataOptions)
    out: OptionalPath = None

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

            from .._io import write_whole

            arrays = {
                "images": np.asarray(data.images),
                "sources": data.sources,
                "source_names": np.array(data.source_names),
                "origin": np.array([data.origin]),
            }
            if data.observations.feature_names:
                arrays["feature_names"] = np.array(data.observations.feature_names)
            write_whole(self.out, lambda file: np.savez(file, allow_pickle=False, **arrays))
        print(f"{self.out or 'cached on disk'}: {data}")


@dataclass(frozen=True)
class Prepare:
    """Read published files or your own images once, resample them and cache them on disk.

    For example: qlae data prepare shapes3d --from 3dshapes.h5

    Attributes:
        data: The data set to which published files belong, or a new name for your own images, for use as --data.
        path: The file, folder or archive to read.
        resolution: Height and width of the images in pixels, or both, such as 60x90.
        grey: Give the images one channel instead of three.
        source_file: Sources of your own images: a .csv (a header, then one line per image that begins with its file
            name) or a .npy.
    """

    data: Positional[Name]
    path: Annotated[Path, arg(name="from", metavar="PATH")]
    resolution: Annotated[str, arg(metavar="PIXELS")] = "64"
    grey: Flag = False
    source_file: OptionalPath = None

    def __call__(self) -> None:
        options = DataOptions(
            resolution=self.resolution, grey=self.grey, data_path=self.path, source_file=self.source_file
        )
        print(f"cached on disk: {load(self.data, options)}")


@dataclass(frozen=True)
class Get:
    """Download the published file of a data set. An interrupted download resumes.

    For example: qlae data get shapes3d --to downloads

    Attributes:
        name: The data set: shapes3d, mpi3d-toy, mpi3d-realistic, mpi3d-real or dsprites.
        to: The folder to write the file to.
    """

    name: Positional[Name]
    to: Path = Path()

    def __call__(self) -> None:
        from .._progress import progress_bar
        from ..data.published import download

        with progress_bar(f"downloading {self.name}") as report:
            path = download(self.name, self.to, progress=report)
        print(path)


@dataclass(frozen=True)
class Inspect:
    """Describe a data set and write a picture of it.

    Images become a contact sheet: random images, and one row per source that sweeps its values. Vectors and series are
    described feature by feature (range, missing values, text) and drawn as histograms or overlaid curves, also if the
    file needs work before a model can be trained on it. For example:
      qlae data inspect isaac3d                        # writes isaac3d.png to the current folder
      qlae data inspect holiday/ --out contacts.png
      qlae data inspect sensors.csv --source-columns site

    Attributes:
        data: A data set by name, or the path of your own data.
        out: The .png file to write, which must not exist; by default NAME.png in the current folder. Columns are
            described also if that exists, and it is kept.
    """

    data: Positional[Name]
    images: DataOptions = field(default_factory=DataOptions)
    out: OptionalPath = None

    def __call__(self) -> None:
        from .._progress import progress_bar
        from ..data.array_files import ArrayFile
        from ..data.inspection import inspect_data
        from ..data.tables import TableFile

        spec = self.images.describe(self.data)
        out = self.out or Path(f"{spec.name}.png")
        has_columns = isinstance(spec, TableFile | ArrayFile) or not spec.preview().traits.has_bytes
        if self.out is not None or not has_columns:
            require_new_file(out, ".png")
        with progress_bar("reading") as report:
            inspection = inspect_data(spec, progress=report)
        data = inspection.data
        if data is not None:
            print(data)
        if inspection.columns:
            print_columns(inspection.columns)
        picture = "Picture" if inspection.columns else "Contact sheet"
        if data is not None and out.exists():
            print(f"{picture} not written: {out} exists already; --out PATH writes another.")
        elif data is not None:
            print(f"{picture} written to {data.observations.traits.load('sheet')(data, out)}")
        if inspection.refusal is not None:
            refusal = in_flags(inspection.refusal, argument_names(self))
            print(f"These data cannot be trained on yet: {refusal}")


@dataclass(frozen=True)
class Clear:
    """Remove the cached images of a data set from disk.

    For example: qlae data clear mpi3d

    Attributes:
        name: The data set, one entry as listed by `qlae data list`, or `all` for everything.
    """

    name: Positional[Name]

    def __call__(self) -> None:
        from rich.filesize import decimal

        from ..data import cache

        num_bytes = cache.clear(None if self.name == "all" else self.name)
        print(f"{decimal(num_bytes)} freed" if num_bytes else f"nothing of {self.name} was cached")


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

    @staticmethod
    def subcommands() -> dict[str, type]:
        """Return the classes of the subcommands by their names on the command line."""
        return {each.__name__.lower(): each for each in (List, Render, Prepare, Get, Inspect, Clear)}


def _list_sources(data: "SourceDataset") -> str:
    """Return the names of the sources with their numbers of values, such as "shape 4, load (continuous)"."""
    continuous = data.details.get("drawn", {}).get("continuous", ())
    return ", ".join(
        f"{name} (continuous)" if name in continuous else f"{name} {size}"
        for name, size in zip(data.source_names, data.source_sizes, strict=True)
    )


def print_columns(columns: "Sequence[Column]") -> None:
    """Print a table with one line per column, and below it the constant features."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    headings = ("lowest", "mean", "highest", "deviation", "different", "missing")
    numeric = [Column(heading, justify="right", no_wrap=True) for heading in headings]
    table = Table(Column("column", overflow="fold"), Column("use", no_wrap=True), *numeric, "remark")
    for column in columns[:MAX_LINES]:
        numbers = (column.low, column.mean, column.high, column.deviation)
        table.add_row(
            escape(column.name),
            column.role,
            *("–" if number != number else f"{number:.4g}" for number in numbers),
            f"{column.num_distinct:,}",
            f"{column.num_missing:,}" if column.num_missing else "–",
            escape(_remark(column)),
        )
    Console().print(table)
    if len(columns) > MAX_LINES:
        print(f"… and {len(columns) - MAX_LINES:,} more columns")
    constant = [
        column.name for column in columns if column.is_constant and column.role in ("feature", "number", "category")
    ]
    if constant:
        few = ", ".join(constant[:5]) + (f", … ({len(constant)} in all)" if len(constant) > 5 else "")
        print(f"Constant: {few}. They say nothing about an observation; leave them out if you can.")
    if rising := [column.name for column in columns if column.is_rising]:
        print(
            f"{rising[0]!r} rises from row to row. If the rows are a recording, train on windows of it: "
            f"--time-column {shlex.quote(rising[0])} --window 64"
        )


def _remark(column: "Column") -> str:
    if column.note:
        return column.note
    if not column.num_texts:
        return "constant" if column.is_constant else ""
    few = ", ".join(repr(text if len(text) <= 20 else f"{text[:19]}…") for text in column.texts)
    more = ", …" if column.num_distinct > len(column.texts) else ""
    return f"text in {column.num_texts:,} row{'s' * (column.num_texts > 1)}: {few}{more}"


def require_new_file(path: Path, suffix: str) -> None:
    """Raise a ``ValueError`` unless --out has this suffix and can be created without overwriting anything."""
    from .._io import require_new

    if path.suffix != suffix:
        raise ValueError(f"--out must end in {suffix}, got {path}")
    require_new(path)
