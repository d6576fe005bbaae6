"""How long a study will take: roughly before it has begun, from its own finished runs after that."""

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from ..presets import MODELS, SIZES
from .folder import Entry
from .jobs import Job, num_updates

# Seconds an update of an autoencoder at the size's own batch: one CPU thread (small at 32×32, full at 64×64), or a GPU
# of a data centre. Measured on one machine each (docs/performance.md), so good for the order of magnitude.
SECONDS_AN_UPDATE = {("small", "cpu"): 0.02, ("full", "cpu"): 4.4, ("small", "cuda"): 0.001, ("full", "cuda"): 0.0023}
ADVERSARIAL = {"cpu": 3.0, "cuda": 2.0}  # times an autoencoder's
RESOLUTION = {"small": 32, "full": 64}
EVALUATION_SECONDS = {"infomec": 10.0, "dci": 40.0}  # at 10,000 samples, both sets of weights
OVERHEAD = 3.0  # files, models, pictures


def run_seconds(job: Job, device: str) -> float:
    """A guess at the seconds that a run takes on one worker."""
    size = job.options.get("size", "full")
    preset = SIZES[size][MODELS[job.model_name].objective]
    pixels = (job.resolution / RESOLUTION[size]) ** 2
    batch = job.options.get("batch_size", preset.batch_size) / SIZES[size]["autoencoding"].batch_size
    adversarial = ADVERSARIAL[device] if MODELS[job.model_name].objective == "adversarial" else 1.0
    update = SECONDS_AN_UPDATE[size, device] * (max(pixels * batch, 0.2) if device == "cpu" else 1.0) * adversarial
    return num_updates(job) * update + scoring_seconds(job) + OVERHEAD


def scoring_seconds(job: Job) -> float:
    """A guess at the seconds that scoring a run's sample takes."""
    return sum(EVALUATION_SECONDS.get(metric, 5.0) for metric in job.metrics) * job.num_samples / 10_000


def seconds_left(entries: Iterable[Entry], num_workers: int) -> float | None:
    """Seconds until all runs are over, from the mean of those of their kind that are; None before any is."""
    taken: dict[str, list[float]] = defaultdict(list)
    entries = list(entries)
    for entry in entries:
        if entry.state == "done" and entry.seconds:
            taken[entry.model].append(entry.seconds)
            taken[""].append(entry.seconds)
    if not taken:
        return None
    shares = {"waiting": 1.0, "running": 0.5}
    work = sum(fmean(taken.get(entry.model) or taken[""]) * shares.get(entry.state, 0.0) for entry in entries)
    return work / max(1, num_workers)


def told(seconds: float) -> str:
    """A time in words.

    >>> told(42), told(1_500), told(40_000), told(400_000)
    ('42 s', '25 min', '11 h', '5 days')
    """
    for most, unit, name in ((100, 1, "s"), (6_000, 60, "min"), (172_800, 3_600, "h")):
        if seconds < most:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86_400:,.0f} days"
