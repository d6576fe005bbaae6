"""The readers of `.npz`, `.npy` and JSON files: one clear error for whatever is wrong with the content."""

import io
import json
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qlae._io import load_npy, read_json, read_npy, read_npz, write_json, write_npz


def object_array() -> bytes:
    """Return the start of an ``.npy`` of Python objects; a reader that went on would unpickle the rest."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": (2,)})
    return file.getvalue() + bytes(100)


def npy(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def npz(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def with_header(text: str) -> bytes:
    """Return an ``.npy`` whose header is this text."""
    header = text.encode().ljust(118)
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def test_what_was_written_is_read(tmp_path):
    arrays = {"codes": np.arange(6).reshape(2, 3), "names": np.array(["a", "b"]), "empty": np.zeros((0, 4))}
    write_npz(tmp_path / "a.npz", **arrays)
    read = read_npz(tmp_path / "a.npz")
    assert list(read) == list(arrays)
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype
        assert np.array_equal(read[name], array)
    (tmp_path / "a.npy").write_bytes(npy(arrays["codes"]))
    assert np.array_equal(read_npy(tmp_path / "a.npy"), arrays["codes"])
    write_json(tmp_path / "a.json", {"é": [1, None]})
    assert read_json(tmp_path / "a.json") == {"é": [1, None]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "damaged or incomplete"),
        (b"plain text", "not an .npz file of plain arrays"),
        (b"PK\x03\x04 nothing", "damaged or incomplete"),
        (npy(np.arange(3)), "not an .npz file of plain arrays"),
        (npz(a=object_array()), "not an .npz file of plain arrays"),
        (npz(a=b"no array"), "not an .npz file of plain arrays"),
        (npz(a=npy(np.arange(1000)))[:-200], "damaged or incomplete"),
        (npz(a=npy(np.arange(1000))).replace(bytes(np.arange(5, 8)), bytes(24)), "damaged or incomplete: Bad CRC"),
        (npz(a=with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (10**9, 10**9)}")), "plain arrays"),
        (npz(a=with_header("{'descr': ('<f8', [")), "damaged or incomplete"),
    ],
    ids=["empty", "text", "stub", "npy", "pickled", "no array", "cut", "flipped", "huge", "header"],
)
def test_what_is_no_npz_is_one_error(tmp_path, content, reason):
    path = tmp_path / "sample.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"^{path} cannot be read \(it is .*{reason}.*\); write it again$") as caught:
        read_npz(path, remedy="write it again")
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"\)$"):
        read_npz(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "damaged or incomplete"),
        (b"plain text", "not an .npy file of a plain array"),
        (npz(a=npy(np.arange(3))), "not an .npy file of a plain array"),
        (object_array(), "not an .npy file of a plain array"),
        (npy(np.arange(1000))[:-8], "not an .npy file of a plain array"),
        (with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (10**9, 10**9)}"), "of a plain array"),
    ],
    ids=["empty", "text", "npz", "pickled", "cut", "huge"],
)
def test_what_is_no_npy_is_one_error(tmp_path, content, reason):
    path = tmp_path / "sources.npy"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"^{path} cannot be read \(it is .*{reason}.*\)$"):
        read_npy(path)
    with pytest.raises(ValueError, match=r"^labels in a\.zip cannot be read \(.*\); copy it again$"):
        load_npy(io.BytesIO(content), "labels in a.zip", remedy="copy it again")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is not JSON: .*truncated"),
        (b'{"a": 1', "it is not JSON"),
        (b'{"a": "\xff"}', "it is not JSON: .*utf-8"),
        (b"[" * 100_000, "it is not JSON: maximum recursion"),
        (b"[1, 2]", "it must hold a JSON object, got list"),
        (b"null", "it must hold a JSON object, got NoneType"),
    ],
    ids=["empty", "cut", "latin", "deep", "list", "null"],
)
def test_what_is_no_json_object_is_one_error(tmp_path, content, reason):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"^{path} cannot be read \({reason}.*\); restore it$"):
        read_json(path, remedy="restore it")


@pytest.mark.parametrize("read", [read_npz, read_npy, read_json])
def test_a_missing_file_is_the_systems_error(tmp_path, read):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.x"):
        read(tmp_path / "nowhere.x")
    with pytest.raises(IsADirectoryError):
        read(tmp_path)


@given(data=st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_bytes_raise_value_errors_only(tmp_path, data):
    """Bytes flipped or cut off anywhere: arrays or a ``ValueError``, never another exception."""
    arrays = npz(a=npy(np.arange(20)), b=npy(np.array(["x", "y"])))
    text = json.dumps({"a": [1.5, "é"], "b": {}}).encode()
    read, content = data.draw(st.sampled_from([(read_npz, arrays), (read_npy, npy(np.eye(3))), (read_json, text)]))
    damaged = bytearray(content[: data.draw(st.integers(1, len(content)))])
    for _ in range(data.draw(st.integers(0, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "file"
    path.write_bytes(bytes(damaged))
    try:
        assert read(path) is not None
    except ValueError as error:
        message = str(error)
    else:
        return
    assert message.startswith(f"{path} cannot be read (")
