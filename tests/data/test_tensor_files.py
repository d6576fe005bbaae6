"""Embeddings and activations of other models: large ``.npy``, ``.npz`` and ``.safetensors`` files stay on disk."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

import qlae
from qlae.data import array_files, data_config, load_from_config
from qlae.data.array_files import read_raw
from qlae.data.model_inputs import how_to_read
from qlae.data.tensor_files import ConvertedRows


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(300, 20)).astype(np.float32)


@pytest.fixture
def all_are_large(monkeypatch):
    """Treat every array as one that is too large for memory."""
    monkeypatch.setattr(array_files, "MAX_WHOLE", 0)


def test_a_tensor_stays_on_disk(rows, tmp_path):
    save_file({"embeddings": rows}, tmp_path / "x.safetensors")
    data = qlae.load_data(tmp_path / "x.safetensors")
    assert not data.images.flags.owndata
    assert not data.images.flags.writeable
    assert np.array_equal(data.images, rows)
    assert data.observations.kind == "vectors"
    again = load_from_config(data_config(data))
    assert np.array_equal(again.images, rows)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool]
)
def test_every_type_of_tensor_becomes_floats(dtype, tmp_path):
    tensor = (3 * torch.randn(40, 6, generator=torch.Generator().manual_seed(0))).to(dtype)
    save_torch({"x": tensor}, tmp_path / "x.safetensors")
    data = qlae.load_data(tmp_path / "x.safetensors")
    assert data.images.dtype in (np.float32, np.float64)
    assert np.array_equal(data.images, tensor.double().numpy())


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_large_tensors_of_16_bits_are_converted_batch_by_batch(dtype, tmp_path):
    tensor = torch.randn(60, 6, generator=torch.Generator().manual_seed(0)).to(dtype)
    save_torch({"x": tensor}, tmp_path / "x.safetensors")
    data = qlae.load_data(tmp_path / "x.safetensors")
    assert isinstance(data.images, ConvertedRows)
    expected = tensor.float().numpy()
    for index in (3, slice(2, 9), np.array([5, 1]), slice(None)):
        assert np.array_equal(data.images[index], expected[index])
    options = {"size": "small", "steps": 3, "batch_size": 8, "num_latents": 2, "show": False}
    run = qlae.train("qlae", data, out=tmp_path / "run", **options)
    codes = qlae.load(run.path).encode(tmp_path / "x.safetensors")
    assert np.array_equal(codes, qlae.load(run.path).encode(expected))
    in_memory = qlae.train("qlae", expected, out=tmp_path / "other", **options)
    assert np.array_equal(qlae.load(in_memory.path).latents(expected), qlae.load(run.path).latents(expected))


@pytest.mark.usefixtures("all_are_large")
def test_a_large_npz_is_mapped_unless_it_is_compressed(rows, tmp_path):
    for save, is_mapped in ((np.savez, True), (np.savez_compressed, False)):
        save(tmp_path / "x.npz", first=np.arange(7), x=rows)
        raw = read_raw(tmp_path / "x.npz")
        assert isinstance(raw, np.memmap) == is_mapped
        assert np.array_equal(raw, rows)
    half = rows.astype(np.float16)
    np.save(tmp_path / "x.npy", half)
    assert isinstance(read_raw(tmp_path / "x.npy"), ConvertedRows)
    assert np.array_equal(qlae.load_data(tmp_path / "x.npy").images[:], half.astype(np.float32))


def test_one_of_several_arrays_is_chosen_by_name(rows, tmp_path):
    arrays = {"text": rows, "image": rows[:, :5].copy()}
    save_file(arrays, tmp_path / "x.safetensors")
    np.savez(tmp_path / "x.npz", **arrays)
    for name in ("x.safetensors", "x.npz"):
        data = qlae.load_data(tmp_path / name, array="image")
        assert np.array_equal(data.images, rows[:, :5])
        assert load_from_config(data_config(data)).images.shape == (300, 5)
        how = how_to_read(data.observations, data.spec, tmp_path / name)
        assert qlae.load_data(tmp_path / name, **how).images.shape == (300, 5)
        assert "array" not in how_to_read(data.observations, data.spec, tmp_path / "x.npy")
        with pytest.raises(ValueError, match=r"or name it with array=…; it has text, image|it has image, text"):
            qlae.load_data(tmp_path / name)
        with pytest.raises(ValueError, match='did you mean "image"'):
            qlae.load_data(tmp_path / name, array="imag")
    np.save(tmp_path / "x.npy", rows)
    with pytest.raises(ValueError, match="is a single array without a name: leave array out"):
        qlae.load_data(tmp_path / "x.npy", array="text")


def test_sources_lie_next_to_embeddings(rows, tmp_path):
    save_file({"embeddings": rows, "sources": np.arange(600).reshape(300, 2) % 4}, tmp_path / "x.safetensors")
    data = qlae.load_data(tmp_path / "x.safetensors")
    assert data.source_sizes == (2, 2)
    assert data.observations.shape == (20,)


def write(path, header, content=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)


def entry(dtype="F32", shape=(2, 3), offsets=(0, 24)):
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


@pytest.mark.parametrize(
    ("header", "content", "message"),
    [
        (b"{ ", b"", "is not a .safetensors file that can be read"),
        ([], b"", "is not a .safetensors file that can be read"),
        ({"x": 3}, b"", "is not a .safetensors file that can be read"),
        (entry(offsets=(0, 20)), bytes(24), r"'x' of shape \[2, 3\] does not have 20 bytes"),
        (entry(offsets=(-4, 20)), bytes(24), r"'x' has the shape \[2, 3\] and lies at -4 to 20"),
        (entry(), bytes(20), "'x' ends at byte .*, and the file has .*: copy it again"),
        (entry("F8_E4M3", offsets=(0, 6)), bytes(6), r"'x' in .* must hold one row of numbers .*, got F8_E4M3"),
        (entry(shape=(0, 3), offsets=(0, 0)), b"", "must hold one row of numbers per observation, got F32"),
        (entry(shape=(), offsets=(0, 4)), bytes(4), "must hold one row of numbers per observation, got F32"),
    ],
)
def test_damaged_files_are_refused(header, content, message, tmp_path):
    write(tmp_path / "x.safetensors", header, content)
    with pytest.raises(ValueError, match=message):
        qlae.load_data(tmp_path / "x.safetensors")


@pytest.mark.parametrize("content", [b"", b"abc", (2**40).to_bytes(8, "little") + b"{}"])
def test_files_without_a_header_are_refused(content, tmp_path):
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"is not a \.safetensors file: its header cannot have"):
        qlae.load_data(tmp_path / "x.safetensors")
