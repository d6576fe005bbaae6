"""Charts of a description as SVG, which follow the colours of the page, light or dark."""

import html
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from .effects import INTERVAL, Change, Floats, Movement
from .words import number, signed

ROW, NAME_WIDTH, PLOT_WIDTH, TEXT_WIDTH = 24, 190, 300, 210  # pixels
TOP, BOTTOM, PAD = 8, 34, 12
CURVE_SIZE = 252, 130
CURVE_MARGIN = 44, 4, 10, 20  # left, right, top, bottom
CELL_SIZE = 104, 60  # of the small panels of examples
MAX_NAME = 26  # characters
MAX_POINTS = 200  # of a curve


def colour(place: int, count: int) -> str:
    """Return the style that colours the marks of a code by its place among those of its latent."""
    return f"--t:{100 * place / max(count - 1, 1):.0f}%"


def feature_chart(movement: Movement, changes: Sequence[Change], places: Sequence[int], scale: Floats) -> str:
    """Return a chart with a row per feature: the effect of each code with its interval, in standard deviations."""
    count = len(movement.settings)
    means = np.stack([movement.means[:, i] / scale[i] for i in places])  # (features, k)
    margins = INTERVAL * np.stack([movement.errors[:, i] / scale[i] for i in places])
    bound = max(0.2, float((np.abs(means) + margins).max()) * 1.05)
    height = TOP + ROW * len(places) + BOTTOM
    width = NAME_WIDTH + PLOT_WIDTH + TEXT_WIDTH

    def x(value: float) -> float:
        return NAME_WIDTH + PAD + (PLOT_WIDTH - 2 * PAD) * (value + bound) / (2 * bound)

    parts = [_grid(x, bound, height)]
    for row, change in enumerate(changes):
        y = TOP + ROW * (row + 0.5)
        parts.append(
            f'<text class="label" x="{NAME_WIDTH - 6}" y="{y + 4:.0f}" text-anchor="end">{_short(change.name)}</text>'
        )
        for k in range(count):
            low, high = x(means[row, k] - margins[row, k]), x(means[row, k] + margins[row, k])
            label = f"{html.escape(movement.settings.labels[k])}: {signed(means[row, k] * scale[places[row]])}"
            parts.append(
                f'<g style="{colour(k, count)}"><line class="bar" x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}"/>'
                f'<circle class="mark" cx="{x(means[row, k]):.1f}" cy="{y}" r="4">'
                f"<title>{label}</title></circle></g>"
            )
        text = f"{signed(change.change)}{change.unit} ({number(change.low)} to {number(change.high)})"
        parts.append(f'<text class="value" x="{NAME_WIDTH + PLOT_WIDTH + 8}" y="{y + 4:.0f}">{text}</text>')
    return _svg(width, height, "effects of the codes on features", parts)


def _grid(x: Callable[[float], float], bound: float, height: float) -> str:
    """Return the lines and labels of an axis in standard deviations around 0."""
    step = next(step for step in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 1e9) if bound / step <= 3)
    ticks = [k * step for k in range(-int(bound / step), int(bound / step) + 1)]
    lines = [
        f'<line class="{"zero" if tick == 0 else "grid"}" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" '
        f'y2="{height - BOTTOM}"/><text class="tick" x="{x(tick):.1f}" y="{height - BOTTOM + 13:.0f}" '
        f'text-anchor="middle">{signed(tick) if tick else "0"}</text>'
        for tick in ticks
    ]
    title = f'<text class="tick" x="{x(0):.1f}" y="{height - 4:.0f}" text-anchor="middle">standard deviations</text>'
    return "".join(lines) + title


def curve_chart(title: str, curves: NDArray[np.float64], margins: NDArray[np.float64], labels: Sequence[str]) -> str:
    """Return a chart of curves (k, t), each with a band of ``margins`` (k, t) around it."""
    width, height = CURVE_SIZE
    left, right, top, bottom = CURVE_MARGIN
    length = curves.shape[1]
    kept = np.linspace(0, length - 1, min(length, MAX_POINTS)).round().astype(int)
    low, high = float((curves - margins).min()), float((curves + margins).max())
    high = high if high > low else low + 1.0
    x = left + (width - left - right) * kept / max(length - 1, 1)

    def y(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(top + (height - top - bottom) * (high - values[kept]) / (high - low))

    parts = [f'<text class="tick" x="{left - 5}" y="{top + 8}" text-anchor="end">{number(high)}</text>']
    parts.append(f'<text class="tick" x="{left - 5}" y="{height - bottom}" text-anchor="end">{number(low)}</text>')
    parts.append(
        f'<rect class="frame" x="{left}" y="{top}" width="{width - left - right}" height="{height - top - bottom}"/>'
    )
    for text, at, anchor in (("0", left, "start"), (f"step {length - 1}", width - right, "end")):
        parts.append(f'<text class="tick" x="{at}" y="{height - 5}" text-anchor="{anchor}">{text}</text>')
    for k, (curve, margin) in enumerate(zip(curves, margins, strict=True)):
        label = html.escape(labels[k])
        upper, lower = _points(x, y(curve + margin)), _points(x[::-1], y(curve - margin)[::-1])
        parts.append(
            f'<g style="{colour(k, len(curves))}"><polygon class="band" points="{upper} {lower}"/>'
            f'<polyline class="curve" points="{_points(x, y(curve))}"><title>{label}</title></polyline></g>'
        )
    return f"<div class=panel><b>{html.escape(title)}</b>{_svg(width, height, title, parts)}</div>"


def small_curves(curves: NDArray[np.float64], low: float, high: float, styles: Sequence[str]) -> str:
    """Return a small panel of curves (n, t) with their styles, on the range from ``low`` to ``high``."""
    width, height = CELL_SIZE
    kept = np.linspace(0, curves.shape[1] - 1, min(curves.shape[1], MAX_POINTS)).round().astype(int)
    x = 2 + (width - 4) * kept / max(curves.shape[1] - 1, 1)
    y = 3 + (height - 6) * (high - curves[:, kept]) / (high - low if high > low else 1.0)
    lines = [
        f'<polyline class="thin" style="{style}" points="{_points(x, each)}"/>'
        for each, style in zip(y, styles, strict=True)
    ]
    frame = f'<rect class="frame" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}"/>'
    return _svg(width, height, "curves", [frame, *lines])


def _points(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _short(name: str) -> str:
    return html.escape(name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…")


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    head = f'<svg class="chart" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
    return f'{head} aria-label="{html.escape(title)}">{"".join(parts)}</svg>'
