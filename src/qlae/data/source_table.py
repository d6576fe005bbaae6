"""A CSV of sources: one line per image, its first column the name of the file and the other columns the sources.

Columns are separated by commas, semicolons or tabs, whichever occurs most often in the first line.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from .._io import open_regular

DELIMITERS = (",", ";", "\t")
EXAMPLE = "file,shape,size"


class SourceTable:
    """The sources of images in a CSV.

    Args:
        path: the CSV.
        images: the names of all image files, also of those that turn out to be unreadable. Lines for other files are
            ignored.

    Raises:
        ValueError: the CSV cannot be read, or an image has two lines.
    """

    def __init__(self, path: Path, images: list[str]) -> None:
        self.path = path
        self._header, lines = _read_lines(path)
        image_names = set(images)
        _check_header(path, self._header, image_names)
        for number, line in lines:
            if len(line) != len(self._header):
                raise ValueError(
                    f"line {number} of {path} has {len(line)} columns, its first line has {len(self._header)}"
                )
        self._by_name: dict[str, tuple[int, list[str]]] = {}
        for number, line in lines:
            name = _match_image(line[0], image_names)
            if name in self._by_name:
                raise ValueError(
                    f"{path} has two lines for {name}, {self._by_name[name][0]} and {number}: remove one of them"
                )
            if name is not None:
                self._by_name[name] = number, line
        if not self._by_name:
            self.rows_for(images)  # raises

    def rows_for(self, images: list[str]) -> dict[str, list[str]]:
        """Return for each source its values, in the order of `images`.

        Raises:
            ValueError: an image has no line, or an empty cell.
        """
        missing = [name for name in images if name not in self._by_name]
        if missing:
            raise ValueError(
                f"{self.path} has no line for {len(missing)} of {len(images)} images, the first of them {missing[0]}: "
                "the first column must hold the path of the file relative to the folder"
            )
        rows = [self._by_name[name] for name in images]
        for number, line in rows:
            if "" in line:
                raise ValueError(f"line {number} of {self.path} has no {self._header[line.index('')]!r}: fill it in")
        return {name: [line[i] for _, line in rows] for i, name in enumerate(self._header) if i}


def _check_header(path: Path, header: list[str], images: set[str]) -> None:
    if header[0] in images:
        raise ValueError(f"{path} begins with an image; its first line must name the columns, such as {EXAMPLE}")
    if len(header) < 2 or len(set(header)) != len(header) or "" in header:
        raise ValueError(f"{path} must begin with a line of distinct names, such as {EXAMPLE}, got {header}")


def _match_image(cell: str, images: set[str]) -> str | None:
    """Return the image that a cell names, literally or as another spelling of its path; ``None`` if there is none."""
    spellings = (cell, cell.strip(), cell.strip().replace("\\", "/").removeprefix("./"))
    return next((name for name in spellings if name in images), None)


def _read_lines(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the first line, and the others with their line numbers.

    Empty lines are left out. Cells are stripped, except those of the first column.
    """
    if not path.is_file():
        raise ValueError(f"{path} is not a file: sources come as a CSV (one line per image) or an .npy")
    try:
        # Line breaks stay as they are, because a quoted name may contain them.
        with io.TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            reader = csv.reader(file, delimiter=max(DELIMITERS, key=first.count), strict=True)
            numbered = [(reader.line_num, line[:1] + [cell.strip() for cell in line[1:]]) for line in reader]
    except (OSError, ValueError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read as a CSV ({error})") from error
    lines = [(number, line) for number, line in numbered if any(cell.strip() for cell in line)]
    if not lines:
        raise ValueError(f"{path} is empty: it needs a line of names, such as {EXAMPLE}, and one line per image")
    return [cell.strip() for cell in lines[0][1]], lines[1:]
