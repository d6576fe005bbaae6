"""The verb over studies: run one, go on with one, or look at one."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.console import Console
from tyro.conf import Positional, arg

from .arguments import OptionalInt, OptionalPath

if TYPE_CHECKING:
    from ..study import Plan
    from ..study.engine import Engine


@dataclass(frozen=True)
class Study:
    """Run a study: tune every model, select, rerun with new seeds, and write tables, figures and a page.

    `qlae study paper-quick` takes minutes on two cores; `qlae study paper --dry-run` shows what the paper's takes.
    The same command goes on where a study was stopped (Ctrl-C saves) or killed; so does `qlae study FOLDER`.
    `qlae study status FOLDER` shows from another shell how far it is.
    """

    plan: Positional[Annotated[str, arg(metavar="PLAN|FOLDER|status")]]
    """paper, paper-quick, ablations, a plan in a .toml or .json file, or the folder of a study to go on with."""
    folder: Positional[Annotated[Path | None, arg(metavar="[FOLDER]")]] = None
    """After `status`: the study to look at."""
    out: OptionalPath = None
    """The study's folder; runs/PLAN by default."""
    dry_run: bool = False
    """Print every run, the order and an estimate of the time, and do nothing."""
    retry_failed: bool = False
    """Try runs again that failed before."""
    engine: Literal["local", "ray"] = "local"
    """Worker processes on this machine, or tasks on a Ray cluster (pip install 'qlae[ray]')."""
    workers: OptionalInt = None
    """Local: worker processes; by default one a GPU, or one a core where there is none."""
    threads: int = 1
    """CPU threads of torch in each run."""
    device: str = "auto"
    """auto, cpu or cuda."""
    address: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Ray: the cluster, such as auto or ray://head:10001; by default RAY_ADDRESS, or one started here."""
    gpus_per_run: float = 0.0
    """Ray: GPUs that a run takes; a fraction lets runs share one."""
    cpus_per_run: float = 1.0
    """Ray: CPUs that a run takes."""
    no_report: bool = False
    """Do not write the report when all runs are over; `qlae report FOLDER` writes it later."""
    quiet: bool = False
    """No table while it runs."""

    def __call__(self) -> None:
        from ..study import StudyFolder, is_study, read_plan
        from ..study.view import status

        if self.plan == "status":
            if self.folder is None:
                raise ValueError("say which study: qlae study status FOLDER")
            Console().print(status(StudyFolder.open(self.folder)))
            return
        if self.folder is not None:
            raise ValueError(f"a folder goes with --out: qlae study {self.plan} --out {self.folder}")
        if is_study(self.plan):
            plan, out = StudyFolder.open(self.plan).plan, self.out or Path(self.plan)
        else:
            plan = read_plan(self.plan)
            out = self.out or Path("runs") / plan.name
        if self.dry_run:
            self._tell(plan, out)
        else:
            self._run(plan, out)

    def _run(self, plan: "Plan", out: Path) -> None:
        from ..study import StudyFolder, run_study
        from ..study.view import shown

        engine = self._engine()
        folder = StudyFolder(out)
        try:
            with shown(folder, plan, engine, show=not self.quiet) as show:
                index = run_study(plan, out, engine, retry_failed=self.retry_failed, show=show)
        except KeyboardInterrupt as stop:
            again = f"qlae study {shlex.quote(str(out))}"
            print(
                f"\nqlae: stopped; {out} is saved. To go on, give the same command again, or {again}", file=sys.stderr
            )
            raise stop
        failed = {name: entry for name, entry in index.runs.items() if entry.state == "failed"}
        for name, entry in failed.items():
            print(f"failed {name}: {entry.error}")
        if failed:
            print(f"{len(failed)} runs failed; --retry-failed tries them again")
        if not self.no_report and any(entry.state == "done" for entry in index.runs.values()):
            from ..report import report_study

            print(report_study(folder, show=not self.quiet))
        if failed:
            sys.exit(1)

    def _engine(self) -> "Engine":
        if self.engine == "ray":
            from ..study.ray_engine import RayEngine

            return RayEngine(
                self.address,
                num_cpus=self.cpus_per_run,
                num_gpus=self.gpus_per_run,
                device=self.device,
                threads=self.threads,
            )
        from ..study.local import LocalEngine

        return LocalEngine(self.workers, device=self.device, threads=self.threads)

    def _tell(self, plan: "Plan", out: Path) -> None:
        from ..study.dry_run import told_plan

        Console(soft_wrap=True, highlight=False).print(told_plan(plan, out, self._engine()), markup=False)
