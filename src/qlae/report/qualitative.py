"""What the latents mean: decoded interventions above NMI heatmaps, QLAE left, the best prior method right.

As in the paper's appendix "Qualitative Results". A model stands with its run of median InfoM.
"""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from ..metrics.heatmap import nmi_figure
from .aggregate import Group, Summary
from .pictures import interventions, label_rise, meanings
from .published import PRIOR

DPI = 140
GAP = 24  # pixels between pictures
NUM_BLOCKS = 2  # samples whose interventions are shown
MIN_STEPS, MAX_STEPS = 4, 6  # shown, as many of each model as the one with fewer has; pictures of a run show them all
WIDTH = 6.0  # inches for the tiles of a model
MIN_PITCH, MAX_PITCH = 0.36, 0.6  # inches from one tile to the next


def compared(summary: Summary, data: str) -> list[Group]:
    """QLAE, and the prior method with the highest mean InfoM, of those that the study has."""
    ours = [summary.groups[data, "qlae"]] if (data, "qlae") in summary.groups else []
    prior = [summary.groups[data, model] for model in PRIOR if (data, model) in summary.groups]
    scored = [(group, group.cell("infom")) for group in prior]
    best = max(((group, cell.mean) for group, cell in scored if cell), key=lambda pair: pair[1], default=None)
    return ours + ([best[0]] if best else [])


def qualitative(summary: Summary, data: str) -> NDArray[np.uint8] | None:
    """The sheet of one data set (h, w, 3); None where the study has neither model."""
    shown = [_chosen(group) for group in compared(summary, data)]
    if not shown:
        return None
    num_steps = max(MIN_STEPS, min(MAX_STEPS, *(one.blocks.shape[1] for one in shown)))
    pitch = min(MAX_PITCH, max(MIN_PITCH, WIDTH / max(one.blocks.shape[2] for one in shown)))
    rise = max(label_rise(one.meanings) for one in shown)
    above = [rendered(_interventions(one, num_steps, pitch, rise)) for one in shown]
    below = [rendered(_heatmap(one)) for one in shown]
    widths = [max(pair[0].shape[1], pair[1].shape[1]) + GAP for pair in zip(above, below, strict=True)]
    return np.concatenate([_row(above, widths), _row(below, widths)])


@dataclass(frozen=True)
class _Chosen:
    """The run of a model that is shown."""

    title: str
    results: dict[str, Any]
    blocks: NDArray[np.uint8]  # (blocks, steps, num_latents, r, r, 3)
    meanings: list[str]

    @property
    def scores(self) -> dict[str, Any]:
        scores: dict[str, Any] = self.results["averaged"]
        return scores


def _chosen(group: Group) -> _Chosen:
    number = group.middle()
    run, results = group.runs[number], group.results[number]
    blocks = run.arrays(run.pictures_path)["interventions"][:NUM_BLOCKS]
    return _Chosen(f"{group.model} on {group.data}", results, blocks, meanings(results, blocks.shape[2]))


def _interventions(one: _Chosen, num_steps: int, pitch: float, rise: float) -> Figure:
    """The interventions, thinned to so many steps from end to end."""
    steps = one.blocks.shape[1]
    rows = np.unique(np.linspace(0, steps - 1, min(steps, num_steps)).round().astype(int))
    thinned = f", {len(rows)} of {steps} steps" if len(rows) < steps else ""
    active = np.asarray(one.scores["active_latents"])
    title = f"{one.title}, seed {one.results['seed']}{thinned}"
    return interventions(one.blocks[:, rows], active, one.meanings, title, pitch=pitch, rise=rise)


def _heatmap(one: _Chosen) -> Figure:
    return nmi_figure(
        np.asarray(one.scores["nmi"]),
        active=np.asarray(one.scores["active_latents"]),
        informative=np.asarray(one.scores["informative_latents"]),
        source_names=one.results["data"]["source_names"],
        title=f"{one.title}: InfoM {one.scores['infom']:.2f}",
    )


def rendered(figure: Figure) -> NDArray[np.uint8]:
    """A figure as pixels (h, w, 3)."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    return np.asarray(Image.open(file).convert("RGB"))


def _row(pictures: list[NDArray[np.uint8]], widths: list[int]) -> NDArray[np.uint8]:
    """Pictures side by side on white, level at the top, each in the middle of its width."""
    sheet = np.full((max(map(len, pictures)) + GAP, sum(widths), 3), 255, np.uint8)
    for number, picture in enumerate(pictures):
        left = sum(widths[:number]) + (widths[number] - picture.shape[1]) // 2
        sheet[: picture.shape[0], left : left + picture.shape[1]] = picture
    return sheet
