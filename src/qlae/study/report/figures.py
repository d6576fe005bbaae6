"""Draw what the latents of a study's models encode: the paper's figures "latent interventions" and "NMI heatmaps".

- *interventions* follow Figure 4 and the appendix "Qualitative Results": decoded interpolations of each latent over its
  range, above NMI heatmaps, for QLAE (left) and the prior method with the highest InfoM (right).
- *codes* show the same of QLAE by the values of its codebooks, and what lies between two of them (Section 5).
- *nmi* follows Figure 3: the heatmaps of AE, β-TCVAE and QLAE side by side.

The paper's figures leave VQ-VAE out, although it is the prior method with the highest InfoM on Shapes3D: its codes have
no range to interpolate. Here it can be included. Each model is represented by its run with the median InfoM.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from ...data.pictures import to_colours
from ...metrics import count_informative
from ...metrics.heatmap import nmi_figure
from ...observations import described_observations
from ...published import PRIOR
from ...report.image_pictures import measure_label_rise, plot_interventions, plot_strips
from ...scoring.latent_labels import LatentLabels
from .summary import Group, Summary

DPI = 140
GAP = 24  # pixels between pictures
NUM_BLOCKS = 3  # number of samples whose interventions are shown, as in the paper
MIN_STEPS, MAX_STEPS = 4, 6  # steps shown per latent, the same number for both models
WIDTH = 6.0  # inches for the tiles of one model
MIN_PITCH, MAX_PITCH = 0.36, 0.6  # inches from one tile to the next
NMI_MODELS = ("ae", "beta-tcvae", "qlae")  # of the paper's Figure 3

NMI_CAPTION = (
    "the normalized mutual information of each source with each latent; inactive latents are red, uninformative ones "
    "grey."
)

Pixels = NDArray[np.uint8]  # (h, w, 3)


@dataclass(frozen=True)
class Sheet:
    """A figure of a study's report."""

    name: str  # of the file, without its suffix
    pixels: Pixels
    caption: str


def draw_sheets(summary: Summary, data: str, *, with_vq_vae: bool = False) -> list[Sheet]:
    """Draw the figures of one data set, those that the study has the models and pictures for.

    Args:
        summary: the results of the study.
        data: label of the data set.
        with_vq_vae: whether VQ-VAE counts as a prior method.
    """
    groups = groups_to_compare(summary, data, with_vq_vae=with_vq_vae)
    left_out = not with_vq_vae and (data, "vq-vae") in summary.groups
    sheets = [
        (
            f"interventions-{data}",
            draw_sheet(summary, data, with_vq_vae=with_vq_vae),
            f"{data}: {' and '.join(group.model for group in groups)}."
            + (" VQ-VAE is left out, as in the paper." if left_out else "")
            + " Above, one latent at a time moves through its range (one column per latent, one block per sample)."
            + (f" Below, {NMI_CAPTION}" if all(group.has_sources for group in groups) else ""),
        ),
        (
            f"codes-{data}",
            draw_codes(summary, data),
            f"{data}: the codes of qlae. Left, one latent at a time takes each value of its codebook. Right, what lies "
            "between two neighbouring codes of each latent: of all neighbours, those whose images differ most.",
        ),
        (f"nmi-{data}", draw_heatmaps(summary, data), f"{data}: {NMI_CAPTION}"),
    ]
    return [Sheet(name, pixels, caption) for name, pixels, caption in sheets if pixels is not None]


def groups_to_compare(summary: Summary, data: str, *, with_vq_vae: bool = False) -> list[Group]:
    """Return QLAE and the prior method with the highest mean InfoM (or agreement), as far as the study has them."""
    ours = [summary.groups[data, "qlae"]] if (data, "qlae") in summary.groups else []
    models = [model for model in PRIOR if with_vq_vae or model != "vq-vae"]
    prior = [summary.groups[data, model] for model in models if (data, model) in summary.groups]
    scored = [(group, group.cell(group.quality)) for group in prior]
    scored = [(group, cell) for group, cell in scored if cell or not group.has_sources]  # one run has no agreement
    best = max(scored, key=lambda pair: pair[1].mean if pair[1] else 0.0, default=None)
    return ours + ([best[0]] if best else [])


def draw_sheet(summary: Summary, data: str, *, with_vq_vae: bool = False) -> Pixels | None:
    """Draw the interventions and heatmaps of QLAE and the best prior method.

    Returns:
        The picture; None if the study has neither, or the data set does not consist of images.
    """
    groups = groups_to_compare(summary, data, with_vq_vae=with_vq_vae)
    if not groups or not _has_tiles(groups[0]):
        return None
    runs = [_represent(group) for group in groups]
    num_blocks = min(len(run.blocks) for run in runs)
    runs = [replace(run, blocks=run.blocks[:num_blocks]) for run in runs]
    num_steps = max(MIN_STEPS, min(MAX_STEPS, *(run.blocks.shape[1] for run in runs)))
    pitch = min(MAX_PITCH, max(MIN_PITCH, WIDTH / max(run.blocks.shape[2] for run in runs)))
    rise = max(measure_label_rise(run.labels) for run in runs)
    above = [figure_pixels(_draw_interventions(run, num_steps, pitch, rise)) for run in runs]
    if not all("nmi" in run.scores for run in runs):  # data without sources
        return side_by_side(above)
    below = [figure_pixels(_draw_heatmap(run)) for run in runs]
    widths = [max(pair[0].shape[1], pair[1].shape[1]) + GAP for pair in zip(above, below, strict=True)]
    return np.concatenate([_row(above, widths), _row(below, widths)])


def draw_codes(summary: Summary, data: str) -> Pixels | None:
    """Draw QLAE's interventions by code and what lies between two codes.

    Returns:
        The picture; None if the study has no QLAE, or an earlier version evaluated it, which stored no strips.
    """
    if (data, "qlae") not in summary.groups or not _has_tiles(summary.groups[data, "qlae"]):
        return None
    run = _represent(summary.groups[data, "qlae"], by_code=True)
    if run.strips is None:
        return None
    pitch = min(MAX_PITCH, max(MIN_PITCH, WIDTH / run.blocks.shape[2]))
    strips = plot_strips(*run.strips, run.labels, f"{run.title}: between two codes of a latent")
    rise = measure_label_rise(run.labels)
    figures = [_draw_interventions(run, MAX_STEPS, pitch, rise), *([] if strips is None else [strips])]
    return side_by_side([figure_pixels(figure) for figure in figures])


def draw_heatmaps(summary: Summary, data: str) -> Pixels | None:
    """Draw the NMI of AE, β-TCVAE and QLAE side by side; None if the study has fewer than two of them."""
    groups = [summary.groups[data, model] for model in NMI_MODELS if (data, model) in summary.groups]
    if len(groups) < 2 or not all(group.has_sources for group in groups):
        return None
    return side_by_side([figure_pixels(_draw_heatmap(_represent(group), all_scores=True)) for group in groups])


@dataclass(frozen=True)
class _ShownRun:
    """The run that represents a model."""

    title: str
    steps: str  # a description of the steps of the blocks
    results: dict[str, Any]
    blocks: Pixels  # (blocks, steps, num_latents, r, r, 3)
    labels: LatentLabels
    strips: tuple[Pixels, NDArray[np.integer]] | None  # images (num_latents, steps, r, r, 3) and their codes

    @property
    def scores(self) -> dict[str, Any]:
        scores: dict[str, Any] = self.results["averaged"]
        return scores


def _has_tiles(group: Group) -> bool:
    """Return whether the data of a group are images, which can be shown as small pictures."""
    return bool(described_observations(group.results["data"]).traits.load("drawing").has_tiles)


def _represent(group: Group, *, by_code: bool = False) -> _ShownRun:
    """Return the run that represents a group (`Group.median_index`), with interpolations or, by code, interventions.

    Evaluations of earlier versions stored no interpolations of codes, so their interventions are shown.
    """
    run = group.median_run
    results = run.results
    arrays = run.arrays(run.pictures_path, ["interventions"])
    observations = run.observations
    if _has_tiles(group):
        arrays = {n: to_colours(array, observations) if array.ndim >= 4 else array for n, array in arrays.items()}
    steps = arrays.get("intervention_steps", np.empty(0, int))
    is_even = "interpolations" in arrays or np.issubdtype(steps.dtype, np.floating)
    by_code = by_code or not is_even
    name = "interventions" if by_code or "interpolations" not in arrays else "interpolations"
    blocks = arrays[name][:NUM_BLOCKS]
    return _ShownRun(
        title=f"{group.model} on {group.data}",
        steps="by code" if by_code else "even steps",
        results=results,
        blocks=blocks,
        labels=LatentLabels.from_results(results, blocks.shape[2]),
        strips=(arrays["strips"], arrays["strip_codes"]) if "strips" in arrays else None,
    )


def _draw_interventions(run: _ShownRun, num_steps: int, pitch: float, rise: float) -> Figure:
    """Draw the interventions, reduced to ``num_steps`` steps from end to end."""
    steps = run.blocks.shape[1]
    rows = np.unique(np.linspace(0, steps - 1, min(steps, num_steps)).round().astype(int))
    reduced = f", {len(rows)} of {steps}" if len(rows) < steps else ""
    title = f"{run.title}, seed {run.results['seed']}: {run.steps}{reduced}"
    return plot_interventions(run.blocks[:, rows], run.labels, title, pitch=pitch, rise=rise)


def _draw_heatmap(run: _ShownRun, *, all_scores: bool = False) -> Figure:
    if "nmi" not in run.scores:
        raise ValueError(f"the results of {run.title} have no matrix of NMI; `qlae evaluate` computes it")
    scores = f"InfoM {run.scores['infom']:.2f} ({count_informative(run.scores)} informative)"
    scores += f"  InfoC {run.scores['infoc']:.2f}" if all_scores else ""
    return nmi_figure(
        np.asarray(run.scores["nmi"], dtype=float),
        active=np.asarray(run.scores["active_latents"]),
        informative=np.asarray(run.scores["informative_latents"]),
        source_names=run.results["data"]["source_names"],
        title=f"{run.title}\n{scores}",
    )


def figure_pixels(figure: Figure) -> Pixels:
    """Return a figure as pixels of shape (h, w, 3)."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    return np.asarray(Image.open(file).convert("RGB"))


def side_by_side(pictures: Sequence[Pixels]) -> Pixels:
    """Return pictures side by side on white, aligned at the top."""
    return _row(pictures, [picture.shape[1] + GAP for picture in pictures])


def _row(pictures: Sequence[Pixels], widths: Sequence[int]) -> Pixels:
    """Return pictures side by side on white, aligned at the top, each centred in its width."""
    sheet = np.full((max(map(len, pictures)) + GAP, sum(widths), 3), 255, np.uint8)
    for number, picture in enumerate(pictures):
        left = sum(widths[:number]) + (widths[number] - picture.shape[1]) // 2
        sheet[: picture.shape[0], left : left + picture.shape[1]] = picture
    return sheet
