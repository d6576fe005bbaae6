"""Write the tables of a study as Markdown, LaTeX, CSV and HTML."""

import html
import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import pandas as pd

from ...metrics import find_score
from .tables import DCI, PUBLISHED, ResultsTable, TableCell, TableRow

MAX_WIDE_COLUMNS = 8  # columns of an HTML table up to which mean and interval stand in one line


def to_markdown(table: ResultsTable) -> str:
    """Return the table as Markdown; if there are several data sets, the head of each column names its own."""
    several = len(table.spans) > 1
    heads = [
        f"{data}<br>{find_score(score).heading}" if several else find_score(score).heading
        for data, score in table.columns
    ]
    lines = [f"| model | weights | {' | '.join(heads)} |", f"|---|---|{'---|' * len(heads)}"]
    for row in table.rows():
        texts = [f"{f'**{value}**' if bold else value} {note}".rstrip() for value, note, bold in row.texts()]
        lines.append(f"| {row.model} | {row.weights} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def to_latex(table: ResultsTable, notes: Sequence[str] = ()) -> str:
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
    for block in table.blocks:
        lines.append(r"\midrule")
        lines += [_latex_row(row) for row in block]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex(text: str) -> str:
    """Return text with all characters escaped that are special in LaTeX.

    >>> print(_latex("my_qlae & 5%"))
    my\\_qlae \\& 5\\%
    """
    words = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
    return "".join(words.get(c, f"\\{c}" if c in "_&%#${}" else c) for c in text)


def _latex_row(row: TableRow) -> str:
    cells = [_latex_cell(*text) for text in row.texts()]
    return rf"{_latex(row.model)} & {row.weights} & {' & '.join(cells)} \\"


def _latex_cell(value: str, note: str, bold: bool) -> str:
    if not value[0].isdigit() or " of " in value:
        return _latex(value)
    number = value.replace("±", r"\pm")
    number = rf"$\mathbf{{{number}}}$" if bold else f"${number}$"
    return f"{number} {{\\tiny ${note}$}}" if note else number


CSV_COLUMNS = (
    *("table", "data", "origin", "model", "weights", "score", "mean", "ci95", "num_seeds", "values", "bold"),
    *("published", "difference"),
)


def to_csv(table: ResultsTable, origins: Mapping[str, str]) -> str:
    """Return the table as CSV with one line per cell; published numbers have separate columns.

    Args:
        table: the table.
        origins: whether each data set is rendered or real; published numbers are of real data.
    """
    lines = [
        {"table": table.name, "data": cell.data, "origin": origins[cell.data], "model": row.model}
        | {"weights": row.weights, "score": cell.score, **numbers}
        for row in table.rows()
        for cell in row.cells
        if row.weights != PUBLISHED and (numbers := _numbers(cell))
    ]
    return str(pd.DataFrame(lines, columns=CSV_COLUMNS).to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def _numbers(cell: TableCell) -> dict[str, Any]:
    """Return the numbers of a cell for CSV; none if it is empty."""
    if cell.counts:
        values = ";".join(f"{count.informative}/{count.active}" for count in cell.counts)
        mean = fmean(count.informative for count in cell.counts)
        return {"mean": mean, "num_seeds": len(cell.counts), "values": values, "bold": 0}
    if cell.scores is None:
        return {}
    scores = cell.scores
    values = ";".join(f"{value:.6g}" for value in scores.values)
    numbers = {"mean": scores.mean, "ci95": scores.half, "num_seeds": len(scores.values), "values": values}
    published = cell.published.mean if cell.published else math.nan
    return numbers | {"bold": int(cell.bold), "published": published, "difference": scores.mean - published}


def to_html(table: ResultsTable) -> str:
    """Return the table as HTML, with narrow columns if there are many."""
    lefts = [table.columns[0], *table.columns[:-1]]
    starts = [_starts_group(left, column) for left, column in zip(lefts, table.columns, strict=True)]
    spans = "".join(
        f'<th{_group_class(number > 0)} colspan="{width}">{html.escape(data)}</th>'
        for number, (data, width) in enumerate(table.spans)
    )
    titles = [
        find_score(score).heading.replace(" ", "<br>").replace("informative", "infor&shy;mative")
        for _, score in table.columns
    ]
    heads = "".join(
        f"<th{_group_class(starts_group)}>{title}</th>" for title, starts_group in zip(titles, starts, strict=True)
    )
    data_row = f"<tr><th></th><th></th>{spans}</tr>" if len(table.spans) > 1 else ""
    css_class = "results compact" if len(table.columns) > MAX_WIDE_COLUMNS else "results"
    lines = [
        f'<div class=wide><table class="{css_class}" style="--columns: {len(table.columns) + 1}">',
        f"<thead>{data_row}<tr><th>model</th><th class=text>weights</th>{heads}</tr></thead>",
    ]
    for block in table.blocks:
        lines.append("<tbody>")
        lines += [_html_row(row, number, block, starts) for number, row in enumerate(block)]
        lines.append("</tbody>")
    return "\n".join([*lines, "</table></div>"])


def _html_row(row: TableRow, number: int, block: Sequence[TableRow], starts: Sequence[bool]) -> str:
    """Return a row; the first row of a model has its name, for all of them."""
    cells = "".join(_html_cell(*text, starts_group) for text, starts_group in zip(row.texts(), starts, strict=True))
    is_first = number == 0 or block[number - 1].model != row.model
    height = sum(other.model == row.model for other in block)
    last = " class=last" if row.model == block[-1].model else ""  # a rule below the block
    name = f'<th rowspan="{height}"{last}>{html.escape(row.model)}</th>' if is_first else ""
    classes = " ".join(word for word, holds in (("first", is_first), (PUBLISHED, row.weights == PUBLISHED)) if holds)
    return f'<tr class="{classes}">{name}<td class=text>{row.weights}</td>{cells}</tr>'


def _html_cell(value: str, note: str, bold: bool, starts_group: bool) -> str:
    first, _, rest = value.partition(" ")
    text = f"{first} <span>{rest}</span>" if rest else first  # on separate lines in narrow columns
    small = f"<small>{note}</small>" if note else ""
    return f"<td{_group_class(starts_group)}>{f'<b>{text}</b>' if bold else text}{small}</td>"


def _starts_group(left: tuple[str, str], column: tuple[str, str]) -> bool:
    """Return whether a rule separates two columns: between data sets, and between DCI and other scores."""
    return left[0] != column[0] or (left[1] in DCI) != (column[1] in DCI)


def _group_class(starts_group: bool) -> str:
    return " class=group" if starts_group else ""
