"""Draw what the latents of a study's models encode: the paper's figures "latent interventions" and "NMI heatmaps".

- *interventions* follow Figure 4 and the appendix "Qualitative Results": decoded interpolations of each latent over its
  range, above NMI heatmaps, for QLAE (left) and the prior method with the highest InfoM (right).
- *codes* show the same of QLAE by the values of its codebooks, and the transition between two of them (Section 5).
- *nmi* follows Figure 3: the heatmaps of AE, β-TCVAE and QLAE side by side.

The paper's figures leave VQ-VAE out, because its codes have no range to interpolate. Here it can be included. Where the
paper compares with another method than the best one here, both are shown. Each model is represented by its run of
median InfoM, with the weights whose scores fill the tables.
"""

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from ...data.pictures import to_colours
from ...metrics import count_informative
from ...metrics.heatmap import nmi_figure
from ...observations import described_observations
from ...paper_tables import PRIOR, published_results
from ...report.image_pictures import measure_label_rise, plot_interventions, plot_strips
from ...runs.directory import Run
from ...scoring.latent_labels import LatentLabels
from .summary import Summary

DPI = 140
GAP = 24  # pixels between pictures
NUM_BLOCKS = 3  # number of samples whose interventions are shown, as in the paper
MIN_STEPS, MAX_STEPS = 4, 6  # steps shown per latent, the same number for both models
WIDTH = 9.0  # inches for the tiles of one model
MIN_PITCH, MAX_PITCH = 0.5, 0.6  # inches from one tile to the next: at least the 64 pixels of the paper's images
PICTURES_FILE = "pictures.npz"
NMI_MODELS = ("ae", "beta-tcvae", "qlae")  # of the paper's Figure 3

NMI_CAPTION = (
    "the normalized mutual information of each source with each latent; inactive latents are red, uninformative ones "
    "grey."
)

Pixels = NDArray[np.uint8]  # (h, w, 3)


def draw_sheets(summary: Summary, data: str, *, with_vq_vae: bool = False) -> list[tuple[str, Pixels, str]]:
    """Draw the figures of one data set, those that the study has the models and pictures for.

    Returns:
        The name of the file without its suffix, the picture and its caption, for each figure.
    """
    models = models_to_compare(summary, data, with_vq_vae=with_vq_vae)
    left_out = not with_vq_vae and (data, "vq-vae") in summary.groups
    added = len(models) > 2
    caption = (
        f"{data}: {', '.join(models[:-1]) + ' and ' * (len(models) > 1)}{''.join(models[-1:])}."
        + (f" {models[-1]} is the method of the paper's figure." if added else "")
        + (" VQ-VAE is left out, as in the paper." if left_out else "")
        + " Above, one latent at a time moves through its range (one column per latent, one block per sample)."
        + (f" Below, {NMI_CAPTION}" if summary.has_sources(data) else "")
    )
    about_codes = (
        f"{data}: the codes of qlae. Left, one latent at a time takes each value of its codebook. Right, what lies "
        "between two neighbouring codes of each latent: of all neighbours, those whose images differ most."
    )
    figures: tuple[tuple[str, Callable[[], Pixels | None], str], ...] = (
        ("interventions", lambda: draw_sheet(summary, data, with_vq_vae=with_vq_vae), caption),
        ("codes", lambda: draw_codes(summary, data), about_codes),
        ("nmi", lambda: draw_heatmaps(summary, data), f"{data}: {NMI_CAPTION}"),
    )
    sheets = []
    for name, draw, text in figures:
        try:
            pixels = draw()
        except ValueError as error:  # the pictures of a run are missing
            warnings.warn(f"no {name}-{data}.png: {error}", stacklevel=2)
            continue
        sheets += [(f"{name}-{data}", pixels, text)] if pixels is not None else []
    return sheets


def models_to_compare(summary: Summary, data: str, *, with_vq_vae: bool = False) -> list[str]:
    """Return QLAE and the prior method with the highest mean InfoM (or agreement), as far as the study has them.

    If the paper's figure of this data set compares QLAE with another method, which has the highest InfoM there, it is
    the third, unless its runs have no pictures.
    """
    cells = {
        model: summary.cell(data, model, summary.quality(data))
        for model in PRIOR
        if (data, model) in summary.groups and (with_vq_vae or model != "vq-vae")
    }
    if summary.has_sources(data):  # without, a single run has no agreement
        cells = {model: cell for model, cell in cells.items() if cell}
    best = max(cells, key=lambda model: cell.mean if (cell := cells[model]) else 0.0, default=None)
    models = ["qlae"] * ((data, "qlae") in summary.groups) + ([best] if best else [])
    published = {
        model: cell.mean
        for (name, model, score), cell in published_results().items()
        if (name, score) == (data, "infom") and model in PRIOR and model != "vq-vae"
    }
    papers = max(published, key=lambda model: published[model], default=None)
    if (
        papers in cells
        and papers not in models
        and summary.median_run(data, papers, PICTURES_FILE).pictures_path.is_file()
    ):
        models.append(papers)
    return models


def draw_sheet(summary: Summary, data: str, *, with_vq_vae: bool = False) -> Pixels | None:
    """Draw QLAE and the best prior method; None if there is neither, or the data set does not consist of images."""
    models = models_to_compare(summary, data, with_vq_vae=with_vq_vae)
    if not models or not _has_tiles(summary, data):
        return None
    runs = [_ShownRun(summary, data, model) for model in models]
    num_blocks = min(len(run.blocks) for run in runs)
    num_steps = max(MIN_STEPS, min(MAX_STEPS, *(run.blocks.shape[1] for run in runs)))
    pitch, rise = min(run.pitch for run in runs), max(measure_label_rise(run.labels) for run in runs)
    above = [run.draw_interventions(num_blocks, num_steps, pitch, rise) for run in runs]
    if not summary.has_sources(data):
        return side_by_side(above)
    below = [draw_heatmap(run.results, run.title, run.weights) for run in runs]
    widths = [max(pair[0].shape[1], pair[1].shape[1]) + GAP for pair in zip(above, below, strict=True)]
    return np.concatenate([side_by_side(above, widths), side_by_side(below, widths)])


def draw_codes(summary: Summary, data: str) -> Pixels | None:
    """Draw QLAE's interventions by code and the transitions between codes; None if no QLAE has stored both."""
    if (data, "qlae") not in summary.groups or not _has_tiles(summary, data):
        return None
    run = _ShownRun(summary, data, "qlae", by_code=True)
    if "strips" not in run.arrays:
        return None
    title = f"{run.title}: between two codes of a latent"
    strips = plot_strips(run.arrays["strips"], run.arrays["strip_codes"], run.labels, title)
    above = run.draw_interventions(NUM_BLOCKS, MAX_STEPS, run.pitch, measure_label_rise(run.labels))
    return side_by_side([above, *([] if strips is None else [figure_pixels(strips)])])


def draw_heatmaps(summary: Summary, data: str) -> Pixels | None:
    """Draw the NMI of AE, β-TCVAE and QLAE side by side; None if the study has fewer than two of them."""
    models = [model for model in NMI_MODELS if (data, model) in summary.groups]
    if len(models) < 2 or not summary.has_sources(data):
        return None
    results = {f"{model} on {data}": summary.median_run(data, model).results for model in models}
    return side_by_side([draw_heatmap(one, title, summary.weights, with_infoc=True) for title, one in results.items()])


def draw_heatmap(results: Mapping[str, Any], title: str, weights: str, *, with_infoc: bool = False) -> Pixels:
    """Draw the NMI of sources and latents by the results of a run."""
    scores = results.get(weights) or {}
    if "nmi" not in scores:
        raise ValueError(f"the results of {title} have no matrix of NMI; `qlae evaluate` computes it")
    text = f"InfoM {scores['infom']:.2f} ({count_informative(scores)} informative)"
    text += f"  InfoC {scores['infoc']:.2f}" if with_infoc else ""
    figure = nmi_figure(
        np.asarray(scores["nmi"], dtype=float),
        active=np.asarray(scores["active_latents"]),
        informative=np.asarray(scores["informative_latents"]),
        source_names=results["data"]["source_names"],
        title=f"{title}, seed {results['seed']}\n{text}",
    )
    return figure_pixels(figure)


def _has_tiles(summary: Summary, data: str) -> bool:
    """Return whether a data set consists of images, which can be shown as small pictures."""
    return bool(described_observations(summary.data_descriptions[data]).traits.load("drawing").has_tiles)


class _ShownRun:
    """The run that represents a model, with interpolations or, by code, interventions.

    Models whose latents are no scalar codes have interventions only. ``blocks`` have the shape (blocks, steps,
    num_latents, …).
    """

    def __init__(self, summary: Summary, data: str, model: str, *, by_code: bool = False):
        run = summary.median_run(data, model, PICTURES_FILE)
        self.title, self.results, observations = f"{model} on {data}", run.results, run.observations
        arrays, self.weights = decoded_pictures(run, summary.weights)
        if _has_tiles(summary, data):
            arrays = {n: to_colours(array, observations) if array.ndim >= 4 else array for n, array in arrays.items()}
        has_even_steps = np.issubdtype(arrays.get("intervention_steps", np.empty(0, int)).dtype, np.floating)
        name = "interventions" if by_code or "interpolations" not in arrays else "interpolations"
        self.steps = "even steps" if name == "interpolations" or (has_even_steps and not by_code) else "by code"
        self.arrays, self.blocks = arrays, arrays[name][:NUM_BLOCKS]
        self.labels = LatentLabels.from_results(run.results, self.blocks.shape[2], self.weights)
        self.note = "" if self.weights == summary.weights else f" ({self.weights} weights)"

    @property
    def pitch(self) -> float:
        """The inches from one tile to the next."""
        return float(min(MAX_PITCH, max(MIN_PITCH, WIDTH / self.blocks.shape[2])))

    def draw_interventions(self, num_blocks: int, num_steps: int, pitch: float, rise: float) -> Pixels:
        """Draw the interventions, reduced to ``num_steps`` steps from end to end."""
        steps = self.blocks.shape[1]
        rows = np.unique(np.linspace(0, steps - 1, min(steps, num_steps)).round().astype(int))
        reduced = f", {len(rows)} of {steps}" if len(rows) < steps else ""
        title = f"{self.title}, seed {self.results['seed']}: {self.steps}{reduced}{self.note}"
        blocks = self.blocks[:num_blocks, rows]
        return figure_pixels(plot_interventions(blocks, self.labels, title, pitch=pitch, rise=rise))


def decoded_pictures(run: Run, weights: str) -> tuple[dict[str, NDArray[Any]], str]:
    """Return the arrays of ``pictures.npz`` for one set of weights, and the weights that they are of.

    The file has those of the averaged weights; others are decoded from the checkpoint of the run if it has one.
    """
    if weights == "averaged" or not (run.path / "checkpoint.json").is_file():
        return run.arrays(run.pictures_path, ["interventions"]), "averaged"
    from ...scoring.evaluation import decode_pictures  # torch

    return decode_pictures(run, weights), weights


def figure_pixels(figure: Figure) -> Pixels:
    """Return a figure as pixels of shape (h, w, 3)."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    return np.asarray(Image.open(file).convert("RGB"))


def side_by_side(pictures: Sequence[Pixels], widths: Sequence[int] = ()) -> Pixels:
    """Return pictures side by side on white, aligned at the top, each centred in its width."""
    widths = widths or [picture.shape[1] + GAP for picture in pictures]
    sheet = np.full((max(map(len, pictures)) + GAP, sum(widths), 3), 255, np.uint8)
    for number, picture in enumerate(pictures):
        left = sum(widths[:number]) + (widths[number] - picture.shape[1]) // 2
        sheet[: picture.shape[0], left : left + picture.shape[1]] = picture
    return sheet
