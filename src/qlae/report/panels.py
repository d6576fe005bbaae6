"""A figure with rows of panels in which all latents stand side by side: for observations that are not images."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..metrics.heatmap import escape_math
from .labels import LatentLabels
from .text import measure_text

TITLE_SIZE, LABEL_SIZE, TICK_SIZE = 11, 9, 7  # points
SLANT = 35  # degrees, of the labels of latents


def latent_rows(
    labels: LatentLabels, num_rows: int, title: str, *, width: float, height: float, pitch: float
) -> tuple[Figure, list[Any]]:
    """Return a figure with one panel per row. A panel has room for every latent, whose labels stand above the first.

    Args:
        labels: of the latents.
        num_rows: panels above each other.
        title: of the figure.
        width: of one latent, in inches.
        height: of a panel, in inches.
        pitch: distance from one latent to the next in the units of the x axis; the first is at 0.

    Returns:
        The figure and its panels.
    """
    num_latents = len(labels.active)
    texts = [labels.text(latent) for latent in range(num_latents)]
    full_width = max(1.8 + width * num_latents, 0.4 + measure_text(escape_math(title), TITLE_SIZE))
    figure = Figure(figsize=(full_width, 1.2 + height * num_rows), layout="constrained")
    figure.suptitle(escape_math(title), fontsize=TITLE_SIZE)
    panels = list(figure.subplots(num_rows, 1, squeeze=False)[:, 0])
    for panel in panels:
        panel.tick_params(labelsize=TICK_SIZE, length=2)
        panel.set_xticks([])
        panel.set_xlim(-0.06 * pitch, (num_latents - 0.02) * pitch)
    above = panels[0].secondary_xaxis("top")
    above.set_xticks((np.arange(num_latents) + 0.45) * pitch, texts, rotation=SLANT, ha="left", rotation_mode="anchor")
    above.tick_params(labelsize=LABEL_SIZE, length=0)
    for latent, text in enumerate(above.get_xticklabels()):
        text.set_color(labels.colour(latent))
    return figure, panels


def step_text(step: Any) -> str:
    """Return the code or value that a latent is set to as text.

    >>> step_text(3), step_text(-0.25)
    ('3', '-0.25')
    """
    return f"{step:.2g}" if isinstance(step, float) else str(step)
