"""Readers of the published files, tested on small files in the same formats and on damaged ones."""

import io
import math
import tarfile
import zipfile

import h5py
import numpy as np
import pytest
from array_files import object_array
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from qlae.data import cache, data_config, load_data, load_from_config
from qlae.data.pictures import PictureSize
from qlae.data.published import MPI3D_COLORS_AND_SHAPES, SHAPES3D_VALUES, read_files
from qlae.data.sources import SOURCES


def pictures(num, size, seed=0):
    """Smooth random pictures, so that resampling keeps them recognisable."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (num, 4, 4, 3), dtype=np.uint8)
    return np.stack([np.asarray(Image.fromarray(s).resize((size, size), Image.Resampling.BICUBIC)) for s in small])


def png(image):
    out = io.BytesIO()
    Image.fromarray(image).save(out, "PNG")
    return out.getvalue()


def random_levels(name, num, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, num) for size in SOURCES[name].values()], axis=1)


def write_shapes3d(path, num=20):
    images, levels = pictures(num, 64), random_levels("shapes3d", num)
    labels = np.stack([values[levels[:, i]] for i, values in enumerate(SHAPES3D_VALUES)], axis=1)
    with h5py.File(path, "w") as file:
        file.create_dataset("images", data=images, chunks=(1, 64, 64, 3), compression="gzip")
        file.create_dataset("labels", data=labels)
    return images, levels


def png_set(name, num=12):
    """The files of Falcor3D or Isaac3D as {name: bytes}, with their images and levels."""
    images, levels = pictures(num, 128), random_levels(name, num)
    scaled = levels / (np.array(list(SOURCES[name].values())) - 1)
    labels = io.BytesIO()
    np.save(labels, scaled.astype(np.float32 if name == "falcor3d" else np.float64))
    folder = {"falcor3d": "Falcor3D_down128", "isaac3d": "Isaac3D_down128"}[name]
    files = {f"{folder}/{'train-rec.labels' if name == 'falcor3d' else 'labels.npy'}": labels.getvalue()}
    files |= {f"{folder}/images/{i:06d}.png": png(image) for i, image in enumerate(images)}
    return files, images, levels


def write_files(files, path, kind):
    if kind == "folder":
        for name, content in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
        return path / next(iter(files)).split("/")[0]
    if kind == "zip":
        with zipfile.ZipFile(path / "set.zip", "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path / "set.zip"
    mode = "w:gz" if kind == "tar.gz" else "w"
    with tarfile.open(path / f"set.{kind}", mode) as archive:
        for name, content in reversed(files.items()):  # a tar has any order
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path / f"set.{kind}"


def assert_half_size(got, images):
    """64×64 from 128×128, antialiased and bicubic."""
    expected = [Image.fromarray(i).resize((64, 64), Image.Resampling.BICUBIC) for i in images]
    assert np.array_equal(got, np.stack([np.asarray(i) for i in expected]))


def test_shapes3d(tmp_path):
    images, levels = write_shapes3d(tmp_path / "3dshapes.h5")
    seen = []
    data = load_data("shapes3d", path=tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert np.array_equal(data.images, images)
    assert np.array_equal(data.sources, levels)
    assert data.origin == data.describe()["origin"] == "real"
    assert data.source_sizes == (10, 10, 10, 8, 4, 15)
    assert seen[-1] == (20, 20)
    assert load_data("shapes3d", path=tmp_path / "3dshapes.h5", resolution=32).images.shape == (20, 32, 32, 3)
    assert len(cache.entries()) == 2


@pytest.mark.parametrize(("num", "kinds"), MPI3D_COLORS_AND_SHAPES.items())
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_mpi3d(tmp_path, num, kinds, save):
    # As many images as the real set has, but of one pixel.
    images = (np.arange(num)[:, None, None, None] % 251 * np.ones((1, 1, 1, 3), int)).astype(np.uint8)
    save(tmp_path / "mpi3d.npz", images=images)
    known = read_files("mpi3d", tmp_path / "mpi3d.npz")
    assert known.num_images == num == math.prod(known.source_sizes)
    assert known.source_sizes == [kinds, kinds, 2, 3, 3, 40, 40]
    assert known.sources is None
    first = next(known.read(PictureSize(1, 1)))
    assert np.array_equal(first, images[: len(first)])


def test_dsprites(tmp_path):
    rng = np.random.default_rng(0)
    images, levels = rng.integers(0, 2, (30, 64, 64), dtype=np.uint8), random_levels("dsprites", 30)
    classes = np.concatenate([np.zeros((30, 1), int), levels], axis=1)
    np.savez_compressed(
        tmp_path / "dsprites.npz",
        imgs=images,
        latents_classes=classes,
        latents_values=classes.astype(float),
        metadata=np.array({"title": "dSprites"}, dtype=object),  # pickled in the published file too; never read
    )
    data = load_data("dsprites", path=tmp_path / "dsprites.npz")
    assert np.array_equal(data.images, images[..., None] * 255)
    assert np.array_equal(data.sources, levels)
    assert data.observations == load_data("dsprites").observations  # a model of one takes the other
    again = load_from_config(data_config(data))
    assert np.array_equal(again.images, data.images)
    small = load_data("dsprites", path=tmp_path / "dsprites.npz", resolution=32)
    assert np.asarray(load_from_config(data_config(small)).images).shape == (30, 32, 32, 1)


@pytest.mark.parametrize("name", ["falcor3d", "isaac3d"])
@pytest.mark.parametrize("kind", ["folder", "zip", "tar", "tar.gz"])
def test_png_sets(tmp_path, name, kind):
    files, images, levels = png_set(name)
    path = write_files(files, tmp_path, kind)
    before = sorted(tmp_path.rglob("*"))
    data = load_data(name, path=path)
    order = slice(None, None, -1) if kind.startswith("tar") else slice(None)  # rows follow the archive
    assert_half_size(data.images, images[order])
    assert np.array_equal(data.sources, levels[order])
    assert [p for p in sorted(tmp_path.rglob("*")) if "cache" not in p.parts[len(tmp_path.parts) :][0]] == before


def test_a_second_call_uses_the_cache(tmp_path, monkeypatch):
    write_shapes3d(tmp_path / "3dshapes.h5")
    first = load_data("shapes3d", path=tmp_path)
    calls = []
    second = load_data("shapes3d", path=tmp_path, progress=lambda *_: calls.append(1))
    assert np.array_equal(first.images, second.images)
    assert calls == []
    write_shapes3d(tmp_path / "3dshapes.h5", num=7)  # changed files are prepared again
    assert len(load_data("shapes3d", path=tmp_path)) == 7


def test_labels_in_any_unit_become_levels(tmp_path):
    files, _, levels = png_set("isaac3d")
    for i, change in enumerate(
        [lambda x: x, lambda x: x.astype(np.float32), lambda x: x / (np.array([3, 8, 5, 4, 4, 4, 6, 4, 4]) - 1)]
    ):
        labels = io.BytesIO()
        np.save(labels, change(levels))
        (tmp_path / str(i)).mkdir()
        path = write_files(files | {"Isaac3D_down128/labels.npy": labels.getvalue()}, tmp_path / str(i), "zip")
        assert np.array_equal(read_files("isaac3d", path).sources, levels)


def bad_shapes3d(tmp_path, change):
    with h5py.File(tmp_path / "3dshapes.h5", "w") as file:
        arrays = {"images": np.zeros((4, 64, 64, 3), np.uint8), "labels": np.zeros((4, 6))} | change
        for key, value in arrays.items():
            if value is not None:
                file[key] = value
    return tmp_path / "3dshapes.h5"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": None}, "has no array 'labels': it has images"),
        ({"images": np.zeros((4, 64, 64, 3), np.float32)}, "must hold images uint8"),
        ({"images": np.zeros((4, 64, 64), np.uint8)}, "must hold images uint8"),
        ({"labels": np.zeros((5, 6))}, "must hold images uint8 .* and labels"),
        ({"labels": np.full((4, 6), np.nan)}, "values of 'floor hue'"),
        ({"images": h5py.ExternalLink("/etc/passwd", "/")}, "has no array 'images'"),
        ({"images": h5py.SoftLink("/labels")}, "has no array 'images'"),
    ],
)
def test_wrong_shapes3d(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        load_data("shapes3d", path=bad_shapes3d(tmp_path, change))
    assert cache.entries() == []


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((1000, 4, 4, 3), np.uint8), "has 1,000 images; the MPI3D sets have 460,800 or 1,036,800"),
        (np.zeros((460_800, 1, 1, 3), np.int8), "must be uint8"),
        (np.zeros((460_800, 1, 2, 3), np.uint8), "must be uint8"),
        (np.zeros((460_800, 1, 1, 4), np.uint8), "must be uint8"),
        (np.array([{"a": 1}], dtype=object), "holds pickled objects, which are never loaded"),
    ],
)
def test_wrong_mpi3d(tmp_path, images, message):
    np.savez_compressed(tmp_path / "mpi3d.npz", images=images)
    with pytest.raises(ValueError, match=message):
        load_data("mpi3d", path=tmp_path / "mpi3d.npz")


def test_an_npz_with_a_wrong_header(tmp_path):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "|u1", "fortran_order": False, "shape": (460_800, 64, 64, 3)})
    with zipfile.ZipFile(tmp_path / "mpi3d.npz", "w") as archive:
        archive.writestr("images.npy", head.getvalue() + b"too little")
    with pytest.raises(ValueError, match="bytes for 'images', but its header announces"):
        load_data("mpi3d", path=tmp_path / "mpi3d.npz")
    np.savez(tmp_path / "other.npz", other=np.zeros(3))
    with pytest.raises(ValueError, match="has no array 'images': it has other"):
        load_data("mpi3d", path=tmp_path / "other.npz")


@pytest.mark.parametrize("kind", ["folder", "zip", "tar"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.pop("Isaac3D_down128/images/000003.png"), "has 11 pictures .* but 12 labels"),
        (lambda f: f.pop("Isaac3D_down128/labels.npy"), "has 0 files called labels.npy"),
        (lambda f: f.update({"Isaac3D_down128/labels.npy": b"nothing"}), "is not an .npy file of a plain array"),
        (lambda f: f.update({"Isaac3D_down128/images/000003.png": b"\x89PNG"}), "000003.png in .* cannot be read"),
    ],
)
def test_incomplete_png_sets(tmp_path, kind, change, message):
    files, _, _ = png_set("isaac3d")
    change(files)
    with pytest.raises(ValueError, match=message):
        load_data("isaac3d", path=write_files(files, tmp_path, kind))
    assert not [entry for entry in cache.entries() if entry.is_complete]


def test_pickled_labels_are_refused(tmp_path):
    files, _, levels = png_set("isaac3d")
    files["Isaac3D_down128/labels.npy"] = object_array(levels.shape)
    with pytest.raises(ValueError, match=r"is not an \.npy file of a plain array"):
        load_data("isaac3d", path=write_files(files, tmp_path, "zip"))


def test_paths_that_climb_out_of_an_archive_touch_nothing(tmp_path):
    files, images, _ = png_set("falcor3d")
    files |= {"../../outside.png": png(images[0]), "/absolute.png": png(images[0])}
    inside = tmp_path / "deep" / "er"
    inside.mkdir(parents=True)
    for kind in ("zip", "tar"):
        data = load_data("falcor3d", path=write_files(files, inside, kind))
        assert len(data) == 12
    assert not list(tmp_path.rglob("outside.png"))


def test_missing_and_wrong_paths(tmp_path):
    with pytest.raises(ValueError, match="does not exist: give the path of the files of shapes3d"):
        load_data("shapes3d", path=tmp_path / "no.h5")
    with pytest.raises(ValueError, match=r"has 0 files like \*\.h5"):
        load_data("shapes3d", path=tmp_path)
    (tmp_path / "text.txt").write_text("hello")
    with pytest.raises(ValueError, match="neither a folder nor a zip or tar archive"):
        load_data("isaac3d", path=tmp_path / "text.txt")
    with pytest.raises(ValueError, match="does not apply to the published files of"):
        load_data("isaac3d", path=tmp_path, source_file=["robot x"])


@pytest.mark.parametrize("kind", ["h5", "npz", "zip", "tar", "tar.gz"])
@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_bytes_are_a_clear_error_or_a_consistent_set(tmp_path_factory, kind, data):
    """Bytes flipped or cut off anywhere: a ValueError, or a set of the announced shape; never another exception."""
    folder = tmp_path_factory.mktemp("damaged")
    name = {"h5": "shapes3d", "npz": "dsprites"}.get(kind, "isaac3d")
    if kind == "h5":
        path = folder / "3dshapes.h5"
        write_shapes3d(path, num=6)
    elif kind == "npz":
        path = folder / "dsprites.npz"
        np.savez_compressed(path, imgs=np.ones((6, 8, 8), np.uint8), latents_classes=np.zeros((6, 6), int))
    else:
        path = write_files(png_set("isaac3d", num=4)[0], folder, kind)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    for _ in range(data.draw(st.integers(0, 8))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(content))
    try:
        read = load_data(name, path=path, resolution=16)
    except ValueError:
        return
    assert read.images.shape == (len(read), 16, 16, 1 if kind == "npz" else 3)
    assert len(read.sources) == len(read)
