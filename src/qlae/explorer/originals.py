"""The files that the images of a data set were read from, shown next to the model's input.

Only files that the data set names are read, and each is decoded and encoded again, so that nothing but pixels leaves
this machine's disk: no metadata, and no file that merely looks like an image.
"""

import io
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..data import SourceDataset
from ..data.archives import open_files
from ..data.pictures import decode_whole

MAX_SIDE = 2048  # pixels; larger images are scaled down
MAX_LOSSLESS = 2**18  # pixels; larger images become JPEG files
QUALITY = 90  # of these


class Original(NamedTuple):
    """An image file for the browser."""

    content: bytes
    media_type: str


class Originals:
    """The image files of a data set.

    Args:
        path: The folder or archive.
        names: The name of each image's file in it.
    """

    def __init__(self, path: Path, names: Sequence[str]):
        self.path = path
        self.names = names

    def read(self, index: int) -> Original:
        """Return the file of one image, scaled down if it is large.

        Args:
            index: Of the image in the data set.

        Raises:
            ValueError: The file is gone or cannot be decoded any more.
        """
        name = self.names[index]
        try:
            image = decode_whole(self._read_bytes(name), MAX_SIDE)
        except (ValueError, OSError, KeyError, StopIteration) as error:
            reason = str(error) if isinstance(error, ValueError) else "it is gone"
            raise ValueError(f"the original of {name} cannot be shown: {reason}") from None
        file = io.BytesIO()
        if image.format == "JPEG" or image.width * image.height > MAX_LOSSLESS:
            image.save(file, format="JPEG", quality=QUALITY)
            return Original(file.getvalue(), "image/jpeg")
        image.save(file, format="PNG")
        return Original(file.getvalue(), "image/png")

    def _read_bytes(self, name: str) -> bytes:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise ValueError("its name leads out of the data set")
        return open_files(self.path).read_one(name)


def find_originals(data: SourceDataset | None) -> Originals | None:
    """Return the files of a data set, or ``None`` if its images were not files or are no longer there."""
    if data is None or data.file_names is None:
        return None
    details = data.details.get("files", {})
    path = getattr(data.spec, "path", None) or (details.get("path") if isinstance(details, dict) else None)
    return Originals(Path(path), data.file_names) if path is not None and Path(path).exists() else None
