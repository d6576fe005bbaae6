"""Array files that nobody should open."""

import io

import numpy as np


def object_array(shape: tuple[int, ...]) -> bytes:
    """The beginning of an ``.npy`` of Python objects, as far as a reader may go: what follows would be a pickle."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": shape})
    return file.getvalue() + bytes(100)
