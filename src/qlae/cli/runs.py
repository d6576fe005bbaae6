"""The verbs over runs: train, evaluate, report."""

import dataclasses
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.console import Console
from tyro.conf import FlagCreatePairsOff, Positional, arg

from .._imports import import_modules
from ..options import ExecutionOptions, TrainingOptions
from .arguments import (
    Aggregate,
    DataOptions,
    Directory,
    Imports,
    OptionalInt,
    OptionalName,
    OptionalPath,
    ScoredWeights,
    load,
    with_imports,
)

if TYPE_CHECKING:
    from ..runs.directory import Run


@dataclass(frozen=True)
class Train:
    """Train a model, score it and draw its pictures.

    `qlae train qlae --data shapes3d` is the paper's configuration;
    `qlae train qlae --size small --resolution 32 --out runs/quick` is one for a CPU.
    The same command on the same --out continues a run that was stopped (Ctrl-C saves) or killed, and so does
    `qlae train --resume RUN` without any other options.
    """

    model: Positional[Annotated[str | None, arg(metavar="[MODEL]")]] = None
    """ae, beta-vae, beta-tcvae, bioae, vq-vae, qlae, qlae-global-codebook, qlae-no-weight-decay, vq-vae-weight-decay,
    infowgan-gp, qlinfowgan-gp, qlinfowgan-gp-no-weight-decay (the paper's), fsq-ae, or one of your own (--import)."""
    data: str = "shapes3d"
    """A data set by name (`qlae data list` shows them), or the path of a folder or file with images of your own."""
    images: DataOptions = field(default_factory=DataOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    execution: ExecutionOptions = field(default_factory=ExecutionOptions)
    out: OptionalPath = None
    """The run directory; runs/DATA-MODEL-SIZE-sSEED by default."""
    resume: OptionalPath = None
    """Continue the run in this directory with its own configuration; only --steps and options of execution apply."""
    imports: Imports = ()
    """Modules of your own to import first, which register models, latent spaces, objectives, networks or data sets."""
    quiet: bool = False
    """Draw no progress bars."""

    def __call__(self) -> None:
        begun = time.monotonic()
        import_modules(self.imports)
        run = self._start() if self.resume is None else self._continue()
        done = "trained"
        if self.execution.evaluate:
            from ..report import print_results

            print_results([run], weights=("averaged", "raw"), warn=False)
            done = "trained, scored and pictured"
        print(f"{run.path}: {done} in {time.monotonic() - begun:.0f} s")
        print(_next_steps(run, self.imports, evaluated=self.execution.evaluate))

    def _start(self) -> "Run":
        from ..pipeline import train

        if self.model is None:
            raise ValueError("name a model, such as `qlae train qlae`, or a run to continue: `qlae train --resume RUN`")
        data = load(self.data, self.images, show=not self.quiet)
        out = self.out or Path("runs") / f"{data.name}-{self.model}-{self.training.size}-s{self.training.seed}"
        options = _shallow(self.training) | _shallow(self.execution)
        return train(self.model, data, out=out, show=not self.quiet, **options)

    def _continue(self) -> "Run":
        from ..pipeline import resume

        assert self.resume is not None
        default = Train()
        surplus = [name for name in ("data", "out") if getattr(self, name) != getattr(default, name)]
        for group in ("images", "training"):
            options, defaults = _shallow(getattr(self, group)), _shallow(getattr(default, group))
            surplus += [name for name in options if options[name] != defaults[name] and name != "steps"]
        names = ["MODEL"] * (self.model is not None) + [f"--{name.replace('_', '-')}" for name in surplus]
        if names:
            raise ValueError(
                f"--resume continues a run with its own configuration, so leave out {', '.join(names)}; only --steps "
                "and options of execution such as --device apply"
            )
        execution = _shallow(self.execution)
        return resume(self.resume, steps=self.training.steps, show=not self.quiet, **execution)


def _shallow(options: Any) -> dict[str, Any]:
    return {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}


def _next_steps(run: "Run", imports: tuple[str, ...], *, evaluated: bool) -> str:
    """Return the last line of a training: where the pictures are, and what to do next."""
    if not evaluated:
        return f"Next: {with_imports(f'qlae evaluate {run.path}', imports)}"
    names = ("interventions", "interpolations", "between-codes", "reconstructions", "generated", "nmi", "curves")
    pictures = [f"{name}.png" for name in names if (run.path / f"{name}.png").is_file()]
    listed = f"Pictures: {', '.join(pictures)} in {run.path}. " if pictures else ""
    return f"{listed}Next: {with_imports(f'qlae explore {run.path}', imports)}"


@dataclass(frozen=True)
class Evaluate:
    """Score a trained run: sample.npz, results.json and the pictures.

    For example: qlae evaluate runs/quick; then qlae evaluate runs/quick --from-sample --metrics dci
    """

    run: Positional[Directory]
    """The run directory."""
    from_sample: bool = False
    """Score the sample of the last evaluation again, which needs neither the model nor the images."""
    num_samples: OptionalInt = None
    """Number of images to score on; by default as many as before, or 10,000 the first time."""
    protocol: OptionalName = None
    """InfoMEC protocol: paper, official-train, official-standalone or tripod; by default as before, or paper the first
    time."""
    prune: FlagCreatePairsOff[bool] = False
    """Let InfoMEC leave out latents that vary little, by the rule of the protocol; the default the first time, and then
    as before."""
    no_prune: FlagCreatePairsOff[bool] = False
    """Let InfoMEC count every latent that varies, however little."""
    metrics: tuple[str, ...] = ()
    """infomec, dci, mig, sap, modularity, explicitness, irs, mcc, a metric of your own (--import), or all; by default
    infomec, and whatever was computed before."""
    max_features: str = "sqrt"
    """Latents that each split of DCI's forests considers: sqrt, log2, all, a whole number, or a share such as 0.5. With
    sqrt, D of an ideal representation is 0.5 to 0.7; with all it is 1."""
    dci_split: Literal["paper", "honest"] = "paper"
    """Rows that give DCI's I: those that chose the depths (paper), or others (honest)."""
    bootstrap: int = 0
    """Number of random half samples for 95% intervals of infomec, or of the --metrics that are named, and a curve of
    scores against the sample size; 200 suffice."""
    jobs: int = 1
    """Number of processes for the half samples, and of threads for DCI; -1 for all cores."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, …"""
    imports: Imports = ()
    """Modules of your own to import first, which register the run's parts or metrics."""
    quiet: bool = False
    """Draw no progress bars."""

    def __call__(self) -> None:
        from ..metrics.metric_options import dci_options
        from ..report import draw_pictures, intervals_table, print_results
        from ..runs.directory import Run

        import_modules(self.imports)
        if self.prune and self.no_prune:
            raise ValueError("--prune and --no-prune contradict each other: leave one of them out")
        run = Run.open(self.run)
        how: dict[str, Any] = {
            "protocol": self.protocol,
            "prune": False if self.no_prune else self.prune or None,
            "metrics": self.metrics or None,
            "bootstrap": self.bootstrap,
            "jobs": self.jobs,
            "metric_options": dci_options(self.max_features, self.dci_split),
            "show": not self.quiet,
        }
        if self.from_sample:
            if self.num_samples is not None:
                raise ValueError(
                    f"--from-sample scores the existing sample, and --num-samples {self.num_samples} asks for another: "
                    "leave one of them out"
                )
            from ..scoring.sample import rescore_run

            rescore_run(run, **how)
        else:
            from ..scoring.evaluation import evaluate_run

            evaluate_run(run, device=self.device, num_samples=self.num_samples, **how)
        paths = draw_pictures(run) if run.pictures_path.is_file() else []
        print_results([run], weights=("averaged", "raw"), warn=False)
        if self.bootstrap:
            Console().print(intervals_table(run))
        print(f"{run.path}: {', '.join(['results.json', *(path.name for path in paths)])}")
        print(f"Next: {with_imports(f'qlae explore {run.path}', self.imports)}")


@dataclass(frozen=True)
class Report:
    """Draw the pictures of scored runs again and print their scores side by side; or write the report of a study.

    For example: qlae report runs/demo/qlae runs/demo/ae.
    For a study it writes tables, figures and a page: qlae report runs/paper-quick.
    """

    runs: Positional[tuple[Directory, ...]]
    """Run directories, or the folders of studies."""
    with_vq_vae: bool = False
    """In the figures of a study, let VQ-VAE be the prior method beside QLAE if its InfoM is the highest; the paper's
    figures leave it out."""
    imports: Imports = ()
    """Modules of your own to import first, which register models or metrics of a study."""
    scored_weights: ScoredWeights = None
    """Of a study: fill the tables with scores of the averaged or the raw weights; by default as the plan says."""
    aggregate: Aggregate = None
    """Of a study: count the reruns, all seeds, or all seeds with the authors' interval; by default as the plan says."""

    def __call__(self) -> None:
        from ..report import draw_pictures, print_results
        from ..runs.directory import Run
        from ..study import StudyFolder, is_study
        from ..study.report import report_study

        import_modules(self.imports)
        if not self.runs:
            raise ValueError("name at least one run directory: qlae report runs/demo/qlae")
        studies = [StudyFolder(path) for path in self.runs if is_study(path)]
        if not studies and (self.scored_weights or self.aggregate):
            raise ValueError("--scored-weights and --aggregate are for studies; runs show both sets of weights")
        for folder in studies:
            path = report_study(
                folder,
                with_vq_vae=self.with_vq_vae,
                scored_weights=self.scored_weights,
                aggregate=self.aggregate,
            )
            print(path)
        if len(studies) == len(self.runs):
            return
        runs = [Run.open(path) for path in self.runs if not is_study(path)]
        for run in runs:
            for path in draw_pictures(run):
                print(path)
        print_results(runs, weights=("averaged", "raw"))
        print(f"Next: {with_imports(f'qlae explore {runs[0].path}', self.imports)}")
