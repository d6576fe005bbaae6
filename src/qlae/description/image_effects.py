"""The effects of latents on images: where a picture changes, by how much, and whether in colour or in brightness."""

import base64
import html
import io
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..data.pictures import to_colours
from ..metrics.reconstruction import psnr_of_errors
from ..observations import COLOURS
from .effects import NUM_SHOWN, Change, Effects, Floats, Movement, interval
from .words import percent

WHITE = 255
MAX_SIDE = 96  # pixels of a picture on the page
MANY = 5  # codes, above which their pictures are narrower
NUM_EXAMPLES = 4  # images of the data per code
ROWS, COLUMNS = ("top", "middle", "bottom"), ("left", "centre", "right")
HELD = 0.8  # share of the squared change that the changed part of a picture holds
MOSTLY = 0.6  # share of the change that lies in a third of the picture, so that a sentence names it
COLOURFUL, COLOURLESS = 0.5, 0.15  # shares of the squared change that is not brightness
MIN_VISIBLE = 0.005  # of the range from black to white


class ImageEffects(Effects):
    """Measures and describes the effects of latents on images."""

    score_title, unit, digits = "PSNR", " dB", 1

    def to_numbers(self, arrays: NDArray[Any]) -> Floats:
        if self.observations.dtype == "uint8":
            return np.asarray(arrays, dtype=np.float64) / WHITE
        numbers = np.asarray(arrays, dtype=np.float64) - np.asarray(self.observations.offset)
        return np.asarray(numbers / np.asarray(self.observations.scale))

    @property
    def scale(self) -> Floats:
        return np.ones(1)

    def row_scores(self, decoded: Floats) -> Floats:
        return np.asarray(psnr_of_errors(np.square(decoded - self.numbers).mean((1, 2, 3))), dtype=np.float64)

    def changes(self, movement: Movement) -> list[Change]:
        """Return the change of each ninth of the picture: the mean absolute difference of its pixels."""
        found = []
        absolute, squares = np.abs(movement.differences).mean(3), np.square(movement.sizes).mean(2)
        for i, row in enumerate(_thirds(absolute.shape[1])):
            for j, column in enumerate(_thirds(absolute.shape[2])):
                values = absolute[:, row, column].mean((1, 2))
                size = float(np.sqrt(squares[row, column].mean()))
                found.append(Change(f"{ROWS[i]} {COLUMNS[j]}", *interval(values), size))
        return sorted(found, key=lambda change: -change.size)

    def say(self, movement: Movement, changes: Sequence[Change]) -> str:
        squares = np.square(movement.differences).mean((0, 3))
        if float(np.sqrt(squares.mean())) < MIN_VISIBLE:
            return "Hardly changes the picture."
        return f"Changes {percent(_area(squares))} of the picture, {_place(squares)}{_manner(movement.differences)}."

    def explain(self, movement: Movement) -> list[str]:
        mean, low, high = (percent(share) for share in interval(np.abs(movement.differences).mean((1, 2, 3))))
        change = f"{movement.describe_ends()}, pixels change by {mean} of the range from black to white on average"
        return [f"{change[0].upper()}{change[1:]} (95%: {low} to {high}).", *super().explain(movement)]

    def glance(self, movement: Movement, changes: Sequence[Change]) -> str:
        clearest = int(np.square(movement.differences[:NUM_SHOWN]).mean((1, 2, 3)).argmax())
        tiles = to_colours(movement.shown[:, clearest], self.observations)
        return f"<span class=glance>{''.join(_sheet(each[None], 'decoded') for each in tiles)}</span>"

    def show(self, movement: Movement, changes: Sequence[Change]) -> str:
        settings = movement.settings
        maps = self._maps(movement)
        columns = []
        for k, label in enumerate(settings.labels):
            members = settings.members[k]
            examples = to_colours(self.sample.read(self.sample.draw(NUM_EXAMPLES, members)), self.observations)
            decoded = to_colours(movement.shown[k], self.observations)
            share = percent(settings.shares[k])
            columns.append(
                f"<div class=column><b>{html.escape(label)}</b>{_sheet(decoded, f'decoded with {label}')}{maps[k]}"
                f'{_sheet(examples, f"images of the data with {label}")}<span class=meter><i style="width:'
                f'{100 * settings.shares[k]:.0f}%"></i></span><small>{share} of images</small></div>'
            )
        heads = (
            "<div class='column heads'><b>&nbsp;</b>"
            f"<span style='--tiles:{len(movement.shown[0])}'>The same pictures, this latent changed</span>"
            "<span style='--tiles:1'>Where it differs from the other codes</span>"
            f"<span style='--tiles:{NUM_EXAMPLES}'>Pictures of the data with this code</span></div>"
        )
        size = " narrow" if len(columns) > MANY else ""
        return f"<div class='columns{size}'>{heads}{''.join(columns)}</div>"

    def _maps(self, movement: Movement) -> list[str]:
        """Return for each code the picture of its mean effect, around grey: brighter, darker, or of another colour."""
        largest = max(float(np.quantile(np.abs(movement.means), 0.998)), 1e-9)
        pixels = WHITE * (0.5 + 0.5 * movement.means / largest).clip(0, 1)
        tiles = pixels.round().astype(np.uint8)
        plain = replace(self.observations, dtype="uint8", offset=(), scale=())
        return [_sheet(to_colours(each[None], plain), "mean effect on the picture") for each in tiles]


def _thirds(length: int) -> list[slice]:
    edges = np.linspace(0, length, 4).round().astype(int)
    return [slice(low, max(high, low + 1)) for low, high in itertools.pairwise(edges)]


def _area(squares: Floats) -> float:
    """Return the share of the pixels (h, w) that holds most of the squared change.

    >>> _area(np.array([[1.0, 1.0], [0.0, 0.0]]))
    0.5
    """
    ordered = np.sort(squares.ravel())[::-1]
    reached = np.cumsum(ordered) / max(float(ordered.sum()), 1e-300)
    return float((int(np.searchsorted(reached, HELD - 1e-9)) + 1) / ordered.size)


def _place(squares: Floats) -> str:
    """Return where most of the squared change (h, w) lies.

    >>> change = np.zeros((9, 9)); change[7:, :3] = 1.0
    >>> _place(change), _place(np.ones((9, 9)))
    ('mostly at the bottom left', 'all over it')
    """
    total = max(float(squares.sum()), 1e-300)
    rows = [float(squares[part].sum()) / total for part in _thirds(squares.shape[0])]
    columns = [float(squares[:, part].sum()) / total for part in _thirds(squares.shape[1])]
    row = ROWS[int(np.argmax(rows))] if max(rows) >= MOSTLY else ""
    column = COLUMNS[int(np.argmax(columns))] if max(columns) >= MOSTLY else ""
    if row and column:
        return "mostly in the centre" if (row, column) == ("middle", "centre") else f"mostly at the {row} {column}"
    if row or column:
        height, width = f"{row} third of its height", f"{'middle' if column == 'centre' else column} third of its width"
        return f"mostly in the {height if row else width}"
    return "all over it"


def _manner(differences: Floats) -> str:
    """Return whether images (n, h, w, c) change in colour or in brightness, if they have colours."""
    if differences.shape[3] != COLOURS:
        return ""
    total = max(float(np.square(differences).sum()), 1e-300)
    colourful = 1.0 - 3.0 * float(np.square(differences.mean(3)).sum()) / total
    if colourful >= COLOURFUL:
        return ", in colour rather than brightness"
    return ", in brightness rather than colour" if colourful <= COLOURLESS else ", in brightness and colour"


def _sheet(images: NDArray[np.uint8], text: str) -> str:
    """Return the HTML of images (n, h, w, 3 or 4) below each other, without gaps; large ones are scaled down."""
    height, width = images.shape[1:3]
    step = max(1, -(-max(height, width) // MAX_SIDE))
    sheet = images[:, ::step, ::step]
    sheet = sheet.reshape(-1, *sheet.shape[2:])
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(sheet)).save(file, format="PNG")
    content = base64.b64encode(file.getvalue()).decode()
    ratio = f"{width} / {height * len(images)}"
    return f'<img alt="{html.escape(text)}" style="aspect-ratio:{ratio}" src="data:image/png;base64,{content}">'
