"""The pages of the documentation: their programs run, and their links lead somewhere."""

import re
import warnings
from pathlib import Path

import pytest

import qlae
from qlae.cli import main
from qlae.cli.runs import Train
from qlae.config import DataConfig
from qlae.presets import MODELS, resolve
from qlae.study import plan_names

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http:", "https:")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            titles = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
            assert anchor in {_slug(title) for title in titles}, target


def _slug(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower().replace("`", "")).strip().replace(" ", "-")
