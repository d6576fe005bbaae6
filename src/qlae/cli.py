"""The command line: few verbs, each doing a whole job. Torch loads only when a verb needs it."""

import os
import signal
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.console import Console
from tyro.conf import Positional, arg, subcommand

from ._version import __version__

if TYPE_CHECKING:
    from .data import SourceDataset

Name = Annotated[str, arg(metavar="NAME")]
Directory = Annotated[Path, arg(metavar="RUN")]
OptionalInt = Annotated[int | None, arg(metavar="INT")]
OptionalFloat = Annotated[float | None, arg(metavar="FLOAT")]
OptionalPath = Annotated[Path | None, arg(metavar="PATH")]


@dataclass(frozen=True)
class Train:
    """Train a model, score it and draw its pictures.

    `qlae train qlae --data shapes3d` is the paper's configuration;
    `qlae train qlae --size small --resolution 32 --out runs/quick` is one for a CPU.
    The same command on the same --out goes on where a run was stopped (Ctrl-C saves) or killed.
    """

    model: Positional[Annotated[str, arg(metavar="MODEL")]]
    """ae, qlae, qlae-global-codebook or qlae-no-weight-decay."""
    data: str = "shapes3d"
    """The data set; `qlae data list` shows them."""
    resolution: int = 64
    """Pixels a side: 8, 16, 32, 64, 128, …"""
    sources: tuple[str, ...] = ()
    """Sources that vary, such as --sources "floor hue" shape; all if none is given."""
    size: Literal["full", "small"] = "full"
    """Networks of the paper, or small ones that a CPU can train, with a budget to match."""
    form: Literal["paper", "official"] = "paper"
    """Follow the paper's text, or the authors' code where it differs."""
    steps: OptionalInt = None
    """Updates; 200,000 in the paper."""
    batch_size: OptionalInt = None
    """Images an update; 128 in the paper."""
    learning_rate: OptionalFloat = None
    """Of AdamW; 0.001 in the paper."""
    weight_decay: OptionalFloat = None
    """Decoupled; by default the value tuned for the model and the data."""
    num_latents: OptionalInt = None
    """Twice the number of sources, by default."""
    num_values: OptionalInt = None
    """Values a codebook; 10 in the paper, 4 for --size small."""
    seed: int = 0
    """Of the weights and the batches."""
    out: OptionalPath = None
    """The run directory; runs/DATA-MODEL-SIZE-sSEED by default."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, …"""
    threads: OptionalInt = None
    """CPU threads; as many as there are cores by default. Fewer are faster where the cores are busy."""
    checkpoint_seconds: float = 60.0
    """Seconds between checkpoints."""
    evaluate: bool = True
    """Score the model and draw its pictures when it is trained."""
    quiet: bool = False
    """No progress bars."""

    def __call__(self) -> None:
        from .report import draw_pictures, results_table
        from .training import train

        out = self.out or Path("runs") / f"{self.data}-{self.model}-{self.size}-s{self.seed}"
        passed_on = (
            "size form steps batch_size learning_rate weight_decay num_latents num_values seed "
            "device threads checkpoint_seconds evaluate"
        )
        options = {name: getattr(self, name) for name in passed_on.split()}
        data = _load(self.data, self.resolution, self.sources)
        run = train(self.model, data, out=out, show=not self.quiet, **options)
        if self.evaluate:
            draw_pictures(run)
            Console().print(results_table([run], weights=("averaged", "raw")))
        print(f"{run.path}: trained{', scored and pictured' if self.evaluate else ''}")


@dataclass(frozen=True)
class Evaluate:
    """Score a trained run: sample.npz, results.json and the pictures.

    For example: qlae evaluate runs/quick
    """

    run: Positional[Directory]
    """The run directory."""
    num_samples: int = 10_000
    """Images to score on."""
    protocol: str = "paper"
    """InfoMEC protocol: paper, official-train, official-standalone or tripod."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, …"""
    quiet: bool = False
    """No progress bars."""

    def __call__(self) -> None:
        from .evaluation import evaluate_run
        from .report import draw_pictures, results_table
        from .run import Run

        run = Run.open(self.run)
        evaluate_run(run, device=self.device, num_samples=self.num_samples, protocol=self.protocol, show=not self.quiet)
        paths = draw_pictures(run)
        Console().print(results_table([run], weights=("averaged", "raw")))
        print(f"{run.path}: results.json, {', '.join(path.name for path in paths)}")


@dataclass(frozen=True)
class Report:
    """Draw the pictures of scored runs again and print their scores side by side.

    For example: qlae report runs/demo/qlae runs/demo/ae
    """

    runs: Positional[tuple[Directory, ...]]
    """Run directories."""

    def __call__(self) -> None:
        from .report import draw_pictures, results_table
        from .run import Run

        if not self.runs:
            raise ValueError("name at least one run directory: qlae report runs/demo/qlae")
        runs = [Run.open(path) for path in self.runs]
        for run in runs:
            for path in draw_pictures(run):
                print(path)
        Console().print(results_table(runs, weights=("averaged", "raw")))


@dataclass(frozen=True)
class DataList:
    """List the data sets, their sources and sizes."""

    def __call__(self) -> None:
        from .data import data_names, load_data

        for name in data_names():
            print(load_data(name))


@dataclass(frozen=True)
class DataRender:
    """Render a data set into an .npz with arrays images, sources and source_names.

    For example: qlae data render shapes3d --resolution 32 --sources "floor hue" shape --out small.npz
    """

    name: Positional[Name]
    """The data set."""
    out: Path
    """The .npz to write; it must not exist."""
    resolution: int = 64
    """Pixels a side."""
    sources: tuple[str, ...] = ()
    """Sources that vary; all if none is given."""

    def __call__(self) -> None:
        import numpy as np

        from .atomic import write_whole
        from .progress import progress_bar

        data = _load(self.name, self.resolution, self.sources)
        if self.out.suffix != ".npz":
            raise ValueError(f"--out must end in .npz, got {self.out}")
        if self.out.exists():
            raise ValueError(f"{self.out} exists already; choose another --out or remove it")
        if not self.out.parent.is_dir():
            raise ValueError(f"the folder {self.out.parent} does not exist; make it first")
        with progress_bar("rendering", len(data)) as report:
            images = np.asarray(data.in_memory(progress=report).images)
        arrays = {"images": images, "sources": data.sources, "source_names": np.array(data.source_names)}
        write_whole(self.out, lambda file: np.savez(file, allow_pickle=False, **arrays))
        print(f"{self.out}: {data}")


@dataclass(frozen=True)
class Data:
    """List or render data sets."""

    command: (
        Annotated[DataList, subcommand("list", prefix_name=False)]
        | Annotated[DataRender, subcommand("render", prefix_name=False)]
    )

    def __call__(self) -> None:
        self.command()


Command = (
    Annotated[Train, subcommand("train")]
    | Annotated[Evaluate, subcommand("evaluate")]
    | Annotated[Report, subcommand("report")]
    | Annotated[Data, subcommand("data")]
)


def main(arguments: list[str] | None = None) -> None:
    """Run a command line; bad input ends in one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"qlae {__version__}")
        return
    warnings.showwarning = _show_warning
    # Before torch loads: idle threads that sleep instead of spinning. Spinning is a little faster on idle cores and ten
    # times slower on busy ones.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    command = tyro.cli(
        Command,
        prog="qlae",
        description="Disentangled representation learning by latent quantization.",
        args=arguments,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes, tyro.conf.FlagCreatePairsOff),
    )
    sys.exit(_run(command))


def _run(command: Train | Evaluate | Report | Data) -> int:
    try:
        command()
    except ValueError as error:
        return _fail(error, 2)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", 2)
    except KeyboardInterrupt as stop:
        if isinstance(command, Train) and str(stop):
            print(f"\nqlae: {stop}. To go on, give the same command again", file=sys.stderr)
        return 128 + signal.SIGINT
    except RuntimeError as error:
        from .training import TrainingDiverged

        if isinstance(error, TrainingDiverged):
            return _fail(error, 1)
        raise
    return 0


def _fail(message: object, code: int) -> int:
    print(f"qlae: {message}", file=sys.stderr)
    return code


def _load(name: str, resolution: int, sources: tuple[str, ...]) -> "SourceDataset":
    from .data import load_data

    return load_data(name, resolution=resolution, sources=sources or None)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"qlae: warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
