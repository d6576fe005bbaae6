"""The report of a study: tables, figures and one page, all from its run directories, without torch."""

import io
import json
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from .._progress import progress_bar
from ..metrics.protocols import PROTOCOLS
from ..study.folder import StudyFolder
from . import vignettes as vignette
from .aggregate import AGGREGATED, Summary, summarise
from .correlations import Correlation, between_metrics, between_published_metrics, to_rows, with_published
from .files import ReportFiles
from .page import Section, page, paragraph, picture, plain_table
from .qualitative import compared, qualitative
from .tables import ResultsTable, study_tables, to_csv, to_html, to_latex, to_markdown

DPI = 150
CELLS = (
    "In brackets the published mean and the difference. Bold: the interval overlaps the one with the highest end, as "
    "in the paper, autoencoders and GANs apart."
)
CODES_READ = {"one-hot": "one-hot", "scalar": "as numbers"}
INFORMATIVE = (
    "Informative: of the latents that InfoM counts, the share that tells more of some source than shuffled samples "
    "would. Latents of pure noise score InfoM 0.4 to 0.8, so read a high InfoM beside a low share as nothing."
)
NOT_THE_SAME = (
    "Rendered data and the real sets are not the same: rendered scenes have the sources of the published ones, and "
    "other pixels. So a difference from a published number need not be a failure, nor an agreement a success."
)


def report_study(folder: StudyFolder, *, show: bool = True) -> Path:
    """Write the report of what a study has finished so far; the page."""
    summary = summarise(folder)
    files = ReportFiles(folder.report_path)
    with progress_bar("reporting", 3 + len(summary.data), show=show) as report:
        tables = study_tables(summary)
        _write_tables(files, tables, summary)
        report(1, note="correlations")
        inner, outer = [*between_metrics(summary), *between_published_metrics()], with_published(summary)
        correlations = json.dumps([found.__dict__ for found in (*inner, *outer)], indent=2) + "\n"
        files.write("correlations.json", correlations.encode())
        report(2, note="vignettes")
        figures = _draw_vignettes(files, summary)
        report(3, note="interventions")
        sheets: dict[str, tuple[bytes, str]] = {}
        for number, data in enumerate(summary.data):
            sheets |= _draw_qualitative(files, summary, data)
            report(4 + number, note=data)
    sections = [
        Section("tables", "Tables", _told_tables(tables)),
        Section("correlations", "Rank correlations", _told_correlations(inner, outer)),
        *([Section("vignettes", "Metrics and their choices", _told_vignettes(figures))] if figures else []),
        *([Section("interventions", "What the latents mean", _told_sheets(sheets))] if sheets else []),
        Section("runs", "Tuning and runs", _told_runs(summary)),
    ]
    path = files.write("index.html", page(f"Study: {summary.plan.name}", _intro(summary), sections).encode())
    files.forget_others()
    return path


def notes(summary: Summary) -> list[str]:
    """What a reader of the tables must know, in plain sentences."""
    steps = sorted({result["steps"] for group in summary.groups.values() for result in group.results})
    updates = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
    sets = [
        f"{label} ({facts['origin']}, {facts['resolution']}×{facts['resolution']}, {facts['num_images']:,} images)"
        for label, facts in summary.facts().items()
    ]
    told = [f"Data: {'; '.join(sets)}. {updates} updates a run; the paper made 200,000 at 64×64."]
    told[0] += f" Scored on up to {summary.plan.num_samples:,} samples by the protocol {summary.plan.protocol}, "
    told[0] += f"whose InfoE reads codes {CODES_READ[PROTOCOLS[summary.plan.protocol].code_input]}."
    told += [NOT_THE_SAME] if "rendered" in summary.origins()[AGGREGATED] else []
    return [*told, f"{_told_seeds(summary)} {CELLS}", INFORMATIVE]


def _told_seeds(summary: Summary) -> str:
    most = summary.num_seeds
    if most == 1:
        return "One seed, so there are no intervals."
    fewer = any(len(group.results) < most for group in summary.groups.values())
    return f"Mean ± half of the 95% t-interval over {most} seeds{', fewer where it says n' if fewer else ''}."


def _write_tables(files: ReportFiles, tables: Sequence[ResultsTable], summary: Summary) -> None:
    """Each table in three formats, with what one must know of it, and all of them in one file."""
    to_know, origins = notes(summary), summary.origins()
    told = [f"# {summary.plan.name}", *to_know]
    for table in tables:
        alone = to_markdown(table).strip()
        told += [f"## {table.title}", alone]
        files.write(f"{table.name}.md", ("\n\n".join([alone, *to_know]) + "\n").encode())
        files.write(f"{table.name}.tex", to_latex(table, [table.title, *to_know]).encode())
        files.write(f"{table.name}.csv", to_csv(table, origins).encode())
    files.write("tables.md", ("\n\n".join(told) + "\n").encode())


def _draw_vignettes(files: ReportFiles, summary: Summary) -> list[tuple[bytes, str]]:
    try:
        data, found = vignette.vignettes(summary)
    except ValueError as error:
        warnings.warn(f"no vignettes: {error}", stacklevel=2)
        return []
    if not found:
        return []
    files.write("vignettes.csv", vignette.to_csv(found).encode())
    drawn = []
    for one in found:
        png = _png(vignette.vignette_figure(one, data))
        files.write(f"vignette-{one.name}.png", png)
        over = f"{one.points[0]} to {one.points[-1]}"
        drawn.append((png, f"{data}: {one.says}. The {one.axis} ({over}) moves {vignette.spread(one)}."))
    return drawn


def _draw_qualitative(files: ReportFiles, summary: Summary, data: str) -> dict[str, tuple[bytes, str]]:
    try:
        sheet = qualitative(summary, data)
    except ValueError as error:
        warnings.warn(f"no interventions on {data}: {error}", stacklevel=2)
        return {}
    if sheet is None:
        return {}
    png = _png(sheet)
    files.write(f"interventions-{data}.png", png)
    names = " beside ".join(group.model for group in compared(summary, data))
    caption = (
        f"{data}: {names}. One latent is moved at a time through its range (a column a latent, a block a sample), and "
        "below, the share of each source that each latent tells; inactive latents red, uninformative ones grey."
    )
    return {data: (png, caption)}


def _png(drawing: Figure | NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    if isinstance(drawing, Figure):
        drawing.savefig(file, format="png", dpi=DPI)
    else:
        Image.fromarray(drawing).save(file, format="PNG", optimize=True)
    return file.getvalue()


def _intro(summary: Summary) -> str:
    about = [paragraph(summary.plan.about)] if summary.plan.about else []
    first, *rest = notes(summary)
    warned = [paragraph(note, "note" if note == NOT_THE_SAME else "") for note in rest]
    return "\n".join([*about, paragraph(first), *warned])


def _told_tables(tables: Sequence[ResultsTable]) -> str:
    return "\n".join(f"<h3>{table.title}</h3>\n{to_html(table)}" for table in tables)


def _told_correlations(inner: Sequence[Correlation], outer: Sequence[Correlation]) -> str:
    heads = ("between", "over", "Spearman ρ", "p", "points")
    return (
        paragraph("Do InfoMEC and DCI put models in the same order?")
        + plain_table(heads, to_rows(inner), num_text=2)
        + paragraph("Does this study put them in the same order as the paper?")
        + plain_table(heads, to_rows(outer), num_text=2)
    )


def _told_vignettes(figures: Sequence[tuple[bytes, str]]) -> str:
    return "\n".join(picture(png, caption) for png, caption in figures)


def _told_sheets(sheets: dict[str, tuple[bytes, str]]) -> str:
    return "\n".join(picture(png, caption) for png, caption in sheets.values())


def _told_runs(summary: Summary) -> str:
    rows = [
        (
            key,
            f"{candidate['value']:g}",
            f"{candidate['infom']:.3f}",
            f"{candidate['psnr']:.1f}",
            str(candidate["num_seeds"]),
            "selected" if candidate["selected"] else "" if candidate["near"] else "PSNR too low",
        )
        for key, candidates in summary.index.selected.items()
        for candidate in candidates
    ]
    states = [entry.state for entry in summary.index.runs.values()]
    told = paragraph(
        f"{states.count('done')} runs finished, {states.count('failed')} failed, "
        f"{len(states) - states.count('done') - states.count('failed')} to come."
    )
    if rows:
        told += paragraph(
            "Selected: the best InfoM among values whose mean PSNR is at most "
            f"{summary.plan.near_db:g} dB below the best of the grid."
        )
        told += plain_table(("data / model", "value", "InfoM", "PSNR (dB)", "seeds", ""), rows)
    for state, head in (("failed", "failed run"), ("waiting", "run left out")):
        found = [(name, e.error) for name, e in summary.index.runs.items() if e.state == state and e.error]
        told += plain_table((head, "why"), found, num_text=2) if found else ""
    warned = [
        (f"{group.data}/{group.model}, seed {result['seed']}", warning)
        for group in summary.groups.values()
        for result in group.results
        for warning in result.get("warnings", ())
    ]
    return told + (plain_table(("scored with a warning", ""), warned, num_text=2) if warned else "")
