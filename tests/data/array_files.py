"""Array files that must not be opened."""

import io

import numpy as np


def object_array(shape: tuple[int, ...]) -> bytes:
    """Return the start of an ``.npy`` of Python objects; a reader that went on would unpickle the rest."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": shape})
    return file.getvalue() + bytes(100)
