"""The site's own parts: its reference names every public name, and links of the repository lead to its pages."""

import importlib
import pkgutil
import sys
from pathlib import Path

import pytest

import qlae
from qlae.cli.overview import COMMANDS

DOCS = Path(__file__).parents[1] / "docs"
INTERNAL = {"qlae.metrics.infomec", "qlae.metrics.scoring", "qlae.scoring.evaluation"}  # parts of packages listed above


@pytest.fixture(scope="module")
def extensions():
    sys.path.insert(0, str(DOCS / "_extensions"))
    try:
        yield {name: importlib.import_module(name) for name in ("reference", "repository_links")}
    finally:
        sys.path.remove(str(DOCS / "_extensions"))


def packages() -> set[str]:
    """All packages of qlae that say what is public."""
    found = {"qlae"}
    for info in pkgutil.walk_packages(qlae.__path__, "qlae."):
        if info.ispkg and "kernels" not in info.name:
            module = importlib.import_module(info.name)
            found |= {info.name} if hasattr(module, "__all__") else set()
    return found


def test_every_package_has_a_page_with_every_public_name(extensions):
    modules = extensions["reference"].MODULES
    assert packages() <= set(modules) | INTERNAL
    for name, about in modules.items():
        page = extensions["reference"].module_page(name, about)
        for public in importlib.import_module(name).__all__:
            assert public == "__version__" or f"{name}.{public}\n" in page or f"**{public}**" in page, (name, public)


def test_every_page_is_in_the_navigation(extensions):
    index = (DOCS / "index.md").read_text()
    pages = [*(path.stem for path in DOCS.glob("*.md") if path.stem != "index")]
    pages += [f"reference/generated/{name}" for name in (*extensions["reference"].MODULES, "command-line")]
    lines = [line.rpartition("<")[2].rstrip(">") for line in index.splitlines()]
    assert [page for page in pages if page not in lines] == []


def test_the_command_line_is_whole(extensions, monkeypatch):
    monkeypatch.setattr(extensions["reference"], "_help_of", lambda command: f"help of {command}")
    page = extensions["reference"].command_page()
    assert all(f"## qlae {command}" in page and f"help of {command}" in page for command in COMMANDS)
    monkeypatch.undo()
    assert "--no-browser" in extensions["reference"]._help_of("explore")


def test_links(extensions):
    links = extensions["repository_links"]
    assert links.from_docs("[a](../README.md#x) [b](../results/README.md#y)") == "[a](index.md) [b](results.md#y)"
    assert links.from_elsewhere("[a](study/plan.toml)", "results") == "[a](../results/study/plan.toml)"
    assert links.from_elsewhere("[a](docs/metrics.md#dci)", "") == "[a](metrics.md#dci)"
    assert links.from_elsewhere("[a](https://b.c) [d](#e)", "results") == "[a](https://b.c) [d](#e)"
