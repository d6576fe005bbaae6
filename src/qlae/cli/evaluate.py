"""``qlae evaluate``, ``qlae select`` and ``qlae report``: score runs, choose among them, and draw their pictures."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.console import Console
from tyro.conf import FlagCreatePairsOff, Positional, arg

from .._imports import import_modules
from .arguments import (
    Aggregate,
    Directory,
    Flag,
    Imports,
    Names,
    OptionalInt,
    OptionalName,
    OptionalPath,
    ScoredWeights,
    with_imports,
)
from .score import dci_options
from .train import next_step


@dataclass(frozen=True)
class Evaluate:
    """Score a trained run: write sample.npz, results.json and the pictures.

    For example:
      qlae evaluate runs/quick
      qlae evaluate runs/quick --from-sample --metrics dci
      qlae evaluate runs/quick --data other.csv    # writes runs/quick/evaluations/other

    Attributes:
        run: The run directory.
        data: Score other data, by name or path, which are read as the training data were. Their results are written to
            evaluations/NAME in the run directory; those of the run stay.
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
    data: OptionalName = None
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
            if self.data is not None:
                raise ValueError("--from-sample scores the existing sample, so leave out --data")
            from ..scoring.sample import rescore_run

            rescore_run(run, **how)
        else:
            from ..scoring.evaluation import evaluate_run, evaluation_folder, read_scored

            data = None if self.data is None else read_scored(self.data, run)
            evaluate_run(run, data=data, device=self.device, num_samples=self.num_samples, **how)
            if data is not None and (folder := evaluation_folder(run, data)) != run.path:
                print_results([Run(folder)], weights=("averaged", "raw"), warn=False)
                print(f"{folder}: results.json, sample.npz")
                return
        paths = draw_pictures(run) if run.pictures_path.is_file() else []
        print_results([run], warn=False)
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
        with_vq_vae: Studies: include VQ-VAE among the prior methods that figures may compare with QLAE; the paper's
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
        print_results(runs)
        print(f"Next: {with_imports(f'qlae explore {runs[0].path}', self.imports)}")


@dataclass(frozen=True)
class Select:
    """Rank runs of one data set without labels, and name the one to take.

    Disentangled runs resemble each other; entangled ones differ. So runs are ranked by how much their codes agree with
    those of the other runs, on the same images. For example:
      qlae select runs/shapes3d-qlae-*
      qlae select runs/seeds --plot agreement.png    # a folder of runs

    Attributes:
        runs: Run directories, or folders that hold run directories. They may differ in seed, hyperparameters and
            model, but not in data.
        weights: Which weights to compare.
        near_db: Runs whose PSNR is further below the best than this, in dB, are not taken; GANs are exempt. For vectors
            and series, the share of the variance that is not explained, 1 − R², takes the place of the PSNR.
        device: Where models run, if images have to be encoded: auto, cpu, cuda, cuda:1, …
        json: Print only JSON to standard output.
        csv: Write the table to this file, as CSV.
        plot: Draw the agreement of each pair of runs to this .png, .svg or .pdf file.
        imports: A module or file of yours to import first, which registers the runs' parts.
        quiet: Do not show progress bars.
    """

    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUN|FOLDER …", help_behavior_hint="")]]
    weights: Literal["averaged", "raw"] = "averaged"
    near_db: float = 6.0
    device: str = "auto"
    json: Flag = False
    csv: OptionalPath = None
    plot: OptionalPath = None
    imports: Imports = ()
    quiet: Flag = False

    def __call__(self) -> None:
        from .._io import write_bytes
        from ..selection.display import plot_selection, print_selection, require_picture_path, selection_csv
        from ..selection.ranking import select

        import_modules(self.imports)
        if not self.runs:
            raise ValueError("name the runs to compare: qlae select runs/shapes3d-qlae-*")
        if self.plot is not None:
            require_picture_path(self.plot)
        if self.csv is not None and not self.csv.parent.is_dir():
            raise ValueError(f"--csv takes a file in a folder that exists, got {self.csv}")
        selection = select(
            self.runs,
            weights=self.weights,
            near_db=self.near_db,
            device=self.device,
            show=not self.quiet,
        )
        if self.csv is not None:
            write_bytes(self.csv, selection_csv(selection).encode())
        if self.plot is not None:
            plot_selection(selection, self.plot)
        if self.json:
            print(json.dumps(selection.to_dict(), indent=2, allow_nan=False))
            return
        print_selection(selection)
        if self.csv is not None:
            print(f"Table as CSV: {self.csv}")
        if self.plot is not None:
            print(f"Picture: {self.plot}")
        print(next_step(selection.best.run, self.imports))
