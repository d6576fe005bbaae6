"""A study as the authors ran theirs: which runs are selected, which seeds count, and with which weights."""

import html
import json
import math

import numpy as np
import pandas as pd
import pytest
from study_fixtures import tiny_plan, write_run

from qlae._io import write_json
from qlae.cli import main
from qlae.paper_tables import published_results
from qlae.presets import MODELS
from qlae.study import Plan, StudyFolder, collect, read_plan
from qlae.study.folder import read_state
from qlae.study.jobs import rerun_jobs, tune_jobs
from qlae.study.report import report_study
from qlae.study.report.notes import notes
from qlae.study.report.summary import summarise
from qlae.study.tuning import NEAR_DB, select

GRID = (0.001, 0.1)
TUNING = {0.001: (0.60, 0.62), 0.1: (0.90, 0.94)}  # InfoM of seeds 0 and 1
RERUNS = (0.91, 0.92, 0.95, 0.97, 0.99)  # of seeds 2 to 6
DECIBELS = {0.001: 37.5, 0.1: 32.9}  # the published PSNR of QLAE on Shapes3D without and with weight decay


@pytest.fixture
def tuned(tmp_path):
    """A finished study of one tuned and one untuned model, written by hand."""
    models = {"qlae": {"grid": list(GRID)}, "qlae-no-weight-decay": {}}
    content = {"data": ["shapes3d"], "models": models, "steps": 30_000, "metrics": ["infomec"]}
    study = StudyFolder(tmp_path / "study")
    study.write_plan(Plan.from_content(content, name="study"))
    for value, scores in TUNING.items():
        for seed, infom in enumerate(scores):
            name = f"shapes3d/qlae/weight-decay-{value:g}-s{seed}"
            write_run(study, name, "shapes3d", "qlae", seed, infom, psnr=DECIBELS[value], weight_decay=value)
    for seed, infom in enumerate(RERUNS, start=2):
        write_run(study, f"shapes3d/qlae/weight-decay-0.1-s{seed}", "shapes3d", "qlae", seed, infom, weight_decay=0.1)
        name = f"shapes3d/qlae-no-weight-decay/s{seed}"
        write_run(study, name, "shapes3d", "qlae-no-weight-decay", seed, 0.7)
    return study


def test_the_default_filter_keeps_what_the_authors_selected():
    """Every published autoencoder is within the filter of the same model without its regularization, or of the AE."""
    table = published_results()
    pairs = {"qlae": "qlae-no-weight-decay", "qlae-global-codebook": "qlae-no-weight-decay"}
    pairs |= {"vq-vae-weight-decay": "vq-vae", "beta-vae": "ae", "beta-tcvae": "ae", "bioae": "ae"}
    gaps = {
        (data, model): table[data, free, "psnr"].mean - table[data, model, "psnr"].mean
        for model, free in pairs.items()
        for data in ("shapes3d", "mpi3d", "falcor3d", "isaac3d")
    }
    assert gaps["shapes3d", "qlae"] == pytest.approx(4.6)
    assert max(gaps.values()) == gaps["shapes3d", "bioae"] == pytest.approx(5.7)
    assert max(gaps.values()) < NEAR_DB == Plan.from_content({"data": ["shapes3d"], "models": ["ae"]}).near_db


def test_the_psnr_filter_is_for_autoencoders_only(tmp_path):
    runs = [(0.1, {"infom": 0.8, "psnr": 30.0}), (1.0, {"infom": 0.9, "psnr": 15.0})]
    assert [c.near for c in select(runs, 6.0)] == [True, False]
    assert [(c.near, c.selected) for c in select(runs, None)] == [(True, False), (True, True)]
    models = {"qlinfowgan-gp": {"grid": [0.001, 0.1]}, "qlae": {"grid": [0.001, 0.1]}}
    plan = tiny_plan(models=models, tune_seeds=1, rerun_seeds=0, size="full", steps=30_000, num_samples=10_000)
    plan = Plan.from_content(plan.content | {"data": ["shapes3d"], "batch_size": 8}, name="study")
    study = StudyFolder(tmp_path / "study")
    study.write_plan(plan)
    for model in models:
        for value, infom, psnr in ((0.001, 0.5, 25.0), (0.1, 0.7, 12.0)):
            name = f"shapes3d/{model}/weight-decay-{value:g}-s0"
            write_run(study, name, "shapes3d", model, 0, infom, psnr=psnr, weight_decay=value, batch_size=8)
    index = read_state(plan, study)
    assert index.selected_values("shapes3d", "qlinfowgan-gp") == [0.1]
    assert index.selected_values("shapes3d", "qlae") == [0.001]


def test_selection_uses_the_weights_that_the_plan_names(tuned):
    for path in tuned.path.glob("runs/shapes3d/qlae/weight-decay-0.1-s?/results.json"):
        path.write_text(path.read_text().replace('"raw": {\n    "infom": 0.', '"raw": {\n    "infom": 0.0'))
    plan = tuned.plan
    assert read_state(plan, tuned).selected_values("shapes3d", "qlae") == [0.1]
    raw = plan.with_options(scored_weights="raw")
    assert read_state(raw, tuned).selected_values("shapes3d", "qlae") == [0.001]


def test_a_selected_value_that_encodes_less_than_others_is_called_into_question(tuned):
    assert "less than half of the InfoE" not in "".join(notes(summarise(tuned)))
    for seed in (0, 1):
        path = tuned.run(f"shapes3d/qlae/weight-decay-0.1-s{seed}").results_path
        results = json.loads(path.read_text())
        results["averaged"]["infoe"] = 0.25
        write_json(path, results)
    (warning,) = (note for note in notes(summarise(tuned)) if note.startswith("Warning"))
    assert "qlae on shapes3d (0.1: InfoE 0.25; 0.001: 0.61)" in warning


def test_runs_without_raw_scores_are_unfinished(tuned):
    plan = tuned.plan.with_options(scored_weights="raw")
    assert read_state(plan, tuned).selected_values("shapes3d", "qlae")
    path = tuned.run("shapes3d/qlae/weight-decay-0.1-s0").results_path
    path.write_text(path.read_text().replace('"raw"', '"other"'))
    index = read_state(plan, tuned)
    assert not index.selected_values("shapes3d", "qlae")
    assert index.runs["shapes3d/qlae/weight-decay-0.1-s0"].state != "done"


def test_seven_seeds_as_in_the_authors_tables(tuned):
    reruns = summarise(tuned).groups["shapes3d", "qlae"]
    assert reruns.seed.tolist() == [2, 3, 4, 5, 6]
    values = [*TUNING[0.1], *RERUNS]
    for aggregate, ddof in (("all-seeds", 1), ("authors", 0)):
        cell = summarise(tuned, aggregate=aggregate).cell("shapes3d", "qlae", "infom")
        assert sorted(cell.values) == sorted(values)
        assert cell.mean == pytest.approx(np.mean(values))
        assert cell.half == pytest.approx(2.447 * np.std(values, ddof=ddof) / math.sqrt(7), rel=1e-3)
    runs = collect(tuned.path, aggregate="authors")
    assert runs[runs.counts & (runs.stage == "tune")].infom.tolist() == [0.9, 0.94]


def test_untuned_models_have_as_many_seeds_if_tuning_runs_count():
    models = {"qlae": {"grid": [0.1]}, "qlae-no-weight-decay": {}}
    content = {"data": ["shapes3d"], "models": models}
    values = {("shapes3d", "qlae"): 0.1, ("shapes3d", "qlae-no-weight-decay"): None}
    for aggregate, untuned in (("reruns", [2, 3, 4, 5, 6]), ("authors", [0, 1, 2, 3, 4, 5, 6])):
        plan = Plan.from_content(content | {"aggregate": aggregate})
        jobs = [*tune_jobs(plan), *rerun_jobs(plan, values)]
        assert sorted(job.seed for job in jobs if job.model.label == "qlae") == [0, 1, 2, 3, 4, 5, 6]
        assert [job.seed for job in jobs if job.model.label == "qlae-no-weight-decay"] == untuned


def test_the_paper_plans_count_the_seeds_of_the_authors():
    for name in ("paper", "ablations"):
        plan = read_plan(name)
        assert (plan.aggregate, plan.tune_seeds + plan.rerun_seeds) == ("authors", 7)
    assert read_plan("paper-quick").aggregate == "reruns"
    assert MODELS["qlae"].grid == (0.001, 0.01, 0.1, 1.0)


def test_the_page_shows_seeds_tuning_curves_chosen_values_and_links(tuned):
    page = report_study(tuned, show=False, aggregate="authors")
    text = html.unescape(page.read_text())
    assert "<h3>shapes3d: qlae</h3><div class=pair><svg" in text
    assert text.count('class="tick chosen"') == 2  # once for InfoM and once for PSNR
    assert text.count("class=band") == 2
    assert "selected out of 0.001, 0.1" in text
    assert "preset or plan" in text  # of the untuned model
    assert '<a href="../runs/shapes3d/qlae/weight-decay-0.1-s4/">' in text
    assert (page.parent / "../runs/shapes3d/qlae/weight-decay-0.1-s4/").is_dir()
    assert "<title>seed 0: 0.900, 3 of 4 latents informative</title>" in text
    assert 'class="dot hollow"' in text  # tuning runs among the seeds
    assert "among those whose mean PSNR is at most 6 dB below the best of the grid" in text
    assert "those of tuning included, with the deviation of the authors' tables" in text
    runs = pd.read_csv(page.with_name("runs.csv"))
    columns = ["hyperparameter", "value", "seed", "infom", "informative", "active", "psnr", "near", "selected"]
    assert runs[runs.stage == "tune"].sort_values(["value", "seed"])[columns].to_numpy().tolist() == [
        ["weight_decay", 0.001, 0, 0.6, 3, 4, 37.5, True, False],
        ["weight_decay", 0.001, 1, 0.62, 3, 4, 37.5, True, False],
        ["weight_decay", 0.1, 0, 0.9, 3, 4, 32.9, True, True],
        ["weight_decay", 0.1, 1, 0.94, 3, 4, 32.9, True, True],
    ]


@pytest.mark.filterwarnings("ignore")
def test_flags_of_the_command_line(tuned, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["report", str(tuned.path), "--scored-weights", "raw", "--aggregate", "all-seeds"])
    assert stop.value.code == 0
    text = (tuned.report_path / "tables.md").read_text()
    assert "Scores of the raw weights" in text
    assert "over 7 seeds, those of tuning included" in text
    assert "Hyperparameters were selected by those of the averaged weights" in text
    with pytest.raises(SystemExit):
        main(
            ["report", str(tuned.path / "runs" / "shapes3d" / "qlae" / "weight-decay-0.1-s2"), "--aggregate", "authors"]
        )
    assert "--scored-weights and --aggregate are for studies" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["study", str(tuned.path), "--scored-weights", "raw", "--aggregate", "authors", "--dry-run"])
    assert "the value with the best mean InfoM of the raw weights" in capsys.readouterr().out
