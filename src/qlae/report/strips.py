"""Draw what lies between two neighbouring codes of each latent: the paper's "meaningful interpolation"."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..metrics.heatmap import UNINFORMATIVE
from .text import measure_text
from .tiles import fade, tile

PITCH = 0.62  # inches from one tile to the next
ROW_GAP = 0.05  # inches between the strips of two latents
CODE_GAP = 0.12  # inches between a code and what lies between
MARGIN = 0.1  # inches
TITLE_HEIGHT, HEAD_HEIGHT = 0.35, 0.24  # inches
TITLE_SIZE, LABEL_SIZE = 11, 9  # points
FRAME = "#333333"


def plot_strips(
    strips: NDArray[np.uint8],
    codes: NDArray[np.integer],
    meanings: Sequence[str],
    title: str,
    *,
    informative: NDArray[np.bool_] | None = None,
) -> Figure | None:
    """Draw one row per latent: the image of a code on the left, that of a neighbouring code on the right.

    Latents that always have the same code are left out.

    Args:
        strips: Images (num_latents, num_steps, r, r, 3), from one code to the other.
        codes: Codes at both ends (num_latents, 2); equal where there is nothing to show.
        meanings: Name of the source that each latent is most informative about; may be empty.
        title: Title of the picture.
        informative: Booleans (num_latents,); the rows of uninformative latents are faded and their labels grey. None if
            all are informative, or nothing is known.

    Returns:
        The picture; None if no latent has two codes.
    """
    shown = np.flatnonzero(codes[:, 0] != codes[:, 1]).tolist()
    if not shown:
        return None
    labels = [f"$z_{{{j}}}$ {meanings[j]}".rstrip() for j in shown]
    num_steps = strips.shape[1]
    left = MARGIN + max(measure_text(label, LABEL_SIZE) for label in labels) + 0.1
    inner = num_steps * PITCH + 2 * CODE_GAP
    width = max(left + inner + 2 * MARGIN, measure_text(title, TITLE_SIZE) + 2 * MARGIN)
    height = TITLE_HEIGHT + HEAD_HEIGHT + len(shown) * (PITCH + ROW_GAP) + MARGIN
    figure = Figure(figsize=(width, height))
    figure.suptitle(title, fontsize=TITLE_SIZE, y=1 - MARGIN / height, verticalalignment="top")

    def place(x: float, y: float, w: float, h: float) -> tuple[float, float, float, float]:
        """Return a rectangle in inches, with y from the top, in matplotlib's units."""
        return x / width, 1 - (y + h) / height, w / width, h / height

    between = left + PITCH + CODE_GAP
    last = left + inner - PITCH
    starts = ((left, 1), (between, num_steps - 2), (last, 1))
    top = TITLE_HEIGHT + HEAD_HEIGHT
    for (x, columns), head in zip(starts, ("code", "between the two codes", "next code"), strict=True):
        centre = place(x, 0, columns * PITCH - 0.03, 0)
        figure.text(centre[0] + centre[2] / 2, 1 - (top - 0.07) / height, head, fontsize=LABEL_SIZE, ha="center")
    for row, j in enumerate(shown):
        y = top + row * (PITCH + ROW_GAP)
        is_faded = informative is not None and not informative[j]
        figure.text(
            (left - 0.1) / width,
            1 - (y + PITCH / 2) / height,
            labels[row],
            fontsize=LABEL_SIZE,
            color=UNINFORMATIVE if is_faded else "black",
            horizontalalignment="right",
            verticalalignment="center",
        )
        strip = fade(strips[j]) if is_faded else strips[j]
        parts = strip[:1], strip[1:-1], strip[-1:]
        for (x, columns), images in zip(starts, parts, strict=True):
            axes = figure.add_axes(place(x, y, columns * PITCH - 0.03, PITCH - 0.03))
            axes.imshow(tile(images[None]), interpolation="nearest", aspect="auto")
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_visible(columns == 1)
                spine.set_color(FRAME)
    return figure
