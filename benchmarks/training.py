"""Measure the speed of training, alternating with a baseline; compare ratios rather than absolute times.

    python benchmarks/training.py demo            # the training of `make demo`, compared with its first version
    python benchmarks/training.py full            # a full-size update, compared with plain PyTorch on the same device
    python benchmarks/training.py compile         # an update on a CPU: fused, plain, and plain after torch.compile
    python benchmarks/training.py gpu             # full-size updates of several models on a GPU, in four modes
    python benchmarks/training.py terms           # what each loss term of an objective costs

`demo` checks out the first version from the repository's history (`git worktree`), trains a few hundred updates with
both versions from the command line, with one thread each, and reads the times from their logs.

`compile` takes turns with three forms of the same update: the fast path of qlae, its plain operations, and the plain
operations with the loss of each player compiled by `torch.compile`, whose compilation is not counted.

`gpu` measures the defaults (bfloat16, CUDA graphs and fused kernels), the same in float32, eager float32, and plain
PyTorch in float32. For GANs, it measures cycles of five encoder updates and one generator update. It also reports the
start-up time, from building the state to the launch of the first recorded graph. The first start-up includes the
initialisation of CUDA and the compilation of kernels, which later ones do not need. Models whose objective needs
float32 have it as their default too.

`terms` trains each model with all terms of its objective and without each of them in turn, in its default mode; the
difference is the cost of the term. That of the total correlation includes the updates of the discriminator.
"""

import argparse
import dataclasses
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from plain import PlainGANStep, PlainQLAE, PlainQLInfoWGAN, PlainStep
from timing import Updates, describe, machine, milliseconds, up_to_multiple

from qlae._io import write_json
from qlae.data import SourceDataset, data_config, load_data
from qlae.ops import dispatch
from qlae.presets import MODELS
from qlae.registry import OBJECTIVES
from qlae.resolving import resolve
from qlae.training.state import build_state

ROOT = Path(__file__).parents[1]
FIRST = "c9751f7"  # the first version of the demo

TERM_MODELS = ("tripod", "factor-vae", "factor-qvae")
GPU_MODELS = ("qlae", "ae", "vq-vae", "beta-vae", "beta-tcvae", "qlinfowgan-gp")
# Modes of training: name → precision, compile.
MODES = {"default": ("bfloat16", True), "float32": ("float32", True), "eager": ("float32", False)}
PLAIN = {"qlae": (PlainQLAE, PlainStep), "qlinfowgan-gp": (PlainQLInfoWGAN, PlainGANStep)}
PLAIN_FORM: dict[str, Any] = {"is_plain": lambda: True, "uses_kernels": lambda x: False}
EAGER_SHARE = 5  # eager modes make this many times fewer updates per turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("demo", "full", "compile", "gpu", "terms"))
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--updates", type=int, help="updates per turn (default: 300 for `demo`, 50 for `gpu`)")
    parser.add_argument("--first", default=FIRST, help="the revision that `demo` is compared with")
    parser.add_argument("--model", default="qlae", help="model of `demo` and `full`")
    parser.add_argument("--models", nargs="+", help=f"of `gpu` ({' '.join(GPU_MODELS)}) or `terms`")
    parser.add_argument(
        "--size", choices=("full", "small"), default="full", help="of the networks of `terms` and `compile`"
    )
    parser.add_argument("--resolution", type=int, default=32, help="of the images of `compile`")
    parser.add_argument("--batch-size", type=int, help="default: the paper's, 128 and for GANs 64")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", help="default: cpu for `full`, cuda for `gpu` and `terms`")
    parser.add_argument("--out", type=Path, help="JSON file for the results of `gpu` and `terms`")
    options = parser.parse_args()
    {"demo": demo, "full": full, "compile": compiled, "gpu": gpu, "terms": terms}[options.what](options)


def demo(options: argparse.Namespace) -> None:
    """Compare the training of the demo with its first version."""
    with checkout(options.first) as first:
        sources = {"now": ROOT / "src", f"first ({options.first})": first / "src"}
        times: dict[str, list[float]] = {name: [] for name in sources}
        for _ in range(options.turns):
            for name, source in sources.items():
                times[name].append(time_training(source, options.model, options.updates or 300))
    report(times)


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """Provide a temporary copy of the repository at a revision."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "first"
        subprocess.run(["git", "worktree", "add", "--detach", str(path), revision], cwd=ROOT, check=True)
        try:
            yield path
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(path)], cwd=ROOT, check=True)


def time_training(source: Path, model: str, updates: int) -> float:
    """Return the milliseconds per update of the demo's training with the package at ``source``.

    The first 100 updates are not counted.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "qlae", "train", model, "--size", "small", "--resolution", "32"]
        command += ["--sources", "floor hue", "wall hue", "shape", "--steps", str(updates + 100), "--threads", "1"]
        command += ["--num-latents", "12", "--device", "cpu", "--no-evaluate", "--quiet", "--out", folder + "/run"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(source)})
        rows = [json.loads(line) for line in (Path(folder) / "run" / "log.jsonl").read_text().splitlines()]
    return 1000 * (rows[-1]["seconds"] - rows[0]["seconds"]) / (rows[-1]["step"] - rows[0]["step"])


def full(options: argparse.Namespace) -> None:
    """Compare a full-size update with plain PyTorch."""
    device = torch.device(options.device or "cpu")
    torch.set_num_threads(options.threads)
    data = load_images()
    config = resolve(options.model, data_config(data), 6, batch_size=options.batch_size)
    state = build_state(config, data, device)
    images = torch.from_numpy(data.images).to(device)
    plain = PlainStep(PlainQLAE().to(device), images, batch_size=config.training.batch_size, learning_rate=1e-3)
    times: dict[str, list[float]] = {"now": [], "plain PyTorch": []}
    for number in range(1, options.turns + 2):
        ours = milliseconds(lambda number=number: state.update(number), device)
        theirs = milliseconds(plain, device)
        if number > 1:  # the first warms up
            times["now"].append(ours)
            times["plain PyTorch"].append(theirs)
    report(times)


def compiled(options: argparse.Namespace) -> None:
    """Compare the fast path, plain operations, and plain operations after ``torch.compile``, in turns on a CPU."""
    device = torch.device(options.device or "cpu")
    torch.set_num_threads(options.threads)
    data = load_images(options.resolution)
    config = resolve(options.model, data_config(data), 6, size=options.size, batch_size=options.batch_size)
    sides = {
        "fast path": Updates(config, data, device, compile=True),
        "plain": Updates(config, data, device, compile=False),
        "torch.compile": Updates(config, data, device, compile=False),
    }
    for turn in sides["torch.compile"].update.turns:
        turn.player = dataclasses.replace(turn.player, loss=torch.compile(turn.player.loss))
    torch._dynamo.config.recompile_limit = 64
    # The choice of an implementation is a context variable, which would split the graph at every operation.
    with mock.patch.multiple(dispatch, **PLAIN_FORM):
        sides["torch.compile"](2)
    for name in ("fast path", "plain"):
        sides[name](2)
    times: dict[str, list[float]] = {name: [] for name in sides}
    count = options.updates or 10
    for _ in range(options.turns):
        for name, updates in sides.items():
            plain = mock.patch.multiple(dispatch, **PLAIN_FORM)
            with plain if name == "torch.compile" else nullcontext():
                times[name].append(milliseconds(partial(updates, count), device) / count)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        share = medians[name] / medians["fast path"]
        print(
            f"{name:14} best {min(values):8.2f} ms  median {medians[name]:8.2f} ms per update  {share:.2f} of fast path"
        )


def load_images(resolution: int = 64) -> SourceDataset:
    """Return a small rendered data set, in memory."""
    return load_data("shapes3d", resolution=resolution, sources=["floor hue", "wall hue", "shape"]).in_memory()


def report(times: dict[str, list[float]]) -> None:
    """Print the best and the median time of both sides, and the speed-up of the first."""
    best = {name: min(values) for name, values in times.items()}
    for name, values in times.items():
        print(f"{name:24} best {best[name]:8.2f} ms  median {statistics.median(values):8.2f} ms per update")
    now, other = best.values()
    medians = [statistics.median(values) for values in times.values()]
    print(f"speed-up {other / now:.2f} by the best turn, {medians[1] / medians[0]:.2f} by the median")


def gpu(options: argparse.Namespace) -> None:
    """Measure full-size updates of several models in four modes."""
    device = torch.device(options.device or "cuda")
    torch.set_num_threads(options.threads)
    data = load_images()
    results: dict[str, Any] = {}
    print(HEADER, flush=True)
    for model in options.models or GPU_MODELS:
        results[model] = measure_modes(model, data, device, options)
        print(row(model, results[model]), flush=True)
        gc.collect()  # frees graphs and their memory
    finish(results, device, options)


def finish(results: dict[str, Any], device: torch.device, options: argparse.Namespace) -> None:
    """Print the machine, and write the results if a file is asked for."""
    where = machine(device)
    print(describe(where))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(options.out, where | {"models": results})


def terms(options: argparse.Namespace) -> None:
    """Measure what each term of an objective costs per update."""
    device = torch.device(options.device or "cuda")
    torch.set_num_threads(options.threads)
    data = load_images()
    results: dict[str, Any] = {}
    for model in options.models or TERM_MODELS:
        results[model] = times = measure_terms(model, data, device, options)
        everything = times["all terms"]
        print(f"{model:15}{everything:9.2f} ms per update", flush=True)
        for name, value in times.items():
            if name != "all terms":
                print(f"  {name:25}{value:9.2f} ms{everything - value:9.2f} ms for the term", flush=True)
        gc.collect()
    finish(results, device, options)


def measure_terms(
    model: str, data: SourceDataset, device: torch.device, options: argparse.Namespace
) -> dict[str, float]:
    """Return the milliseconds per update with all terms and without each; the variants alternate."""
    precision = default_precision(model) if device.type == "cuda" else "float32"
    config = resolve(model, data_config(data), 6, size=options.size, batch_size=options.batch_size, precision=precision)
    weights = config.objective.weights
    own = [name for name in OBJECTIVES[MODELS[model].objective].part.terms if name in weights and name != "reconstruct"]
    variants = {"all terms": weights}
    variants |= {f"without {name}": {n: w for n, w in weights.items() if n != name} for name in own}
    work: dict[str, tuple[Callable[[int], None], int]] = {}
    for name, kept in variants.items():
        objective = dataclasses.replace(config.objective, weights=kept)
        ours = Updates(dataclasses.replace(config, objective=objective), data, device, compile=True)
        ours.start()
        work[name] = ours, up_to_multiple(options.updates or 50, max(ours.block, ours.period))
    times: dict[str, list[float]] = {name: [] for name in work}
    for number in range(options.turns + 1):
        for name, (make, count) in work.items():
            spent = milliseconds(partial(make, count), device) / count
            if number > 0:  # the first warms up
                times[name].append(spent)
    return {name: statistics.median(values) for name, values in times.items()}


def default_precision(model: str) -> str:
    """Return the precision in which a model trains on a GPU unless another is asked for."""
    return "bfloat16" if OBJECTIVES[MODELS[model].objective].part.trains_in_bfloat16 else "float32"


def measure_modes(model: str, data: SourceDataset, device: torch.device, options: argparse.Namespace) -> dict[str, Any]:
    """Return the times of a model's updates in each mode; the modes alternate."""
    work: dict[str, tuple[Callable[[int], None], int]] = {}  # a function that makes updates, and their number per turn
    start_up, updates = {}, options.updates or 50
    for name, (precision, compile) in MODES.items():
        precision = default_precision(model) if name == "default" else precision
        config = resolve(model, data_config(data), 6, batch_size=options.batch_size, precision=precision)
        start = time.perf_counter()
        ours = Updates(config, data, device, compile=compile)
        ours.start()
        if compile:
            start_up[name] = round(time.perf_counter() - start, 2)
        per_turn = updates if compile else -(-updates // EAGER_SHARE)
        work[name] = ours, up_to_multiple(per_turn, max(ours.block, ours.period))
    if model in PLAIN:
        work["plain"] = plain_updates(model, data, config.training.batch_size, device), work["eager"][1]
    unit = ours.period
    times: dict[str, list[float]] = {name: [] for name in work}
    for number in range(options.turns + 1):
        for name, (make, count) in work.items():
            spent = milliseconds(partial(make, count), device) * unit / count
            if number > 0:  # the first warms up
                times[name].append(spent)
    return {
        "batch_size": config.training.batch_size,
        "updates_per_unit": unit,
        "milliseconds": {name: statistics.median(values) for name, values in times.items()},
        "turns": times,
        "start_up_seconds": start_up,
    }


def plain_updates(model: str, data: SourceDataset, batch_size: int, device: torch.device) -> Callable[[int], None]:
    """Return a function that makes a number of updates in plain PyTorch, with torch's default switches."""
    network, step = PLAIN[model]
    plain = step(network().to(device), torch.from_numpy(data.images).to(device), batch_size=batch_size)
    per_call = 5 if step is PlainGANStep else 1  # updates

    def make(num_updates: int) -> None:
        for _ in range(num_updates // per_call):
            plain()

    return make


COLUMNS = (*MODES, "plain")
HEADER = (
    f"{'':27}{'milliseconds, median':>36}{'speed-up over':>20}{'start, seconds':>20}\n"
    f"{'model':15}{'batch':>5}{'unit':>7}{''.join(f'{name:>9}' for name in COLUMNS)}"
    f"{'eager':>12}{'plain':>8}{'default':>12}{'float32':>8}"
)


def row(model: str, result: dict[str, Any]) -> str:
    """Return one line of the table under ``HEADER``."""
    times, start = result["milliseconds"], result["start_up_seconds"]
    unit = "update" if result["updates_per_unit"] == 1 else "cycle"
    cells = [f"{times[name]:9.2f}" if name in times else f"{'–':>9}" for name in COLUMNS]
    cells += [f"{times['eager'] / times['default']:12.2f}"]
    cells += [f"{times['plain'] / times['default']:8.2f}" if "plain" in times else f"{'–':>8}"]
    cells += [f"{start['default']:12.1f}{start['float32']:8.1f}"]
    return f"{model:15}{result['batch_size']:5}{unit:>7}{''.join(cells)}"


if __name__ == "__main__":
    main()
