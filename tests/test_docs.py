"""The pages of the documentation: their programs run, and their links lead somewhere."""

import re
import warnings
from pathlib import Path

import pytest

import qlae
from qlae.presets import MODELS

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
