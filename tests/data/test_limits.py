"""Small files stay small in memory, damage is noticed, and a file reads only itself."""

import gzip
import io
import os
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

from qlae._io import read_npz
from qlae.data import data_spec, pictures
from qlae.data.array_files import ArrayStream
from qlae.data.image_files import open_files
from qlae.data.pictures import PictureSize, decode, map_in_threads, resize, shrink, webp_size
from qlae.data.published import read_files

h5py = pytest.importorskip("h5py")


def ramp(width, height):
    """Return an RGB image that changes smoothly."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return Image.fromarray(np.stack([x, y, 255 - x], -1).astype(np.uint8))


@pytest.mark.parametrize(("size", "mode"), [((900, 900), "RGB"), ((1300, 700), "RGBA"), ((701, 1303), "L")])
def test_a_large_image_is_scaled_in_strips(monkeypatch, size, mode):
    image = ramp(*size).convert(mode)
    content = io.BytesIO()
    image.save(content, "PNG")
    direct = decode(content.getvalue(), PictureSize(16, 16)).astype(int)
    monkeypatch.setattr(pictures, "LARGE_PIXELS", 1000)
    monkeypatch.setattr(pictures, "STRIP_PIXELS", 5000)
    assert shrink(image, PictureSize(16, 16)).size[0] in range(4 * 16, 8 * 16)
    assert np.abs(decode(content.getvalue(), PictureSize(16, 16)).astype(int) - direct).max() <= 4
    array = np.asarray(image.convert("RGB"))[None]
    assert np.abs(resize(array, PictureSize(16, 16))[0].astype(int) - direct).max() <= 4


def test_a_large_image_keeps_its_orientation(monkeypatch):
    image = Image.new("RGB", (600, 400), "red")
    image.paste("blue", (0, 0, 300, 400))  # the left half
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise by 90°
    content = io.BytesIO()
    image.save(content, "PNG", exif=exif)
    direct = decode(content.getvalue(), PictureSize(8, 8))
    assert direct[0, 4].tolist() == [0, 0, 255]
    monkeypatch.setattr(pictures, "LARGE_PIXELS", 1000)
    assert np.abs(decode(content.getvalue(), PictureSize(8, 8)).astype(int) - direct).max() <= 4


def test_sixteen_bits_are_scaled_in_strips(monkeypatch):
    grey = np.broadcast_to(np.linspace(0, 65535, 512).astype(np.uint16)[:, None], (512, 512)).copy()
    content = io.BytesIO()
    Image.fromarray(grey).save(content, "PNG")
    direct = decode(content.getvalue(), PictureSize(16, 16)).astype(int)
    monkeypatch.setattr(pictures, "LARGE_PIXELS", 1000)
    assert np.abs(decode(content.getvalue(), PictureSize(16, 16)).astype(int) - direct).max() <= 2


def test_few_heavy_items_wait_at_a_time(monkeypatch):
    monkeypatch.setattr(pictures, "MAX_WAITING_BYTES", 10)
    taken = []

    def items():
        for number in range(6):
            taken.append(number)
            yield number

    results = map_in_threads(lambda number: number, items(), weigh=lambda _: 8)
    assert next(results) == 0
    assert len(taken) == 2
    assert list(results) == [1, 2, 3, 4, 5]


def test_an_archive_that_expands_without_bounds_is_refused(tmp_path):
    path = tmp_path / "zeros.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (2**29,)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("latents.npy", "w") as file:
        file.write(header.getvalue())
        for _ in range(2**5):
            file.write(bytes(2**24))
    with pytest.raises(ValueError, match=r"zeros.npz cannot be read \(its [\d,]+ bytes would expand to 536,871,040"):
        read_npz(path)
    with pytest.raises(ValueError, match="at most 268,435,456 are read as a whole"):
        ArrayStream(path, "latents").read_all()


def test_images_with_too_many_pixels_are_refused_before_they_are_read(tmp_path):
    path = tmp_path / "huge.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (1, 2**14, 2**14)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("images.npy", "w") as file:
        file.write(header.getvalue())
        for _ in range(2**4):
            file.write(bytes(2**24))
    with pytest.raises(ValueError, match="has images of 16384×16384 pixels, more than 67,108,864"):
        data_spec(path).image_set()


def test_a_damaged_byte_in_a_compressed_tar_is_noticed(tmp_path, rng):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name in ("a.bmp", "b.bmp"):
            content = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (16, 16, 3)).astype(np.uint8)).save(content, "BMP")
            info = tarfile.TarInfo(name)
            info.size = len(content.getvalue())
            archive.addfile(info, io.BytesIO(content.getvalue()))
    whole = gzip.compress(plain.getvalue(), compresslevel=0)  # stored, so that a changed byte is a changed pixel
    path = tmp_path / "images.tar.gz"
    path.write_bytes(whole)
    assert open_files(path).names() == ["a.bmp", "b.bmp"]
    damaged = bytearray(whole)
    damaged[900] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"tar.gz cannot be read \(it is damaged or incomplete: CRC check failed"):
        data_spec(path).image_set()


def test_whole_numbers_of_any_size_stay_distinct(tmp_path):
    for i in range(3):
        Image.new("RGB", (8, 8)).save(tmp_path / f"{i}.png")
    large = [2**53, 2**53 + 1, 2**53]
    table = tmp_path / "sources.csv"
    table.write_text("file,id,huge\n" + "".join(f"{i}.png,{n},{n * 2**40}\n" for i, n in enumerate(large)))
    assert data_spec(tmp_path, source_file=table).image_set().sources.tolist() == [[0, 0], [1, 1], [0, 0]]
    array = tmp_path / "sources.npy"
    np.save(array, np.array(large))
    assert data_spec(tmp_path, source_file=array).image_set().sources.tolist() == [[0], [1], [0]]


def test_an_hdf5_file_reads_only_itself(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(256)) * 48 * 2)
    with h5py.File(tmp_path / "external.h5", "w") as file:
        file.create_dataset("images", (2, 64, 64, 3), np.uint8, external=[(str(secret), 0, 2 * 64 * 64 * 3)])
        file["labels"] = np.zeros((2, 6))
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        layout = h5py.VirtualLayout((2, 64, 64, 3), np.uint8)
        layout[:] = h5py.VirtualSource(str(tmp_path / "external.h5"), "images", (2, 64, 64, 3))
        file.create_virtual_dataset("images", layout)
        file["labels"] = np.zeros((2, 6))
    for name in ("external.h5", "virtual.h5"):
        with pytest.raises(ValueError, match=f"{name} keeps 'images' in other files, which are not read"):
            read_files("shapes3d", tmp_path / name)


MEASURE = """
import os, resource, sys
os.cpu_count = lambda: 16  # on a machine with many cores, too
from qlae.cli import main
try:
    main(sys.argv[1:])
finally:  # which ends with SystemExit
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.parametrize("size", [(1, 1), (37, 91), (5000, 33)])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("kind", ["lossy", "lossless", "extended", "animated"])
def test_the_size_of_a_webp_file_is_known_before_it_is_opened(size, mode, kind):
    exif = Image.Exif()
    exif[0x0112] = 6
    frames = [Image.new(mode, size, (9,) * len(mode)) for _ in range(2)]
    options = {"lossless": {"lossless": True}, "extended": {"exif": exif}, "lossy": {}}
    content = io.BytesIO()
    frames[0].save(content, "WEBP", **options.get(kind, {"save_all": True, "append_images": frames[1:]}))
    assert webp_size(content.getvalue()) == size
    assert webp_size(content.getvalue()[8:]) is None


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="measures the memory of a process by the resource module")
@pytest.mark.parametrize("kind", ["h5", "npz", "16 bits", "rgba", "webp"])
def test_memory_stays_below_one_gigabyte(tmp_path, kind):
    path, name = tmp_path / "images", "own"
    if kind == "h5":
        path, name = tmp_path / "3dshapes.h5", "shapes3d"
        with h5py.File(path, "w") as file:
            file.create_dataset("images", (200, 2500, 2500, 3), np.uint8, chunks=(1, 2500, 2500, 3))
            file["labels"] = np.zeros((200, 6))
    elif kind == "npz":
        path = tmp_path / "zeros.npz"
        np.savez_compressed(path, images=np.zeros((60, 2500, 2500, 3), np.uint8))
    else:
        path.mkdir()
        images = {
            "16 bits": ("png", Image.fromarray(np.zeros((8192, 8192), np.uint16))),
            "rgba": ("png", Image.new("RGBA", (8192, 8192), (255, 0, 0, 128))),
            "webp": ("webp", Image.new("RGB", (5016, 5016), (255, 0, 0))),
        }
        suffix, image = images[kind]
        for number in range(4):
            image.save(path / f"{number}.{suffix}")
    assert kind in ("npz",) or sum(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file()) < 2**24
    command = [sys.executable, "-c", MEASURE, "data", "prepare", name, "--from", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(ended.stdout.split()[-1]) < 1000


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="measures the memory of a process by the resource module")
@pytest.mark.parametrize("dtype", [np.int8, np.float64])
def test_scoring_a_small_file_stays_below_one_gigabyte(tmp_path, dtype):
    rng, path, num_rows = np.random.default_rng(0), tmp_path / "sample.npz", 1_000_000
    latents, sources = np.zeros((2, num_rows, 10), dtype)
    latents[:50_000], sources[:50_000] = rng.integers(0, 4, (50_000, 10)), rng.integers(0, 3, (50_000, 10))
    np.savez_compressed(path, latents=latents, sources=sources)
    assert path.stat().st_size < 2**24
    command = [sys.executable, "-c", MEASURE, "score", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(ended.stdout.split()[-1]) < 1000
