"""Studies over observations that are not the paper's: pictures that are not square, arrays in files, and vectors."""

import json

import numpy as np
import pytest
from PIL import Image
from study_fixtures import InlineEngine, tiny_plan

from qlae.study import StudyFolder, run_study
from qlae.study.report import report_study
from qlae.study.report.notes import notes
from qlae.study.report.summary import AGGREGATED, summarise
from qlae.study.report.tables import study_tables

SHAPES = {"wide": (8, 12, 1), "array": (9, 9, 2), "table": (5,)}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    root, rng = tmp_path_factory.mktemp("kinds"), np.random.default_rng(0)
    (root / "images").mkdir()
    for number in range(12):
        pixels = (255 * rng.random((20, 30, 3))).astype(np.uint8)
        Image.fromarray(pixels).save(root / "images" / f"{number}.png")
    np.save(root / "x.npy", (255 * rng.random((20, 9, 9, 2))).astype(np.uint8))
    rows = [",".join(f"{value:.3f}" for value in row) for row in rng.normal(size=(40, 5))]
    (root / "rows.csv").write_text("\n".join(["a,b,c,d,e", *rows]))
    data = {
        "wide": {"path": str(root / "images"), "resolution": "8x12", "grey": True},
        "array": {"path": str(root / "x.npy")},
        "table": {"path": str(root / "rows.csv")},
    }
    plan = tiny_plan(data=data, models={"qlae": {"grid": []}}, num_latents=3, rerun_seeds=2)
    engine = InlineEngine()
    index = run_study(plan, root / "study", engine)
    assert {entry.state for entry in index.runs.values()} == {"done"}, index
    return plan, StudyFolder(root / "study")


def test_runs_have_the_shapes_that_the_plan_asks_for(study):
    plan, folder = study
    for label, shape in SHAPES.items():
        assert folder.run(f"{label}/qlae/s2").config.data.observations.shape == shape
    again = InlineEngine()
    run_study(plan, folder.path, again)
    assert again.names == []  # nothing is repeated


def test_another_resolution_is_another_run(study):
    plan, folder = study
    content = json.loads(json.dumps(plan.content))
    content["data"]["wide"]["resolution"] = "12x8"
    with pytest.raises(ValueError, match=r"resolution is .8, 12. and .12, 8. in the plan"):
        run_study(type(plan).from_content(content, name="tiny"), folder.path, InlineEngine())


def test_the_report_does_not_compare_with_results_that_the_paper_does_not_have(study):
    _, folder = study
    page = report_study(folder, show=False).read_text()
    assert "The paper has no results on these data sets" in page
    assert "ours and published" not in page
    correlations = json.loads((folder.report_path / "correlations.json").read_text())
    assert not [row for row in correlations if "PSNR" in row["what"]]


def test_reports_neither_average_different_kinds_nor_speak_of_the_paper(study):
    summary = summarise(study[1])
    assert AGGREGATED not in {data for table in study_tables(summary) for data, _ in table.columns}
    assert "the paper's runs" not in "".join(notes(summary))
