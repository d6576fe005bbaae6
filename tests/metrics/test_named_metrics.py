"""The metrics that are computed only by name: against their reference implementations, closed forms and by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from qlae.metrics import (
    METRICS,
    dci_es,
    dcimig,
    jemmig,
    mcc_rdc,
    metric_names,
    mig_sup,
    nk,
    null_scores,
    score,
    snc,
)
from qlae.metrics.dci_es import curve_explicitness

NAMES = ["conditional_infomec", "mig_sup", "jemmig", "dcimig", "mcc_rdc", "snc", "nk", "dci_es"]


def mixed(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the sample that the code of ubisoft was run on."""
    rng = np.random.default_rng(0)
    s = rng.integers(0, [4, 6, 3], size=(500, 3))
    z = np.column_stack([s + 0.4 * rng.normal(size=s.shape), s @ rng.normal(size=(3, 2))])
    if kind == "discrete":
        return s, z
    c = rng.normal(size=(500, 3))
    return c, c @ rng.normal(size=(3, 4))


def copies(n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Return sources with classes of equal size, and monotone functions of them."""
    rng = np.random.default_rng(1)
    sources = np.column_stack([rng.permutation(np.arange(n) % size) for size in (5, 4, 3)])
    return sources, np.exp(sources[:, [2, 0, 1]] / 2.0)


def test_they_are_known_and_not_computed_by_default() -> None:
    assert list(METRICS)[-len(NAMES) :] == NAMES
    assert not set(NAMES) & set(metric_names("all"))
    assert metric_names(["all", "nk"])[-1] == "nk"
    sources, latents = copies(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert score(sources, latents, metrics=["snc", "jemmig"]).values.keys() == {"jemmig", "snc"}


@pytest.mark.parametrize(
    ("metric", "discrete", "continuous"),
    [
        (mig_sup, 0.4805013504622698, 0.23373776266027352),
        (jemmig, 0.4990845880838403, 0.24899406038085684),
        (dcimig, 0.7264364924218116, 0.15452716788810206),
    ],
)
def test_gaps_equal_the_code_of_ubisoft(metric, discrete: float, continuous: float) -> None:
    assert metric(*mixed("discrete")).score == pytest.approx(discrete, abs=1e-12)
    assert metric(*mixed("continuous")).score == pytest.approx(continuous, abs=1e-12)


def test_gaps_by_hand() -> None:
    """Two binary sources: one latent copies the first, and one holds both."""
    s = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    z = np.column_stack([s[:, 0], 2 * s[:, 0] + s[:, 1]])
    assert mig_sup(s, z).score == pytest.approx(0.5)  # 1 for the copy; both sources have half of the other's entropy
    assert dcimig(s, z).score == pytest.approx(0.5)  # the first source, by its copy
    # In units of log 2, source 0: H(s, z) − I + I of the other latent = 1 − 1 + 1; source 1: 2 − 1 + 0; over 1 + 2.
    assert jemmig(s, z, num_bins=4).score == pytest.approx(1 - 1 / 3)


def test_copies_have_1_and_duplicates_differ() -> None:
    sources, latents = copies()
    assert mig_sup(sources, latents).score > 0.95
    assert dcimig(sources, latents).score > 0.95
    twice = np.hstack([latents, -latents])
    assert mig_sup(sources, twice).score > 0.95  # modular
    assert jemmig(sources, twice).score < jemmig(sources, latents).score - 0.2  # not compact
    assert dcimig(sources, twice).score == pytest.approx(dcimig(sources, latents).score)


@pytest.mark.parametrize("correlation", [0.3, 0.8])
def test_rdc_of_gaussian_variables_is_their_correlation(correlation: float) -> None:
    x, noise = np.random.default_rng(0).normal(size=(2, 2000))
    result = mcc_rdc(x, correlation * x + np.sqrt(1 - correlation**2) * noise)
    assert result.score == pytest.approx(correlation, abs=0.04)


def test_rdc_sees_functions_that_are_not_monotone() -> None:
    s = np.random.default_rng(0).normal(size=(800, 2))
    assert mcc_rdc(s, s[:, ::-1] ** 2).score > 0.99
    assert mcc_rdc(s, s[:, ::-1] ** 2).details["latent_of_source"] == {0: 1, 1: 0}
    assert mcc_rdc(s, s[:, :1]).score == pytest.approx(0.5, abs=0.01)  # a source without a latent
    assert mcc_rdc(s, np.random.default_rng(1).normal(size=(800, 2))).score < 0.15
    assert mcc_rdc(s, np.ones((800, 2))).score == 0.0


def test_snc_of_a_copy_a_mixture_and_noise() -> None:
    sources, latents = copies()
    latents = latents + 0.01 * np.random.default_rng(2).normal(size=latents.shape)
    assert snc(sources, latents).score > 0.95  # the training rows do not have classes of exactly equal size
    mixture = latents @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    assert snc(sources, mixture).score < 0.9
    noise = snc(sources, np.random.default_rng(0).normal(size=(600, 3)))
    assert noise.score == pytest.approx(noise.details["chance"], abs=0.15)


def test_snc_by_hand() -> None:
    """Ten ordered rows train: with two bins of five, one of them holds one value of the other class."""
    source = np.array([0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 0, 1])
    latent = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.45, 0.55])
    assert snc(source, latent, latent_kind="continuous").score == 0.5 + 0.5  # 11 rows train, the last tests


def test_nk_is_low_if_the_source_is_encoded_twice() -> None:
    sources, latents = copies()
    alone, twice = nk(sources, latents), nk(sources, np.hstack([latents, -latents]))
    assert alone.score > 0.5
    assert twice.score < 0.1
    assert nk(sources, latents).score == alone.score  # one seed, one answer


def test_curves_of_explicitness() -> None:
    assert curve_explicitness([1, 2, 3], [1.0, 0.5, 0.0], 1.0) == pytest.approx(0.0)
    assert curve_explicitness([1, 2, 3], [0.0, 0.0, 0.0], 1.0) == 1.0
    assert curve_explicitness([1, 2, 3], [0.5, 0.0, 0.0], 1.0) == pytest.approx(0.75)
    assert curve_explicitness([1, 2, 3], [0.5, 0.0, 0.4], 1.0) == pytest.approx(0.75)  # the best so far counts
    assert curve_explicitness([1, 3], [0.2, 0.1], 0.0) == 1.0


def test_dci_es() -> None:
    rng = np.random.default_rng(0)
    sources = rng.integers(0, 2, size=(400, 2))
    easy = dci_es(sources, sources, num_trees=5, depths=range(1, 5), max_features="all")
    parity = np.column_stack([sources[:, 0] ^ sources[:, 1], sources[:, 1], rng.integers(0, 2, 400)])
    hard = dci_es(sources, parity, num_trees=5, depths=range(1, 5), max_features="all")
    assert easy.score == 1.0 > hard.score + 0.05
    assert (easy.details["dci_s"], hard.details["dci_s"]) == (1.0, pytest.approx(2 / 3))
    with pytest.raises(ValueError, match="at least two, in ascending order"):
        dci_es(sources, sources, depths=[3])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "nk"])
@pytest.mark.filterwarnings("ignore")
def test_absurd_samples_have_a_finite_score_or_a_reason(name: str) -> None:
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, size=(40, 2))
    few = {"dci_es": {"num_trees": 2, "depths": [1, 2]}}
    for sources in (classes, classes[:, :1], np.column_stack([classes, classes[:, 0]]), np.arange(40)):
        for latents in (np.zeros((40, 2)), rng.normal(size=(40, 1)), classes, np.arange(40)):
            if (
                name == "conditional_infomec"
                and sources.ndim == 1
                and latents.dtype.kind == "f"
                and np.ptp(latents) > 0
            ):
                with pytest.raises(ValueError, match="different label"):
                    score(sources, latents, metrics=[name])
                continue
            values = score(sources, latents, metrics=[name], metric_options=few if name == "dci_es" else None).values
            assert all(0.0 <= value <= 1.0 for value in values.values()), values
    with pytest.raises(ValueError, match="at least 2 samples"):
        score(classes[:1], classes[:1], metrics=[name])
    with pytest.raises(ValueError, match="NaN"):
        score(classes, np.full((40, 2), np.nan), metrics=[name])


def test_noise_has_about_0() -> None:
    sources = np.random.default_rng(0).integers(0, 4, size=(1000, 3))
    null = null_scores(sources, num_latents=4, metrics=["mig_sup", "dcimig"], num_draws=1)
    assert max(null["mig_sup"], null["dcimig"]) < 0.05
