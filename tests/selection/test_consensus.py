"""The consensus of several runs: arrays and runs with known answers, bad input, encoding."""

import subprocess
import sys

import numpy as np
import pytest

import qlae
from qlae.selection.consensus import consensus


def draw_sources(num_rows=3000, sizes=(4, 3, 5), seed=0):
    random = np.random.default_rng(seed)
    return np.column_stack([random.integers(size, size=num_rows) for size in sizes])


def relabelled(sources, seed, *, columns=None):
    """Codes: each source in one latent, in an order and numbering of their own, from 7 on."""
    random = np.random.default_rng(seed)
    columns = random.permutation(sources.shape[1]) if columns is None else columns
    return np.column_stack([7 + random.permutation(sources[:, c].max() + 1)[sources[:, c]] for c in columns])


def test_sources_that_all_find_are_confirmed_and_pure():
    sources = draw_sources()
    found = consensus([relabelled(sources, seed) for seed in range(4)])
    assert len(found.factors) == len(found.confirmed) == 3
    assert all(factor.purity > 0.95 and factor.num_found == 4 and factor.stability == 1.0 for factor in found.factors)
    assert qlae.metrics.infomec(sources, found.codes).infom > 0.95
    assert "3 factors, each found again" in found.describe()


def test_codes_are_the_columns_as_they_were_given():
    runs = [relabelled(draw_sources(), seed) for seed in range(3)]
    found = consensus(runs)
    for k, factor in enumerate(found.factors):
        assert np.array_equal(found.codes[:, k], runs[factor.run][:, factor.latent])
    assert found.codes.min() == 7


def test_arrays_need_no_torch():
    code = (
        "import numpy as np, sys, qlae; s = np.random.default_rng(0).integers(4, size=(500, 2));"
        "print(qlae.consensus([s, 3 - s[:, ::-1]])); sys.exit('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "found again by the other run" in result.stdout


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([draw_sources()], "at least two"),
        ([], "at least two"),
        ([draw_sources(), draw_sources()], "models 0 and 1 are the same"),
        ([draw_sources(), draw_sources(100, seed=1)], "100 rows"),
        ([draw_sources(), "runs/s1"], "1 paths and 1 other"),
        ([draw_sources()[:, 0], draw_sources()[:, 1]], r"shape \(3000,\)"),
        (draw_sources(), r"model 0 has the shape \(3,\)"),
        ([{"a": 1}, draw_sources()], "model 0 is a dict"),
        ([draw_sources(), np.full((3000, 2), np.nan)], "model 1: .*NaN"),
    ],
)
def test_bad_arrays_are_explained(runs, message):
    with pytest.raises(ValueError, match=message):
        consensus(runs)
