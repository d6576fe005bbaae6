"""The size of text in pictures, which decides how much room labels get."""

from matplotlib.textpath import TextPath


def measure_text(text: str, size: float) -> float:
    """Return the length in inches of a line of text whose size is given in points.

    >>> measure_text("", 9)
    0.0
    """
    return float(TextPath((0, 0), text, size=size).get_extents().x1) / 72 if text else 0.0
