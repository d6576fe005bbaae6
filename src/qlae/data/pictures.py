"""Image files: decoding to RGB bytes of one size.

Greyscale becomes grey RGB, transparency becomes white, and the rotation that a camera recorded is applied. An image
that is not square is scaled by its shorter side and cropped in the middle. Scaling is antialiased and bicubic.

Memory is bounded. A large image is cropped and scaled down by a whole factor, strip by strip, before it is converted,
and only one large image is decoded at a time.
"""

from __future__ import annotations

import ctypes
import io
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

Item = TypeVar("Item")
Result = TypeVar("Result")

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

_one_large_image = threading.Lock()


def decode(content: bytes, resolution: int, *, draft: bool = False) -> NDArray[np.uint8]:
    """Decode an image file.

    Args:
        content: the bytes of the file.
        resolution: height and width of the result.
        draft: decode a JPEG at a scale near the resolution. The whole file is read, but fewer pixels are computed.

    Returns:
        (resolution, resolution, 3).

    Raises:
        ValueError: the file cannot be decoded; the message is the reason, without a name.
    """
    if not content:
        raise ValueError("it is empty or cannot be opened")
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"its file has more than {MAX_FILE_BYTES:,} bytes")
    try:
        if _is_large(content, resolution, draft):
            with _one_large_image:
                try:
                    return _decode(content, resolution, draft)
                finally:
                    _return_freed_memory()
        return _decode(content, resolution, draft)
    except ValueError:
        raise
    except Exception as error:
        # Decoders raise nearly anything for damaged bytes; in each case the file cannot be read.
        reason = "not an image" if isinstance(error, UnidentifiedImageError) else f"{type(error).__name__}: {error}"
        raise ValueError(reason) from error


def _is_large(content: bytes, resolution: int, draft: bool) -> bool:
    """Return whether an image is to be decoded while no other large one is."""
    if (size := webp_size(content)) is not None:  # Pillow reserves memory for all pixels when it opens the file
        return size[0] * size[1] > SHARED_PIXELS
    with _open(content, resolution, draft) as image:
        return _num_pixels(image) > SHARED_PIXELS


def _decode(content: bytes, resolution: int, draft: bool) -> NDArray[np.uint8]:
    with _open(content, resolution, draft) as image:
        return _convert(image, resolution)


def _open(content: bytes, resolution: int, draft: bool) -> Image.Image:
    """Open an image file, at a smaller scale if that is allowed or the image is large."""
    if (size := webp_size(content)) is not None:
        _require_few_pixels(*size, "WEBP")
    image = Image.open(io.BytesIO(content), formats=FORMATS)
    _require_supported(image)
    if draft:
        image.draft(None, (resolution, resolution))
    elif _num_pixels(image) > LARGE_PIXELS:
        image.draft(None, (LARGE_FACTOR * resolution, LARGE_FACTOR * resolution))
    return image


def _return_freed_memory() -> None:
    """Let the C library return freed memory to the system: glibc keeps it for each thread that used it."""
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


@cache
def _c_library() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if sys.platform == "linux" else None


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


def _convert(image: Image.Image, resolution: int) -> NDArray[np.uint8]:
    """Return the pixels of an opened image, upright, at a resolution."""
    if _num_pixels(image) <= LARGE_PIXELS:
        image.load()
        return fit(to_rgb(ImageOps.exif_transpose(image)), resolution)
    small = shrink(image, resolution)
    small.getexif()[ORIENTATION] = image.getexif().get(ORIENTATION, 1)
    return fit(ImageOps.exif_transpose(small), resolution)


def shrink(image: Image.Image, resolution: int) -> Image.Image:
    """Crop an image to a square and average it over squares of pixels, so that little memory is needed.

    Args:
        image: of any mode and size.
        resolution: the result has at least ``LARGE_FACTOR`` times this side, or the side of the image.

    Returns:
        A square image in RGB.
    """
    width, height = image.size
    side = min(width, height)
    factor = max(1, side // (LARGE_FACTOR * resolution))
    small_side = side // factor
    crop_side = small_side * factor
    left, top = (width - crop_side) // 2, (height - crop_side) // 2
    small = Image.new("RGB", (small_side, small_side))
    num_rows = max(1, STRIP_PIXELS // (crop_side * factor)) * factor
    for start in range(0, crop_side, num_rows):
        strip = image.crop((left, top + start, left + crop_side, top + min(start + num_rows, crop_side)))
        small.paste(to_rgb(strip).reduce(factor), (0, start // factor))
    return small


def _num_pixels(image: Image.Image) -> int:
    return image.width * image.height


def require_readable(content: bytes) -> None:
    """Raise a ``ValueError`` with the reason unless an image file can be decoded; faster than decoding a large one."""
    decode(content, 8, draft=True)


def _require_supported(image: Image.Image) -> None:
    _require_few_pixels(image.width, image.height, image.format or "")
    if image.mode == "F" or (image.mode == "I" and image.format != "PNG"):
        raise ValueError("its pixels are 32-bit numbers whose white level is unknown; save it with 8 or 16 bits")


def _require_few_pixels(width: int, height: int, image_format: str) -> None:
    most = MAX_PIXELS_OF.get(image_format, MAX_PIXELS)
    if width * height > most:
        raise ValueError(f"it has {width}×{height} pixels, more than {most:,}")


def map_in_threads(
    work: Callable[[Item], Result], items: Iterable[Item], weigh: Callable[[Item], int]
) -> Iterator[Result]:
    """Yield ``work(item)`` for each item, in order, computed on a few threads.

    Only a few items are in memory at a time.

    Args:
        work: the function.
        items: what it is called with.
        weigh: returns the bytes that an item takes.
    """
    num_threads = min(4, os.cpu_count() or 1)
    futures: deque[tuple[Future[Result], int]] = deque()
    weight = 0
    with ThreadPoolExecutor(num_threads) as pool:
        for item in items:
            size = weigh(item)
            futures.append((pool.submit(work, item), size))
            weight += size
            while len(futures) > 2 * num_threads or (futures and weight > MAX_WAITING_BYTES):
                future, size = futures.popleft()
                weight -= size
                yield future.result()
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


def fit(image: Image.Image, resolution: int) -> NDArray[np.uint8]:
    """Scale and crop an RGB image to (resolution, resolution, 3)."""
    if image.size != (resolution, resolution):
        image = ImageOps.fit(image, (resolution, resolution), Image.Resampling.BICUBIC)
    return np.asarray(image, dtype=np.uint8)


def resize(images: NDArray[Any], resolution: int) -> NDArray[np.uint8]:
    """Scale and crop uint8 images.

    Args:
        images: (k, h, w), (k, h, w, 1), (k, h, w, 3) or (k, h, w, 4).
        resolution: height and width of the result.

    Returns:
        (k, resolution, resolution, 3); `images` itself if that is its shape.
    """
    if images.ndim == 4 and images.shape[3] == 1:
        images = images[..., 0]
    if images.shape[1:] == (resolution, resolution, 3):
        return images
    out = np.empty((len(images), resolution, resolution, 3), np.uint8)
    for target, image in zip(out, images, strict=True):
        target[...] = _convert(Image.fromarray(np.ascontiguousarray(image)), resolution)
    return out


def resize_all(chunks: Iterable[NDArray[Any]], resolution: int, batch_size: int) -> Iterator[NDArray[np.uint8]]:
    """Scale and crop chunks of images and yield them in batches of ``batch_size``; the last may be smaller.

    Chunks may have any length, so that those of large images can be short.
    """
    buffer: list[NDArray[np.uint8]] = []
    num_waiting = 0
    for chunk in chunks:
        small = resize(chunk, resolution)
        while len(small):
            part = small[: batch_size - num_waiting]
            small = small[len(part) :]
            buffer.append(part)
            num_waiting += len(part)
            if num_waiting == batch_size:
                yield buffer[0] if len(buffer) == 1 else np.concatenate(buffer)
                buffer, num_waiting = [], 0
    if buffer:
        yield np.concatenate(buffer)


def require_image_shape(shape: tuple[int, ...], name: object) -> None:
    """Raise a ``ValueError`` if images of shape (n, h, w, …) have more pixels than can be scaled."""
    if len(shape) >= 3 and shape[1] * shape[2] > MAX_PIXELS:
        raise ValueError(f"{name} has images of {shape[2]}×{shape[1]} pixels, more than {MAX_PIXELS:,}")
