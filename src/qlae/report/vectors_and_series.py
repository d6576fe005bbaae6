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
from numpy.typing import NDArray

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

# Of vectors.
DEVIATIONS = "RdBu_r"  # colours
MAX_FEATURES = 32  # shown; of more features, those that change most
MAX_NAME = 24  # characters of a feature's name
GAP = 1  # columns between latents
MAX_COUNTED = 100_000  # vectors whose values a histogram counts
MAX_BARS = 40
SHEET_COLUMNS = 4  # histograms side by side
FEATURE_COLOUR, SOURCE_COLOUR = "#2b6cb0", "#b7791f"
# Of series.
STEPS = "viridis"  # colours
PITCH = 1.12  # from the start of one latent's curves to that of the next, in lengths of a series
MAX_ROWS = 6  # panels above each other, for samples and channels
MAX_CHANNELS = 3  # shown; of more channels, those that change most
NUM_RECONSTRUCTIONS = 5
GENERATED_COLUMNS = 5
SHEET_CHANNELS = 6  # shown of a data set
NUM_CURVES = 60  # random series, laid over each other
# Of data sets.
SHEET_DPI = 110
SHEET_NAME = 28  # characters of the name of a feature or channel
MAX_SOURCES = 12


class VectorPictures(ObservationPictures):
    """Draws vectors."""

    moved = "features while one latent at a time moves through its range, left to right"
    interpolated = "features while one latent at a time is interpolated over its range, left to right"

    def _standardised(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        offset, scale = np.asarray(self.observations.offset), np.asarray(self.observations.scale)
        return np.asarray((vectors - offset) / scale)

    def _names(self, features: NDArray[np.intp]) -> list[str]:
        return [_short(self.observations.names[i], MAX_NAME) for i in features]

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
        originals, decoded = self._standardised(originals), self._standardised(decoded)
        features = most_changed(np.ptp(originals, axis=0))
        bound = _bound(originals)
        few = f" (the {len(features)} features that vary most)" if len(features) < originals.shape[1] else ""
        width, height = 1.8 + 0.5 * len(originals) + 2.0, max(2.2, 0.9 + 0.18 * len(features))
        figure = titled_figure(width, height, f"{title}: reconstructions{few}")
        axes = figure.subplots(1, 3, sharey=True, width_ratios=(2, 2, 1.3))
        for panel, values, heading in zip(axes, (originals, decoded), ("original", "decoded"), strict=False):
            image = self._heatmap(panel, values, features, bound)
            panel.set_title(heading, fontsize=LABEL_SIZE)
            panel.set_xticks([])
        _colour_bar(figure, image, list(axes[:2]))
        self._shares(axes[2], features, shares)
        for panel in axes:
            panel.tick_params(labelsize=TICK_SIZE, length=2)
        return figure

    def _shares(self, panel: Any, features: NDArray[np.intp], shares: Any) -> None:
        """Draw R² of features as bars; those of features that do not vary are absent."""
        known = [(place, shares[i]) for place, i in enumerate(features) if shares and shares[i] is not None]
        if known:
            places, values = zip(*known, strict=True)
            panel.barh(places, np.clip(values, -0.05, 1), color="#2b6cb0")
        panel.set_xlim(-0.05, 1)
        panel.axvline(0, color="black", linewidth=0.5)
        panel.set_title("R² over the sample", fontsize=LABEL_SIZE)

    def generated(self, decoded: NDArray[Any], title: str) -> Figure:
        values = self._standardised(decoded)
        features = most_changed(np.ptp(values, axis=0))
        figure = titled_figure(7.0, max(2.2, 0.9 + 0.18 * len(features)), f"{title}: decoded from random latents")
        panel = figure.subplots()
        image = self._heatmap(panel, values, features, _bound(values))
        panel.tick_params(labelsize=TICK_SIZE, length=2)
        _colour_bar(figure, image, [panel])
        return figure

    def _heatmap(self, panel: Any, values: NDArray[Any], features: NDArray[np.intp], bound: float) -> Any:
        image = panel.imshow(values[:, features].T, cmap=DEVIATIONS, vmin=-bound, vmax=bound, aspect="auto")
        panel.set_xlabel("samples", fontsize=LABEL_SIZE)
        panel.set_yticks(range(len(features)), self._names(features))
        return image


class SeriesPictures(ObservationPictures):
    """Draws series."""

    moved = "one latent moved at a time through its range, dark to bright"
    interpolated = "one latent interpolated at a time over its range, dark to bright"

    def _channels(self, changes: NDArray[Any]) -> list[int]:
        """Return the channels that change most, in their own order."""
        scaled = changes / np.asarray(self.observations.scale)
        return sorted(np.argsort(-scaled, kind="stable")[:MAX_CHANNELS].tolist())

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
        originals, decoded = originals[:NUM_RECONSTRUCTIONS], decoded[:NUM_RECONSTRUCTIONS]
        channels = self._channels(np.ptp(originals, axis=1).max(0))
        width, height = 2.2 * len(originals) + 0.8, 1.4 * len(channels) + 0.8
        figure = titled_figure(width, height, f"{title}: reconstructions")
        axes = figure.subplots(len(channels), len(originals), squeeze=False, sharex=True, sharey="row")
        for panels, channel in zip(axes, channels, strict=True):
            for panel, before, after in zip(panels, originals[..., channel], decoded[..., channel], strict=True):
                panel.plot(before, color="0.6", linewidth=2.2, label="original")
                panel.plot(after, color="#c53030", linewidth=0.9, label="decoded")
                panel.tick_params(labelsize=TICK_SIZE, length=2)
            share = shares[channel] if shares else None
            note = "" if share is None else f"\nR² {share:.2f}"
            panels[0].set_ylabel(f"{self._label(channel)}{note}", fontsize=LABEL_SIZE)
        axes[0][0].legend(fontsize=TICK_SIZE, frameon=False)
        return figure

    def generated(self, decoded: NDArray[Any], title: str) -> Figure:
        """Draw the channel that changes most of series (n, t, c) decoded from random latents."""
        channel = int(np.argmax(np.ptp(decoded, axis=1).max(0) / np.asarray(self.observations.scale)))
        columns = min(GENERATED_COLUMNS, len(decoded))
        rows = min(MAX_ROWS, len(decoded) // columns)
        heading = f"{title}: {self.observations.names[channel]} decoded from random latents"
        figure = titled_figure(1.8 * columns + 0.6, 1.0 * rows + 0.8, heading)
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for panel, curve in zip(axes.flat, decoded[..., channel], strict=False):
            panel.plot(curve, color="#2b6cb0", linewidth=0.9)
            panel.tick_params(labelsize=TICK_SIZE, length=2)
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


def _colour_bar(figure: Figure, image: Any, axes: Any) -> None:
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.01, aspect=30)
    bar.set_label("standard deviations from the mean", fontsize=TICK_SIZE)
    bar.ax.tick_params(labelsize=TICK_SIZE, length=2)


def vector_sheet(data: SourceDataset, path: str | Path, *, seed: int = 0) -> Path:
    """Write histograms of the features and the sources of vectors as PNG, and return the path.

    Missing values (NaN) are left out, missing folders are created; ``seed`` draws the counted rows, if there are many.
    """
    rows = _random_rows(len(data), MAX_COUNTED, np.random.default_rng(seed))
    vectors = np.asarray(data.images[rows])
    names = data.observations.names[:MAX_FEATURES]
    columns = [(name, vectors[:, i], FEATURE_COLOUR) for i, name in enumerate(names)]
    columns += [
        (f"source: {name}", data.sources[rows, i], SOURCE_COLOUR)
        for i, name in enumerate(data.source_names[:MAX_SOURCES])
    ]
    num_columns = min(SHEET_COLUMNS, len(columns))
    num_rows = -(-len(columns) // num_columns)
    figure = titled_figure(2.6 * num_columns + 0.4, 1.5 * num_rows + 0.7, _sheet_title(data, len(names)))
    panels = list(figure.subplots(num_rows, num_columns, squeeze=False).flat)
    for panel in panels[len(columns) :]:
        panel.set_axis_off()
    for panel, (name, values, colour) in zip(panels, columns, strict=False):
        _draw_histogram(panel, values, colour)
        panel.set_title(_short(name, SHEET_NAME), fontsize=LABEL_SIZE)
    return _write_sheet(figure, path)


def _sheet_title(data: SourceDataset, num_shown: int) -> str:
    title = f"{data.name}: {len(data):,} {data.observations.traits.many} of {data.observations.size}"
    return title if num_shown == data.observations.num_features else f"{title}, of which the first {num_shown}"


def _short(name: str, most: int) -> str:
    """Return the name of a feature in the notation of matplotlib, cut to a number of characters."""
    return escape_math(name if len(name) <= most else f"{name[: most - 1]}…")


def _random_rows(count: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return all rows of a data set, or some drawn at random if there are many."""
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))


def _write_sheet(figure: Figure, path: str | Path) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_picture(figure, path, SHEET_DPI)


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
    figure = titled_figure(3.4 * len(names) + 0.6, 1.7 * len(groups) + 0.8, _sheet_title(data, len(names)))
    axes = figure.subplots(len(groups), len(names), squeeze=False, sharex=True, sharey="col")
    for number, (heading, rows) in enumerate(groups):
        series = np.asarray(data.images[rows])
        for channel, panel in enumerate(axes[number]):
            _draw_curves(panel, series[..., channel], swept=number > 0)
            panel.set_title(escape_math(f"{_short(names[channel], SHEET_NAME)}: {heading}"), fontsize=TICK_SIZE)
    return _write_sheet(figure, path)


def _draw_curves(panel: Axes, curves: NDArray[Any], *, swept: bool) -> None:
    """Draw curves (k, t), from dark to bright if they are swept, else faintly."""
    lines = [np.column_stack([np.arange(len(curve)), curve]) for curve in curves]
    colours = matplotlib.colormaps[STEPS](np.linspace(0, 0.95, len(curves))) if swept else FEATURE_COLOUR
    panel.add_collection(LineCollection(lines, colors=colours, linewidths=0.9, alpha=1.0 if swept else 0.35))
    panel.autoscale()
    panel.tick_params(labelsize=TICK_SIZE, length=2)
