"""Render Shapes3D, train a small QLAE and a small AE on it, score both and draw pictures.

The two models train at the same time, on one core each. Run the demo with ``make demo``, or with another seed:
``make demo SEED=1``. The same command resumes an interrupted demo.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from qlae._progress import progress_bar
from qlae.presets import SIZES
from qlae.report import print_results
from qlae.runs.directory import Run

MODELS = ("qlae", "ae")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and batches (default: 0)")
    parser.add_argument("--resolution", type=int, default=32, help="image size in pixels (default: 32)")
    steps = SIZES["small"]["autoencoding"].steps
    parser.add_argument("--steps", type=int, default=steps, help=f"updates per model (default: {steps:,})")
    parser.add_argument("--out", type=Path, help="folder for the two runs (default: runs/demo, runs/demo-seed1, …)")
    arguments = parser.parse_args()
    out = arguments.out or Path("runs") / ("demo" if arguments.seed == 0 else f"demo-seed{arguments.seed}")

    started = time.monotonic()
    console = Console()
    size = f"{arguments.resolution}×{arguments.resolution}"
    console.print(f"Training a small QLAE and a small AE on rendered Shapes3D at {size}, one core each")
    runs = [Run(out / model) for model in MODELS]
    trainings = [start(model, run, arguments) for model, run in zip(MODELS, runs, strict=True)]
    try:
        follow(runs, trainings, arguments.steps)
    except KeyboardInterrupt:
        for training in trainings:
            training.wait()
        console.print("Stopped and saved. Run the same command to resume")
        return 130
    if any(training.returncode for training in trainings):
        return 1

    print_results(runs)
    for run in runs:
        pictures = ", ".join(path.name for path in sorted(run.path.glob("*.png")))
        console.print(f"[bold]{run.path}[/bold]: results.json, {pictures}", highlight=False)
    console.print(f"{time.monotonic() - started:.0f} seconds in total")
    qlae = Path(sys.executable).with_name("qlae")
    console.print(f"See in the browser what every code means: [bold]{short(qlae)} explore {runs[0].path}[/bold]")
    return 0


def short(path: Path) -> Path:
    """Return the path relative to the working directory if it lies below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def start(model: str, run: Run, arguments: argparse.Namespace) -> "subprocess.Popen[bytes]":
    """Start the training of a model in its own process."""
    command = [sys.executable, "-m", "qlae.cli", "train", model, "--size", "small", "--out", str(run.path)]
    for name in ("resolution", "steps", "seed"):
        command += [f"--{name}", str(getattr(arguments, name))]
    command += ["--threads", "1", "--device", "cpu", "--quiet"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def follow(runs: list[Run], trainings: list["subprocess.Popen[bytes]"], steps: int) -> None:
    """Show the progress of the trainings, read from their logs, until all have ended."""
    with progress_bar("training", steps * len(runs)) as report:
        while any(training.poll() is None for training in trainings):
            rows = [(log or [{"step": 0, "loss": float("nan")}])[-1] for log in (run.log() for run in runs)]
            notes = [f"{model} loss {row['loss']:.3f}" for model, row in zip(MODELS, rows, strict=True) if row["step"]]
            report(sum(row["step"] for row in rows), note="  ".join(notes) or "rendering")
            time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
