"""The files that the images of a data set were read from, shown next to the model's input.

Only files that the data set names are read, and each is decoded and encoded again, so that nothing but pixels leaves
this machine's disk: no metadata, and no file that merely looks like an image.
"""

import io
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ..data import SourceDataset
from ..data.archives import open_files
from ..data.pictures import decode_whole

MAX_SIDE = 2048  # pixels; larger images are scaled down
MAX_LOSSLESS = 2**18  # pixels; larger images become JPEG files
QUALITY = 90  # of these


class Originals:
    """The image files of a data set.

    Args:
        path: The folder or archive.
        names: The name of each image's file in it.
    """

    def __init__(self, path: Path, names: Sequence[str]):
        self.path = path
        self.names = names

    def read(self, index: int) -> tuple[bytes, str]:
        """Return the file of an image of the data set, scaled down if it is large, and its media type.

        Raises:
            ValueError: The file is gone or cannot be decoded any more.
        """
        name = self.names[index]
        try:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ValueError("its name leads out of the data set")
            image = decode_whole(open_files(self.path).read_one(name), MAX_SIDE)
        except (ValueError, OSError, KeyError, StopIteration) as error:
            reason = str(error) if isinstance(error, ValueError) else "it is gone"
            raise ValueError(f"the original of {name} cannot be shown: {reason}") from None
        is_lossy = image.format == "JPEG" or image.width * image.height > MAX_LOSSLESS
        file = io.BytesIO()
        image.save(file, format="JPEG" if is_lossy else "PNG", quality=QUALITY)
        return file.getvalue(), "image/jpeg" if is_lossy else "image/png"


def find_originals(data: SourceDataset | None) -> Originals | None:
    """Return the files of a data set, or ``None`` if its images were not files or are no longer there."""
    if data is None or data.file_names is None:
        return None
    path = getattr(data.spec, "path", None) or data.details.get("files", {}).get("path")
    return Originals(Path(path), data.file_names) if path is not None and Path(path).exists() else None
