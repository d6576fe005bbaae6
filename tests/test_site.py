"""The site's own parts: its reference names every public name, and links of the repository lead to its pages."""

import importlib
import json
import pkgutil
import re
import shutil
import sys
from pathlib import Path

import pytest

import qlae
from qlae.cli import COMMANDS

DOCS = Path(__file__).parents[1] / "docs"
INTERNAL = {
    "qlae.scoring.evaluation",
}  # parts of packages listed above


@pytest.fixture(scope="module")
def extensions():
    sys.path.insert(0, str(DOCS / "_extensions"))
    try:
        yield {
            name: importlib.import_module(name)
            for name in (
                "explorer_pages",
                "gallery",
                "leaderboard",
                "reference",
                "repository_links",
                "run_pictures",
                "shipped_table",
            )
        }
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
        assert set(extensions["reference"].USED.get(name, ())) <= set(importlib.import_module(name).__all__)
        page = extensions["reference"].module_page(name, about)
        for public in importlib.import_module(name).__all__:
            entry = f":: {name}.{public}\n" in page
            elsewhere = any(f"`~{other}.{public}`" in page for other in modules if other != name)
            assert public == "__version__" or entry or elsewhere, (name, public)


def test_every_page_is_in_the_navigation(extensions):
    trees = [(DOCS / page).read_text() for page in ("index.md", "metrics.md")]
    pages = [str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")]
    pages = [page for page in pages if page != "index" and not page.startswith("reference/")]
    others = ("command-line", "gallery", "leaderboard", "leaderboard-small", "options", "plans", "shipped")
    generated = (*extensions["reference"].MODULES, *others)
    pages += [f"reference/generated/{name}" for name in generated]
    lines = [line.rpartition("<")[2].rstrip(">") for tree in trees for line in tree.splitlines()]
    assert [page for page in pages if page not in lines] == []


def test_the_command_line_is_whole(extensions, monkeypatch):
    monkeypatch.setattr(extensions["reference"], "_help_of", lambda command: f"help of {command}")
    page = extensions["reference"].command_page()
    assert all(f"## qlae {command}" in page and f"help of {command}" in page for command in COMMANDS)
    monkeypatch.undo()
    assert "--no-browser" in extensions["reference"]._help_of("explore")


def test_a_module_s_page_opens_with_what_each_name_does(extensions):
    page = extensions["reference"].module_page("qlae", "About.")
    table, _, entries = page.partition("```{eval-rst}")
    assert "| {py:obj}`~qlae.train` | Train a model, score it and draw its pictures;" in table
    assert "| {py:obj}`~qlae.data.load_data` | Load a data set" in table
    assert ":: qlae.train\n" in entries
    assert "load_data" not in entries
    for name in extensions["reference"].MODULES:
        rows = re.findall(r"^\| \{py:obj\}.*", extensions["reference"].module_page(name, "About."), re.M)
        assert rows
        assert [row for row in rows if row.endswith("|  |")] == []


def test_plans_are_whole(extensions):
    from qlae.data import DATA
    from qlae.options import option_names
    from qlae.study import plan_names
    from qlae.study.plan import MODEL_OPTIONS

    kinds = [DATA[name].config for name in DATA if DATA[name].is_ours]
    data_options = {*option_names(*kinds)} - {"options", "registered_by"}  # of registered data sets
    page = extensions["reference"].plan_page()
    assert all(f"\n`{key}`\n: " in page for key in (*data_options, *MODEL_OPTIONS))
    assert all(f"\n### {name}\n" in page for name in plan_names())
    assert 'aggregate = "authors"' in page


def test_links(extensions):
    links = extensions["repository_links"]
    assert links.from_docs("[a](../README.md#x) [b](../results/README.md#y)") == "[a](index.md) [b](results.md#y)"
    assert links.from_elsewhere("[a](study/plan.toml)", "results") == "[a](../results/study/plan.toml)"
    assert links.from_elsewhere("[a](docs/metrics.md#dci)", "") == "[a](metrics.md#dci)"
    assert links.from_elsewhere("[a](https://b.c) [d](#e)", "results") == "[a](https://b.c) [d](#e)"


def test_links_of_a_page_in_a_folder(extensions):
    links = extensions["repository_links"]
    assert links.from_docs("[a](../../SECURITY.md) [b](../data.md)", 1) == "[a](../security.md) [b](../data.md)"
    assert links.from_docs("[a](../../README.md)", 1) == "[a](../index.md)"


def test_the_gallery_shows_the_median_run(extensions, tmp_path):
    """Of seven runs of 200,000 updates the fourth, and none of the shorter ones."""
    gallery = extensions["gallery"]
    runs = gallery.find_runs(DOCS.parent / "results")
    scores = [run["scores"]["averaged"]["infom"] for run in runs["shapes3d", "qlae"]]
    assert len(scores) == 7
    assert scores == sorted(scores)
    assert {run["scores"]["steps"] for run in runs["shapes3d", "qlae"]} == {200_000}
    lines = gallery._row("shapes3d", "qlae", runs["shapes3d", "qlae"], tmp_path, DOCS.parent / "results")
    text = "\n".join(lines)
    assert f"InfoM {scores[3]:.2f}," in text
    assert "the median of 7 runs" in text
    for picture in re.findall(r"\(gallery/(.*?)\)", text):
        assert (tmp_path / picture).stat().st_size > 1000
    assert "shapes3d-qlae-interventions.png" in text


@pytest.mark.parametrize(("name", "num_runs"), [("leaderboard", 92), ("leaderboard-small", 96)])
def test_the_leaderboard_shows_every_seed_and_what_is_missing(extensions, tmp_path, name, num_runs):
    results = DOCS.parent / "results"
    board = next(board for board in extensions["leaderboard"].BOARDS if board.name == name)
    extensions["leaderboard"].write_leaderboard(board, tmp_path, results)
    page = (tmp_path / f"{name}.md").read_text()
    runs = sorted((results / name / "runs").rglob("results.json"))
    titles = extensions["run_pictures"].TITLES
    assert runs
    for run in runs:
        scores = json.loads(run.read_text())["averaged"]
        model = run.parts[-3]
        row = next(
            line for line in page.partition(f"## {titles[run.parts[-4]]}")[2].splitlines() if f"| `{model}`" in line
        )
        assert f"{scores['infom']:.3f}" in row.split("|")[3]
    assert f"**{len(runs)} of\n{num_runs} runs are finished.**" in page
    assert ("| published |" in page) == board.shows_published
    for picture in re.findall(rf"\(({name}/.*?)\)", page):
        assert (tmp_path / picture).stat().st_size > 1000


def test_the_leaderboard_takes_the_mean_over_seeds(extensions, tmp_path):
    source = DOCS.parent / "results" / "leaderboard"
    study = tmp_path / "leaderboard"
    shutil.copytree(source, study, ignore=shutil.ignore_patterns("runs"))
    run = study / "runs" / "isaac3d" / "qlae-4-values" / "s0"
    shutil.copytree(source / "runs" / "isaac3d" / "qlae-4-values" / "s0", run)
    lower = study / "runs" / "isaac3d" / "qlae-4-values" / "s1"
    shutil.copytree(run, lower)
    for name, change in (("config.json", lambda c: c["training"].update(seed=1)), ("results.json", _lower)):
        content = json.loads((lower / name).read_text())
        change(content)
        (lower / name).write_text(json.dumps(content))
    extensions["leaderboard"].write_leaderboard(extensions["leaderboard"].BOARDS[0], tmp_path, tmp_path)
    row = next(line for line in (tmp_path / "leaderboard.md").read_text().splitlines() if "| `qlae-4-values`" in line)
    assert [cell.strip() for cell in row.split("|")[2:4]] == ["0.635", "0.869, 0.400"]


def _lower(results: dict) -> None:
    results["seed"] = 1
    results["averaged"]["infom"] = 0.4


def test_the_explorer_pages_are_written_once(extensions, tmp_path, monkeypatch):
    pages = extensions["explorer_pages"]
    monkeypatch.setattr(pages, "NUM_SAMPLES", 1)
    package = Path(qlae.__file__).parent
    pages.write_pages(tmp_path, package)
    page = tmp_path / "explorer" / "shapes3d-qlae" / "index.html"
    assert page.read_text().count('classList.add("embedded")') == 1
    monkeypatch.setattr(pages, "save_page", None)  # a second page would be an error
    pages.write_pages(tmp_path, package)


def test_the_table_of_shipped_models_is_whole(extensions, tmp_path):
    from qlae.runs.directory import shipped_folder, shipped_models

    extensions["shipped_table"].write_table(tmp_path)
    page = (tmp_path / "shipped.md").read_text()
    for name, entry in shipped_models().items():
        scores, making = re.findall(rf"^\| `{name}` \|.*$", page, re.M)
        averaged = json.loads((shipped_folder() / name / "results.json").read_text())["averaged"]
        assert f" | {averaged['infom']:.3f} | {averaged['infoe']:.3f} | {averaged['infoc']:.3f} | " in scores
        assert f"`qlae explore {name}`" in scores
        assert making.endswith(f" KiB | {entry['about']} |")
    assert "| 0.987 | 0.903 | 0.516 | 25.3 | 0.95 | `qlae explore shapes3d-qlae` |" in page  # 0.95: published
    assert "| small | 32×32 | 12 of 4 values | 7,000 | 181,708 |" in page


@pytest.mark.parametrize("page", ["index", "try"])
def test_pages_embed_models_that_exist(page):
    from qlae.runs.directory import shipped_models

    frames = re.findall(r'src="explorer/([\w-]+)/index.html"', (DOCS / f"{page}.md").read_text())
    assert set(frames) == ({"shapes3d-qlae"} if page == "index" else shipped_models().keys())


@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("*.md")), ids=lambda page: page.stem)
def test_tutorials_are_notebooks_with_pictures_that_compile(page):
    text = page.read_text()
    assert text.startswith("---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n")
    cells = re.findall(r"^```\{code-cell\} ipython3\n(.*?)```", text, re.S | re.M)
    assert len(cells) >= 4
    assert any("Image(" in cell or "plt." in cell for cell in cells)
    for cell in cells:
        if not cell.startswith("%%bash"):
            compile(cell, page.name, "exec")
