"""``qlae study``: run a study, resume it, list its runs, or show its state."""

import os
import shlex
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.console import Console
from tyro.conf import Positional, arg

from .arguments import Aggregate, Flag, Imports, OptionalInt, OptionalPath, RayOptions, ScoredWeights

if TYPE_CHECKING:
    from ..study import Plan
    from ..study.run import Engine


@dataclass(frozen=True)
class Study:
    """Run a study: tune each model, select, rerun with new seeds, and write tables, figures and a page.

    Ctrl-C saves the study. To resume a study that was interrupted or killed, repeat the command, or name its folder.
    For example:
      qlae study paper-quick                # minutes on two cores
      qlae study paper-small                # the whole experiment with small networks: hours
      qlae study paper --dry-run            # list the runs
      qlae study status runs/paper-quick    # from another shell
      qlae study runs/paper-quick           # resume

    Attributes:
        plan: A plan of the package (paper, paper-small, paper-quick, ablations, negative, negative-quick), the path of
            a plan (a TOML or JSON file), or the folder of a study to resume.
        folder: The folder of the study, after `status`.
        out: The study's folder; by default runs/PLAN.
        dry_run: List the runs in order with their updates, without running anything. `qlae train … --dry-run`
            estimates the time of one of them.
        list: Print one command for each run that is not finished and can run now, for a cluster's scheduler. Each
            command is safe to repeat. When all have run, list again: the reruns of tuned models follow.
        run: Run only the run of this name, in this process, as the commands of --list do.
        retry_failed: Repeat runs that failed before.
        imports: A module or file of yours to import first, here and in each worker, such as my_models or
            path/to/my_models.py, which registers models, metrics or data sets.
        workers: Local: number of worker processes; by default one per GPU, or one per core if there is no GPU.
        threads: Number of CPU threads per run.
        device: Where models are trained: auto, cpu or cuda.
        form: Train all models as the paper's text says, or as the authors' code does; by default as in the plan.
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
    list: Flag = False
    run: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")] = None
    retry_failed: Flag = False
    imports: Imports = ()
    ray: RayOptions = field(default_factory=RayOptions)
    workers: OptionalInt = None
    threads: int = 1
    device: str = "auto"
    form: Annotated[Literal["paper", "official"] | None, arg(help_behavior_hint="")] = None
    scored_weights: ScoredWeights = None
    aggregate: Aggregate = None
    no_report: Flag = False
    quiet: Flag = False

    def __call__(self) -> None:
        from .._imports import import_modules
        from ..study import StudyFolder, is_study, read_plan
        from ..study.run import sized_plan
        from ..study.status import describe_study, status

        import_modules(self.imports)  # before the plan is read, which names their models
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
        plan = plan.with_options(form=self.form, scored_weights=self.scored_weights, aggregate=self.aggregate)
        plan = sized_plan(plan, out, has_gpu=self._has_gpu(), show=not self.quiet)
        if self.dry_run:
            print(describe_study(plan, out))
        elif self.list:
            self._list(plan, out)
        elif self.run is not None:
            self._run_one(plan, out, self.run)
        else:
            self._run(plan, out)

    def _list(self, plan: "Plan", out: Path) -> None:
        from ..study.run import list_study

        state = list_study(plan, out, self.imports, retry_failed=self.retry_failed)
        options = ["--device", self.device, "--threads", str(self.threads)]
        options += [part for name in self.imports for part in ("--import", _from_anywhere(name))]
        for name in state.names("waiting"):
            print(shlex.join([*_qlae(), "study", str(out.absolute()), "--run", name, *options]))
        unselected = sum(bool(model.grid) for model in plan.models) * len(plan.data) - len(state.candidates)
        if unselected:
            message = f"{unselected} models are not tuned yet: list again after these runs, for the selected values"
            print(f"qlae: {message}", file=sys.stderr)

    def _run_one(self, plan: "Plan", out: Path, name: str) -> None:
        from ..study import StudyFolder
        from ..study.folder import read_failure
        from ..study.jobs import find_job
        from ..study.worker import run_job

        run = StudyFolder(out).run(name)
        state = run_job(find_job(plan, name), run, device=self.device, threads=self.threads)
        reason = {"failed": f": {read_failure(run)}", "busy": ": another process is running it"}.get(state, "")
        print(f"{state} {name}{reason}")
        if state != "done":
            sys.exit(1)

    def _run(self, plan: "Plan", out: Path) -> None:
        from ..study import StudyFolder, run_study
        from ..study.status import resume_command, status, study_progress

        engine = self._build_engine()
        folder = StudyFolder(out)
        try:
            with study_progress(folder, show=not self.quiet) as show:
                state = run_study(plan, out, engine, retry_failed=self.retry_failed, show=show)
        except KeyboardInterrupt as stop:
            again = f"To resume it, repeat the command or run {resume_command(folder)}"
            print(f"\nqlae: stopped; {out} is saved. {again}", file=sys.stderr)
            raise stop
        all_done = len(state.names("done")) == len(state.runs)
        if not all_done:
            Console(soft_wrap=True).print(status(folder))
        if not self.no_report and state.names("done"):
            from ..study.report import report_study

            print(report_study(folder, show=not self.quiet))
        if not all_done:
            sys.exit(1)

    def _has_gpu(self) -> bool:
        """Return whether the engine trains on a GPU, without building it."""
        from .._process import size_for

        if self.ray.engine == "ray":
            return self.ray.gpus_per_run > 0 and self.device != "cpu"
        return size_for(self.device) != "small"

    def _build_engine(self) -> "Engine":
        from ..study.local import LocalEngine

        ray = self.ray.build(self.device, self.threads, self.imports)
        return ray or LocalEngine(self.workers, device=self.device, threads=self.threads, imports=self.imports)


def _qlae() -> list[str]:
    """Return the command that starts qlae as it was started now."""
    is_on_path = Path(sys.argv[0]).name == "qlae" and shutil.which("qlae") is not None
    return ["qlae"] if is_on_path else [sys.executable, "-m", "qlae"]


def _from_anywhere(module: str) -> str:
    """Return the name of a module, or the absolute path of a file, for commands that run in another directory."""
    return os.path.abspath(module) if module.endswith(".py") else module
