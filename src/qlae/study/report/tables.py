"""Arrange a study's scores in the paper's tables: main results, ablations, and one table per data set.

A cell reads ``0.95 ± 0.02 (0.97, −0.02)``: mean and half of the 95% t-interval, then the published mean and the
difference; ``n = 3`` before the bracket if there are fewer seeds than in other cells. As in the paper, a cell is bold
if its interval overlaps the one with the highest upper end; autoencoders and GANs are compared separately.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...metrics import METRICS, find_score
from .aggregate import AGGREGATED, Cell, Summary, is_adversarial, mark_bold
from .published import ABLATED_AUTOENCODERS, ABLATED_GANS, AUTOENCODERS, GANS, PAPER_COLUMNS

INFOMEC = ("infom", "informative", "infoe", "infoc", "psnr")
DCI = ("d", "i", "c")


@dataclass(frozen=True)
class TableCell:
    """A cell of a table: a score over seeds and the published number."""

    data: str
    model: str
    score: str
    scores: Cell | None
    bold: bool
    published: float | None
    most_seeds: int  # largest number of seeds in the table

    @property
    def digits(self) -> int:
        return min(find_score(self.score).digits, 2)

    @property
    def value(self) -> str:
        """The mean ± half of the interval, as text."""
        if self.scores is None:
            return "–"
        half = "" if self.scores.half is None else f" ± {self.scores.half:.{self.digits}f}"
        return f"{self.scores.mean:.{self.digits}f}{half}"

    @property
    def beside(self) -> str:
        """The text beside the value: the number of seeds if it is smaller than elsewhere, and the published mean."""
        if self.scores is None:
            return ""
        parts = [f"n = {len(self.scores.values)}"] if len(self.scores.values) < self.most_seeds else []
        if self.published is not None:
            difference = round(self.scores.mean - self.published, self.digits) + 0.0  # no −0.00
            signed = f"{difference:+.{self.digits}f}".replace("-", "−")
            parts.append(f"({self.published:.{self.digits}f}, {signed})")
        return " ".join(parts)


@dataclass(frozen=True)
class ResultsTable:
    """A table: blocks of rows, separated by rules, under columns of (data set, score)."""

    name: str
    title: str
    columns: tuple[tuple[str, str], ...]
    blocks: tuple[tuple[tuple[str, tuple[TableCell, ...]], ...], ...] = field(default=())

    @property
    def spans(self) -> list[tuple[str, int]]:
        """The data sets above the columns, with the number of columns that each spans."""
        names: list[tuple[str, int]] = []
        for data, _ in self.columns:
            if names and names[-1][0] == data:
                names[-1] = (data, names[-1][1] + 1)
            else:
                names.append((data, 1))
        return names

    def rows(self) -> Iterator[tuple[str, tuple[TableCell, ...]]]:
        """Yield the model and the cells of each row."""
        for block in self.blocks:
            yield from block


def study_tables(summary: Summary) -> list[ResultsTable]:
    """Return all tables for which the study has models."""
    paper_models = {*AUTOENCODERS, *GANS, *ABLATED_AUTOENCODERS, *ABLATED_GANS}
    own = [model for model in summary.models if model not in paper_models]  # labels that the paper does not have
    data_columns = [AGGREGATED, *summary.data] if len(summary.data) > 1 else summary.data
    tables = []
    for name, title, groups in (
        (
            "main",
            "Main results",
            [
                [*group, *(model for model in own if is_adversarial(summary.plan, model) == gan)]
                for gan, group in enumerate((AUTOENCODERS, GANS))
            ],
        ),
        ("ablations", "Ablations", [ABLATED_AUTOENCODERS, ABLATED_GANS]),
    ):
        blocks = [[model for model in group if model in summary.models] for group in groups]
        blocks = [block for block in blocks if len(block) > (name == "ablations")]
        for scores, kind in ((INFOMEC, "InfoMEC"), (DCI, "DCI")):
            columns = [(data, score) for data in data_columns for score in scores]
            table = make_table(summary, f"{name}-{kind.lower()}", f"{title}, {kind}", columns, blocks)
            tables += [table] if table else []
    everything = [[m for m in summary.models if is_adversarial(summary.plan, m) == gan] for gan in (False, True)]
    for data in summary.data:
        columns = [(data, score) for score in (PAPER_COLUMNS[0], "informative", *PAPER_COLUMNS[1:])]
        table = make_table(summary, data, f"All results on {data}", columns, everything)
        tables += [table] if table else []
    others = [key for metric in METRICS.values() if not metric.takes_protocol for key in metric.score_keys]
    columns = [(data, score) for data in data_columns for score in others if score not in DCI]
    table = make_table(summary, "other-metrics", "Other metrics", columns, everything)
    return [*tables, table] if table else tables


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
    scores = {(data, score, model): summary.cell(data, model, score) for data, score in columns for model in models}
    filled = [column for column in columns if any(scores[*column, model] for model in models)]
    if not filled:
        return None
    most_seeds = max(len(cell.values) for cell in scores.values() if cell)
    filled_blocks = []
    for block in blocks:
        cells_by_column = []
        for data, score in filled:
            in_column = [scores[data, score, model] for model in block]
            bold = mark_bold(in_column) if score != "informative" else [False] * len(block)
            cells_by_column.append(
                [
                    TableCell(data, model, score, cell, is_bold, summary.published_mean(data, model, score), most_seeds)
                    for model, cell, is_bold in zip(block, in_column, bold, strict=True)
                ]
            )
        rows = [(model, tuple(cells[n] for cells in cells_by_column)) for n, model in enumerate(block)]
        filled_blocks.append(tuple(rows))
    return ResultsTable(name, title, tuple(filled), tuple(block for block in filled_blocks if block))
