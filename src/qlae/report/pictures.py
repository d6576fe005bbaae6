"""The pictures of one run, drawn from its directory: reconstructions, interventions, NMI heatmap, training curves."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..atomic import write_whole
from ..run import Run

DPI = 150
INACTIVE = "#d62728"
GAP = 2  # pixels of the image between tiles


def draw_pictures(run: Run) -> list[Path]:
    """Draw every picture that the run has the material for; their paths."""
    arrays = run.arrays(run.pictures_path)
    results = run.results
    scores = results["averaged"]
    title = f"{results['model']} on {results['data']['name']}"
    active = np.asarray(scores.get("active_latents", [True] * arrays["interventions"].shape[2]))
    figures = {
        "reconstructions": reconstructions(arrays["originals"], arrays["reconstructions"], title),
        "interventions": interventions(arrays["interventions"], active, title),
    }
    if "nmi" in scores:
        figures["nmi"] = nmi_heatmap(np.asarray(scores["nmi"]), active, results["data"]["source_names"], title, scores)
    log = run.log()
    if log:
        figures["curves"] = curves(log, title)
    paths = []
    for name, figure in figures.items():
        path = run.path / f"{name}.png"
        write_whole(path, partial(figure.savefig, format="png", dpi=DPI))
        paths.append(path)
    return paths


def reconstructions(originals: NDArray[np.uint8], decoded: NDArray[np.uint8], title: str) -> Figure:
    """Originals above their reconstructions."""
    sheet = tile(np.stack([originals, decoded]))
    figure = _figure(sheet, width=max(4.0, 0.9 * len(originals)), top=0.45, left=1.2)
    axes = _show(figure, sheet)
    figure.suptitle(f"{title}: reconstructions", fontsize=11)
    _tick_rows(axes, ["original", "decoded"], originals.shape[1])
    return figure


def interventions(blocks: NDArray[np.uint8], active: NDArray[np.bool_], title: str) -> Figure:
    """A block a sample, a column a latent, a row a step through that latent's range."""
    num_blocks, _, num_latents, side = blocks.shape[:4]
    sheets = [tile(block) for block in blocks]
    height, width = sheets[0].shape[:2]
    inches = max(0.36 * num_latents, 2.4)
    figure = Figure(figsize=(num_blocks * (inches + 0.15), inches * height / width + 0.75), layout="constrained")
    figure.suptitle(
        f"{title}: one latent moved at a time, from the lowest of its range (top) to the highest", fontsize=11
    )
    for axes, sheet in zip(figure.subplots(1, num_blocks, squeeze=False)[0], sheets, strict=True):
        axes.imshow(sheet, interpolation="nearest")
        axes.set_yticks([])
        axes.set_xticks(np.arange(num_latents) * (side + GAP) + side / 2, [f"$z_{{{j}}}$" for j in range(num_latents)])
        axes.xaxis.tick_top()
        axes.tick_params(length=0, labelsize=9)
        _redden(axes.get_xticklabels(), active)
        _bare(axes)
    return figure


def nmi_heatmap(
    nmi: NDArray[np.float64], active: NDArray[np.bool_], source_names: list[str], title: str, scores: dict[str, Any]
) -> Figure:
    """NMI of latents (rows) and sources (columns), as in the paper; inactive latents in red."""
    num_sources, num_latents = nmi.shape
    figure = Figure(figsize=(1.6 + 0.62 * num_sources, 1.5 + 0.34 * num_latents), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(nmi.T, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    axes.set_xticks(range(num_sources), source_names, rotation=35, ha="left", rotation_mode="anchor")
    axes.xaxis.tick_top()
    axes.set_yticks(range(num_latents), [f"$z_{{{j}}}$" for j in range(num_latents)])
    axes.tick_params(length=0)
    _redden(axes.get_yticklabels(), active)
    for (i, j), value in np.ndenumerate(nmi):
        color = "white" if value > 0.6 else "#333333"
        axes.text(i, j, f"{value:.2f}".removeprefix("0"), ha="center", va="center", fontsize=7, color=color)
    figure.colorbar(image, ax=axes, shrink=0.8, label="normalised mutual information")
    told = "  ".join(f"{name} {scores[key]:.2f}" for name, key in SHORT if key in scores)
    figure.suptitle(f"{title}\n{told}", fontsize=11)
    return figure


SHORT = (("InfoM", "infom"), ("InfoE", "infoe"), ("InfoC", "infoc"))


def curves(log: list[dict[str, Any]], title: str) -> Figure:
    """Every loss term against the number of updates."""
    terms = [name for name in log[0] if name not in ("step", "seconds", "loss")]
    figure = Figure(figsize=(3.4 * len(terms), 2.7), layout="constrained")
    figure.suptitle(f"{title}: training", fontsize=11)
    steps = [row["step"] for row in log]
    for axes, term in zip(figure.subplots(1, len(terms), squeeze=False)[0], terms, strict=True):
        axes.plot(steps, [row[term] for row in log], linewidth=1.2)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.tick_params(which="both", labelsize=8)
        axes.set_xlabel("updates")
        axes.set_title(term, fontsize=10)
        axes.grid(alpha=0.3, which="both", linewidth=0.5)
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
