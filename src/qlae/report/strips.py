"""Draw what lies between two neighbouring codes of each latent: the paper's "meaningful interpolation"."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..metrics.heatmap import UNINFORMATIVE, escape_math
from .text import measure_text
from .tiles import GAP, fade, tile

PITCH = 0.62  # inches from one tile to the next
MARGIN = 0.1  # inches
TITLE_HEIGHT, HEAD_HEIGHT = 0.35, 0.24  # inches
TITLE_SIZE, LABEL_SIZE = 11, 9  # points
FRAME = 51  # brightness of the frames around codes
HEADS = ("code", "between the two codes", "next code")


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
        strips: Images (num_latents, num_steps, h, w, 3), from one code to the other.
        codes: Codes at both ends (num_latents, 2); equal where there is nothing to show.
        meanings: Name of the source that each latent is most informative about; may be empty.
        title: Title of the picture.
        informative: Booleans (num_latents,); the rows of uninformative latents are faded and their labels grey. None if
            all are informative, or nothing is known.

    Returns:
        The picture; None if no latent has two codes.
    """
    latents = np.flatnonzero(codes[:, 0] != codes[:, 1]).tolist()
    if not latents:
        return None
    is_faded = [informative is not None and not informative[j] for j in latents]
    rows = [fade(strips[j]) if faded else strips[j] for j, faded in zip(latents, is_faded, strict=True)]
    labels = [f"$z_{{{j}}}$ {escape_math(meanings[j])}".rstrip() for j in latents]
    sheet, centres = arrange_strips(np.stack(rows))
    tile_height, tile_width = strips.shape[2:4]
    height, width = (PITCH / (tile_width + GAP) * pixels for pixels in sheet.shape[:2])
    left = MARGIN + max(measure_text(label, LABEL_SIZE) for label in labels) + 0.1
    full_width = max(left + width + 3 * MARGIN, measure_text(escape_math(title), TITLE_SIZE) + 2 * MARGIN)
    top = TITLE_HEIGHT + HEAD_HEIGHT
    full_height = top + height + MARGIN
    figure = Figure(figsize=(full_width, full_height))
    figure.suptitle(escape_math(title), fontsize=TITLE_SIZE, y=1 - MARGIN / full_height, verticalalignment="top")
    axes = figure.add_axes((left / full_width, MARGIN / full_height, width / full_width, height / full_height))
    axes.imshow(sheet, interpolation="nearest", aspect="auto")
    axes.xaxis.tick_top()
    axes.set_xticks(centres, HEADS)
    axes.set_yticks(np.arange(len(rows)) * (tile_height + GAP) + tile_height / 2, labels)
    axes.tick_params(length=0, labelsize=LABEL_SIZE)
    for label, faded in zip(axes.get_yticklabels(), is_faded, strict=True):
        label.set_color(UNINFORMATIVE if faded else "black")
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure


def arrange_strips(strips: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], list[float]]:
    """Return strips (rows, num_steps, r, r, 3) on one sheet, their first and last images framed and set apart.

    Returns:
        The sheet (height, width, 3), and the centres of its three parts in pixels from the left.
    """
    rows, _, height, width = strips.shape[:4]
    ends = strips[:, [0, -1]].copy()
    ends[:, :, [0, -1]] = FRAME
    ends[:, :, :, [0, -1]] = FRAME
    space = np.full((rows * (height + GAP) - GAP, width // 4, 3), 255, np.uint8)
    parts = [tile(ends[:, :1]), space, tile(strips[:, 1:-1]), space, tile(ends[:, 1:])]
    starts = np.cumsum([0, *(part.shape[1] for part in parts)])
    centres = [float(starts[i] + parts[i].shape[1] / 2) for i in (0, 2, 4)]
    return np.concatenate(parts, 1), centres
