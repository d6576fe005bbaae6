"""The verbs over runs: train, evaluate, report."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.console import Console
from tyro.conf import Positional, arg

from .arguments import DataOptions, Directory, OptionalFloat, OptionalInt, OptionalName, OptionalPath, load, weight


@dataclass(frozen=True)
class Train:
    """Train a model, score it and draw its pictures.

    `qlae train qlae --data shapes3d` is the paper's configuration;
    `qlae train qlae --size small --resolution 32 --out runs/quick` is one for a CPU.
    The same command on the same --out goes on where a run was stopped (Ctrl-C saves) or killed.
    """

    model: Positional[Annotated[str, arg(metavar="MODEL")]]
    """ae, beta-vae, beta-tcvae, bioae, vq-vae, qlae, qlae-global-codebook, qlae-no-weight-decay, vq-vae-weight-decay,
    infowgan-gp, qlinfowgan-gp, qlinfowgan-gp-no-weight-decay (the paper's), or fsq-ae."""
    data: str = "shapes3d"
    """A data set by name (`qlae data list` shows them), or the path of a folder or file with images of your own."""
    images: DataOptions = field(default_factory=DataOptions)
    size: Literal["full", "small"] = "full"
    """Networks of the paper, or small ones that a CPU can train, with a budget to match."""
    form: Literal["paper", "official"] = "paper"
    """Follow the paper's text, or the authors' code where it differs."""
    steps: OptionalInt = None
    """Updates; 200,000 in the paper."""
    batch_size: OptionalInt = None
    """Images an update; in the paper 128, for GANs 64."""
    learning_rate: OptionalFloat = None
    """Of AdamW; in the paper 0.001, for GANs 0.0002."""
    weight_decay: OptionalFloat = None
    """Decoupled; by default the value tuned for the model and the data."""
    weights: tuple[str, ...] = ()
    """Weights of loss terms instead of the preset's, such as --weights kl=4."""
    warm_up: int = 0
    """Updates over which the latent space's own terms (KL, quantize and commit, …) gain their weight, linearly."""
    num_latents: OptionalInt = None
    """Twice the number of sources, by default."""
    num_values: tuple[int, ...] = ()
    """Values a codebook, one number or one a latent; 10 in the paper (VQ-VAE: 512 vectors), 4 for --size small."""
    fixed_values: bool = False
    """Keep the values of the codebooks where they start, instead of learning them."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the networks' weights and activations: bfloat16 on a GPU that has it, else float32. The rest is in float32."""
    no_compile: bool = False
    """On a GPU: run one operation after the other, instead of launching updates as CUDA graphs with fused kernels."""
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
    score_every: int = 0
    """Updates between scorings while it trains, into the log and its picture; a multiple of 100, or 0 for none."""
    no_evaluate: bool = False
    """Neither score the trained model nor draw its pictures."""
    quiet: bool = False
    """No progress bars."""

    def __call__(self) -> None:
        begun = time.monotonic()
        from ..report import print_results
        from ..training import train

        passed_on = (
            "size form steps batch_size learning_rate weight_decay warm_up num_latents fixed_values precision seed "
            "device threads checkpoint_seconds score_every"
        )
        chosen = {name: getattr(self, name) for name in passed_on.split()}
        chosen |= {"compile": not self.no_compile, "evaluate": not self.no_evaluate}
        chosen["weights"] = dict(weight(pair) for pair in self.weights)
        if self.num_values:
            chosen["num_values"] = self.num_values[0] if len(self.num_values) == 1 else self.num_values
        data = load(self.data, self.images, show=not self.quiet)
        out = self.out or Path("runs") / f"{data.name}-{self.model}-{self.size}-s{self.seed}"
        run = train(self.model, data, out=out, show=not self.quiet, **chosen)
        if not self.no_evaluate:
            print_results([run], weights=("averaged", "raw"))
        done = "trained" if self.no_evaluate else "trained, scored and pictured"
        print(f"{run.path}: {done} in {time.monotonic() - begun:.0f} s")


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
    """Images to score on; as many as before, or 10,000 the first time."""
    protocol: OptionalName = None
    """InfoMEC protocol: paper, official-train, official-standalone or tripod; as before, or paper the first time."""
    metrics: tuple[str, ...] = ()
    """infomec, dci, mig, sap, modularity, explicitness, irs, mcc, or all; by default infomec, and whatever was computed
    before."""
    bootstrap: int = 0
    """Half samples for 95% intervals of infomec, or of the --metrics that are named, and a curve of scores against the
    sample size; 200 are plenty."""
    jobs: int = 1
    """Processes for these, and threads for DCI; -1 for all cores."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, …"""
    quiet: bool = False
    """No progress bars."""

    def __call__(self) -> None:
        from ..report import draw_pictures, intervals_table, print_results
        from ..runs.directory import Run

        run = Run.open(self.run)
        how: dict[str, Any] = {
            "protocol": self.protocol,
            "metrics": self.metrics or None,
            "bootstrap": self.bootstrap,
            "jobs": self.jobs,
            "show": not self.quiet,
        }
        if self.from_sample:
            if self.num_samples is not None:
                raise ValueError(
                    f"--from-sample scores the sample that is there, and --num-samples {self.num_samples} asks for "
                    "another: leave one of them out"
                )
            from ..scoring.sample import rescore_run

            rescore_run(run, **how)
        else:
            from ..scoring.evaluation import evaluate_run

            evaluate_run(run, device=self.device, num_samples=self.num_samples, **how)
        paths = draw_pictures(run) if run.pictures_path.is_file() else []
        print_results([run], weights=("averaged", "raw"))
        if self.bootstrap:
            Console().print(intervals_table(run))
        print(f"{run.path}: {', '.join(['results.json', *(path.name for path in paths)])}")


@dataclass(frozen=True)
class Report:
    """Draw the pictures of scored runs again and print their scores side by side; or write the report of a study.

    For example: qlae report runs/demo/qlae runs/demo/ae.
    Of a study it writes tables, figures and a page: qlae report runs/paper-quick.
    """

    runs: Positional[tuple[Directory, ...]]
    """Run directories, or the folders of studies."""

    def __call__(self) -> None:
        from ..report import draw_pictures, print_results, report_study
        from ..runs.directory import Run
        from ..study import StudyFolder, is_study

        if not self.runs:
            raise ValueError("name at least one run directory: qlae report runs/demo/qlae")
        studies = [StudyFolder(path) for path in self.runs if is_study(path)]
        for folder in studies:
            print(report_study(folder))
        if len(studies) == len(self.runs):
            return
        runs = [Run.open(path) for path in self.runs if not is_study(path)]
        for run in runs:
            for path in draw_pictures(run):
                print(path)
        print_results(runs, weights=("averaged", "raw"))
