"""Check that the fast path trains as well as eager float32: QLAE from the same seeds, in both modes.

    python benchmarks/agreement.py --device cuda --out results/agreement --runs runs/agreement
    python benchmarks/agreement.py --device cpu --size small --resolution 16 --steps 300 --sources "floor hue" shape

The eager runs train at the same time, one process per run, because they wait for the host most of the time; the fast
runs train one after the other. The same command resumes an interrupted benchmark. It writes `agreement.json` (scores
and loss curves) and `agreement.png`, and prints which fast scores lie within the spread of the eager ones.

With the same seed, both modes start from the same weights and batches, but rounding soon makes any two runs diverge.
The question is therefore whether the fast runs look like further draws from the distribution of the eager runs. Some of
such draws, too, would lie outside the spread of a few runs, so each count is printed together with the number that is
expected by chance.
"""

import argparse
import math
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from numpy.typing import NDArray
from scipy import stats

from qlae._io import write_json, write_whole
from qlae._process import pick_device
from qlae.data import RenderedImages, load_data
from qlae.metrics import find_score
from qlae.runs.directory import Run

DPI = 150
MODES = {"eager": ["--precision", "float32", "--no-compile"], "fast": []}
COLOURS = {"eager": "C0", "fast": "C1"}
SCORES = {key: find_score(key).heading for key in ("infom", "infoe", "infoc", "psnr")}
DRAWN = ("infom", "infoe", "psnr")
WEIGHTS = ("averaged", "raw")
SMOOTHED = 500  # updates over which each point of the plotted curves is averaged
LAST = 1000  # updates at the end of a run whose loss is compared
PATIENCE = 5  # seconds that processes have to save their runs after a signal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("results/agreement"), help="folder for the results")
    parser.add_argument("--runs", type=Path, default=Path("runs/agreement"), help="folder for the run directories")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--size", choices=("full", "small"), default="full")
    parser.add_argument("--resolution", type=int, default=64)
    parser.add_argument("--sources", nargs="+", help="sources that vary (default: all)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped; run the same command to resume"))

    paths = {(mode, seed): options.runs / f"{mode}-{seed}" for mode in MODES for seed in options.seeds}
    unfinished = [key for key, path in paths.items() if not is_finished(Run(path), options.steps)]
    commands = {key: command(*key, paths[key], options) for key in unfinished}
    train({key: line for key, line in commands.items() if key[0] == "eager"})
    for key, line in commands.items():
        if key[0] == "fast":
            train({key: line})

    runs = [summarise(mode, seed, Run(path), options.steps) for (mode, seed), path in paths.items()]
    agreement = compare_scores(runs)
    least = least_loss(options)
    band = within_band(runs, least)
    report(agreement, band, len(options.seeds))
    content = training_machine(Run(path) for path in paths.values()) | {
        "model": "qlae",
        "size": options.size,
        "resolution": options.resolution,
        "least_loss": least,
        "agreement": agreement,
        "curve_within_band": band,
        "runs": runs,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(options.out / "agreement.json", content)
    picture = figure(content)
    write_whole(options.out / "agreement.png", partial(picture.savefig, format="png", dpi=DPI))


def command(mode: str, seed: int, path: Path, options: argparse.Namespace) -> list[str]:
    """Return the command line that trains one run."""
    line = [sys.executable, "-m", "qlae", "train", "qlae", *MODES[mode], "--seed", str(seed), "--out", str(path)]
    line += ["--steps", str(options.steps), "--size", options.size, "--resolution", str(options.resolution)]
    line += ["--device", options.device, "--quiet"]
    line += ["--sources", *options.sources] if options.sources else []
    return line + (["--threads", "1"] if options.device == "cpu" else [])


def train(commands: dict[tuple[str, int], list[str]]) -> None:
    """Run all commands at the same time and wait for them."""
    start = time.monotonic()
    processes = {key: subprocess.Popen(line, stdout=subprocess.DEVNULL) for key, line in commands.items()}
    try:
        failed = [f"{mode} {seed}" for (mode, seed), process in processes.items() if process.wait()]
    except BaseException:
        stop(processes.values())
        raise
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; run the same command to resume")
    if commands:
        names = ", ".join(f"{mode} {seed}" for mode, seed in commands)
        print(f"{names}: trained and scored in {time.monotonic() - start:.0f} s", flush=True)


def stop(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Wait for processes to save their runs; terminate those that did not receive the signal themselves."""
    deadline = time.monotonic() + PATIENCE
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.terminate()
    for process in processes:
        process.wait()


def is_finished(run: Run, steps: int) -> bool:
    """Return whether a run was trained for ``steps`` updates and scored; exit if it has more."""
    if not run.results_path.is_file():
        return False
    num_updates = run.results["steps"]
    if num_updates > steps:
        sys.exit(f"{run.path} has {num_updates:,} updates, more than --steps {steps:,}; choose another --runs")
    return bool(num_updates == steps)


def summarise(mode: str, seed: int, run: Run, steps: int) -> dict[str, Any]:
    """Return the scores and the loss curve of a run."""
    results, log = run.results, run.log()
    last = [row["loss"] for row in log if row["step"] > steps - LAST]
    return {
        "mode": mode,
        "seed": seed,
        "precision": run.config.training.precision,
        "steps": steps,
        "seconds": results["seconds"],
        **{weights: {name: results[weights][name] for name in SCORES} for weights in WEIGHTS},
        "loss, last mean": statistics.fmean(last),
        "loss, last median": statistics.median(last),
        "curve": {key: [row[key] for row in log] for key in ("step", "loss")},
    }


def training_machine(runs: Iterable[Run]) -> dict[str, str]:
    """Return the machine and the torch version of the trainings, which may differ from those of this process."""
    results = [run.results for run in runs]
    return {
        "machine": ", ".join(dict.fromkeys(str(result["device"]) for result in results)),
        "torch": ", ".join(dict.fromkeys(str(result["versions"]["torch"]) for result in results)),
    }


def compare_scores(runs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return for each score the spread of the eager runs and the number of fast runs inside it."""
    values = {
        f"{title.partition(',')[0]}, {weights}": {
            mode: [run[weights][name] for run in runs if run["mode"] == mode] for mode in MODES
        }
        for weights in WEIGHTS
        for name, title in SCORES.items()
    }
    for name in ("loss, last mean", "loss, last median"):
        values[name] = {mode: [run[name] for run in runs if run["mode"] == mode] for mode in MODES}
    return {name: by_mode | spread(by_mode["eager"], by_mode["fast"]) for name, by_mode in values.items()}


def within_band(runs: list[dict[str, Any]], least: float) -> list[float]:
    """Return for each fast run the share of its smoothed loss curve between the extremes of the eager curves."""
    curves = {mode: [smooth(run, least)[1] for run in runs if run["mode"] == mode] for mode in MODES}
    low, high = np.min(curves["eager"], axis=0), np.max(curves["eager"], axis=0)
    return [float(np.mean((low <= curve) & (curve <= high))) for curve in curves["fast"]]


def spread(eager: list[float], fast: list[float]) -> dict[str, Any]:
    """Return the spread of the eager values and the number of fast values inside it.

    The spread is measured by the range and by two standard deviations.
    """
    middle = statistics.fmean(eager)
    reach = 2 * statistics.stdev(eager) if len(eager) > 1 else 0.0
    ends = {"range": (min(eager), max(eager)), "two_deviations": (middle - reach, middle + reach)}
    inside = {name: sum(low <= value <= high for value in fast) for name, (low, high) in ends.items()}
    return {"ends": ends, "inside": inside}


def by_chance(num_eager: int) -> dict[str, float]:
    """Return the probability that a further value from the same normal distribution lies inside the spread.

    >>> by_chance(3)["range"]
    0.5
    """
    if num_eager < 2:
        return {"range": 0.0, "two_deviations": 0.0}
    student = stats.t(num_eager - 1)
    return {
        "range": (num_eager - 1) / (num_eager + 1),
        "two_deviations": float(2 * student.cdf(2 / math.sqrt(1 + 1 / num_eager)) - 1),
    }


def report(agreement: dict[str, dict[str, Any]], band: list[float], num_seeds: int) -> None:
    """Print the comparison as a table."""
    print(f"{'score':18}{'eager: range':>20}{'mean ± 2 sd':>20}{'fast':>28}   inside: range, 2 sd")
    for name, compared in agreement.items():
        ends, digits = compared["ends"], 2 if name.startswith("PSNR") else 4
        low, high = ends["two_deviations"]
        counts = [f"{count} of {num_seeds}" for count in compared["inside"].values()]
        print(
            f"{name:18}{'–'.join(f'{end:.{digits}f}' for end in ends['range']):>20}"
            f"{f'{(low + high) / 2:.{digits}f} ± {(high - low) / 2:.{digits}f}':>20}"
            f"{' '.join(f'{value:.{digits}f}' for value in compared['fast']):>28}   {', '.join(counts)}"
        )
    chances = [f"{num_seeds * chance:.1f}" for chance in by_chance(num_seeds).values()]
    print(f"{'by chance':86}   {', '.join(f'{count} of {num_seeds}' for count in chances)}")
    shares = " ".join(f"{share:.0%}" for share in band)
    chance = by_chance(num_seeds)["range"]
    print(f"{shares} of the fast loss curves lie between the eager ones; {chance:.0%} would by chance")


def least_loss(options: argparse.Namespace) -> float:
    """Return the lower bound of the loss: the mean entropy of all image entries, taken as probabilities."""
    images = load_data("shapes3d", resolution=options.resolution, sources=options.sources).images
    pixels = (
        images.render_on(str(pick_device("auto")))
        if isinstance(images, RenderedImages)
        else torch.from_numpy(images[:])
    )
    counts = sum(torch.bincount(part.flatten(), minlength=256) for part in pixels.split(1000))
    level = np.arange(256) / 255
    entropies = stats.entropy([level, 1 - level])
    return float(np.average(entropies, weights=counts.cpu().numpy()))


def figure(content: dict[str, Any]) -> Figure:
    """Draw the loss curves of both modes in one panel, and the scores in one panel each."""
    runs = content["runs"]
    picture = Figure(figsize=(11.4, 3.4), layout="constrained")
    picture.suptitle(f"qlae, eager float32 and the defaults, {content['machine']}", fontsize=11)
    axes = picture.subplots(1, 1 + len(DRAWN), width_ratios=(3.2, *(1.0 for _ in DRAWN)))
    draw_curves(axes[0], runs, content["least_loss"])
    for one, name in zip(axes[1:], DRAWN, strict=True):
        draw_scores(one, runs, name)
    for weights, face in (("averaged", "0.4"), ("raw", "none")):
        axes[1].scatter([], [], s=28, facecolors=face, edgecolors="0.4", label=f"{weights} weights")
    handles = axes[1].get_legend_handles_labels()
    picture.legend(*handles, loc="outside lower right", ncols=2, fontsize=8, frameon=False)
    for one in axes:
        one.tick_params(labelsize=8)
        one.grid(alpha=0.3, linewidth=0.5)
    return picture


def draw_curves(axes: Any, runs: list[dict[str, Any]], least: float) -> None:
    """Draw the smoothed loss above its lower bound, with a band between the extremes of the eager runs."""
    curves = {mode: [smooth(run, least) for run in runs if run["mode"] == mode] for mode in MODES}
    steps = curves["eager"][0][0]
    values = np.stack([excess for _, excess in curves["eager"]])
    axes.fill_between(steps, values.min(0), values.max(0), color=COLOURS["eager"], alpha=0.25, linewidth=0)
    for mode, lines in curves.items():
        for i, (ends, excess) in enumerate(lines):
            axes.plot(ends, excess, color=COLOURS[mode], linewidth=1.0, label=None if i else mode)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("updates")
    axes.set_title("loss above the entropy of the pixels", fontsize=10)
    axes.legend(fontsize=8, frameon=False)


def smooth(run: dict[str, Any], least: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the updates at which the running means of a run's loss end, and the means minus the lower bound."""
    steps, losses = (np.asarray(run["curve"][key]) for key in ("step", "loss"))
    width = max(1, min(SMOOTHED // int(steps[0]), len(steps) // 3))
    return steps[width - 1 :], np.convolve(losses - least, np.full(width, 1 / width), "valid")


def draw_scores(axes: Any, runs: list[dict[str, Any]], name: str) -> None:
    """Draw one point per run: filled for averaged weights, hollow for raw weights."""
    for place, mode in enumerate(MODES):
        for shift, weights in ((-0.12, "averaged"), (0.12, "raw")):
            values = [run[weights][name] for run in runs if run["mode"] == mode]
            face = COLOURS[mode] if weights == "averaged" else "none"
            axes.scatter([place + shift] * len(values), values, s=28, facecolors=face, edgecolors=COLOURS[mode])
    axes.set_xlim(-0.5, len(MODES) - 0.5)
    axes.set_xticks(range(len(MODES)), MODES)
    axes.set_title(SCORES[name], fontsize=10)


if __name__ == "__main__":
    main()
