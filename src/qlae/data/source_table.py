"""A CSV of sources: a line an image, its first column the file's name and the others the sources.

Commas, semicolons or tabs may stand between the columns, whichever the first line has most of.
"""

from __future__ import annotations

import csv
from pathlib import Path

DELIMITERS = (",", ";", "\t")
EXAMPLE = "file,shape,size"


def read_table(path: Path, images: list[str]) -> dict[str, list[str]]:
    """The columns of a CSV by their names, in the order of the images."""
    header, lines = _lines(path)
    known = set(images)
    if header[0] in known:
        raise ValueError(f"{path} begins with an image; its first line must name the columns, such as {EXAMPLE}")
    if len(header) < 2 or len(set(header)) != len(header) or "" in header:
        raise ValueError(f"{path} must begin with a line of different names, such as {EXAMPLE}, got {header}")
    for number, line in lines:
        if len(line) != len(header):
            raise ValueError(f"line {number} of {path} has {len(line)} columns, its first line has {len(header)}")
    by_name: dict[str, tuple[int, list[str]]] = {}
    for number, line in lines:
        name = _image(line[0], known)
        if name in by_name:
            raise ValueError(f"{path} has two lines for {name}, {by_name[name][0]} and {number}: take one of them out")
        if name is not None:
            by_name[name] = number, line
    missing = [name for name in images if name not in by_name]
    if missing:
        raise ValueError(
            f"{path} has no line for {len(missing)} of {len(images)} images, first {missing[0]}: "
            "the first column holds the file's name as seen from the folder"
        )
    chosen = [by_name[name] for name in images]
    for number, line in chosen:
        if "" in line:
            raise ValueError(f"line {number} of {path} has no {header[line.index('')]!r}: fill it in")
    return {name: [line[i] for _, line in chosen] for i, name in enumerate(header) if i}


def _image(cell: str, known: set[str]) -> str | None:
    """The image that a cell names: to the letter, or else by another way to write its path; ``None`` if none is."""
    ways = (cell, cell.strip(), cell.strip().replace("\\", "/").removeprefix("./"))
    return next((way for way in ways if way in known), None)


def _lines(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The first line and the others with their numbers, empty ones left out; cells but the file's are stripped."""
    if not path.is_file():
        raise ValueError(f"{path} is not a file: sources come as a CSV (a line an image) or an .npy")
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # a quoted name may have line breaks of its own
            first = file.readline()
            file.seek(0)
            reader = csv.reader(file, delimiter=max(DELIMITERS, key=first.count), strict=True)
            numbered = [(reader.line_num, line[:1] + [cell.strip() for cell in line[1:]]) for line in reader]
    except (OSError, ValueError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read as a CSV ({error})") from error
    lines = [(number, line) for number, line in numbered if any(cell.strip() for cell in line)]
    if not lines:
        raise ValueError(f"{path} is empty: it needs a line of names, such as {EXAMPLE}, and a line an image")
    return [cell.strip() for cell in lines[0][1]], lines[1:]
