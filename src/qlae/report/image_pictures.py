"""Pictures of images: tiles side by side."""

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..data.pictures import to_colours
from ..metrics.heatmap import UNINFORMATIVE, escape_math
from ..scoring.latent_labels import LatentLabels
from .run_pictures import (
    LABEL_SIZE,
    SLANT,
    TITLE_SIZE,
    ObservationPictures,
    label_latents,
    latent_text,
    measure_text,
    titled_figure,
)

GAP = 2  # pixels between tiles
FADED = 0.6  # share of white in the tiles of uninformative latents
FRAME = 51  # brightness of the frames around codes
GENERATED_COLUMNS = 10
PITCH, STACKED_PITCH = 0.38, 0.6  # inches from one tile of an intervention to the next
STRIP_PITCH = 0.62
BLOCK_GAP = 0.3  # inches between two samples
MARGIN = 0.1  # inches
TITLE_HEIGHT, LABEL_HEIGHT, HEAD_HEIGHT = 0.35, 0.22, 0.24  # inches, including the space around the line
STRIP_HEADS = ("code", "between the two codes", "next code")

Pixels = NDArray[np.uint8]


class ImagePictures(ObservationPictures):
    """Draws images."""

    has_tiles = True
    moved = "one latent moved at a time through its range, top to bottom"
    interpolated = "one latent interpolated at a time over its range, top to bottom"

    def reconstructions(self, originals: NDArray[Any], decoded: NDArray[Any], shares: Any, title: str) -> Figure:
        """Draw originals (n, h, w, c) above their reconstructions."""
        images = np.stack([self._tiles(originals), self._tiles(decoded)])
        heading, width = f"{title}: reconstructions", max(4.0, 0.9 * len(originals))
        figure, axes = _draw_sheet(tile(images), heading, width=width, left=1.2)
        side = images.shape[2]
        axes.set_yticks(np.arange(2) * (side + GAP) + side / 2, ["original", "decoded"])
        axes.tick_params(length=0, labelsize=LABEL_SIZE)
        return figure

    def interventions(self, blocks: NDArray[Any], steps: NDArray[Any], title: str) -> Figure:
        return plot_interventions(self._tiles(blocks), self.labels, title)

    def strips(self, strips: NDArray[Any], codes: NDArray[Any], title: str) -> Figure | None:
        return plot_strips(self._tiles(strips), codes, self.labels, f"{title}: between two codes of a latent")

    def generated(self, decoded: NDArray[Any], title: str) -> Figure:
        """Draw images (n, h, w, c) that were decoded from random latents."""
        columns = min(GENERATED_COLUMNS, len(decoded))
        rows = len(decoded) // columns
        images = self._tiles(decoded)[: rows * columns]
        sheet = tile(images.reshape(rows, columns, *images.shape[1:]))
        heading = f"{title}: decoded from random latents"
        figure, axes = _draw_sheet(sheet, heading, width=max(4.0, 0.9 * columns), left=0.0)
        axes.set_yticks([])
        return figure

    def _tiles(self, images: NDArray[Any]) -> Pixels:
        """Return images (…, h, w, c) as they are shown, (…, h, w, 3) bytes."""
        return to_colours(images, self.observations)


def tile(images: Pixels) -> Pixels:
    """Return images (rows, columns, h, w, 3) arranged on one sheet (height, width, 3), with white gaps between them."""
    rows, columns, height, width = images.shape[:4]
    padded = np.full((rows, height + GAP, columns, width + GAP, 3), 255, np.uint8)
    padded[:, :height, :, :width] = images.swapaxes(1, 2)
    return padded.reshape(rows * (height + GAP), columns * (width + GAP), 3)[:-GAP, :-GAP]


def fade(images: Pixels) -> Pixels:
    """Return images, of any shape, mixed with white.

    >>> fade(np.array([0, 255], np.uint8)).tolist()
    [153, 255]
    """
    mixed: Pixels = (FADED * 255 + (1 - FADED) * images).round().astype(np.uint8)
    return mixed


def plot_interventions(
    blocks: Pixels, labels: LatentLabels, title: str, *, pitch: float | None = None, rise: float = 0.0
) -> Figure:
    """Draw decoded interventions (num_blocks, num_steps, num_latents, h, w, 3): blocks of columns of steps.

    The label above each column names the source that the latent is most informative about. The columns of uninformative
    latents are faded. With ``pitch``, the inches from one tile to the next, blocks are stacked whatever their shape;
    ``rise`` is the minimum height in inches of the labels, so that pictures placed side by side are level.
    """
    blocks = blocks.copy()
    blocks[:, :, ~labels.informative] = fade(blocks[:, :, ~labels.informative])
    sheets = [tile(block) for block in blocks]
    num_steps, num_latents, _, side = blocks.shape[1:5]
    stacked = pitch is not None or len(blocks) * num_steps <= 1.5 * num_latents
    pitch = pitch or (STACKED_PITCH if stacked else PITCH)
    height, width = (pitch / (side + GAP) * pixels for pixels in sheets[0].shape[:2])
    lengths = [measure_text(latent_text(labels, j), LABEL_SIZE) for j in range(num_latents)]
    ends = [pitch / 2 + j * pitch + length * math.cos(math.radians(SLANT)) for j, length in enumerate(lengths)]
    room = max(width, *ends)  # width of a block with its labels
    rows, columns = (len(blocks), 1) if stacked else (1, len(blocks))
    inner = columns * room + (columns - 1) * BLOCK_GAP
    top = TITLE_HEIGHT + max(rise, measure_label_rise(labels))
    full_width = max(inner, measure_text(escape_math(title), TITLE_SIZE)) + 2 * MARGIN
    full_height = top + rows * height + (rows - 1) * BLOCK_GAP + MARGIN
    figure = _fixed_figure(full_width, full_height, title)
    for number, sheet in enumerate(sheets):
        row, column = (number, 0) if stacked else (0, number)
        left = (full_width - inner) / 2 + column * (room + BLOCK_GAP)
        bottom = full_height - top - height - row * (height + BLOCK_GAP)
        axes = _add_sheet(figure, sheet, left, bottom, width, height)
        axes.set_yticks([])
        axes.set_xticks([])
        if row == 0:
            label_latents(axes, np.arange(num_latents) * (side + GAP) + side / 2, labels)
    return figure


def measure_label_rise(labels: LatentLabels) -> float:
    """Return the inches that the slanted labels of interventions need above the tiles."""
    longest = max(measure_text(latent_text(labels, j), LABEL_SIZE) for j in range(len(labels.names)))
    return longest * math.sin(math.radians(SLANT)) + LABEL_HEIGHT


def plot_strips(strips: Pixels, codes: NDArray[np.integer], labels: LatentLabels, title: str) -> Figure | None:
    """Draw the transition between two neighbouring codes of each latent: the paper's "meaningful interpolation".

    Each row is a strip (num_steps, h, w, 3) from the image of a code to that of the next. Latents whose two ``codes``
    are equal are left out; the rows of uninformative latents are faded. None if no latent has two codes.
    """
    latents = np.flatnonzero(codes[:, 0] != codes[:, 1]).tolist()
    if not latents:
        return None
    sheet, centres = arrange_strips(
        np.stack([strips[j] if labels.informative[j] else fade(strips[j]) for j in latents])
    )
    texts = [latent_text(labels, j) for j in latents]
    tile_height, tile_width = strips.shape[2:4]
    height, width = (STRIP_PITCH / (tile_width + GAP) * pixels for pixels in sheet.shape[:2])
    left = MARGIN + max(measure_text(text, LABEL_SIZE) for text in texts) + 0.1
    full_width = max(left + width + 3 * MARGIN, measure_text(escape_math(title), TITLE_SIZE) + 2 * MARGIN)
    figure = _fixed_figure(full_width, TITLE_HEIGHT + HEAD_HEIGHT + height + MARGIN, title)
    axes = _add_sheet(figure, sheet, left, MARGIN, width, height)
    axes.set_xticks(centres, STRIP_HEADS)
    axes.set_yticks(np.arange(len(latents)) * (tile_height + GAP) + tile_height / 2, texts)
    for label, j in zip(axes.get_yticklabels(), latents, strict=True):
        label.set_color("black" if labels.informative[j] else UNINFORMATIVE)
    return figure


def arrange_strips(strips: Pixels) -> tuple[Pixels, list[float]]:
    """Return strips (rows, num_steps, h, w, 3) on one sheet, their first and last images framed and set apart.

    The second result are the centres of the three parts in pixels from the left.
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


def _draw_sheet(sheet: Pixels, title: str, *, width: float, left: float) -> tuple[Figure, Any]:
    """Return a figure of a sheet that is ``width`` inches wide, with room for labels at the left, and its axes."""
    height, pixels = sheet.shape[:2]
    figure = titled_figure(width + left, width * height / pixels + 0.45, title)
    axes = figure.subplots()
    axes.imshow(sheet, interpolation="nearest")
    axes.set_xticks([])
    axes.spines[:].set_visible(False)
    return figure, axes


def _fixed_figure(width: float, height: float, title: str) -> Figure:
    """Return a figure of a size in inches whose title stands at the upper edge."""
    figure = Figure(figsize=(width, height))
    figure.suptitle(escape_math(title), fontsize=TITLE_SIZE, y=1 - MARGIN / height, verticalalignment="top")
    return figure


def _add_sheet(figure: Figure, sheet: Pixels, left: float, bottom: float, width: float, height: float) -> Any:
    """Draw a sheet at a place given in inches, and return its axes, whose labels stand above it."""
    full_width, full_height = figure.get_size_inches().tolist()
    axes = figure.add_axes((left / full_width, bottom / full_height, width / full_width, height / full_height))
    axes.imshow(sheet, interpolation="nearest", aspect="auto")
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=LABEL_SIZE)
    axes.spines[:].set_visible(False)
    return axes
