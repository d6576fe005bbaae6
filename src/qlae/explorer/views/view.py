"""``View``: how observations of one kind travel to the page, and how an upload becomes an observation."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ...observations import Observations

MAX_UPLOAD_BYTES = 2**24

#: Returns observations (n, *shape) that are spread over the evaluation sample.
Examples = Callable[[], NDArray[Any]]


class Upload(NamedTuple):
    """What a user uploaded."""

    observation: NDArray[Any]  # (*shape), in the type and the units of the data
    note: str  # what the user should know about it, such as which row of a table was taken; may be empty


class View(ABC):
    """Shows observations of one kind. The page has a class of the same kind that draws them.

    Args:
        observations: their description.
    """

    def __init__(self, observations: Observations):
        self.observations = observations

    @property
    def max_upload_bytes(self) -> int:
        """The size of the largest upload that is read."""
        return MAX_UPLOAD_BYTES

    @abstractmethod
    def describe(self, examples: Examples) -> dict[str, Any]:
        """Return what the page needs to draw observations, ready for JSON.

        Args:
            examples: observations from which ranges can be measured.
        """

    @abstractmethod
    def to_page(self, arrays: NDArray[Any]) -> NDArray[Any]:
        """Return observations (n, *shape) as the page draws them, one per row of the first axis."""

    @abstractmethod
    def read(self, content: bytes) -> Upload:
        """Return the observation in an uploaded file or text.

        Raises:
            ValueError: The content cannot be read, or is no observation of this model.
        """

    def save(self, drawn: NDArray[Any]) -> dict[str, Any]:
        """Return what ``to_page`` returned in a form for the script of a saved page."""
        return {"numbers": base64.b64encode(drawn.tobytes()).decode()}

    def _words(self) -> dict[str, Any]:
        traits = self.observations.traits
        return {"kind": traits.name, "one": traits.one, "many": traits.many, "size": self.observations.size}
