"""The main job on embedded data: render Shapes3D, train a small QLAE and an AE of the same size, score both.

Run it with ``make demo``; ``make demo SEED=1`` trains from another seed. A demo that was interrupted goes on.
"""

import argparse
import time
from pathlib import Path

from rich.console import Console

import qlae
from qlae.progress import progress_bar
from qlae.report import draw_pictures, results_table

MODELS = ("qlae", "ae")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of weights and batches (default: 0)")
    parser.add_argument("--out", type=Path, help="folder for the two runs (default: runs/demo, runs/demo-seed1, …)")
    arguments = parser.parse_args()
    out = arguments.out or Path("runs") / ("demo" if arguments.seed == 0 else f"demo-seed{arguments.seed}")

    started = time.monotonic()
    console = Console()
    data = qlae.load_data("shapes3d", resolution=32)
    with progress_bar("rendering", len(data)) as report:
        data = data.in_memory(progress=report)

    runs = []
    for model in MODELS:
        console.print(f"Training a small [bold]{model}[/bold] on {len(data):,} rendered images")
        run = qlae.train(model, data, out=out / model, size="small", seed=arguments.seed)
        draw_pictures(run)
        runs.append(run)

    console.print(results_table(runs))
    for run in runs:
        pictures = ", ".join(path.name for path in sorted(run.path.glob("*.png")))
        console.print(f"[bold]{run.path}[/bold]: results.json, {pictures}", highlight=False)
    console.print(f"{time.monotonic() - started:.0f} seconds in all")


if __name__ == "__main__":
    main()
