"""The files of a report: written whole, while outdated files of an earlier report are removed."""

import json
from pathlib import Path

from .._files import write_bytes, write_json

MANIFEST = "files.json"


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
            previous = json.loads(manifest.read_text())
        except (OSError, ValueError):
            previous = []
        for name in previous if isinstance(previous, list) else []:
            if name not in self.names and Path(str(name)).name == name:
                (self.folder / name).unlink(missing_ok=True)
        write_json(manifest, sorted(self.names))
