"""Studies over images without sources: values are selected, and runs compared, by agreement."""

import re
import shutil

import numpy as np
import pytest
from PIL import Image
from study_fixtures import InlineEngine, tiny_plan

from qlae.data import load_data
from qlae.study import StudyFolder, collect, run_study
from qlae.study.report import report_study
from qlae.study.report.summary import summarise
from qlae.study.status import describe_study
from qlae.study.tuning import select


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A finished study over a folder of images, and over rendered data with sources beside it."""
    root = tmp_path_factory.mktemp("without")
    images = np.asarray(load_data("shapes3d", resolution=16, sources=["floor hue", "shape"]).in_memory().images)
    (root / "images").mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image).save(root / "images" / f"{number:03}.png")
    data = {"mine": {"path": str(root / "images"), "resolution": 16}}
    plan = tiny_plan(data=data, models={"qlae": {"grid": [0.1, 0.3]}, "ae": {"grid": []}}, num_latents=4)
    engine = InlineEngine()
    index = run_study(plan, root / "study", engine)
    return plan, StudyFolder(root / "study"), index, engine


def test_every_run_is_done_and_a_value_is_selected(study):
    plan, folder, index, _engine = study
    assert {entry.state for entry in index.runs.values()} == {"done"}
    candidates = index.candidates["mine", "qlae"]
    assert [candidate.selected for candidate in candidates].count(True) == 1
    agreements = collect(folder.path).query("stage == 'tune'").tuning_agreement
    assert [candidate.quality for candidate in candidates] == agreements.tolist()
    again = InlineEngine()
    run_study(plan, folder.path, again)
    assert again.names == []  # nothing is repeated


def test_tables_have_agreement_and_psnr_and_name_the_run_to_take(study):
    _, folder, _, _ = study
    summary = summarise(folder)
    assert not summary.has_sources()
    page = report_study(folder, show=False).read_text()
    text = (folder.report_path / "tables.md").read_text()
    assert "| model | weights | agreement | PSNR (dB) |" in text
    assert "InfoM |" not in text
    assert "mine has no sources, so there is no InfoMEC" in text
    counted = summary.runs[summary.runs.counts]
    scores = dict(zip(zip(counted.model, counted.seed, strict=True), counted.agreement, strict=True))
    model, seed = max(scores, key=scores.get)
    assert f"The run to take is {model} with seed {seed}" in text
    path = text.partition(f"(agreement {scores[model, seed]:.3f}): ")[2].partition(" in the folder of the study.")[0]
    assert (folder.path / path / "config.json").is_file()
    assert "those of the other 3 runs on" in text
    assert "The run to take is" in page
    assert (folder.report_path / "main-agreement.csv").is_file()
    assert collect(folder.path).tuning_agreement.notna().sum() == 2


def test_a_missing_sample_is_no_agreement_instead_of_an_error(study):
    _, folder, _, _ = study
    sample = folder.run("mine/ae/s1").sample_path
    content = sample.read_bytes()
    try:
        sample.unlink()
        runs = summarise(folder).groups["mine", "ae"]
        assert runs.agreement.notna().tolist() == [False, True]
        report_study(folder, show=False)
    finally:
        sample.write_bytes(content)


def test_a_single_run_has_no_agreement(study, tmp_path):
    plan, folder, _, _ = study
    alone = tiny_plan(data=plan.content["data"], models={"ae": {"grid": []}}, num_latents=4, rerun_seeds=1)
    shutil.copytree(folder.run("mine/ae/s1").path, tmp_path / "runs/mine/ae/s1")
    StudyFolder(tmp_path).write_plan(alone)
    report_study(StudyFolder(tmp_path), show=False)
    text = (tmp_path / "report/tables.md").read_text()
    assert re.search(r"^\| ae \| averaged \| – \| \d", text, re.M)
    assert "mine has no sources, so there is no InfoMEC. Agreement compares at least two runs" in text
    assert "The run to take" not in text
    assert "0.00" not in text
    assert (tmp_path / "report/interventions-mine.png").is_file()


def test_two_runs_are_compared_with_the_other_run(study, tmp_path):
    plan, folder, _, _ = study
    for seed in (1, 2):
        shutil.copytree(folder.run(f"mine/ae/s{seed}").path, tmp_path / f"runs/mine/ae/s{seed}")
    StudyFolder(tmp_path).write_plan(tiny_plan(data=plan.content["data"], models={"ae": {"grid": []}}, num_latents=4))
    report_study(StudyFolder(tmp_path), show=False)
    assert "correspond to those of the other run on" in (tmp_path / "report/tables.md").read_text()


def test_selection_by_agreement_keeps_to_the_psnr():
    runs = [(0.1, {"agreement": 0.2, "psnr": 30.0}), (1.0, {"agreement": 0.6, "psnr": 20.0})]
    assert [c.value for c in select(runs, 6.0) if c.selected] == [0.1]
    assert [c.value for c in select(runs, None) if c.selected] == [1.0]
    assert [c.quality for c in select(runs, 6.0)] == [0.2, 0.6]


def test_studies_of_vectors_speak_of_r2(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "rows.npy", np.tanh(rng.normal(size=(60, 2)) @ rng.normal(size=(2, 6))))
    data = {"rows": {"path": str(tmp_path / "rows.npy")}}
    plan = tiny_plan(data=data, models={"qlae": {"grid": [0.1, 0.3]}, "ae": {"grid": []}}, num_latents=3)
    engine = InlineEngine()
    text = describe_study(plan, tmp_path / "study")
    assert "mean R² is near the best of the grid (1 − R² at most 4 times as large)" in text
    assert "PSNR" not in text
    run_study(plan, tmp_path / "study", engine)
    page = report_study(StudyFolder(tmp_path / "study"), show=False).read_text()
    assert "the lowest mean R² that counts" in page
    assert "agreement and R²" in page
    assert "mean PSNR" not in page
    runs = collect(tmp_path / "study")
    assert (runs.r2 <= 1).all()
    assert "psnr" not in runs
