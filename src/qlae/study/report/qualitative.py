"""Draw decoded interventions above NMI heatmaps, for QLAE (left) and the best prior method (right).

This follows the paper's appendix "Qualitative Results". Each model is represented by its run with the median InfoM.
"""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from ...metrics.heatmap import nmi_figure
from ...report.pictures import measure_label_rise, plot_interventions
from ...scoring.meanings import name_meanings
from .aggregate import Group, Summary
from .published import PRIOR

DPI = 140
GAP = 24  # pixels between pictures
NUM_BLOCKS = 2  # number of samples whose interventions are shown
MIN_STEPS, MAX_STEPS = 4, 6  # steps shown per latent, the same number for both models
WIDTH = 6.0  # inches for the tiles of one model
MIN_PITCH, MAX_PITCH = 0.36, 0.6  # inches from one tile to the next


def groups_to_compare(summary: Summary, data: str) -> list[Group]:
    """Return QLAE and the prior method with the highest mean InfoM, as far as the study has them."""
    ours = [summary.groups[data, "qlae"]] if (data, "qlae") in summary.groups else []
    prior = [summary.groups[data, model] for model in PRIOR if (data, model) in summary.groups]
    scored = [(group, group.cell("infom")) for group in prior]
    best = max(((group, cell.mean) for group, cell in scored if cell), key=lambda pair: pair[1], default=None)
    return ours + ([best[0]] if best else [])


def draw_sheet(summary: Summary, data: str) -> NDArray[np.uint8] | None:
    """Draw the interventions and heatmaps of one data set.

    Returns:
        Pixels of shape (h, w, 3); None if the study has neither model.
    """
    runs = [_represent(group) for group in groups_to_compare(summary, data)]
    if not runs:
        return None
    num_steps = max(MIN_STEPS, min(MAX_STEPS, *(run.blocks.shape[1] for run in runs)))
    pitch = min(MAX_PITCH, max(MIN_PITCH, WIDTH / max(run.blocks.shape[2] for run in runs)))
    rise = max(measure_label_rise(run.meanings) for run in runs)
    above = [figure_pixels(_draw_interventions(run, num_steps, pitch, rise)) for run in runs]
    below = [figure_pixels(_draw_heatmap(run)) for run in runs]
    widths = [max(pair[0].shape[1], pair[1].shape[1]) + GAP for pair in zip(above, below, strict=True)]
    return np.concatenate([_row(above, widths), _row(below, widths)])


@dataclass(frozen=True)
class _ShownRun:
    """The run that represents a model."""

    title: str
    results: dict[str, Any]
    blocks: NDArray[np.uint8]  # (blocks, steps, num_latents, r, r, 3)
    meanings: list[str]

    @property
    def scores(self) -> dict[str, Any]:
        scores: dict[str, Any] = self.results["averaged"]
        return scores


def _represent(group: Group) -> _ShownRun:
    """Return the run of a group with the median InfoM."""
    index = group.median_index()
    run, results = group.runs[index], group.results[index]
    blocks = run.arrays(run.pictures_path)["interventions"][:NUM_BLOCKS]
    return _ShownRun(f"{group.model} on {group.data}", results, blocks, name_meanings(results, blocks.shape[2]))


def _draw_interventions(run: _ShownRun, num_steps: int, pitch: float, rise: float) -> Figure:
    """Draw the interventions, reduced to ``num_steps`` steps from end to end."""
    steps = run.blocks.shape[1]
    rows = np.unique(np.linspace(0, steps - 1, min(steps, num_steps)).round().astype(int))
    reduced = f", {len(rows)} of {steps} steps" if len(rows) < steps else ""
    active = np.asarray(run.scores["active_latents"])
    title = f"{run.title}, seed {run.results['seed']}{reduced}"
    return plot_interventions(run.blocks[:, rows], active, run.meanings, title, pitch=pitch, rise=rise)


def _draw_heatmap(run: _ShownRun) -> Figure:
    return nmi_figure(
        np.asarray(run.scores["nmi"]),
        active=np.asarray(run.scores["active_latents"]),
        informative=np.asarray(run.scores["informative_latents"]),
        source_names=run.results["data"]["source_names"],
        title=f"{run.title}: InfoM {run.scores['infom']:.2f}",
    )


def figure_pixels(figure: Figure) -> NDArray[np.uint8]:
    """Return a figure as pixels of shape (h, w, 3)."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    return np.asarray(Image.open(file).convert("RGB"))


def _row(pictures: list[NDArray[np.uint8]], widths: list[int]) -> NDArray[np.uint8]:
    """Return pictures side by side on white, aligned at the top, each centred in its width."""
    sheet = np.full((max(map(len, pictures)) + GAP, sum(widths), 3), 255, np.uint8)
    for number, picture in enumerate(pictures):
        left = sum(widths[:number]) + (widths[number] - picture.shape[1]) // 2
        sheet[: picture.shape[0], left : left + picture.shape[1]] = picture
    return sheet
