"""Pictures of series: curves over time, laid over each other."""

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
    TITLE_SIZE,
    ObservationPictures,
    latent_rows,
    random_rows,
    short_name,
    write_sheet,
)

COLOURS = "viridis"
GAP = 1.12  # from the start of one latent's curves to that of the next, in lengths of a series
MAX_ROWS = 6  # panels above each other, for samples and channels
MAX_CHANNELS = 3  # shown; of more channels, those that change most
NUM_RECONSTRUCTIONS = 5
GENERATED_COLUMNS = 5
SHEET_CHANNELS = 6  # shown of a data set
SHEET_NAME = 28  # characters of a channel's name
MAX_SOURCES = 12
NUM_CURVES = 60  # random series, laid over each other
RANDOM_COLOUR = "#2b6cb0"


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
        pitch = GAP * length
        figure, panels = latent_rows(self.labels, len(rows), title, width=1.3, height=1.0, pitch=pitch)
        colours = matplotlib.colormaps[COLOURS](np.linspace(0, 0.95, num_steps))
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
        figure = Figure(figsize=(2.2 * len(originals) + 0.8, 1.4 * len(channels) + 0.8), layout="constrained")
        figure.suptitle(f"{escape_math(title)}: reconstructions", fontsize=TITLE_SIZE)
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
        figure = Figure(figsize=(1.8 * columns + 0.6, 1.0 * rows + 0.8), layout="constrained")
        heading = f"{title}: {self.observations.names[channel]} decoded from random latents"
        figure.suptitle(escape_math(heading), fontsize=TITLE_SIZE)
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for panel, curve in zip(axes.flat, decoded[..., channel], strict=False):
            panel.plot(curve, color="#2b6cb0", linewidth=0.9)
            panel.tick_params(labelsize=TICK_SIZE, length=2)
        return figure


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
    names = data.observations.names[:SHEET_CHANNELS]
    groups: list[tuple[str, NDArray[np.int64]]] = [("random series", random_rows(len(data), NUM_CURVES, rng))]
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
            panel.set_title(escape_math(f"{short_name(names[channel], SHEET_NAME)}: {heading}"), fontsize=TICK_SIZE)
    return write_sheet(figure, path)


def _draw_curves(panel: Axes, curves: NDArray[Any], *, swept: bool) -> None:
    """Draw curves (k, t), from dark to bright if they are swept, else faintly."""
    lines = [np.column_stack([np.arange(len(curve)), curve]) for curve in curves]
    colours = matplotlib.colormaps[COLOURS](np.linspace(0, 0.95, len(curves))) if swept else RANDOM_COLOUR
    panel.add_collection(LineCollection(lines, colors=colours, linewidths=0.9, alpha=1.0 if swept else 0.35))
    panel.autoscale()
    panel.tick_params(labelsize=TICK_SIZE, length=2)
