"""``qlae study``: run a study, resume it, or show its state."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.console import Console
from tyro.conf import Positional, arg

from .arguments import Aggregate, Flag, Imports, OptionalInt, OptionalPath, ScoredWeights

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

    Ctrl-C saves the study. To resume a study that was interrupted or killed, repeat the command, or name its folder.
    For example:
      qlae study paper-quick                # minutes on two cores
      qlae study paper --dry-run            # list the runs
      qlae study status runs/paper-quick    # from another shell
      qlae study runs/paper-quick           # resume

    Attributes:
        plan: A plan of the package (paper, paper-quick, ablations, negative, negative-quick), a plan in a .toml
            or .json file, or the folder of a study to resume.
        folder: The folder of the study, after `status`.
        out: The study's folder; by default runs/PLAN.
        dry_run: List the runs in order and estimate the time, without running anything.
        retry_failed: Repeat runs that failed before.
        imports: A module or file of yours to import first, here and in each worker, such as my_models or
            path/to/my_models.py, which registers models, metrics or data sets.
        engine: Run in worker processes on this machine, or as tasks on a Ray cluster (pip install 'qlae[ray]').
        workers: Local: number of worker processes; by default one per GPU, or one per core if there is no GPU.
        threads: Number of CPU threads per run.
        device: Where models are trained: auto, cpu or cuda.
        address: Ray: the address of the cluster, such as auto or ray://head:10001; by default RAY_ADDRESS, or a new
            local cluster.
        gpus_per_run: Ray: number of GPUs per run; with a fraction, runs share a GPU.
        cpus_per_run: Ray: number of CPUs per run.
        scored_weights: Whether selection and tables use the scores of the averaged or the raw weights; by default as in
            the plan.
        aggregate: Which seeds of the selected value count in the tables: those of the reruns, all, or all with the
            intervals of the authors' tables; by default as in the plan.
        no_report: Do not write the report after the last run; `qlae report FOLDER` writes it later.
        quiet: Do not show progress.
    """

    plan: Positional[Annotated[str, arg(metavar="PLAN|FOLDER|status")]]
    folder: Positional[Annotated[Path | None, arg(metavar="[FOLDER]", help_behavior_hint="")]] = None
    out: OptionalPath = None
    dry_run: Flag = False
    retry_failed: Flag = False
    imports: Imports = ()
    engine: Literal["local", "ray"] = "local"
    workers: OptionalInt = None
    threads: int = 1
    device: str = "auto"
    address: Annotated[str | None, arg(metavar="ADDRESS", help_behavior_hint="")] = None
    gpus_per_run: float = 0.0
    cpus_per_run: float = 1.0
    scored_weights: ScoredWeights = None
    aggregate: Aggregate = None
    no_report: Flag = False
    quiet: Flag = False

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
