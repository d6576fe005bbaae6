"""Studies from plan to results: the stages, what is repeated and what is not, and failures."""

import io
import json
import os
import re
import shutil
import warnings

import pytest
from PIL import Image
from rich.console import Console
from study_fixtures import InlineEngine, tiny_plan

import qlae
from qlae import pipeline
from qlae._io import read_sealed
from qlae.runs.directory import Run
from qlae.study import StudyFolder, is_study, run_study, worker
from qlae.study.folder import read_state, write_failure
from qlae.study.status import describe_study, status, status_table, summary_line
from qlae.study.tuning import select


def text_of(renderable) -> str:
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def states(index) -> dict[str, str]:
    return {name: entry.state for name, entry in index.runs.items()}


@pytest.fixture(scope="module")
def finished_study(tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "tiny"
    engine = InlineEngine()
    return out, engine, run_study(tiny_plan(), out, engine)


def test_stages_go_tune_select_rerun(finished_study):
    out, engine, index = finished_study
    assert engine.names[:2] == ["shapes3d/qlae/weight-decay-0.1-s0", "shapes3d/qlae/weight-decay-0.3-s0"]
    (chosen,) = index.selected_values("shapes3d", "qlae")
    assert engine.names[2:] == [
        f"shapes3d/{rest}" for s in (1, 2) for rest in (f"qlae/weight-decay-{chosen:g}-s{s}", f"ae/s{s}")
    ]
    assert set(states(index).values()) == {"done"}
    assert is_study(out)
    assert not is_study(out / "runs")


def test_a_finished_study_repeats_nothing(finished_study):
    out, _, index = finished_study
    assert describe_study(tiny_plan(), out).endswith("6 runs, 6 known to be finished")
    engine = InlineEngine()
    assert states(run_study(tiny_plan(), out, engine)) == states(index)
    assert engine.names == []


def test_a_plan_may_grow(finished_study):
    out, _, _ = finished_study
    engine = InlineEngine()
    run_study(tiny_plan(rerun_seeds=3), out, engine)
    assert [name.split("-s")[-1].split("/s")[-1] for name in engine.names] == ["3", "3"]


def test_a_metric_added_to_a_plan_is_computed_from_samples(tmp_path):
    out = tmp_path / "study"
    alone = {"tune": False, "rerun_seeds": 1, "models": ["qlae"]}
    run_study(tiny_plan(**alone), out, InlineEngine())
    (results_path,) = out.glob("runs/*/*/*/results.json")
    before = json.loads(results_path.read_text())
    (results_path.parent / "checkpoint.safetensors").unlink()
    description = describe_study(tiny_plan(**alone, metrics=["dci"]), out)
    assert "shapes3d/qlae/s1  20 updates\n" in description
    assert "1 run, 0 known to be finished\nTo estimate the time of one of them" in description
    engine = InlineEngine()
    index = run_study(tiny_plan(**alone, metrics=["dci"]), out, engine)
    assert set(states(index).values()) == {"done"}
    assert len(engine.names) == 1
    run_study(tiny_plan(**alone, metrics=["dci", "mig"]), out, engine)
    assert len(engine.names) == 2
    after = json.loads(results_path.read_text())
    mig = after["averaged"].pop("mig")
    assert 0 <= mig <= 1
    assert after["averaged"] == before["averaged"] | {name: after["averaged"][name] for name in ("d", "i", "c", "dci")}


def test_only_reruns_are_scored_with_further_metrics(tmp_path):
    plan = tiny_plan(metrics=["dci"], rerun_seeds=1, models={"qlae": {"grid": [0.1]}})
    index = run_study(plan, tmp_path / "x", InlineEngine())
    assert {(run.job.stage, "d" in run.results["averaged"]) for run in index.runs.values()} == {
        ("tune", False),
        ("rerun", True),
    }
    again = InlineEngine()
    run_study(plan, tmp_path / "x", again)
    assert again.names == []  # tuning runs are finished without DCI


def test_another_plan_in_the_same_folder_is_an_error(finished_study):
    out, _, _ = finished_study
    with pytest.raises(ValueError, match=r"another run: training.steps is 20, the plan says 10.*Choose another folder"):
        run_study(tiny_plan(steps=10), out, InlineEngine())
    with pytest.raises(
        ValueError, match=r"holds another run: training.batch_size is 8, the plan says 4.*Choose another folder"
    ):
        run_study(tiny_plan(batch_size=4), out, InlineEngine())
    other = {"shapes3d": {"resolution": 16, "sources": ["wall hue", "shape"]}}
    with pytest.raises(ValueError, match=r"holds another run: sources is .*floor hue"):
        run_study(tiny_plan(data=other), out, InlineEngine())
    assert StudyFolder(out).plan.data[0].spec.sources == ("floor hue", "shape")  # the plan is as it was


def test_a_stopped_study_is_resumed_and_repeats_nothing(tmp_path):
    engine = InlineEngine(stop_after=3)
    with pytest.raises(KeyboardInterrupt):
        run_study(tiny_plan(), tmp_path / "x", engine)
    index = read_state(tiny_plan(), StudyFolder(tmp_path / "x"))
    assert sorted(states(index).values()) == ["done", "done", "done", "waiting", "waiting", "waiting"]
    rest = InlineEngine()
    index = run_study(tiny_plan(), tmp_path / "x", rest)
    assert set(states(index).values()) == {"done"}
    assert len(rest.names) == 3
    assert not set(rest.names) & set(engine.names)


def test_failures_are_recorded_and_stop_no_other_run(tmp_path):
    models = {"qlae": {"grid": []}, "ae": {"grid": [], "learning_rate": 1e30}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        index = run_study(tiny_plan(models=models, rerun_seeds=1), tmp_path / "x", InlineEngine())
    assert states(index) == {"shapes3d/qlae/s1": "done", "shapes3d/ae/s1": "failed"}
    entry = index.runs["shapes3d/ae/s1"]
    assert "TrainingDiverged: the loss is not finite" in entry.error
    failure = json.loads((tmp_path / "x/runs/shapes3d/ae/s1/failure.json").read_text())
    assert failure["error"] == entry.error
    assert "Traceback" in failure["trace"]
    again = InlineEngine()
    run_study(tiny_plan(models=models, rerun_seeds=1), tmp_path / "x", again)
    assert again.names == []
    assert "failed shapes3d/ae/s1: TrainingDiverged" in text_of(status(StudyFolder(tmp_path / "x")))
    other = models | {"qlae": {"grid": [], "learning_rate": 1e-4}}
    with pytest.raises(ValueError, match="holds another run"):
        run_study(tiny_plan(models=other, rerun_seeds=1), tmp_path / "x", again, retry_failed=True)
    assert (tmp_path / "x/runs/shapes3d/ae/s1/failure.json").exists()  # the plan is checked first
    retried = InlineEngine()
    run_study(tiny_plan(models=models, rerun_seeds=1), tmp_path / "x", retried, retry_failed=True)
    assert retried.names == ["shapes3d/ae/s1"]


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("…")
    with pytest.raises(ValueError, match="is not empty and is not a study; choose another folder"):
        run_study(tiny_plan(), tmp_path, InlineEngine())
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_a_killed_process_was_writing_does_not_block_a_study(tmp_path):
    plan = tiny_plan(tune=False, rerun_seeds=1, models=["ae"])
    run = StudyFolder(tmp_path).run("shapes3d/ae/s1")
    (tmp_path / ".study.json.0123456789abcdef.tmp").write_text("{")
    assert "1 run" in describe_study(plan, tmp_path)
    run.path.mkdir(parents=True)
    StudyFolder(tmp_path).write_plan(plan)
    (run.path / ".config.json.0123456789abcdef.tmp").write_text("{")
    assert states(run_study(plan, tmp_path, InlineEngine())) == {"shapes3d/ae/s1": "done"}


def test_a_second_driver_is_refused(finished_study):
    out, _, _ = finished_study
    folder = StudyFolder(out)
    assert not folder.is_driven()
    with folder.locked():
        assert folder.is_driven()
        with pytest.raises(ValueError, match=rf"is being run by another process \(process {os.getpid()}\); wait"):
            run_study(tiny_plan(), out, InlineEngine())


def test_select_requires_a_psnr_near_the_best():
    scores = [(0.1, {"infom": 0.5, "psnr": 30.0}), (0.1, {"infom": 0.7, "psnr": 32.0})]
    scores += [(1.0, {"infom": 0.9, "psnr": 28.1}), (10.0, {"infom": 1.0, "psnr": 20.0})]
    candidates = select(scores, 3.0)
    assert [(c.value, c.near, c.selected) for c in candidates] == [
        (0.1, True, False),
        (1.0, True, True),
        (10.0, False, False),
    ]
    assert candidates[0].quality == 0.6
    assert [c.value for c in select(scores, 2.0) if c.selected] == [0.1]
    assert select([], 3.0) == []


def test_status_shows_the_state(finished_study):
    out, _, index = finished_study
    text = text_of(status_table(index, StudyFolder(out)))
    assert "shapes3d" in text
    assert "6 done, 0 running, 0 failed, 0 waiting" in str(summary_line(index))
    folder = StudyFolder(out)
    run = folder.run("shapes3d/ae/s1")
    run.results_path.rename(run.path / "aside")
    text = text_of(status(folder))
    assert "0 running, 0 failed, 1 waiting" in text
    assert "of training left" in text
    assert "The study is not running. To resume it: qlae study" in text
    with run.locked():
        text = text_of(status(folder))
        assert "1 running, 0 failed, 0 waiting" in text
        assert "running shapes3d/ae/s1: update 20 of 20" in text
    (run.path / "aside").rename(run.results_path)
    assert re.search(r"\d done, 0 running, 0 failed, 0 waiting", text_of(status(folder)))
    with pytest.raises(ValueError, match=r"is not a study: it has no study\.json"):
        StudyFolder.open(out / "runs")


@pytest.mark.parametrize("content", ["{", "[]", '{"oops": 1}'])
def test_a_damaged_record_of_a_failure_still_says_that_the_run_failed(tmp_path, content):
    plan = tiny_plan(tune=False, rerun_seeds=1, models=["ae"])
    folder = StudyFolder(tmp_path / "x")
    folder.write_plan(plan)
    write_failure(folder.run("shapes3d/ae/s1"), "ValueError: no luck")
    assert read_state(plan, folder).runs["shapes3d/ae/s1"].error == "ValueError: no luck"
    (folder.run("shapes3d/ae/s1").path / "failure.json").write_text(content)
    (state,) = read_state(plan, folder).runs.values()
    assert (state.state, "failure.json cannot be read" in state.error) == ("failed", True)


def test_damaged_or_differently_scored_runs_are_named_and_repeated(tmp_path):
    plan = tiny_plan(tune=False, models=["qlae", "ae"])
    folder = StudyFolder(tmp_path / "x")
    run_study(plan, folder.path, InlineEngine())
    names = [f"shapes3d/{model}/s{seed}" for model in ("qlae", "ae") for seed in (1, 2)]
    right = {name: folder.run(name).results for name in names}
    damaged, otherwise, gone, _ = names
    folder.run(damaged).results_path.write_text("{")
    qlae.evaluate(folder.run(otherwise), num_samples=30, show=False)
    shutil.rmtree(folder.run(gone).path)
    text = text_of(status(folder))
    assert f"will run again {damaged}: its results cannot be read" in text
    assert f"will run again {otherwise}: scored on 30 samples, the plan says 40" in text
    assert "1 done, 0 running, 0 failed, 3 waiting" in text
    engine = InlineEngine()
    run_study(plan, folder.path, engine)
    assert sorted(engine.names) == sorted([damaged, otherwise, gone])
    for name, results in right.items():
        assert folder.run(name).results["averaged"] == results["averaged"]


def test_a_run_that_failed_at_once_does_not_block_a_better_plan(tmp_path):
    bad = tiny_plan(tune=False, rerun_seeds=1, models={"ae": {"learning_rate": 1e30}})
    index = run_study(bad, tmp_path / "x", InlineEngine())
    assert set(states(index).values()) == {"failed"}
    good = tiny_plan(tune=False, rerun_seeds=1, models={"ae": {"learning_rate": 1e-3}})
    index = run_study(good, tmp_path / "x", InlineEngine())
    assert set(states(index).values()) == {"failed"}  # failed runs are repeated only on request
    index = run_study(good, tmp_path / "x", InlineEngine(), retry_failed=True)
    assert set(states(index).values()) == {"done"}


def test_another_plan_for_a_folder_warns_about_runs_that_it_leaves_out(finished_study):
    out, _, index = finished_study
    with pytest.warns(UserWarning, match="holds finished runs that the plan does not name.*: shapes3d/qlae"):
        run_study(tiny_plan(models={"ae": {"grid": []}}), out, InlineEngine())
    assert states(run_study(tiny_plan(), out, InlineEngine())) == states(index)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": ["shapes4d"]}, r"data\.shapes4d: .*shapes3d"),
        ({"data": {"mine": {"path": "/nowhere/at/all"}}}, r"data\.mine: /nowhere/at/all does not exist"),
        ({"data": {"mine": {"path": ""}}}, r"data\.mine: path is empty"),
        (
            {"data": {"mine": {"path": ".", "source_file": "/no/where.csv"}}},
            r"data\.mine: /no/where.csv does not exist",
        ),
        ({"data": {"mine": {"path": ".", "resolution": 7}}}, r"data\.mine: .*from 8 to 1024, got 7"),
        ({"data": {"mine": {"path": "."}}, "steps": -5}, r"models\.qlae: steps must be .*-5"),
        (
            {"metrics": ["explicitness"], "data": {"shapes3d": {"resolution": 16, "continuous": True}}},
            r"data\.shapes3d: no model of shapes3d could be scored .*needs discrete sources",
        ),
        ({"data": {"shapes3d": {"sources": ["colour"]}}}, r"data\.shapes3d: .*colour"),
        ({"data": {"shapes3d": {"resolution": 300}}}, r"data\.shapes3d: the networks take images .*got 300"),
        ({"data": {"shapes3d": {"resolution": 7}}}, r"data\.shapes3d: .*from 8 to 1024, got 7"),
        ({"steps": -5}, r"models\.qlae: steps must be .*-5"),
        ({"models": {"beta-vae": {"weights": {"klx": 1.0}}}}, r"models\.beta-vae: .*klx"),
        ({"models": {"qlae": {"num_values": [3, 4]}}}, r"models\.qlae: num_values has 2 entries for 4 latents"),
    ],
)
def test_plans_that_cannot_succeed_are_rejected_before_anything_runs(tmp_path, changes, message):
    for attempt in (
        lambda: describe_study(tiny_plan(**changes), tmp_path / "x"),
        lambda: run_study(tiny_plan(**changes), tmp_path / "x", InlineEngine()),
    ):
        with pytest.raises(ValueError, match=message):
            attempt()
    assert not (tmp_path / "x").exists()


ONE_RUN = {"rerun_seeds": 1, "models": {"ae": {"grid": []}}}


@pytest.mark.parametrize("change", [{"correlated": [["floor hue", "shape", 0.2]]}, {"seed": 5}, {"num_images": 31}])
def test_other_data_under_the_same_label_contradict_the_study(tmp_path, change):
    drawn = {"resolution": 16, "num_images": 30, "correlated": [["floor hue", "shape", 0.7]]}
    drawn["sources"] = ["floor hue", "shape"]
    run_study(tiny_plan(**ONE_RUN, data={"shapes3d": drawn}), tmp_path / "x", InlineEngine())
    with pytest.raises(ValueError, match=f"holds another run: {next(iter(change))} is"):
        run_study(tiny_plan(**ONE_RUN, data={"shapes3d": drawn | change}), tmp_path / "x", InlineEngine())


def test_a_seed_that_is_not_used_does_not_change_the_data(tmp_path):
    grid = {"resolution": 16, "sources": ["floor hue", "shape"]}
    run_study(tiny_plan(**ONE_RUN, data={"shapes3d": grid}), tmp_path / "x", InlineEngine())
    engine = InlineEngine()
    run_study(tiny_plan(**ONE_RUN, data={"shapes3d": grid | {"seed": 5}}), tmp_path / "x", engine)
    assert engine.names == []


@pytest.fixture
def own_images(tmp_path):
    """A folder of 24 images and a CSV of their sources."""
    folder = tmp_path / "images"
    folder.mkdir()
    data = qlae.load_data("shapes3d", resolution=16, sources=["floor hue", "shape"])
    lines = ["file,hue,shape"]
    for i in range(24):
        Image.fromarray(data.images[i]).save(folder / f"{i:02}.png")
        lines.append(f"{i:02}.png,{data.sources[i][0]},{data.sources[i][1]}")
    (tmp_path / "sources.csv").write_text("\n".join(lines))
    return folder


def test_images_may_be_named_by_their_path_and_the_study_resumed_from_elsewhere(tmp_path, own_images, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entry = {"name": str(own_images), "source_file": "sources.csv", "resolution": 16}
    index = run_study(tiny_plan(**ONE_RUN, data={"own": entry}), tmp_path / "x", InlineEngine())
    assert states(index) == {"own/ae/s1": "done"}
    monkeypatch.chdir("/")
    engine = InlineEngine()
    run_study(StudyFolder(tmp_path / "x").plan, tmp_path / "x", engine)
    assert engine.names == []


def test_images_that_change_under_a_study_are_not_mixed(tmp_path, own_images):
    entry = {"path": str(own_images), "source_file": str(tmp_path / "sources.csv"), "resolution": 16}
    one = {"models": {"ae": {"grid": []}}, "data": {"own": entry}}
    run_study(tiny_plan(**one, rerun_seeds=1), tmp_path / "x", InlineEngine())
    table = (tmp_path / "sources.csv").read_text().splitlines()
    (own_images / "23.png").unlink()
    (tmp_path / "sources.csv").write_text("\n".join(table[:-1]))
    worker._data_cache.clear()  # as in a new process
    index = run_study(tiny_plan(**one, rerun_seeds=2), tmp_path / "x", InlineEngine())
    assert states(index) == {"own/ae/s1": "done", "own/ae/s2": "failed"}
    assert "images is 23 and 24" in index.runs["own/ae/s2"].error
    run = StudyFolder(tmp_path / "x").run("own/ae/s2")
    shutil.copytree(StudyFolder(tmp_path / "x").run("own/ae/s1").path, run.path, dirs_exist_ok=True)
    config = read_sealed(run.config_path)
    config["training"]["seed"], config["data"]["num_images"] = 2, 23
    run.config_path.write_text(json.dumps(config))
    run.results_path.write_text(json.dumps(run.results | {"num_samples": 23}))
    with pytest.raises(ValueError, match=r"s2 and .*s1 are on different data: the number of images is 23 and 24; move"):
        run_study(tiny_plan(**one, rerun_seeds=2), tmp_path / "x", InlineEngine())
    assert "will run again own/ae/s2" in text_of(status(StudyFolder(tmp_path / "x")))


def test_a_damaged_sample_is_repeated_and_a_damaged_config_stops_no_other_run(tmp_path):
    plan, out = {"rerun_seeds": 2, "models": {"ae": {"grid": []}}}, tmp_path / "x"
    run_study(tiny_plan(**plan), out, InlineEngine())
    first, second = (StudyFolder(out).run(f"shapes3d/ae/s{seed}") for seed in (1, 2))
    first.sample_path.write_bytes(b"no zip")
    second.config_path.write_text("{")
    index = run_study(tiny_plan(**plan, metrics=["mig"]), out, InlineEngine())
    assert states(index) == {"shapes3d/ae/s1": "done", "shapes3d/ae/s2": "failed"}
    assert "mig" in first.results["averaged"]
    assert "config.json cannot be read" in index.runs["shapes3d/ae/s2"].error


def test_a_study_trains_an_autoencoder_once_for_its_components(tmp_path, monkeypatch):
    plan = tiny_plan(models={"ae": {"grid": []}, "ae-ica": {"grid": []}}, rerun_seeds=1)
    trained = []
    train_run = pipeline.train_run

    def note(run, config, *arguments, **options):
        trained.append((config.model, run.updates_made))
        return train_run(run, config, *arguments, **options)

    monkeypatch.setattr(pipeline, "train_run", note)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        index = run_study(plan, tmp_path / "both", InlineEngine())
        alone = tiny_plan(models={"ae-ica": {"grid": []}}, rerun_seeds=1)
        run_study(alone, tmp_path / "alone", InlineEngine())
    assert set(states(index).values()) == {"done"}
    steps = Run(next((tmp_path / "both" / "runs").glob("*/ae/*"))).config.training.steps
    assert trained == [("ae", None), ("ae-ica", steps), ("ae-ica", None)]
    both, once = (
        Run(next((tmp_path / name / "runs").glob("*/ae-ica/*"))).results["averaged"] for name in ("both", "alone")
    )
    assert both == once
