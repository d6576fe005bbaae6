"""``qlae train`` and ``qlae demo``: train one model, several seeds of it, or two small models side by side."""

import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from tyro.conf import Positional, arg

from .._imports import import_modules
from ..options import ExecutionOptions, TrainingOptions
from .arguments import DataOptions, Flag, Imports, OptionalInt, OptionalPath, RayOptions, flag, with_imports

if TYPE_CHECKING:
    from ..runs.directory import Run
    from ..study.ray_engine import RayEngine


@dataclass(frozen=True)
class Execution(ExecutionOptions):
    """Where and how a training is carried out.

    Attributes:
        compile: Run plain PyTorch operations one by one, which are easiest to read and debug, instead of the fast
            path (fused operations, and on a GPU Triton kernels and CUDA graphs).
        evaluate: Neither score the trained model nor draw its pictures.
    """

    # Flags turn these two off, so their help says what the flag does.
    compile: Flag = True
    evaluate: Flag = True


@dataclass(frozen=True)
class Train:
    """Train a model, score it and draw its pictures.

    Ctrl-C saves the run; the same command resumes it. For example:
      qlae train qlae                               # small networks if there is no GPU
      qlae train qlae --data photos/ --seeds 4      # four runs, and which to take
      qlae train qlae --data photos/ --consensus 5  # five runs, and one model of them
      qlae train qlae --data table.csv --dry-run    # every value, and its origin

    Attributes:
        model: One of the paper's models (ae, beta-vae, beta-tcvae, bioae, vq-vae, qlae, qlae-global-codebook,
            qlae-no-weight-decay, vq-vae-weight-decay, infowgan-gp, qlinfowgan-gp, qlinfowgan-gp-no-weight-decay), a
            model that came after it (fsq-ae; tripod, with penalties on dependent latents and on interactions in the
            decoder; factor-vae and factor-qvae, with a discriminator against total correlation; ae-ica, independent
            components of a trained autoencoder), or your own model (--import).
        data: A data set by name (`qlae data list` shows them), the path of a folder or archive of images, of an .npy
            or .npz of images, vectors or series, or of a table (.csv, .parquet).
        out: The run directory; by default runs/DATA-MODEL-SIZE-sSEED, with the recipe after the model. With --seeds,
            the folder of the runs; by default runs/DATA-MODEL-SIZE-seeds, with --consensus -consensus.
        seeds: Train this many runs, with the seeds SEED, SEED + 1, …, and choose one of them without labels,
            as `qlae select` does.
        consensus: Train this many runs, with the seeds SEED, SEED + 1, …, keep the latents on which they agree, found
            without labels, and train one model that imitates them. The runs are trained in parallel processes.
        free_latents: With --consensus, number of latents of the model that imitate nothing, for what no factor
            explains.
        workers: With --seeds or --consensus, number of processes that train at the same time, each on its share of the
            cores. By default 1 with --seeds, and with --consensus one per core, or one if there is a GPU.
        dry_run: Print every value of the training with where it comes from, the number of parameters, the memory and
            an estimate of the time on this machine; train and write nothing.
        resume: Resume the run in this directory with its own configuration, after it was interrupted or killed; only
            the option --steps and those of the execution apply.
        trained: With the model ae-ica: take the networks of this finished run of ae instead of training them, and find
            the independent components of its latents. Only --out and the execution options apply.
        imports: Your module or file to import first, which registers models, latent spaces, objectives, networks
            or data sets.
        quiet: Do not show progress bars.
    """

    model: Positional[Annotated[str | None, arg(metavar="[MODEL]")]] = None
    data: str = "shapes3d"
    images: DataOptions = field(default_factory=DataOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    execution: Execution = field(default_factory=Execution)
    out: OptionalPath = None
    seeds: OptionalInt = None
    consensus: OptionalInt = None
    free_latents: int = 4
    workers: OptionalInt = None
    ray: RayOptions = field(default_factory=RayOptions)
    dry_run: Flag = False
    resume: OptionalPath = None
    trained: OptionalPath = None
    imports: Imports = ()
    quiet: Flag = False

    def __call__(self) -> None:
        start = time.monotonic()
        import_modules(self.imports)
        if self.seeds is None and self.consensus is None and self.ray.is_set:
            raise ValueError("Ray trains several seeds at the same time; add --consensus N or --seeds N")
        if self.dry_run:
            self._show_configuration()
        elif self.trained is not None:
            self._print_run(self._find_components(self.trained), start)
        elif self.resume is not None:
            self._print_run(self._resume(self.resume), start)
        elif self.consensus is not None:
            self._train_consensus(self.consensus, start)
        elif self.seeds is not None:
            self._train_seeds(self.seeds, start)
        else:
            from ..pipeline import train

            self._print_run(train(out=self._folder(f"s{self.training.seed}"), **self._arguments()), start)

    def _arguments(self) -> dict[str, Any]:
        """Return what every training takes; of the data nothing is read yet."""
        from ..presets import find_model

        if self.model is None:
            raise ValueError("name a model, such as `qlae train qlae`, or a run to resume: `qlae train --resume RUN`")
        find_model(self.model)
        options = vars(self.training) | vars(self.execution)
        if self._trains_on_ray_gpus():
            options["size"] = self._size()
        return {"model": self.model, "data": self.images.describe(self.data), "show": not self.quiet, **options}

    def _folder(self, last: str) -> Path:
        recipe = "" if self.training.recipe == "paper" else f"-{self.training.recipe}"
        data = self.images.describe(self.data).name
        return self.out or Path("runs") / f"{data}-{self.model}{recipe}-{self._size()}-{last}"

    def _size(self) -> str:
        """Return the size of the networks, for the name of a folder."""
        from .._process import size_for
        from ..presets import find_model

        own = self.training.size or find_model(str(self.model)).training.get("size")
        if own:
            return str(own)
        return "full" if self._trains_on_ray_gpus() else size_for(self.execution.device)

    def _trains_on_ray_gpus(self) -> bool:
        """Return whether Ray gives each run a GPU, which this machine need not have."""
        return self.ray.engine == "ray" and self.ray.gpus_per_run > 0 and self.execution.device != "cpu"

    def _show_configuration(self) -> None:
        """Print what a training would do, after the errors that it would raise."""
        from ..configuring import configure

        if self.resume is not None or self.trained is not None:
            raise ValueError(
                "--dry-run shows a new training; the values of a run that exists are in its config.json, so leave out "
                "--resume and --trained"
            )
        arguments = self._arguments()
        del arguments["show"]
        configuration = configure(out=self.out, **arguments)
        configuration.require_trainable()
        print(configuration.describe(flag))
        if self.seeds is not None:
            print(f"With --seeds {self.seeds}, {self.seeds} times as long")
        if self.consensus is not None:
            print(f"With --consensus {self.consensus}, {self.consensus} runs and a model that imitates them")

    def _train_seeds(self, seeds: int, start: float) -> None:
        """Train several seeds, and print how they compare and which run to take."""
        from ..report import print_results
        from ..selection.display import print_selection
        from ..selection.train_seeds import train_seeds

        arguments, out = self._arguments(), self._folder("seeds")
        if not self.execution.evaluate:
            raise ValueError("--seeds compares runs by their evaluation samples, so leave out --no-evaluate")
        workers = 1 if self.workers is None else self.workers
        engine = self._ray_engine()
        selection = train_seeds(out=out, seeds=seeds, workers=workers, imports=self.imports, engine=engine, **arguments)
        runs = sorted((run.run for run in selection.runs), key=lambda run: int(run.results["seed"]))
        print_results(runs, warn=False)
        print_selection(selection)
        _find_consensus(runs, out, device=self.execution.device, show=not self.quiet)
        print_verdict(selection.best.run)
        print(f"{out}: {len(runs)} runs compared in {time.monotonic() - start:.0f} s")
        print(f"Picture: agreement.png in {out}. {next_step(selection.best.run, self.imports)}")

    def _train_consensus(self, seeds: int, start: float) -> None:
        """Train several seeds and the model of their consensus, and print the verdict and the scores."""
        from ..scoring.held_out import describe_gap
        from ..selection.train_consensus import CONSENSUS_FOLDER, default_workers, train_consensus, training_table
        from .consensus import print_consensus

        if self.seeds is not None:
            raise ValueError("--consensus says how many seeds there are, so leave out --seeds")
        if not self.execution.evaluate:
            raise ValueError("--consensus compares runs by their evaluation samples, so leave out --no-evaluate")
        arguments, out = self._arguments(), self._folder("consensus")
        workers = default_workers(seeds, self.execution.device) if self.workers is None else self.workers
        trained = train_consensus(
            out=out,
            seeds=seeds,
            workers=workers,
            imports=self.imports,
            engine=self._ray_engine(),
            num_free=self.free_latents,
            **arguments,
        )
        print_consensus(trained.consensus, None)
        Console().print(training_table(trained.scores()))
        seconds, page = time.monotonic() - start, out / CONSENSUS_FOLDER / "index.html"
        print(f"{out}: {len(trained.runs)} runs compared in {seconds:.0f} s. Page: {page}")
        if trained.model is None:
            print("No model was trained, since there is nothing to imitate")
            return
        if gap := describe_gap(trained.model.results["averaged"]):
            Console().print(f"Warning: {trained.model.path}: {gap}", style="yellow", markup=False, highlight=False)
        print_verdict(trained.model)
        print(f"{trained.model.path}: a model that imitates them. {next_step(trained.model, self.imports)}")

    def _ray_engine(self) -> "RayEngine | None":
        """Return the Ray engine if the seeds are trained by it."""
        if self.ray.engine == "ray" and self.workers is not None:
            raise ValueError("--engine ray lets Ray decide how many runs are trained at once, so leave out --workers")
        return self.ray.build(self.execution.device, self.execution.threads, self.imports)

    def _print_run(self, run: "Run", start: float) -> None:
        """Print the scores of a run that has ended, how long it took, and what to do next."""
        what, then = "trained", f"Next: {with_imports(f'qlae evaluate {run.path}', self.imports)}"
        if self.execution.evaluate:
            from ..report import print_results

            print_results([run], warn=False)
            what, then = "trained, scored and pictured", next_step(run, self.imports)
        print(f"{run.path}: {what} in {time.monotonic() - start:.0f} s\n{then}")
        results = run.results_so_far
        if results is not None and results["data"]["origin"] == "real":
            from ..selection.verdict import UNKNOWN

            print(UNKNOWN)

    def _resume(self, path: Path) -> "Run":
        from ..pipeline import resume

        self._require_unset("resume", "model", "data", "out", "seeds", "consensus", allowed=("steps",))
        return resume(path, steps=self.training.steps, show=not self.quiet, **vars(self.execution))

    def _find_components(self, trained: Path) -> "Run":
        from ..pipeline import COMPONENTS_MODEL, find_components

        if self.model != COMPONENTS_MODEL:
            raise ValueError(
                f"--trained takes the networks of a run of ae; use `qlae train {COMPONENTS_MODEL} --trained {trained}`"
            )
        self._require_unset("trained", "data", "seeds", "consensus", "resume")
        out = self.out or trained.with_name(f"{trained.name}-ica")
        return find_components(trained, out=out, show=not self.quiet, **vars(self.execution))

    def _require_unset(self, option: str, *fields: str, allowed: tuple[str, ...] = ()) -> None:
        """Raise an error if one of these fields, or an option of images or of the training, was set."""
        default = Train()
        surplus = [name for name in fields if getattr(self, name) != getattr(default, name)]
        for group, defaults in ((self.images, default.images), (self.training, default.training)):
            surplus += [n for n, value in vars(group).items() if value != getattr(defaults, n) and n not in allowed]
        if surplus:
            applicable = " and ".join([*map(flag, allowed), "execution options such as --device"])
            raise ValueError(
                f"{flag(option)} keeps the configuration of the run, so leave out {', '.join(map(flag, surplus))}; "
                f"only {applicable} apply"
            )


def _find_consensus(runs: "list[Run]", out: Path, *, device: str, show: bool) -> None:
    """Find the consensus of runs and write it next to them, unless they are too many to compare unasked."""
    from ..selection.consensus import consensus
    from ..selection.train_consensus import CONSENSUS_FOLDER
    from ..selection.verdict import MOST_RUNS

    if len(runs) <= MOST_RUNS:
        consensus(runs, device=device, show=show).save(out / CONSENSUS_FOLDER, device=device, show=show)


def print_verdict(run: "Run") -> None:
    """Print which latents of a run other runs confirm, if it was compared with others."""
    from ..selection.verdict import find_verdict, verdict_lines

    verdict = find_verdict(run, run.config.latent.num_latents)
    if verdict is not None:
        print(f"Latents of {run.path}:", *(f"  {line}" for line in verdict_lines(verdict)), sep="\n")


def next_step(run: "Run", imports: tuple[str, ...]) -> str:
    """Return where the pictures of a run are, and a command to continue with, which depends on its files."""
    from ..runs.export import is_pretrained

    pictures = sorted(path.name for path in run.path.glob("*.png"))
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
        from ..presets import SIZES
        from ..report import print_results
        from ..runs.directory import Run

        started, console = time.monotonic(), Console()
        steps = SIZES["small"]["autoencoding"].steps if self.steps is None else self.steps
        out = self.out or Path("runs") / ("demo" if self.seed == 0 else f"demo-seed{self.seed}")
        size = f"{self.resolution}×{self.resolution}"
        console.print(f"Training a small QLAE and a small AE on rendered Shapes3D at {size}, one core each")
        options = ["--size", "small", "--resolution", str(self.resolution), "--steps", str(steps), "--seed"]
        options += [str(self.seed), "--threads", "1", "--device", "cpu"]
        runs, trainings = [Run(out / model) for model in MODELS], []
        for model, run in zip(MODELS, runs, strict=True):
            is_quiet = self.quiet or model != MODELS[0]  # one progress bar is enough, since both take equally long
            command = [sys.executable, "-m", "qlae", "train", model, "--out", str(run.path), *options]
            trainings.append(subprocess.Popen([*command, *["--quiet"] * is_quiet], stdout=subprocess.DEVNULL))
        try:
            codes = [training.wait() for training in trainings]
        except KeyboardInterrupt:
            for training in trainings:
                training.wait()
            console.print("Stopped and saved. Run the same command to resume")
            raise
        if failed := next(filter(None, codes), 0):
            sys.exit(failed)
        print_results(runs)
        for run in runs:
            pictures = ", ".join(path.name for path in sorted(run.path.glob("*.png")))
            console.print(f"[bold]{run.path}[/bold]: results.json, {pictures}", highlight=False)
        console.print(f"{time.monotonic() - started:.0f} seconds in total")
        explore = f"qlae explore {runs[0].path}"
        console.print(f"See in the browser what every code means: [bold]{explore}[/bold]", soft_wrap=True)
