"""``qlae train`` and ``qlae demo``: train one model, several seeds of it, or two small models side by side."""

import dataclasses
import importlib.util
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from tyro.conf import Positional, arg

from .._checks import whole_number
from .._imports import TRAINING, import_modules
from ..options import ExecutionOptions, TrainingOptions
from .arguments import (
    DataOptions,
    Flag,
    Imports,
    OptionalInt,
    OptionalPath,
    flag,
    hide_unset,
    load,
    with_imports,
)

if TYPE_CHECKING:
    from ..data import SourceDataset
    from ..runs.directory import Run


@hide_unset
@dataclass(frozen=True)
class Training(TrainingOptions):
    __doc__ = TrainingOptions.__doc__


@hide_unset
@dataclass(frozen=True)
class Execution(ExecutionOptions):
    """Where and how a training is carried out.

    Attributes:
        compile: Run plain PyTorch operations one by one, which are easiest to read and debug, instead of the fast
            path (fused operations, and on a GPU Triton kernels and CUDA graphs).
        evaluate: Neither score the trained model nor draw its pictures.
        threads: Number of CPU threads; by default one per core, or one for small networks on short observations. Fewer
            are faster if other programs use the cores.
    """

    # Flags turn these two off, so their help says what the flag does.
    compile: Flag = True
    evaluate: Flag = True
    threads: OptionalInt = None


@dataclass(frozen=True)
class Train:
    """Train a model, score it and draw its pictures.

    Ctrl-C saves the run. To resume a run that was interrupted or killed, repeat the command, or use --resume RUN
    without other options. For example:
      qlae train qlae                                 # the paper's
      qlae train qlae --size small --resolution 32    # on a CPU
      qlae train qlae --seeds 4                       # four runs, and which of them to take
      qlae train qlae --size small --dry-run          # every value, and where it comes from
      qlae train --resume runs/quick

    Attributes:
        model: One of the paper's models (ae, beta-vae, beta-tcvae, bioae, vq-vae, qlae, qlae-global-codebook,
            qlae-no-weight-decay, vq-vae-weight-decay, infowgan-gp, qlinfowgan-gp, qlinfowgan-gp-no-weight-decay), a
            model that came after it (fsq-ae; tripod, with penalties on dependent latents and on interactions in the
            decoder; factor-vae and factor-qvae, with a discriminator against total correlation; ae-ica, independent
            components of a trained autoencoder), or a model of your own (--import).
        data: A data set by name (`qlae data list` shows them), the path of a folder or archive of images, of an .npy
            or .npz of images, vectors or series, or of a table (.csv, .parquet).
        out: The run directory; by default runs/DATA-MODEL-SIZE-sSEED, with the recipe after the model. With --seeds,
            the folder of the runs; by default runs/DATA-MODEL-SIZE-seeds.
        seeds: Train this many runs, with the seeds SEED, SEED + 1, …, and choose one of them without labels,
            as `qlae select` does.
        dry_run: Print every value of the training with where it comes from, the number of parameters, the memory and
            an estimate of the time on this machine; train and write nothing.
        resume: Resume the run in this directory with its own configuration. Only --steps and the execution options
            apply.
        trained: With the model ae-ica: take the networks of this finished run of ae instead of training them, and find
            the independent components of its latents. Only --out and the execution options apply.
        imports: A module or file of yours to import first, which registers models, latent spaces, objectives, networks
            or data sets.
        quiet: Do not show progress bars.
    """

    model: Positional[Annotated[str | None, arg(metavar="[MODEL]", help_behavior_hint="")]] = None
    data: str = "shapes3d"
    images: DataOptions = field(default_factory=DataOptions)
    training: Training = field(default_factory=Training)
    execution: Execution = field(default_factory=Execution)
    out: OptionalPath = None
    seeds: OptionalInt = None
    dry_run: Flag = False
    resume: OptionalPath = None
    trained: OptionalPath = None
    imports: Imports = ()
    quiet: Flag = False

    def __call__(self) -> None:
        start = time.monotonic()
        import_modules(self.imports)
        if self.dry_run:
            self._show_configuration()
            return
        if self.trained is not None:
            run = self._find_components()
        elif self.resume is not None:
            run = self._resume()
        elif self.seeds is not None:
            self._start_seeds(start)
            return
        else:
            run = self._start()
        what = "trained"
        if self.execution.evaluate:
            from ..report import print_results

            print_results([run], weights=("averaged", "raw"), warn=False)
            what = "trained, scored and pictured"
        print(f"{run.path}: {what} in {time.monotonic() - start:.0f} s")
        print(_next_steps(run, self.imports, evaluated=self.execution.evaluate))

    def _start(self) -> "Run":
        from ..pipeline import train

        model, options = self._require_model(), _shallow(self.training) | _shallow(self.execution)
        self._check_options(f"s{self.training.seed}")
        data = load(self.data, self.images, show=not self.quiet)
        out = self.out or Path("runs") / self._folder_name(data.name, f"s{self.training.seed}")
        return train(model, data, out=out, show=not self.quiet, **options)

    def _show_configuration(self) -> None:
        """Print what a training would do, after the errors that it would raise."""
        from ..configuring import configure

        if self.resume is not None or self.trained is not None:
            raise ValueError(
                "--dry-run shows a new training; the values of a run that exists are in its config.json, so leave out "
                "--resume and --trained"
            )
        model = self._require_model()
        data = load(self.data, self.images, show=not self.quiet)
        options = _shallow(self.training) | _shallow(self.execution)
        configuration = configure(model, data, out=self.out, **options)
        configuration.require_trainable()
        print(configuration.describe(flag))
        if self.seeds is not None:
            print(f"With --seeds {self.seeds}, {self.seeds} times as long")

    def _start_seeds(self, start: float) -> None:
        """Train several seeds, and print how they compare and which run to take."""
        model = self._require_model()
        if not self.execution.evaluate:
            raise ValueError("--seeds compares runs by their evaluation samples, so leave out --no-evaluate")
        from ..selection.train_seeds import MOST_SEEDS, require_seeds_folder

        assert self.seeds is not None
        whole_number("seeds", self.seeds, at_least=2, at_most=MOST_SEEDS)
        if self.out is not None:
            require_seeds_folder(self.out)
        self._check_options("seeds", f"s{self.training.seed}")
        data = load(self.data, self.images, show=not self.quiet)
        train_and_compare(
            model,
            data,
            out=self.out or Path("runs") / self._folder_name(data.name, "seeds"),
            seeds=self.seeds,
            options=_shallow(self.training) | _shallow(self.execution),
            imports=self.imports,
            start=start,
            show=not self.quiet,
        )

    def _require_model(self) -> str:
        """Return the model's name; raise a ``ValueError`` for what cannot be trained, before any data are read."""
        from ..data.pictures import picture_size
        from ..observations import require_sides
        from ..presets import find_model

        if self.model is None:
            raise ValueError("name a model, such as `qlae train qlae`, or a run to resume: `qlae train --resume RUN`")
        find_model(self.model)
        if self.images.resolution is not None:
            size = picture_size(self.images.resolution)
            if self.training.networks is None:
                require_sides(size.height, size.width)
        return self.model

    def _check_options(self, last: str, run: str = "") -> None:
        """Raise the errors of a training on image files before all of them are read."""
        from ..configuring import check_options
        from ..data.image_files import ImageFiles

        spec = self.images.describe(self.data)
        if isinstance(spec, ImageFiles):
            out = self.out or Path("runs") / self._folder_name(spec.name, last)
            options = _shallow(self.training) | _shallow(self.execution)
            assert self.model is not None
            check_options(self.model, spec, out=out / run, **options)

    def _folder_name(self, data_name: str, last: str) -> str:
        recipe = "" if self.training.recipe == "paper" else f"-{self.training.recipe}"
        return f"{data_name}-{self.model}{recipe}-{self.training.size}-{last}"

    def _resume(self) -> "Run":
        from ..pipeline import resume

        assert self.resume is not None
        names = ["MODEL"] * (self.model is not None) + self._surplus("data", "out", "seeds", allowed=("steps",))
        if names:
            raise ValueError(
                f"--resume resumes a run with its own configuration, so leave out {', '.join(names)}; only --steps "
                "and execution options such as --device apply"
            )
        execution = _shallow(self.execution)
        return resume(self.resume, steps=self.training.steps, show=not self.quiet, **execution)

    def _find_components(self) -> "Run":
        from ..components import MODEL, find_components

        assert self.trained is not None
        names = self._surplus("data", "seeds", "resume")
        if self.model != MODEL or names:
            surplus = f", and leave out {', '.join(names)}" if names else ""
            raise ValueError(
                f"--trained takes the networks of a run as they are; use `qlae train {MODEL} --trained "
                f"{self.trained} --out FOLDER`{surplus}. Only execution options such as --device apply"
            )
        out = self.out or self.trained.with_name(f"{self.trained.name}-ica")
        return find_components(self.trained, out=out, show=not self.quiet, **_shallow(self.execution))

    def _surplus(self, *fields: str, allowed: tuple[str, ...] = ()) -> list[str]:
        """Return the flags that were set among these fields, the options of images and those of the training."""
        default = Train()
        surplus = [name for name in fields if getattr(self, name) != getattr(default, name)]
        for group in ("images", "training"):
            options, defaults = _shallow(getattr(self, group)), _shallow(getattr(default, group))
            surplus += [name for name in options if options[name] != defaults[name] and name not in allowed]
        return [f"--{name.replace('_', '-')}" for name in surplus]


def _shallow(options: Any) -> dict[str, Any]:
    return {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}


def _next_steps(run: "Run", imports: tuple[str, ...], *, evaluated: bool) -> str:
    """Return the last line of a training: where the pictures are, and what to do next."""
    if not evaluated:
        return f"Next: {with_imports(f'qlae evaluate {run.path}', imports)}"
    return next_step(run, imports)


PICTURES = ("interventions", "interpolations", "between-codes", "reconstructions", "generated", "nmi", "curves")


def train_and_compare(
    model: str,
    data: "SourceDataset",
    *,
    out: Path,
    seeds: int,
    options: dict[str, Any],
    imports: tuple[str, ...],
    start: float,
    show: bool,
) -> None:
    """Train several seeds, and print how they compare and which run to take.

    Args:
        model: its name.
        data: the data set.
        out: the folder of the runs.
        seeds: number of seeds.
        options: of the training and of its execution.
        imports: modules that the user imports first, for the command that is suggested.
        start: when the command began, by ``time.monotonic``.
        show: whether to draw progress bars.
    """
    from ..report import print_results
    from ..selection.display import print_selection
    from ..selection.train_seeds import train_seeds
    from ..training.callbacks import Callback

    trained: list[Run] = []

    class Count(Callback):
        def on_end(self, run: "Run") -> None:
            trained.append(run)

    selection = train_seeds(model, data, out=out, seeds=seeds, callbacks=[Count()], show=show, **options)
    runs = sorted((run.run for run in selection.runs), key=lambda run: int(run.results["seed"]))
    print_results(runs, warn=False)
    print_selection(selection)
    print(f"{out}: {describe_work(len(runs), len(trained))} in {time.monotonic() - start:.0f} s")
    print(f"Picture: agreement.png in {out}. {next_step(selection.best.run, imports)}")


def describe_work(num_runs: int, num_trained: int) -> str:
    """Describe what was done now, and what had been done before.

    >>> describe_work(3, 3), describe_work(3, 1), describe_work(3, 0)
    ('3 runs trained, scored and compared', '3 runs compared, 1 of them trained now,', '3 finished runs compared')
    """
    if not num_trained:
        return f"{num_runs} finished runs compared"
    if num_trained < num_runs:
        return f"{num_runs} runs compared, {num_trained} of them trained now,"
    return f"{num_runs} runs trained, scored and compared"


def next_step(run: "Run", imports: tuple[str, ...]) -> str:
    """Return where the pictures of a run are, and a command that works on what the run has."""
    from ..runs.pretrained import is_pretrained

    pictures = [f"{name}.png" for name in PICTURES if (run.path / f"{name}.png").is_file()]
    place = f"Pictures: {', '.join(pictures)} in {run.path}. " if pictures else ""
    if run.updates_made is not None or is_pretrained(run.path):
        return f"{place}Next: {with_imports(f'qlae explore {run.path}', imports)}"
    missing = f"{run.path} has no checkpoint, so `qlae explore` cannot open it."
    if run.pictures_path.is_file():
        missing += f" Next: {with_imports(f'qlae report {run.path}', imports)}"
    return place + missing


MODELS = ("qlae", "ae")


@dataclass(frozen=True)
class Demo:
    """Render Shapes3D, train a small QLAE and a small AE on it, score both and draw pictures.

    The two models train at the same time, on one core each, in less than two minutes on two idle cores. The same
    command resumes an interrupted demo. For example:
      qlae demo
      qlae demo --seed 1

    Attributes:
        seed: Seed of the initial weights and of the batches.
        out: The folder for the two runs; by default runs/demo, runs/demo-seed1, …
        resolution: Height and width of the images in pixels.
        steps: Number of updates per model; by default 7,000.
        quiet: Do not show progress bars.
    """

    seed: int = 0
    out: OptionalPath = None
    resolution: int = 32
    steps: OptionalInt = None
    quiet: Flag = False

    def __call__(self) -> None:
        _require_training()

        from ..presets import SIZES
        from ..report import print_results
        from ..runs.directory import Run

        started = time.monotonic()
        console = Console()
        steps = SIZES["small"]["autoencoding"].steps if self.steps is None else self.steps
        out = self.out or Path("runs") / ("demo" if self.seed == 0 else f"demo-seed{self.seed}")
        size = f"{self.resolution}×{self.resolution}"
        console.print(f"Training a small QLAE and a small AE on rendered Shapes3D at {size}, one core each")
        runs = [Run(out / model) for model in MODELS]
        trainings = [self._start(model, run, steps) for model, run in zip(MODELS, runs, strict=True)]
        try:
            _follow(runs, trainings, steps, show=not self.quiet)
        except KeyboardInterrupt:
            for training in trainings:
                training.wait()
            console.print("Stopped and saved. Run the same command to resume")
            raise
        if failed := next((training.returncode for training in trainings if training.returncode), 0):
            sys.exit(failed)

        print_results(runs)
        for run in runs:
            pictures = ", ".join(path.name for path in sorted(run.path.glob("*.png")))
            console.print(f"[bold]{run.path}[/bold]: results.json, {pictures}", highlight=False)
        console.print(f"{time.monotonic() - started:.0f} seconds in total")
        command = f"{_qlae()} explore {runs[0].path}"
        console.print(f"See in the browser what every code means: [bold]{command}[/bold]", soft_wrap=True)

    def _start(self, model: str, run: "Run", steps: int) -> "subprocess.Popen[bytes]":
        """Start the training of a model in its own process."""
        command = [sys.executable, "-m", "qlae", "train", model, "--size", "small", "--out", str(run.path)]
        command += ["--resolution", str(self.resolution), "--steps", str(steps), "--seed", str(self.seed)]
        command += ["--threads", "1", "--device", "cpu", "--quiet"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def _require_training() -> None:
    """Raise a ``ModuleNotFoundError`` before any process is started if only the metrics are installed."""
    for module in TRAINING:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def _follow(runs: "list[Run]", trainings: list["subprocess.Popen[bytes]"], steps: int, *, show: bool) -> None:
    """Show the progress of the trainings, read from their logs, until all have ended."""
    from .._progress import progress_bar

    with progress_bar("training", steps * len(runs), show=show) as report:
        while any(training.poll() is None for training in trainings):
            rows = [(log or [{"step": 0, "loss": float("nan")}])[-1] for log in (run.log() for run in runs)]
            notes = [f"{model} loss {row['loss']:.3f}" for model, row in zip(MODELS, rows, strict=True) if row["step"]]
            report(sum(row["step"] for row in rows), note="  ".join(notes) or "rendering")
            time.sleep(0.5)


def _qlae() -> str:
    """Return the command that runs qlae in this environment, as short as it can be typed from here."""
    script = Path(sys.executable).with_name("qlae")
    if not script.exists():
        return "qlae"
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)
