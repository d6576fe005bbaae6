"""The commands for runs: ``qlae train``, ``qlae evaluate`` and ``qlae report``."""

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
    Flag,
    Imports,
    Names,
    OptionalInt,
    OptionalName,
    OptionalPath,
    ScoredWeights,
    load,
    with_imports,
)
from .hints import hide_unset
from .score import dci_options
from .seeds import next_step, train_and_compare

if TYPE_CHECKING:
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
    resume: OptionalPath = None
    trained: OptionalPath = None
    imports: Imports = ()
    quiet: Flag = False

    def __call__(self) -> None:
        start = time.monotonic()
        import_modules(self.imports)
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

    def _start_seeds(self, start: float) -> None:
        """Train several seeds, and print how they compare and which run to take."""
        model = self._require_model()
        if not self.execution.evaluate:
            raise ValueError("--seeds compares runs by their evaluation samples, so leave out --no-evaluate")
        from ..selection.train_seeds import require_seeds, require_seeds_folder

        assert self.seeds is not None
        require_seeds(self.seeds)
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
        from ..data.picture_size import picture_size
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
        from ..data.loading import is_image_files
        from ..data.picture_size import DEFAULT_RESOLUTION, wanted_size
        from ..data.user_images import name_of_images

        path = self.images.data_path or self.data
        if not is_image_files(path):
            return
        name = name_of_images(path, None if self.images.data_path is None else self.data)
        out = self.out or Path("runs") / self._folder_name(name, last)
        size = wanted_size(self.images.resolution or DEFAULT_RESOLUTION, grey=self.images.grey)
        options = _shallow(self.training) | _shallow(self.execution)
        assert self.model is not None
        check_options(self.model, out=out / run, images=size, **options)

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


@dataclass(frozen=True)
class Evaluate:
    """Score a trained run: write sample.npz, results.json and the pictures.

    For example:
      qlae evaluate runs/quick
      qlae evaluate runs/quick --from-sample --metrics dci

    Attributes:
        run: The run directory.
        from_sample: Score the saved sample of the last evaluation again. This needs neither the model nor the images.
        num_samples: Number of images to score on; by default as in the last evaluation, or 10,000 the first time.
        protocol: InfoMEC protocol: paper, official-train, official-standalone or tripod; by default as in the last
            evaluation, or paper the first time.
        prune: InfoMEC leaves out latents that vary little, by the rule of the protocol. This is the default the first
            time; after that, the default is as in the last evaluation.
        no_prune: InfoMEC counts every latent that varies, however little.
        metrics: Metrics to compute, such as infomec, dci and mig, or all; an unknown name prints the list. By default
            infomec and those of the last evaluation.
        max_features: Number of latents that each split of DCI's forests considers: sqrt, log2, all, a whole number, or
            a fraction such as 0.5. With sqrt, D of an ideal representation is 0.5 to 0.7; with all it is 1.
        dci_split: The rows on which DCI's I is computed: those that chose the depths (paper), or others (honest).
        bootstrap: Number of half-samples for 95% intervals and for a curve of scores against the sample size; 200 are
            enough. Applies to infomec, or to the metrics that --metrics names.
        jobs: Number of processes for the half-samples, and of threads for DCI; -1 for all cores.
        device: Where the model runs: auto, cpu, cuda, cuda:1, …
        imports: A module or file of yours to import first, which registers the run's parts or metrics.
        quiet: Do not show progress bars.
    """

    run: Positional[Directory]
    from_sample: Flag = False
    num_samples: OptionalInt = None
    protocol: OptionalName = None
    prune: FlagCreatePairsOff[Flag] = False
    no_prune: FlagCreatePairsOff[Flag] = False
    metrics: Names = ()
    max_features: str = "sqrt"
    dci_split: Literal["paper", "honest"] = "paper"
    bootstrap: int = 0
    jobs: int = 1
    device: str = "auto"
    imports: Imports = ()
    quiet: Flag = False

    def __call__(self) -> None:
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
    """Redraw the pictures of scored runs and print their scores side by side, or write the report of a study.

    For example:
      qlae report runs/demo/qlae runs/demo/ae
      qlae report runs/paper-quick    # a study

    Attributes:
        runs: Run directories, or folders of studies.
        with_vq_vae: Studies: include VQ-VAE among the prior methods that figures may show beside QLAE; the paper's
            figures leave it out.
        imports: A module or file of yours to import first, which registers models or metrics of a study.
        scored_weights: Studies: whether the tables show the scores of the averaged or the raw weights; by default as in
            the plan.
        aggregate: Studies: which seeds count in the tables: those of the reruns, all, or all with the intervals of the
            authors' tables; by default as in the plan.
    """

    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUN|STUDY …", help_behavior_hint="")]]
    with_vq_vae: Flag = False
    imports: Imports = ()
    scored_weights: ScoredWeights = None
    aggregate: Aggregate = None

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
