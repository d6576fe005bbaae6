"""Types of arguments that commands share, how they are parsed, and their flags by the names that the library uses."""

import dataclasses
import re
import typing
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from tyro.conf import UseAppendAction, arg
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from ..options import TrainingOptions

if TYPE_CHECKING:
    from ..data import DataSpec, SourceDataset
    from ..study.ray_engine import RayEngine


Flag = Annotated[bool, arg(help_behavior_hint="")]  # also of a default that is True
OptionalInt = int | None
OptionalFloat = float | None
OptionalName = str | None
OptionalPath = Path | None
Name = Annotated[str, arg(metavar="NAME")]
Names = Annotated[tuple[str, ...], arg(metavar="NAME …")]
Directory = Annotated[Path, arg(metavar="RUN")]
Imports = Annotated[tuple[str, ...], arg(name="import", metavar="MODULE"), UseAppendAction]
ScoredWeights = Literal["averaged", "raw"] | None
Aggregate = Literal["reruns", "all-seeds", "authors"] | None
#: Arguments of the library whose flag has another name; that of all others is their name with dashes.
FLAGS = {
    "model": "MODEL",
    "num_workers": "--workers",
    "num_cpus": "--cpus-per-run",
    "num_gpus": "--gpus-per-run",
    "n_jobs": "--jobs",
    "imports": "--import",
}
_RENAMED = re.compile(rf"\b({'|'.join(name for name in FLAGS if '_' in name)})\b(?!=)")
_ARGUMENT = re.compile(r"\b([a-z_]+)=(…|\[…\]|\"[^\"]*\"|'[^']*'|-?\w[\w.]*)")


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
        drop_columns: Columns of a table to leave out.
        feature_columns: The only features of a table, also if they look like identifiers.
        column_kinds: Columns of a table that are to be used otherwise than recognised, such as key=number; the
            kinds are number, category, date and identifier.
        date_parts: Cyclic parts of dates to observe as well, of hour, weekday and month.
        decimal: The character before the decimals of numbers in a CSV: a point, or a comma.
        array: The array of an .npz or .safetensors with the observations, if it has several.
        layer: The layer of an AnnData (.h5ad) to take instead of X.
        normalize: The total to which the counts of each cell of an AnnData are scaled, such as 10000.
        log1p: Take log(1 + count) of the counts of an AnnData.
        layout: What an array holds, images, vectors or series, where its shape is ambiguous.
        window: Cut recordings, tables or arrays with one row per time step, into windows of so many rows.
        stride: Rows from one window to the next; by default a quarter of a window.
        unit_column: Column of a table with the unit (patient, machine, trip) of each row; no window spans two.
        time_column: Column of a table with the time of each row, numbers or dates; no window spans a gap.
        hold_out: Share of the rows of your own data that is kept out of the training and scored separately, 0
            to train on all rows; by default 0.1, at most 10,000 rows.
        group_column: Column of a table, or of the .csv in --source-file, such as the patient: all rows with the same
            value are on one side of that split. It is no feature.
    """

    resolution: Annotated[str | None, arg(metavar="PIXELS")] = None
    grey: Flag = False
    sources: Names = ()
    continuous: Flag = False
    correlated: Annotated[tuple[str, ...], arg(metavar="[PAIR …]")] = ()
    num_images: OptionalInt = None
    noise: float = 0.0
    data_path: OptionalPath = None
    source_file: OptionalPath = None
    source_columns: Names = ()
    drop_columns: Names = ()
    feature_columns: Names = ()
    column_kinds: Annotated[tuple[str, ...], arg(metavar="[NAME=KIND …]")] = ()
    date_parts: Names = ()
    decimal: OptionalName = None
    array: OptionalName = None
    layer: OptionalName = None
    normalize: OptionalFloat = None
    log1p: Flag = False
    layout: OptionalName = None
    window: OptionalInt = None
    stride: OptionalInt = None
    unit_column: OptionalName = None
    time_column: OptionalName = None
    hold_out: float | None = None
    group_column: OptionalName = None

    def describe(self, name: str) -> "DataSpec":
        """Return the description of the data that a command names."""
        from ..data import data_spec

        given = {name: value for name, value in vars(self).items() if value != getattr(DataOptions(), name)}
        if "data_path" in given:
            given["path"] = given.pop("data_path")
        if "correlated" in given:
            given["correlated"] = dict(correlation(pair) for pair in self.correlated)
        if "column_kinds" in given:
            given["column_kinds"] = dict(column_kind(pair) for pair in self.column_kinds)
        return data_spec(name, **given)


@dataclass(frozen=True)
class RayOptions:
    """Where several runs are trained, and what Ray reserves for each.

    Attributes:
        engine: Run in worker processes on this machine, or as tasks on a Ray cluster (pip install 'qlae[ray]').
        address: Ray: the address of the cluster, such as auto or ray://head:10001; by default RAY_ADDRESS, or a new
            local cluster.
        gpus_per_run: Ray: number of GPUs per run; with a fraction, runs share a GPU.
        cpus_per_run: Ray: number of CPUs per run.
    """

    engine: Literal["local", "ray"] = "local"
    address: Annotated[str | None, arg(metavar="ADDRESS", help_behavior_hint="")] = None
    gpus_per_run: float = 0.0
    cpus_per_run: float = 1.0

    @property
    def is_set(self) -> bool:
        """Whether any of these options was set."""
        return vars(self) != vars(RayOptions())

    def build(self, device: str, threads: int | None, imports: tuple[str, ...]) -> "RayEngine | None":
        """Return the Ray engine if it was asked for, with one thread per CPU unless ``threads`` is given."""
        if self.engine == "local":
            if self.is_set:
                raise ValueError(
                    "--address, --gpus-per-run and --cpus-per-run are for Ray: add --engine ray, or leave them out"
                )
            return None
        from ..study.ray_engine import RayEngine

        return RayEngine(
            self.address,
            cpus_per_run=self.cpus_per_run,
            gpus_per_run=self.gpus_per_run,
            device=device,
            threads=max(1, int(self.cpus_per_run)) if threads is None else threads,
            imports=imports,
        )


def load(name: str, options: DataOptions) -> "SourceDataset":
    """Return the data that a command names; files are prepared on first use, with a progress bar."""
    from .._progress import progress_bar

    with progress_bar("reading") as report:
        return options.describe(name).load(progress=report)


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


def column_kind(pair: str) -> tuple[str, str]:
    """Return a column and its kind from ``"key=number"``."""
    name, equals, kind = pair.rpartition("=")
    if not equals:
        raise ValueError(f"--column-kinds takes column=kind, such as key=number, got {pair!r}")
    return name, kind


def _parse_weight(text: str) -> tuple[str, float]:
    """Return a loss term and its weight from ``"kl=4"``."""
    name, _, value = text.partition("=")
    return name.strip(), float(value)


def _parse_weight_schedule(text: str) -> tuple[str, str]:
    """Return a loss term and its schedule, as text, from ``"quantize=0:0,5000:1"``."""
    name, _, curve = text.partition("=")
    return name.strip(), curve


def _parse_num_values(words: list[str]) -> int | tuple[int, ...] | None:
    """Return one number for all latents, or one per latent."""
    numbers = tuple(map(int, words))
    return (numbers[0] if len(numbers) == 1 else numbers) if numbers else None


Rule = tuple[Literal["*", 1], str, Callable[[list[str]], Any]]
_HINTS = typing.get_type_hints(TrainingOptions)
#: Type of an option → how many words it takes, what help shows for them, and how they are read. For an option that may
#: be None, tyro would show ``{None}|INT``.
_RULES: dict[Any, Rule] = {
    _HINTS["weights"]: ("*", "[TERM=NUMBER …]", lambda words: dict(map(_parse_weight, words))),
    _HINTS["weight_schedules"]: ("*", "[TERM=CURVE …]", lambda words: dict(map(_parse_weight_schedule, words))),
    _HINTS["num_values"]: ("*", "[INT …]", _parse_num_values),
    _HINTS["weight_decay_schedule"]: (1, "NAME|CURVE", lambda words: words[0]),
    int | None: (1, "INT", lambda words: int(words[0])),
    float | None: (1, "FLOAT", lambda words: float(words[0])),
    str | None: (1, "NAME", lambda words: words[0]),
    Path | None: (1, "PATH", lambda words: Path(words[0])),
}
REGISTRY = ConstructorRegistry()


@REGISTRY.primitive_rule
def _read_option(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    choices, members = None, [member for member in get_args(info.type) if member is not type(None)]
    if len(members) == 1 and get_origin(members[0]) is Literal:  # a choice that may be None
        choices = get_args(members[0])
        rule: Rule | None = (1, f"{{{','.join(choices)}}}", lambda words: words[0])
    else:
        rule = _RULES.get(info.type)
    if rule is None:
        return None
    return PrimitiveConstructorSpec(
        nargs=rule[0],
        metavar=rule[1],
        instance_from_str=rule[2],
        is_instance=lambda value: True,
        str_from_instance=lambda value: [str(value)],
        choices=choices,
    )


@cache
def hide_unset(command: Any) -> Any:
    """Return a command, and the groups of options in it, whose help shows no default that only says "not set".

    These are None, False and empty collections: the text of an option explains them. The command itself, whose
    groups may be classes of the library, stays as it is.
    """
    hints, fields = typing.get_type_hints(command, include_extras=True), []
    for own in dataclasses.fields(command):
        hint = _hide_in_groups(hints[own.name])
        factory: Any = own.default_factory
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            factory = hint
        default = own.default if factory is dataclasses.MISSING else factory()
        is_unset = default is None or default is False or default in ((), {})
        if is_unset and UseAppendAction not in get_args(hint):  # whose help says that it is repeatable
            hint = Annotated[hint, arg(help_behavior_hint="")]
        fields.append((own.name, hint, dataclasses.field(default=own.default, default_factory=factory)))
    texts = {"__doc__": command.__doc__, "__module__": command.__module__}
    return dataclasses.make_dataclass(command.__name__, fields, bases=(command,), namespace=texts, frozen=True)


def _hide_in_groups(hint: Any) -> Any:
    """Return a type hint with `hide_unset` for the dataclasses in it, such as groups and subcommands of a command."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hide_unset(hint)
    origin, members = get_origin(hint), tuple(map(_hide_in_groups, get_args(hint)))
    if origin is Annotated:
        return Annotated[members]
    return Union[members] if origin in (Union, UnionType) else hint  # noqa: UP007


def flag(name: str) -> str:
    """Return the flag of an argument of the library.

    >>> flag("learning_rate"), flag("num_workers")
    ('--learning-rate', '--workers')
    """
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def in_flags(message: str, names: Collection[str]) -> str:
    """Return a message of the library with the flags of the command line for those of its arguments that it names.

    >>> in_flags("use size='small' or evaluate=False, or choose another folder with out=…", ["size", "evaluate", "out"])
    'use --size small or --no-evaluate, or choose another folder with --out'
    """

    def translate(match: "re.Match[str]") -> str:
        name, value = match[1], match[2].strip("'\"")
        if name not in names:
            return match[0]
        if value == "False":
            return f"--no-{name.replace('_', '-')}"
        return flag(name) if value in ("…", "[…]", "True") else f"{flag(name)} {value}"

    return _RENAMED.sub(lambda match: flag(match[1]), _ARGUMENT.sub(translate, message))


def argument_names(command: Any) -> tuple[str, ...]:
    """Return the names of the arguments of a command, those of its groups included."""
    names: list[str] = []
    for field in dataclasses.fields(command):
        value = getattr(command, field.name)
        names += argument_names(value) if dataclasses.is_dataclass(value) else [field.name]
    return tuple(names)
