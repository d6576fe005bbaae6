"""Scores corrected for chance: 0 for noise, 1 for perfect latents, with any number of latents, levels and samples."""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from fixture_cases import load
from scipy.stats import chi2, norm

from qlae.cli import main
from qlae.metrics import InfoMEC, infomec, mutual_information, null_scores, plot_nmi, print_scores, score
from qlae.metrics.chance import Chance, chi_square_evidence, information_by_chance, shuffled_moments
from qlae.metrics.corrected import evidence_needed, evidence_weights
from qlae.metrics.information import weighted_concentration
from qlae.metrics.inputs import check_pair

CORRECTED = ["infom_corrected", "infoe_corrected", "infoc_corrected"]


def corrected(sources: np.ndarray, latents: np.ndarray, **options) -> list[float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result: InfoMEC = infomec(sources, latents, **options)
    return [getattr(result, key) for key in CORRECTED]


@pytest.mark.parametrize("counts", [([2, 3], [1, 4]), ([2, 2, 2], [1, 2, 3]), ([1, 5], [3, 3])])
def test_moments_of_all_permutations(counts: tuple[list[int], list[int]]) -> None:
    rows, columns = (np.repeat(np.arange(len(each)), each) for each in counts)
    every = np.array([mutual_information(rows, np.array(order)).item() for order in itertools.permutations(columns)])
    mean, deviation = shuffled_moments(*map(np.array, counts))
    assert mean == pytest.approx(every.mean(), abs=1e-12)
    assert deviation == pytest.approx(every.std(), rel=0.35)  # the mean is exact, the deviation of few samples is not


@pytest.mark.parametrize(("n", "rows", "columns"), [(300, 40, 40), (300, 2, 12), (1000, 10, 15)])
def test_moments_of_shuffles(n: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, rows, n), np.minimum(rng.geometric(0.3, n), columns) - 1
    drawn = [mutual_information(x, rng.permutation(y)).item() for _ in range(400)]
    mean, deviation = shuffled_moments(np.bincount(x), np.bincount(y))
    assert mean == pytest.approx(np.mean(drawn), abs=4 * deviation / 20)
    assert deviation == pytest.approx(np.std(drawn), rel=0.15)


def test_moments_of_large_counts_are_those_of_chi_square() -> None:
    exact = shuffled_moments(np.full(5, 2000), np.array([600, 9400]))  # just below and above the limit
    large = shuffled_moments(np.full(5, 4000), np.array([1200, 18800]))
    assert large == (4 / 40_000, np.sqrt(2) / 20_000)
    np.testing.assert_allclose(exact, 2 * np.array(large), rtol=0.01)
    assert shuffled_moments(np.array([10]), np.array([3, 7])) == (0.0, 0.0)


@pytest.mark.parametrize("freedom", [1, 4, 40])
def test_evidence_is_on_the_scale_of_a_standard_normal(freedom: int) -> None:
    for z in (1.0, 3.0, 4.5):
        value = chi2.isf(norm.sf(z), freedom)
        scale = np.float64(np.sqrt(2 * freedom))
        assert chi_square_evidence(np.float64(value), np.float64(freedom), scale) == pytest.approx(z, abs=0.3)


def test_what_never_varies_is_no_evidence() -> None:
    chance = Chance(np.full((1, 2), 0.7), np.array([[0.0, 1e-17]]), np.ones((1, 2), dtype=bool))
    np.testing.assert_array_equal(chance.evidence(np.full((1, 2), 0.7)), 0.0)
    assert corrected(np.array([[0], [1]]), np.array([[0], [1]])) == [0.0, 0.0, 0.0]  # any two samples look like this


def test_chance_of_continuous_variables_shrinks_with_the_sample() -> None:
    rng = np.random.default_rng(0)
    sources = np.column_stack([rng.integers(0, 5, 4000), rng.normal(size=4000)])
    checked = check_pair(sources, rng.normal(size=(4000, 3)), source_kinds=["discrete", "continuous"])
    whole = information_by_chance(*checked, k=3, seed=0)
    quarter = information_by_chance(*(part.rows(np.arange(1000)) for part in checked), k=3, seed=0)
    np.testing.assert_allclose(quarter.deviation, 2 * whole.deviation, rtol=0.35)
    np.testing.assert_allclose(whole.deviation, 0.75 / np.sqrt(4000), rtol=0.35)
    assert not whole.from_counts.any()


def test_weights_and_rows_of_zeros() -> None:
    needed = evidence_needed(72)
    np.testing.assert_allclose(evidence_weights(needed * np.array([0.5, 1, 1.5, 3]), 72), [0, 0, 0.5, 1])
    matrix = np.array([[0.8, 0.2], [0.0, 0.0]])
    assert weighted_concentration(matrix, np.ones(2)) == pytest.approx(0.5 * (0.8 - 0.5) / 0.5)
    assert weighted_concentration(matrix[:, :1], np.array([0.5, 1.0])) == 0.25  # one column: only the weight counts
    assert weighted_concentration(np.zeros((0, 3)), np.zeros(0)) == 0.0


@pytest.mark.parametrize("levels", [2, 9, 40, 0])
@pytest.mark.parametrize(("n", "num_latents", "sizes"), [(300, 15, [2, 9, 20]), (2000, 5, [3, 3, 12, 7])])
def test_noise_scores_zero(n: int, num_latents: int, sizes: list[int], levels: int) -> None:
    rng = np.random.default_rng([n, levels])
    sources = rng.integers(0, sizes, size=(n, len(sizes)))
    shape = n, num_latents
    latents = rng.integers(0, levels, size=shape) if levels else rng.normal(size=shape)
    assert corrected(sources, latents) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("n", "sizes"), [(300, [2, 2]), (300, [40] * 3), (1000, [3] * 12), (3000, [2, 5, 9, 15])])
def test_perfect_latents_score_one(n: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(n)
    sources = rng.integers(0, sizes, size=(n, len(sizes)))
    codes = np.column_stack([rng.permutation(40)[column] for column in sources.T])[:, ::-1]
    assert min(corrected(sources, codes)) > 0.99
    assert min(corrected(sources, sources + 0.05 * rng.normal(size=sources.shape))) > 0.99


@pytest.mark.parametrize("protocol", ["official-train", "official-standalone", "tripod"])
def test_the_authors_fits_are_corrected_too(protocol: str) -> None:
    rng = np.random.default_rng(0)
    sources = np.minimum(rng.geometric(0.4, size=(600, 3)) - 1, 5)  # classes of very different sizes
    assert corrected(sources, rng.integers(0, 6, (600, 4)), protocol=protocol) == [0.0, 0.0, 0.0]
    assert corrected(sources, 5 - sources, protocol=protocol, prune=False)[0] > 0.99


def test_continuous_sources() -> None:
    rng = np.random.default_rng(1)
    sources = rng.uniform(size=(500, 3))
    assert min(corrected(sources, sources[:, ::-1])) > 0.99
    assert corrected(sources, rng.normal(size=(500, 4))) == [0.0, 0.0, 0.0]
    assert corrected(sources, rng.integers(0, 6, (500, 4))) == [0.0, 0.0, 0.0]
    assert corrected(sources, np.floor(8 * sources).astype(int))[0] > 0.99


def test_noise_among_perfect_latents_counts_as_zero() -> None:
    rng = np.random.default_rng(0)
    sources = rng.integers(0, [4, 6, 3], size=(1500, 3))
    half_noise = np.hstack([sources, rng.integers(0, 8, sources.shape)])
    assert corrected(sources, half_noise) == pytest.approx([0.5, 1.0, 1.0], abs=0.01)
    assert corrected(sources, sources[:, :2]) == pytest.approx([1.0, 2 / 3, 2 / 3], abs=0.01)  # a source is missing


def test_large_samples_approach_the_published_scores() -> None:
    sources, latents = load("entangled")
    result = infomec(sources, latents)
    assert corrected(sources, latents) == pytest.approx([result.infom, result.infoe, result.infoc], abs=0.05)


def test_a_sample_too_small_for_all_latents_falls_back_on_the_best() -> None:
    rng = np.random.default_rng(0)
    source = rng.integers(0, 8, 200)
    latents = np.column_stack([source + 0.01 * rng.normal(size=200), rng.normal(size=(200, 80))])
    assert infomec(source, rng.permutation(latents)).infoe > 0.9  # noise, too
    assert corrected(source, latents)[1] > 0.99
    assert corrected(source, rng.permutation(latents))[1] == 0.0


def test_corrected_scores_can_be_turned_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources, codes = load("noise_codes")
    whole = infomec(sources, codes)
    never = Mock(side_effect=AssertionError("computed although it is turned off"))
    for name in ("correct_information", "correct_explicitness"):
        monkeypatch.setattr(sys.modules["qlae.metrics.infomec"], name, never)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also about noise, which only the corrected scores find
        plain = infomec(sources, codes, corrected=False)
        scores = score(sources, codes, bootstrap=2, corrected=False)
    numbers = plain.to_dict()
    assert numbers == {key: value for key, value in whole.to_dict().items() if key in numbers}
    assert set(whole.to_dict()) - set(numbers) == {"informative", *CORRECTED}
    assert (plain.informative, plain.num_informative, plain.nmi_corrected) == (None, None, None)
    assert "corrected" not in str(plain)
    assert list(scores.values) == list(scores.intervals) == ["infom", "infoe", "infoe_scalar", "infoc"]
    print_scores(scores)
    assert "corrected" not in capsys.readouterr().out
    assert plot_nmi(plain, tmp_path / "nmi.png").is_file()
    assert null_scores(sources, codes, num_draws=1, corrected=False).values.keys() == scores.values.keys()
    np.savez(tmp_path / "sample.npz", sources=sources, latents=codes)
    with pytest.raises(SystemExit, match="0"):
        main(["score", str(tmp_path / "sample.npz"), "--no-corrected", "--json"])
    assert set(json.loads(capsys.readouterr().out)["infomec"]) == set(numbers)


def test_null_encoders() -> None:
    rng = np.random.default_rng(0)
    sources = rng.integers(0, 5, size=(400, 3))
    codes = null_scores(sources, num_latents=8, kind="codes", num_values=6, metrics=["infomec", "mig"], num_draws=3)
    assert codes["infom"] > 0.05
    assert codes["infom_corrected"] == codes["infoe_corrected"] == codes["infoc_corrected"] == 0.0
    assert codes["mig"] < 0.05
    assert codes.deviations["infom"] > 0
    assert "8 independent codes with 6 values, 3 draws" in str(codes)
    assert "InfoM, corrected 0.000 ± 0.000" in str(codes)
    shuffled = null_scores(sources, sources, num_draws=1)
    assert shuffled["infom"] < 0.6
    assert shuffled.to_dict()["deviations"]["infom"] == 0.0
    again = null_scores(sources, sources, num_draws=1)
    assert again.values == shuffled.values


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "num_latents"),
        ({"num_latents": 3, "kind": "code"}, "kind is 'code'"),
        ({"num_latents": 3, "kind": "codes", "num_values": 1}, "num_values is 1"),
        ({"num_latents": 0}, "num_latents is 0"),
        ({"num_latents": 2, "num_draws": 0}, "num_draws is 0"),
    ],
)
def test_null_encoders_that_cannot_be_drawn(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        null_scores(np.arange(20) % 4, **options)
