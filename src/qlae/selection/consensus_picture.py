"""The picture of a consensus: factors × runs, with the latents that correspond to each other.

Lengths are in inches, from the upper left corner.
"""

from __future__ import annotations

import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath

from .._io import write_whole
from ..metrics.heatmap import escape_math
from .consensus_display import describe_comparison, ordered_factors
from .factors import Factor

if TYPE_CHECKING:
    from .consensus import Consensus

CELL, LINE, GAP = (0.66, 0.36), 0.21, 0.14  # width and height; of a line of text; between parts
LEFT, BAR, COUNT = 0.62, 1.1, 1.0  # room for the names of factors, the longest bar, and the count next to it
LEAST_WIDTH = 6.2
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 11, 9, 8
LONG_NAME = 0.6  # inches of a run's name, from which on names are slanted
SLANT = 35
COLOURS, WITHOUT = (  # of similarities, and where there is no consensus
    LinearSegmentedColormap.from_list(name, matplotlib.colormaps[name](places))
    for name, places in (("Blues", [0.12, 0.4, 0.65, 0.95]), ("Greys", [0.1, 0.3, 0.5, 0.6]))
)
DARK = 0.55  # similarity from which on the text of a cell is white
OWN, EMPTY, INK, GREY, PALE = "#e8590c", "#f1f3f5", "#222222", "#8a8f98", "#c3cad3"
DPI = 150
HEADINGS = {
    True: "Confirmed: at least half of the other runs found these again",
    False: "Not confirmed: they complete the code, but do not name them",
}
NO_CONSENSUS = "Not confirmed: no latent has a counterpart in most other runs that is clearly alike"


def plot_consensus(consensus: Consensus, path: Path) -> Path:
    """Write the picture of a consensus as PNG, and return its path."""
    write_whole(path, partial(consensus_figure(consensus).savefig, format="png", dpi=DPI))
    return path


def consensus_figure(consensus: Consensus, *, has_title: bool = True) -> Figure:
    """Return the picture of a consensus, with the verdict above it if ``has_title``."""
    return _Drawing(consensus).draw(has_title=has_title)


class _Drawing:
    """Draws from top to bottom; ``y`` is the upper edge of the next part."""

    def __init__(self, consensus: Consensus):
        self.consensus = consensus
        self.num_runs = len(consensus.names)
        self.right = LEFT + self.num_runs * CELL[0]
        self.width = max(LEAST_WIDTH, self.right + GAP + BAR + COUNT) + 2 * GAP
        self.y = GAP
        self.colours = COLOURS if consensus.confirmed else WITHOUT
        self.count_heading = "found in" if consensus.confirmed else "somewhat alike in"
        self.names = [escape_math(name) for name in consensus.names]
        self.is_slanted = max(map(_length, self.names)) > LONG_NAME
        self.figure = Figure()
        self.axes: Any = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))

    def draw(self, *, has_title: bool) -> Figure:
        """Return the finished figure."""
        consensus = self.consensus
        if has_title:
            self._lines(consensus.describe(), size=TITLE_SIZE, weight="bold")
            self._lines(describe_comparison(consensus), color=GREY)
        if consensus.factors:
            self._head()
            order = ordered_factors(consensus)
            for is_confirmed, heading in HEADINGS.items():
                group = [k for k in order if consensus.factors[k].is_confirmed == is_confirmed]
                if group:
                    self._group(heading if consensus.confirmed else NO_CONSENSUS, group, is_confirmed)
            self._legend()
        self.y += GAP
        self.figure.set_size_inches(self.width, self.y)
        self.axes.set(xlim=(-GAP, self.width - GAP), ylim=(self.y, 0.0))
        self.axes.axis("off")
        return self.figure

    def _text(self, x: float, y: float, text: str, **style: Any) -> None:
        style = {"size": TEXT_SIZE, "color": INK, "va": "center", "ha": "left"} | style
        self.axes.text(x, y, text, **style)

    def _lines(self, text: str, *, size: float = TEXT_SIZE, **style: Any) -> None:
        """Draw a text, broken into lines that fit."""
        font = FontProperties(size=size, weight=style.get("weight", "normal"))
        average = float(TextPath((0, 0), text, prop=font).get_extents().x1) / 72 / len(text)
        for line in textwrap.wrap(text, int((self.width - 3 * GAP) / average)):
            self._text(0.0, self.y + LINE / 2, escape_math(line), size=size, **style)
            self.y += LINE * size / TEXT_SIZE

    def _head(self) -> None:
        """Draw the names of the runs."""
        rise = max(map(_length, self.names)) * 0.6 if self.is_slanted else 0.0
        self.y += GAP + rise + LINE
        for k, name in enumerate(self.names):
            middle = LEFT + (k + 0.5) * CELL[0]
            if self.is_slanted:
                style = {"rotation": SLANT, "rotation_mode": "anchor", "va": "bottom"}
                self._text(middle - 0.1, self.y - 0.04, name, **style)
            else:
                self._text(middle, self.y - LINE / 2, name, ha="center")
        if not self.is_slanted:
            self._text(self.right + GAP, self.y - LINE / 2, self.count_heading, color=GREY)

    def _group(self, heading: str, numbers: list[int], is_confirmed: bool) -> None:
        self.y += GAP
        self._text(
            0.0, self.y + LINE / 2, heading, size=SMALL_SIZE, color=INK if is_confirmed else GREY, style="italic"
        )
        self.y += LINE + 0.04
        for number in numbers:
            self._row(number, self.consensus.factors[number], is_confirmed)

    def _row(self, number: int, factor: Factor, is_confirmed: bool) -> None:
        """Draw one factor: its counterparts in all runs, and in how many it was found."""
        width, height = CELL
        middle = self.y + height / 2
        self._text(0.0, middle, f"f{number}", weight="bold" if is_confirmed else "normal")
        for k in range(self.num_runs):
            self._cell(LEFT + k * width, factor, k)
        length = BAR * factor.num_found / self.num_runs
        colour = COLOURS(0.75) if is_confirmed else PALE
        self.axes.add_patch(Rectangle((self.right + GAP, middle - 0.07), length, 0.14, color=colour, linewidth=0))
        text = f"{factor.num_found} of {self.num_runs}"
        self._text(self.right + GAP + length + 0.07, middle, text, color=INK if is_confirmed else GREY)
        self.y += height

    def _cell(self, x: float, factor: Factor, run: int) -> None:
        """Draw the counterpart of a factor in one run."""
        is_own, was_found, inset = run == factor.run, factor.found[run], 0.02
        similarity, latent = factor.similarities[run], factor.counterparts[run]
        size = CELL[0] - 2 * inset, CELL[1] - 2 * inset
        face = self.colours(similarity) if was_found else EMPTY
        self.axes.add_patch(Rectangle((x + inset, self.y + inset), *size, facecolor=face, linewidth=0))
        if is_own:
            inset += 0.012
            size = CELL[0] - 2 * inset, CELL[1] - 2 * inset
            frame = Rectangle((x + inset, self.y + inset), *size, facecolor="none", edgecolor=OWN, linewidth=2.2)
            self.axes.add_patch(frame)
        colour = GREY if not was_found else "white" if similarity > DARK else INK
        text = f"z{latent}" if latent >= 0 else "–"
        self._text(x + CELL[0] / 2, self.y + CELL[1] / 2, text, color=colour, ha="center")

    def _legend(self) -> None:
        """Explain the cells, by examples."""
        self.y += 2 * GAP
        if self.consensus.confirmed:
            found = "found: the latent of that run that encodes the same, the darker the more alike"
            own = "the run and the latent that the code takes the factor from"
            lacking = "not found: the nearest latent of that run is too unlike"
        else:
            found = "the latent of that run that is most alike, the darker the more"
            own = "the latent that those of the other runs are compared with"
            lacking = "the nearest latent of that run is too unlike"
        shades = [self.colours(0.4 + 0.15 * step) for step in range(5)]
        for text, faces, edge in ((found, shades, ""), (own, shades[-1:], OWN), (lacking, [EMPTY], "")):
            width = 0.5 / len(faces)
            for step, face in enumerate(faces):
                patch = Rectangle((step * width, self.y + 0.03), width, LINE - 0.06, facecolor=face)
                patch.set(edgecolor=edge or face, linewidth=2 if edge else 0)
                self.axes.add_patch(patch)
            self._text(LEFT, self.y + LINE / 2, text, size=SMALL_SIZE)
            self.y += LINE + 0.04


def _length(text: str, size: float = TEXT_SIZE) -> float:
    """Return the length in inches of a line of text whose size is given in points."""
    return float(TextPath((0, 0), text, size=size).get_extents().x1) / 72 if text else 0.0
