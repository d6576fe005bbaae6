"""The house rules that a machine can check: what imports what, and no pickle anywhere."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import qlae

PACKAGE = Path(qlae.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("module", ["qlae", "qlae.metrics", "qlae.cli", "qlae.cli.score"])
def test_importing_does_not_load_torch(module):
    code = f"import {module}, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_asking_for_help_does_not_load_torch():
    code = "try: qlae.cli.main(['--help'])\nexcept SystemExit: pass\nsys.exit('torch' in sys.modules)"
    code = f"import sys, qlae.cli\n{code}"
    assert subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.DEVNULL).returncode == 0


@cache
def imports_of(path: Path) -> set[str]:
    """Every module a file imports, absolute, wherever in the file."""
    package = ("qlae", *path.relative_to(PACKAGE).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*parts, *([node.module] if node.module else [])))
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return found


def test_no_pickle():
    for path in FILES:
        assert not {"pickle", "cloudpickle", "dill", "shelve", "marshal"} & imports_of(path), path
        text = path.read_text().replace("safetensors.torch.", "")
        assert not [call for call in ("allow_pickle=True", "torch.load(", "torch.save(") if call in text], path


def test_nothing_imports_the_command_line():
    others = [file for file in FILES if not file.is_relative_to(PACKAGE / "cli") and file.name != "__main__.py"]
    assert [file for file in others if any(name.startswith("qlae.cli") for name in imports_of(file))] == []


def test_metrics_import_nothing_else_of_qlae():
    for path in (PACKAGE / "metrics").rglob("*.py"):
        others = {name for name in imports_of(path) if name.split(".")[0] == "qlae"}
        assert all(name == "qlae" or name.startswith("qlae.metrics") for name in others), (path, others)


ORDER = [
    *("_version", "_imports", "_checks", "_parsing", "_io", "_progress", "metrics", "registry", "schedules"),
    "columns",
    *("options", "observations", "config", "paper_tables", "presets", "resolving", "data", "ops"),
    *(
        "_process",
        "models",
        "objectives",
        "runs",
        "scoring",
        "training",
        "report",
        "configuring",
        "pipeline",
        "estimator",
        "selection",
        "study",
    ),
    *("explorer", "description", "cli", "__main__"),
]


def test_imports_go_one_way():
    for path in FILES:
        home = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if home == "__init__":
            continue
        for name in imports_of(path):
            parts = name.split(".")
            if parts[0] == "qlae" and len(parts) > 1 and parts[1] in ORDER:
                assert ORDER.index(parts[1]) <= ORDER.index(home), (str(path), name)
    homes = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES} - {"__init__"}
    assert homes == set(ORDER)


def test_one_file_knows_ray_and_loads_it_when_asked():
    knowing = [path for path in FILES if any(name.split(".")[0] == "ray" for name in imports_of(path))]
    assert [str(path.relative_to(PACKAGE)) for path in knowing] == ["study/ray_engine.py"]
    code = "import qlae.study.ray_engine, sys; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names_exist():
    for name in qlae.__all__:
        assert getattr(qlae, name) is not None
    assert qlae.metrics.METRICS  # submodules load on first use as well
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = qlae.nonsense
