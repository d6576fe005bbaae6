"""Tiny plans, and an engine inside this process, so that studies take seconds."""

import warnings

from qlae.study import Plan
from qlae.study.engine import Event
from qlae.study.worker import run_job

TINY = {
    "size": "small",
    "steps": 20,
    "batch_size": 8,
    "num_samples": 40,
    "metrics": ["infomec"],
    "tune_seeds": 1,
    "rerun_seeds": 2,
    "data": {"shapes3d": {"resolution": 16, "sources": ["floor hue", "shape"]}},
    "models": {"qlae": {"grid": [0.1, 0.3]}, "ae": {"grid": []}},
}

#: A module of a user that registers a preset.
OWN_MODEL = """
from dataclasses import replace

from qlae.presets import MODELS

MODELS["mine"] = replace(MODELS["qlae"], weight_decay=0.2, published=False)
"""


def tiny_plan(**changes) -> Plan:
    return Plan.from_content(TINY | changes, name="tiny")


class InlineEngine:
    """Run jobs one after another in this process, record their names, and optionally stop after some of them."""

    num_workers = 1
    device_type = "cpu"
    imports = ()

    def describe(self):
        return "this process"

    def __init__(self, stop_after: int | None = None):
        self.stop_after, self.names = stop_after, []

    def run(self, jobs, folder):
        for job in jobs:
            if len(self.names) == self.stop_after:
                raise KeyboardInterrupt
            yield Event(job, "running")
            self.names.append(job.name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # tiny models may have too few active latents
                yield Event(job, **run_job(job, folder.run(job.name), device="cpu"))
