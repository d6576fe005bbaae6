"""Build a self-contained HTML page (no network, no scripts; it opens from disk and prints well) and write its files."""

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .._io import MAX_JSON, read_regular, write_bytes, write_json
from .._parsing import decode_json, parse

MANIFEST = "files.json"

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1600px; margin: 2rem auto;
       padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { margin-top: 2.4rem; border-bottom: 2px solid #2b6cb0; }
h3 { margin: 1.6rem 0 .3rem; } nav a { margin-right: 1.1rem; } a { color: #2b6cb0; }
p, pre, figure { max-width: 1180px; }
.note { background: #fff8e1; border-left: 4px solid #f0b429; padding: .5rem .9rem; }
.warning { background: #fdecea; border-left: 4px solid #c53030; padding: .5rem .9rem; }
.wide { overflow-x: auto; }
table { border-collapse: separate; border-spacing: 0; margin: .6rem 0 1rem; font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .6rem; text-align: right; vertical-align: top; white-space: nowrap; background: #fff; }
tbody tr:nth-child(even) > * { background: #f6f8fa; }
thead th { vertical-align: bottom; } th[colspan] { text-align: center; }
thead tr:last-child > * { border-bottom: 1.5px solid #222; } tbody tr:last-child > * { border-bottom: 1px solid #888; }
.group { border-left: 1px solid #bbb; }
th:first-child, .text { text-align: left; } .results th:first-child { position: sticky; left: 0; z-index: 1; }
td.text:last-child { min-width: 14em; white-space: normal; overflow-wrap: anywhere; }
td small { display: block; color: #666; font-size: .76em; line-height: 1.15; }
table.compact { font-size: clamp(12px, calc(1330px / (var(--columns) * 4.2 + 8)), 14px); }
.compact th, .compact td { padding: .2rem clamp(.22em, calc(7.5em / var(--columns)), .6em); white-space: normal;
                           line-height: 1.3; }
.compact th:first-child { padding-right: .6em; }
.compact td span { display: block; white-space: nowrap; }
.compact thead tr:last-child th { font-weight: 600; font-size: .88em; }
.results tbody tr > * { background: #fff; } .results tbody th { font-weight: 600; vertical-align: top; }
.results tr.first > * { border-top: 1px solid #ddd; } .results tr.published > td { color: #8a5a00; }
.results th.last { border-bottom: 1px solid #888; }
.results td.text:nth-child(2), .results tr:not(.first) td.text:first-child { min-width: 0; white-space: nowrap; }
.charts { display: flex; flex-wrap: wrap; align-items: flex-start; gap: .6rem 1.4rem; margin: .4rem 0 1rem; }
.panel { width: 395px; max-width: 100%; } .panel h3 { margin: .4rem 0 .1rem; font-size: 1rem; }
.pair { display: flex; } .pair .chart { width: 50% !important; flex: none; }
.chart { max-width: 100%; height: auto; font-size: 11px; }
.chart .title { font-weight: 600; font-size: 12px; } .chart .label { fill: #222; } .chart .tick { fill: #666; }
.chart .tick.chosen { fill: #222; font-weight: 700; } .chart .grid { stroke: #e5e7eb; }
.chart .mark { stroke: #d97706; stroke-width: 2.5; } .chart .floor { stroke: #666; stroke-dasharray: 4 3; }
.chart .band { fill: #e3edf8; } .chart .curve { fill: none; stroke: #2b6cb0; stroke-width: 1.5; }
.chart .dot { fill: #2b6cb0; fill-opacity: .75; stroke: #1e4e86; } .chart .dot.hollow { fill: #fff; }
.chart .excluded .dot { fill: #bbb; stroke: #888; }
img { max-width: 100%; height: auto; } figure { margin: .8rem 0 1.4rem; } figcaption { color: #555; font-size: .9em; }
pre { white-space: pre-wrap; background: #f6f8fa; padding: .6rem; font-size: .85em; }
@media (max-width: 700px) {
  body { margin: 1rem auto; padding: 0 .8rem; } td.text { white-space: normal; }
  .results tbody th { white-space: normal; }
}
@media print {
  @page { size: A4 landscape; margin: 12mm; }
  body { max-width: none; margin: 0; padding: 0; font-size: 9.5pt; line-height: 1.35; } nav { display: none; }
  p, pre, figure { max-width: none; } p { margin: .45rem 0; } .wide { overflow: visible; }
  h1 { margin-top: 0; } h2 { margin: .9rem 0 .4rem; } h3 { margin: .6rem 0 .1rem; }
  table { font-size: 8pt; margin: .2rem 0 .5rem; } th, td { padding: .05rem .35rem; line-height: 1.2; }
  table.compact { font-size: min(9pt, calc(770pt / (var(--columns) * 4 + 8))); }
  .compact th, .compact td { padding: .05rem clamp(.22em, calc(6em / var(--columns)), .6em); line-height: 1.2; }
  .results th:first-child { position: static; } .compact tbody tr + tr > * { border-top: .5px solid #ddd; }
  h2, h3, section p { break-after: avoid; } table, figure, tr { break-inside: avoid; }
  figure { margin: .3rem 0 .6rem; } figure img { display: block; max-height: 154mm; margin-bottom: .2rem; }
  #correlations { columns: 2; } #correlations h2 { column-span: all; } td.text { white-space: normal; }
  #vignettes figure { display: inline-block; width: 49%; vertical-align: top; }
  #vignettes figure:last-child { width: 73.5%; }
}
"""


@dataclass(frozen=True)
class Section:
    """A section of a page: a heading and the HTML below it."""

    anchor: str
    title: str
    body: str


def page(title: str, intro: str, sections: Sequence[Section]) -> str:
    """Return a whole HTML document: its title as plain text, an introduction as HTML, and the sections in order."""
    links = "".join(f'<a href="#{section.anchor}">{html.escape(section.title)}</a>' for section in sections)
    bodies = "\n".join(
        f'<section id="{section.anchor}"><h2>{html.escape(section.title)}</h2>\n{section.body}</section>'
        for section in sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n{intro}\n<nav>{links}</nav>\n{bodies}\n</body></html>\n"
    )


def picture(png: bytes, caption: str) -> str:
    """Return the HTML of a figure, with the image embedded."""
    content = base64.b64encode(png).decode()
    text = html.escape(caption)
    return f'<figure><img alt="{text}" src="data:image/png;base64,{content}"><figcaption>{text}</figcaption></figure>'


def plain_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, num_text: int = 1) -> str:
    """Return the HTML of a table of strings; the first ``num_text`` columns hold text, others numbers."""

    def cell(tag: str, place: int, text: str) -> str:
        is_text = place < num_text and (tag, place) != ("th", 0)
        return f"<{tag}{' class=text' if is_text else ''}>{html.escape(text)}</{tag}>"

    def cells(tag: str, texts: Sequence[str]) -> list[str]:
        return [cell(tag, place, text) for place, text in enumerate(texts)]

    lines = ["<div class=wide><table><thead><tr>", *cells("th", heads), "</tr></thead>", "<tbody>"]
    lines += [f"<tr>{''.join(cells('td', row))}</tr>" for row in rows]
    return "\n".join([*lines, "</tbody></table></div>"])


def paragraph(text: str, css_class: str = "") -> str:
    """Return the HTML of a paragraph of plain text."""
    return f"<p{f' class={css_class}' if css_class else ''}>{html.escape(text)}</p>"


class ReportFiles:
    """A folder that keeps a list of the files written into it.

    Args:
        folder: the folder; it is created if it does not exist.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.names: list[str] = []
        folder.mkdir(exist_ok=True)

    def write(self, name: str, content: bytes) -> Path:
        """Write a file and return its path."""
        write_bytes(self.folder / name, content)
        self.names.append(name)
        return self.folder / name

    def remove_outdated(self) -> None:
        """Remove files that an earlier report wrote and this one did not; files from elsewhere stay."""
        manifest = self.folder / MANIFEST
        try:
            previous = parse(decode_json(read_regular(manifest, max_bytes=MAX_JSON)), list[str], "names")
        except (OSError, ValueError):
            previous = []
        for name in previous:
            is_plain = Path(name).name == name and "\0" not in name
            if is_plain and name not in self.names and (self.folder / name).is_file():
                (self.folder / name).unlink()
        write_json(manifest, sorted(self.names))
