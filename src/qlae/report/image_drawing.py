"""Pictures of images: tiles side by side."""

from typing import Any

from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..data.colours import to_colours
from .drawing import Drawing
from .pictures import plot_generated, plot_interventions, plot_reconstructions
from .strips import plot_strips


class ImageDrawing(Drawing):
    """Draws images."""

    has_tiles = True

    def draw(self, arrays: dict[str, NDArray[Any]], scores: dict[str, Any], title: str) -> dict[str, Figure]:
        """Return the pictures by name, from the arrays of ``pictures.npz``.

        Evaluations of earlier versions stored no interpolations and no strips.
        """
        images = {name: self.tiles(array) for name, array in arrays.items() if array.ndim >= 4}
        figures = {
            "reconstructions": plot_reconstructions(images["originals"], images["reconstructions"], title),
            "interventions": self._interventions(
                images["interventions"], f"{title}: one latent moved at a time through its range, top to bottom"
            ),
        }
        if "interpolations" in images:
            heading = f"{title}: one latent interpolated at a time over its range, top to bottom"
            figures["interpolations"] = self._interventions(images["interpolations"], heading)
        if "strips" in images:
            strips = plot_strips(
                images["strips"],
                arrays["strip_codes"],
                self.labels.meanings,
                f"{title}: between two codes of a latent",
                informative=self.labels.informative,
            )
            figures |= {} if strips is None else {"between-codes": strips}
        if "generated" in images:
            figures["generated"] = plot_generated(images["generated"], title)
        return figures

    def tiles(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return images (…, h, w, c) as they are shown, (…, h, w, 3) bytes."""
        return to_colours(images, self.observations)

    def _interventions(self, blocks: NDArray[Any], title: str) -> Figure:
        labels = self.labels
        return plot_interventions(blocks, labels.active, labels.meanings, title, informative=labels.informative)
