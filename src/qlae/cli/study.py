"""The verb for studies: run one, resume one, or show the state of one."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.console import Console
from tyro.conf import Positional, UseAppendAction, arg

from .arguments import Aggregate, OptionalInt, OptionalPath, ScoredWeights

if TYPE_CHECKING:
    from ..study import Plan
    from ..study.engine import Engine

#: Arguments of the engines by the name of their flag.
FLAGS = {
    "num_workers": "--workers",
    "threads": "--threads",
    "num_cpus": "--cpus-per-run",
    "num_gpus": "--gpus-per-run",
}


@dataclass(frozen=True)
class Study:
    """Run a study: tune each model, select, rerun with new seeds, and write tables, figures and a page.

    `qlae study paper-quick` takes minutes on two cores; `qlae study paper --dry-run` shows what the paper's takes.
    If a study was stopped (Ctrl-C saves it) or killed, the same command resumes it; so does `qlae study FOLDER`.
    `qlae study status FOLDER` shows its state from another shell.
    """

    plan: Positional[Annotated[str, arg(metavar="PLAN|FOLDER|status")]]
    """paper, paper-quick, ablations, negative, negative-quick, a plan in a .toml or .json file, or the folder of a
    study to resume."""
    folder: Positional[Annotated[Path | None, arg(metavar="[FOLDER]")]] = None
    """After `status`: the folder of the study."""
    out: OptionalPath = None
    """The study's folder; runs/PLAN by default."""
    dry_run: bool = False
    """Print each run, the order and an estimate of the time, without running anything."""
    retry_failed: bool = False
    """Repeat runs that failed before."""
    imports: Annotated[UseAppendAction[tuple[str, ...]], arg(name="import", metavar="MODULE")] = ()
    """A Python module to import first, here and in each worker, such as my_models or path/to/my_models.py: it registers
    models of your own. Can be repeated."""
    engine: Literal["local", "ray"] = "local"
    """Worker processes on this machine, or tasks on a Ray cluster (pip install 'qlae[ray]')."""
    workers: OptionalInt = None
    """Local: number of worker processes; by default one per GPU, or one per core if there is no GPU."""
    threads: int = 1
    """CPU threads of torch per run."""
    device: str = "auto"
    """auto, cpu or cuda."""
    address: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Ray: the cluster, such as auto or ray://head:10001; by default RAY_ADDRESS, or a cluster started here."""
    gpus_per_run: float = 0.0
    """Ray: GPUs per run; with a fraction, runs share a GPU."""
    cpus_per_run: float = 1.0
    """Ray: CPUs per run."""
    scored_weights: ScoredWeights = None
    """Select values and fill the tables by scores of the averaged or the raw weights, whatever the plan says."""
    aggregate: Aggregate = None
    """Which runs of the selected value count in the tables, whatever the plan says: the reruns, all seeds, or all seeds
    with the intervals of the authors' tables."""
    no_report: bool = False
    """Do not write the report when all runs are over; `qlae report FOLDER` writes it later."""
    quiet: bool = False
    """Show no progress."""

    def __call__(self) -> None:
        from .._imports import import_modules

        import_modules(self.imports)  # before the plan is read, which names their models
        try:
            self._execute()
        except ValueError as error:
            raise ValueError(str(error).replace("out=…", "--out")) from None

    def _execute(self) -> None:
        from ..study import StudyFolder, is_study, read_plan
        from ..study.dry_run import describe_study
        from ..study.view import status

        if self.plan == "status":
            if self.folder is None:
                raise ValueError("name the study: qlae study status FOLDER")
            Console().print(status(StudyFolder.open(self.folder)))
            return
        if self.folder is not None:
            raise ValueError(f"give the folder with --out: qlae study {self.plan} --out {self.folder}")
        if is_study(self.plan):
            plan, out = StudyFolder.open(self.plan).plan, self.out or Path(self.plan)
        else:
            plan = read_plan(self.plan)
            out = self.out or Path("runs") / plan.name
        plan = plan.with_options(scored_weights=self.scored_weights, aggregate=self.aggregate)
        if self.dry_run:
            text = describe_study(plan, out, self._build_engine())
            Console(soft_wrap=True, highlight=False).print(text, markup=False)
        else:
            self._run(plan, out)

    def _run(self, plan: "Plan", out: Path) -> None:
        from ..study import StudyFolder, run_study
        from ..study.view import resume_command, study_progress

        engine = self._build_engine()
        folder = StudyFolder(out)
        try:
            with study_progress(folder, plan, engine, show=not self.quiet) as show:
                index = run_study(plan, out, engine, retry_failed=self.retry_failed, show=show)
        except KeyboardInterrupt as stop:
            again = f"To resume it, repeat the command or run {resume_command(folder)}"
            print(f"\nqlae: stopped; {out} is saved. {again}", file=sys.stderr)
            raise stop
        failed = {name: entry for name, entry in index.runs.items() if entry.state == "failed"}
        for name, entry in failed.items():
            print(f"failed {name}: {entry.error}")
        if failed:
            print(f"{len(failed)} runs failed; --retry-failed repeats them")
        if not self.no_report and any(entry.state == "done" for entry in index.runs.values()):
            from ..study.report import report_study

            print(report_study(folder, show=not self.quiet))
        if failed:
            sys.exit(1)

    def _build_engine(self) -> "Engine":
        try:
            if self.engine == "ray":
                from ..study.ray_engine import RayEngine

                return RayEngine(
                    self.address,
                    num_cpus=self.cpus_per_run,
                    num_gpus=self.gpus_per_run,
                    device=self.device,
                    threads=self.threads,
                    imports=self.imports,
                )
            from ..study.local import LocalEngine

            return LocalEngine(self.workers, device=self.device, threads=self.threads, imports=self.imports)
        except ValueError as error:
            argument, _, rest = str(error).partition(" ")
            raise ValueError(f"{FLAGS.get(argument, argument)} {rest}") from None
