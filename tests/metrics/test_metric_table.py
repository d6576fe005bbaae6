"""The table of metrics: what the built-in metrics declare, and metrics that a user registers."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from qlae.metrics import (
    METRICS,
    MetricResult,
    Score,
    find_metric,
    find_score,
    known_scores,
    metric_names,
    print_scores,
    register_metric,
    score,
    unregister_metric,
    watched_scores,
)
from qlae.scoring.sample import by_sample_size

RNG = np.random.default_rng(0)
SOURCES = RNG.integers(0, 4, size=(200, 2))
LATENTS = SOURCES + 0.3 * RNG.normal(size=SOURCES.shape)
CORRECTED = ["infom_corrected", "infoe_corrected", "infoc_corrected"]
BY_NAME = ["infom_conditional", "infoc_conditional", "mig_sup", "jemmig", "dcimig", "mcc_rdc", "snc", "nk"]
BY_NAME += ["dci_e", "dci_s"]
WORDS = np.array(["green", "blue", "red", "white"])[SOURCES]


@pytest.fixture(autouse=True)
def _restore_the_table() -> Iterator[None]:
    before = set(METRICS)
    yield
    for name in set(METRICS) - before:
        unregister_metric(name)


def correlation(sources: np.ndarray, latents: np.ndarray) -> float:
    return abs(float(np.corrcoef(sources[:, 0], latents[:, 0])[0, 1]))


def test_built_in_metrics_stand_in_their_order() -> None:
    names = ["infomec", "dci", "mig", "sap", "modularity", "explicitness", "irs", "mcc"]
    assert list(METRICS)[: len(names)] == metric_names() == metric_names("all") == names
    assert watched_scores() == ("infom", "infoe", "infoc", "informative", "psnr", "r2")
    infomec = ["infom", "infoe", "infoe_scalar", "infoc", *CORRECTED, "active", "informative"]
    tables = ["r2_numbers", "accuracy", "majority"]
    held_out = ["held_out_psnr", "held_out_r2", "held_out_accuracy"]
    assert list(known_scores()) == [*infomec, "d", "c", "i", *names[2:], *BY_NAME, "psnr", "r2", *tables, *held_out]


def test_the_docs_have_a_row_for_each_metric() -> None:
    lines = (Path(__file__).parents[2] / "docs/metrics.md").read_text().splitlines()
    rows = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert set(METRICS) - {"infomec"} <= set(rows)  # which has a section


def test_titles_and_formats() -> None:
    assert find_score("psnr").heading == "PSNR (dB)"
    assert find_score("psnr").format(30.26, max_digits=2) == "30.3"
    assert find_score("infom").format(0.98765) == "0.988"
    assert find_score("infom").format(0.98765, max_digits=2) == "0.99"
    assert find_score("active").format(7) == find_score("active").format(7.0) == "7"
    assert find_score("informative").format(0.75, max_digits=2) == "0.75"
    assert find_score("of_a_module_not_imported").title == "of_a_module_not_imported"


def test_which_scores_include_a_metric() -> None:
    assert METRICS["dci"].is_in({"d": 0.5})
    assert not METRICS["dci"].is_in({"infom": 0.5})


def test_a_plain_function_is_scored_by_its_name() -> None:
    assert register_metric("own", title="Own")(correlation) is correlation
    scores = score(SOURCES, LATENTS, metrics=["mig", "own"], bootstrap=4)
    assert scores["own"] == correlation(SOURCES, LATENTS)
    assert list(scores.values) == ["mig", "own"]
    low, high = scores.intervals["own"]
    assert low <= scores["own"] <= high
    assert json.loads(json.dumps(scores.to_dict()))["own"]["own"] == scores["own"]
    assert f"Own {scores['own']:.3f}" in str(scores)
    assert (find_score("own").title, metric_names()[-1]) == ("Own", "own")
    print_scores(scores)


def test_a_plain_function_receives_checked_arrays() -> None:
    received = {}

    @register_metric("own")
    def own(sources, latents, *, source_kinds, latent_kind, seed=0):
        received.update(sources=sources, latents=latents, kinds=(source_kinds, latent_kind), seed=seed)
        return 0.5

    score(WORDS.tolist(), SOURCES.tolist(), metrics=["own"], seed=3)
    assert received["kinds"] == (["discrete", "discrete"], "codes")
    assert received["sources"].dtype == received["latents"].dtype == np.float64
    assert np.array_equal(received["sources"], np.unique(WORDS, return_inverse=True)[1].reshape(WORDS.shape))
    assert np.array_equal(received["latents"], SOURCES)
    assert received["seed"] == 3


def test_several_scores() -> None:
    @register_metric("pair", scores=[Score("low", "Low"), Score("high", "High")])
    def pair(sources, latents):
        return {"high": np.float32(2.0), "low": -1}

    scores = score(SOURCES, LATENTS, metrics=["pair"], bootstrap=2)
    assert scores.values == {"low": -1.0, "high": 2.0}
    assert scores.intervals == {"low": (-1.0, -1.0), "high": (2.0, 2.0)}  # without bounds nothing is clipped


def test_result_objects_of_a_users_metric() -> None:
    @register_metric("own", scores=[Score("own", "Own", digits=1, bounds=(0.0, 1.0))])
    def own(sources, latents):
        return MetricResult("own", 0.25, None, "mine", len(sources))

    scores = score(SOURCES, LATENTS, metrics="own")
    assert repr(scores) == "Scores(own 0.2)"
    assert scores.results["own"].protocol == "mine"


def test_rows_are_shuffled_for_a_metric_that_holds_some_out() -> None:
    @register_metric("last", holds_rows_out=True)
    def last(sources, latents):
        return sources[-1, 0]

    ordered = np.arange(200) // 20
    assert {score(ordered, ordered, metrics="last", seed=seed)["last"] for seed in range(8)} != {9.0}


def test_a_metric_that_needs_discrete_sources() -> None:
    register_metric("own", needs_discrete=True)(correlation)
    with pytest.raises(ValueError, match=r"own needs discrete sources.*0, 1"):
        score(LATENTS, LATENTS, metrics=["own"])
    with pytest.warns(UserWarning, match=r"left out.*discrete") as caught:
        assert "own" not in score(LATENTS[:60], LATENTS[:60], metrics="all").results
    assert [str(warning.message).split()[0] for warning in caught] == ["explicitness", "own"]


def test_half_samples_and_parts_know_the_metric_in_other_processes() -> None:
    register_metric("own")(correlation)
    one, two = (score(SOURCES, LATENTS, metrics=["own"], bootstrap=3, n_jobs=n) for n in (1, 2))
    assert one.intervals == two.intervals != {}
    curve = by_sample_size(SOURCES, LATENTS, one.values, metrics=["own"], protocol="paper", n_jobs=2)
    assert [len(values) for values in curve["scores"]["own"]] == [5, 5, 1]


def test_other_processes_find_a_module_that_is_not_on_the_path(tmp_path, monkeypatch) -> None:
    (tmp_path / "my_metric_module.py").write_text(
        "from qlae.metrics import register_metric\n\n"
        "def middle(latents):\n    return latents.mean()\n\n"
        '@register_metric("own")\ndef own(sources, latents):\n    return middle(latents)\n'
    )
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        importlib.import_module("my_metric_module")
    one, two = (score(SOURCES, LATENTS, metrics=["own"], bootstrap=3, n_jobs=n) for n in (1, 2))
    assert one.intervals == two.intervals != {}
    monkeypatch.delitem(sys.modules, "my_metric_module")


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (float("nan"), ValueError, "returned nan for own"),
        ("high", ValueError, "could not convert string to float: 'high'"),
        ({"other": 1.0}, TypeError, "without its score"),
        ({"own": 1.0, "other": 1.0}, TypeError, "returned own, other; declare"),
        (MetricResult("mine", 0.5, None, "", 2), TypeError, "without its score"),
    ],
)
def test_what_a_function_may_return(returned, error, message) -> None:
    register_metric("own")(lambda sources, latents: returned)
    with pytest.raises(error, match=message):
        score(SOURCES, LATENTS, metrics=["own"])


def test_several_scores_need_a_mapping() -> None:
    register_metric("pair", scores=[Score("low", "Low"), Score("high", "High")])(correlation)
    with pytest.raises(TypeError, match="low, high"):
        score(SOURCES, LATENTS, metrics=["pair"])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("mig", {}, r"metric 'mig' is already registered, by qlae\.metrics\.mig\.mig; choose another name"),
        ("d", {}, "the key 'd' is taken"),
        ("psnr", {}, "the key 'psnr' is taken"),
        ("nmi", {}, "the key 'nmi' is taken"),
        ("all", {}, "the key 'all' is taken"),
        ("two words", {}, "the name of a metric is 'two words'; give a string without spaces"),
        ("own", {"scores": [Score("active", "A")]}, "the key 'active' is taken"),
        ("own", {"scores": [Score("a", "A"), Score("a", "B")]}, "own key"),
    ],
)
def test_names_that_are_taken(name, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        register_metric(name, **options)(correlation)
    assert "own" not in METRICS


def test_a_notebook_cell_may_run_twice() -> None:
    for value in (0.25, 0.75):

        @register_metric("own")
        def own(sources, latents, value=value):
            return value

    assert score(SOURCES, LATENTS, metrics=["own"])["own"] == 0.75


def test_unknown_names_are_answered_with_the_nearest() -> None:
    for find in (find_metric, metric_names):
        with pytest.raises(ValueError, match=r"'infomecs' \(did you mean 'infomec'\?\); allowed are 'infomec', 'dci'"):
            find("infomecs")


def test_the_table_is_read_only() -> None:
    with pytest.raises(TypeError):
        METRICS["own"] = find_metric("mig")  # type: ignore[index]
