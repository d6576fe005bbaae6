"""One HTML page with everything in it: no network, no script; opens from disk and prints well."""

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1180px; margin: 2rem auto;
       padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { margin-top: 2.4rem; border-bottom: 2px solid #2b6cb0; }
h3 { margin: 1.6rem 0 .3rem; } nav a { margin-right: 1.1rem; } a { color: #2b6cb0; }
.note { background: #fff8e1; border-left: 4px solid #f0b429; padding: .5rem .9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .6rem 0 1rem; font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .6rem; text-align: right; white-space: nowrap; }
th:first-child, td.text { text-align: left; } thead tr:first-child th { text-align: center; }
thead { border-bottom: 1.5px solid #222; } tbody { border-bottom: 1px solid #888; }
tbody tr:nth-child(even) { background: #f6f8fa; }
td small { display: block; color: #666; font-size: .76em; line-height: 1.1; }
table.compact { font-size: .8rem; } .compact th, .compact td { padding: .2rem .3rem; white-space: normal; }
.compact thead tr:last-child th { font-weight: 600; font-size: .88em; } .compact tbody th { white-space: nowrap; }
.compact td { min-width: 2.3rem; } .compact td span { white-space: nowrap; }
img { max-width: 100%; height: auto; } figure { margin: .8rem 0 1.4rem; } figcaption { color: #555; font-size: .9em; }
pre { white-space: pre-wrap; background: #f6f8fa; padding: .6rem; font-size: .85em; }
@media print {
  @page { size: A4 landscape; margin: 12mm; }
  body { max-width: none; margin: 0; font-size: 9.5pt; } nav { display: none; } .wide { overflow: visible; }
  table { font-size: 7.5pt; } table.compact { font-size: 6pt; } th, td { padding: .12rem .3rem; }
  .compact th, .compact td { padding: .08rem .12rem; } h2, h3, section p { break-after: avoid; }
  table, figure { break-inside: avoid; } figure img { max-height: 165mm; }
}
"""


@dataclass(frozen=True)
class Section:
    """A heading and the HTML beneath it."""

    anchor: str
    title: str
    body: str


def page(title: str, intro: str, sections: Sequence[Section]) -> str:
    """The whole document."""
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
    """A figure whose image is in the page itself."""
    encoded = base64.b64encode(png).decode()
    told = html.escape(caption)
    return f'<figure><img alt="{told}" src="data:image/png;base64,{encoded}"><figcaption>{told}</figcaption></figure>'


def plain_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, num_text: int = 1) -> str:
    """A table of strings; the first columns are words, the others numbers."""
    lines = [
        "<div class=wide><table><thead><tr>",
        *(f"<th>{html.escape(head)}</th>" for head in heads),
        "</tr></thead>",
    ]
    lines.append("<tbody>")
    for row in rows:
        cells = [
            f"<td{' class=text' if place < num_text else ''}>{html.escape(cell)}</td>" for place, cell in enumerate(row)
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def paragraph(text: str, kind: str = "") -> str:
    return f"<p{f' class={kind}' if kind else ''}>{html.escape(text)}</p>"
