"""`score` with several metrics: scores, intervals, files, table and picture."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from qlae.metrics import explicitness, infomec, metric_names, mig, plot_nmi, print_scores, sap, score, score_file

CORRECTED = ["infom_corrected", "infoe_corrected", "infoc_corrected"]
RNG = np.random.default_rng(0)
SOURCES = RNG.integers(0, [4, 3, 5], size=(400, 3))
CODES = np.where(RNG.random((400, 3)) < 0.2, RNG.integers(0, 5, (400, 3)), SOURCES[:, [1, 2, 0]])
VALUES = SOURCES + 0.5 * RNG.normal(size=SOURCES.shape)


def test_scores_equal_those_of_the_single_functions() -> None:
    scores = score(SOURCES, CODES, metrics=["infomec", "mig"])
    assert scores["infom"] == infomec(SOURCES, CODES).infom
    assert scores["mig"] == mig(SOURCES, CODES).score
    assert list(scores.values) == ["infom", "infoe", "infoe_scalar", "infoc", *CORRECTED, "mig"]


def test_all_metrics_give_plain_numbers() -> None:
    seen: list[str] = []
    scores = score(SOURCES, VALUES, metrics=["all"], progress=seen.append)
    assert seen == metric_names()
    plain = json.loads(json.dumps(scores.to_dict()))
    assert set(plain) == set(metric_names())
    assert plain["dci"]["d"] == scores["d"]
    assert "InfoM" in str(scores)
    assert "infom" in repr(scores)


@pytest.mark.parametrize("latents", [CODES, VALUES], ids=["codes", "continuous"])
def test_intervals_contain_their_score(latents: np.ndarray) -> None:
    scores = score(SOURCES, latents, metrics=["infomec", "mig", "mcc"], bootstrap=12, seed=1)
    assert set(scores.intervals) == set(scores.values)
    for name, (low, high) in scores.intervals.items():
        assert 0 <= low <= scores[name] <= high <= 1
    assert scores.to_dict()["bootstrap"]["num_bootstrap"] == 12
    again = score(SOURCES, latents, metrics=["infomec", "mig", "mcc"], bootstrap=12, seed=1)
    assert again.intervals == scores.intervals


def test_half_samples_vary_as_fresh_samples_do() -> None:
    # The correlation of a Gaussian pair: the interval of one sample against the spread over many.
    rng = np.random.default_rng(0)

    def draw() -> tuple[np.ndarray, np.ndarray]:
        x = rng.normal(size=(300, 1))
        return x, 0.6 * x + 0.8 * rng.normal(size=x.shape)

    spread = np.std([score(*draw(), metrics=["mcc"])["mcc"] for _ in range(200)])
    low, high = score(*draw(), metrics=["mcc"], bootstrap=200).intervals["mcc"]
    assert (high - low) / (2 * 1.96) == pytest.approx(spread, rel=0.35)


def test_half_samples_are_scored_as_the_whole_is() -> None:
    """Codes are scored as the numbers they stand for; if these are uneven, indices have other intervals."""
    numbers = np.array([0.0, 0.001, 0.002, 0.003, 1.0])[CODES]
    names = ["mig", "explicitness", "sap"]
    scores = [score(SOURCES, numbers, metrics=names, latent_kind=k, bootstrap=6) for k in ("codes", "continuous")]
    assert scores[0].values == scores[1].values
    assert scores[0].intervals == scores[1].intervals
    indices = score(SOURCES, CODES, metrics=names, bootstrap=6)
    assert indices.intervals["explicitness"] != scores[0].intervals["explicitness"]


def test_half_samples_that_cannot_be_scored_are_left_out() -> None:
    rare = np.r_[np.zeros(399, dtype=int), 1]  # constant in every other half
    scores = score(rare, CODES, metrics=["mig"], bootstrap=8)
    low, high = scores.intervals["mig"]
    assert low <= scores["mig"] <= high


def test_all_metrics_of_continuous_sources_leave_out_those_that_need_classes() -> None:
    with pytest.warns(UserWarning, match="explicitness is left out"):
        scores = score(VALUES, SOURCES + 0.1 * VALUES, metrics="all")
    assert set(scores.results) == set(metric_names()) - {"explicitness"}
    with pytest.raises(ValueError, match="needs discrete sources"):
        score(VALUES, VALUES, metrics=["explicitness"])


def test_intervals_in_two_processes_are_the_same() -> None:
    one = score(SOURCES, CODES, metrics=["mig"], bootstrap=4)
    two = score(SOURCES, CODES, metrics=["mig"], bootstrap=4, n_jobs=2)
    assert one.intervals == two.intervals


def test_a_file_of_another_tool(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    np.savez(path, sources=SOURCES.astype(np.uint8), latents=CODES)
    assert score_file(path)["infom"] == score(SOURCES, CODES)["infom"]


def test_files_that_cannot_be_scored(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a file"):
        score_file(tmp_path / "nothing.npz")
    np.savez(tmp_path / "other.npz", z=CODES)
    with pytest.raises(ValueError, match="holds z; arrays named 'sources' and 'latents'"):
        score_file(tmp_path / "other.npz")
    (tmp_path / "text.npz").write_text("not an archive")
    with pytest.raises(ValueError, match=r"text.npz cannot be read"):
        score_file(tmp_path / "text.npz")
    np.save(tmp_path / "one.npy", CODES)
    with pytest.raises(ValueError, match="a single unnamed array"):
        score_file(tmp_path / "one.npy")


def test_a_run_directory_is_answered_with_its_sample(tmp_path):
    np.savez(tmp_path / "sample.npz", sources=np.zeros((4, 1)), latents=np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"is not a file; give .*sample\.npz"):
        score_file(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["migs"]}, "allowed are 'infomec', 'dci'"),
        ({"metrics": []}, "allowed are"),
        ({"bootstrap": 2.5}, "bootstrap is 2.5"),
        ({"metrics": None}, "allowed are"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"confidence": 1.0}, "0 < confidence < 1"),
        ({"bootstrap": 1}, "bootstrap is 1"),
        ({"bootstrap": -1}, "bootstrap is -1"),
        ({"protocol": "papers"}, "protocol is 'papers'"),
    ],
)
def test_invalid_options(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score(SOURCES, CODES, **options)


def test_the_table_names_latents_that_are_noise() -> None:
    from rich.console import Console

    console = Console(record=True, width=120)
    noisy = np.column_stack([CODES, RNG.integers(0, 6, 400)])
    print_scores(score(SOURCES, noisy, bootstrap=3), title="three sources", console=console)
    text = console.export_text()
    assert "three sources" in text
    assert "95% interval" in text
    assert "one-hot" in text
    assert "z3 is no more informative about any source than noise" in text


def test_the_heatmap_is_written(tmp_path: Path) -> None:
    result = infomec(SOURCES, CODES)
    path = plot_nmi(result, tmp_path / "nmi.png", source_names=["shape", "size", "hue"], title="codes")
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="1 entries for 3 sources"):
        plot_nmi(result, tmp_path / "nmi.png", source_names=["shape"])


@pytest.mark.parametrize("metric", ["explicitness", "sap"])
def test_the_order_of_rows_does_not_matter(metric: str) -> None:
    ordered = np.stack(np.meshgrid(range(3), range(10), range(20), indexing="ij"), -1).reshape(-1, 3)
    one_hot = np.eye(20)[ordered].reshape(len(ordered), -1)
    latents = one_hot if metric == "explicitness" else ordered + 0.0
    order = np.random.default_rng(1).permutation(len(ordered))
    value = score(ordered, latents, metrics=[metric])[metric]
    assert value == pytest.approx(score(ordered[order], latents[order], metrics=[metric])[metric], abs=0.05)
    assert value > 0.99 if metric == "explicitness" else 0.1 < value < 0.9


@pytest.mark.parametrize("metric", [explicitness, sap])
def test_sorted_rows_raise_a_warning(metric) -> None:
    ordered = np.repeat(np.arange(4), 100)[:, None]
    with pytest.warns(UserWarning, match=r"source 0 .*sorted"):
        metric(ordered, ordered)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric(np.random.default_rng(0).permutation(ordered), ordered)


def test_halves_in_which_all_sources_are_constant_are_left_out() -> None:
    sources = np.zeros((400, 1), dtype=int)
    sources[[7, 300]] = 1
    scores = score(sources, sources, bootstrap=100)
    assert scores["infom"] == 1.0
    assert scores.intervals["infom"] == (1.0, 1.0)


def test_repeated_rows_raise_a_warning() -> None:
    rng = np.random.default_rng(0)
    sources = rng.integers(0, 5, (300, 3))
    latents = sources + 0.1 * rng.normal(size=(300, 3))
    with pytest.warns(UserWarning, match="repeat"):
        infomec(np.repeat(sources, 3, 0), np.repeat(latents, 3, 0))


def test_masked_entries_are_refused() -> None:
    latents = np.ma.masked_equal(np.random.default_rng(0).integers(0, 3, (100, 2)), 2)
    with pytest.raises(ValueError, match="masked"):
        score(np.arange(100) % 4, latents)


def test_source_kinds_of_another_type_are_named() -> None:
    with pytest.raises(ValueError, match="source_kinds is 5"):
        score(np.zeros((5, 2), int), np.zeros((5, 2)), source_kinds=5)


def test_a_picture_is_whole_or_not_there(tmp_path, monkeypatch, rng) -> None:
    sources = rng.integers(0, 3, (60, 2))
    result = infomec(sources, sources)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match=r"No space left on device: .*/nmi\.png"):
        plot_nmi(result, tmp_path / "nmi.png", title="costs $5 and $\\frac{")
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    assert (
        plot_nmi(result, tmp_path / "nmi.png", title="costs $5 and $\\frac{", source_names=["$", "$\\x"]).stat().st_size
    )
