"""Write the report of a study: tables, figures and one page, from its run directories."""

import io
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from ..._progress import progress_bar
from ...metrics import find_score
from ...presets import MODELS
from ...report.html_page import ReportFiles, Section, page, paragraph, picture, plain_table
from ..folder import StudyFolder
from ..tuning import AGREEMENT, FIDELITY_SCORES, describe_rule, lowest_near
from .analyses import (
    VIGNETTES,
    between_metrics,
    compute_vignettes,
    draw_vignette,
    mean_scores,
    published_means,
    with_published,
)
from .charts import draw_curve, draw_dots, make_bounds
from .figures import draw_sheets, figure_pixels
from .notes import NOT_THE_SAME, notes, uninformative_groups, winners
from .summary import Summary, summarise
from .tables import EVERYTHING, study_tables, to_csv, to_html, to_latex, to_markdown

#: Scores that have a chart of all seeds.
CHARTS = tuple(key for key in EVERYTHING if key not in ("informative", "infoe_corrected", "infoc_corrected"))


def report_study(
    folder: StudyFolder,
    *,
    with_vq_vae: bool = False,
    show: bool = True,
    scored_weights: str | None = None,
    aggregate: str | None = None,
) -> Path:
    """Write the report of the runs that a study has finished so far.

    Args:
        folder: the study.
        with_vq_vae: whether VQ-VAE may be the prior method that figures compare with QLAE; the paper's leave it out.
        show: whether to show progress.
        scored_weights: the weights whose scores fill the tables, ``"averaged"`` or ``"raw"``; by default as the plan
            says.
        aggregate: which runs count, and their intervals: ``"reruns"``, ``"all-seeds"`` or ``"authors"``; by default as
            the plan says.

    Returns:
        The path of the page.

    Raises:
        ValueError: if no run is finished, or an argument is unknown.
    """
    summary = summarise(folder, scored_weights=scored_weights, aggregate=aggregate)
    for warning in uninformative_groups(summary):
        warnings.warn(warning, stacklevel=2)
    files = ReportFiles(folder.report_path)
    with progress_bar("reporting", 3 + len(summary.data), show=show) as report:
        tables = _write_tables(files, summary)
        files.write("runs.csv", summary.runs.to_csv(index=False, lineterminator="\n").encode())
        report(1, note="correlations")
        correlations = _write_correlations(files, summary)
        report(2, note="vignettes")
        vignettes = _draw_vignettes(files, summary)
        report(3, note="interventions")
        sheets: list[str] = []
        for number, data in enumerate(summary.data, start=4):
            sheets += _draw_sheets(files, summary, data, with_vq_vae)
            report(number, note=data)
    sections = [
        Section("tables", "Tables", tables),
        Section("seeds", "Every seed", _seeds_html(summary)),
        Section("tuning", "Tuning", _tuning_html(summary)),
        Section("correlations", "Rank correlations", correlations),
        *([Section("vignettes", "How metrics depend on their settings", vignettes)] if vignettes else []),
        *([Section("interventions", "What the latents encode", "\n".join(sheets))] if sheets else []),
        Section("runs", "Runs", _runs_html(summary)),
    ]
    path = files.write("index.html", page(f"Study: {summary.plan.name}", _intro_html(summary), sections).encode())
    files.remove_outdated()
    return path


def _intro_html(summary: Summary) -> str:
    parts = [paragraph(summary.plan.about)] if summary.plan.about else []
    parts += [paragraph(winner, "note") for winner in winners(summary)]
    for note in notes(summary):
        kind = "warning" if note.startswith("Warning") else "note" if note.startswith(NOT_THE_SAME) else ""
        parts.append(paragraph(note, kind))
    return "\n".join(parts)


def _write_tables(files: ReportFiles, summary: Summary) -> str:
    """Write each table in three formats, with the notes, and all tables in one file; return their HTML."""
    explanations, tables = notes(summary), study_tables(summary)
    together = [f"# {summary.plan.name}", *explanations]
    for table in tables:
        markdown = to_markdown(table).strip()
        together += [f"## {table.title}", markdown]
        files.write(f"{table.name}.md", ("\n\n".join([markdown, *explanations]) + "\n").encode())
        files.write(f"{table.name}.tex", to_latex(table, [table.title, *explanations]).encode())
        files.write(f"{table.name}.csv", to_csv(table).encode())
    files.write("tables.md", ("\n\n".join(together) + "\n").encode())
    return "\n".join(f"<h3>{table.title}</h3>\n{to_html(table)}" for table in tables)


def _write_correlations(files: ReportFiles, summary: Summary) -> str:
    """Compute and write the rank correlations; return their HTML."""
    metrics = between_metrics(mean_scores(summary), "this study")
    metrics += between_metrics(published_means(), "the paper's tables")
    published = with_published(summary)
    files.write("correlations.json", (json.dumps([*metrics, *published], indent=2) + "\n").encode())
    between = paragraph("Do InfoMEC and DCI rank models in the same order?") + _correlations_table(metrics)
    if not published:
        return between + paragraph("The paper has no results on these data sets to compare the ranks of models with.")
    question = paragraph("Does this study rank models in the same order as the paper?")
    return between + question + _correlations_table(published)


def _correlations_table(rows: Sequence[dict[str, Any]]) -> str:
    def text(number: float | None, form: str) -> str:
        return "–" if number is None else f"{number:{form}}"

    texts = [
        (r["what"], r["where"], text(r["rho"], ".2f").replace("-", "−"), text(r["p"], ".2g"), str(r["num_points"]))
        for r in rows
    ]
    return plain_table(("between", "over", "Spearman ρ", "p", "points"), texts, num_text=2)


def _draw_vignettes(files: ReportFiles, summary: Summary) -> str:
    """Draw and write the vignettes, and return their HTML; warn if a sample that they need is missing."""
    try:
        data, table = compute_vignettes(summary)
    except ValueError as error:
        warnings.warn(f"no vignettes: {error}", stacklevel=2)
        return ""
    if table.empty:
        return ""
    files.write("vignettes.csv", table.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode())
    pictures = [
        (f"vignette-{one.name}", figure_pixels(draw_vignette(one, data, table)), f"{data}: {one.method}.")
        for one in VIGNETTES
    ]
    return "\n".join(_figure(files, *one) for one in pictures)


def _draw_sheets(files: ReportFiles, summary: Summary, data: str, with_vq_vae: bool) -> list[str]:
    """Draw and write the interventions and heatmaps of a data set."""
    return [_figure(files, *sheet) for sheet in draw_sheets(summary, data, with_vq_vae=with_vq_vae)]


def _figure(files: ReportFiles, name: str, pixels: NDArray[np.uint8], caption: str) -> str:
    """Write a picture as PNG and return its HTML."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format="PNG", optimize=True)
    files.write(f"{name}.png", file.getvalue())
    return picture(file.getvalue(), caption)


def score_dots(summary: Summary, runs: pd.DataFrame, score: str, weights: str | None = None) -> pd.DataFrame:
    """Return the dots of a chart (see `charts`) for the runs of one model that have the score."""
    columns = {key: summary.column(key, weights or summary.weights) for key in (score, "informative", "active")}
    runs = runs[runs.get(columns[score], pd.Series(np.nan, runs.index)).notna()]
    if runs.empty:
        return pd.DataFrame(columns=["label", "value", "title", "link", "hollow"])
    values, *counts = (runs.get(column, pd.Series(np.nan, runs.index)) for column in columns.values())
    titles = runs.seed.map("seed {}: ".format) + values.map(find_score(score).format)
    if score == "infom" and all(count.notna().all() for count in counts):
        titles += [f", {few:.0f} of {active:.0f} latents informative" for few, active in zip(*counts, strict=True)]
    links = [f"../runs/{quote(name)}/" for name in runs.run]
    dots = pd.DataFrame({"label": runs.model, "value": values, "title": titles, "link": links})
    return dots.assign(hollow=runs.stage == "tune")


def _seeds_html(summary: Summary) -> str:
    """Return one chart per data set and score, with a dot for each run."""
    about = (
        f"Each dot is the score of one run ({summary.weights} weights) and links to its directory."
        + (" Hollow: tuning runs." if summary.counted.stage.nunique() > 1 else "")
        + (" Vertical line: the published mean." if any(summary.published(*p, "infom") for p in summary.pairs) else "")
    )
    charts = [
        f"<h3>{data}</h3><div class=charts>{''.join(_seeds_chart(summary, data, key) for key in CHARTS)}</div>"
        for data in summary.data
    ]
    return paragraph(about) + "".join(charts)


def _seeds_chart(summary: Summary, data: str, score: str) -> str:
    """Return the chart of one score, a row per model in the order of the tables; empty if no model has it."""
    models = [model for name, model in summary.pairs if name == data and summary.values(data, model, score)]
    if not models:
        return ""
    dots = pd.concat([score_dots(summary, summary.groups[data, model], score) for model in models])
    marks = {model: cell.mean for model in models if (cell := summary.published(data, model, score))}
    bounds = make_bounds([*dots.value, *marks.values()], find_score(score).bounds)
    return draw_dots(find_score(score).heading, dots, bounds, marks)


def _tuning_html(summary: Summary) -> str:
    """Return the selected values, and InfoM and PSNR or R² over the grid of each tuned model."""
    finished = summary.runs[(summary.runs.stage == "tune") & (summary.runs.state == "done")]
    grids = dict(list(finished.groupby(["data", "model"])))
    panels = [
        f"<div class=panel><h3>{data}: {model}</h3>"
        f"<div class=pair>{_curves(summary, data, model, grids[data, model])}</div></div>"
        for data, model in summary.pairs
        if (data, model) in grids
    ]
    if not panels:
        return _selected_html(summary)
    rule = describe_rule(summary.plan.near_db, summary.plan.scored_weights, summary.fidelity)
    headings = " or ".join(find_score(key).heading for key in summary.fidelity)
    about = (
        f"Selected: {rule}. Each dot is a run, the line passes through the means, the band marks the selected "
        f"value. Dashed: the lowest mean {headings} that counts; values below it are grey."
    )
    return f"{_selected_html(summary)}{paragraph(about)}<div class=charts>{''.join(panels)}</div>"


def _selected_html(summary: Summary) -> str:
    """Return a table of the value that the reruns of each model used."""
    grids = {model.label: ", ".join(f"{value:g}" for value in model.grid) for model in summary.plan.models}
    rows = []
    for data, model in summary.pairs:
        if (data, model) in summary.groups:
            run = summary.groups[data, model].iloc[0]
            tuned = MODELS[run.preset].tuned
            setting = "training.optimizer.weight_decay" if tuned == "weight_decay" else f"objective.weights.{tuned}"
            source = f"selected out of {grids[model]}" if grids[model] else "preset or plan"
            rows.append((data, model, tuned.replace("_", " "), f"{run[setting]:g}", source))
    return plain_table(("data", "model", "hyperparameter", "value", "from"), rows, num_text=5)


def _curves(summary: Summary, data: str, model: str, runs: pd.DataFrame) -> str:
    """Return the charts of one grid: InfoM (agreement on data without sources), and PSNR or R²."""
    entry = next(entry for entry in summary.plan.models if entry.label == model)
    runs = runs.sort_values("value", kind="stable").assign(**{AGREEMENT: runs.get(f"tuning_{AGREEMENT}")})
    places = {"label": runs.value.map("{:g}".format), "hollow": False}
    charts = []
    for score in (summary.quality(data), *FIDELITY_SCORES):
        dots = score_dots(summary, runs, score, summary.plan.scored_weights)
        if dots.empty:
            continue
        dots = dots.assign(**places, selected=runs.selected, near=runs.near.ne(False))
        dots["mean"] = dots.groupby("label").value.transform(fmean)
        floor = lowest_near(score, dots["mean"].max(), summary.plan.near_db)
        floors = [floor] if score in FIDELITY_SCORES and entry.reconstructs else []
        bounds = make_bounds([*dots.value, *floors], find_score(score).bounds)
        charts.append(draw_curve(find_score(score).heading, entry.tuned.replace("_", " "), dots, bounds, *floors))
    return "".join(charts)


def _runs_html(summary: Summary) -> str:
    """Return how many runs are finished, the errors, and the warnings from scoring."""
    runs = summary.runs
    done, failed = ((runs.state == state).sum() for state in ("done", "failed"))
    parts = [paragraph(f"{done} runs finished, {failed} failed, {len(runs) - done - failed} left.")]
    warned = summary.counted.dropna(subset=["warnings"])
    warned = warned.assign(run=[f"{run.data}/{run.model}, seed {run.seed}" for run in warned.itertuples()])
    warned = warned.assign(warning=warned.warnings.astype(str).str.split("\n")).explode("warning")
    for rows, heads in (
        (runs[(runs.state == "failed") & runs.error.notna()][["run", "error"]], ("failed run", "reason")),
        (runs[(runs.state == "waiting") & runs.error.notna()][["run", "error"]], ("run left out", "reason")),
        (warned[["run", "warning"]], ("run scored with a warning", "warning")),
    ):
        if len(rows):
            parts.append(plain_table(heads, rows.to_numpy().tolist(), num_text=2))
    return "".join(parts)
