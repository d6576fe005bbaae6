"""Write the tables of a study as Markdown, LaTeX, CSV and HTML."""

import csv
import html
import io
from collections.abc import Mapping, Sequence

from ...metrics import find_score
from .tables import DCI, ResultsTable, TableCell

MAX_WIDE_COLUMNS = 9  # columns of an HTML table up to which mean and interval stand in one line


def to_markdown(table: ResultsTable) -> str:
    """Return the table as Markdown; if there are several data sets, the head of each column names its own."""
    several = len(table.spans) > 1
    heads = [
        f"{data}<br>{find_score(score).heading}" if several else find_score(score).heading
        for data, score in table.columns
    ]
    lines = [f"| model | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for model, cells in table.rows():
        texts = [f"{f'**{c.value}**' if c.bold else c.value} {c.beside}".rstrip() for c in cells]
        lines.append(f"| {model} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def to_latex(table: ResultsTable, notes: Sequence[str] = ()) -> str:
    """Return the table as a LaTeX ``tabular``, which needs the package booktabs, below the notes as comments."""
    spans = " & ".join(rf"\multicolumn{{{width}}}{{c}}{{{_latex(data)}}}" for data, width in table.spans)
    heads = " & ".join(
        rf"{find_score(score).heading} $\uparrow$" if score != "informative" else "informative"
        for _, score in table.columns
    )
    lines = [f"% {note}" for note in notes]
    lines += [rf"\begin{{tabular}}{{l{'c' * len(table.columns)}}}", r"\toprule"]
    lines += [rf" & {spans} \\"] if len(table.spans) > 1 else []
    lines += [rf"model & {heads} \\"]
    for block in table.blocks:
        lines.append(r"\midrule")
        lines += [rf"{_latex(model)} & {' & '.join(_latex_cell(cell) for cell in cells)} \\" for model, cells in block]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex(text: str) -> str:
    """Return text with all characters escaped that are special in LaTeX.

    >>> print(_latex("my_qlae & 5%"))
    my\\_qlae \\& 5\\%
    """
    words = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(words.get(c, f"\\{c}" if c in "_&%#${}" else c) for c in text)


def _latex_cell(cell: TableCell) -> str:
    if cell.scores is None:
        return "--"
    value = cell.value.replace("±", r"\pm")
    value = rf"$\mathbf{{{value}}}$" if cell.bold else f"${value}$"
    return f"{value} {{\\tiny ${cell.beside.replace('−', '-')}$}}" if cell.beside else value


def to_csv(table: ResultsTable, origins: Mapping[str, str]) -> str:
    """Return the table as CSV with one line per cell.

    Args:
        table: the table.
        origins: whether each data set is rendered or real; published numbers are of real data.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["table", "data", "origin", "model", "score", "mean", "ci95", "num_seeds", "bold", "published", "difference"]
    )
    for _, cells in table.rows():
        for c in cells:
            if c.scores is None:
                continue
            half = "" if c.scores.half is None else f"{c.scores.half:.6g}"
            beside = ("", "") if c.published is None else (f"{c.published:.6g}", f"{c.scores.mean - c.published:.6g}")
            numbers = (f"{c.scores.mean:.6g}", half, len(c.scores.values), int(c.bold))
            writer.writerow((table.name, c.data, origins[c.data], c.model, c.score, *numbers, *beside))
    return out.getvalue()


def to_html(table: ResultsTable) -> str:
    """Return the table as HTML, with published numbers small below ours, and narrow columns if there are many."""
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
    data_row = f"<tr><th></th>{spans}</tr>" if len(table.spans) > 1 else ""
    css_class = "results compact" if len(table.columns) > MAX_WIDE_COLUMNS else "results"
    lines = [
        f'<div class=wide><table class="{css_class}" style="--columns: {len(table.columns)}">',
        f"<thead>{data_row}<tr><th>model</th>{heads}</tr></thead>",
    ]
    for block in table.blocks:
        lines.append("<tbody>")
        for model, cells in block:
            texts = "".join(_html_cell(cell, starts_group) for cell, starts_group in zip(cells, starts, strict=True))
            lines.append(f"<tr><th>{html.escape(model)}</th>{texts}</tr>")
        lines.append("</tbody>")
    return "\n".join([*lines, "</table></div>"])


def _html_cell(cell: TableCell, starts_group: bool) -> str:
    mean, _, half = cell.value.partition(" ")
    value = f"{mean} <span>{half}</span>" if half else mean
    parts = cell.beside.replace(" (", "\n(").replace(", ", ",\n").split("\n")  # on separate lines in narrow columns
    beside = f"<small>{' '.join(f'<span>{part}</span>' for part in parts)}</small>" if cell.beside else ""
    return f"<td{_group_class(starts_group)}>{f'<b>{value}</b>' if cell.bold else value}{beside}</td>"


def _starts_group(left: tuple[str, str], column: tuple[str, str]) -> bool:
    """Return whether a rule separates two columns: between data sets, and between DCI and other scores."""
    return left[0] != column[0] or (left[1] in DCI) != (column[1] in DCI)


def _group_class(starts_group: bool) -> str:
    return " class=group" if starts_group else ""
