"""Modules of a user's own: importing them by name or file, and studies whose models they register."""

import json
import sys

import pytest
from study_fixtures import OWN_MODEL, TINY

from qlae._imports import import_modules
from qlae.cli import main
from qlae.presets import MODELS
from qlae.study import collect

pytestmark = pytest.mark.usefixtures("own_presets")


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """A current directory with a module that registers a preset."""
    (tmp_path / "my_models.py").write_text(OWN_MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return stop.value.code


@pytest.mark.parametrize("name", ["my_models", "my_models.py", "./my_models.py"])
def test_modules_are_found_in_the_current_directory(in_folder, name):
    path = list(sys.path)
    import_modules([name])
    assert MODELS["mine"].weight_decay == 0.2
    assert sys.path == path
    assert sys.modules["my_models"].__file__ == str(in_folder / "my_models.py")


def test_a_module_is_executed_once_and_a_file_finds_its_neighbours(tmp_path):
    (tmp_path / "neighbour.py").write_text("LOADED = []\n")
    (tmp_path / "counting.py").write_text("import neighbour\nneighbour.LOADED.append(1)\n")
    import_modules([str(tmp_path / "counting.py")] * 2)
    import_modules(["counting"], directory=tmp_path)
    assert sys.modules["neighbour"].LOADED == [1]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module", r"cannot import 'no_such_module': there is no module 'no_such_module' in .* or among"),
        ("no_such.part", r"cannot import 'no_such\.part': there is no module 'no_such' in"),
        ("no/such.py", r"cannot import 'no/such\.py': the file .*no/such\.py does not exist"),
        ("folder/module", r"cannot import 'folder/module': 'folder/module' is not a valid module name"),
        ("json.py", r"cannot import 'json\.py': another module 'json' is already imported \(.*\); rename the file"),
        ("two words.py", r"cannot import 'two words\.py': 'two words' is not a valid module name"),
        ("broken", r"importing 'broken' failed: ZeroDivisionError: division by zero \(.*broken\.py, line 2\)"),
        ("broken.py", r"importing 'broken\.py' failed: ZeroDivisionError: division by zero \(.*broken\.py, line 2\)"),
        ("needy", r"importing 'needy' failed: ModuleNotFoundError: No module named 'no_such_module'"),
        ("leaving", r"importing 'leaving' failed: SystemExit: 3"),
        ("unparsable", r"importing 'unparsable' failed: SyntaxError: .*unparsable\.py, line 1"),
    ],
)
def test_errors_name_the_module(tmp_path, monkeypatch, name, message):
    modules = {"broken": "\n1 / 0", "needy": "import no_such_module", "leaving": "exit(3)", "unparsable": "1 +"}
    for stem, text in (modules | {"json": "", "two words": ""}).items():
        (tmp_path / f"{stem}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    path, before = list(sys.path), set(sys.modules)
    with pytest.raises(ValueError, match=message):
        import_modules([name])
    assert sys.path == path
    assert not (set(sys.modules) - before) & {*modules}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", ["my_models", "my_models.py"])
def test_a_study_with_a_model_of_ones_own(in_folder, capsys, module):
    plan = TINY | {"rerun_seeds": 2, "models": {"mine": {"grid": []}}}
    (in_folder / "plan.json").write_text(json.dumps(plan))
    options = ("--out", "x", "--workers", "1", "--device", "cpu", "--quiet", "--no-report")
    assert run("study", "plan.json", *options) == 2
    assert "unknown model 'mine'" in capsys.readouterr().err  # the plan alone imports nothing
    assert not (in_folder / "x").exists()
    assert run("study", "--import", module, "plan.json", *options) == 0  # in worker processes
    assert collect("x").state.tolist() == ["done", "done"]
    assert run("study", "status", "x", "--import", module) == 0
    assert "2 done, 0 running, 0 failed, 0 waiting" in capsys.readouterr().out
    del MODELS["mine"]
    assert run("study", "status", "x") == 2
    assert f"the study was run with --import {module}" in capsys.readouterr().err


def test_workers_that_cannot_import_a_module_fail_with_its_name(in_folder, capsys):
    (in_folder / "here_only.py").write_text(
        f"{OWN_MODEL}\nimport sys\nif any('worker' in part for part in sys.orig_argv): raise RuntimeError('not here')\n"
    )
    plan = TINY | {"rerun_seeds": 1, "models": {"mine": {"grid": []}}}
    (in_folder / "plan.json").write_text(json.dumps(plan))
    options = ("--out", "x", "--workers", "1", "--device", "cpu", "--quiet")
    assert run("study", "plan.json", "--import", "here_only", *options) == 1
    assert "failed shapes3d/mine/s1: ValueError: importing 'here_only' failed: RuntimeError: not here" in (
        capsys.readouterr().out
    )


def test_a_module_that_cannot_be_imported_ends_the_command_in_one_line(in_folder, capsys):
    assert run("study", "paper-quick", "--dry-run", "--import", "my_modles") == 2
    assert "qlae: cannot import 'my_modles': there is no module" in capsys.readouterr().err
