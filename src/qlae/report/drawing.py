"""What the pictures of every kind of observations start from."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..observations import Observations
from .labels import LatentLabels


class Drawing(ABC):
    """Draws observations.

    Args:
        observations: their description.
        labels: of the latents.

    Attributes:
        has_tiles: whether observations can be shown as small pictures.
    """

    has_tiles: ClassVar[bool] = False

    def __init__(self, observations: Observations, labels: LatentLabels):
        self.observations = observations
        self.labels = labels

    @abstractmethod
    def draw(self, arrays: dict[str, NDArray[Any]], scores: dict[str, Any], title: str) -> dict[str, Figure]:
        """Return the pictures by name, from the arrays of ``pictures.npz`` and the scores of the averaged weights."""
