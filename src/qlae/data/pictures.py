"""Image files: decoding to RGB bytes of one size.

Greyscale becomes grey RGB, transparency becomes white, and the rotation that a camera recorded is applied. An image
that is not square is scaled by its shorter side and cropped in the middle. Scaling is antialiased and bicubic.
"""

from __future__ import annotations

import io
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
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
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            _require_supported(image)
            if draft:
                image.draft(None, (resolution, resolution))
            image.load()
            return fit(to_rgb(ImageOps.exif_transpose(image)), resolution)
    except ValueError:
        raise
    except Exception as error:
        # Decoders raise nearly anything for damaged bytes; in each case the file cannot be read.
        reason = "not an image" if isinstance(error, UnidentifiedImageError) else f"{type(error).__name__}: {error}"
        raise ValueError(reason) from error


def require_readable(content: bytes) -> None:
    """Raise a ``ValueError`` with the reason unless an image file can be decoded; faster than decoding a large one."""
    decode(content, 8, draft=True)


def _require_supported(image: Image.Image) -> None:
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise ValueError(f"it has {width}×{height} pixels, more than {MAX_PIXELS:,}")
    if image.mode == "F" or (image.mode == "I" and image.format != "PNG"):
        raise ValueError("its pixels are 32-bit numbers whose white level is unknown; save it with 8 or 16 bits")


def map_in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield ``work(item)`` for each item, in order, computed on a few threads.

    Only a few items are in memory at a time.
    """
    num_threads = min(4, os.cpu_count() or 1)
    futures: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(num_threads) as pool:
        for item in items:
            futures.append(pool.submit(work, item))
            if len(futures) > 2 * num_threads:
                yield futures.popleft().result()
        while futures:
            yield futures.popleft().result()


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
        target[...] = fit(to_rgb(Image.fromarray(np.ascontiguousarray(image))), resolution)
    return out
