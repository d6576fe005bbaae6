"""What the latents mean: decoded interventions above NMI heatmaps, QLAE left, the best prior method right.

As in the paper's appendix "Qualitative Results". A model stands with its run of median InfoM.
"""

import io

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from ..metrics.heatmap import nmi_figure
from .aggregate import Group, Summary
from .pictures import interventions, meanings
from .published import PRIOR

DPI = 200
WIDTH, HEATMAP_WIDTH = 900, 640  # pixels
GAP = 24  # pixels between pictures
NUM_BLOCKS = 2  # samples whose interventions are shown


def compared(summary: Summary, data: str) -> list[Group]:
    """QLAE, and the prior method with the highest mean InfoM, of those that the study has."""
    ours = [summary.groups[data, "qlae"]] if (data, "qlae") in summary.groups else []
    prior = [summary.groups[data, model] for model in PRIOR if (data, model) in summary.groups]
    scored = [(group, group.cell("infom")) for group in prior]
    best = max(((group, cell.mean) for group, cell in scored if cell), key=lambda pair: pair[1], default=None)
    return ours + ([best[0]] if best else [])


def qualitative(summary: Summary, data: str) -> NDArray[np.uint8] | None:
    """The sheet of one data set (h, w, 3); None where the study has neither model."""
    columns = [_column(group) for group in compared(summary, data)]
    if not columns:
        return None
    height = max(len(column) for column in columns)
    return np.concatenate([_padded(column, height, column.shape[1] + GAP) for column in columns], axis=1)


def _column(group: Group) -> NDArray[np.uint8]:
    number = group.middle()
    run, results = group.runs[number], group.results[number]
    scores = results["averaged"]
    blocks = run.arrays(run.pictures_path)["interventions"][:NUM_BLOCKS]
    active = np.asarray(scores["active_latents"])
    title = f"{group.model} on {group.data}"
    above = interventions(blocks, active, meanings(results, len(active)), title)
    above.suptitle(f"{title}, seed {results['seed']}", fontsize=11)
    below = nmi_figure(
        np.asarray(scores["nmi"]),
        active=active,
        informative=np.asarray(scores["informative_latents"]),
        source_names=results["data"]["source_names"],
        title=f"{title}: InfoM {scores['infom']:.2f}",
    )
    pictures = [rendered(above, WIDTH), rendered(below, HEATMAP_WIDTH)]
    return np.concatenate([_padded(picture, len(picture) + GAP, WIDTH) for picture in pictures])


def rendered(figure: Figure, width: int) -> NDArray[np.uint8]:
    """A figure as pixels (h, width, 3)."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    image = Image.open(file).convert("RGB")
    return np.asarray(image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS))


def _padded(picture: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """The picture at the top and in the middle of a white sheet."""
    sheet = np.full((height, width, 3), 255, np.uint8)
    left = (width - picture.shape[1]) // 2
    sheet[: picture.shape[0], left : left + picture.shape[1]] = picture
    return sheet
