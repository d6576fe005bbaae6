"""What vectors and series have in common: they travel as numbers in the units of the data; uploads are text."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .numeric_text import NumericText, parse_numbers
from .view import MAX_UPLOAD_BYTES, Examples, Upload, View

MIN_TEXT_BYTES = 2**22  # that can be uploaded, whatever the model
BYTES_PER_NUMBER = 40
NUM_NAMED = 5  # features that a message names
MAX_NAME = 40  # characters of each


class NumberView(View):
    """Shows observations whose last axis has named features."""

    def describe(self, examples: Examples) -> dict[str, Any]:
        """Return the features: their names, mean and standard deviation, and their range over the examples."""
        rows = examples().reshape(-1, self.observations.num_features).astype(np.float64)
        return self._words() | {
            "type": self.observations.dtype,
            "names": list(self.observations.names),
            "mean": list(self.observations.offset),
            "deviation": list(self.observations.scale),
            "low": _finite(rows.min(0)),
            "high": _finite(rows.max(0)),
        }

    @property
    def max_upload_bytes(self) -> int:
        return min(MAX_UPLOAD_BYTES, max(MIN_TEXT_BYTES, BYTES_PER_NUMBER * self.observations.num_entries))

    def to_page(self, arrays: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(arrays, dtype=np.dtype(self.observations.dtype).newbyteorder("<"))

    def read(self, content: bytes) -> Upload:
        text = parse_numbers(content, self.observations.names)
        rows, note = self._pick(text)
        with np.errstate(over="ignore"):
            observation = rows.astype(self.observations.dtype).reshape(self.observations.shape)
        if not np.isfinite(observation).all():
            raise ValueError(f"a number is too large for {self.observations.dtype}")
        return Upload(observation, note)

    def _pick(self, text: NumericText) -> tuple[NDArray[np.float64], str]:
        """Return the numbers of one observation, and a note for the user."""
        raise NotImplementedError

    def _columns(self, text: NumericText) -> NDArray[np.float64]:
        """Return the columns of the features (n, num_features), by their names if the text has names."""
        names, many = self.observations.names, self._feature_word
        if text.names is None:
            if text.rows.shape[1] != len(names):
                raise ValueError(
                    f"this model takes {len(names):,} {many} ({self._some(names)}), got {text.rows.shape[1]:,}; give "
                    "one number for each, in this order, or a first line that names the columns"
                )
            return text.rows
        missing = [name for name in names if name not in text.names]
        if missing:
            raise ValueError(
                f"this model takes {len(names):,} {many}, and {self._some(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} missing among the columns {self._some(text.names)}"
            )
        return text.rows[:, [text.names.index(name) for name in names]]

    @property
    def _feature_word(self) -> str:
        return "feature" if self.observations.num_features == 1 else "features"

    @staticmethod
    def _some(names: Any) -> str:
        """Return the first names in words."""
        shown = [name.encode(errors="backslashreplace").decode() for name in list(names)[:NUM_NAMED]]
        few = ", ".join(name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…" for name in shown)
        return few if len(names) <= NUM_NAMED else f"{few}, … ({len(names):,} in all)"


def _finite(numbers: NDArray[np.float64]) -> list[float]:
    """Return plain numbers; reconstructions may be infinite where a model has diverged."""
    most = float(np.finfo(np.float32).max)
    return [float(number) for number in np.nan_to_num(numbers, posinf=most, neginf=-most)]
