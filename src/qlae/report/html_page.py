"""Build a self-contained HTML page (no network, no scripts; it opens from disk and prints well) and write its files."""

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from .._io import MAX_JSON, read_regular, write_bytes, write_json
from .._parsing import decode_json, parse

MANIFEST = "files.json"


@dataclass(frozen=True)
class Section:
    """A section of a page: a heading and the HTML below it."""

    anchor: str
    title: str
    body: str


def page(title: str, intro: str, sections: Sequence[Section], *, style: str = "") -> str:
    """Return a whole HTML document: its title as plain text, an introduction as HTML, and the sections in order.

    ``style`` is CSS that comes after that of all pages.
    """
    links = "".join(f'<a href="#{section.anchor}">{html.escape(section.title)}</a>' for section in sections)
    style = (resources.files(__package__) / "report.css").read_text() + style
    bodies = "\n".join(
        f'<section id="{section.anchor}"><h2>{html.escape(section.title)}</h2>\n{section.body}</section>'
        for section in sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>\n{style}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n{intro}\n<nav>{links}</nav>\n{bodies}\n</body></html>\n"
    )


def picture(png: bytes, caption: str) -> str:
    """Return the HTML of a figure, with the image embedded."""
    content = base64.b64encode(png).decode()
    text = html.escape(caption)
    return f'<figure><img alt="{text}" src="data:image/png;base64,{content}"><figcaption>{text}</figcaption></figure>'


def plain_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, num_text: int = 1) -> str:
    """Return the HTML of a table of strings; the first ``num_text`` columns hold text, others numbers."""

    def cells(tag: str, texts: Sequence[str]) -> str:
        marked = [place < num_text and (tag, place) != ("th", 0) for place in range(len(texts))]
        return "".join(
            f"<{tag}{' class=text' * is_text}>{html.escape(text)}</{tag}>"
            for text, is_text in zip(texts, marked, strict=True)
        )

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{cells('th', heads)}</tr></thead>"
    return f"<div class=wide><table>{head}\n<tbody>\n{body}\n</tbody></table></div>"


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
