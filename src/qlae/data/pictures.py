"""Image files: decoding any of them to RGB bytes of one size.

Greyscale becomes grey, transparent becomes white, a camera's turn is undone; what is not square is scaled by its
shorter side and cut in the middle. Scaling is antialiased and bicubic.
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
#: Larger files or pictures are taken for an accident or an attack.
MAX_FILE_BYTES = 2**26
MAX_PIXELS = 2**26


def decode(content: bytes, resolution: int, *, draft: bool = False) -> NDArray[np.uint8]:
    """An image file's bytes → (resolution, resolution, 3). A ``ValueError`` says why if it cannot be.

    A draft of a JPEG is decoded at a scale near the resolution: all of the file is read, but few pixels are made.
    """
    if not content:
        raise ValueError("it is empty or cannot be opened")
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"its file has more than {MAX_FILE_BYTES:,} bytes")
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            _require_usual(image)
            if draft:
                image.draft(None, (resolution, resolution))
            image.load()
            return fitted(as_rgb(ImageOps.exif_transpose(image)), resolution)
    except ValueError:
        raise
    except Exception as error:
        # Decoders throw nearly anything at damaged bytes; whatever it is, the file cannot be read.
        told = "not an image" if isinstance(error, UnidentifiedImageError) else f"{type(error).__name__}: {error}"
        raise ValueError(told) from error


def require_readable(content: bytes) -> None:
    """A ``ValueError`` that says why, if an image file's bytes cannot be decoded; faster than decoding a large one."""
    decode(content, 8, draft=True)


def _require_usual(image: Image.Image) -> None:
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise ValueError(f"it has {width}×{height} pixels, more than {MAX_PIXELS:,}")
    if image.mode == "F" or (image.mode == "I" and image.format != "PNG"):
        raise ValueError("its pixels are 32-bit numbers, of which none says what is white; save it with 8 or 16 bits")


def mapped(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """``work(item)`` on a few threads, in order; only a few items are held at a time, however many there are."""
    num_threads = min(4, os.cpu_count() or 1)
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(num_threads) as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > 2 * num_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def as_rgb(image: Image.Image) -> Image.Image:
    """Any kind of image as red, green and blue."""
    if image.mode in ("I;16", "I;16B", "I;16L", "I"):  # 16-bit grey, which PIL would clip
        values = np.asarray(image).astype(np.float64) / 257
        return Image.fromarray(np.rint(values).clip(0, 255).astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")


def fitted(image: Image.Image, resolution: int) -> NDArray[np.uint8]:
    """An RGB image → (resolution, resolution, 3)."""
    if image.size != (resolution, resolution):
        image = ImageOps.fit(image, (resolution, resolution), Image.Resampling.BICUBIC)
    return np.asarray(image, dtype=np.uint8)


def resized(images: NDArray[Any], resolution: int) -> NDArray[np.uint8]:
    """(k, h, w), (k, h, w, 1), (k, h, w, 3) or (k, h, w, 4) bytes → (k, resolution, resolution, 3)."""
    if images.ndim == 4 and images.shape[3] == 1:
        images = images[..., 0]
    if images.shape[1:] == (resolution, resolution, 3):
        return images
    out = np.empty((len(images), resolution, resolution, 3), np.uint8)
    for target, image in zip(out, images, strict=True):
        target[...] = fitted(as_rgb(Image.fromarray(np.ascontiguousarray(image))), resolution)
    return out
