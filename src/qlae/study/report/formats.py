"""Write the tables of a study as Markdown, LaTeX, CSV and HTML."""

import html
from collections.abc import Sequence
from typing import Any

from ...metrics import find_score
from .tables import DCI, PUBLISHED, Table

MAX_WIDE_COLUMNS = 8  # columns of an HTML table up to which mean and interval stand in one line
CSV_COLUMNS = (
    *("table", "data", "origin", "model", "weights", "score", "mean", "ci95", "num_seeds", "values", "bold"),
    *("published", "difference"),
)


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
    classes = [
        _group_class(_starts_group(left, column))
        for left, column in zip([table.columns[0], *table.columns], table.columns, strict=False)
    ]
    spans = "".join(
        f'<th{_group_class(number > 0)} colspan="{width}">{html.escape(data)}</th>'
        for number, (data, width) in enumerate(table.spans)
    )
    titles = [
        find_score(score).heading.replace(" ", "<br>").replace("informative", "infor&shy;mative")
        for _, score in table.columns
    ]
    heads = "".join(f"<th{css_class}>{title}</th>" for title, css_class in zip(titles, classes, strict=True))
    data_row = f"<tr><th></th><th></th>{spans}</tr>" if len(table.spans) > 1 else ""
    compact = "results compact" if len(table.columns) > MAX_WIDE_COLUMNS else "results"
    return "\n".join(
        [
            f'<div class=wide><table class="{compact}" style="--columns: {len(table.columns) + 1}">',
            f"<thead>{data_row}<tr><th>model</th><th class=text>weights</th>{heads}</tr></thead>",
            *_html_rows(table, classes),
            "</table></div>",
        ]
    )


def _html_rows(table: Table, classes: Sequence[str]) -> list[str]:
    """Return the rows; the first row of a model has its name, for all of them."""
    rows = list(table.rows())
    lines = []
    for block in dict.fromkeys(row[0] for row in rows):
        lines.append("<tbody>")
        models = [model for number, model, _, _ in rows if number == block]
        previous = None
        for _, model, weights, cells in (row for row in rows if row[0] == block):
            last = " class=last" if model == models[-1] else ""  # a rule below the block
            is_first = model != previous
            name = f'<th rowspan="{models.count(model)}"{last}>{html.escape(model)}</th>' if is_first else ""
            row_class = " ".join(["first"] * is_first + [PUBLISHED] * (weights == PUBLISHED))
            texts = "".join(map(_html_cell, cells, classes))
            lines.append(f'<tr class="{row_class}">{name}<td class=text>{weights}</td>{texts}</tr>')
            previous = model
        lines.append("</tbody>")
    return lines


def _html_cell(cell: Any, css_class: str) -> str:
    first, _, rest = cell.text.partition(" ")
    text = f"{first} <span>{rest}</span>" if rest else first  # on separate lines in narrow columns
    small = f"<small>{cell.note}</small>" if cell.note else ""
    return f"<td{css_class}>{f'<b>{text}</b>' if cell.bold else text}{small}</td>"


def _starts_group(left: tuple[str, str], column: tuple[str, str]) -> bool:
    """Return whether a rule separates two columns: between data sets, and between DCI and other scores."""
    return left[0] != column[0] or (left[1] in DCI) != (column[1] in DCI)


def _group_class(starts_group: bool) -> str:
    return " class=group" if starts_group else ""
