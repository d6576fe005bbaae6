"""Draw the pictures of one run from its directory.

They show reconstructions, interventions, interpolations, what lies between two codes, images decoded from the prior,
the NMI heatmap, training curves, and scores against the sample size. How the first five look depends on the kind of
observations: images are drawn here and in ``image_drawing.py``, others in ``vector_drawing.py`` and
``series_drawing.py``.
"""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from .._files import write_whole
from ..metrics import count_informative, find_score, known_scores
from ..metrics.heatmap import INACTIVE, UNINFORMATIVE, escape_math, nmi_figure
from ..runs.directory import Run
from ..scoring.meanings import find_informative, listed_active, name_meanings
from .labels import LatentLabels
from .text import measure_text
from .tiles import GAP, fade, tile

NAMES = (
    *("reconstructions", "interventions", "interpolations", "between-codes", "generated", "nmi", "curves"),
    "sample-size",
)
DPI = 150
GENERATED_COLUMNS = 10
CURVE_COLUMNS = 6
MANY_POINTS = 150  # from which on a curve gets a running median
PITCH, STACKED_PITCH = 0.38, 0.6  # inches from one tile of an intervention to the next
BLOCK_GAP = 0.3  # inches between two samples
MARGIN = 0.1  # inches
TITLE_SIZE, LABEL_SIZE = 11, 9  # points
TITLE_HEIGHT, LABEL_HEIGHT = 0.35, 0.22  # inches, including the space around the line
SLANT = math.radians(35)  # of the labels above a block
DECADE = 10  # ratio from which on ticks between powers of ten get no labels
NOT_CURVES = ("step", "seconds", "loss", "generator_loss")
SCORES = ("infom", "infoe", "infoc")


def draw_pictures(run: Run) -> list[Path]:
    """Draw every picture that the run has the data for, and delete those that no longer apply.

    Returns:
        The paths of the pictures.
    """
    arrays = run.arrays(run.pictures_path, ("originals", "reconstructions", "interventions"))
    results = run.results
    scores = results["averaged"]
    title = f"{results['model']} on {results['data']['name']}"
    count = arrays["interventions"].shape[2]
    labels = LatentLabels(listed_active(scores, count), find_informative(scores, count), name_meanings(results, count))
    active = labels.active
    observations = run.observations
    drawing = observations.traits.load_drawing()(observations, labels)
    figures = drawing.draw(arrays, scores, title)
    if "nmi" in scores:
        texts = {name: f"{find_score(name).title} {scores[name]:.2f}" for name in SCORES}
        texts["infom"] += f" ({count_informative(scores)} informative)"
        heading = "  ".join(texts.values())
        figures["nmi"] = nmi_figure(
            np.asarray(scores["nmi"], dtype=float),
            active=active,
            informative=np.asarray(scores["informative_latents"]),
            source_names=results["data"]["source_names"],
            title=f"{title}\n{heading}",
        )
    log = run.log()
    if log:
        figures["curves"] = plot_curves(log, title)
    if "by_sample_size" in scores:
        figures["sample-size"] = plot_sample_sizes(scores["by_sample_size"], title)
    for name in NAMES:
        if name not in figures:
            (run.path / f"{name}.png").unlink(missing_ok=True)  # left by an earlier evaluation
    paths = []
    for name, figure in figures.items():
        path = run.path / f"{name}.png"
        write_whole(path, partial(figure.savefig, format="png", dpi=DPI))
        paths.append(path)
    return paths


def plot_reconstructions(originals: NDArray[np.uint8], decoded: NDArray[np.uint8], title: str) -> Figure:
    """Draw originals (n, r, r, 3) above their reconstructions (n, r, r, 3)."""
    sheet = tile(np.stack([originals, decoded]))
    figure = _new_figure(sheet, width=max(4.0, 0.9 * len(originals)), top=0.45, left=1.2)
    axes = _show_sheet(figure, sheet)
    figure.suptitle(f"{escape_math(title)}: reconstructions", fontsize=11)
    _label_rows(axes, ["original", "decoded"], originals.shape[1])
    return figure


def plot_interventions(
    blocks: NDArray[np.uint8],
    active: NDArray[np.bool_],
    meanings: list[str],
    title: str,
    *,
    informative: NDArray[np.bool_] | None = None,
    pitch: float | None = None,
    rise: float = 0.0,
) -> Figure:
    """Draw interventions: one block per sample, one column per latent, one row per step through the latent's range.

    The label above each column names the source that the latent is most informative about.

    Args:
        blocks: Decoded images (num_blocks, num_steps, num_latents, r, r, 3).
        active: Booleans (num_latents,); the labels of inactive latents are red.
        meanings: Name of the source that each latent is most informative about; may be empty.
        title: Title of the picture.
        informative: Booleans (num_latents,); the columns of uninformative latents are faded and their labels grey. None
            if all are informative, or nothing is known.
        pitch: Distance in inches from one tile to the next. If given, blocks are stacked whatever their shape.
        rise: Minimum height in inches of the labels, so that pictures placed side by side are level.
    """
    if informative is not None:
        blocks = blocks.copy()
        blocks[:, :, ~informative] = fade(blocks[:, :, ~informative])
    sheets = [tile(block) for block in blocks]
    num_steps, num_latents, _, side = blocks.shape[1:5]
    stacked = pitch is not None or len(blocks) * num_steps <= 1.5 * num_latents
    pitch = pitch or (STACKED_PITCH if stacked else PITCH)
    height, width = (pitch / (side + GAP) * pixels for pixels in sheets[0].shape[:2])
    labels = _labels(meanings)
    centre = pitch / 2
    ends = [centre + j * pitch + measure_text(label, LABEL_SIZE) * math.cos(SLANT) for j, label in enumerate(labels)]
    room = max(width, *ends)  # width of a block with its labels
    rows, columns = (len(blocks), 1) if stacked else (1, len(blocks))
    inner = columns * room + (columns - 1) * BLOCK_GAP
    top = TITLE_HEIGHT + max(rise, measure_label_rise(meanings))
    full_width = max(inner, measure_text(escape_math(title), TITLE_SIZE)) + 2 * MARGIN
    full_height = top + rows * height + (rows - 1) * BLOCK_GAP + MARGIN
    figure = Figure(figsize=(full_width, full_height))
    figure.suptitle(escape_math(title), fontsize=TITLE_SIZE, y=1 - MARGIN / full_height, verticalalignment="top")
    for number, sheet in enumerate(sheets):
        row, column = (number, 0) if stacked else (0, number)
        left = (full_width - inner) / 2 + column * (room + BLOCK_GAP)
        bottom = full_height - top - height - row * (height + BLOCK_GAP)
        axes = figure.add_axes((left / full_width, bottom / full_height, width / full_width, height / full_height))
        axes.imshow(sheet, interpolation="nearest", aspect="auto")
        axes.xaxis.tick_top()
        axes.tick_params(length=0, labelsize=LABEL_SIZE)
        axes.set_yticks([])
        axes.set_xticks([])
        if row == 0:
            centres = np.arange(num_latents) * (side + GAP) + side / 2
            axes.set_xticks(centres, labels, rotation=math.degrees(SLANT), ha="left", rotation_mode="anchor")
            _colour_labels(axes.get_xticklabels(), active, informative)
        _hide_spines(axes)
    return figure


def measure_label_rise(meanings: list[str]) -> float:
    """Return the height in inches that the slanted labels of interventions need above the tiles."""
    return max(measure_text(label, LABEL_SIZE) for label in _labels(meanings)) * math.sin(SLANT) + LABEL_HEIGHT


def _labels(meanings: list[str]) -> list[str]:
    return [f"$z_{{{j}}}$ {escape_math(meaning)}".rstrip() for j, meaning in enumerate(meanings)]


def plot_generated(images: NDArray[np.uint8], title: str) -> Figure:
    """Draw images (n, r, r, 3) that were decoded from random latents."""
    columns = min(GENERATED_COLUMNS, len(images))
    rows = len(images) // columns
    sheet = tile(images[: rows * columns].reshape(rows, columns, *images.shape[1:]))
    figure = _new_figure(sheet, width=max(4.0, 0.9 * columns), top=0.45, left=0.0)
    _show_sheet(figure, sheet).set_yticks([])
    figure.suptitle(f"{escape_math(title)}: decoded from random latents", fontsize=11)
    return figure


def plot_curves(log: list[dict[str, Any]], title: str) -> Figure:
    """Draw each loss term, and each score computed during training, against the number of updates.

    Many points form a band rather than a line, so their running median is drawn on top.

    Args:
        log: Rows of ``log.jsonl``.
        title: Title of the picture.
    """
    terms = [name for name in dict.fromkeys(key for row in log for key in row) if name not in NOT_CURVES]
    rows = -(-len(terms) // CURVE_COLUMNS)
    columns = -(-len(terms) // rows)
    figure = Figure(figsize=(3.4 * columns, 2.5 * rows + 0.3), layout="constrained")
    figure.suptitle(f"{escape_math(title)}: training", fontsize=11)
    all_axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, term in zip(all_axes, terms, strict=False):
        points = [(row["step"], row[term]) for row in log if term in row]
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
            if max(values) < DECADE * min(values):  # over a larger range, labels between powers of ten would collide
                axes.yaxis.set_minor_formatter("{x:g}")
            else:
                axes.yaxis.set_minor_formatter("")
        axes.tick_params(which="both", labelsize=8)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))  # 50k
        axes.set_xlabel("updates")
        heading = find_score(term).heading if term in known_scores() else term.replace("_", " ")
        axes.set_title(escape_math(heading), fontsize=10)
        axes.grid(alpha=0.3, which="both", linewidth=0.5)
    for axes in all_axes[len(terms) :]:
        axes.set_visible(False)
    return figure


def plot_sample_sizes(curve: dict[str, Any], title: str) -> Figure:
    """Draw each score against the sample size: the mean over draws, and their range."""
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    figure.suptitle(f"{escape_math(title)}: scores of parts of the sample", fontsize=11)
    axes = figure.subplots()
    for name, by_size in curve["scores"].items():
        points = [
            (size, list(map(float, values))) for size, values in zip(curve["sizes"], by_size, strict=True) if values
        ]
        sizes = [size for size, _ in points]
        (line,) = axes.plot(sizes, [np.mean(values) for _, values in points], marker="o", markersize=3.5, label=name)
        ends = [min(values) for _, values in points], [max(values) for _, values in points]
        axes.fill_between(sizes, *ends, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.set_xticks(curve["sizes"], [f"{size:,}" for size in curve["sizes"]])
    axes.minorticks_off()
    axes.set_ylim(0, 1)
    axes.set_xlabel("samples")
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.legend(fontsize=8, frameon=False, ncols=2)
    return figure


def _new_figure(sheet: NDArray[np.uint8], *, width: float, top: float, left: float) -> Figure:
    height, pixels = sheet.shape[:2]
    return Figure(figsize=(width + left, width * height / pixels + top), layout="constrained")


def _show_sheet(figure: Figure, sheet: NDArray[np.uint8]) -> Any:
    axes = figure.subplots()
    axes.imshow(sheet, interpolation="nearest")
    axes.set_xticks([])
    _hide_spines(axes)
    return axes


def _label_rows(axes: Any, labels: list[str], side: int) -> None:
    axes.set_yticks(np.arange(len(labels)) * (side + GAP) + side / 2, labels)
    axes.tick_params(length=0, labelsize=9)


def _colour_labels(labels: list[Any], active: NDArray[np.bool_], informative: NDArray[np.bool_] | None) -> None:
    """Colour the labels of inactive latents red, and those of uninformative ones grey."""
    for j, label in enumerate(labels):
        if not active[j]:
            label.set_color(INACTIVE)
        elif informative is not None and not informative[j]:
            label.set_color(UNINFORMATIVE)


def _hide_spines(axes: Any) -> None:
    for spine in axes.spines.values():
        spine.set_visible(False)
