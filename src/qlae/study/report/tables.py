"""Arrange a study's scores in the paper's tables: main results, ablations, and one table per data set.

Each model has a row per set of weights, and below them the published numbers if its runs are comparable. If there are
published numbers, both sets of weights are shown, otherwise the one that the study uses. A cell reads ``0.95 ± 0.02``,
mean and half of the 95% interval; with two seeds it shows both values, as in ``0.86, 0.81``. Rows have the same order
in every table. `formats` writes tables as Markdown, LaTeX, CSV and HTML.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import Any

import pandas as pd

from ...metrics import METRICS, find_score
from ...published import ABLATED_AUTOENCODERS, ABLATED_GANS, AUTOENCODERS, GANS, PAPER_ROWS
from ..plan import SCORED_WEIGHTS
from ..tuning import AGREEMENT
from .cells import MIN_SEEDS, Cell, mark_bold
from .summary import AGGREGATED, Summary, describe_counts

INFOMEC = ("infom", "informative", "infoe", "infoe_scalar", "infoc", "agreement", "psnr", "r2")
CORRECTED = ("infom_corrected", "infoe_corrected", "infoc_corrected")
DCI = ("d", "i", "c")
EVERYTHING = (
    *("infom", "informative", "infom_corrected", "infoe", "infoe_scalar", "infoe_corrected", "infoc"),
    *("infoc_corrected", *DCI, "agreement", "psnr", "r2"),
)
PUBLISHED = "published"  # stands in the column of the weights

Column = tuple[str, str]  # the label of a data set and a score


@dataclass(frozen=True)
class Table:
    """A table of a study.

    Attributes:
        name: of its files.
        title: above it.
        columns: data set and score of each column.
        cells: one row per cell, ordered by the rows of the table and then by its columns: ``block`` (blocks of rows are
            separated by rules), ``model``, ``weights``, ``data``, ``score``, the ``text`` of the cell, a ``note`` (the
            number of seeds if other cells have more), and the numbers that `formats.to_csv` writes.
    """

    name: str
    title: str
    columns: list[Column]
    cells: pd.DataFrame

    @property
    def spans(self) -> list[tuple[str, int]]:
        """The data sets above the columns, with the number of columns that each spans."""
        return [(data, len(list(columns))) for data, columns in groupby(self.columns, key=lambda column: column[0])]

    def rows(self) -> Iterator[tuple[int, str, str, list[Any]]]:
        """Yield block, model, weights and cells of each row."""
        for (block, model, weights), cells in self.cells.groupby(["block", "model", "weights"], sort=False):
            yield block, model, weights, list(cells.itertuples())


def order_models(summary: Summary) -> list[list[str]]:
    """Return the autoencoders and the GANs of a study, each in the paper's order, then those that the paper lacks."""
    reconstructs = {model.label: model.reconstructs for model in summary.plan.models}
    paper_models = [model for model in PAPER_ROWS if model in summary.models]
    models = [*paper_models, *(model for model in summary.models if model not in paper_models)]
    return [[model for model in models if reconstructs[model] == kind] for kind in (True, False)]


def study_tables(summary: Summary) -> list[Table]:
    """Return all tables for which the study has models."""
    everything = order_models(summary)
    ablations = {*ABLATED_AUTOENCODERS, *ABLATED_GANS}
    main = [[m for m in block if m in (*AUTOENCODERS, *GANS) or m not in PAPER_ROWS] for block in everything]
    ablated = [[model for model in block if model in ablations] for block in everything]
    data_columns = [AGGREGATED, *summary.data] if len(summary.data) > 1 else summary.data
    fidelity = " or ".join(find_score(key).heading for key in summary.fidelity)
    first = ("InfoMEC", "infomec") if summary.has_sources() else (f"agreement and {fidelity}", "agreement")
    kinds = ((INFOMEC, *first), (DCI, "DCI", "dci"), (CORRECTED, "chance-corrected InfoMEC", "corrected"))
    others = [key for metric in METRICS.values() if not metric.takes_protocol for key in metric.score_keys]
    wanted = [
        (f"{name}-{suffix}", f"{title}, {kind}", [(data, score) for data in data_columns for score in scores], blocks)
        for name, title, blocks in (
            ("main", "Main results", main),
            ("ablations", "Ablations", [block for block in ablated if len(block) > 1]),
        )
        for scores, kind, suffix in kinds
    ]
    wanted += [(d, f"All results on {d}", [(d, score) for score in EVERYTHING], everything) for d in summary.data]
    columns = [(data, score) for data in data_columns for score in others if score not in EVERYTHING]
    wanted.append(("other-metrics", "Other metrics", columns, everything))
    return [table for entry in wanted if (table := make_table(summary, *entry))]


def make_table(
    summary: Summary, name: str, title: str, columns: Sequence[Column], blocks: Sequence[Sequence[str]]
) -> Table | None:
    """Return a table of models in blocks, without columns that hold no number; None if no column is left.

    Args:
        summary: the results of the study.
        name: name of the table's files.
        title: title of the table.
        columns: data set and score of each column.
        blocks: labels of the models in each block of rows.
    """
    models = [model for block in blocks for model in block]
    columns = [(data, score) for data, score in columns if any(_has(summary, data, m, score) for m in models)]
    if not columns:
        return None
    cells = [summary.cell(data, model, score) for data, score in columns if data != AGGREGATED for model in models]
    most_seeds = max((len(cell.values) for cell in cells if cell), default=0)
    has_published = any(summary.published(data, model, score) for data, score in columns for model in models)
    weights = [summary.weights, *(w for w in SCORED_WEIGHTS if w != summary.weights and has_published)]
    rows = [
        {"table": name, "block": number, "model": model} | cell
        for number, block in enumerate(blocks)
        for model, model_cells in zip(block, _block_cells(summary, columns, block, weights, most_seeds), strict=True)
        for cell in model_cells
    ]
    table = pd.DataFrame(rows)
    return Table(name, title, columns, table.assign(origin=table.data.map(summary.origins)))


def _block_cells(
    summary: Summary, columns: Sequence[Column], models: Sequence[str], row_weights: Sequence[str], most_seeds: int
) -> list[list[dict[str, Any]]]:
    """Return the cells of each of the models that are compared with each other."""
    by_weights = {
        weights: list(zip(*(_column_cells(summary, *c, models, weights, most_seeds) for c in columns), strict=True))
        for weights in row_weights
    }
    by_model: list[list[dict[str, Any]]] = []
    for number, model in enumerate(models):
        rows = [by_weights[weights][number] for weights in row_weights]
        others = [row for row in rows[1:] if any("values" in c and c["score"] != "informative" for c in row)]
        published = [_published_cell(summary, data, model, score) for data, score in columns]
        has_published = any(cell["text"] != "–" for cell in published)
        by_model.append([cell for row in (rows[0], *others, published if has_published else ()) for cell in row])
    return by_model


def _column_cells(
    summary: Summary, data: str, score: str, models: Sequence[str], weights: str, most_seeds: int
) -> list[dict[str, Any]]:
    """Return the cells of one column, for models that are compared with each other."""
    place = {"weights": weights, "data": data, "score": score, "note": "", "bold": False}
    if score == "informative":
        return [place | _counts_cell(summary, data, model, weights) for model in models]
    cells = [summary.cell(data, model, score, weights) for model in models]
    bold = mark_bold(cells, aggregate=summary.aggregate, digits=printed_digits(score))
    return [
        place | {"bold": is_bold} | (_score_cell(summary, data, model, score, cell, most_seeds) if cell else NO_SCORE)
        for model, cell, is_bold in zip(models, cells, bold, strict=True)
    ]


NO_SCORE = {"text": "–"}


def _counts_cell(summary: Summary, data: str, model: str, weights: str) -> dict[str, Any]:
    counts = summary.latent_counts(data, model, weights)
    if not counts:
        return NO_SCORE
    values = ";".join(f"{count.informative}/{count.active}" for count in counts)
    mean = fmean(count.informative for count in counts)
    return {"text": describe_counts(counts), "mean": mean, "num_seeds": len(counts), "values": values}


def _score_cell(summary: Summary, data: str, model: str, score: str, cell: Cell, most_seeds: int) -> dict[str, Any]:
    number, digits = len(cell.values), printed_digits(score)
    single = ", ".join(f"{value:.{digits}f}" for value in cell.values)
    published = summary.published(data, model, score)
    return {
        "text": single if number < MIN_SEEDS else _with_half(cell.mean, cell.half, digits),
        "note": f"n = {number}" if MIN_SEEDS <= number < most_seeds else "",
        "mean": cell.mean,
        "ci95": cell.half,
        "num_seeds": number,
        "values": ";".join(f"{value:.6g}" for value in cell.values),
        "published": published.mean if published else None,
        "difference": cell.mean - published.mean if published else None,
    }


def _published_cell(summary: Summary, data: str, model: str, score: str) -> dict[str, Any]:
    published = summary.published(data, model, score)
    text = _with_half(published.mean, published.half, printed_digits(score)) if published else "–"
    return {"weights": PUBLISHED, "data": data, "score": score, "text": text, "note": "", "bold": False}


def _with_half(mean: float, half: float | None, digits: int) -> str:
    return f"{mean:.{digits}f}" + ("" if half is None else f" ± {half:.{digits}f}")


def printed_digits(score: str) -> int:
    """Return the number of decimal places of a score in tables."""
    return min(find_score(score).digits, 2)


def _has(summary: Summary, data: str, model: str, score: str) -> bool:
    if score == "informative":
        return bool(summary.latent_counts(data, model))
    if score == AGREEMENT and (data, model) in summary.groups and not summary.has_sources(data):
        return True  # a run without others has no agreement, and its cell says so
    return summary.cell(data, model, score) is not None
