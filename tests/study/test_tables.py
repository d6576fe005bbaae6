"""Cells, bold numbers and tables of a study, from run directories written by hand and from the committed ones."""

import csv
import json
import math
import re
import statistics
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from study_fixtures import HALF, INFOM, write_run

from qlae._io import write_json
from qlae.paper_tables import PAPER_ROWS, published_results
from qlae.study import Plan, StudyFolder
from qlae.study.report.notes import notes
from qlae.study.report.summary import AGGREGATED, Cell, combine_data_sets, make_cell, summarise
from qlae.study.report.tables import mark_bold, study_tables, to_csv, to_html, to_latex, to_markdown

COMMITTED = Path(__file__).parents[2] / "results" / "study"


def tables_of(summary):
    return {table.name: table for table in study_tables(summary)}


def change_results(study, pattern="*/*/*", **changes):
    """Change the scores of both sets of weights in all runs that match."""
    for path in study.path.glob(f"runs/{pattern}/results.json"):
        results = json.loads(path.read_text())
        for weights in ("averaged", "raw"):
            results[weights] |= changes
        write_json(path, results)


def test_cells_are_means_with_t_intervals(folder):
    cell = summarise(folder).cell("shapes3d", "qlae", "infom")
    assert cell.mean == pytest.approx(0.95)
    assert cell.half == pytest.approx(HALF, rel=1e-5)
    assert make_cell((0.5, 0.7)).half is None  # t would be 12.7


def test_the_interval_of_the_authors_tables():
    values = [0.90, 0.91, 0.93, 0.94, 0.95, 0.97, 0.99]
    assert make_cell(values, "authors").half == pytest.approx(2.447 * np.std(values) / math.sqrt(7), rel=1e-3)
    assert make_cell(values).half == pytest.approx(2.447 * np.std(values, ddof=1) / math.sqrt(7), rel=1e-3)
    by_data = [dict(enumerate(np.add(values, shift))) for shift in (0.0, -0.1, -0.2, -0.3)]
    pooled = combine_data_sets(by_data, "authors")  # one standard error for all, t of 28 values
    assert pooled.mean == pytest.approx(np.mean(values) - 0.15)
    assert pooled.half == pytest.approx(2.052 * np.std(values) / math.sqrt(7), rel=1e-3)


def test_aggregated_is_the_mean_over_data_sets_seed_by_seed(folder):
    summary = summarise(folder)
    assert summary.cell(AGGREGATED, "qlae", "infom").values == pytest.approx((0.80, 0.85, 0.90))
    assert summary.published(AGGREGATED, "qlae", "infom").mean == pytest.approx((0.95 + 0.78) / 2)
    assert combine_data_sets([{2: 0.5}, {3: 0.7}]) is None  # no seed in common


def test_bold_are_those_that_a_test_cannot_tell_from_the_best():
    best, close, far = (make_cell(v) for v in ((0.90, 0.95, 1.0), (0.80, 0.90, 1.0), (0.50, 0.52, 0.51)))
    assert mark_bold([far, best, close]) == [False, True, True]
    assert mark_bold([best, close]) == [False, False]  # the test cannot tell
    assert mark_bold([None, None]) == [False, False]
    assert mark_bold([make_cell((0.97, 0.99)), best, far]) == [False, False, False]  # the best has two seeds
    assert mark_bold([make_cell((0.3, 0.4)), best, far]) == [False, True, False]
    lower = make_cell((0.76, 0.81, 0.86))
    p = stats.ttest_ind(best.values, lower.values, equal_var=False, alternative="greater").pvalue
    assert 0.05 / 5 < p < 0.05
    assert mark_bold([best, lower]) == [True, False]
    assert mark_bold([best, lower, *[close] * 4]) == [False] * 6  # Holm's correction for five comparisons


def test_means_that_are_printed_alike_are_bold_together():
    one, almost, other = (make_cell(v) for v in ((1.0, 1.0, 1.0), (0.9999, 0.9999, 0.9999), (0.5, 0.5, 0.5)))
    assert mark_bold([one, almost, other]) == [True, True, False]
    assert mark_bold([one, almost, other], digits=4) == [True, False, False]


def test_the_papers_rule_for_bold():
    """On the published means and intervals it gives the published bold, but for what rounding hides."""
    table = published_results()
    same = []
    models = sorted({model for _, model, _ in table})
    for data in ("shapes3d", "mpi3d", "falcor3d", "isaac3d"):
        for metric in ("infom", "infoe", "infoc", "d", "i", "c", "psnr"):
            for gan in (False, True):
                cells = [table[data, model, metric] for model in models if ("gan" in model) == gan]
                ours = mark_bold([Cell((c.mean,), c.half + 1e-9) for c in cells], aggregate="authors")
                same += [bold == cell.bold for bold, cell in zip(ours, cells, strict=True)]
    assert np.mean(same) > 0.9
    assert mark_bold([Cell((0.5, 0.7)), None], aggregate="authors") == [False, False]


def test_tables_hold_both_weights_and_published_numbers(folder):
    tables = tables_of(summarise(folder))
    assert list(tables) == ["main-infomec", "main-dci", "shapes3d", "isaac3d"]  # one ablated model is no table
    text = to_markdown(tables["shapes3d"])
    assert "| qlae | averaged | **0.95 ± 0.12** | 3 of 4 |" in text
    assert "| qlae | raw | **0.85 ± 0.12** | 3 of 4 |" in text
    assert "| qlae | published | 0.95 ± 0.02 | – |" in text
    assert "| ae | averaged | 0.41 ± 0.02 |" in text
    latex = to_latex(tables["main-infomec"])
    assert r"\multicolumn{6}{c}{shapes3d}" in latex
    assert r"qlae & averaged & $\mathbf{0.85 \pm 0.12}$ & 6 of 8" in latex  # aggregated
    assert r"qlae & published & $0.86$ & --" in latex  # aggregated
    assert latex.count(r"\midrule") == 1
    rows = list(csv.DictReader(to_csv(tables["isaac3d"]).splitlines()))
    assert {row["origin"] for row in rows} == {"rendered"}
    by_key = {(row["model"], row["weights"], row["score"]): row for row in rows}
    row = by_key["qlae", "averaged", "infom"]
    assert (row["mean"], row["num_seeds"], row["values"], row["published"]) == ("0.75", "3", "0.7;0.75;0.8", "0.78")
    assert float(row["ci95"]) == pytest.approx(HALF, rel=1e-5)
    assert float(row["difference"]) == pytest.approx(-0.03)
    assert float(by_key["qlae", "raw", "infom"]["difference"]) == pytest.approx(-0.13)
    assert by_key["qlae", "averaged", "informative"]["values"] == "3/4;3/4;3/4"


def test_the_published_infoe_stands_below_the_column_of_its_kind(folder):
    summary = summarise(folder)
    assert summary.published("shapes3d", "qlae", "infoe") is None  # ours are one-hot codes, the authors' real values
    assert summary.published("shapes3d", "qlae", "infoe_scalar").mean == 0.99
    assert summary.published("shapes3d", "ae", "infoe").mean == 0.98
    assert summary.published("shapes3d", "ae", "infoe_scalar") is None  # there is no such score
    text = to_markdown(tables_of(summary)["shapes3d"])
    assert re.search(r"\| qlae \| published \| 0.95 ± 0.02 \| – \| – \| 0.99 ± 0.01 \| 0.55 ± 0.02 \|", text)
    assert re.search(r"\| ae \| published \| 0.41 ± 0.03 \| – \| 0.98 ± 0.01 \| – \| 0.28 ± 0.01 \|", text)


def test_rows_have_the_papers_order_in_every_table(folder):
    assert [model.label for model in folder.plan.models] == ["qlae", "beta-vae", "ae"]
    for table in tables_of(summarise(folder)).values():
        assert list(table.cells.model.unique()) == ["ae", "beta-vae", "qlae"]
    committed = tables_of(summarise(StudyFolder(COMMITTED)))
    for table in committed.values():
        models = list(table.cells.model.unique())
        assert models == [model for model in PAPER_ROWS if model in models]


def test_html_separates_groups_of_columns(folder):
    tables = {name: to_html(table) for name, table in tables_of(summarise(folder)).items()}
    main, one = tables["main-infomec"], tables["shapes3d"]
    assert '<table class="results compact" style="--columns: 19">' in main
    assert '<th class=group colspan="6">shapes3d</th><th class=group colspan="6">isaac3d</th>' in main
    assert main.count("<td class=group>") == 2 * 9  # two rules; three models with three rows each
    assert '<table class="results compact" style="--columns: 10">' in one
    assert re.findall("<th class=group>([^<]*)", one) == ["D", "PSNR"]
    assert (
        '<th rowspan="3" class=last>qlae</th><td class=text>averaged</td><td><b>0.95 <span>± 0.12</span></b></td>'
        in one
    )
    assert '<tr class="published"><td class=text>published</td><td>0.95 <span>± 0.02</span></td>' in one


def test_two_seeds_show_both_values_and_nothing_is_bold():
    summary = summarise(StudyFolder(COMMITTED))
    text = to_markdown(tables_of(summary)["shapes3d"])
    assert "| qlae | averaged | 0.86, 0.81 | 12 of 12 |" in text
    assert "**" not in text
    assert "±" not in "".join(line for line in text.splitlines() if "published" not in line)
    assert any(note.startswith("Two seeds, both shown") for note in notes(summary))


def test_cells_of_the_committed_tables_recomputed_from_the_runs():
    """Values, means and intervals, each computed here from results.json alone."""
    rows = list(csv.DictReader((COMMITTED / "report" / "main-infomec.csv").read_text().splitlines()))
    for data, model, weights, score in (
        ("shapes3d", "qlae", "averaged", "infom"),
        ("isaac3d", "qlae", "raw", "infoe_scalar"),
        ("isaac3d", "vq-vae", "averaged", "infoe"),
        ("shapes3d", "ae", "raw", "psnr"),
    ):
        runs = [json.loads(p.read_text()) for p in sorted(COMMITTED.glob(f"runs/{data}/{model}/s*/results.json"))]
        values = [run[weights][score] for run in runs]
        key = {"data": data, "model": model, "weights": weights, "score": score}
        (row,) = [row for row in rows if key.items() <= row.items()]
        assert [float(value) for value in row["values"].split(";")] == pytest.approx(values, rel=1e-5)
        assert float(row["mean"]) == pytest.approx(sum(values) / 2, rel=1e-5)
        assert (row["num_seeds"], row["ci95"], row["bold"]) == ("2", "", "0")
    for key, values in INFOM.items():  # with three seeds, by another route
        if len(set(values)) == 1:
            continue
        low, high = stats.t.interval(0.95, 2, statistics.mean(values), stats.sem(values))
        cell = make_cell(values)
        assert (cell.mean - cell.half, cell.mean + cell.half) == pytest.approx((low, high)), key


def test_tables_of_the_raw_weights(folder):
    summary = summarise(folder, scored_weights="raw")
    assert summary.cell("shapes3d", "qlae", "infom").mean == pytest.approx(0.85)
    cells = tables_of(summary)["shapes3d"].cells
    assert cells[cells.model == "ae"].weights.unique().tolist() == ["raw", "averaged", "published"]
    assert "Scores of the raw weights" in "".join(notes(summary))
    with pytest.raises(ValueError, match="unknown scored_weights 'ema'"):
        summarise(folder, scored_weights="ema")


def test_corrected_scores_have_columns_if_present(folder, copy_of):
    study = copy_of(folder)
    change_results(study, infom_corrected=0.625, infoe_corrected=0.5, infoc_corrected=0.25)
    tables = tables_of(summarise(study))
    assert {score for _, score in tables["main-corrected"].columns} == {
        "infom_corrected",
        "infoe_corrected",
        "infoc_corrected",
    }
    assert [score for _, score in tables["shapes3d"].columns][:3] == ["infom", "informative", "infom_corrected"]
    assert "main-corrected" not in tables_of(summarise(folder))


def test_informative_latents_are_those_among_the_active_ones(folder):
    assert {(c.informative, c.active) for c in summarise(folder).latent_counts("isaac3d", "ae")} == {(3, 4)}


def test_an_infom_of_uninformative_latents_is_called_meaningless(folder, copy_of):
    study = copy_of(folder)
    assert not any("Warning" in note for note in notes(summarise(study)))
    change_results(study, "isaac3d/ae/*", informative_latents=[True] + [False] * 5)
    summary = summarise(study)
    warnings = [note for note in notes(summary) if note.startswith("Warning")]
    assert len(warnings) == 2  # averaged and raw weights
    assert "the InfoM of ae on isaac3d is not meaningful, because only 1 of 4 latents that it counts" in warnings[0]
    assert "| ae | averaged | 0.42 ± 0.00 | only 1 of 4 |" in to_markdown(tables_of(summary)["isaac3d"])


@pytest.mark.parametrize(
    ("data", "options", "reason"),
    [
        ({"shapes3d": {"resolution": 16}}, {"size": "small"}, "16×16 pixels instead of 64×64"),
        ({"shapes3d": {"resolution": 16}}, {"size": "small"}, "small networks"),
        ({"shapes3d": {"sources": ["floor hue", "shape"]}}, {}, "no varying wall hue, object hue, scale, orientation"),
        ({"shapes3d": {"noise": 0.1}}, {}, "noise"),
        ({"shapes3d": {"num_images": 1000}}, {}, "1,000 images instead of 480,000"),
        ({"shapes3d": {}}, {"batch_size": 64}, "batch size 64 instead of 128"),
        ({"shapes3d": {}}, {"num_values": 4}, "num values 4 instead of 10"),
        ({"shapes3d": {}}, {"num_samples": 2000}, "scored on 2,000 samples instead of 10,000"),
        ({"shapes3d": {"name": "isaac3d"}}, {}, "it is the data set isaac3d"),
    ],
)
def test_published_numbers_stand_beside_comparable_runs_only(tmp_path, data, options, reason):
    summary = summarise(one_run(tmp_path, data, options))
    assert reason in ", ".join(summary.differences["shapes3d", "qlae"])
    assert summary.published("shapes3d", "qlae", "infom") is None
    text = "".join(notes(summary))
    assert (
        "No published numbers are shown for the models on shapes3d, because the runs differ from the paper's: " in text
    )
    assert reason in text
    (table,) = study_tables(summary)[-1:]
    assert set(table.cells.weights) == {"averaged"}


@pytest.mark.parametrize(("name", "mean"), [("shapes3d", 0.95), ("isaac3d", None)])
def test_a_plan_may_ask_for_published_numbers_beside_other_runs(tmp_path, name, mean):
    study = one_run(tmp_path, {"shapes3d": {"name": name}}, {"batch_size": 64})
    study.write_plan(study.plan.with_options(show_published=True))
    summary = summarise(study)
    number = summary.published("shapes3d", "qlae", "infom")
    assert (number.mean if number else None) == mean
    assert "differ from the paper's: " in "".join(notes(summary))


@pytest.mark.parametrize("options", [{"steps": 600}, {"form": "official"}, {"weight_decay": 0.01}])
def test_other_updates_forms_and_tuned_values_are_comparable(tmp_path, options):
    summary = summarise(one_run(tmp_path, {"shapes3d": {}}, options))
    assert summary.differences["shapes3d", "qlae"] == []
    assert summary.published("shapes3d", "qlae", "infom").mean == 0.95
    if "steps" in options:
        assert "600 updates per run; the paper's runs have 200,000" in "".join(notes(summary))


def one_run(tmp_path, data, options) -> StudyFolder:
    """Write a study of one run of qlae, with options of the data set and the plan."""
    from qlae.data import data_config, load_data
    from qlae.resolving import resolve

    content = {"tune": False, "rerun_seeds": 1, "data": data, "models": ["qlae"], **options}
    study = StudyFolder(tmp_path / "study")
    study.write_plan(Plan.from_content(content, name="study"))
    write_run(study, "shapes3d/qlae/s2", "shapes3d", "qlae", 2, 0.9)
    run = study.run("shapes3d/qlae/s2")
    table = dict(data["shapes3d"])
    rendered = load_data(table.pop("name", "shapes3d"), **table)
    training = {key: value for key, value in options.items() if key != "num_samples"}
    config = resolve("qlae", data_config(rendered), len(rendered.source_names), seed=2, **training)
    run.write_config(config)
    number = min(options.get("num_samples", 10_000), len(rendered))
    steps = config.training.steps
    results = run.results | {"data": rendered.describe(), "num_samples": number, "steps": steps}
    for weights in ("averaged", "raw"):
        del results[weights]["nmi"]  # which has a row for each source of the whole data set
    write_json(run.results_path, results)
    return study


def test_a_label_of_the_paper_for_another_model_has_no_published_number(tmp_path):
    study = StudyFolder(tmp_path / "study")
    content = {"tune": False, "rerun_seeds": 1, "data": ["shapes3d"], "models": {"qlae": {"model": "ae"}}}
    study.write_plan(Plan.from_content(content, name="study"))
    write_run(study, "shapes3d/qlae/s2", "shapes3d", "ae", 2, 0.9, steps=200_000)
    summary = summarise(study)
    assert summary.differences["shapes3d", "qlae"] == ["it is the model ae"]
    assert summary.published("shapes3d", "qlae", "infom") is None
