"""Pictures of vectors: heatmaps of features in standard deviations from their mean, and histograms of a data set."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..data import SourceDataset
from ..metrics.heatmap import escape_math
from .run_pictures import (
    LABEL_SIZE,
    TICK_SIZE,
    TITLE_SIZE,
    ObservationPictures,
    latent_rows,
    random_rows,
    short_name,
    write_sheet,
)

COLOURS = "RdBu_r"
MAX_FEATURES = 32  # shown; of more features, those that change most
MAX_NAME = 24  # characters of a feature's name
GAP = 1  # columns between latents
SHEET_COLUMNS = 4  # histograms side by side
SHEET_NAME = 28  # characters of a feature's name above a histogram
MAX_SOURCES = 12
MAX_ROWS = 100_000  # whose values a histogram counts
MAX_BARS = 40
FEATURE_COLOUR, SOURCE_COLOUR = "#2b6cb0", "#b7791f"


class VectorPictures(ObservationPictures):
    """Draws vectors."""

    moved = "features while one latent at a time moves through its range, left to right"
    interpolated = "features while one latent at a time is interpolated over its range, left to right"

    def _standardised(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        values: NDArray[np.float64] = (vectors - np.asarray(self.observations.offset)) / np.asarray(
            self.observations.scale
        )
        return values

    def _names(self, features: NDArray[np.intp]) -> list[str]:
        return [short_name(self.observations.names[i], MAX_NAME) for i in features]

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
            image = panel.imshow(sheet, cmap=COLOURS, vmin=-bound, vmax=bound, aspect="auto", extent=extent)
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
        size = 1.8 + 0.5 * len(originals) + 2.0, max(2.2, 0.9 + 0.18 * len(features))
        figure = Figure(figsize=size, layout="constrained")
        few = f" (the {len(features)} features that vary most)" if len(features) < originals.shape[1] else ""
        figure.suptitle(f"{escape_math(title)}: reconstructions{few}", fontsize=TITLE_SIZE)
        axes = figure.subplots(1, 3, sharey=True, width_ratios=(2, 2, 1.3))
        for panel, values, heading in zip(axes, (originals, decoded), ("original", "decoded"), strict=False):
            image = panel.imshow(values[:, features].T, cmap=COLOURS, vmin=-bound, vmax=bound, aspect="auto")
            panel.set_title(heading, fontsize=LABEL_SIZE)
            panel.set_xlabel("samples", fontsize=LABEL_SIZE)
            panel.set_xticks([])
        axes[0].set_yticks(range(len(features)), self._names(features))
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
        figure = Figure(figsize=(7.0, max(2.2, 0.9 + 0.18 * len(features))), layout="constrained")
        figure.suptitle(f"{escape_math(title)}: decoded from random latents", fontsize=TITLE_SIZE)
        panel = figure.subplots()
        bound = _bound(values)
        image = panel.imshow(values[:, features].T, cmap=COLOURS, vmin=-bound, vmax=bound, aspect="auto")
        panel.set_xlabel("samples", fontsize=LABEL_SIZE)
        panel.set_yticks(range(len(features)), self._names(features))
        panel.tick_params(labelsize=TICK_SIZE, length=2)
        _colour_bar(figure, image, [panel])
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
    """Write histograms of the features and the sources of vectors as PNG.

    Args:
        data: vectors; missing values (NaN) are left out.
        path: the PNG to write. Missing folders are created.
        seed: decides which rows are counted, if there are many.

    Returns:
        The path.
    """
    rows = random_rows(len(data), MAX_ROWS, np.random.default_rng(seed))
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
        panel.set_title(short_name(name, SHEET_NAME), fontsize=LABEL_SIZE)
    return write_sheet(figure, path)


def _panels(count: int, title: str) -> tuple[Figure, list[Axes]]:
    columns = min(SHEET_COLUMNS, count)
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
