"""The pictures of one run, drawn from its directory.

Reconstructions, interventions, images from the prior, NMI heatmap, training curves.
"""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from .._files import write_whole
from ..metrics.heatmap import INACTIVE, nmi_figure
from ..runs.directory import Run
from .published import TITLES

NAMES = ("reconstructions", "interventions", "generated", "nmi", "curves", "sample-size")
DPI = 150
GAP = 2  # pixels of the image between tiles
GENERATED_COLUMNS = 10
CURVE_COLUMNS = 6
MANY_POINTS = 150  # of a curve
PITCH, STACKED_PITCH = 0.38, 0.6  # inches from one tile of interventions to the next
BLOCK_GAP = 0.3  # inches between two samples
MARGIN = 0.1  # inches
TITLE_SIZE, LABEL_SIZE = 11, 9  # points
TITLE_HEIGHT, LABEL_HEIGHT = 0.35, 0.22  # inches of a line with what is around it
SLANT = math.radians(35)  # of labels
DECADE = 10
NOT_CURVES = ("step", "seconds", "loss", "generator_loss")
SCORES = ("infom", "infoe", "infoc")


def draw_pictures(run: Run) -> list[Path]:
    """Draw every picture that the run has the material for; their paths."""
    arrays = run.arrays(run.pictures_path)
    results = run.results
    scores = results["averaged"]
    title = f"{results['model']} on {results['data']['name']}"
    active = np.asarray(scores.get("active_latents", [True] * arrays["interventions"].shape[2]))
    figures = {
        "reconstructions": reconstructions(arrays["originals"], arrays["reconstructions"], title),
        "interventions": interventions(
            arrays["interventions"],
            active,
            meanings(results, len(active)),
            f"{title}: one latent moved at a time through its range, top to bottom",
        ),
    }
    if "generated" in arrays:
        figures["generated"] = generated(arrays["generated"], title)
    if "nmi" in scores:
        told = "  ".join(f"{TITLES[name]} {scores[name]:.2f}" for name in SCORES)
        figures["nmi"] = nmi_figure(
            np.asarray(scores["nmi"]),
            active=active,
            informative=np.asarray(scores["informative_latents"]),
            source_names=results["data"]["source_names"],
            title=f"{title}\n{told}",
        )
    log = run.log()
    if log:
        figures["curves"] = curves(log, title)
    if "by_sample_size" in scores:
        figures["sample-size"] = sample_sizes(scores["by_sample_size"], title)
    for name in NAMES:
        if name not in figures:
            (run.path / f"{name}.png").unlink(missing_ok=True)  # of an earlier evaluation
    paths = []
    for name, figure in figures.items():
        path = run.path / f"{name}.png"
        write_whole(path, partial(figure.savefig, format="png", dpi=DPI))
        paths.append(path)
    return paths


def meanings(results: dict[str, Any], num_latents: int) -> list[str]:
    """The source that each latent tells most about; nothing where it tells no more than noise would."""
    scores = results["averaged"]
    if "nmi" not in scores:
        return [""] * num_latents
    best = np.asarray(scores["nmi"]).argmax(0)
    names = results["data"]["source_names"]
    return [names[i] if tells else "" for i, tells in zip(best, scores["informative_latents"], strict=True)]


def reconstructions(originals: NDArray[np.uint8], decoded: NDArray[np.uint8], title: str) -> Figure:
    """Originals above their reconstructions."""
    sheet = tile(np.stack([originals, decoded]))
    figure = _figure(sheet, width=max(4.0, 0.9 * len(originals)), top=0.45, left=1.2)
    axes = _show(figure, sheet)
    figure.suptitle(f"{title}: reconstructions", fontsize=11)
    _tick_rows(axes, ["original", "decoded"], originals.shape[1])
    return figure


def interventions(
    blocks: NDArray[np.uint8],
    active: NDArray[np.bool_],
    meanings: list[str],
    title: str,
    *,
    pitch: float | None = None,
    rise: float = 0.0,
) -> Figure:
    """A block a sample, a column a latent, a row a step through that latent's range.

    Args:
        blocks: (blocks, steps, num_latents, r, r, 3).
        active: (num_latents,); the others are labelled in red.
        meanings: what each latent tells most about, perhaps nothing.
        title: above it all.
        pitch: inches from one tile to the next, for blocks that stand one above the other whatever their shape.
        rise: inches that the labels get at least, so that pictures with other labels stand level.
    """
    sheets = [tile(block) for block in blocks]
    num_steps, num_latents, side = blocks.shape[1:4]
    stacked = pitch is not None or len(blocks) * num_steps <= 1.5 * num_latents
    pitch = pitch or (STACKED_PITCH if stacked else PITCH)
    height, width = (pitch / (side + GAP) * pixels for pixels in sheets[0].shape[:2])
    labels = _labels(meanings)
    centre = pitch / 2
    ends = [centre + j * pitch + _inches(label, LABEL_SIZE) * math.cos(SLANT) for j, label in enumerate(labels)]
    room = max(width, *ends)  # of a block with its labels
    rows, columns = (len(blocks), 1) if stacked else (1, len(blocks))
    inner = columns * room + (columns - 1) * BLOCK_GAP
    top = TITLE_HEIGHT + max(rise, label_rise(meanings))
    full_width = max(inner, _inches(title, TITLE_SIZE)) + 2 * MARGIN
    full_height = top + rows * height + (rows - 1) * BLOCK_GAP + MARGIN
    figure = Figure(figsize=(full_width, full_height))
    figure.suptitle(title, fontsize=TITLE_SIZE, y=1 - MARGIN / full_height, verticalalignment="top")
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
            places = np.arange(num_latents) * (side + GAP) + side / 2
            axes.set_xticks(places, labels, rotation=math.degrees(SLANT), ha="left", rotation_mode="anchor")
            _redden(axes.get_xticklabels(), active)
        _bare(axes)
    return figure


def label_rise(meanings: list[str]) -> float:
    """Inches that the slanted labels of interventions need above the tiles."""
    return max(_inches(label, LABEL_SIZE) for label in _labels(meanings)) * math.sin(SLANT) + LABEL_HEIGHT


def _labels(meanings: list[str]) -> list[str]:
    return [f"$z_{{{j}}}$ {meaning}".rstrip() for j, meaning in enumerate(meanings)]


def _inches(text: str, size: float) -> float:
    """How long a line of text of that size (points) is."""
    return float(TextPath((0, 0), text, size=size).get_extents().x1) / 72


def generated(images: NDArray[np.uint8], title: str) -> Figure:
    """Images (n, r, r, 3) decoded from latents drawn at random."""
    columns = min(GENERATED_COLUMNS, len(images))
    rows = len(images) // columns
    sheet = tile(images[: rows * columns].reshape(rows, columns, *images.shape[1:]))
    figure = _figure(sheet, width=max(4.0, 0.9 * columns), top=0.45, left=0.0)
    _show(figure, sheet).set_yticks([])
    figure.suptitle(f"{title}: decoded from random latents", fontsize=11)
    return figure


def curves(log: list[dict[str, Any]], title: str) -> Figure:
    """Every loss term, and every score that was taken on the way, against the number of updates.

    Over many points, which make a band rather than a line, runs their running median.
    """
    terms = [name for name in dict.fromkeys(key for row in log for key in row) if name not in NOT_CURVES]
    rows = -(-len(terms) // CURVE_COLUMNS)
    columns = -(-len(terms) // rows)
    figure = Figure(figsize=(3.4 * columns, 2.5 * rows + 0.3), layout="constrained")
    figure.suptitle(f"{title}: training", fontsize=11)
    all_axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, term in zip(all_axes, terms, strict=False):
        points = [(row["step"], row[term]) for row in log if term in row]
        steps, values = zip(*points, strict=True)
        many = len(points) >= MANY_POINTS
        axes.plot(steps, values, linewidth=1.2, marker="o" if len(points) < 3 else None, alpha=0.3 if many else 1)
        if many:
            axes.plot(steps, median_filter(values, len(points) // 50, mode="nearest"), linewidth=1.2, color="C0")
        if term in SCORES:
            axes.set_ylim(0, 1)
        elif term != "psnr" and min(values) > 0:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            if max(values) < DECADE * min(values):  # else the ticks between the powers of ten are too many to name
                axes.yaxis.set_minor_formatter("{x:g}")
            else:
                axes.yaxis.set_minor_formatter("")
        axes.tick_params(which="both", labelsize=8)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))  # 50k
        axes.set_xlabel("updates")
        axes.set_title(TITLES.get(term, term.replace("_", " ")), fontsize=10)
        axes.grid(alpha=0.3, which="both", linewidth=0.5)
    for axes in all_axes[len(terms) :]:
        axes.set_visible(False)
    return figure


def sample_sizes(curve: dict[str, Any], title: str) -> Figure:
    """Every score against the size of the sample: the mean over draws, and their range."""
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    figure.suptitle(f"{title}: scores of parts of the sample", fontsize=11)
    axes = figure.subplots()
    for name, by_size in curve["scores"].items():
        points = [(size, values) for size, values in zip(curve["sizes"], by_size, strict=True) if values]
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


def tile(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(rows, columns, h, w, 3) → one white-gapped sheet (…, …, 3)."""
    rows, columns, height, width = images.shape[:4]
    sheet = np.full((rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, 3), 255, np.uint8)
    for i in range(rows):
        for j in range(columns):
            y, x = i * (height + GAP), j * (width + GAP)
            sheet[y : y + height, x : x + width] = images[i, j]
    return sheet


def _figure(sheet: NDArray[np.uint8], *, width: float, top: float, left: float) -> Figure:
    height, pixels = sheet.shape[:2]
    return Figure(figsize=(width + left, width * height / pixels + top), layout="constrained")


def _show(figure: Figure, sheet: NDArray[np.uint8]) -> Any:
    axes = figure.subplots()
    axes.imshow(sheet, interpolation="nearest")
    axes.set_xticks([])
    _bare(axes)
    return axes


def _tick_rows(axes: Any, labels: list[str], side: int) -> None:
    axes.set_yticks(np.arange(len(labels)) * (side + GAP) + side / 2, labels)
    axes.tick_params(length=0, labelsize=9)


def _redden(labels: list[Any], active: NDArray[np.bool_]) -> None:
    for label, is_active in zip(labels, active, strict=True):
        if not is_active:
            label.set_color(INACTIVE)


def _bare(axes: Any) -> None:
    for spine in axes.spines.values():
        spine.set_visible(False)
