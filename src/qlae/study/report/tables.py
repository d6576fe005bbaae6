"""Arrange a study's scores in the paper's tables, and write them as Markdown, LaTeX, CSV and HTML.

There are tables of the main results, of the ablations, and of each data set.

Each model has a row per set of weights, and below them the published numbers if its runs are comparable. If there are
published numbers, both sets of weights are shown, otherwise the one that the study uses. A cell reads ``0.95 ± 0.02``,
mean and half of the 95% interval; with two seeds it shows both values, as in ``0.86, 0.81``. Rows have the same order
in every table.

Bold are the cells that Welch's t-test cannot tell from the best (one-sided, 5% over the column by Holm's correction),
if it can tell any. With ``aggregate = "authors"`` the paper's rule applies: intervals that overlap the one with the
highest upper end.
"""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean, stdev
from typing import Any

import pandas as pd
from scipy import stats

from ...metrics import METRICS, find_score
from ...observations import described_observations
from ...paper_tables import ABLATED_AUTOENCODERS, ABLATED_GANS, AUTOENCODERS, GANS, PAPER_ROWS
from ..plan import SCORED_WEIGHTS
from ..tuning import AGREEMENT
from .summary import AGGREGATED, MIN_SEEDS, Cell, Summary, describe_counts

INFOMEC = (
    "infom",
    "informative",
    "infoe",
    "infoe_scalar",
    "infoc",
    "agreement",
    "psnr",
    "held_out_psnr",
    "r2",
    "held_out_r2",
)
CORRECTED = ("infom_corrected", "infoe_corrected", "infoc_corrected")
DCI = ("d", "i", "c")
EVERYTHING = (
    *("infom", "informative", "infom_corrected", "infoe", "infoe_scalar", "infoe_corrected", "infoc"),
    *("infoc_corrected", *DCI, "agreement", "psnr", "held_out_psnr", "r2", "held_out_r2"),
)
LEVEL = 0.05  # of the test
PUBLISHED = "published"  # stands in the column of the weights

EMPTY = {"text": "–", "note": "", "bold": False}  # a cell without a score
MAX_WIDE_COLUMNS = 8  # columns of an HTML table up to which mean and interval stand in one line
CSV_COLUMNS = (
    *("table", "data", "origin", "model", "weights", "score", "mean", "ci95", "num_seeds", "values", "bold"),
    *("published", "difference"),
)

Column = tuple[str, str]  # the label of a data set and a score
Row = tuple[int, str, str, list[Any]]  # block, model, weights and cells


@dataclass(frozen=True)
class Table:
    """A table of a study.

    Attributes:
        name: of its files.
        title: above it.
        columns: data set and score of each column.
        cells: one row per cell, ordered by the rows of the table and then by its columns: ``block`` (blocks of rows are
            separated by rules), ``model``, ``weights``, ``data``, ``score``, the ``text`` of the cell, a ``note`` (the
            number of seeds if other cells have more), and the numbers that `to_csv` writes.
    """

    name: str
    title: str
    columns: list[Column]
    cells: pd.DataFrame

    @property
    def spans(self) -> list[tuple[str, int]]:
        """The data sets above the columns, with the number of columns that each spans."""
        return [(data, len(list(columns))) for data, columns in groupby(self.columns, key=lambda column: column[0])]

    def rows(self) -> Iterator[Row]:
        """Yield block, model, weights and cells of each row."""
        for (block, model, weights), cells in self.cells.groupby(["block", "model", "weights"], sort=False):
            yield block, model, weights, list(cells.itertuples())


def study_tables(summary: Summary) -> list[Table]:
    """Return all tables for which the study has models."""
    everything = summary.blocks
    ablations = {*ABLATED_AUTOENCODERS, *ABLATED_GANS}
    main = [[m for m in block if m in (*AUTOENCODERS, *GANS) or m not in PAPER_ROWS] for block in everything]
    ablated = [[model for model in block if model in ablations] for block in everything]
    kinds_of_data = {described_observations(about).kind for about in summary.data_descriptions.values()}
    is_averaged = len(summary.data) > 1 and len(kinds_of_data) == 1  # a mean over a table and series says nothing
    data_columns = [AGGREGATED, *summary.data] if is_averaged else summary.data
    fidelity = " or ".join(find_score(key).heading for key in summary.fidelity)
    first = ("InfoMEC", "infomec") if summary.has_sources() else (f"agreement and {fidelity}", "agreement")
    kinds = ((INFOMEC, *first), (DCI, "DCI", "dci"), (CORRECTED, "chance-corrected InfoMEC", "corrected"))
    others = [key for metric in METRICS.values() if metric.name != "infomec" for key in metric.score_keys]
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
    """Return a table of models in blocks, without columns that hold no number; None if no column is left."""
    models = [model for block in blocks for model in block]
    columns = [(data, score) for data, score in columns if any(_has(summary, data, m, score) for m in models)]
    if not columns:
        return None
    has_published = any(summary.published(data, model, score) for data, score in columns for model in models)
    weights = [summary.weights, *(w for w in SCORED_WEIGHTS if w != summary.weights and has_published), PUBLISHED]
    seeds = [len(summary.values(data, model, score)) for data, score in columns for model in models]
    rows = []
    for number, block in enumerate(blocks):
        cells = {
            (w, *column): _column_cells(summary, *column, block, w, max(seeds)) for w in weights for column in columns
        }
        for place, model in enumerate(block):
            for w in weights:
                row = [{"weights": w, "data": d, "score": s} | cells[w, d, s][place] for d, s in columns]
                if w == summary.weights or any(c["text"] != "–" for c in row if c["score"] != "informative"):
                    rows += [{"table": name, "block": number, "model": model} | cell for cell in row]
    table = pd.DataFrame(rows)
    return Table(name, title, columns, table.assign(origin=table.data.map(summary.origins)))


def _column_cells(
    summary: Summary, data: str, score: str, models: Sequence[str], weights: str, most_seeds: int
) -> list[dict[str, Any]]:
    """Return the cells of one column, for models that are compared with each other."""
    if weights == PUBLISHED:
        digits = printed_digits(score)
        numbers = [summary.published(data, model, score) for model in models]
        return [EMPTY | ({"text": _with_half(n.mean, n.half, digits)} if n else {}) for n in numbers]
    if score == "informative":
        return [EMPTY | _counts_cell(summary, data, model, weights) for model in models]
    cells = [summary.cell(data, model, score, weights) for model in models]
    bold = mark_bold(cells, aggregate=summary.aggregate, digits=printed_digits(score))
    return [
        EMPTY | {"bold": is_bold} | (_score_cell(summary, data, model, score, cell, most_seeds) if cell else {})
        for model, cell, is_bold in zip(models, cells, bold, strict=True)
    ]


def mark_bold(cells: Sequence[Cell | None], *, aggregate: str = "reruns", digits: int = 2) -> list[bool]:
    """Return which cells of a column are bold.

    Cells with fewer than three seeds are never bold. Nothing is bold if such a cell has the highest mean, or if the
    test cannot tell any model from the best. Means that are printed alike, with so many digits, count as equal.

    >>> from qlae.study.report.summary import make_cell
    >>> mark_bold([make_cell((0.5, 0.5, 0.6)), make_cell((0.9, 0.9, 0.8)), None])
    [False, True, False]
    """
    if aggregate == "authors":
        return _overlap_highest(cells)
    best = max((cell for cell in cells if cell), key=lambda cell: cell.mean, default=None)
    if best is None or best.half is None:
        return [False] * len(cells)
    tested = {number: cell for number, cell in enumerate(cells) if cell and cell.half is not None}
    p_values = sorted((_p_value(best, cell, digits), number) for number, cell in tested.items() if cell is not best)
    worse = set()
    for rank, (p, number) in enumerate(p_values):  # Holm's procedure
        if p > LEVEL / (len(p_values) - rank):
            break
        worse.add(number)
    return [bool(worse) and number in tested and number not in worse for number in range(len(cells))]


def _p_value(best: Cell, other: Cell, digits: int) -> float:
    """Return p of Welch's test; 1 if the means are printed alike."""
    if f"{best.mean:.{digits}f}" == f"{other.mean:.{digits}f}":
        return 1.0
    if len(set(best.values)) == len(set(other.values)) == 1:
        return 0.0  # neither varies over seeds, and the means differ
    moments = [number for cell in (best, other) for number in (cell.mean, stdev(cell.values), len(cell.values))]
    return float(stats.ttest_ind_from_stats(*moments, equal_var=False, alternative="greater").pvalue)


def _overlap_highest(cells: Sequence[Cell | None]) -> list[bool]:
    """Return which intervals overlap the one with the highest upper end; a cell without an interval is not bold."""
    ends = [(c.mean - c.half, c.mean + c.half) if c and c.half is not None else None for c in cells]
    highest = max((end for end in ends if end), key=lambda end: end[1], default=None)
    return [end is not None and highest is not None and end[1] >= highest[0] for end in ends]


def _counts_cell(summary: Summary, data: str, model: str, weights: str) -> dict[str, Any]:
    counts = summary.latent_counts(data, model, weights)
    if not counts:
        return {}
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


def to_markdown(table: Table) -> str:
    """Return the table as Markdown; if there are several data sets, the head of each column names its own."""
    several = len(table.spans) > 1
    heads = [f"{data}<br>" * several + find_score(score).heading for data, score in table.columns]
    lines = [f"| model | weights | {' | '.join(heads)} |", f"|---|---|{'---|' * len(heads)}"]
    for _, model, weights, cells in table.rows():
        texts = [f"{f'**{cell.text}**' if cell.bold else cell.text} {cell.note}".rstrip() for cell in cells]
        lines.append(f"| {model} | {weights} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def to_latex(table: Table, notes: Sequence[str] = ()) -> str:
    """Return the table as a LaTeX ``tabular``, which needs the package booktabs, below the notes as comments."""
    spans = " & ".join(rf"\multicolumn{{{width}}}{{c}}{{{_latex(data)}}}" for data, width in table.spans)
    heads = " & ".join(
        rf"{_latex(find_score(score).heading)} $\uparrow$" if score != "informative" else "informative"
        for _, score in table.columns
    )
    lines = [f"% {note}" for note in notes]
    lines += [rf"\begin{{tabular}}{{ll{'c' * len(table.columns)}}}", r"\toprule"]
    lines += [rf" & & {spans} \\"] if len(table.spans) > 1 else []
    lines += [rf"model & weights & {heads} \\"]
    last_block = None
    for block, model, weights, cells in table.rows():
        lines += [r"\midrule"] if block != last_block else []
        lines.append(rf"{_latex(model)} & {weights} & {' & '.join(map(_latex_cell, cells))} \\")
        last_block = block
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex(text: str) -> str:
    """Return text with all characters escaped that are special in LaTeX.

    >>> print(_latex("my_qlae & 5%"))
    my\\_qlae \\& 5\\%
    """
    words = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
    return "".join(words.get(c, f"\\{c}" if c in "_&%#${}" else c) for c in text)


def _latex_cell(cell: Any) -> str:
    if not cell.text[0].isdigit() or " of " in cell.text:
        return _latex(cell.text)
    number = cell.text.replace("±", r"\pm")
    number = rf"$\mathbf{{{number}}}$" if cell.bold else f"${number}$"
    return f"{number} {{\\tiny ${cell.note}$}}" if cell.note else number


def to_csv(table: Table) -> str:
    """Return the table as CSV with one line per cell; published numbers have separate columns."""
    numbers = table.cells[table.cells["mean"].notna()].reindex(columns=CSV_COLUMNS)
    return str(numbers.astype({"bold": int}).to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def to_html(table: Table) -> str:
    """Return the table as HTML, with narrow columns if there are many."""
    lefts = [table.columns[0], *table.columns]
    classes = [" class=group" * _starts_group(*pair) for pair in zip(lefts, table.columns, strict=False)]
    spans = "".join(
        f'<th{" class=group" * (number > 0)} colspan="{width}">{html.escape(data)}</th>'
        for number, (data, width) in enumerate(table.spans)
    )
    titles = [find_score(score).heading.replace(" ", "<br>") for _, score in table.columns]
    heads = "".join(f"<th{css_class}>{title}</th>" for title, css_class in zip(titles, classes, strict=True))
    data_row = f"<tr><th></th><th></th>{spans}</tr>" if len(table.spans) > 1 else ""
    compact = "results compact" if len(table.columns) > MAX_WIDE_COLUMNS else "results"
    return "\n".join(
        [
            f'<div class=wide><table class="{compact}" style="--columns: {len(table.columns) + 1}">',
            f"<thead>{data_row}<tr><th>model</th><th class=text>weights</th>"
            f"{heads.replace('informative', 'infor&shy;mative')}</tr></thead>",
            *(line for _, rows in groupby(table.rows(), key=lambda row: row[0]) for line in _html_block(rows, classes)),
            "</table></div>",
        ]
    )


def _html_block(rows: Iterator[Row], classes: Sequence[str]) -> list[str]:
    """Return the rows of a block; the first row of a model has its name, for all of them."""
    by_model = [(model, list(group)) for model, group in groupby(rows, key=lambda row: row[1])]
    lines = ["<tbody>"]
    for number, (model, of_model) in enumerate(by_model, start=1):
        last = " class=last" if number == len(by_model) else ""  # a rule below the block
        name = f'<th rowspan="{len(of_model)}"{last}>{html.escape(model)}</th>'
        for place, (_, _, weights, cells) in enumerate(of_model):
            row_class = " ".join(["first"] * (place == 0) + [PUBLISHED] * (weights == PUBLISHED))
            texts = "".join(map(_html_cell, cells, classes))
            head = "" if place else name
            lines.append(f'<tr class="{row_class}">{head}<td class=text>{weights}</td>{texts}</tr>')
    return [*lines, "</tbody>"]


def _html_cell(cell: Any, css_class: str) -> str:
    first, _, rest = cell.text.partition(" ")
    text = f"{first} <span>{rest}</span>" if rest else first  # on separate lines in narrow columns
    small = f"<small>{cell.note}</small>" if cell.note else ""
    return f"<td{css_class}>{f'<b>{text}</b>' if cell.bold else text}{small}</td>"


def _starts_group(left: tuple[str, str], column: tuple[str, str]) -> bool:
    """Return whether a rule separates two columns: between data sets, and between DCI and other scores."""
    return left[0] != column[0] or (left[1] in DCI) != (column[1] in DCI)
