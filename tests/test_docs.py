"""The pages of the documentation: their programs run, and their links lead somewhere."""

import re
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import pytest

import qlae
from qlae.cli import main
from qlae.cli.train import Train
from qlae.config import DataConfig
from qlae.presets import MODELS
from qlae.resolving import resolve
from qlae.study import plan_names

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / ".github/CODE_OF_CONDUCT.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "generated" not in page.parts),
    ROOT / "results/README.md",
]


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.S)


@pytest.mark.usefixtures("own_registrations")
def test_adding_a_part(tmp_path, monkeypatch, capsys):
    """Every program of the page runs as it stands, one after the other, and the parts that it registers train."""
    monkeypatch.chdir(tmp_path)
    programs = blocks(ROOT / "docs" / "extending.md")
    assert len(programs) >= 8
    known, namespace = set(MODELS), {"__name__": "page"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # so short a training may leave no active latent
        for program in programs:
            exec(compile(program, "extending.md", "exec"), namespace)
        data = namespace["data"]
        for name in set(MODELS) - known:
            run = qlae.train(name, data, out=name, size="small", steps=10, batch_size=8, show=False)
            assert run.config.model == name
        qlae.train("qlae", data, out="dense", networks="dense", size="small", steps=10, show=False, evaluate=False)
        scores = qlae.rescore("coarse", metrics=["correlation"], show=False)
    assert 0 <= scores["averaged"]["correlation"] <= 1
    assert "demo 100" in capsys.readouterr().out
    assert set(MODELS) - known >= {"sphere-ae", "squared-qlae", "coarse-qlae"}


def test_every_table_and_figure_of_the_paper_has_a_row():
    """The paper has 15 figures, 15 tables and 3 algorithms."""
    rows = [line.split("|")[1] for line in (ROOT / "docs/paper.md").read_text().splitlines() if line.startswith("|")]
    for kind, count in (("Figure", 15), ("Table", 15), ("Algorithm", 3)):
        numbers = [int(number) for row in rows for number in re.findall(rf"{kind} (\d+)", row)]
        assert sorted(numbers) == list(range(1, count + 1))


def test_commands_of_the_paper_s_page_are_understood(monkeypatch):
    """Every training and study that the page names parses, and trainings resolve to a config."""
    trainings = []
    monkeypatch.setattr(Train, "__call__", lambda command: trainings.append(command))
    text = (ROOT / "docs/paper.md").read_text()
    commands = re.findall(r"^qlae (train|study) ([^#\n]*)", text, re.M) + re.findall(
        r"`qlae (train|study) ([^`]*)`", text
    )
    assert len(commands) > 12
    for verb, arguments in commands:
        name, *rest = arguments.split()
        if verb == "study":
            assert name in plan_names()
            continue
        with pytest.raises(SystemExit, match="0"):
            main(["train", name, *rest])
    assert trainings
    for training in trainings:
        assert resolve(training.model, DataConfig("shapes3d"), 6, training.training).training.steps == 200_000


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md"])
def test_files_that_the_maps_name_exist(page):
    """Paths in backticks, and in the map of the source tree, are those of today."""
    text = (ROOT / page).read_text()
    paths = set(re.findall(r"`((?:[\w-]+/)*[\w-]+\.py|(?:[\w-]+/)+)`", text))
    for block in re.findall(r"```\nsrc/qlae/\n(.*?)```", text, re.S):
        paths |= set(re.findall(r"(?<![\w/])(?:[\w-]+\.py|[\w-]+/)(?!\w)", block))
        lines = [line.split(maxsplit=1) for line in block.splitlines() if re.match(r"  \w+/ ", line)]
        paths |= {f"{folder}{name}.py" for folder, names in lines for name in re.findall(r"\b(\w+) \(", names)}
    folders = [ROOT, *(ROOT / "src/qlae" / part for part in (".", "models", "data", "ops", "explorer", "study"))]
    folders += [ROOT / part for part in ("docs", "tests")]
    assert paths
    assert [path for path in sorted(paths) if not any((folder / path).exists() for folder in folders)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http:", "https:")) or "generated/" in target:  # generated pages: Sphinx checks them
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            titles = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
            assert anchor in {_slug(title) for title in titles}, target


PROGRAMS = re.compile(r"^```(?:bash|\{code-cell\} ipython3)\n.*?```", re.S | re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_name_options_that_exist(page):
    """Every ``qlae`` command of a page uses a command and options that its help knows."""
    for block in PROGRAMS.findall(page.read_text()):
        start = "qlae" if block.startswith("```bash") or "%%bash" in block else "!qlae"
        for line in re.findall(rf"^{start} ([^#\n]*)", block, re.M):
            words = line.split()
            if words[0].startswith("-"):
                continue
            command = words[: 2 if words[0] == "data" else 1]
            known = _help(tuple(command))
            for option in (word for word in words if re.fullmatch(r"--[a-z-]+", word)):
                assert f"{option} " in known or f"{option}," in known, (line, option)


@cache
def _help(command: tuple[str, ...]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "qlae", *command, "--help-all"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def _slug(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower().replace("`", "")).strip().replace(" ", "-")
