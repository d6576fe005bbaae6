"""Whether training fast is training the same: QLAE by the defaults beside eager float32, from the same seeds.

    python benchmarks/agreement.py --device cuda --out results/agreement --runs runs/agreement
    python benchmarks/agreement.py --device cpu --size small --resolution 16 --steps 300 --sources "floor hue" shape

The eager runs train at once, a process each, so that their hosts launch side by side; the fast ones one after the
other. The same call goes on where it was stopped. Writes `agreement.json` (scores and loss curves) and
`agreement.png`, and says which fast scores lie within the spread of the eager ones.

From the same seed both have the same weights and batches at first, but rounding soon drives any two runs apart. So what
can be asked is whether fast runs look like further draws from where the eager ones come from. Of such draws too some
lie outside the spread of a few, so beside each count stands how many would lie inside by chance alone.
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

from qlae._device import pick_device
from qlae._files import write_json, write_whole
from qlae.data import RenderedImages, load_data
from qlae.runs.directory import Run

DPI = 150
MODES = {"eager": ["--precision", "float32", "--no-compile"], "fast": []}
COLOURS = {"eager": "C0", "fast": "C1"}
SCORES = {"infom": "InfoM", "infoe": "InfoE", "infoc": "InfoC", "psnr": "PSNR, dB"}
DRAWN = ("infom", "infoe", "psnr")
WEIGHTS = ("averaged", "raw")
SMOOTHED = 500  # updates that a point of the drawn curves is the mean of
LAST = 1000  # updates whose loss is compared
PATIENCE = 5  # seconds in which processes that a signal reached have saved what they have


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("results/agreement"), help="a folder")
    parser.add_argument("--runs", type=Path, default=Path("runs/agreement"), help="a folder for the run directories")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--size", choices=("full", "small"), default="full")
    parser.add_argument("--resolution", type=int, default=64)
    parser.add_argument("--sources", nargs="+", help="that vary; all by default")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped; the same call goes on"))

    paths = {(mode, seed): options.runs / f"{mode}-{seed}" for mode in MODES for seed in options.seeds}
    left = [key for key, path in paths.items() if not finished(Run(path), options.steps)]
    commands = {key: command(*key, paths[key], options) for key in left}
    train({key: line for key, line in commands.items() if key[0] == "eager"})
    for key, line in commands.items():
        if key[0] == "fast":
            train({key: line})

    runs = [told_run(mode, seed, Run(path), options.steps) for (mode, seed), path in paths.items()]
    judged = judge(runs)
    least = least_loss(options)
    band = within_band(runs, least)
    report(judged, band, len(options.seeds))
    content = trained_on(Run(path) for path in paths.values()) | {
        "model": "qlae",
        "size": options.size,
        "resolution": options.resolution,
        "least_loss": least,
        "agreement": judged,
        "curve_within_band": band,
        "runs": runs,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(options.out / "agreement.json", content)
    drawn = figure(content)
    write_whole(options.out / "agreement.png", partial(drawn.savefig, format="png", dpi=DPI))


def command(mode: str, seed: int, path: Path, options: argparse.Namespace) -> list[str]:
    line = [sys.executable, "-m", "qlae.cli", "train", "qlae", *MODES[mode], "--seed", str(seed), "--out", str(path)]
    line += ["--steps", str(options.steps), "--size", options.size, "--resolution", str(options.resolution)]
    line += ["--device", options.device, "--quiet"]
    line += ["--sources", *options.sources] if options.sources else []
    return line + (["--threads", "1"] if options.device == "cpu" else [])


def train(commands: dict[tuple[str, int], list[str]]) -> None:
    """Run commands at once, and wait for all of them."""
    start = time.monotonic()
    processes = {key: subprocess.Popen(line, stdout=subprocess.DEVNULL) for key, line in commands.items()}
    try:
        failed = [f"{mode} {seed}" for (mode, seed), process in processes.items() if process.wait()]
    except BaseException:
        stop(processes.values())
        raise
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; the same call goes on")
    if commands:
        names = ", ".join(f"{mode} {seed}" for mode, seed in commands)
        print(f"{names}: trained and scored in {time.monotonic() - start:.0f} s", flush=True)


def stop(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Wait for processes that a signal reached as well; tell those that none reached. They save their runs."""
    deadline = time.monotonic() + PATIENCE
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.terminate()
    for process in processes:
        process.wait()


def finished(run: Run, steps: int) -> bool:
    if not run.results_path.is_file():
        return False
    made = run.results["steps"]
    if made > steps:
        sys.exit(f"{run.path} holds {made:,} updates, more than {steps:,}; choose another --runs")
    return made == steps


def told_run(mode: str, seed: int, run: Run, steps: int) -> dict[str, Any]:
    """What is kept of a run: its scores and its loss curve."""
    results, log = run.results, run.log()
    last = [row["loss"] for row in log if row["step"] > steps - LAST]
    return {
        "mode": mode,
        "seed": seed,
        "precision": run.config.precision,
        "steps": steps,
        "seconds": results["seconds"],
        **{weights: {name: results[weights][name] for name in SCORES} for weights in WEIGHTS},
        "loss, last mean": statistics.fmean(last),
        "loss, last median": statistics.median(last),
        "curve": {key: [row[key] for row in log] for key in ("step", "loss")},
    }


def trained_on(runs: Iterable[Run]) -> dict[str, str]:
    """The machine and the version of torch that runs were trained with, which need not be those of this call."""
    results = [run.results for run in runs]
    return {
        "machine": ", ".join(dict.fromkeys(str(found["device"]) for found in results)),
        "torch": ", ".join(dict.fromkeys(str(found["versions"]["torch"]) for found in results)),
    }


def judge(runs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For every score the spread of the eager runs, and how many of the fast ones lie in it."""
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
    """For each fast run the share of its smoothed loss curve that lies between the extremes of the eager ones."""
    curves = {mode: [smooth(run, least)[1] for run in runs if run["mode"] == mode] for mode in MODES}
    low, high = np.min(curves["eager"], axis=0), np.max(curves["eager"], axis=0)
    return [float(np.mean((low <= curve) & (curve <= high))) for curve in curves["fast"]]


def spread(eager: list[float], fast: list[float]) -> dict[str, Any]:
    """How far eager values reach, by their range and by two standard deviations, and how many fast ones that holds."""
    middle = statistics.fmean(eager)
    reach = 2 * statistics.stdev(eager) if len(eager) > 1 else 0.0
    ends = {"range": (min(eager), max(eager)), "two_deviations": (middle - reach, middle + reach)}
    inside = {name: sum(low <= value <= high for value in fast) for name, (low, high) in ends.items()}
    return {"ends": ends, "inside": inside}


def by_chance(num_eager: int) -> dict[str, float]:
    """The probability that one more value lies inside the spread of so many others of the same normal distribution.

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


def report(judged: dict[str, dict[str, Any]], band: list[float], num_seeds: int) -> None:
    print(f"{'score':18}{'eager: range':>20}{'mean ± 2 sd':>20}{'fast':>28}   inside: range, 2 sd")
    for name, found in judged.items():
        ends, digits = found["ends"], 2 if name.startswith("PSNR") else 4
        low, high = ends["two_deviations"]
        counts = [f"{count} of {num_seeds}" for count in found["inside"].values()]
        print(
            f"{name:18}{'–'.join(f'{end:.{digits}f}' for end in ends['range']):>20}"
            f"{f'{(low + high) / 2:.{digits}f} ± {(high - low) / 2:.{digits}f}':>20}"
            f"{' '.join(f'{value:.{digits}f}' for value in found['fast']):>28}   {', '.join(counts)}"
        )
    chances = [f"{num_seeds * chance:.1f}" for chance in by_chance(num_seeds).values()]
    print(f"{'by chance':86}   {', '.join(f'{count} of {num_seeds}' for count in chances)}")
    shares = " ".join(f"{share:.0%}" for share in band)
    print(f"of the fast loss curves {shares} lie between the eager ones; by chance {by_chance(num_seeds)['range']:.0%}")


def least_loss(options: argparse.Namespace) -> float:
    """What no reconstruction gets below: the mean entropy of the entries of all images, taken as probabilities."""
    images = load_data("shapes3d", resolution=options.resolution, sources=options.sources).images
    there = (
        images.render_on(str(pick_device("auto")))
        if isinstance(images, RenderedImages)
        else torch.from_numpy(images[:])
    )
    counts = sum(torch.bincount(part.flatten(), minlength=256) for part in there.split(1000))
    level = np.arange(256) / 255
    entropies = stats.entropy([level, 1 - level])
    return float(np.average(entropies, weights=counts.cpu().numpy()))


def figure(content: dict[str, Any]) -> Figure:
    """The loss curves over each other, and the scores beside each other."""
    runs = content["runs"]
    drawn = Figure(figsize=(11.4, 3.4), layout="constrained")
    drawn.suptitle(f"qlae, eager float32 beside the defaults, {content['machine']}", fontsize=11)
    axes = drawn.subplots(1, 1 + len(DRAWN), width_ratios=(3.2, *(1.0 for _ in DRAWN)))
    draw_curves(axes[0], runs, content["least_loss"])
    for one, name in zip(axes[1:], DRAWN, strict=True):
        draw_scores(one, runs, name)
    for weights, face in (("averaged", "0.4"), ("raw", "none")):
        axes[1].scatter([], [], s=28, facecolors=face, edgecolors="0.4", label=f"{weights} weights")
    handles = axes[1].get_legend_handles_labels()
    drawn.legend(*handles, loc="outside lower right", ncols=2, fontsize=8, frameon=False)
    for one in axes:
        one.tick_params(labelsize=8)
        one.grid(alpha=0.3, linewidth=0.5)
    return drawn


def draw_curves(axes: Any, runs: list[dict[str, Any]], least: float) -> None:
    """The loss above the least there can be, smoothed; eager runs with the band between their extremes."""
    curves = {mode: [smooth(run, least) for run in runs if run["mode"] == mode] for mode in MODES}
    steps = curves["eager"][0][0]
    values = np.stack([excess for _, excess in curves["eager"]])
    axes.fill_between(steps, values.min(0), values.max(0), color=COLOURS["eager"], alpha=0.25, linewidth=0)
    for mode, found in curves.items():
        for i, (at, excess) in enumerate(found):
            axes.plot(at, excess, color=COLOURS[mode], linewidth=1.0, label=None if i else mode)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("updates")
    axes.set_title("loss above the entropy of the pixels", fontsize=10)
    axes.legend(fontsize=8, frameon=False)


def smooth(run: dict[str, Any], least: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Running means of a run's loss, less the least loss, and the updates that they end at."""
    steps, losses = (np.asarray(run["curve"][key]) for key in ("step", "loss"))
    width = max(1, min(SMOOTHED // int(steps[0]), len(steps) // 3))
    return steps[width - 1 :], np.convolve(losses - least, np.full(width, 1 / width), "valid")


def draw_scores(axes: Any, runs: list[dict[str, Any]], name: str) -> None:
    """A point a run: filled for averaged weights, hollow for raw ones."""
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
