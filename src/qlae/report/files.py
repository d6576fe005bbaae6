"""The files of a report: written whole, and those of an earlier report that are no longer true forgotten."""

import json
from pathlib import Path

from .._files import write_bytes, write_json

MANIFEST = "files.json"


class ReportFiles:
    """A folder that remembers what was written into it.

    Args:
        folder: made if it is not there.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.names: list[str] = []
        folder.mkdir(exist_ok=True)

    def write(self, name: str, content: bytes) -> Path:
        """Write a file; its path."""
        write_bytes(self.folder / name, content)
        self.names.append(name)
        return self.folder / name

    def forget_others(self) -> None:
        """Remove what an earlier report wrote and this one did not; anybody else's files stay."""
        manifest = self.folder / MANIFEST
        try:
            before = json.loads(manifest.read_text())
        except (OSError, ValueError):
            before = []
        for name in before if isinstance(before, list) else []:
            if name not in self.names and Path(str(name)).name == name:
                (self.folder / name).unlink(missing_ok=True)
        write_json(manifest, sorted(self.names))
