"""Small charts as inline SVG: dots in rows, and curves over a few values. They need no scripts and link to runs.

Dots are rows of a table: the ``label`` of their row or column, their ``value``, the ``title`` shown when the mouse
rests on them, the ``link`` to a run (empty for none), and whether they are ``hollow``.
"""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

WIDTH = 395  # pixels; the page scales charts down on narrow screens
RIGHT, TOP, BOTTOM = 14, 26, 24
ROW_HEIGHT = 19
CURVE_HEIGHT = 110
CHARACTER = 6.1  # pixels per character of a label
RADIUS = 3.6
NUM_TICKS = 5

Bounds = tuple[float, float]


def make_bounds(values: Sequence[float], bounds: Bounds | None) -> Bounds:
    """Return the ends of an axis: the score's own bounds, or multiples of 4 around the values.

    >>> make_bounds([0.2, 0.9], (0.0, 1.0)), make_bounds([31.2, 38.9], None)
    ((0.0, 1.0), (28, 40))
    """
    if bounds is not None and min(values) >= bounds[0] and max(values) <= bounds[1]:
        return bounds
    low, high = 4 * int(min(values) // 4), 4 * int(-(-max(values) // 4))
    return (low - 4, high) if min(values) - low < 0.5 else (low, max(high, low + 4))


def draw_dots(title: str, dots: pd.DataFrame, bounds: Bounds, marks: Mapping[str, float | None]) -> str:
    """Return a chart with one row of dots per label over a common axis; marks are values to compare a row with."""
    rows = list(dots.groupby("label", sort=False))
    left = 8 + CHARACTER * max(len(label) for label, _ in rows)
    bottom = TOP + ROW_HEIGHT * len(rows)
    parts = [_text(left, 14, title, "title", "start")]
    for x, label in _ticks(bounds, left, WIDTH - RIGHT):
        parts += [_line(x, TOP, x, bottom, "grid"), _text(x, bottom + 14, label, "tick", "middle")]
    for number, (label, row) in enumerate(rows):
        y = TOP + ROW_HEIGHT * (number + 0.5)
        parts.append(_text(left - 6, y + 4, label, "label", "end"))
        if (mark := marks.get(label)) is not None:
            x = _place(mark, bounds, left, WIDTH - RIGHT)
            parts.append(_line(x, y - 7, x, y + 7, "mark", f"published: {mark:g}"))
        parts += [_circle(_place(dot.value, bounds, left, WIDTH - RIGHT), y, dot) for dot in row.itertuples()]
    return _svg(WIDTH, bottom + BOTTOM, title, parts)


def draw_curve(title: str, axis: str, dots: pd.DataFrame, bounds: Bounds, floor: float | None = None) -> str:
    """Return a chart of dots over the values of a hyperparameter, with a line through the means.

    Dots also have the ``mean`` of their label, whether it is ``selected`` (drawn on a band), and whether it is ``near``
    the best (otherwise grey). Labels stand at equal distances. A dashed line marks the smallest mean that counts.
    """
    width, left, bottom = WIDTH / 2, 38, TOP + CURVE_HEIGHT
    labels = list(dots.groupby("label", sort=False))
    pitch = (width - RIGHT - left) / len(labels)
    columns = [(left + pitch * (n + 0.5), label, group, group.iloc[0]) for n, (label, group) in enumerate(labels)]
    parts = [_text(left, 14, title, "title", "start")]
    parts += [_band(x, pitch) for x, _, _, first in columns if first.selected]
    for y, label in _ticks(bounds, bottom, TOP):
        parts += [_line(left, y, width - RIGHT, y, "grid"), _text(left - 5, y + 4, label, "tick", "end")]
    if floor is not None and bounds[0] <= floor <= bounds[1]:
        y = _place(floor, bounds, bottom, TOP)
        parts.append(_line(left, y, width - RIGHT, y, "floor", f"smallest that counts: {floor:.1f}"))
    path = " ".join(f"{x:.1f},{_place(first['mean'], bounds, bottom, TOP):.1f}" for x, _, _, first in columns)
    parts.append(f'<polyline class=curve points="{path}"/>')
    for x, label, group, first in columns:
        circles = "".join(_circle(x, _place(dot.value, bounds, bottom, TOP), dot) for dot in group.itertuples())
        parts.append(circles if first.near else f"<g class=excluded>{circles}</g>")
        parts.append(_text(x, bottom + 14, label, "tick chosen" if first.selected else "tick", "middle"))
    height = bottom + BOTTOM + 14
    parts.append(_text((left + width - RIGHT) / 2, height - 5, axis, "tick", "middle"))
    return _svg(width, height, f"{title} over {axis}", parts)


def _place(value: float, bounds: Bounds, start: float, end: float) -> float:
    """Return the pixel of a value on an axis."""
    return start + (end - start) * (value - bounds[0]) / (bounds[1] - bounds[0])


def _ticks(bounds: Bounds, start: float, end: float) -> list[tuple[float, str]]:
    values = [bounds[0] + (bounds[1] - bounds[0]) * n / (NUM_TICKS - 1) for n in range(NUM_TICKS)]
    return [(_place(value, bounds, start, end), f"{value:.3g}") for value in values]


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg class=chart viewBox="0 0 {width:g} {height:g}" style="width: {width:g}px" role="img" '
        f'aria-label="{html.escape(title)}">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str, css_class: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css_class}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, css_class: str, title: str = "") -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} class="{css_class}"><title>{html.escape(title)}</title></line>'


def _band(x: float, pitch: float) -> str:
    size = f'width="{pitch:.1f}" height="{CURVE_HEIGHT}"'
    return f'<rect x="{x - pitch / 2:.1f}" y="{TOP}" {size} class=band><title>selected</title></rect>'


def _circle(x: float, y: float, dot: Any) -> str:
    css_class = "dot hollow" if dot.hollow else "dot"
    title = f"<title>{html.escape(dot.title)}</title>"
    circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" class="{css_class}">{title}</circle>'
    return f'<a href="{html.escape(dot.link)}">{circle}</a>' if dot.link else circle
