"""Pictures of series: curves over time, laid over each other."""

from typing import Any

import matplotlib
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..metrics.heatmap import escape_math
from .drawing import Drawing
from .panels import LABEL_SIZE, TICK_SIZE, TITLE_SIZE, latent_rows

COLOURS = "viridis"
GAP = 1.12  # from the start of one latent's curves to that of the next, in lengths of a series
MAX_ROWS = 6  # panels above each other, for samples and channels
MAX_CHANNELS = 3  # shown; of more channels, those that change most
NUM_RECONSTRUCTIONS = 5
GENERATED_COLUMNS = 5


class SeriesDrawing(Drawing):
    """Draws series."""

    def draw(self, arrays: dict[str, NDArray[Any]], scores: dict[str, Any], title: str) -> dict[str, Figure]:
        """Return the pictures by name, from the arrays of ``pictures.npz`` and the scores of the averaged weights."""
        figures = {
            "reconstructions": self._reconstructions(arrays, scores.get("r2_features"), title),
            "interventions": self._interventions(
                arrays["interventions"], f"{title}: one latent moved at a time through its range, dark to bright"
            ),
        }
        if "interpolations" in arrays:
            heading = f"{title}: one latent interpolated at a time over its range, dark to bright"
            figures["interpolations"] = self._interventions(arrays["interpolations"], heading)
        if "generated" in arrays:
            figures["generated"] = self._generated(arrays["generated"], title)
        return figures

    def _channels(self, changes: NDArray[Any]) -> list[int]:
        """Return the channels that change most, in their own order."""
        scaled = changes / np.asarray(self.observations.scale)
        return sorted(np.argsort(-scaled, kind="stable")[:MAX_CHANNELS].tolist())

    def _label(self, channel: int) -> str:
        return escape_math(self.observations.names[channel])

    def _interventions(self, blocks: NDArray[Any], title: str) -> Figure:
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

    def _reconstructions(self, arrays: dict[str, NDArray[Any]], shares: Any, title: str) -> Figure:
        """Draw originals and, over them, reconstructions: a column per sample, a row per channel."""
        originals = arrays["originals"][:NUM_RECONSTRUCTIONS]
        decoded = arrays["reconstructions"][:NUM_RECONSTRUCTIONS]
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

    def _generated(self, series: NDArray[Any], title: str) -> Figure:
        """Draw the channel that changes most of series (n, t, c) decoded from random latents."""
        channel = int(np.argmax(np.ptp(series, axis=1).max(0) / np.asarray(self.observations.scale)))
        columns = min(GENERATED_COLUMNS, len(series))
        rows = min(MAX_ROWS, len(series) // columns)
        figure = Figure(figsize=(1.8 * columns + 0.6, 1.0 * rows + 0.8), layout="constrained")
        heading = f"{title}: {self.observations.names[channel]} decoded from random latents"
        figure.suptitle(escape_math(heading), fontsize=TITLE_SIZE)
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for panel, curve in zip(axes.flat, series[..., channel], strict=False):
            panel.plot(curve, color="#2b6cb0", linewidth=0.9)
            panel.tick_params(labelsize=TICK_SIZE, length=2)
        return figure
