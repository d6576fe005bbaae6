"""The files of a report: written whole, while outdated files of an earlier report are removed."""

import json
from pathlib import Path

from .._files import write_bytes, write_json
from .._opening import read_regular

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
            previous = json.loads(read_regular(manifest))
        except (OSError, ValueError, RecursionError):
            previous = []
        for name in previous if isinstance(previous, list) else []:
            is_plain = isinstance(name, str) and Path(name).name == name and "\0" not in name
            if is_plain and name not in self.names and (self.folder / name).is_file():
                (self.folder / name).unlink()
        write_json(manifest, sorted(self.names))
