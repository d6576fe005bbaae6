"""Write the report of a study: tables, figures and one page, from its run directories and without torch."""

import io
import json
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from ..._progress import progress_bar
from ...report.files import ReportFiles
from ...report.page import Section, page, paragraph, picture, plain_table
from ..folder import StudyFolder
from . import seeds, tuning
from . import vignettes as vignette_module
from .aggregate import Summary, summarise
from .correlations import Correlation, between_metrics, between_published_metrics, to_rows, with_published
from .formats import to_csv, to_html, to_latex, to_markdown
from .notes import NOT_THE_SAME, notes, uninformative_groups
from .qualitative import draw_sheets
from .run_links import runs_table
from .tables import ResultsTable, study_tables

DPI = 150

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
        with_vq_vae: whether VQ-VAE may be the prior method that figures show beside QLAE; the paper's leave it out.
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
        files.write("seeds.csv", seeds.to_csv(summary).encode())
        if summary.tuning:
            files.write("tuning.csv", tuning.to_csv(summary).encode())
        report(1, note="correlations")
        metrics, published = [*between_metrics(summary), *between_published_metrics()], with_published(summary)
        correlations = json.dumps([correlation.__dict__ for correlation in (*metrics, *published)], indent=2) + "\n"
        files.write("correlations.json", correlations.encode())
        report(2, note="vignettes")
        figures = _draw_vignettes(files, summary)
        report(3, note="interventions")
        sheets: list[CaptionedPng] = []
        for number, data in enumerate(summary.data):
            sheets += _draw_sheets(files, summary, data, with_vq_vae)
            report(4 + number, note=data)
    sections = [
        Section("tables", "Tables", _tables_html(tables)),
        Section("seeds", "Every seed", _seeds_html(summary)),
        Section("tuning", "Tuning", tuning.tuning_html(summary)),
        Section("correlations", "Rank correlations", _correlations_html(metrics, published)),
        *([Section("vignettes", "How metrics depend on their settings", _figures_html(figures))] if figures else []),
        *([Section("interventions", "What the latents encode", _figures_html(sheets))] if sheets else []),
        Section("runs", "Runs", _runs_html(summary)),
    ]
    path = files.write("index.html", page(f"Study: {summary.plan.name}", _intro_html(summary), sections).encode())
    files.remove_outdated()
    return path


def _write_tables(files: ReportFiles, tables: Sequence[ResultsTable], summary: Summary) -> None:
    """Write each table in three formats, with the notes, and all tables in one file."""
    explanations, origins = notes(summary), summary.origins()
    together = [f"# {summary.plan.name}", *explanations]
    for table in tables:
        markdown = to_markdown(table).strip()
        together += [f"## {table.title}", markdown]
        files.write(f"{table.name}.md", ("\n\n".join([markdown, *explanations]) + "\n").encode())
        files.write(f"{table.name}.tex", to_latex(table, [table.title, *explanations]).encode())
        files.write(f"{table.name}.csv", to_csv(table, origins).encode())
    files.write("tables.md", ("\n\n".join(together) + "\n").encode())


def _draw_vignettes(files: ReportFiles, summary: Summary) -> list[CaptionedPng]:
    """Draw and write the vignettes; warn if a sample that they need is missing."""
    try:
        data, vignettes = vignette_module.compute_vignettes(summary)
    except ValueError as error:
        warnings.warn(f"no vignettes: {error}", stacklevel=2)
        return []
    if not vignettes:
        return []
    files.write("vignettes.csv", vignette_module.to_csv(vignettes).encode())
    figures = []
    for vignette in vignettes:
        png = _png(vignette_module.draw_vignette(vignette, data))
        files.write(f"vignette-{vignette.name}.png", png)
        setting = f"The {vignette.axis} ({vignette.points[0]} to {vignette.points[-1]})"
        changes = f"{setting} changes {vignette_module.describe_spread(vignette)}."
        figures.append((png, f"{data}: {vignette.method}. {changes}"))
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


def _intro_html(summary: Summary) -> str:
    about = [paragraph(summary.plan.about)] if summary.plan.about else []
    return "\n".join([*about, *(_note_html(note) for note in notes(summary))])


def _note_html(note: str) -> str:
    kind = "warning" if note.startswith("Warning") else "note" if note.startswith(NOT_THE_SAME) else ""
    return paragraph(note, kind)


def _tables_html(tables: Sequence[ResultsTable]) -> str:
    return "\n".join(f"<h3>{table.title}</h3>\n{to_html(table)}" for table in tables)


def _correlations_html(metrics: Sequence[Correlation], published: Sequence[Correlation]) -> str:
    heads = ("between", "over", "Spearman ρ", "p", "points")
    between = paragraph("Do InfoMEC and DCI rank models in the same order?")
    between += plain_table(heads, to_rows(metrics), num_text=2)
    if not published:
        return between + paragraph("The paper has no results on these data sets to compare the ranks of models with.")
    question = paragraph("Does this study rank models in the same order as the paper?")
    return between + question + plain_table(heads, to_rows(published), num_text=2)


def _figures_html(figures: Sequence[CaptionedPng]) -> str:
    return "\n".join(picture(png, caption) for png, caption in figures)


def _seeds_html(summary: Summary) -> str:
    """Return one chart per data set and score, with a dot for each run."""
    stages = {entry.stage for group in summary.groups.values() for entry in group.entries}
    published = any(summary.published(*key, "infom") for key in summary.groups)
    about = (
        f"Each dot is the score of one run ({summary.weights} weights) and links to its directory."
        + (" Hollow: tuning runs." if len(stages) > 1 else "")
        + (" Vertical line: the published mean." if published else "")
    )
    charts = [f"<h3>{data}</h3><div class=charts>{''.join(c)}</div>" for data, c in seeds.draw_seeds(summary).items()]
    return paragraph(about) + "".join(charts)


def _runs_html(summary: Summary) -> str:
    """Return how many runs are finished, links to them, the errors, and the warnings from scoring."""
    states = [entry.state for entry in summary.index.runs.values()]
    done, failed = states.count("done"), states.count("failed")
    parts = [
        paragraph(f"{done} runs finished, {failed} failed, {len(states) - done - failed} left."),
        runs_table(summary),
    ]
    for state, head in (("failed", "failed run"), ("waiting", "run left out")):
        errors = [(name, e.error) for name, e in summary.index.runs.items() if e.state == state and e.error]
        parts += [plain_table((head, "reason"), errors, num_text=2)] if errors else []
    scoring_warnings = [
        (f"{group.data}/{group.model}, seed {result['seed']}", warning)
        for group in summary.groups.values()
        for result in group.results
        for warning in result.get("warnings", ())
    ]
    if scoring_warnings:
        parts.append(plain_table(("run scored with a warning", "warning"), scoring_warnings, num_text=2))
    return "".join(parts)
