"""The size to which pictures are brought: height, width, and one grey or three colour channels.

In the cache it is a number for square RGB images, else a text such as ``60x90`` or ``60x90x1``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from ..observations import COLOURS, require_sides

GREY = 1
DEFAULT_RESOLUTION = 64
TEXT = re.compile(r"(\d{1,5})(?:[x×](\d{1,5}))?(?:[x×]([13]))?")
MIN_RESOLUTION, MAX_RESOLUTION = 8, 1024  # of square RGB images, also for custom networks


@dataclass(frozen=True)
class PictureSize:
    """Height, width and channels of pictures."""

    height: int
    width: int
    channels: int = COLOURS

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of one picture, (h, w, c)."""
        return self.height, self.width, self.channels

    @property
    def is_standard(self) -> bool:
        """Whether these are the paper's images: square, in three colours."""
        return self.height == self.width and self.channels == COLOURS

    @property
    def resolution(self) -> int | tuple[int, int]:
        """The sides as an option of data: one number if they are equal."""
        return self.height if self.height == self.width else (self.height, self.width)

    @property
    def plain(self) -> int | str:
        """The size as JSON and names of cache entries hold it.

        >>> PictureSize(64, 64).plain, PictureSize(60, 90).plain, PictureSize(64, 64, 1).plain
        (64, '60x90', '64x64x1')
        """
        if self.is_standard:
            return self.height
        return f"{self.height}x{self.width}" + ("" if self.channels == COLOURS else f"x{self.channels}")

    def __str__(self) -> str:
        return f"{self.height}×{self.width}" + ("" if self.channels == COLOURS else " grey")


def picture_size(size: Any, *, grey: bool = False) -> PictureSize:
    """Return a size from a number, a pair (height, width) or a text; a size is returned as it is, unless `grey` is set.

    >>> picture_size(64), picture_size("60x90"), picture_size("60x90x1")
    (PictureSize(height=64, width=64, channels=3), PictureSize(height=60, width=90, channels=3), PictureSize(height=60, width=90, channels=1))
    """  # noqa: E501
    if grey:
        return replace(picture_size(size), channels=GREY)
    if isinstance(size, PictureSize):
        return size
    if isinstance(size, int) and not isinstance(size, bool):
        return PictureSize(size, size)
    if isinstance(size, tuple | list) and len(size) == 2 and all(type(side) is int for side in size):
        return PictureSize(*size)
    if isinstance(size, str) and (match := TEXT.fullmatch(size.strip())):
        height, width, channels = (int(number) if number else None for number in match.groups())
        assert height is not None
        return PictureSize(height, width or height, channels or COLOURS)
    raise ValueError(
        f"resolution must be an integer from {MIN_RESOLUTION} to {MAX_RESOLUTION}, or height and width, such as "
        f"60x90, got {size}"
    )


def wanted_size(resolution: Any, *, grey: bool = False) -> PictureSize:
    """Return the size that a caller asks for; raise an error for one that no images are brought to."""
    size = picture_size(resolution, grey=grey)
    if not size.is_standard:
        require_sides(size.height, size.width)
    elif not MIN_RESOLUTION <= size.height <= MAX_RESOLUTION:
        raise ValueError(f"resolution must be an integer from {MIN_RESOLUTION} to {MAX_RESOLUTION}, got {resolution}")
    return size


def square_resolution(name: str, resolution: Any) -> int:
    """Return the pixels per side of square images; raise an error for another shape."""
    size = wanted_size(resolution)
    if not size.is_standard:
        raise ValueError(f"{name} has square images: give resolution as one number; other shapes are for image files")
    return size.height
