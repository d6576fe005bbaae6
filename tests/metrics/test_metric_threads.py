"""Small fits use one thread."""

from __future__ import annotations

import os
import subprocess
import sys


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
