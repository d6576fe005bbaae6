"""Give the package index a README whose links work there: those to files of the repository become addresses."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "https://github.com/qlae/qlae"
FILES = f"{REPOSITORY}/blob/main"
RAW = "https://raw.githubusercontent.com/qlae/qlae/main"
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)\s]+)\)")
PICTURES = (".png", ".jpg", ".svg", ".gif")


def with_addresses(text: str) -> str:
    """Return Markdown in which relative links lead to the repository, and pictures to their raw files.

    >>> with_addresses("![map](docs/map.png) and [more](docs/more.md#top)")
    '![map](https://raw.githubusercontent.com/qlae/qlae/main/docs/map.png) and \
[more](https://github.com/qlae/qlae/blob/main/docs/more.md#top)'
    """
    return LINK.sub(lambda match: f"]({RAW if match[1].endswith(PICTURES) else FILES}/{match[1]})", text)


class ReadmeHook(MetadataHookInterface):
    """Set the dynamic field ``readme``."""

    def update(self, metadata: dict) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_addresses(text)}
