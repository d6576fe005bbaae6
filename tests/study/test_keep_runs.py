"""What is committed of a study: the files of each run, and a picture of the median one of each model."""

import importlib.util
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image
from study_fixtures import STEPS, write_run

from qlae._io import write_json
from qlae.study.folder import StudyFolder
from qlae.study.report.summary import summarise

TOOL = Path(__file__).parents[2] / "tools" / "keep_runs.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("keep_runs", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_kept_has_the_same_tables_and_is_left_alone(tool, folder, tmp_path):
    kept = tmp_path / "kept"
    study = shutil.copytree(folder.path, tmp_path / "study")
    tool.keep(study, kept, samples=False)
    whole, part = summarise(StudyFolder.open(study)), summarise(StudyFolder.open(kept))
    assert part.groups.keys() == whole.groups.keys()
    for pair, runs in part.groups.items():
        assert part.values(*pair, "infom") == whole.values(*pair, "infom")
        pictured = [path for path in (part.run(name).path for name in runs.run) if (path / tool.PICTURE).is_file()]
        assert pictured == [kept / whole.median_run(*pair).path.relative_to(study)]
        assert Image.open(pictured[0] / tool.PICTURE).mode == "P"
    assert not list(kept.rglob("*.safetensors")) + list(kept.rglob("*.npz"))

    changed = next(kept.rglob("results.json"))
    changed.write_text(json.dumps(json.loads(changed.read_text()) | {"seconds": 12345.0}))
    tool.keep(study, kept, samples=False)
    assert json.loads(changed.read_text())["seconds"] == 12345.0


def test_runs_of_another_machine_replace_those_of_the_same_name(tool, folder, tmp_path):
    kept = tmp_path / "kept"
    tool.keep(folder.path, kept)
    again = StudyFolder(tmp_path / "again")
    again.write_plan(folder.plan)
    write_run(again, "isaac3d/qlae/s3", "isaac3d", "qlae", 3, 0.123, precision="bfloat16")
    path = again.run("isaac3d/qlae/s3").results_path
    write_json(path, json.loads(path.read_text()) | {"device": "another machine"})

    tool.keep(again.path, kept)
    runs = pd.read_csv(kept / "runs.csv")
    assert 0.123 not in set(runs.infom)

    again.write_plan(folder.plan.with_options(rerun_seeds=3))
    tool.keep(again.path, kept, replace=True)
    table = pd.read_csv(kept / "runs.csv")
    changed = table[table.infom == 0.123].iloc[0]
    assert (changed.data, changed.model, changed.seed) == ("isaac3d", "qlae", 3)
    assert (changed.device, changed.precision, changed.steps) == ("another machine", "bfloat16", STEPS)
    assert {"infoe", "infoc", "d", "i", "c", "psnr"} <= set(table.columns)
    assert len(table) == len(runs) == 18
    assert StudyFolder.open(kept).plan.rerun_seeds == folder.plan.rerun_seeds
