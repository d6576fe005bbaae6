"""Pictures: their size, decoding image files to bytes of one size, in RGB or grey, and scaling.

A size is height, width, and one grey or three colour channels. In the cache it is a number for square RGB images, else
a text such as ``60x90`` or ``60x90x1``.

Greyscale becomes grey RGB, transparency becomes white, and the rotation that a camera recorded is applied. An image
of another shape is scaled to cover the size and cropped in the middle. Scaling is antialiased and bicubic.

Memory is bounded. A large image is cropped and scaled down by a whole factor, strip by strip, before it is converted,
and only one large image is decoded at a time.
"""

from __future__ import annotations

import ctypes
import io
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from .._checks import shortened
from .._io import open_regular
from ..observations import COLOURS, Observations, require_sides

Item = TypeVar("Item")
Result = TypeVar("Result")

GREY = 1
DEFAULT_RESOLUTION = 64
SIZE_TEXT = re.compile(r"(\d{1,5})(?:[x×](\d{1,5}))?(?:[x×]([13]))?")
MIN_RESOLUTION, MAX_RESOLUTION = 8, 1024  # of square RGB images, also for custom networks
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF")
#: Larger files and images are refused, as accidents or attacks.
MAX_FILE_BYTES = 2**26
MAX_PIXELS = 2**26
#: WebP is decoded through several copies of the image.
MAX_PIXELS_OF = {"WEBP": 3 * 2**23}
#: Images with more pixels are scaled down by a whole factor first, to at least this many times the resolution.
LARGE_PIXELS, LARGE_FACTOR = 2**24, 4
#: Images with more pixels are decoded one at a time.
SHARED_PIXELS = 2**22
STRIP_PIXELS = 2**20
#: Bytes of files that wait for a thread.
MAX_WAITING_BYTES = 2**27
ORIENTATION = 0x0112  # tag of the rotation that a camera recorded
LYING = (5, 6, 7, 8)  # its values for images on their side

_one_large_image = threading.Lock()


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


def picture_size(size: Any) -> PictureSize:
    """Return a size from a number, a pair (height, width) or a text.

    >>> picture_size(64), picture_size("60x90"), picture_size("60x90x1")
    (PictureSize(height=64, width=64, channels=3), PictureSize(height=60, width=90, channels=3), PictureSize(height=60, width=90, channels=1))
    """  # noqa: E501
    if isinstance(size, int) and not isinstance(size, bool):
        return PictureSize(size, size)
    if isinstance(size, tuple | list) and len(size) == 2 and all(type(side) is int for side in size):
        return PictureSize(*size)
    if isinstance(size, str) and (match := SIZE_TEXT.fullmatch(size.strip())):
        height, width, channels = (int(number) if number else None for number in match.groups())
        assert height is not None
        return PictureSize(height, width or height, channels or COLOURS)
    got = shortened(size).strip("'")
    raise ValueError(
        f"resolution must be an integer from {MIN_RESOLUTION} to {MAX_RESOLUTION}, or height and width, such as "
        f"60x90, got {got}"
    )


def wanted_size(resolution: Any, *, grey: bool = False) -> PictureSize:
    """Return the size that a caller asks for; raise an error for one that no images are brought to."""
    size = picture_size(resolution)
    size = replace(size, channels=GREY) if grey else size
    if not size.is_standard:
        require_sides(size.height, size.width)
    elif not MIN_RESOLUTION <= size.height <= MAX_RESOLUTION:
        got = shortened(resolution).strip("'")
        raise ValueError(f"resolution must be an integer from {MIN_RESOLUTION} to {MAX_RESOLUTION}, got {got}")
    return size


def decode(content: bytes, size: PictureSize) -> NDArray[np.uint8]:
    """Decode an image file to (h, w, c); the message of an error is the reason, without a name."""
    side = LARGE_FACTOR * max(size.height, size.width)  # both ways: the image may be recorded on its side
    return _open_image(content, lambda image: convert(image, size), side)


def decode_file(path: str | Path, size: PictureSize) -> NDArray[np.uint8]:
    """Decode the image file at a path to (h, w, c); the message of an error names it."""
    with open_regular(path) as file:
        content = file.read(MAX_FILE_BYTES + 1)
    try:
        return decode(content, size)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as a picture: {error}") from None


def decode_whole(content: bytes, max_side: int) -> Image.Image:
    """Decode an image file to an upright RGB image of at most `max_side` pixels per side, without cropping it.

    Its ``format`` is that of the file. The message of an error is the reason, without a name.
    """

    def convert(image: Image.Image) -> Image.Image:
        factor = max(image.size) // max_side
        small = _reduce(image, (0, 0, *image.size), factor) if factor > 1 else to_rgb(image)
        small.getexif()[ORIENTATION] = image.getexif().get(ORIENTATION, 1)
        upright = ImageOps.exif_transpose(small)
        upright.thumbnail((max_side, max_side), Image.Resampling.BICUBIC)
        upright.format = image.format
        return upright

    return _open_image(content, convert, 2 * max_side)


def _open_image(content: bytes, convert: Callable[[Image.Image], Result], draft_side: int) -> Result:
    """Open an image file and convert it, a large one while no other large one is in memory.

    A large JPEG is decoded at a scale with at least `draft_side` pixels on either side.
    """
    if not content:
        raise ValueError("it is empty or cannot be opened")
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"its file has more than {MAX_FILE_BYTES:,} bytes")
    try:
        if not _is_large(content, draft_side):
            return _open_andconvert(content, convert, draft_side)
        with _one_large_image:
            try:
                return _open_andconvert(content, convert, draft_side)
            finally:
                _return_freed_memory()
    except ValueError:
        raise
    except Exception as error:  # decoders raise nearly anything for damaged bytes
        reason = "not an image" if isinstance(error, UnidentifiedImageError) else f"{type(error).__name__}: {error}"
        raise ValueError(reason) from error


def _is_large(content: bytes, draft_side: int) -> bool:
    if (sides := webp_size(content)) is not None:  # Pillow reserves memory for all pixels when it opens the file
        return sides[0] * sides[1] > SHARED_PIXELS
    with _open(content, draft_side) as image:
        return image.width * image.height > SHARED_PIXELS


def _open_andconvert(content: bytes, convert: Callable[[Image.Image], Result], draft_side: int) -> Result:
    with _open(content, draft_side) as image:  # freed when this function returns
        return convert(image)


def _open(content: bytes, draft_side: int) -> Image.Image:
    if (sides := webp_size(content)) is not None:
        _require_few_pixels(*sides, "WEBP")
    image = Image.open(io.BytesIO(content), formats=FORMATS)
    _require_few_pixels(image.width, image.height, image.format or "")
    if image.mode == "F" or (image.mode == "I" and image.format != "PNG"):
        raise ValueError("its pixels are 32-bit numbers whose white level is unknown; save it with 8 or 16 bits")
    if image.width * image.height > LARGE_PIXELS:
        image.draft(None, (draft_side, draft_side))
    return image


def _return_freed_memory() -> None:
    """Let the C library return freed memory to the system: glibc keeps it for each thread that used it."""
    if sys.platform == "linux" and hasattr(c_library := ctypes.CDLL(None), "malloc_trim"):
        c_library.malloc_trim(0)


def webp_size(content: bytes) -> tuple[int, int] | None:
    """Return width and height that the header of a WebP file announces; None for other files.

    The first chunk is the canvas of an extended file, a lossless image or a lossy one.
    """
    if content[:4] != b"RIFF" or content[8:12] != b"WEBP":
        return None
    kind, first = content[12:16], content[20:30]
    if kind == b"VP8X":
        return int.from_bytes(first[4:7], "little") + 1, int.from_bytes(first[7:10], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(first[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return int.from_bytes(first[6:8], "little") & 0x3FFF, int.from_bytes(first[8:10], "little") & 0x3FFF


def convert(image: Image.Image, size: PictureSize) -> NDArray[np.uint8]:
    """Return the pixels of an opened image, upright, in a size."""
    if image.width * image.height <= LARGE_PIXELS:
        image.load()
        return fit(to_rgb(ImageOps.exif_transpose(image)), size)
    orientation = image.getexif().get(ORIENTATION, 1)
    lies = orientation in LYING
    small = shrink(image, PictureSize(size.width, size.height) if lies else size)
    small.getexif()[ORIENTATION] = orientation
    return fit(ImageOps.exif_transpose(small), size)


def shrink(image: Image.Image, size: PictureSize) -> Image.Image:
    """Crop an image to the shape of a size and average it over squares of pixels, so that little memory is needed.

    The result is in RGB and has at least ``LARGE_FACTOR`` times these sides, or is as large as the image.
    """
    width, height = image.size
    most_wide = max(1, min(width, height * size.width // size.height))
    most_high = max(1, min(height, width * size.height // size.width))
    factor = max(1, min(most_wide // (LARGE_FACTOR * size.width), most_high // (LARGE_FACTOR * size.height)))
    crop_width, crop_height = most_wide // factor * factor, most_high // factor * factor
    left, top = (width - crop_width) // 2, (height - crop_height) // 2
    return _reduce(image, (left, top, left + crop_width, top + crop_height), factor)


def _reduce(image: Image.Image, box: tuple[int, int, int, int], factor: int) -> Image.Image:
    """Return a part of an image in RGB, averaged over squares of ``factor`` pixels, strip by strip."""
    left, top, right, bottom = box
    small = Image.new("RGB", (-(-(right - left) // factor), -(-(bottom - top) // factor)))
    num_rows = max(1, STRIP_PIXELS // ((right - left) * factor)) * factor
    for start in range(top, bottom, num_rows):
        strip = image.crop((left, start, right, min(start + num_rows, bottom)))
        small.paste(to_rgb(strip).reduce(factor), (0, (start - top) // factor))
    return small


def _require_few_pixels(width: int, height: int, image_format: str) -> None:
    most = MAX_PIXELS_OF.get(image_format, MAX_PIXELS)
    if width * height > most:
        raise ValueError(f"it has {width}×{height} pixels, more than {most:,}")


def map_in_threads(
    work: Callable[[Item], Result], items: Iterable[Item], weigh: Callable[[Item], int]
) -> Iterator[Result]:
    """Yield ``work(item)`` for each item, in order, computed on a few threads; few items are in memory at a time.

    ``weigh(item)`` is the number of bytes that an item takes.
    """
    num_threads = min(4, os.cpu_count() or 1)
    futures: deque[tuple[Future[Result], int]] = deque()
    with ThreadPoolExecutor(num_threads) as pool:
        for item in items:
            futures.append((pool.submit(work, item), weigh(item)))
            while len(futures) > 2 * num_threads or sum(size for _, size in futures) > MAX_WAITING_BYTES:
                yield futures.popleft()[0].result()
        while futures:
            yield futures.popleft()[0].result()


def to_rgb(image: Image.Image) -> Image.Image:
    """Convert an image of any mode to RGB."""
    if image.mode in ("I;16", "I;16B", "I;16L", "I"):  # 16-bit grey, which PIL would clip
        values = np.asarray(image).astype(np.float64) / 257
        return Image.fromarray(np.rint(values).clip(0, 255).astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")


def fit(image: Image.Image, size: PictureSize) -> NDArray[np.uint8]:
    """Scale and crop an RGB image to (h, w, c)."""
    if image.size != (size.width, size.height):
        image = ImageOps.fit(image, (size.width, size.height), Image.Resampling.BICUBIC)
    if size.channels == GREY:
        return np.asarray(image.convert("L"), dtype=np.uint8)[..., None]
    return np.asarray(image, dtype=np.uint8)


def resize(images: NDArray[Any], size: PictureSize) -> NDArray[np.uint8]:
    """Scale and crop uint8 images (k, h, w), (k, h, w, 1), (k, h, w, 3) or (k, h, w, 4) to (k, h, w, c)."""
    if images.shape[1:] == size.shape:
        return images
    if images.ndim == 4 and images.shape[3] == 1:
        images = images[..., 0]
    out = np.empty((len(images), *size.shape), np.uint8)
    for target, image in zip(out, images, strict=True):
        target[...] = convert(Image.fromarray(np.ascontiguousarray(image)), size)
    return out


def to_colours(images: NDArray[Any], observations: Observations) -> NDArray[np.uint8]:
    """Return images (…, h, w, c) as they are shown, (…, h, w, 3) bytes.

    Floats are shown over the range that the data have. One channel is grey, two are red and green, and of more than
    three channels the first three are shown.
    """
    if observations.dtype != "uint8":
        shares = (images - np.asarray(observations.offset)) / np.asarray(observations.scale)
        images = np.rint(255 * shares.clip(0, 1)).astype(np.uint8)
    num_channels = images.shape[-1]
    if num_channels == 1:
        return np.repeat(images, COLOURS, axis=-1)
    if num_channels < COLOURS:
        return np.concatenate([images, np.zeros_like(images[..., :1])], axis=-1)
    return images[..., :COLOURS]
