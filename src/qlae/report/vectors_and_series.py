"""Pictures of vectors and series, and of data sets of them.

Vectors are heatmaps of features, in standard deviations from their mean; series are curves over time, laid over each
other. A data set is drawn before anything is trained: histograms of features and sources, or curves of random series.
"""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ..columns import date_places
from ..data import SourceDataset
from ..data.inspection import sweep_rows
from ..metrics.heatmap import escape_math
from .run_pictures import (
    LABEL_SIZE,
    TICK_SIZE,
    ObservationPictures,
    latent_rows,
    titled_figure,
    write_picture,
)

DEVIATIONS, STEPS = "RdBu_r", "viridis"  # colours of features and of steps
FEATURE_COLOUR, SOURCE_COLOUR, DECODED_COLOUR = "#2b6cb0", "#b7791f", "#c53030"
MAX_FEATURES, MAX_CHANNELS = 32, 3  # shown; of more, those that change most
MAX_NAME = 28  # characters of the name of a feature or channel
GAP = 1  # columns between latents, in heatmaps of vectors
PITCH = 1.12  # from the start of one latent's curves to that of the next, in lengths of a series
MAX_ROWS, MAX_COLUMNS = 6, 5  # panels of series above and next to each other
# Of data sets.
SHEET_DPI = 110
SHEET_COLUMNS = 4  # histograms side by side
SHEET_CHANNELS, MAX_SOURCES = 6, 12  # shown
MAX_COUNTED = 100_000  # vectors whose values a histogram counts
MAX_BARS = 40
NUM_CURVES = 60  # random series, laid over each other


class VectorPictures(ObservationPictures):
    """Draws vectors."""

    moved = "features while one latent at a time moves through its range, left to right"
    interpolated = "features while one latent at a time is interpolated over its range, left to right"

    def _standardised(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        offset, scale = np.asarray(self.observations.offset), np.asarray(self.observations.scale)
        return np.asarray((vectors - offset) / scale)

    def _names(self, features: NDArray[np.intp]) -> list[str]:
        return [_short(self.observations.names[i]) for i in features]

    def interventions(self, blocks: NDArray[Any], steps: NDArray[Any], title: str) -> Figure:
        """Draw decoded features (samples, steps, latents, d): a panel per sample, with a heatmap per latent."""
        values = self._standardised(blocks)
        features = most_changed(np.ptp(values, axis=1).max((0, 1)))
        values = values[..., features]
        if len(features) < blocks.shape[-1]:
            title += f" (the {len(features)} features that change most)"
        bound = _bound(values)
        num_steps, num_latents = steps.shape
        pitch = num_steps + GAP
        height = max(1.0, 0.16 * len(features))
        figure, panels = latent_rows(self.labels, len(values), title, width=0.9, height=height, pitch=pitch)
        for row, panel in enumerate(panels):
            sheet = np.full((len(features), num_latents * pitch), np.nan)
            for latent in range(num_latents):
                sheet[:, latent * pitch : latent * pitch + num_steps] = values[row, :, latent].T
            extent = (0, sheet.shape[1], len(features) - 0.5, -0.5)
            image = panel.imshow(sheet, cmap=DEVIATIONS, vmin=-bound, vmax=bound, aspect="auto", extent=extent)
            panel.set_yticks(range(len(features)), self._names(features))
            panel.set_ylabel(f"sample {row + 1}", fontsize=LABEL_SIZE)
        places = [latent * pitch + place + 0.5 for latent in range(num_latents) for place in (0, num_steps - 1)]
        panels[-1].set_xticks(places, [_step_text(step) for step in steps[[0, -1]].T.ravel().tolist()])
        _colour_bar(figure, image, panels)
        return figure

    def reconstructions(self, originals: NDArray[Any], decoded: NDArray[Any], shares: Any, title: str) -> Figure:
        """Draw originals and reconstructions as two heatmaps, and R² of each feature as bars next to them."""
        return self._heatmaps({"original": originals, "decoded": decoded}, f"{title}: reconstructions", shares)

    def generated(self, decoded: NDArray[Any], title: str) -> Figure:
        return self._heatmaps({"": decoded}, f"{title}: decoded from random latents")

    def _heatmaps(self, vectors: dict[str, NDArray[Any]], title: str, shares: Any = None) -> Figure:
        """Draw vectors (n, d) by heading, and R² of each feature if it is known."""
        tables = {heading: self._standardised(array) for heading, array in vectors.items()}
        first = next(iter(tables.values()))
        features, bound = most_changed(np.ptp(first, axis=0)), _bound(first)
        if len(features) < first.shape[1]:
            title += f" (the {len(features)} features that vary most)"
        figure = titled_figure(3.8 + 0.25 * len(tables) * len(first), max(2.2, 0.9 + 0.18 * len(features)), title)
        ratios = [2.0] * len(tables) + [1.3] * bool(shares)
        panels = figure.subplots(1, len(ratios), sharey=True, squeeze=False, width_ratios=ratios)[0]
        for panel, (heading, values) in zip(panels, tables.items(), strict=False):
            image = panel.imshow(values[:, features].T, cmap=DEVIATIONS, vmin=-bound, vmax=bound, aspect="auto")
            panel.set_title(heading, fontsize=LABEL_SIZE)
            panel.set_xlabel("samples", fontsize=LABEL_SIZE)
            panel.set_xticks([])
        _colour_bar(figure, image, list(panels[: len(tables)]))
        if shares:  # None for features that do not vary
            known = [(place, shares[i]) for place, i in enumerate(features) if shares[i] is not None]
            panels[-1].barh([place for place, _ in known], [max(share, -0.05) for _, share in known])
            panels[-1].set_xlim(-0.05, 1)
            panels[-1].set_title("R² over the sample", fontsize=LABEL_SIZE)
        panels[0].set_yticks(range(len(features)), self._names(features))
        for panel in panels:
            panel.tick_params(labelsize=TICK_SIZE, length=2)
        return figure


class SeriesPictures(ObservationPictures):
    """Draws series."""

    moved = "one latent moved at a time through its range, dark to bright"
    interpolated = "one latent interpolated at a time over its range, dark to bright"

    def _channels(self, changes: NDArray[Any], most: int = MAX_CHANNELS) -> list[int]:
        """Return the channels that change most, in their own order."""
        scaled = changes / np.asarray(self.observations.scale)
        return sorted(np.argsort(-scaled, kind="stable")[:most].tolist())

    def _label(self, channel: int) -> str:
        return escape_math(self.observations.names[channel])

    def interventions(self, blocks: NDArray[Any], steps: NDArray[Any], title: str) -> Figure:
        """Draw decoded series (samples, steps, latents, t, c): a panel per sample and channel, latents side by side."""
        channels = self._channels(np.ptp(blocks, axis=1).max((0, 1, 2)))
        rows = [(sample, channel) for sample in range(len(blocks)) for channel in channels][:MAX_ROWS]
        num_steps, num_latents, length = blocks.shape[1:4]
        pitch = PITCH * length
        figure, panels = latent_rows(self.labels, len(rows), title, width=1.3, height=1.0, pitch=pitch)
        colours = matplotlib.colormaps[STEPS](np.linspace(0, 0.95, num_steps))
        for panel, (sample, channel) in zip(panels, rows, strict=True):
            curves = [
                np.column_stack([latent * pitch + np.arange(length), blocks[sample, step, latent, :, channel]])
                for step in range(num_steps)
                for latent in range(num_latents)
            ]
            panel.add_collection(LineCollection(curves, colors=np.repeat(colours, num_latents, axis=0), linewidths=0.8))
            panel.autoscale(axis="y")
            panel.set_ylabel(f"sample {sample + 1}\n{self._label(channel)}", fontsize=TICK_SIZE)
        return figure

    def reconstructions(self, originals: NDArray[Any], decoded: NDArray[Any], shares: Any, title: str) -> Figure:
        """Draw originals and, over them, reconstructions: a column per sample, a row per channel."""
        originals, decoded = originals[:MAX_COLUMNS], decoded[:MAX_COLUMNS]
        channels = self._channels(np.ptp(originals, axis=1).max(0))
        shape, sharing = (len(channels), len(originals)), {"sharex": True, "sharey": "row"}
        figure, axes = _panels(shape, (2.2, 1.4), f"{title}: reconstructions", **sharing)
        for panels, channel in zip(axes, channels, strict=True):
            for panel, before, after in zip(panels, originals[..., channel], decoded[..., channel], strict=True):
                panel.plot(before, color="0.6", linewidth=2.2, label="original")
                panel.plot(after, color=DECODED_COLOUR, linewidth=0.9, label="decoded")
            share = shares[channel] if shares else None
            note = "" if share is None else f"\nR² {share:.2f}"
            panels[0].set_ylabel(f"{self._label(channel)}{note}", fontsize=LABEL_SIZE)
        axes[0][0].legend(fontsize=TICK_SIZE, frameon=False)
        return figure

    def generated(self, decoded: NDArray[Any], title: str) -> Figure:
        """Draw the channel that changes most of series (n, t, c) decoded from random latents."""
        (channel,) = self._channels(np.ptp(decoded, axis=1).max(0), 1)
        columns = min(MAX_COLUMNS, len(decoded))
        rows = min(MAX_ROWS, len(decoded) // columns)
        heading = f"{title}: {self.observations.names[channel]} decoded from random latents"
        figure, axes = _panels((rows, columns), (1.8, 1.0), heading, sharex=True, sharey=True)
        for panel, curve in zip(axes.flat, decoded[..., channel], strict=False):
            panel.plot(curve, color=FEATURE_COLOUR, linewidth=0.9)
        return figure


def most_changed(changes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the features that change most, in their own order.

    >>> most_changed(np.arange(40.0))[:3].tolist()
    [8, 9, 10]
    """
    return np.sort(np.argsort(-changes, kind="stable")[:MAX_FEATURES])


def _bound(values: NDArray[Any]) -> float:
    """Return the value at the end of the colour scale; outliers are beyond it."""
    return max(1e-6, float(np.quantile(np.abs(values), 0.99)))


def _step_text(step: Any) -> str:
    """Return the code or value that a latent is set to as text.

    >>> _step_text(3), _step_text(-0.25)
    ('3', '-0.25')
    """
    return f"{step:.2g}" if isinstance(step, float) else str(step)


def _panels(shape: tuple[int, int], size: tuple[float, float], title: str, **sharing: Any) -> tuple[Figure, Any]:
    """Return a figure and its panels (rows, columns), each of a size (width, height) in inches."""
    figure = titled_figure(size[0] * shape[1] + 0.6, size[1] * shape[0] + 0.8, title)
    panels = figure.subplots(*shape, squeeze=False, **sharing)
    for panel in panels.flat:
        panel.tick_params(labelsize=TICK_SIZE, length=2)
    return figure, panels


def _colour_bar(figure: Figure, image: Any, axes: Any) -> None:
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.01, aspect=30)
    bar.set_label("standard deviations from the mean", fontsize=TICK_SIZE)
    bar.ax.tick_params(labelsize=TICK_SIZE, length=2)


def vector_sheet(data: SourceDataset, path: str | Path, *, seed: int = 0) -> Path:
    """Write histograms of the features and the sources of vectors as PNG, and return the path.

    Missing values (NaN) are left out, missing folders are created; ``seed`` draws the counted rows, if there are many.
    """
    rows = _random_rows(len(data), MAX_COUNTED, np.random.default_rng(seed))
    vectors, names = np.asarray(data.images[rows]), data.observations.names[:MAX_FEATURES]
    columns = [(name, vectors[:, i], FEATURE_COLOUR) for i, name in enumerate(names)]
    columns += [
        (f"source: {name}", data.sources[rows, i], SOURCE_COLOUR)
        for i, name in enumerate(data.source_names[:MAX_SOURCES])
    ]
    width = min(SHEET_COLUMNS, len(columns))
    figure, panels = _panels((-(-len(columns) // width), width), (2.6, 1.5), _sheet_title(data, len(names)))
    for panel in panels.flat[len(columns) :]:
        panel.set_axis_off()
    for panel, (name, values, colour) in zip(panels.flat, columns, strict=False):
        _draw_histogram(panel, values, colour)
        panel.set_title(_short(name), fontsize=LABEL_SIZE)
    for place in date_places(data.observations.columns):
        if place < len(names):
            panels.flat[place].xaxis.set_major_locator(MaxNLocator(3))
            panels.flat[place].xaxis.set_major_formatter(lambda seconds, _: str(np.datetime64(int(seconds), "s"))[:10])
    return write_picture(figure, Path(path), SHEET_DPI)


def _draw_histogram(panel: Axes, values: NDArray[Any], colour: str) -> None:
    """Draw one bar per value where there are few different ones, else a histogram."""
    numbers = np.asarray(values, dtype=np.float64)
    distinct, counts = np.unique(numbers[np.isfinite(numbers)], return_counts=True)
    if len(distinct) <= MAX_BARS // 2:
        panel.bar(np.arange(len(distinct)), counts, width=0.8, color=colour)
        shown = sorted({round(i) for i in np.linspace(0, len(distinct) - 1, 5)}) if len(distinct) else []
        panel.set_xticks(shown, [f"{distinct[i]:.4g}" for i in shown])
    else:
        panel.hist(numbers[np.isfinite(numbers)], bins=MAX_BARS, color=colour)
    panel.locator_params(axis="y", nbins=3)


def series_sheet(data: SourceDataset, path: str | Path, *, seed: int = 0) -> Path:
    """Write curves of random series, and of series in which one source at a time runs through its values, as PNG.

    Missing values (NaN) are gaps in the curves, missing folders are created; ``seed`` draws the series.
    """
    rng = np.random.default_rng(seed)
    names = data.observations.names[:SHEET_CHANNELS]
    groups: list[tuple[str, NDArray[np.int64]]] = [("random series", _random_rows(len(data), NUM_CURVES, rng))]
    for source, name in enumerate(data.source_names[:MAX_SOURCES]):
        rows, exact = sweep_rows(data, source, rng)
        groups.append((f"{name}, low to high (dark to bright){'' if exact else '; other sources differ'}", rows))
    shape, sharing = (len(groups), len(names)), {"sharex": True, "sharey": "col"}
    figure, axes = _panels(shape, (3.4, 1.7), _sheet_title(data, len(names)), **sharing)
    for number, (heading, rows) in enumerate(groups):
        series, is_sweep = np.asarray(data.images[rows]), number > 0
        colours = matplotlib.colormaps[STEPS](np.linspace(0, 0.95, len(rows))) if is_sweep else FEATURE_COLOUR
        for channel, panel in enumerate(axes[number]):
            lines = [np.column_stack([np.arange(len(curve)), curve]) for curve in series[..., channel]]
            panel.add_collection(LineCollection(lines, colors=colours, linewidths=0.9, alpha=1.0 if is_sweep else 0.35))
            panel.autoscale()
            panel.set_title(f"{_short(names[channel])}: {escape_math(heading)}", fontsize=TICK_SIZE)
    return write_picture(figure, Path(path), SHEET_DPI)


def _sheet_title(data: SourceDataset, num_shown: int) -> str:
    title = f"{data.name}: {len(data):,} {data.observations.traits.many} of {data.observations.size}"
    return title if num_shown == data.observations.num_features else f"{title}, of which the first {num_shown}"


def _short(name: str) -> str:
    """Return the name of a feature in the notation of matplotlib, cut to a number of characters."""
    return escape_math(name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…")


def _random_rows(count: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return all rows of a data set, or some drawn at random if there are many."""
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))
