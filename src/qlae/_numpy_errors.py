"""How NumPy treats floating-point errors inside a call of the library, whatever its caller has set."""

import numpy as np


def usual_errors() -> np.errstate:
    """Return a decorator under which NumPy treats floating-point errors as it does by default."""
    return np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
