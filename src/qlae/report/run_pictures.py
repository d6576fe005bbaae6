"""Draw the pictures of one run from its directory.

They show reconstructions, interventions, interpolations, the images between two codes, images decoded from the prior,
the NMI heatmap, training curves, and scores against the sample size. How the first five look depends on the kind of
observations: see ``image_pictures.py`` and ``vectors_and_series.py``.
"""

from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from .._io import write_whole
from ..metrics import count_informative, find_score, known_scores
from ..metrics.heatmap import INACTIVE, UNINFORMATIVE, escape_math, nmi_figure
from ..observations import Observations
from ..runs.directory import Run
from ..scoring.latent_labels import LatentLabels

OPTIONAL = ("interpolations", "between-codes", "generated", "nmi", "curves", "sample-size")
NEEDED = ("originals", "reconstructions", "interventions", "intervention_steps")  # arrays of ``pictures.npz``
DPI = 150
TITLE_SIZE, LABEL_SIZE, TICK_SIZE = 11, 9, 7  # points
SLANT = 35  # degrees, of the labels of latents
CURVE_COLUMNS = 6
MANY_POINTS = 150  # from which on a curve gets a running median
DECADE = 10  # ratio from which on ticks between powers of ten get no labels
NOT_CURVES = ("step", "seconds", "loss", "generator_loss")
SCORES = ("infom", "infoe", "infoc")

Arrays = dict[str, NDArray[Any]]


class ObservationPictures(ABC):
    """Draws observations of one kind."""

    has_tiles: ClassVar[bool] = False  # whether observations can be shown as small pictures
    moved: ClassVar[str]  # describes interventions in titles
    interpolated: ClassVar[str]

    def __init__(self, observations: Observations, labels: LatentLabels):
        self.observations = observations
        self.labels = labels

    def draw(self, arrays: Arrays, scores: dict[str, Any], title: str) -> dict[str, Figure]:
        """Return the pictures by name, from the arrays of ``pictures.npz`` and the scores of the averaged weights."""
        compared = arrays["originals"], arrays["reconstructions"], scores.get("r2_features")
        moved = arrays["interventions"], arrays["intervention_steps"]
        figures: dict[str, Figure | None] = {
            "reconstructions": self.reconstructions(*compared, title),
            "interventions": self.interventions(*moved, f"{title}: {self.moved}"),
        }
        if "interpolations" in arrays:
            moved = arrays["interpolations"], arrays["interpolation_steps"]
            figures["interpolations"] = self.interventions(*moved, f"{title}: {self.interpolated}")
        if "strips" in arrays:
            figures["between-codes"] = self.strips(arrays["strips"], arrays["strip_codes"], title)
        if "generated" in arrays:
            figures["generated"] = self.generated(arrays["generated"], title)
        return {name: figure for name, figure in figures.items() if figure is not None}

    @abstractmethod
    def reconstructions(self, originals: NDArray[Any], decoded: NDArray[Any], shares: Any, title: str) -> Figure:
        """Draw originals and reconstructions, both (n, *shape), and R² of each feature if it is known."""

    @abstractmethod
    def interventions(self, blocks: NDArray[Any], steps: NDArray[Any], title: str) -> Figure:
        """Draw decoded interventions (samples, steps, latents, *shape) with the values (steps, latents)."""

    def strips(self, strips: NDArray[Any], codes: NDArray[Any], title: str) -> Figure | None:
        """Draw the observations (latents, steps, *shape) between two codes (latents, 2); None if there is no such
        picture."""
        return None

    @abstractmethod
    def generated(self, decoded: NDArray[Any], title: str) -> Figure:
        """Draw observations (n, *shape) that were decoded from random latents."""


def draw_pictures(run: Run) -> list[Path]:
    """Draw every picture that the run has the data for, delete those that no longer apply, and return the paths."""
    arrays = run.arrays(run.pictures_path, NEEDED)
    results, observations = run.results, run.observations
    scores = results["averaged"]
    title = f"{results['model']} on {results['data']['name']}"
    labels = LatentLabels.from_results(results, arrays["interventions"].shape[2])
    figures = observations.traits.load("drawing")(observations, labels).draw(arrays, scores, title)
    if "nmi" in scores:
        figures["nmi"] = plot_nmi(scores, labels, results["data"]["source_names"], title)
    if log := run.log():
        figures["curves"] = plot_curves(log, title)
    if "by_sample_size" in scores:
        figures["sample-size"] = plot_sample_sizes(scores["by_sample_size"], title)
    for name in {*OPTIONAL} - figures.keys():
        (run.path / f"{name}.png").unlink(missing_ok=True)  # left by an earlier evaluation
    return [write_picture(figure, run.path / f"{name}.png", DPI) for name, figure in figures.items()]


def write_picture(figure: Figure, path: Path, dpi: int) -> Path:
    """Write a figure as PNG, creating missing folders, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, partial(figure.savefig, format="png", dpi=dpi))
    return path


def titled_figure(width: float, height: float, title: str) -> Figure:
    """Return a figure of a size in inches that fits its content, with a title."""
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(escape_math(title), fontsize=TITLE_SIZE)
    return figure


def plot_nmi(scores: dict[str, Any], labels: LatentLabels, source_names: list[str], title: str) -> Figure:
    """Draw the NMI heatmap with the scores of InfoMEC in its title."""
    texts = {name: f"{find_score(name).title} {scores[name]:.2f}" for name in SCORES}
    texts["infom"] += f" ({count_informative(scores)} informative)"
    return nmi_figure(
        np.asarray(scores["nmi"], dtype=float),
        active=labels.active,
        informative=labels.informative,
        source_names=source_names,
        title=f"{title}\n{'  '.join(texts.values())}",
    )


def plot_curves(log: list[dict[str, Any]], title: str) -> Figure:
    """Draw each loss term, and each score computed during training, against the number of updates.

    Many points form a band rather than a line, so their running median is drawn on top.
    """
    terms = [name for name in dict.fromkeys(key for row in log for key in row) if name not in NOT_CURVES]
    rows = -(-len(terms) // CURVE_COLUMNS)
    columns = -(-len(terms) // rows)
    figure = titled_figure(3.4 * columns, 2.5 * rows + 0.3, f"{title}: training")
    all_axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, term in zip(all_axes, terms, strict=False):
        _draw_curve(axes, term, [(row["step"], row[term]) for row in log if term in row])
    for axes in all_axes[len(terms) :]:
        axes.set_visible(False)
    return figure


def _draw_curve(axes: Any, term: str, points: list[tuple[int, float]]) -> None:
    steps, values = zip(*points, strict=True)
    has_many = len(points) >= MANY_POINTS
    axes.plot(steps, values, linewidth=1.2, marker="o" if len(points) < 3 else None, alpha=0.3 if has_many else 1)
    if has_many:
        axes.plot(steps, median_filter(values, len(points) // 50, mode="nearest"), linewidth=1.2, color="C0")
    if term in SCORES:
        axes.set_ylim(0, 1)
    elif term not in known_scores() and min(values) > 0:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        # Over a larger range, labels between powers of ten would collide.
        axes.yaxis.set_minor_formatter("{x:g}" if max(values) < DECADE * min(values) else "")
    axes.tick_params(which="both", labelsize=8)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))  # 50k
    axes.set_xlabel("updates")
    heading = find_score(term).heading if term in known_scores() else term.replace("_", " ")
    axes.set_title(escape_math(heading), fontsize=10)
    axes.grid(alpha=0.3, which="both", linewidth=0.5)


def plot_sample_sizes(curve: dict[str, Any], title: str) -> Figure:
    """Draw each score against the sample size: the mean over draws, and their range."""
    figure = titled_figure(6.4, 3.8, f"{title}: scores of parts of the sample")
    axes = figure.subplots()
    for name, by_size in curve["scores"].items():
        scored = {
            size: list(map(float, values)) for size, values in zip(curve["sizes"], by_size, strict=True) if values
        }
        sizes = list(scored)
        (line,) = axes.plot(sizes, list(map(np.mean, scored.values())), marker="o", markersize=3.5, label=name)
        ends = list(map(min, scored.values())), list(map(max, scored.values()))
        axes.fill_between(sizes, *ends, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.set_xticks(curve["sizes"], [f"{size:,}" for size in curve["sizes"]])
    axes.minorticks_off()
    axes.set_ylim(0, 1)
    axes.set_xlabel("samples")
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.legend(fontsize=8, frameon=False, ncols=2)
    return figure


def latent_rows(
    labels: LatentLabels, num_rows: int, title: str, *, width: float, height: float, pitch: float
) -> tuple[Figure, list[Any]]:
    """Return a figure and its panels, one per row, with room for every latent, whose labels stand above the first.

    A latent is ``width`` inches wide and a panel ``height`` inches high; ``pitch`` is the distance from one latent to
    the next in the units of the x axis, where the first is at 0.
    """
    num_latents = len(labels.active)
    full_width = max(1.8 + width * num_latents, 0.4 + measure_text(escape_math(title), TITLE_SIZE))
    figure = titled_figure(full_width, 1.2 + height * num_rows, title)
    panels = list(figure.subplots(num_rows, 1, squeeze=False)[:, 0])
    for panel in panels:
        panel.tick_params(labelsize=TICK_SIZE, length=2)
        panel.set_xticks([])
        panel.set_xlim(-0.06 * pitch, (num_latents - 0.02) * pitch)
    above = panels[0].secondary_xaxis("top")
    label_latents(above, (np.arange(num_latents) + 0.45) * pitch, labels)
    above.tick_params(labelsize=LABEL_SIZE, length=0)
    return figure, panels


def label_latents(axes: Any, centres: NDArray[Any], labels: LatentLabels) -> None:
    """Write slanted labels of all latents along an x axis: red if inactive, grey if uninformative."""
    texts = [latent_text(labels, j) for j in range(len(labels.names))]
    axes.set_xticks(centres, texts, rotation=SLANT, ha="left", rotation_mode="anchor")
    for j, text in enumerate(axes.get_xticklabels()):
        colour = "black" if labels.informative[j] else UNINFORMATIVE
        text.set_color(colour if labels.active[j] else INACTIVE)


def latent_text(labels: LatentLabels, latent: int) -> str:
    """Return the label of a latent, in the notation of matplotlib."""
    number = latent if labels.numbers is None else labels.numbers[latent]
    return f"$z_{{{number}}}$ {escape_math(labels.names[latent])}".rstrip()


def measure_text(text: str, size: float) -> float:
    """Return the length in inches of a line of text whose size is given in points.

    >>> measure_text("", 9)
    0.0
    """
    return float(TextPath((0, 0), text, size=size).get_extents().x1) / 72 if text else 0.0
