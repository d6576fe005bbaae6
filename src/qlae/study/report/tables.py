"""Arrange a study's scores in the paper's tables: main results, ablations, and one table per data set.

Each model has a row per set of weights, and below them the published numbers if its runs are comparable. If there are
published numbers, both sets of weights are shown, otherwise the one that the study uses. A cell reads ``0.95 ± 0.02``,
mean and half of the 95% interval; with two seeds it shows both values, as in ``0.86, 0.81``. Rows have the same order
in every table. `formats` writes tables as Markdown, LaTeX, CSV and HTML.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from ...metrics import METRICS, InformativeCount, find_score
from ...published import ABLATED_AUTOENCODERS, ABLATED_GANS, AUTOENCODERS, GANS, PAPER_ROWS, Published
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


@dataclass(frozen=True)
class TableCell:
    """A cell of a table: a score over seeds, or a published number, or the latents that InfoM counts."""

    data: str
    score: str
    scores: Cell | None = None
    published: Published | None = None
    counts: tuple[InformativeCount, ...] = ()
    bold: bool = False
    most_seeds: int = 0  # largest number of seeds in the table

    @property
    def value(self) -> str:
        """The mean ± half of the interval, single values if there is no interval, or the counts, as text."""
        if self.counts:
            return describe_counts(self.counts)
        if self.scores is None:
            return "–"
        if len(self.scores.values) < MIN_SEEDS:
            return ", ".join(f"{value:.{printed_digits(self.score)}f}" for value in self.scores.values)
        return self._format(self.scores.mean, self.scores.half)

    @property
    def published_value(self) -> str:
        """The published mean ± half of its interval, as text."""
        return self._format(self.published.mean, self.published.half) if self.published else "–"

    @property
    def num_fewer_seeds(self) -> str:
        """The number of seeds as text, if it is smaller than in other cells; otherwise empty."""
        count = len(self.scores.values) if self.scores else self.most_seeds
        return f"n = {count}" if MIN_SEEDS <= count < self.most_seeds else ""

    def _format(self, mean: float, half: float | None) -> str:
        digits = printed_digits(self.score)
        return f"{mean:.{digits}f}" + ("" if half is None else f" ± {half:.{digits}f}")


def printed_digits(score: str) -> int:
    """Return the number of decimal places of a score in tables."""
    return min(find_score(score).digits, 2)


@dataclass(frozen=True)
class TableRow:
    """A row of a table: a model, its weights (or that the numbers are published), and the cells."""

    model: str
    weights: str
    cells: tuple[TableCell, ...]

    def texts(self) -> Iterator[tuple[str, str, bool]]:
        """Yield for each cell its value, the number of seeds if it has fewer than others, and whether it is bold."""
        for cell in self.cells:
            if self.weights == PUBLISHED:
                yield cell.published_value, "", False
            else:
                yield cell.value, cell.num_fewer_seeds, cell.bold


@dataclass(frozen=True)
class ResultsTable:
    """A table: blocks of rows, separated by rules, under columns of (data set, score)."""

    name: str
    title: str
    columns: tuple[tuple[str, str], ...]
    blocks: tuple[tuple[TableRow, ...], ...] = ()

    @property
    def spans(self) -> list[tuple[str, int]]:
        """The data sets above the columns, with the number of columns that each spans."""
        return [(data, len(list(columns))) for data, columns in groupby(self.columns, key=lambda column: column[0])]

    def rows(self) -> Iterator[TableRow]:
        """Yield all rows."""
        for block in self.blocks:
            yield from block


def order_models(summary: Summary) -> list[list[str]]:
    """Return the autoencoders and the GANs of a study, each in the paper's order, then those that the paper lacks."""
    reconstructs = {model.label: model.reconstructs for model in summary.plan.models}
    paper_models = [model for model in PAPER_ROWS if model in summary.models]
    models = [*paper_models, *(model for model in summary.models if model not in paper_models)]
    return [[model for model in models if reconstructs[model] == kind] for kind in (True, False)]


def study_tables(summary: Summary) -> list[ResultsTable]:
    """Return all tables for which the study has models."""
    everything = order_models(summary)
    ablations = {*ABLATED_AUTOENCODERS, *ABLATED_GANS}
    main = [[m for m in block if m in (*AUTOENCODERS, *GANS) or m not in PAPER_ROWS] for block in everything]
    ablated = [[model for model in block if model in ablations] for block in everything]
    data_columns = [AGGREGATED, *summary.data] if len(summary.data) > 1 else summary.data
    fidelity = " or ".join(find_score(key).heading for key in summary.fidelity)
    first = ("InfoMEC", "infomec") if summary.has_sources else (f"agreement and {fidelity}", "agreement")
    kinds = ((INFOMEC, *first), (DCI, "DCI", "dci"), (CORRECTED, "chance-corrected InfoMEC", "corrected"))
    tables = []
    for name, title, blocks in (
        ("main", "Main results", main),
        ("ablations", "Ablations", [block for block in ablated if len(block) > 1]),
    ):
        for scores, kind, suffix in kinds:
            columns = [(data, score) for data in data_columns for score in scores]
            tables.append(make_table(summary, f"{name}-{suffix}", f"{title}, {kind}", columns, blocks))
    for data in summary.data:
        columns = [(data, score) for score in EVERYTHING]
        tables.append(make_table(summary, data, f"All results on {data}", columns, everything))
    keys = [key for metric in METRICS.values() if not metric.takes_protocol for key in metric.score_keys]
    columns = [(data, score) for data in data_columns for score in keys if score not in EVERYTHING]
    tables.append(make_table(summary, "other-metrics", "Other metrics", columns, everything))
    return [table for table in tables if table]


def make_table(
    summary: Summary, name: str, title: str, columns: Sequence[tuple[str, str]], blocks: Sequence[Sequence[str]]
) -> ResultsTable | None:
    """Return a table of models in blocks, without columns that hold no number; None if no column is left.

    Args:
        summary: the results of the study.
        name: name of the table's files.
        title: title of the table.
        columns: data set and score of each column.
        blocks: labels of the models in each block of rows.
    """
    models = [model for block in blocks for model in block]
    present = [(data, score) for data, score in columns if any(_has(summary, data, m, score) for m in models)]
    if not present:
        return None
    cells = [summary.cell(data, model, score) for data, score in present if data != AGGREGATED for model in models]
    most_seeds = max((len(cell.values) for cell in cells if cell), default=0)
    has_published = any(summary.published(data, model, score) for data, score in present for model in models)
    others = [weights for weights in SCORED_WEIGHTS if weights != summary.weights]
    row_weights = [summary.weights, *(others if has_published else ())]
    rows = [_make_block(summary, present, block, row_weights, most_seeds) for block in blocks if block]
    return ResultsTable(name, title, tuple(present), tuple(rows))


def _make_block(
    summary: Summary,
    columns: Sequence[tuple[str, str]],
    models: Sequence[str],
    row_weights: Sequence[str],
    most_seeds: int,
) -> tuple[TableRow, ...]:
    """Return the rows of models that are compared with each other, one per set of weights and one of the paper."""
    by_weights = {
        weights: [_make_column(summary, *column, models, weights, most_seeds) for column in columns]
        for weights in row_weights
    }
    rows = []
    for number, model in enumerate(models):
        for weights in row_weights:
            cells = tuple(column[number] for column in by_weights[weights])
            if weights == summary.weights or any(cell.scores for cell in cells):
                rows.append(TableRow(model, weights, cells))
        published = tuple(
            TableCell(*column, published=summary.published(column[0], model, column[1])) for column in columns
        )
        if any(cell.published for cell in published):
            rows.append(TableRow(model, PUBLISHED, published))
    return tuple(rows)


def _make_column(
    summary: Summary, data: str, score: str, models: Sequence[str], weights: str, most_seeds: int
) -> list[TableCell]:
    """Return the cells of one column, for models that are compared with each other."""
    if score == "informative":
        counts = [summary.latent_counts(data, model, weights) for model in models]
        return [TableCell(data, score, counts=tuple(count), most_seeds=most_seeds) for count in counts]
    scores = [summary.cell(data, model, score, weights) for model in models]
    bold = mark_bold(scores, aggregate=summary.aggregate, digits=printed_digits(score))
    return [
        TableCell(data, score, cell, summary.published(data, model, score), bold=is_bold, most_seeds=most_seeds)
        for model, cell, is_bold in zip(models, scores, bold, strict=True)
    ]


def _has(summary: Summary, data: str, model: str, score: str) -> bool:
    if score == "informative":
        return bool(summary.latent_counts(data, model))
    group = summary.groups.get((data, model))
    if score == AGREEMENT and group is not None and not group.has_sources:
        return True  # a run without others has no agreement, and its cell says so
    return summary.cell(data, model, score) is not None
