"""Let links that work in the repository work on the site.

Pages link to files outside ``docs/``, such as ``../results/README.md`` or ``../src/qlae/presets.py``. Documents among
them are pages of the site under another name; the others are offered as downloads.
"""

import posixpath
import re
from typing import Any

#: Documents of the repository that are pages of the site.
PAGES = {
    "results/README.md": "results.md",
    "results/study/report/tables.md": "study-tables.md",
    "results/paper-small/report/tables.md": "paper-small-tables.md",
    "results/known-sources/tables.md": "known-sources-tables.md",
    "CHANGELOG.md": "changelog.md",
    ".github/CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
HOME = "README.md"
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)\s]+)\)")


def from_docs(text: str, depth: int = 0) -> str:
    """Return a page of ``docs/`` with links to pages of the site instead of documents of the repository.

    Args:
        text: the page.
        depth: the number of folders between ``docs/`` and the page.

    >>> from_docs("[here](../results/README.md#gans), [code](../src/a.py)")
    '[here](results.md#gans), [code](../src/a.py)'
    >>> from_docs("[here](../../results/README.md#gans)", depth=1)
    '[here](../results.md#gans)'
    """
    up = "../" * (depth + 1)

    def change(match: re.Match[str]) -> str:
        path, sign, anchor = match[1].partition("#")
        inner = path.removeprefix(up)
        if path.startswith(up) and inner in PAGES:
            return f"]({'../' * depth}{PAGES[inner]}{sign}{anchor})"
        return f"]({'../' * depth}index.md)" if path == f"{up}{HOME}" else match[0]

    return LINK.sub(change, text)


def from_elsewhere(text: str, folder: str) -> str:
    """Return a document of another folder of the repository as a page of ``docs/``.

    >>> from_elsewhere("[map](a/nmi.png), [why](../docs/metrics.md#dci), [up](#top)", "results")
    '[map](../results/a/nmi.png), [why](metrics.md#dci), [up](#top)'
    """

    def change(match: re.Match[str]) -> str:
        path, sign, anchor = match[1].partition("#")
        path = posixpath.normpath(posixpath.join(folder, path)) + sign + anchor
        return f"]({path.removeprefix('docs/')})" if path.startswith("docs/") else f"](../{path})"

    return from_docs(LINK.sub(change, text))


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""

    def read_source(app: Any, name: str, content: list[str]) -> None:
        content[0] = from_docs(content[0], depth=name.count("/"))

    def read_include(app: Any, path: Any, name: str, content: list[str]) -> None:
        home = next((file for file, page in PAGES.items() if page == f"{name}.md"), None)
        if home is not None:
            content[0] = from_elsewhere(content[0], home.rpartition("/")[0])

    app.connect("source-read", read_source)
    app.connect("include-read", read_include)
    return {"parallel_read_safe": True}
