"""Write the report of a study: tables, figures and one page, from its run directories."""

import html
import io
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from ..._progress import progress_bar
from ...metrics import find_score
from ...report.html_page import ReportFiles, Section, page, paragraph, picture, plain_table
from ..folder import StudyFolder
from ..tuning import FIDELITY_SCORES, describe_rule, lowest_near
from .charts import CurvePoint, Dot, DotRow, draw_curve, draw_dots, make_bounds
from .correlations import between_metrics, mean_scores, published_means, with_published
from .figures import draw_sheets
from .formats import to_csv, to_html, to_latex, to_markdown
from .notes import NOT_THE_SAME, notes, uninformative_groups
from .summary import Group, Summary, summarise
from .tables import EVERYTHING, ResultsTable, order_models, study_tables
from .vignettes import VIGNETTES, caption_vignette, compute_vignettes, draw_vignette

DPI = 150
#: Scores that have a chart of all seeds.
CHARTS = tuple(key for key in EVERYTHING if key not in ("informative", "infoe_corrected", "infoc_corrected"))

CaptionedPng = tuple[bytes, str]


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
        warnings.warn(warning.removeprefix("Warning: "), stacklevel=2)
    files = ReportFiles(folder.report_path)
    with progress_bar("reporting", 3 + len(summary.data), show=show) as report:
        tables = study_tables(summary)
        _write_tables(files, tables, summary)
        files.write("runs.csv", summary.runs.to_csv(index=False, lineterminator="\n").encode())
        report(1, note="correlations")
        correlations = _write_correlations(files, summary)
        report(2, note="vignettes")
        vignettes = _draw_vignettes(files, summary)
        report(3, note="interventions")
        sheets: list[CaptionedPng] = []
        for number, data in enumerate(summary.data):
            sheets += _draw_sheets(files, summary, data, with_vq_vae)
            report(4 + number, note=data)
    sections = [
        Section("tables", "Tables", "\n".join(f"<h3>{table.title}</h3>\n{to_html(table)}" for table in tables)),
        Section("seeds", "Every seed", _seeds_html(summary)),
        Section("tuning", "Tuning", _tuning_html(summary)),
        Section("correlations", "Rank correlations", correlations),
        *(
            [Section("vignettes", "How metrics depend on their settings", _figures_html(vignettes))]
            if vignettes
            else []
        ),
        *([Section("interventions", "What the latents encode", _figures_html(sheets))] if sheets else []),
        Section("runs", "Runs", _runs_html(summary)),
    ]
    path = files.write("index.html", page(f"Study: {summary.plan.name}", _intro_html(summary), sections).encode())
    files.remove_outdated()
    return path


def _write_tables(files: ReportFiles, tables: Sequence[ResultsTable], summary: Summary) -> None:
    """Write each table in three formats, with the notes, and all tables in one file."""
    explanations, origins = notes(summary), summary.origins
    together = [f"# {summary.plan.name}", *explanations]
    for table in tables:
        markdown = to_markdown(table).strip()
        together += [f"## {table.title}", markdown]
        files.write(f"{table.name}.md", ("\n\n".join([markdown, *explanations]) + "\n").encode())
        files.write(f"{table.name}.tex", to_latex(table, [table.title, *explanations]).encode())
        files.write(f"{table.name}.csv", to_csv(table, origins).encode())
    files.write("tables.md", ("\n\n".join(together) + "\n").encode())


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


def _correlations_table(rows: Sequence[dict[str, object]]) -> str:
    texts = [
        (
            str(row["what"]),
            str(row["where"]),
            "–" if row["rho"] is None else f"{row['rho']:.2f}".replace("-", "−"),
            "–" if row["p"] is None else f"{row['p']:.2g}",
            str(row["num_points"]),
        )
        for row in rows
    ]
    return plain_table(("between", "over", "Spearman ρ", "p", "points"), texts, num_text=2)


def _draw_vignettes(files: ReportFiles, summary: Summary) -> list[CaptionedPng]:
    """Draw and write the vignettes; warn if a sample that they need is missing."""
    try:
        data, table = compute_vignettes(summary)
    except ValueError as error:
        warnings.warn(f"no vignettes: {error}", stacklevel=2)
        return []
    if table.empty:
        return []
    files.write("vignettes.csv", table.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode())
    figures = []
    for vignette in VIGNETTES:
        png = _png(draw_vignette(vignette, data, table))
        files.write(f"vignette-{vignette.name}.png", png)
        figures.append((png, caption_vignette(vignette, data, table)))
    return figures


def _draw_sheets(files: ReportFiles, summary: Summary, data: str, with_vq_vae: bool) -> list[CaptionedPng]:
    """Draw and write the interventions and heatmaps of a data set; warn if the pictures of a run are missing."""
    try:
        sheets = draw_sheets(summary, data, with_vq_vae=with_vq_vae)
    except ValueError as error:
        warnings.warn(f"no interventions on {data}: {error}", stacklevel=2)
        return []
    figures = []
    for sheet in sheets:
        png = _png(sheet.pixels)
        files.write(f"{sheet.name}.png", png)
        figures.append((png, sheet.caption))
    return figures


def _png(drawing: Figure | NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    if isinstance(drawing, Figure):
        drawing.savefig(file, format="png", dpi=DPI)
    else:
        Image.fromarray(drawing).save(file, format="PNG", optimize=True)
    return file.getvalue()


def _figures_html(figures: Sequence[CaptionedPng]) -> str:
    return "\n".join(picture(png, caption) for png, caption in figures)


def _intro_html(summary: Summary) -> str:
    parts = [paragraph(summary.plan.about)] if summary.plan.about else []
    for note in notes(summary):
        kind = "warning" if note.startswith("Warning") else "note" if note.startswith(NOT_THE_SAME) else ""
        parts.append(paragraph(note, kind))
    return "\n".join(parts)


def _seeds_html(summary: Summary) -> str:
    """Return one chart per data set and score, with a dot for each run."""
    published = any(summary.published(*key, "infom") for key in summary.groups)
    about = (
        f"Each dot is the score of one run ({summary.weights} weights) and links to its directory."
        + (" Hollow: tuning runs." if summary.runs[summary.runs.counts].stage.nunique() > 1 else "")
        + (" Vertical line: the published mean." if published else "")
    )
    charts = [
        f"<h3>{data}</h3><div class=charts>{''.join(_seeds_chart(summary, data, score) for score in CHARTS)}</div>"
        for data in summary.data
    ]
    return paragraph(about) + "".join(charts)


def _seeds_chart(summary: Summary, data: str, score: str) -> str:
    """Return the chart of one score, a row per model in the order of the tables; empty if no model has it."""
    rows = []
    for name, model in _ordered_pairs(summary):
        group = summary.groups.get((name, model))
        if name == data and group and group.values(score):
            published = summary.published(data, model, score)
            rows.append(DotRow(model, _dots(group, score), published.mean if published else None))
    if not rows:
        return ""
    values = [dot.value for row in rows for dot in row.dots] + [row.mark for row in rows if row.mark is not None]
    return draw_dots(find_score(score).heading, rows, make_bounds(values, find_score(score).bounds))


def _dots(group: Group, score: str, *, all_filled: bool = False) -> tuple[Dot, ...]:
    """Return a dot for each run of a group; those of tuning runs are hollow unless all are filled."""
    return tuple(
        Dot(value, group.describe_value(n, score), run_link(name), hollow=stage == "tune" and not all_filled)
        for n, (value, name, stage) in enumerate(
            zip(group.values(score).values(), group.rows["run"], group.rows["stage"], strict=True)
        )
    )


def run_link(name: str) -> str:
    """Return the address of a run's directory from the page."""
    return f"../runs/{quote(name)}/"


def _ordered_pairs(summary: Summary) -> list[tuple[str, str]]:
    models = [model for block in order_models(summary) for model in block]
    return [(data, model) for data in summary.data for model in models]


def _tuning_html(summary: Summary) -> str:
    """Return the chosen values, and InfoM and PSNR or R² over the grid of each tuned model.

    On data without sources, agreement takes the place of InfoM.
    """
    parts = [_chosen_html(summary)]
    pairs = [pair for pair in _ordered_pairs(summary) if summary.tuning.get(pair)]
    if pairs:
        rule = describe_rule(summary.plan.near_db, summary.plan.scored_weights, summary.fidelity)
        headings = " or ".join(find_score(key).heading for key in summary.fidelity)
        parts.append(
            paragraph(
                f"Selected: {rule}. Each dot is a run, the line passes through the means, the band marks the selected "
                f"value. Dashed: the lowest mean {headings} that counts; values below it are grey."
            )
        )
        panels = [
            f"<div class=panel><h3>{data}: {model}</h3><div class=pair>{_curves(summary, data, model)}</div></div>"
            for data, model in pairs
        ]
        parts.append(f"<div class=charts>{''.join(panels)}</div>")
    return "".join(parts)


def _chosen_html(summary: Summary) -> str:
    """Return a table of the value that the reruns of each model used."""
    rows = []
    for data, model in _ordered_pairs(summary):
        group = summary.groups.get((data, model))
        if group is None:
            continue
        entry = next(entry for entry in summary.plan.models if entry.label == model)
        grid = ", ".join(f"{value:g}" for value in entry.grid)
        value = group.rows[_setting_of(entry.tuned)].iloc[0]
        source = f"selected out of {grid}" if grid else "preset or plan"
        rows.append((data, model, entry.tuned.replace("_", " "), f"{value:g}", source))
    return plain_table(("data", "model", "hyperparameter", "value", "from"), rows, num_text=5)


def _setting_of(hyperparameter: str) -> str:
    """Return the column of a tuned hyperparameter."""
    is_decay = hyperparameter == "weight_decay"
    return "training.optimizer.weight_decay" if is_decay else f"objective.weights.{hyperparameter}"


def _curves(summary: Summary, data: str, model: str) -> str:
    """Return the charts of one grid: InfoM or agreement, and PSNR or R²."""
    groups = summary.tuning[data, model]
    entry = next(entry for entry in summary.plan.models if entry.label == model)
    charts = []
    for score in (next(iter(groups.values())).quality, *FIDELITY_SCORES):
        if not all(group.values(score) for group in groups.values()):
            continue
        points = [_curve_point(group, score, value) for value, group in groups.items()]
        values = [dot.value for point in points for dot in point.dots]
        filters = score in FIDELITY_SCORES and entry.reconstructs
        floor = lowest_near(score, max(point.mean for point in points), summary.plan.near_db) if filters else None
        bounds = make_bounds([*values, *([floor] if floor is not None else [])], find_score(score).bounds)
        charts.append(draw_curve(find_score(score).heading, entry.tuned.replace("_", " "), points, bounds, floor))
    return "".join(charts)


def _curve_point(group: Group, score: str, value: float) -> CurvePoint:
    mean = group.cell(score).mean  # type: ignore[union-attr]  # the caller has checked that every run has this score
    near, selected = (group.rows[column].iloc[0] for column in ("near", "selected"))
    dots = _dots(group, score, all_filled=True)
    return CurvePoint(f"{value:g}", dots, mean, bool(selected), excluded=near is False)


def _runs_html(summary: Summary) -> str:
    """Return how many runs are finished, links to them, the errors, and the warnings from scoring."""
    runs = summary.runs
    counts = runs.state.value_counts()
    done, failed = (int(counts.get(state, 0)) for state in ("done", "failed"))
    parts = [
        paragraph(f"{done} runs finished, {failed} failed, {len(runs) - done - failed} left."),
        _links_table(summary),
    ]
    for state, head in (("failed", "failed run"), ("waiting", "run left out")):
        errors = runs[(runs.state == state) & runs.error.notna()]
        parts += [plain_table((head, "reason"), errors[["run", "error"]].to_numpy().tolist(), num_text=2)] * (
            len(errors) > 0
        )
    counted = pd.concat([group.rows for group in summary.groups.values()])  # in the order of the plan
    warned = counted[counted.warnings.notna()]
    if len(warned):
        rows = [
            (f"{row.data}/{row.model}, seed {row.seed}", warning)
            for row in warned.itertuples()
            for warning in row.warnings.split("\n")
        ]
        parts.append(plain_table(("run scored with a warning", "warning"), rows, num_text=2))
    return "".join(parts)


def _links_table(summary: Summary) -> str:
    """Return the HTML of a table with one row per data set, model and value, and a link for each seed."""
    rows = []
    by_pair = dict(list(summary.runs.groupby(["data", "model"])))
    for pair in _ordered_pairs(summary):
        for value, seeds in by_pair[pair].groupby("value", sort=False, dropna=False):
            is_selected = " (selected)" if seeds.selected.iloc[0] else ""
            texts = (*pair, "preset" if pd.isna(value) else f"{value:g}{is_selected}")
            cells = "".join(f"<td class=text>{html.escape(text)}</td>" for text in texts)
            links = ", ".join(
                _seed_link(*row) for row in seeds.sort_values("seed")[["run", "seed", "state"]].to_numpy()
            )
            rows.append(f"<tr>{cells}<td class=text>{links}</td></tr>")
    heads = "".join(f"<th class=text>{head}</th>" for head in ("data", "model", "value", "seeds"))
    return f"<div class=wide><table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _seed_link(name: str, seed: int, state: str) -> str:
    return f'<a href="{run_link(name)}">{seed}</a>' if state == "done" else f"{seed} ({state})"
