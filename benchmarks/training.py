"""How fast training is, in turns with what it is compared to; ratios are what counts.

    python benchmarks/training.py demo            # the training of `make demo`, beside that of its first version
    python benchmarks/training.py full            # a full-size update, beside plain PyTorch on the same device

`demo` takes the first version from the repository's history (`git worktree`), trains the same few hundred updates with
both from the command line, one thread each, and reads the time from their logs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from plain import PlainQLAE, PlainStep

from qlae.data import load_data
from qlae.presets import resolve
from qlae.training.launch import build_state, data_config

ROOT = Path(__file__).parents[1]
FIRST = "c9751f7"  # the demo as it first was


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("demo", "full"))
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--updates", type=int, default=300, help="a turn of `demo`")
    parser.add_argument("--first", default=FIRST, help="the revision that `demo` is compared to")
    parser.add_argument("--model", default="qlae")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.what == "demo":
        demo(options)
    else:
        full(options)


def demo(options: argparse.Namespace) -> None:
    with checkout(options.first) as first:
        sources = {"now": ROOT / "src", f"first ({options.first})": first / "src"}
        times: dict[str, list[float]] = {name: [] for name in sources}
        for _ in range(options.turns):
            for name, source in sources.items():
                times[name].append(trained(source, options.model, options.updates))
    report(times)


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A copy of the repository at a revision, for a while."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "first"
        subprocess.run(["git", "worktree", "add", "--detach", str(path), revision], cwd=ROOT, check=True)
        try:
            yield path
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(path)], cwd=ROOT, check=True)


def trained(source: Path, model: str, updates: int) -> float:
    """Milliseconds an update of the demo's training with the package at ``source``, its first 100 left out."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "qlae.cli", "train", model, "--size", "small", "--resolution", "32"]
        command += ["--sources", "floor hue", "wall hue", "shape", "--steps", str(updates + 100), "--threads", "1"]
        command += ["--num-latents", "12", "--device", "cpu", "--no-evaluate", "--quiet", "--out", folder + "/run"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(source)})
        rows = [json.loads(line) for line in (Path(folder) / "run" / "log.jsonl").read_text().splitlines()]
    return 1000 * (rows[-1]["seconds"] - rows[0]["seconds"]) / (rows[-1]["step"] - rows[0]["step"])


def full(options: argparse.Namespace) -> None:
    device = torch.device(options.device)
    torch.set_num_threads(options.threads)
    data = load_data("shapes3d", resolution=64, sources=["floor hue", "wall hue", "shape"]).in_memory()
    config = resolve(options.model, data_config(data), 6, batch_size=options.batch_size)
    state = build_state(config, data, device)
    images = torch.from_numpy(data.images).to(device)
    plain = PlainStep(PlainQLAE().to(device), images, batch_size=options.batch_size, learning_rate=1e-3)
    times: dict[str, list[float]] = {"now": [], "plain PyTorch": []}
    for number in range(1, options.turns + 2):
        ours = milliseconds(lambda number=number: state.update(number), device)
        theirs = milliseconds(plain, device)
        if number > 1:  # the first warms up
            times["now"].append(ours)
            times["plain PyTorch"].append(theirs)
    report(times)


def milliseconds(work: Callable[[], None], device: torch.device) -> float:
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return 1000 * (time.perf_counter() - start)


def report(times: dict[str, list[float]]) -> None:
    """The best and the median of each, and how many times faster the first of them is."""
    best = {name: min(values) for name, values in times.items()}
    for name, values in times.items():
        print(f"{name:24} best {best[name]:8.2f} ms  median {statistics.median(values):8.2f} ms an update")
    now, other = best.values()
    medians = [statistics.median(values) for values in times.values()]
    print(f"{other / now:.2f} times faster by the best, {medians[1] / medians[0]:.2f} by the median")


if __name__ == "__main__":
    main()
