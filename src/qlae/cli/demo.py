"""``qlae demo``: train a small QLAE and a small AE on rendered Shapes3D, side by side, and compare them."""

import importlib.util
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .._imports import TRAINING
from .arguments import Flag, OptionalInt, OptionalPath

if TYPE_CHECKING:
    from ..runs.directory import Run

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
        from rich.console import Console

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
