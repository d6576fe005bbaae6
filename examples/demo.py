"""The main job on embedded data: render Shapes3D, train a small QLAE and an AE of the same size, score both.

The two trainings run side by side, one core each. Run it with ``make demo``; ``make demo SEED=1`` trains from another
seed. A demo that was interrupted goes on where it was.
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
    parser.add_argument("--seed", type=int, default=0, help="of weights and batches (default: 0)")
    parser.add_argument("--resolution", type=int, default=32, help="pixels a side (default: 32)")
    steps = SIZES["small"]["autoencoding"].steps
    parser.add_argument("--steps", type=int, default=steps, help=f"updates of each model (default: {steps:,})")
    parser.add_argument("--out", type=Path, help="folder for the two runs (default: runs/demo, runs/demo-seed1, …)")
    arguments = parser.parse_args()
    out = arguments.out or Path("runs") / ("demo" if arguments.seed == 0 else f"demo-seed{arguments.seed}")

    started = time.monotonic()
    console = Console()
    size = f"{arguments.resolution}×{arguments.resolution}"
    console.print(f"A small QLAE and a small AE learn rendered Shapes3D at {size}, side by side")
    runs = [Run(out / model) for model in MODELS]
    trainings = [start(model, run, arguments) for model, run in zip(MODELS, runs, strict=True)]
    try:
        follow(runs, trainings, arguments.steps)
    except KeyboardInterrupt:
        for training in trainings:
            training.wait()
        console.print("Stopped and saved. To go on, give the same command again")
        return 130
    if any(training.returncode for training in trainings):
        return 1

    print_results(runs)
    for run in runs:
        pictures = ", ".join(path.name for path in sorted(run.path.glob("*.png")))
        console.print(f"[bold]{run.path}[/bold]: results.json, {pictures}", highlight=False)
    console.print(f"{time.monotonic() - started:.0f} seconds in all")
    qlae = Path(sys.executable).with_name("qlae")
    console.print(f"To see what every code means, in the browser: [bold]{short(qlae)} explore {runs[0].path}[/bold]")
    return 0


def short(path: Path) -> Path:
    """The path as seen from here, where it lies below."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def start(model: str, run: Run, arguments: argparse.Namespace) -> "subprocess.Popen[bytes]":
    """Begin to train a model in a process of its own."""
    command = [sys.executable, "-m", "qlae.cli", "train", model, "--size", "small", "--out", str(run.path)]
    for name in ("resolution", "steps", "seed"):
        command += [f"--{name}", str(getattr(arguments, name))]
    command += ["--threads", "1", "--device", "cpu", "--quiet"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def follow(runs: list[Run], trainings: list["subprocess.Popen[bytes]"], steps: int) -> None:
    """Show how far the trainings are, from their logs, until they end."""
    with progress_bar("training", steps * len(runs)) as report:
        while any(training.poll() is None for training in trainings):
            rows = [(log or [{"step": 0, "loss": float("nan")}])[-1] for log in (run.log() for run in runs)]
            notes = [f"{model} loss {row['loss']:.3f}" for model, row in zip(MODELS, rows, strict=True) if row["step"]]
            report(sum(row["step"] for row in rows), note="  ".join(notes) or "rendering")
            time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
