"""What is committed of a study: the files of each run, and a picture of the median one of each model."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

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
