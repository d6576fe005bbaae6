"""Invalid arguments raise a clear error."""

import numpy as np
import pytest

from qlae.metrics import dci, infomec, mig, score

SOURCES = np.random.default_rng(0).integers(0, 4, (100, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_trees": 0}, "num_trees is 0"),
        ({"max_features": "x"}, "max_features is 'x'"),
        ({"max_features": -1.0}, "max_features is -1.0"),
        ({"depths": ["a"]}, "a depth is 'a'"),
        ({"depths": []}, "depths are empty"),
    ],
)
def test_dci(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dci(SOURCES, SOURCES, **options)


@pytest.mark.parametrize("num_bins", [0, 2.5, True])
def test_bins(num_bins: object) -> None:
    with pytest.raises(ValueError, match=f"num_bins is {num_bins}"):
        mig(SOURCES, SOURCES, num_bins=num_bins)


def test_one_metric_by_its_name() -> None:
    assert list(score(SOURCES, SOURCES, metrics="mig").results) == ["mig"]


@pytest.mark.parametrize("seed", [1.5, -1, None, "a"])
@pytest.mark.parametrize("metric", [infomec, dci, score])
def test_seeds(metric, seed) -> None:
    with pytest.raises(ValueError, match=f"seed is {seed!r}"):
        metric(SOURCES, SOURCES, seed=seed)
