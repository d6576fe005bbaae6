"""The report of a study, from run directories written by hand, so that all numbers are known in advance."""

import dataclasses
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image
from study_fixtures import SEEDS, InlineEngine, tiny_plan

from qlae._io import write_json, write_npz
from qlae.metrics import infomec
from qlae.scoring import evaluation
from qlae.study import Plan, StudyFolder, run_study
from qlae.study.plan import RESERVED_LABELS
from qlae.study.report import figures, report_study, study_page
from qlae.study.report.analyses import (
    between_metrics,
    by_bins,
    by_depth,
    by_neighbours,
    mean_scores,
    published_means,
    spearman,
    with_published,
)
from qlae.study.report.figures import draw_codes, draw_heatmaps, draw_sheet, draw_sheets, models_to_compare
from qlae.study.report.notes import winners
from qlae.study.report.summary import AGGREGATED, summarise
from qlae.study.report.tables import study_tables, to_markdown


@pytest.fixture
def no_vignettes(monkeypatch):
    """Reports without vignettes, whose metrics take most of the time; other tests draw them."""
    monkeypatch.setattr(study_page, "compute_vignettes", lambda summary: ("shapes3d", pd.DataFrame()))


@pytest.fixture
def no_figures(no_vignettes, monkeypatch):
    """Reports of tables and text alone."""
    monkeypatch.setattr(study_page, "draw_sheets", lambda *arguments, **options: [])


def test_interventions_of_both_models_have_the_same_height(folder, rng, tmp_path):
    before = draw_sheet(summarise(folder), "shapes3d")
    copy = StudyFolder(shutil.copytree(folder.path, tmp_path / "copy"))
    for seed in SEEDS:
        blocks = rng.integers(0, 255, (3, 10, 6, 8, 8, 3), dtype=np.uint8)
        write_npz(copy.run(f"shapes3d/beta-vae/s{seed}").pictures_path, interventions=blocks)
    assert draw_sheet(summarise(copy), "shapes3d").shape == before.shape  # 4 of its 10 steps beside the 4 of qlae


def with_pictures(folder, rng, tmp_path, **arrays):
    """Return a copy of the study whose runs of QLAE have further arrays in pictures.npz."""
    copy = StudyFolder(shutil.copytree(folder.path, tmp_path / "copy"))
    for seed in SEEDS:
        path = copy.run(f"shapes3d/qlae/s{seed}").pictures_path
        blocks = rng.integers(0, 255, (3, 4, 6, 8, 8, 3), dtype=np.uint8)
        write_npz(path, interventions=blocks, intervention_steps=np.zeros((4, 6), int), **arrays)
    return copy


def test_interpolations_and_strips_are_drawn_where_runs_have_them(folder, rng, tmp_path):
    old = summarise(folder)
    assert draw_codes(old, "shapes3d") is None
    arrays = {
        "interpolations": np.zeros((3, 10, 6, 8, 8, 3), np.uint8),
        "strips": np.zeros((6, 9, 8, 8, 3), np.uint8),
        "strip_codes": np.tile([0, 1], (6, 1)),
    }
    summary = summarise(with_pictures(folder, rng, tmp_path, **arrays))
    for sheet in (draw_sheet(summary, "shapes3d"), draw_codes(summary, "shapes3d")):
        assert (sheet == 0).all(-1).mean() > 0.05  # black interpolations and strips; the interventions are noise


def test_figures_show_the_weights_whose_scores_fill_the_tables(folder, copy_of, monkeypatch):
    study = copy_of(folder)
    texts, decoded = [], []
    monkeypatch.setattr(figures, "nmi_figure", lambda *_, title, **__: texts.append(title) or Figure(figsize=(1, 1)))
    monkeypatch.setattr(figures, "plot_interventions", lambda *all_, **_: texts.append(all_[2]) or Figure((1, 1)))
    monkeypatch.setattr(evaluation, "decode_pictures", lambda *arguments: decoded.append(arguments) or arrays)
    raw = summarise(study, scored_weights="raw")
    draw_sheet(raw, "shapes3d")
    assert "averaged weights" in texts[0]  # all that pictures.npz has
    for model in ("qlae", "beta-vae"):
        run = raw.median_run("shapes3d", model)
        arrays = run.arrays(run.pictures_path)
        (run.path / "checkpoint.json").write_text("{}")
    texts.clear()
    draw_sheet(raw, "shapes3d")
    draw_heatmaps(raw, "shapes3d")
    assert [weights for _, weights in decoded] == ["raw", "raw"]
    assert not [text for text in texts if "averaged" in text]
    assert [text.split("InfoM ")[1][:4] for text in texts if "InfoM" in text] == ["0.85", "0.51", "0.31", "0.85"]


def test_heatmaps_need_no_pictures(folder, copy_of):
    study = copy_of(folder)
    for path in study.path.rglob("*.npz"):
        path.unlink()
    with pytest.warns(UserWarning, match="no interventions-shapes3d.png: .* has no pictures.npz"):
        sheets = draw_sheets(summarise(study), "shapes3d")
    assert "nmi-shapes3d" in [name for name, _, _ in sheets]


def test_the_run_that_is_shown_is_one_that_has_pictures(folder, copy_of):
    study = copy_of(folder)
    for seed in SEEDS[:2]:
        study.run(f"shapes3d/qlae/s{seed}").pictures_path.unlink()
    summary = summarise(study)
    assert summary.median_run("shapes3d", "qlae").path.name == "s3"
    assert summary.median_run("shapes3d", "qlae", "pictures.npz").path.name == "s4"


def test_the_method_of_the_papers_figure_is_shown_too(folder):
    summary = summarise(folder)
    groups = summary.groups | {("isaac3d", "bioae"): summary.groups["isaac3d", "ae"]}
    assert models_to_compare(dataclasses.replace(summary, groups=groups), "isaac3d") == ["qlae", "beta-vae", "bioae"]
    groups |= {("shapes3d", "bioae"): summary.groups["shapes3d", "ae"]}  # the paper's figure has beta-tcvae
    assert models_to_compare(dataclasses.replace(summary, groups=groups), "shapes3d") == ["qlae", "beta-vae"]


def test_heatmaps_of_three_models_are_side_by_side(folder):
    summary = summarise(folder)
    both = draw_heatmaps(summary, "shapes3d")
    alone = dataclasses.replace(summary, groups={key: g for key, g in summary.groups.items() if key[1] != "ae"})
    assert both.shape[1] > both.shape[0]
    assert draw_heatmaps(alone, "shapes3d") is None  # neither ae nor beta-tcvae beside qlae


def test_vq_vae_is_left_out_of_the_figures_as_in_the_paper_or_included_by_choice(folder, monkeypatch):
    summary = summarise(folder)
    vq_vae = summary.groups["shapes3d", "qlae"].assign(model="vq-vae")
    summary = dataclasses.replace(summary, groups={**summary.groups, ("shapes3d", "vq-vae"): vq_vae})

    def compared(**options):
        return models_to_compare(summary, "shapes3d", **options)

    assert compared() == ["qlae", "beta-vae"]
    assert compared(with_vq_vae=True) == ["qlae", "vq-vae"]
    for name in ("draw_sheet", "draw_codes", "draw_heatmaps"):
        monkeypatch.setattr(figures, name, lambda *_, **__: np.zeros((1, 1, 3), np.uint8))
    assert [name for name, _, _ in draw_sheets(summary, "isaac3d")] == [
        "interventions-isaac3d",
        "codes-isaac3d",
        "nmi-isaac3d",
    ]
    captions = [draw_sheets(summary, "shapes3d", with_vq_vae=chosen)[0][2] for chosen in (False, True)]
    assert "qlae and beta-vae. VQ-VAE is left out, as in the paper." in captions[0]
    assert "qlae and vq-vae. Above" in captions[1]


def test_rank_correlations(folder):
    published = between_metrics(published_means(), "the paper's tables")
    assert [round(row["rho"], 2) for row in published] == [0.79, 0.75, 0.59]
    by_name = {row["what"]: row for row in between_metrics(mean_scores(summarise(folder)), "this study")}
    assert by_name["InfoM and D"]["rho"] == pytest.approx(1.0)
    assert by_name["InfoM and D"]["num_points"] == 6
    assert by_name["InfoE and I"]["rho"] is None  # I is constant here
    ours = {(row["what"], row["where"]): row for row in with_published(summarise(folder))}
    assert ours["InfoM, ours and published", "shapes3d"]["rho"] == pytest.approx(1.0)
    assert ours["InfoM, ours and published", "shapes3d"]["p"] == pytest.approx(2 / 6)  # of the orders of three
    assert ours["InfoM, ours and published", "all data sets"]["num_points"] == 6
    assert spearman("x", "y", pd.DataFrame([(1.0, 2.0)]))["rho"] is None


def test_vignettes_change_with_their_settings(rng):
    sources = rng.integers(0, 5, (600, 3))
    latents = sources[:, [1, 2, 0, 0]] + 0.1 * rng.normal(size=(600, 4))
    bins = by_bins(sources, latents, (2, 5, 200))
    assert bins["infom"][2] < bins["infom"][1]  # with many bins, each latent seems informative about each source
    k = by_neighbours(sources, latents, (3,))
    assert k["infom"] == [pytest.approx(infomec(sources, latents).infom)]
    assert (
        by_depth(sources + 0.1 * rng.normal(size=sources.shape), latents, (8,))["i"][0] > 0.8
    )  # R² of continuous ones
    depth = by_depth(sources, latents, (1, 8))
    assert depth["i"][0] < 0.7 < depth["i"][1]
    assert depth["d"][1] > 0.5


def test_the_page_is_complete_and_needs_no_network(folder):
    path = report_study(folder, show=False)
    text = path.read_text()
    assert not re.search(r"(?:src|href)=\"?(?:https?:)?//|<script|<link", text)
    assert text.count("data:image/png;base64,") == 3 + 2 * 2  # vignettes; interventions and NMI of each data set
    assert "Rendered data are not the published data sets" in text
    assert "ValueError: &lt;no&gt; luck" in text
    assert "averaged weights: a &lt;warning&gt;" in text
    assert "over 3 seeds (where n is given" not in text
    assert "Mean ± half of the 95% t-interval over 3 seeds." in text
    assert "interventions-shapes3d.png" in {file.name for file in path.parent.iterdir()}
    assert "qlae and beta-vae" in text  # the best of the prior methods
    names = {file.name for file in path.parent.iterdir()}
    for table in ("main-infomec", "main-dci", "shapes3d", "isaac3d"):
        assert {f"{table}.md", f"{table}.tex", f"{table}.csv"} <= names
    for name in ("main-dci.md", "main-dci.tex"):  # each stands alone
        assert "Rendered data are not the published data sets" in (path.parent / name).read_text()
    assert len(json.loads((path.parent / "correlations.json").read_text())) == 6 + 7 * 3


def test_the_committed_tables_are_those_of_the_committed_runs(tmp_path):
    committed = Path(__file__).parents[2] / "results" / "study"
    study = StudyFolder(shutil.copytree(committed, tmp_path / "study", ignore=shutil.ignore_patterns("report")))
    with pytest.warns(UserWarning, match="no vignettes|no interventions"):  # samples and pictures are not committed
        report = report_study(study, show=False).parent
    tables = [path for path in (committed / "report").glob("*.[mtc]*") if path.name != "vignettes.csv"]
    assert {path.suffix for path in tables} == {".md", ".tex", ".csv"}
    for path in tables:
        assert (report / path.name).read_text() == path.read_text(), path.name
    ours, theirs = (json.loads((p / "correlations.json").read_text()) for p in (report, committed / "report"))
    assert all(a == pytest.approx(b) for a, b in zip(ours, theirs, strict=True))


def test_a_winner_is_named_where_means_have_intervals(folder, copy_of):
    shapes, isaac = winners(summarise(folder))
    assert shapes == (
        "Highest mean InfoM on shapes3d: qlae, 0.950 ± 0.124 (95% interval, 3 seeds). "
        "Its interval lies above that of beta-vae, the next, 0.610 ± 0.025."
    )
    assert "on isaac3d: qlae" in isaac
    copy = copy_of(folder)
    for seed, infom in zip(SEEDS, (0.75, 0.85, 0.95), strict=True):
        path = copy.run(f"shapes3d/beta-vae/s{seed}").results_path
        results = json.loads(path.read_text())
        results["averaged"]["infom"] = infom
        write_json(path, results)
    shutil.rmtree(copy.run("isaac3d/qlae/s2").path)  # two seeds are too few for an interval
    shapes, isaac = winners(summarise(copy))
    assert shapes.endswith("Its interval overlaps that of beta-vae, so the order may be chance.")
    assert "on isaac3d: beta-vae" in isaac


@pytest.mark.usefixtures("no_vignettes")
def test_runs_that_cannot_be_counted_are_named_and_the_rest_is_reported(folder, copy_of):
    study = copy_of(folder)
    study.run("shapes3d/qlae/s2").results_path.write_text("{")
    results = study.run("shapes3d/ae/s3").results
    write_json(study.run("shapes3d/ae/s3").results_path, results | {"num_samples": 500})
    shutil.rmtree(study.run("isaac3d/qlae/s4").path)
    text = report_study(study, show=False).read_text()
    assert "shapes3d/qlae/s2</td><td class=text>its results cannot be read" in text
    assert "shapes3d/ae/s3</td><td class=text>scored on 500 samples, the plan says 10,000" in text
    assert "over 3 seeds (where n is given, over fewer; with one or two, each value)." in text
    summary = summarise(study)
    assert summary.cell("shapes3d", "qlae", "infom").values == pytest.approx((0.95, 1.0))
    assert summary.cell(AGGREGATED, "qlae", "infom").values == pytest.approx((0.85,))  # of seed 3 alone
    (table,) = [table for table in study_tables(summary) if table.name == "shapes3d"]
    assert "| qlae | averaged | 0.95, 1.00 | 3 of 4 |" in to_markdown(table)
    assert "| beta-vae | averaged | 0.61 ± 0.02 |" in to_markdown(table)
    for seed in SEEDS:
        study.run(f"shapes3d/beta-vae/s{seed}").pictures_path.unlink()
    with pytest.warns(UserWarning, match="no interventions-shapes3d.png: .*has no pictures.npz"):
        assert report_study(study, show=False).is_file()


@pytest.mark.usefixtures("no_figures")
def test_other_metrics_have_a_table_of_their_own(folder, copy_of):
    study = copy_of(folder)
    assert "other-metrics" not in [table.name for table in study_tables(summarise(study))]
    for path in study.path.glob("runs/*/*/*/results.json"):
        results = json.loads(path.read_text())
        results["averaged"] |= {"mig": 0.25, "sap": 0.5}
        write_json(path, results)
    report = report_study(study, show=False).parent
    text = (report / "other-metrics.md").read_text()
    assert "MIG" in text
    assert "0.25 ± 0.00" in text
    assert "SAP" in (report / "index.html").read_text()
    others = {table.name for table in study_tables(summarise(study))} - set(study.plan.content["data"])
    assert {*others, AGGREGATED} <= set(RESERVED_LABELS)  # data sets may not have these labels


@pytest.mark.usefixtures("no_vignettes")
def test_a_report_removes_its_own_outdated_files_only(folder, copy_of):
    study = copy_of(folder)
    report = report_study(study, show=False).parent
    (report / "mine.md").write_text("my notes")
    content = study.plan.content | {"data": ["isaac3d"]}
    study.write_plan(Plan.from_content(content, name="study"))
    report_study(study, show=False)
    names = {file.name for file in report.iterdir()}
    assert {"mine.md", "isaac3d.md"} <= names
    assert not {"shapes3d.md", "interventions-shapes3d.png"} & names


def test_a_study_with_nothing_finished_says_so(tmp_path):
    study = StudyFolder(tmp_path / "x")
    study.write_plan(tiny_plan())
    with pytest.raises(ValueError, match="has no finished runs to report yet; `qlae study"):
        report_study(study)


def test_without_reruns_the_tuning_runs_of_the_selected_value_count(tmp_path):
    plan = tiny_plan(rerun_seeds=0, models={"qlae": {"grid": [0.1, 0.3]}})
    index = run_study(plan, tmp_path / "x", InlineEngine())
    (chosen,) = index.selected_values("shapes3d", "qlae")
    (runs,) = summarise(StudyFolder(tmp_path / "x")).groups.values()
    assert runs["training.optimizer.weight_decay"].tolist() == [chosen]
    assert report_study(StudyFolder(tmp_path / "x"), show=False).is_file()


@pytest.mark.slow
def test_the_page_opens_and_prints_in_a_browser(folder, tmp_path):
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("there is no Chromium to open the page in")
    page = report_study(folder, show=False).resolve().as_uri()
    headless = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    shot, paper = tmp_path / "page.png", tmp_path / "page.pdf"
    for wanted in (f"--screenshot={shot}", f"--print-to-pdf={paper}"):
        subprocess.run(
            [*headless, "--window-size=1280,4000", wanted, page], check=True, capture_output=True, timeout=120
        )
    pixels = np.asarray(Image.open(shot).convert("RGB"))
    assert pixels.shape == (4000, 1280, 3)
    inked = (pixels != 255).any(axis=(1, 2))
    assert inked.mean() > 0.7  # lines with something on them, from top to bottom
    assert paper.read_bytes()[:4] == b"%PDF"
