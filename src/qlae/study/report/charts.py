"""Small charts as inline SVG: dots in rows, and curves over a few values. They need no scripts and link to runs."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 395  # pixels; the page scales charts down on narrow screens
RIGHT, TOP, BOTTOM = 14, 26, 24
ROW_HEIGHT = 19
CURVE_HEIGHT = 110
CHARACTER = 6.1  # pixels per character of a label
RADIUS = 3.6


@dataclass(frozen=True)
class Dot:
    """A value of one run.

    Attributes:
        value: where it stands.
        title: shown when the mouse rests on the dot.
        link: address of the run; empty for none.
        hollow: whether only its outline is drawn.
    """

    value: float
    title: str
    link: str = ""
    hollow: bool = False


@dataclass(frozen=True)
class DotRow:
    """A labelled row of dots; `mark` is a value to compare them with, drawn as a vertical line."""

    label: str
    dots: tuple[Dot, ...]
    mark: float | None = None


@dataclass(frozen=True)
class CurvePoint:
    """The runs of one value of a hyperparameter; `chosen` is drawn on a band, `excluded` in grey."""

    label: str
    dots: tuple[Dot, ...]
    mean: float
    chosen: bool = False
    excluded: bool = False


@dataclass(frozen=True)
class Scale:
    """A linear map of values to pixels, with a few ticks."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)

    def ticks(self, count: int = 4) -> list[tuple[float, str]]:
        """Return positions and labels of ticks."""
        values = [self.low + (self.high - self.low) * n / count for n in range(count + 1)]
        return [(self(value), f"{value:.3g}") for value in values]


def make_bounds(values: Sequence[float], bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Return the ends of an axis: the score's own bounds, or multiples of 4 around the values.

    >>> make_bounds([0.2, 0.9], (0.0, 1.0)), make_bounds([31.2, 38.9], None)
    ((0.0, 1.0), (28, 40))
    """
    if bounds is not None and min(values) >= bounds[0] and max(values) <= bounds[1]:
        return bounds
    low, high = 4 * int(min(values) // 4), 4 * int(-(-max(values) // 4))
    return (low - 4, high) if min(values) - low < 0.5 else (low, max(high, low + 4))


def draw_dots(title: str, rows: Sequence[DotRow], bounds: tuple[float, float]) -> str:
    """Return a chart with one row of dots per label, over a common axis."""
    left = 8 + CHARACTER * max(len(row.label) for row in rows)
    height = TOP + ROW_HEIGHT * len(rows) + BOTTOM
    scale = Scale(*bounds, left, WIDTH - RIGHT)
    bottom = height - BOTTOM
    parts = [_text(left, 14, title, "title", "start")]
    for x, label in scale.ticks():
        parts += [_line(x, TOP, x, bottom, "grid"), _text(x, bottom + 14, label, "tick", "middle")]
    for number, row in enumerate(rows):
        y = TOP + ROW_HEIGHT * (number + 0.5)
        parts.append(_text(left - 6, y + 4, row.label, "label", "end"))
        if row.mark is not None:
            x = scale(row.mark)
            parts.append(_line(x, y - 7, x, y + 7, "mark", f"published: {row.mark:g}"))
        parts += [_circle(scale(dot.value), y, dot) for dot in row.dots]
    return _svg(WIDTH, height, title, parts)


def draw_curve(
    title: str, axis: str, points: Sequence[CurvePoint], bounds: tuple[float, float], floor: float | None = None
) -> str:
    """Return a chart of dots over the values of a hyperparameter, with a line through the means.

    Args:
        title: title of the chart, the score.
        axis: name of the hyperparameter.
        points: the values in increasing order; they stand at equal distances.
        bounds: ends of the vertical axis.
        floor: the smallest mean that counts, drawn as a dashed line; None for none.
    """
    width, left = WIDTH / 2, 38
    height = TOP + CURVE_HEIGHT + BOTTOM + 14
    scale, bottom = Scale(*bounds, TOP + CURVE_HEIGHT, TOP), TOP + CURVE_HEIGHT
    pitch = (width - RIGHT - left) / len(points)
    places = [left + pitch * (number + 0.5) for number in range(len(points))]
    parts = [_text(left, 14, title, "title", "start")]
    parts += [_band(x, pitch) for x, point in zip(places, points, strict=True) if point.chosen]
    for y, label in scale.ticks():
        parts += [_line(left, y, width - RIGHT, y, "grid"), _text(left - 5, y + 4, label, "tick", "end")]
    if floor is not None and bounds[0] <= floor <= bounds[1]:
        parts.append(
            _line(left, scale(floor), width - RIGHT, scale(floor), "floor", f"smallest that counts: {floor:.1f}")
        )
    path = " ".join(f"{x:.1f},{scale(point.mean):.1f}" for x, point in zip(places, points, strict=True))
    parts.append(f'<polyline class=curve points="{path}"/>')
    for x, point in zip(places, points, strict=True):
        group = "".join(_circle(x, scale(dot.value), dot) for dot in point.dots)
        parts.append(f"<g class=excluded>{group}</g>" if point.excluded else group)
        parts.append(_text(x, bottom + 14, point.label, "tick chosen" if point.chosen else "tick", "middle"))
    parts.append(_text((left + width - RIGHT) / 2, height - 5, axis, "tick", "middle"))
    return _svg(width, height, f"{title} over {axis}", parts)


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


def _circle(x: float, y: float, dot: Dot) -> str:
    css_class = "dot hollow" if dot.hollow else "dot"
    title = f"<title>{html.escape(dot.title)}</title>"
    circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" class="{css_class}">{title}</circle>'
    return f'<a href="{html.escape(dot.link)}">{circle}</a>' if dot.link else circle
