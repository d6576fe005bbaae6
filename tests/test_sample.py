"""Scores computed from a run's sample alone."""

import shutil
import warnings

import numpy as np
import pytest

import qlae
from qlae._io import read_sealed
from qlae.cli import main
from qlae.metrics import infomec, metric_names, register_metric, score_file, unregister_metric
from qlae.metrics.inputs import scored_form
from qlae.runs.directory import Run
from qlae.scoring.sample import metrics_of, rescore_run, score_sample, score_weights


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory, tiny_data):
    out = tmp_path_factory.mktemp("runs") / "qlae"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return qlae.train("qlae", tiny_data, out=out, steps=100, size="small", batch_size=8, show=False)


@pytest.fixture
def run(evaluated, tmp_path):
    """A copy with nothing in it but what scoring needs."""
    copy = Run(tmp_path / "copy")
    copy.path.mkdir()
    for name in ("config.json", "sample.npz", "results.json"):
        shutil.copy(evaluated.path / name, copy.path)
    return copy


@pytest.fixture
def parked(rng):
    """Codes of two sources, one of them twice, and a latent that stays within a small part of its range.

    As if its codebook had shrunk to where the latent is: three values, of no consequence to any decoder.
    """
    sources = rng.integers(0, 4, (4000, 2))
    codes = np.column_stack([sources, sources[:, 0], rng.integers(0, 3, 4000)])
    books = np.array([[-1.0, -0.4, 0.3, 1.0], [-1.1, 0.2, 0.5, 1.2], [0.9, -0.9, 0.1, 0.4], [2.2, 2.24, 2.27, 2.3]])
    return sources, {"codes": codes, "latents": books[np.arange(4), codes].astype(np.float32)}


@pytest.mark.filterwarnings("ignore")
def test_rescoring_gives_the_same_results(run):
    before = run.results
    assert rescore_run(run.path, show=False) == before == read_sealed(run.results_path)


@pytest.mark.filterwarnings("ignore")
def test_rescoring_adds_metrics_and_intervals_and_changes_the_protocol(run):
    before = run.results
    results = rescore_run(run, metrics=["mig"], protocol="tripod", bootstrap=3, show=False)
    assert (results["protocol"], results["steps"], results["seconds"]) == ("tripod", 100, before["seconds"])
    assert results["versions"]["torch"] == before["versions"]["torch"]
    for weights in ("averaged", "raw"):
        assert "mig" in results[weights]
        assert results[weights]["psnr"] == before[weights]["psnr"]
    assert {"infom", "mig", "psnr"} <= results["averaged"]["intervals"].keys()
    assert "intervals" not in results["raw"]


@pytest.mark.filterwarnings("ignore")
def test_sample_of_an_earlier_version_keeps_its_psnr(run):
    before = run.results
    arrays = {name: array for name, array in run.arrays(run.sample_path).items() if "psnr" not in name}
    np.savez(run.sample_path, **arrays)
    assert rescore_run(run, show=False) == before


@pytest.mark.filterwarnings("ignore")
def test_the_command(run, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", str(run.path), "--from-sample", "--metrics", "mig", "--quiet"])
    assert stop.value.code == 0
    assert "results.json" in capsys.readouterr().out
    assert "mig" in run.results["averaged"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"metrics": ["best"]}, r"unknown metric .best.; allowed are 'infomec', 'dci'"),
        ({"protocol": "mine"}, "protocol is 'mine'; allowed are 'paper'"),
        ({"bootstrap": -1}, "bootstrap is -1; give a whole number of at least 0"),
        ({"jobs": 0}, "jobs must be at least 1, or -1 for all cores, got 0"),
    ],
)
def test_invalid_options_are_rejected_before_any_work(run, wrong, message):
    for score_run in (rescore_run, qlae.evaluate):  # the latter has no checkpoint here
        with pytest.raises(ValueError, match=message):
            score_run(run, **wrong)


@pytest.mark.filterwarnings("ignore")
def test_scores_of_other_metrics_stay(run):
    first = rescore_run(run, metrics="mig", bootstrap=2, show=False)
    second = rescore_run(run, metrics=["sap"], show=False)
    assert second["averaged"] == first["averaged"] | {"sap": second["averaged"]["sap"]}
    third = rescore_run(run, protocol="tripod", show=False)
    assert third["averaged"]["mig"] == first["averaged"]["mig"]
    assert third["averaged"]["sap"] == second["averaged"]["sap"]
    assert "intervals" not in third["averaged"]  # which were of the other protocol


def test_sample_of_another_evaluation_is_rejected(run):
    arrays = run.arrays(run.sample_path)
    np.savez(run.sample_path, **arrays | {"step": np.asarray(50)})
    with pytest.raises(ValueError, match=r"40 images after update 50, and results\.json is of 40 after update 100"):
        rescore_run(run)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "sample.npz",
            b"PK\x03\x04 cut short",
            r"sample\.npz cannot be read \(it is damaged or incomplete: File is not",
        ),
        ("sample.npz", b"no arrays", r"sample\.npz cannot be read \(it is not an \.npz file of plain arrays\)"),
        ("results.json", b"{", r"results\.json cannot be read \(it is not JSON"),
        ("results.json", b"{}", r"results\.json cannot be read \(results is incomplete: it has no 'model'\)"),
    ],
)
def test_damaged_files_are_named(run, name, content, message):
    (run.path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        rescore_run(run)


def test_sample_without_sources_is_named(run):
    np.savez(run.sample_path, codes=np.zeros((4, 2), int))
    with pytest.raises(ValueError, match=r"sample\.npz cannot be read .*sources"):
        rescore_run(run)


def test_errors_say_what_is_missing(run):
    run.sample_path.unlink()
    with pytest.raises(ValueError, match=r"has no sample\.npz yet"):
        rescore_run(run)


def test_code_is_scored_as_its_number(parked):
    _, arrays = parked
    values, kind, _ = scored_form(arrays["latents"], arrays["codes"])
    assert kind == "codes"
    assert np.array_equal(values, arrays["latents"])
    blurred = arrays["latents"] + np.random.default_rng(0).normal(0, 1e-6, (4000, 4))
    for j, column in enumerate(scored_form(blurred, arrays["codes"])[0].T):
        assert len(np.unique(column)) == len(np.unique(arrays["codes"][:, j]))  # the index identifies the code


def test_codes_without_numbers_and_continuous_latents_are_scored_as_they_are(rng):
    codes, latents = rng.integers(0, 9, (20, 2)), rng.normal(size=(20, 2))
    assert scored_form(None, codes) == (codes, "codes", "one-hot")
    assert scored_form(latents, None) == (latents, "auto", "auto")
    with pytest.raises(ValueError, match=r"codes have shape \(20, 2\) and latents \(20, 1\)"):
        scored_form(latents[:, :1], codes)


@pytest.mark.filterwarnings("ignore")
def test_file_of_a_sample_is_scored_as_the_run_was(run):
    scores = score_file(run.sample_path)
    assert {name: scores[name] for name in ("infom", "infoe", "infoe_scalar", "infoc")} == {
        name: run.results["averaged"][name] for name in ("infom", "infoe", "infoe_scalar", "infoc")
    }


def test_protocols_differ_about_a_latent_that_hardly_varies(parked):
    sources, arrays = parked
    by_paper = score_weights(sources, arrays)
    by_code = score_weights(sources, arrays, protocol="official-train")
    assert by_paper["active_latents"] == [True, True, True, True]  # its range is not 0
    assert by_code["active_latents"] == [True, True, True, False]  # its range is below an eighth of the largest
    assert by_code["infom"] > 0.99
    assert by_paper["infom"] == infomec(sources, arrays["codes"]).infom < 0.95


def test_pruning_can_be_turned_off(parked):
    sources, arrays = parked
    whole = score_weights(sources, arrays, protocol="official-train", prune=False)
    assert whole["active_latents"] == [True, True, True, True]
    assert whole["infom_corrected"] == pytest.approx(0.75, abs=0.01)  # the fourth latent is noise


@pytest.mark.filterwarnings("ignore")
def test_pruning_stays_as_it_was_and_the_results_say_so(run, capsys):
    assert run.results["prune"] is True
    assert rescore_run(run, prune=False, bootstrap=2, show=False)["prune"] is False
    again = rescore_run(run, metrics=["mig"], show=False)
    assert again["prune"] is False
    assert "intervals" in again["averaged"]
    changed = rescore_run(run, prune=True, show=False)
    assert "intervals" not in changed["averaged"]
    with pytest.raises(SystemExit, match="0"):
        main(["evaluate", str(run.path), "--from-sample", "--no-prune", "--quiet"])
    assert Run(run.path).results["prune"] is False
    with pytest.raises(SystemExit):
        main(["evaluate", str(run.path), "--prune", "--no-prune"])
    assert "--prune and --no-prune contradict each other" in capsys.readouterr().err


def test_input_of_infoe_is_that_of_the_authors_for_each_kind_of_code(parked):
    sources, arrays = parked
    quantized = score_weights(sources, arrays, protocol="official-train")
    vectors = score_weights(sources, {"codes": arrays["codes"]}, protocol="official-train")
    assert (quantized["infoe_input"], vectors["infoe_input"]) == ("scalar", "one-hot")
    assert "infoe_scalar" in quantized
    assert "infoe_scalar" not in vectors


def test_scalar_infoe_depends_on_the_numbers_of_codes(parked):
    sources, arrays = parked
    ordered = score_weights(sources, {name: array[:, :2] for name, array in arrays.items()})
    shuffled = score_weights(sources, {name: array[:, 2:] for name, array in arrays.items()})
    by_index = infomec(sources, arrays["codes"][:, 2:]).infoe_scalar
    assert ordered["infoe_scalar"] > 0.99
    assert shuffled["infoe_scalar"] < by_index  # code 0 of the third latent has its largest number


def test_infomec_is_always_computed_and_all_means_all(parked):
    sources, arrays = parked
    assert {"infom", "mig"} <= score_weights(
        sources[:200], {n: a[:200] for n, a in arrays.items()}, metrics=["mig"]
    ).keys()
    assert metric_names(["infomec", "all"]) == metric_names()


@pytest.mark.filterwarnings("ignore")
def test_options_that_are_left_out_stay_as_they_were(run):
    first = rescore_run(run, metrics=["dci", "mig"], protocol="tripod", show=False)
    again = rescore_run(run, bootstrap=3, show=False)
    assert (again["protocol"], again["raw"]) == ("tripod", first["raw"])
    assert {"d", "mig"} <= again["averaged"].keys()
    assert "infom" in again["averaged"]["intervals"]
    assert "d" not in again["averaged"]["intervals"]  # intervals of DCI would take long and were not asked for


@pytest.mark.filterwarnings("ignore")
def test_a_new_evaluation_keeps_sample_size_protocol_and_metrics(evaluated, tmp_path, tiny_data):
    copy = Run(shutil.copytree(evaluated.path, tmp_path / "copy"))
    qlae.evaluate(copy, data=tiny_data, num_samples=30, protocol="tripod", metrics=["dci"], show=False)
    for bootstrap in (0, 3):
        results = qlae.evaluate(copy, data=tiny_data, bootstrap=bootstrap, show=False)
        assert (results["num_samples"], results["protocol"]) == (30, "tripod")
        assert {"infom", "d"} <= results["averaged"].keys()
    assert "d" not in results["averaged"]["intervals"]


def test_warnings_are_kept_with_the_results(evaluated):
    same = {"codes": np.zeros((50, 3), dtype=np.int64)}
    with pytest.warns(UserWarning, match="all observations have the same code"):
        score_weights(np.zeros((50, 0)), same)
    arrays = {"sources": np.zeros((50, 0)), **same, "raw_codes": np.arange(150).reshape(50, 3)}
    with pytest.warns(UserWarning, match="^averaged weights: all observations have the same code"):
        _, warned = score_sample(arrays)
    assert warned == [
        "averaged weights: all observations have the same code, so the model does not distinguish them; lower "
        "weight_decay, learning_rate or the weight of entropy, if the loss has one, or give latents more values by "
        "num_values (at least two). A run of very few updates may only need more of them"
    ]
    assert all(warning.startswith(("averaged weights: ", "raw weights: ")) for warning in evaluated.results["warnings"])


def test_what_is_true_of_both_weights_is_said_once_and_kept_for_each():
    same = np.ones((50, 2), dtype=np.float32)
    with pytest.warns(UserWarning, match="^all observations have the same code") as caught:
        _, messages = score_sample({"sources": np.zeros((50, 0)), "latents": same, "raw_latents": same})
    assert len(caught) == 1
    assert "num_values" not in str(caught[0].message)  # continuous latents have none
    assert [message.partition(": ")[0] for message in messages] == ["averaged weights", "raw weights"]


@pytest.mark.filterwarnings("ignore")
def test_metric_registered_from_outside_is_scored_and_kept(run):
    @register_metric("offset", title="Offset")
    def offset(sources, latents):
        return float(np.abs(latents.mean(axis=0)).max())

    try:
        results = rescore_run(run, metrics=["offset"], bootstrap=2, show=False)
        stored = read_sealed(run.results_path)
        assert stored == results
        for weights in ("averaged", "raw"):
            assert stored[weights]["offset"] > 0
        assert {"offset", "infom"} <= stored["averaged"]["intervals"].keys()
        assert metrics_of(stored) == ("infomec", "offset")
    finally:
        unregister_metric("offset")
    again = rescore_run(run, metrics=["mig"], protocol="tripod", show=False)  # without the import
    assert again["averaged"]["offset"] == results["averaged"]["offset"]
    with pytest.raises(ValueError, match="unknown metric 'offset'"):
        rescore_run(run, metrics=["offset"])
