"""Ranking runs: the choice, how sure it is, what is refused and what is skipped."""

import json
import math
import shutil

import numpy as np
import pytest
from selection_runs import disentangled, entangled, write_mixed, write_run

import qlae
from qlae.data import load_data
from qlae.selection.display import describe_choice, selection_csv, selection_figure
from qlae.selection.ranking import shares_first


def choose(paths, **options):
    return qlae.select(paths, show=False, **options)


def test_disentangled_runs_come_first_whatever_their_infom(tmp_path):
    good, _bad = write_mixed(tmp_path)
    selection = choose(tmp_path)
    assert {run.path for run in selection.runs[:3]} == {run.path for run in good}
    assert selection.best.path in {run.path for run in good}
    assert [run.infom for run in selection.runs] == [0.1] * 3 + [0.9] * 3
    assert selection.runs[0].agreement > 2 * selection.runs[-1].agreement
    assert selection.matrix == pytest.approx(selection.matrix.T, nan_ok=True)
    assert np.isnan(np.diag(selection.matrix)).all()
    assert sum(run.first for run in selection.runs) == pytest.approx(1.0)
    assert sum(run.first for run in selection.runs[3:]) < 0.1
    assert [warning for warning in selection.warnings if "compared on only 320 images" not in warning] == []
    assert not selection.skipped


def test_the_choice_is_the_same_without_sources(tmp_path):
    write_mixed(tmp_path / "with")
    write_mixed(tmp_path / "without", sources=False)
    first, second = choose(tmp_path / "with"), choose(tmp_path / "without")
    assert [run.path.name for run in first.runs] == [run.path.name for run in second.runs]
    assert [run.agreement for run in first.runs] == [run.agreement for run in second.runs]
    assert {run.infom for run in second.runs} == {None}


def test_models_with_continuous_latents_are_compared_with_codes(tmp_path):
    _good, _bad = write_mixed(tmp_path, num_good=2, num_bad=3)
    smooth = write_run(tmp_path / "ae", lambda s, seed: disentangled(s, seed), 5, model="ae")
    arrays = smooth.arrays(smooth.sample_path)
    noise = np.random.default_rng(0).normal(size=arrays["codes"].shape) * 0.05
    np.savez(smooth.sample_path, indices=arrays["indices"], sources=arrays["sources"], latents=arrays["codes"] + noise)
    selection = choose(tmp_path)
    assert {run.path.name for run in selection.runs[:3]} == {"good0", "good1", "ae"}


def test_runs_that_reconstruct_badly_are_not_taken(tmp_path):
    _good, _ = write_mixed(tmp_path)
    blurred = write_run(tmp_path / "blurred", lambda s, seed: disentangled(s, 0), 7, psnr=20.0)
    selection = choose(tmp_path)
    run = next(run for run in selection.runs if run.path == blurred.path)
    assert not run.is_near
    assert run.first == 0.0
    assert selection.best.path != blurred.path
    assert "too badly" not in describe_choice(selection)  # it is not above the run to take
    assert choose(tmp_path, near_db=20.0).runs[0].is_near
    with pytest.raises(ValueError, match="near_db=-1 must not be negative"):
        choose(tmp_path, near_db=-1)


def test_runs_that_use_few_latents_are_not_taken(tmp_path):
    def nearly_collapsed(sources, seed):
        codes = disentangled(sources, seed)
        codes[:, 1:] = 0
        return codes

    data = load_data("shapes3d", resolution=16, sources=["floor hue", "wall hue", "scale", "shape"])
    _good, bad = write_mixed(tmp_path, num_good=0, num_bad=5, data=data)
    poor = [write_run(tmp_path / f"poor{seed}", nearly_collapsed, 20 + seed, data=data).path for seed in range(3)]
    selection = choose(tmp_path)
    assert {run.path for run in selection.runs if run.uses_few} == set(poor)
    assert selection.runs[0].path in poor  # one latent resembles one part of every other run
    assert selection.best.path in {run.path for run in bad}
    count = selection.runs.index(selection.best)
    assert f"{count} runs above it use too few latents to be taken" in describe_choice(selection)
    assert all(run.first == 0.0 for run in selection.runs if run.uses_few)
    for path in [run.path for run in selection.runs if not run.uses_few]:
        shutil.rmtree(path)
    assert choose(tmp_path).best.path in poor  # among themselves they are not few


def test_the_choice_says_why_runs_above_it_are_not_taken(tmp_path):
    for seed, psnr in enumerate((20.0, 21.0, 20.5)):
        write_run(tmp_path / f"blurred{seed}", disentangled, seed, psnr=psnr)
    for seed in range(2):
        write_run(tmp_path / f"sharp{seed}", entangled, 10 + seed, psnr=30.0)
    text = describe_choice(choose(tmp_path))
    assert text.startswith(f"Take {tmp_path / 'sharp'}")
    assert text.endswith("3 runs above it reconstruct too badly to be taken: more than 6 dB below the best.")
    (tmp_path / "blurred0" / "results.json").unlink()
    (tmp_path / "blurred1" / "results.json").unlink()
    text = describe_choice(choose(tmp_path, near_db=3.5))
    assert text.endswith("1 run above it reconstructs too badly to be taken: more than 3.5 dB below the best.")


def test_too_few_runs_are_warned_about_or_refused(tmp_path):
    one = write_run(tmp_path / "one", disentangled, 0)
    with pytest.raises(ValueError, match="at least two finished runs, better 4 or more, got 1"):
        choose([one.path])
    two = write_run(tmp_path / "two", disentangled, 1, psnr=31.0)
    selection = choose([one, two])
    assert "cannot choose between them" in selection.warnings[0]
    assert selection.best.path == two.path  # the higher PSNR
    three = write_run(tmp_path / "three", disentangled, 2)
    assert "only 3 runs" in choose([one, two, three]).warnings[0]


def test_copies_of_a_run_are_left_out(tmp_path):
    write_mixed(tmp_path)
    before = choose(tmp_path)
    for name in ("zcopy1", "zcopy2"):
        write_run(tmp_path / name, disentangled, 0)
    selection = choose(tmp_path)
    assert [run.path for run in selection.runs] == [run.path for run in before.runs]
    reasons = {skip.path.name: skip.reason for skip in selection.skipped}
    assert set(reasons) == {"zcopy1", "zcopy2"}
    assert all(f"is a copy of {tmp_path / 'good0'}" in reason for reason in reasons.values())
    with pytest.raises(ValueError, match=r"got 1\. Skipped:\n.*zcopy1 is a copy of"):
        choose([tmp_path / "good0", tmp_path / "zcopy1"])


def test_collapsed_runs_are_no_copies(tmp_path):
    write_mixed(tmp_path)
    for name in ("collapsed1", "collapsed2"):
        write_run(tmp_path / name, lambda sources, seed: 0 * sources, 20)
    selection = choose(tmp_path)
    assert not selection.skipped
    assert {run.path.name for run in selection.runs[-2:]} == {"collapsed1", "collapsed2"}


def test_a_collapsed_run_is_last_and_named(tmp_path):
    write_mixed(tmp_path)
    write_run(tmp_path / "collapsed", lambda sources, seed: 0 * sources, 20)
    selection = choose(tmp_path)
    assert selection.runs[-1].path.name == "collapsed"
    assert (selection.runs[-1].agreement, selection.runs[-1].num_used) == (0.0, 0)


def independent(sources, seed):
    """Return codes that have nothing to do with the sources."""
    return np.random.default_rng(seed).integers(10, size=(len(sources), 6))


def test_agreement_near_chance_is_warned_about(tmp_path):
    for seed in range(4):
        write_run(tmp_path / f"noise{seed}", independent, seed, rows=np.arange(60))
    selection = choose(tmp_path)
    assert 0.01 < selection.chance < 0.08
    assert selection.best.agreement == pytest.approx(selection.chance, abs=0.02)
    few, low = selection.warnings
    assert few.startswith("the runs are compared on only 60 images, where agreement is imprecise; better are 1,000")
    assert "would be 0.0" in low
    assert low.endswith("these runs have hardly anything in common, so the choice says little")
    assert selection.to_dict()["chance"] == pytest.approx(selection.chance, abs=1e-6)
    assert selection_figure(selection).axes[0].images[0].get_clim() == (0.0, 0.5)  # so little agreement stays pale


def test_agreement_above_chance_is_not_warned_about(tmp_path):
    data = load_data("shapes3d", resolution=16, sources=["floor hue", "wall hue", "scale", "shape"])
    write_mixed(tmp_path, data=data)
    selection = choose(tmp_path)
    assert selection.num_images == 3200
    assert selection_figure(selection).axes[0].images[0].get_clim() == (0.0, pytest.approx(np.nanmax(selection.matrix)))
    assert selection.chance < 0.01
    assert not selection.warnings


def test_runs_of_different_data_are_refused(tmp_path):
    first = write_run(tmp_path / "a", disentangled, 0)
    other = load_data("shapes3d", resolution=16, sources=["floor hue", "scale", "orientation"])
    second = write_run(tmp_path / "b", disentangled, 1, data=other)
    with pytest.raises(ValueError, match=r"b and .*a are of different data: the number of images is"):
        choose([first, second])
    finer = load_data("shapes3d", resolution=32, sources=["floor hue", "scale", "shape"])
    third = write_run(tmp_path / "c", disentangled, 1, data=finer)
    with pytest.raises(ValueError, match="the size is 32×32 and 16×16"):
        choose([first, third])
    fixed = load_data("shapes3d", resolution=16, sources=["wall hue", "scale", "shape"])
    fourth = write_run(tmp_path / "d", disentangled, 1, data=fixed)
    with pytest.raises(ValueError, match="the sources are"):
        choose([first, fourth])


def test_samples_with_other_sources_for_the_same_rows_are_refused(tmp_path):
    first, second = (write_run(tmp_path / name, disentangled, s) for s, name in enumerate("ab"))
    arrays = second.arrays(second.sample_path)
    np.savez(second.sample_path, **arrays | {"sources": arrays["sources"][::-1]})
    with pytest.raises(ValueError, match="the same row numbers have other sources"):
        choose([first, second])


def test_samples_that_share_images_are_compared_on_those(tmp_path, monkeypatch):
    monkeypatch.setattr("qlae.selection.ranking.MIN_COMMON", 100)
    data = load_data("shapes3d", resolution=16, sources=["floor hue", "scale", "shape"])
    rows = np.arange(len(data))
    write_run(tmp_path / "a", disentangled, 0, rows=rows)
    write_run(tmp_path / "b", disentangled, 1, rows=rows[::-1])
    write_run(tmp_path / "c", disentangled, 2, rows=rows[20:])
    selection = choose(tmp_path)
    assert selection.num_images == len(data) - 20
    assert selection.matrix[0, 1] > 0.95  # rows were matched


def test_samples_of_other_images_need_checkpoints(tmp_path):
    write_run(tmp_path / "a", disentangled, 0, rows=np.arange(100))
    write_run(tmp_path / "b", disentangled, 1, rows=np.arange(100, 180))
    with pytest.raises(ValueError, match=r"only 0 images in common, and .*b has no checkpoint"):
        choose(tmp_path)


def test_unfinished_and_damaged_runs_are_named_and_skipped(tmp_path):
    write_mixed(tmp_path)
    unfinished = write_run(tmp_path / "unfinished", disentangled, 5, steps=50)
    unscored = write_run(tmp_path / "unscored", disentangled, 6)
    unscored.results_path.unlink()
    cut = write_run(tmp_path / "cut", disentangled, 7)
    cut.sample_path.write_bytes(cut.sample_path.read_bytes()[:100])
    odd = write_run(tmp_path / "odd", disentangled, 8)
    np.savez(odd.sample_path, indices=np.arange(5), sources=np.zeros((5, 3)), codes=np.zeros((4, 3), int))
    garbled = write_run(tmp_path / "garbled", disentangled, 9)
    garbled.config_path.write_text("{")
    selection = choose(tmp_path)
    reasons = {skip.path.name: skip.reason for skip in selection.skipped}
    assert len(selection.runs) == 6
    resume = f"resume it with `qlae train --resume {tmp_path}"
    assert (
        reasons[unfinished.path.name]
        == f"{unfinished.path} is unfinished after 50 of 100 updates; {resume}/unfinished`"
    )
    assert reasons[unscored.path.name] == f"{unscored.path} has neither results nor a checkpoint; {resume}/unscored`"
    assert "sample.npz cannot be read" in reasons[cut.path.name]
    assert "'codes' must" in reasons[odd.path.name]
    assert "cannot be read" in reasons[garbled.path.name]
    with pytest.raises(ValueError, match=r"got 0\. Skipped:\n.*unfinished.*\n.*unscored"):
        choose([unfinished, unscored])


def test_paths_without_runs_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"nowhere.*does not exist"):
        choose(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="empty holds no run directory"):
        choose(tmp_path / "empty")
    with pytest.raises(ValueError, match="file is a file"):
        choose(tmp_path / "file")
    with pytest.raises(ValueError, match="unknown set of weights 'row': did you mean \"raw\""):
        choose(tmp_path, weights="row")


def test_the_raw_weights_have_a_sample_of_their_own(tmp_path):
    for seed, run in enumerate(write_mixed(tmp_path)[0]):
        arrays = run.arrays(run.sample_path)
        np.savez(run.sample_path, **arrays, raw_codes=entangled(arrays["sources"], seed))
    selection = choose([tmp_path / f"good{s}" for s in range(3)], weights="raw")
    averaged = choose([tmp_path / f"good{s}" for s in range(3)])
    assert selection.runs[0].agreement < averaged.runs[0].agreement
    assert "no latents of the raw weights" in choose(tmp_path, weights="raw").skipped[0].reason


def test_output_is_plain_json_and_csv(tmp_path):
    write_mixed(tmp_path)
    selection = choose(tmp_path)
    content = json.loads(json.dumps(selection.to_dict(), allow_nan=False))
    assert content["take"] == str(selection.best.path)
    assert content["agreement"][0][0] is None
    assert math.isclose(content["agreement"][0][1], selection.matrix[0, 1], abs_tol=1e-6)
    lines = selection_csv(selection).splitlines()
    assert lines[0].startswith("run,model,seed,agreement,")
    assert len(lines) == 7
    assert [line.endswith(",True") for line in lines[1:]].count(True) == 1
    assert describe_choice(selection).startswith(f"Take {selection.best.path}: agreement 0.")


def test_the_bootstrap_tells_clear_choices_from_open_ones():
    clear = np.full((6, 6), 0.2)
    clear[0, :] = clear[:, 0] = 0.9
    np.fill_diagonal(clear, np.nan)
    everyone = np.ones(6, dtype=bool)
    assert shares_first(clear, everyone)[0] > 0.99
    equal = np.full((6, 6), 0.5)
    np.fill_diagonal(equal, np.nan)
    assert shares_first(equal, everyone) == pytest.approx(np.full(6, 1 / 6))
    assert shares_first(clear, ~np.eye(6, dtype=bool)[0])[0] == 0.0
