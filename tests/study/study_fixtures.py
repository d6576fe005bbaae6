"""Tiny plans, and an engine in this very process, so that studies take seconds."""

import warnings

import pytest

from qlae.study import Plan
from qlae.study.engine import Event
from qlae.study.worker import carry_out

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


def tiny_plan(**changes) -> Plan:
    return Plan.from_content(TINY | changes, name="tiny")


class InlineEngine:
    """Carries out jobs one after another, here; notes their names, and may be stopped after some."""

    num_workers = 1
    kind = "cpu"

    def told(self):
        return "the process itself"

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
                yield Event(job, **carry_out(job, folder.run(job.name), device="cpu"))


@pytest.fixture
def engine():
    return InlineEngine()
