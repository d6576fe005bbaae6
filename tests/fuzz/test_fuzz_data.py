"""Readers of images, archives, data sets, tables and cache entries survive damaged files."""

import io
import json
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pytest
from fuzzing import NUM_INPUTS, fuzz, fuzz_bytes, fuzz_json, fuzz_npz
from mutations import damage_bytes
from PIL import Image
from safetensors.numpy import save_file

from qlae.data import cache, data_spec
from qlae.data.image_files import read_source_table
from qlae.data.pictures import PictureSize, decode
from qlae.data.published import read_files


def consume(images):
    """Read all images of a set."""
    return list(images.read(PictureSize(8, 8)))


def picture(form="PNG", size=(8, 8)) -> bytes:
    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(file, form)
    return file.getvalue()


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF"])
def test_images(form):
    content = picture(form, (24, 20))
    fuzz(form, lambda source: damage_bytes(content, source), lambda damaged: decode(damaged, PictureSize(16, 16)))


def write_archive(path, members):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name, content in members.items():
                zipped.writestr(name, content)
        return
    with tarfile.open(path, {".tar": "w", ".gz": "w:gz", ".xz": "w:xz", ".bz2": "w:bz2"}[path.suffix]) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tar.xz", ".tar.bz2"])
def test_archives(tmp_path, suffix):
    path = tmp_path / f"images{suffix}"
    write_archive(path, dict.fromkeys(("a.png", "b/c.png"), picture()))
    fuzz_bytes(path, lambda: consume(data_spec(path).image_set()))


def test_folder(tmp_path):
    """One damaged image among others is left out."""
    (tmp_path / "a.png").write_bytes(picture())
    (tmp_path / "b.png").write_bytes(picture())
    fuzz_bytes(tmp_path / "b.png", lambda: consume(data_spec(tmp_path).image_set()))


def test_array_of_images(tmp_path):
    arrays = {
        "images": np.zeros((4, 8, 8, 3), np.uint8),
        "sources": np.arange(8).reshape(4, 2),
        "source_names": np.array(["a", "b"]),
        "origin": np.array(["rendered"]),
    }
    path = tmp_path / "images.npz"
    fuzz_npz(path, arrays, lambda: consume(data_spec(path).image_set()))
    np.savez_compressed(path, **arrays)
    fuzz_bytes(path, lambda: consume(data_spec(path).image_set()))
    np.save(tmp_path / "images.npy", arrays["images"])
    fuzz_bytes(tmp_path / "images.npy", lambda: consume(data_spec(tmp_path / "images.npy").image_set()))


def test_sources_beside_images(tmp_path):
    np.save(tmp_path / "images.npy", np.zeros((4, 8, 8, 3), np.uint8))
    path = tmp_path / "sources.npy"
    np.save(path, np.arange(8).reshape(4, 2))
    fuzz_bytes(path, lambda: data_spec(tmp_path / "images.npy", source_file=path).image_set())


def test_shapes3d(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "3dshapes.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("images", data=np.zeros((4, 8, 8, 3), np.uint8), chunks=(2, 8, 8, 3), compression="gzip")
        file["labels"] = np.zeros((4, 6))
    fuzz_bytes(path, lambda: consume(read_files("shapes3d", path)))


def test_dsprites(tmp_path):
    path = tmp_path / "dsprites.npz"
    arrays = {"imgs": np.ones((4, 8, 8), np.uint8), "latents_classes": np.zeros((4, 6), np.int64)}
    fuzz_npz(path, arrays, lambda: consume(read_files("dsprites", path)))


def test_mpi3d(tmp_path, monkeypatch):
    monkeypatch.setattr("qlae.data.published.MPI3D_COLORS_AND_SHAPES", {4: 6})
    path = tmp_path / "mpi3d.npz"
    fuzz_npz(path, {"images": np.ones((4, 8, 8, 3), np.uint8)}, lambda: consume(read_files("mpi3d", path)))


@pytest.mark.parametrize(("name", "labels_name"), [("falcor3d", "train-rec.labels"), ("isaac3d", "labels.npy")])
def test_numbered_images(tmp_path, name, labels_name):
    labels = io.BytesIO()
    np.save(labels, np.zeros((2, 7 if name == "falcor3d" else 9)))
    members = {"images/000000.png": picture(), "images/000001.png": picture(), labels_name: labels.getvalue()}
    archive = tmp_path / f"{name}.zip"
    write_archive(archive, members)
    fuzz_bytes(archive, lambda: consume(read_files(name, archive)))
    folder = tmp_path / name
    (folder / "images").mkdir(parents=True)
    for member, content in members.items():
        (folder / member).write_bytes(content)
    fuzz_bytes(folder / labels_name, lambda: consume(read_files(name, folder)))
    fuzz_bytes(folder / "images" / "000001.png", lambda: consume(read_files(name, folder)))


def test_csv(tmp_path):
    path = tmp_path / "sources.csv"
    path.write_bytes(b"file,shape,size\na.png,1,2.5\nb/c.png,cube,3\n")
    fuzz_bytes(path, lambda: read_source_table(path, ["a.png", "b/c.png"]))


def test_tensors(tmp_path):
    path = tmp_path / "x.safetensors"
    save_file({"x": np.ones((4, 3), np.float32), "sources": np.arange(4)}, path)
    fuzz_bytes(path, lambda: data_spec(path).load())


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    frame = pd.DataFrame({"site": ["north", "south", "north"], "temp": [1.5, 2.0, -3.0], "count": [1, 2, 3]})
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    fuzz_bytes(path, lambda: data_spec(path, source_columns=["site"]).load())


def test_csv_of_images(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.png").write_bytes(picture())
    path = tmp_path / "sources.csv"
    path.write_bytes(b"file,shape,size\na.png,1,2.5\nb.png,12345678901234567890,nan\n")
    fuzz_bytes(path, lambda: data_spec(tmp_path, source_file=path).image_set(), num_inputs=max(10, NUM_INPUTS // 2))


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """The folder of a cache entry with sources and file names."""
    monkeypatch.setenv("QLAE_CACHE", str(tmp_path / "cache"))
    pixels = tmp_path / "pixels"
    pixels.mkdir()
    for i in range(3):
        Image.new("RGB", (8, 8), (i, 0, 0)).save(pixels / f"{i}.png")
    np.save(tmp_path / "sources.npy", np.array([[0, 0.5], [1, 0.7], [2, 0.1]]))
    data_spec(pixels, source_file=tmp_path / "sources.npy", resolution=8).load()
    (info,) = (tmp_path / "cache").glob("*/info.json")
    return info.parent


@pytest.mark.parametrize("name", ["info.json", "files.json"])
def test_json_of_a_cache_entry(entry, name):
    def read():
        data = cache.open_entry(entry)
        json.dumps(data.describe())
        np.asarray(data.images), np.asarray(data.sources)
        cache.entries()

    fuzz_json(entry / name, json.loads((entry / name).read_text()), read)


@pytest.mark.parametrize("name", ["sources.npy", "images.u8"])
def test_arrays_of_a_cache_entry(entry, name):
    def read():
        data = cache.open_entry(entry)
        np.asarray(data.images), np.asarray(data.sources)

    fuzz_bytes(entry / name, read)
