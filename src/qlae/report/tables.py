"""The paper's tables from a study: main, ablations, and one a data set; as Markdown, LaTeX, CSV and HTML.

A cell reads ``0.95 ± 0.02 (0.97, −0.02)``: mean and half of the 95% t-interval, then the published mean and the
difference; ``n = 3`` before the bracket where there are fewer seeds than in other cells. Bold are the intervals that
overlap the one with the highest end, as in the paper, autoencoders and GANs apart.
"""

import csv
import html
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..scoring.sample import OTHERS
from .aggregate import AGGREGATED, Cell, Summary, bold, is_adversarial
from .published import ABLATED_AUTOENCODERS, ABLATED_GANS, AUTOENCODERS, DIGITS, GANS, METRICS, TITLES

INFOMEC = ("infom", "informative", "infoe", "infoc", "psnr")
DCI = ("d", "i", "c")
MAX_BROAD = 9  # columns of an HTML table whose cells hold mean and interval in one line


@dataclass(frozen=True)
class Entry:
    """One cell of a table."""

    data: str
    model: str
    score: str
    cell: Cell | None
    bold: bool
    published: float | None
    most_seeds: int  # of the table's cells

    @property
    def digits(self) -> int:
        return DIGITS.get(self.score, 2)

    @property
    def value(self) -> str:
        """Mean ± half of the interval."""
        if self.cell is None:
            return "–"
        half = "" if self.cell.half is None else f" ± {self.cell.half:.{self.digits}f}"
        return f"{self.cell.mean:.{self.digits}f}{half}"

    @property
    def beside(self) -> str:
        """How many seeds, where they are fewer than elsewhere; the published mean and the difference."""
        if self.cell is None:
            return ""
        parts = [f"n = {len(self.cell.values)}"] if len(self.cell.values) < self.most_seeds else []
        if self.published is not None:
            difference = round(self.cell.mean - self.published, self.digits) + 0.0  # no −0.00
            told = f"{difference:+.{self.digits}f}".replace("-", "−")
            parts.append(f"({self.published:.{self.digits}f}, {told})")
        return " ".join(parts)


@dataclass(frozen=True)
class ResultsTable:
    """A table: blocks of rows, ruled apart, under columns of (data set, score)."""

    name: str
    title: str
    columns: tuple[tuple[str, str], ...]
    blocks: tuple[tuple[tuple[str, tuple[Entry, ...]], ...], ...] = field(default=())

    @property
    def spans(self) -> list[tuple[str, int]]:
        """Data sets above the columns, and how many columns each spans."""
        names: list[tuple[str, int]] = []
        for data, _ in self.columns:
            if names and names[-1][0] == data:
                names[-1] = (data, names[-1][1] + 1)
            else:
                names.append((data, 1))
        return names

    def rows(self) -> Iterator[tuple[str, tuple[Entry, ...]]]:
        for block in self.blocks:
            yield from block


def study_tables(summary: Summary) -> list[ResultsTable]:
    """All tables that a study has the models for."""
    published = {*AUTOENCODERS, *GANS, *ABLATED_AUTOENCODERS, *ABLATED_GANS}
    own = [model for model in summary.models if model not in published]  # under a label of the plan's
    spread = [AGGREGATED, *summary.data] if len(summary.data) > 1 else summary.data
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
            columns = [(data, score) for data in spread for score in scores]
            table = make_table(summary, f"{name}-{kind.lower()}", f"{title}, {kind}", columns, blocks)
            tables += [table] if table else []
    everything = [[m for m in summary.models if is_adversarial(summary.plan, m) == gan] for gan in (False, True)]
    for data in summary.data:
        columns = [(data, score) for score in (METRICS[0], "informative", *METRICS[1:])]
        table = make_table(summary, data, f"All results on {data}", columns, everything)
        tables += [table] if table else []
    columns = [(data, score) for data in spread for score in OTHERS if score not in DCI]
    others = make_table(summary, "other-metrics", "Other metrics", columns, everything)
    return [*tables, others] if others else tables


def make_table(
    summary: Summary, name: str, title: str, columns: Sequence[tuple[str, str]], blocks: Sequence[Sequence[str]]
) -> ResultsTable | None:
    """A table of models in blocks; columns without any number are left out. None if nothing is left."""
    models = [model for block in blocks for model in block]
    found = {(*column, model): summary.cell(column[0], model, column[1]) for column in columns for model in models}
    filled = [column for column in columns if any(found[*column, model] for model in models)]
    if not filled:
        return None
    most = max(len(cell.values) for cell in found.values() if cell)
    made = []
    for block in blocks:
        by_column = []
        for data, score in filled:
            cells = [found[data, score, model] for model in block]
            shown = bold(cells) if score != "informative" else [False] * len(cells)
            by_column.append(
                [
                    Entry(data, model, score, cell, strong, summary.published_mean(data, model, score), most)
                    for model, cell, strong in zip(block, cells, shown, strict=True)
                ]
            )
        made.append(tuple((model, tuple(column[n] for column in by_column)) for n, model in enumerate(block)))
    return ResultsTable(name, title, tuple(filled), tuple(block for block in made if block))


def to_markdown(table: ResultsTable) -> str:
    """The table in Markdown; data sets are named in each column's head where there are several."""
    several = len(table.spans) > 1
    heads = [f"{data}<br>{TITLES[score]}" if several else TITLES[score] for data, score in table.columns]
    lines = [f"| model | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for model, entries in table.rows():
        cells = [f"{f'**{e.value}**' if e.bold else e.value} {e.beside}".rstrip() for e in entries]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def to_latex(table: ResultsTable, notes: Sequence[str] = ()) -> str:
    """A ``tabular`` that needs booktabs, beneath comments."""
    spans = " & ".join(rf"\multicolumn{{{width}}}{{c}}{{{_latex(data)}}}" for data, width in table.spans)
    heads = " & ".join(
        rf"{TITLES[score]} $\uparrow$" if score != "informative" else "informative" for _, score in table.columns
    )
    lines = [f"% {note}" for note in notes]
    lines += [rf"\begin{{tabular}}{{l{'c' * len(table.columns)}}}", r"\toprule"]
    lines += [rf" & {spans} \\"] if len(table.spans) > 1 else []
    lines += [rf"model & {heads} \\"]
    for block in table.blocks:
        lines.append(r"\midrule")
        lines += [
            rf"{_latex(model)} & {' & '.join(_latex_cell(entry) for entry in entries)} \\" for model, entries in block
        ]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex(text: str) -> str:
    """Text in which nothing is a command.

    >>> print(_latex("my_qlae & 5%"))
    my\\_qlae \\& 5\\%
    """
    words = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(words.get(c, f"\\{c}" if c in "_&%#${}" else c) for c in text)


def _latex_cell(entry: Entry) -> str:
    if entry.cell is None:
        return "--"
    value = entry.value.replace("±", r"\pm")
    value = rf"$\mathbf{{{value}}}$" if entry.bold else f"${value}$"
    return f"{value} {{\\tiny ${entry.beside.replace('−', '-')}$}}" if entry.beside else value


def to_csv(table: ResultsTable, origins: Mapping[str, str]) -> str:
    """One line a cell: what it is, mean, half of the interval, number of seeds, bold, published mean, difference.

    ``origins`` says of every data set whether it is rendered or real; published numbers are of real data.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["table", "data", "origin", "model", "score", "mean", "ci95", "num_seeds", "bold", "published", "difference"]
    )
    for _, entries in table.rows():
        for e in entries:
            if e.cell is None:
                continue
            half = "" if e.cell.half is None else f"{e.cell.half:.6g}"
            beside = ("", "") if e.published is None else (f"{e.published:.6g}", f"{e.cell.mean - e.published:.6g}")
            shown = (f"{e.cell.mean:.6g}", half, len(e.cell.values), int(e.bold))
            writer.writerow((table.name, e.data, origins[e.data], e.model, e.score, *shown, *beside))
    return out.getvalue()


def to_html(table: ResultsTable) -> str:
    """The table as HTML, published numbers small beneath ours; narrow columns where there are many of them."""
    befores = [table.columns[0], *table.columns[:-1]]
    starts = [_starts_group(before, column) for before, column in zip(befores, table.columns, strict=True)]
    spans = "".join(
        f'<th{_ruled(number > 0)} colspan="{width}">{html.escape(data)}</th>'
        for number, (data, width) in enumerate(table.spans)
    )
    heads = "".join(
        f"<th{_ruled(ruled)}>{TITLES[score].replace(' ', '<br>').replace('informative', 'infor&shy;mative')}</th>"
        for (_, score), ruled in zip(table.columns, starts, strict=True)
    )
    above = f"<tr><th></th>{spans}</tr>" if len(table.spans) > 1 else ""
    shape = "results compact" if len(table.columns) > MAX_BROAD else "results"
    lines = [
        f'<div class=wide><table class="{shape}" style="--columns: {len(table.columns)}">',
        f"<thead>{above}<tr><th>model</th>{heads}</tr></thead>",
    ]
    for block in table.blocks:
        lines.append("<tbody>")
        for model, entries in block:
            cells = "".join(_html_cell(entry, ruled) for entry, ruled in zip(entries, starts, strict=True))
            lines.append(f"<tr><th>{html.escape(model)}</th>{cells}</tr>")
        lines.append("</tbody>")
    return "\n".join([*lines, "</table></div>"])


def _html_cell(entry: Entry, ruled: bool) -> str:
    mean, _, half = entry.value.partition(" ")
    value = f"{mean} <span>{half}</span>" if half else mean
    parts = entry.beside.replace(" (", "\n(").replace(", ", ",\n").split("\n")  # each in a line where it is narrow
    beside = f"<small>{' '.join(f'<span>{part}</span>' for part in parts)}</small>" if entry.beside else ""
    return f"<td{_ruled(ruled)}>{f'<b>{value}</b>' if entry.bold else value}{beside}</td>"


def _starts_group(before: tuple[str, str], column: tuple[str, str]) -> bool:
    """Whether a rule stands between two columns: of two data sets, or of DCI and another score."""
    return before[0] != column[0] or (before[1] in DCI) != (column[1] in DCI)


def _ruled(ruled: bool) -> str:
    return " class=group" if ruled else ""
