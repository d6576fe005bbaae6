"""Pictures of data sets of vectors and series, before anything is trained: histograms and overlaid curves."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .._files import write_whole
from ..data import SourceDataset
from ..data.contact_sheet import sweep_rows
from ..metrics.heatmap import escape_math
from .panels import LABEL_SIZE, TICK_SIZE, TITLE_SIZE

COLUMNS = 4  # panels side by side
MAX_FEATURES = 32  # shown of vectors
MAX_CHANNELS = 6  # shown of series
MAX_SOURCES = 12
MAX_ROWS = 100_000  # whose values a histogram counts
MAX_BARS = 40
MAX_NAME = 28  # characters of a feature's name
NUM_CURVES = 60  # random series, laid over each other
FEATURE_COLOUR, SOURCE_COLOUR = "#2b6cb0", "#b7791f"
SWEEP_COLOURS = "viridis"
DPI = 110


def vector_sheet(data: SourceDataset, path: str | Path, *, seed: int = 0) -> Path:
    """Write histograms of the features and the sources of vectors as PNG.

    Args:
        data: vectors; missing values (NaN) are left out.
        path: the PNG to write. Missing folders are created.
        seed: decides which rows are counted, if there are many.

    Returns:
        The path.
    """
    rows = _some_rows(len(data), MAX_ROWS, np.random.default_rng(seed))
    vectors = np.asarray(data.images[rows])
    names = data.observations.names[:MAX_FEATURES]
    columns = [(name, vectors[:, i], FEATURE_COLOUR) for i, name in enumerate(names)]
    columns += [
        (f"source: {name}", data.sources[rows, i], SOURCE_COLOUR)
        for i, name in enumerate(data.source_names[:MAX_SOURCES])
    ]
    title = f"{data.name}: {len(data):,} vectors of {data.observations.size}"
    if len(names) < data.observations.num_features:
        title += f", of which the first {len(names)}"
    figure, axes = _panels(len(columns), title)
    for panel, (name, values, colour) in zip(axes, columns, strict=True):
        _draw_histogram(panel, values, colour)
        panel.set_title(_short(name), fontsize=LABEL_SIZE)
    return _write(figure, path)


def series_sheet(data: SourceDataset, path: str | Path, *, seed: int = 0) -> Path:
    """Write curves of random series, and of series in which one source at a time runs through its values, as PNG.

    Args:
        data: series; missing values (NaN) are gaps in the curves.
        path: the PNG to write. Missing folders are created.
        seed: decides which series are drawn.

    Returns:
        The path.
    """
    rng = np.random.default_rng(seed)
    names = data.observations.names[:MAX_CHANNELS]
    groups: list[tuple[str, NDArray[np.int64]]] = [("random series", _some_rows(len(data), NUM_CURVES, rng))]
    for source, name in enumerate(data.source_names[:MAX_SOURCES]):
        rows, exact = sweep_rows(data, source, rng)
        groups.append((f"{name}, low to high (dark to bright){'' if exact else '; other sources differ'}", rows))
    figure = Figure(figsize=(3.4 * len(names) + 0.6, 1.7 * len(groups) + 0.8), layout="constrained")
    title = f"{data.name}: {len(data):,} series of {data.observations.size}"
    if len(names) < data.observations.num_features:
        title += f", of which the first {len(names)}"
    figure.suptitle(escape_math(title), fontsize=TITLE_SIZE)
    axes = figure.subplots(len(groups), len(names), squeeze=False, sharex=True, sharey="col")
    for number, (heading, rows) in enumerate(groups):
        series = np.asarray(data.images[rows])
        for channel, panel in enumerate(axes[number]):
            _draw_curves(panel, series[..., channel], swept=number > 0)
            panel.set_title(escape_math(f"{_short(names[channel])}: {heading}"), fontsize=TICK_SIZE)
    return _write(figure, path)


def _some_rows(count: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))


def _panels(count: int, title: str) -> tuple[Figure, list[Axes]]:
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(2.6 * columns + 0.4, 1.5 * rows + 0.7), layout="constrained")
    figure.suptitle(escape_math(title), fontsize=TITLE_SIZE)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel in axes[count:]:
        panel.set_axis_off()
    return figure, axes[:count]


def _draw_histogram(panel: Axes, values: NDArray[Any], colour: str) -> None:
    """Draw one bar per value where there are few different ones, else a histogram."""
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    distinct, counts = np.unique(numbers, return_counts=True)
    if len(distinct) <= 1:
        panel.text(0.5, 0.5, "constant" if len(distinct) else "no values", ha="center", transform=panel.transAxes)
    if len(distinct) <= MAX_BARS // 2:
        panel.bar(np.arange(len(distinct)), counts, width=0.8, color=colour)
        shown = sorted({round(i) for i in np.linspace(0, len(distinct) - 1, 5)}) if len(distinct) else []
        panel.set_xticks(shown, [f"{distinct[i]:.4g}" for i in shown])
    else:
        panel.hist(numbers, bins=MAX_BARS, color=colour)
    panel.tick_params(labelsize=TICK_SIZE, length=2)
    panel.locator_params(axis="y", nbins=3)


def _draw_curves(panel: Axes, curves: NDArray[Any], *, swept: bool) -> None:
    """Draw curves (k, t), from dark to bright if they are swept, else faintly."""
    lines = [np.column_stack([np.arange(len(curve)), curve]) for curve in curves]
    colours = matplotlib.colormaps[SWEEP_COLOURS](np.linspace(0, 0.95, len(curves))) if swept else FEATURE_COLOUR
    panel.add_collection(LineCollection(lines, colors=colours, linewidths=0.9, alpha=1.0 if swept else 0.35))
    panel.autoscale()
    panel.tick_params(labelsize=TICK_SIZE, length=2)


def _short(name: str) -> str:
    return escape_math(name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…")


def _write(figure: Figure, path: str | Path) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda file: figure.savefig(file, format="png", dpi=DPI))
    return path
