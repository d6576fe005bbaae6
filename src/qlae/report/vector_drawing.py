"""Pictures of vectors: heatmaps of features, in standard deviations from their mean."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..metrics.heatmap import escape_math
from .drawing import Drawing
from .panels import LABEL_SIZE, TICK_SIZE, TITLE_SIZE, latent_rows, step_text

COLOURS = "RdBu_r"
MAX_FEATURES = 32  # shown; of more features, those that change most
MAX_NAME = 24  # characters of a feature's name
GAP = 1  # columns between latents


class VectorDrawing(Drawing):
    """Draws vectors."""

    def draw(self, arrays: dict[str, NDArray[Any]], scores: dict[str, Any], title: str) -> dict[str, Figure]:
        """Return the pictures by name, from the arrays of ``pictures.npz`` and the scores of the averaged weights."""
        figures = {
            "reconstructions": self._reconstructions(arrays, scores.get("r2_features"), title),
            "interventions": self._interventions(
                arrays["interventions"],
                arrays["intervention_steps"],
                f"{title}: features while one latent at a time moves through its range, left to right",
            ),
        }
        if "interpolations" in arrays:
            heading = f"{title}: features while one latent at a time is interpolated over its range, left to right"
            figures["interpolations"] = self._interventions(
                arrays["interpolations"], arrays["interpolation_steps"], heading
            )
        if "generated" in arrays:
            figures["generated"] = self._generated(arrays["generated"], title)
        return figures

    def _standardised(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        values: NDArray[np.float64] = (vectors - np.asarray(self.observations.offset)) / np.asarray(
            self.observations.scale
        )
        return values

    def _names(self, features: NDArray[np.intp]) -> list[str]:
        names = [self.observations.names[i] for i in features]
        return [escape_math(name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…") for name in names]

    def _interventions(self, blocks: NDArray[Any], steps: NDArray[Any], title: str) -> Figure:
        """Draw decoded features (samples, steps, latents, d): a panel per sample, with a heatmap per latent."""
        values = self._standardised(blocks)
        features = most_changed(np.ptp(values, axis=1).max((0, 1)))
        values = values[..., features]
        if len(features) < blocks.shape[-1]:
            title += f" (the {len(features)} features that change most)"
        bound = _bound(values)
        num_steps, num_latents = steps.shape
        pitch = num_steps + GAP
        height = max(1.0, 0.16 * len(features))
        figure, panels = latent_rows(self.labels, len(values), title, width=0.9, height=height, pitch=pitch)
        for row, panel in enumerate(panels):
            sheet = np.full((len(features), num_latents * pitch), np.nan)
            for latent in range(num_latents):
                sheet[:, latent * pitch : latent * pitch + num_steps] = values[row, :, latent].T
            extent = (0, sheet.shape[1], len(features) - 0.5, -0.5)
            image = panel.imshow(sheet, cmap=COLOURS, vmin=-bound, vmax=bound, aspect="auto", extent=extent)
            panel.set_yticks(range(len(features)), self._names(features))
            panel.set_ylabel(f"sample {row + 1}", fontsize=LABEL_SIZE)
        places = [latent * pitch + place + 0.5 for latent in range(num_latents) for place in (0, num_steps - 1)]
        panels[-1].set_xticks(places, [step_text(step) for step in steps[[0, -1]].T.ravel().tolist()])
        _colour_bar(figure, image, panels)
        return figure

    def _reconstructions(self, arrays: dict[str, NDArray[Any]], shares: Any, title: str) -> Figure:
        """Draw originals and reconstructions as two heatmaps, and R² of each feature as bars beside them."""
        originals, decoded = self._standardised(arrays["originals"]), self._standardised(arrays["reconstructions"])
        features = most_changed(np.ptp(originals, axis=0))
        bound = _bound(originals)
        size = 1.8 + 0.5 * len(originals) + 2.0, max(2.2, 0.9 + 0.18 * len(features))
        figure = Figure(figsize=size, layout="constrained")
        few = f" (the {len(features)} features that vary most)" if len(features) < originals.shape[1] else ""
        figure.suptitle(f"{escape_math(title)}: reconstructions{few}", fontsize=TITLE_SIZE)
        axes = figure.subplots(1, 3, sharey=True, width_ratios=(2, 2, 1.3))
        for panel, values, heading in zip(axes, (originals, decoded), ("original", "decoded"), strict=False):
            image = panel.imshow(values[:, features].T, cmap=COLOURS, vmin=-bound, vmax=bound, aspect="auto")
            panel.set_title(heading, fontsize=LABEL_SIZE)
            panel.set_xlabel("samples", fontsize=LABEL_SIZE)
            panel.set_xticks([])
        axes[0].set_yticks(range(len(features)), self._names(features))
        _colour_bar(figure, image, list(axes[:2]))
        self._shares(axes[2], features, shares)
        for panel in axes:
            panel.tick_params(labelsize=TICK_SIZE, length=2)
        return figure

    def _shares(self, panel: Any, features: NDArray[np.intp], shares: Any) -> None:
        """Draw R² of features as bars; those of features that do not vary are absent."""
        known = [(place, shares[i]) for place, i in enumerate(features) if shares and shares[i] is not None]
        if known:
            places, values = zip(*known, strict=True)
            panel.barh(places, np.clip(values, -0.05, 1), color="#2b6cb0")
        panel.set_xlim(-0.05, 1)
        panel.axvline(0, color="black", linewidth=0.5)
        panel.set_title("R² over the sample", fontsize=LABEL_SIZE)

    def _generated(self, vectors: NDArray[Any], title: str) -> Figure:
        values = self._standardised(vectors)
        features = most_changed(np.ptp(values, axis=0))
        figure = Figure(figsize=(7.0, max(2.2, 0.9 + 0.18 * len(features))), layout="constrained")
        figure.suptitle(f"{escape_math(title)}: decoded from random latents", fontsize=TITLE_SIZE)
        panel = figure.subplots()
        bound = _bound(values)
        image = panel.imshow(values[:, features].T, cmap=COLOURS, vmin=-bound, vmax=bound, aspect="auto")
        panel.set_xlabel("samples", fontsize=LABEL_SIZE)
        panel.set_yticks(range(len(features)), self._names(features))
        panel.tick_params(labelsize=TICK_SIZE, length=2)
        _colour_bar(figure, image, [panel])
        return figure


def most_changed(changes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the features that change most, in their own order.

    >>> most_changed(np.arange(40.0))[:3].tolist()
    [8, 9, 10]
    """
    return np.sort(np.argsort(-changes, kind="stable")[:MAX_FEATURES])


def _bound(values: NDArray[Any]) -> float:
    """Return the value at the end of the colour scale; outliers are beyond it."""
    return max(1e-6, float(np.quantile(np.abs(values), 0.99)))


def _colour_bar(figure: Figure, image: Any, axes: Any) -> None:
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.01, aspect=30)
    bar.set_label("standard deviations from the mean", fontsize=TICK_SIZE)
    bar.ax.tick_params(labelsize=TICK_SIZE, length=2)
