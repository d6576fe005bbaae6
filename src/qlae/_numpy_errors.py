"""Keep NumPy's handling of floating-point errors independent of the caller's settings."""

import numpy as np


def usual_errors() -> np.errstate:
    """Return a decorator that restores NumPy's default handling of floating-point errors during a call."""
    return np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
