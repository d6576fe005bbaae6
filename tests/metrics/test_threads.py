"""Fits in threads give the same values, in the caller's context."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from qlae.metrics import infoe, infomec
from qlae.metrics.parallel import available_threads, map_in_threads


def test_results_are_in_order_and_calls_see_the_context_of_the_caller() -> None:
    with np.errstate(divide="raise"):
        settings = map_in_threads(lambda item: (item, np.geterr()["divide"]), range(10), 3)
    assert settings == [(item, "raise") for item in range(10)]


def test_an_error_in_a_thread_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        map_in_threads(lambda item: 1 // item, range(-1, 3), 2)


def test_the_number_of_threads_can_be_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert available_threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert available_threads() >= 1


def test_threads_change_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    sources = rng.integers(0, 4, (400, 3))
    codes = np.where(rng.random((400, 3)) < 0.8, sources, rng.integers(0, 4, (400, 3)))
    alone = infomec(sources, codes)
    monkeypatch.setattr(infoe, "MANY", 100)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    together = infomec(sources, codes)
    assert (together.infoe, together.infoe_scalar) == (alone.infoe, alone.infoe_scalar)


def test_the_linear_algebra_of_a_first_fit_has_one_thread() -> None:
    code = """
import numpy as np
from threadpoolctl import threadpool_info
from qlae.metrics import infoe
from qlae.metrics.inputs import check_latents, check_sources

fit, seen = infoe.fit_continuous, []
def recording(*arguments, **options):
    result = fit(*arguments, **options)
    seen.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
    return result

infoe.fit_continuous = recording
sources = np.random.default_rng(0).integers(0, 3, (200, 2))
latents = sources + np.random.default_rng(1).normal(size=(200, 2))
infoe.explicitness_per_source(check_sources(sources), check_latents(latents), "converged", "scalar")
print(len(seen) > 2, set(seen))
"""
    two = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=two)
    assert done.stdout.strip() == "True {1}", done.stderr
