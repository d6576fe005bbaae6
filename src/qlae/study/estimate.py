"""Estimate how long a study takes: roughly before it starts, then from its own finished runs."""

import math
from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from ..observations import IMAGES, SERIES, VECTORS
from ..presets import MODELS, training_preset
from .folder import Entry
from .job_data import kind_and_shape
from .jobs import Job, num_updates

# Seconds per update of an autoencoder at the size's own batch size, on one CPU thread (small at 32×32, full at 64×64)
# or on a data-centre GPU. Each was measured on one machine (docs/performance.md): trust the order of magnitude only.
SECONDS_PER_UPDATE = {("small", "cpu"): 0.02, ("full", "cpu"): 4.4, ("small", "cuda"): 0.001, ("full", "cuda"): 0.0023}
# What these times are for, in pixels, and what else takes as long on a CPU: so many vectors of any width, which dense
# networks bring to their own width at once, or so many time steps of a series.
MEASURED = {
    ("small", IMAGES): 32 * 32,
    ("full", IMAGES): 64 * 64,
    ("small", VECTORS): 12,
    ("full", VECTORS): 300,
    ("small", SERIES): 50,
    ("full", SERIES): 2_000,
}
SCORING_SECONDS = {"infomec": 10.0, "dci": 40.0}  # on 10,000 samples, for both sets of weights
OTHER_SCORING_SECONDS = 5.0
OVERHEAD_SECONDS = 3.0  # loading, writing files, drawing pictures


def run_seconds(job: Job, device_type: str) -> float:
    """Return a guess at the seconds that a run takes on one worker."""
    size = job.options.get("size", "full")
    preset = MODELS[job.model_name].training_preset(size)
    batch = job.options.get("batch_size", preset.batch_size) / training_preset(size, "autoencoding").batch_size
    scale = _relative_work(job, size, batch) if device_type == "cpu" else 1.0
    update = SECONDS_PER_UPDATE[size, device_type] * scale * preset.relative_seconds[device_type]
    return num_updates(job) * update + scoring_seconds(job) + OVERHEAD_SECONDS


def _relative_work(job: Job, size: str, batch: float) -> float:
    """Return how long an update takes, relative to one on what was measured; `batch` is relative to that as well."""
    kind, shape = kind_and_shape(job)
    work = math.prod(shape[:-1]) / MEASURED[size, kind] * batch  # pixels, time steps, or 1 for a vector
    return max(work, 0.2) if kind == IMAGES else work


def scoring_seconds(job: Job) -> float:
    """Return a guess at the seconds that scoring a run's sample takes."""
    full = sum(SCORING_SECONDS.get(metric, OTHER_SCORING_SECONDS) for metric in job.metrics)
    return full * job.num_samples / 10_000


def seconds_left(entries: Iterable[Entry], num_workers: int) -> float | None:
    """Return the seconds until all runs are over, from the mean time of finished runs of the same model.

    Returns:
        None as long as no run has finished.
    """
    durations: dict[str, list[float]] = defaultdict(list)
    entries = list(entries)
    for entry in entries:
        if entry.state == "done" and entry.seconds:
            durations[entry.model].append(entry.seconds)
            durations[""].append(entry.seconds)
    if not durations:
        return None
    shares = {"waiting": 1.0, "running": 0.5}
    work = sum(fmean(durations.get(entry.model) or durations[""]) * shares.get(entry.state, 0.0) for entry in entries)
    return work / max(1, num_workers)


def format_seconds(seconds: float) -> str:
    """Return a duration in a unit that suits it.

    >>> format_seconds(42), format_seconds(1_500), format_seconds(40_000), format_seconds(400_000)
    ('42 s', '25 min', '11 h', '5 days')
    """
    for limit, unit, name in ((100, 1, "s"), (6_000, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86_400:,.0f} days"
