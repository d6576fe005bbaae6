"""The user's own images: unusual folders, arrays, and separate sources."""

import csv
import io
import os
import shutil
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from array_files import object_array
from PIL import Image

from qlae.data import load_data
from qlae.data.cache import clear, entries


def picture(width, height, mode="RGB", colour=(200, 40, 90)):
    image = Image.new("RGB", (width, height), colour)
    return image.convert(mode)


@pytest.fixture
def folder(tmp_path):
    """Images of many formats, and files that are not images."""
    place = tmp_path / "photos"
    (place / "a" / "b").mkdir(parents=True)
    picture(100, 60).save(place / "wide.png")
    picture(30, 90).save(place / "a" / "tall.jpg", quality=95)
    picture(64, 64).save(place / "a" / "b" / "web.webp", lossless=True)
    picture(50, 50, "L").save(place / "a" / "grey.PNG")
    Image.new("RGBA", (40, 40), (0, 0, 255, 0)).save(place / "clear.png")
    Image.fromarray(np.full((20, 20), 65535, np.uint16)).save(place / "deep.png")
    picture(32, 32, "P").save(place / "palette.png")
    (place / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing")
    whole = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(whole, "PNG")
    (place / "cut.png").write_bytes(whole.getvalue()[:3000])
    (place / "empty.jpg").write_bytes(b"")
    (place / "notes.txt").write_text("no image")
    return place


def test_a_folder_of_many_formats(folder):
    with pytest.warns(UserWarning, match=r"3 of 10 images in .* are left out: broken.png \(.*cut.png .*empty.jpg"):
        data = load_data("photos", path=folder, resolution=32)
    names = ["a/b/web.webp", "a/grey.PNG", "a/tall.jpg", "clear.png", "deep.png", "palette.png", "wide.png"]
    assert data.images.shape == (len(names), 32, 32, 3)
    assert data.name == "photos"
    assert data.origin == "real"
    assert data.sources.shape == (7, 0)
    assert len(data.left_out) == 3
    shown = dict(zip(names, np.asarray(data.images), strict=True))
    assert np.abs(shown["a/b/web.webp"].astype(int) - (200, 40, 90)).max() <= 2
    assert len(np.unique(shown["a/grey.PNG"])) == 1
    assert (shown["clear.png"] == 255).all()  # transparent is white
    assert (shown["deep.png"] == 255).all()
    assert np.abs(shown["wide.png"].astype(int) - (200, 40, 90)).max() <= 1


def test_a_folder_by_its_path_alone(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = load_data(str(folder), resolution=16)
        again = load_data(folder, resolution=16)
    assert data.name == again.name == "photos"
    assert len(data) == len(again) == 7


def test_file_names_go_with_the_images(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, second = (load_data("photos", path=folder, resolution=16) for _ in range(2))
    assert first.file_names == second.file_names
    assert first.file_names == (
        *("a/b/web.webp", "a/grey.PNG", "a/tall.jpg"),
        *("clear.png", "deep.png", "palette.png", "wide.png"),
    )
    assert first.checksum == second.checksum


@pytest.mark.parametrize("suffix", ["bmp", "gif", "tiff"])
def test_other_formats(tmp_path, suffix):
    picture(20, 20).save(tmp_path / f"one.{suffix}")
    data = load_data(str(tmp_path), resolution=16)
    assert np.abs(np.asarray(data.images).astype(int) - (200, 40, 90)).max() <= 1


def test_prepared_images_are_found_by_their_name(tmp_path):
    np.savez(tmp_path / "a.npz", images=np.zeros((4, 16, 16, 3), np.uint8), sources=np.arange(4))
    made = load_data("mine", path=tmp_path / "a.npz", resolution=16)
    found = load_data("mine", resolution=16)
    assert (len(found), found.source_names, found.checksum) == (4, made.source_names, made.checksum)
    assert len(found.spec.load()) == 4
    with pytest.raises(ValueError, match=r"num_images does not apply to .* mine"):
        load_data("mine", resolution=16, num_images=3)
    with pytest.raises(ValueError, match="mine was prepared at 16×16 pixels, not at 32×32: choose resolution 16, or"):
        load_data("mine", resolution=32)
    np.savez(tmp_path / "b.npz", images=np.ones((4, 16, 16, 3), np.uint8))
    load_data("mine", path=tmp_path / "b.npz", resolution=16)
    with pytest.raises(ValueError, match="mine was prepared 2 times from different files"):
        load_data("mine", resolution=16)


def test_names_with_any_characters(tmp_path):
    np.savez(tmp_path / "a.npz", images=np.zeros((4, 16, 16, 3), np.uint8))
    for name, kept in (("my-set", "my-set"), ("my", "my"), ("my other set", "my_other_set")):
        assert load_data(name, path=tmp_path / "a.npz", resolution=16).name == kept
        assert load_data(name, resolution=16).name == kept
    assert clear("my") > 0
    assert [entry.name for entry in entries()] == ["my-set", "my_other_set"]
    assert clear("my other set") > 0
    assert clear("my-set") > 0
    assert entries() == []


def test_file_names_are_cached(tmp_path, cache_folder):
    (tmp_path / "photos").mkdir()
    for name in ("b.png", "a.png", "é\n.png"):
        picture(16, 16).save(tmp_path / "photos" / name)
    load_data("mine", path=tmp_path / "photos", resolution=16)
    shutil.rmtree(tmp_path / "photos")
    found = load_data("mine", resolution=16)
    assert found.file_names == ("a.png", "b.png", "é\n.png")
    assert found.spec.load().file_names == found.file_names
    (names,) = cache_folder.glob("mine-*/files.json")
    names.write_text('["a.png"]')
    with pytest.raises(ValueError, match=r"is damaged \(files.json must list 3"):
        load_data("mine", resolution=16)


def test_a_missing_path_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"there is no folder or file .*holidy/, and no data set of that name"):
        load_data(f"{tmp_path}/holidy/")


def test_a_folder_with_the_name_of_a_data_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"there is no folder or file \./shapes3d"):
        load_data(Path("shapes3d"), resolution=16)
    (tmp_path / "shapes3d").mkdir()
    picture(16, 16).save(tmp_path / "shapes3d" / "x.png")
    for place in ("./shapes3d", Path("shapes3d"), tmp_path / "shapes3d"):
        data = load_data(place, resolution=16)
        assert (len(data), data.origin, data.name) == (1, "real", "own_shapes3d")
    assert data.spec.load().checksum == data.checksum
    assert load_data("shapes3d", resolution=16).origin == "rendered"


def test_the_origin_in_an_npz_is_used(tmp_path):
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 16, 16, 3), np.uint8), origin=np.array(["rendered"]))
    assert load_data(tmp_path / "a.npz", resolution=16).origin == "rendered"


@pytest.mark.parametrize("values", [np.linspace(0, 1, 256), np.arange(256, dtype=np.int32)], ids=["float", "int32"])
def test_pixels_of_unknown_range_are_left_out(tmp_path, values):
    Image.fromarray(values.reshape(16, 16).astype(np.int32 if values.dtype == np.int32 else np.float32)).save(
        tmp_path / "deep.tiff"
    )
    picture(16, 16).save(tmp_path / "plain.tiff")
    with pytest.warns(UserWarning, match=r"1 of 2 images .* left out: deep.tiff \(its pixels are 32-bit numbers"):
        data = load_data("photos", path=tmp_path, resolution=16)
    assert len(data) == 1


def test_a_photo_cut_short_is_left_out(tmp_path):
    whole = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (600, 800, 3), dtype=np.uint8)).save(whole, "JPEG")
    (tmp_path / "cut.jpg").write_bytes(whole.getvalue()[:-20_000])
    (tmp_path / "whole.jpg").write_bytes(whole.getvalue())
    with pytest.warns(UserWarning, match=r"1 of 2 images .* left out: cut.jpg \(.*truncated"):
        assert len(load_data("photos", path=tmp_path, resolution=16)) == 1


def test_images_are_cropped_in_the_middle(tmp_path):
    image = np.zeros((20, 60, 3), np.uint8)
    image[:, 20:40] = 255
    Image.fromarray(image).save(tmp_path / "x.png")
    data = load_data("middle", path=tmp_path, resolution=16)
    assert (data.images[0][:, 1:-1] > 250).all()


def test_a_camera_turned_on_its_side(tmp_path):
    image = np.zeros((40, 40, 3), np.uint8)
    image[:20] = 255
    exif = Image.Exif()
    exif[274] = 3  # upside down
    Image.fromarray(image).save(tmp_path / "x.jpg", exif=exif, quality=95)
    turned = load_data("turned", path=tmp_path, resolution=16).images[0]
    assert turned[:6].mean() < 20
    assert turned[-6:].mean() > 235


def test_a_loop_of_links_ends(tmp_path):
    picture(16, 16).save(tmp_path / "x.png")
    os.symlink(tmp_path, tmp_path / "loop")
    os.symlink(tmp_path / "nowhere.png", tmp_path / "dangling.png")
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.warns(UserWarning, match=r"2 of 3 .* dangling.png \(it is empty or cannot be opened\), pipe.png"):
        assert len(load_data("loop", path=tmp_path, resolution=16)) == 1


def test_a_name_that_is_not_utf_8_is_left_out(tmp_path):
    picture(16, 16).save(tmp_path / "good.png")
    os.rename(shutil.copy(tmp_path / "good.png", tmp_path / "x.png"), os.fsencode(tmp_path) + b"/caf\xe9.png")
    with pytest.warns(UserWarning, match=r"1 of 2 .* caf\\udce9.png \(its name is not UTF-8; rename it\)"):
        data = load_data("latin", path=tmp_path, resolution=16)
    assert data.file_names == ("good.png",)
    assert data.left_out == {"caf\\udce9.png": "its name is not UTF-8; rename it"}


def test_a_picture_far_too_large_is_left_out(tmp_path):
    picture(16, 16).save(tmp_path / "small.png")
    Image.new("1", (9_000, 9_000)).save(tmp_path / "bomb.png")
    with pytest.warns(UserWarning, match=r"bomb.png \(it has 9000×9000 pixels"):
        assert len(load_data("bomb", path=tmp_path, resolution=16)) == 1


def test_zip_of_a_folder(folder, tmp_path):
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        for path in sorted(folder.rglob("*.png")):
            archive.write(path, path.relative_to(folder.parent))
    with pytest.warns(UserWarning, match="2 of 6 images"):
        assert len(load_data("zipped", path=tmp_path / "photos.zip", resolution=16)) == 4


@pytest.mark.parametrize("shape", [(5, 20, 20), (5, 20, 20, 1), (5, 20, 30, 3), (5, 20, 20, 4)])
def test_arrays(tmp_path, shape):
    images = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    if len(shape) == 4 and shape[3] == 4:
        images[..., 3] = 255
    np.save(tmp_path / "mine.npy", images)
    data = load_data(str(tmp_path / "mine.npy"), resolution=20)
    assert data.images.shape == (5, 20, 20, 3)
    if shape != (5, 20, 30, 3):
        grey = images if images.ndim == 3 else images[..., 0]
        assert np.array_equal(data.images[..., 0], grey)


def test_an_array_with_sources(tmp_path):
    images = np.zeros((6, 8, 8, 3), np.uint8)
    sources = np.array([[10, 0], [20, 0], [30, 1], [10, 1], [20, 2], [30, 2]])
    np.savez(tmp_path / "mine.npz", images=images, sources=sources, source_names=np.array(["colour", "size"]))
    data = load_data(str(tmp_path / "mine.npz"), resolution=8)
    assert data.source_names == ("colour", "size")
    assert data.source_sizes == (3, 3)
    assert data.sources.tolist() == [[0, 0], [1, 0], [2, 1], [0, 1], [1, 2], [2, 2]]
    np.save(tmp_path / "fractions.npy", sources / 4)
    fractions = load_data("mine", path=tmp_path / "mine.npz", resolution=8, source_file=tmp_path / "fractions.npy")
    assert fractions.sources.tolist() == [[2.5, 0], [5, 0], [7.5, 0.25], [2.5, 0.25], [5, 0.5], [7.5, 0.5]]
    np.save(tmp_path / "sources.npy", sources[:, 0])
    other = load_data("mine", path=tmp_path / "mine.npz", resolution=8, source_file=tmp_path / "sources.npy")
    assert other.source_names == ("source 1",)


def test_a_csv_of_sources(tmp_path):
    for name in ("one", "two", "three"):
        picture(16, 16).save(tmp_path / f"{name}.png")
    table = tmp_path / "table.csv"
    table.write_text("file,shape,angle\nthree.png,ball,1.5\none.png,cube,0\n./two.png,ball,3\nextra.png,x,1\n")
    data = load_data("csv", path=tmp_path, resolution=16, source_file=table)
    assert data.source_names == ("shape", "angle")
    assert data.sources.tolist() == [[1, 0], [0, 1.5], [0, 3]]  # one, three, two
    assert data.source_sizes == (2, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,a\none.png,1\n", "has no line for 1 of 2 images, such as two.png"),
        ("file\none.png\ntwo.png\n", "must begin with a line of names"),
        ("file,a,a\none.png,1,2\ntwo.png,1,2\n", "2 columns named 'a'"),
        ("file,a\none.png,1,2\ntwo.png,1\n", r"another number of cells than the 2 of its first line \(line 2: 3\)"),
        ("file,a\none.png,nan\ntwo.png,1\n", "source 'a' has values that are not finite numbers"),
        ("", "is empty .*: it needs a line of column names"),
        ("\nfile,a\none.png,1\ntwo.png,2\n", "is empty .*: it needs a line of column names"),
        ("one.png,1\ntwo.png,2\n", "must begin with a line of names"),
        ("file,a,b\none.png,1,2\n\ntwo.png,,3\n", "has no 'a' for two.png: fill it in"),
        ("file,a\none.png,1\ntwo.png,2\n./one.png,3\n", "two lines for one.png: remove one of them"),
        ('file,a\none.png,"1\ntwo.png,3\n', "cannot be read as a CSV"),
    ],
)
def test_wrong_csv(tmp_path, text, message):
    for name in ("one", "two"):
        picture(16, 16).save(tmp_path / f"{name}.png")
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_data("csv", path=tmp_path, resolution=16, source_file=tmp_path / "table.csv")


ODD_NAMES = (" first.png", "a\\b.png", "break\n.png", "return\r.png", 'say "x", y.png', "x.png", "x.png .png")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_odd_names_in_a_csv(tmp_path, end):
    for name in ODD_NAMES:
        picture(16, 16).save(tmp_path / name)
    with open(tmp_path / "table.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator=end, quoting=csv.QUOTE_ALL)
        writer.writerows([("file", "level"), *((name, i + 0.5) for i, name in enumerate(ODD_NAMES))])
    data = load_data("odd", path=tmp_path, resolution=16, source_file=tmp_path / "table.csv")
    assert data.file_names == ODD_NAMES
    assert data.sources[:, 0].tolist() == [i + 0.5 for i in range(len(ODD_NAMES))]


@pytest.mark.parametrize("delimiter", [";", "\t", ", "])
def test_other_delimiters(tmp_path, delimiter):
    for name in ("one", "two"):
        picture(16, 16).save(tmp_path / f"{name}.png")
    lines = (("file", "shape", "angle"), ("one.png", "ball", "1.5"), ("two.png", "cube", "2"))
    (tmp_path / "table.csv").write_text("\n".join(delimiter.join(line) for line in lines))
    data = load_data("csv", path=tmp_path, resolution=16, source_file=tmp_path / "table.csv")
    assert data.source_names == ("shape", "angle")
    assert data.sources.tolist() == [[0, 1.5], [1, 2]]


def test_a_missing_csv_or_one_for_an_array_is_an_error(tmp_path):
    picture(16, 16).save(tmp_path / "one.png")
    with pytest.raises(ValueError, match=r"nowhere.csv is not a file: sources come as a CSV"):
        load_data("csv", path=tmp_path, resolution=16, source_file=tmp_path / "nowhere.csv")
    np.save(tmp_path / "array.npy", np.zeros((5, 8, 8, 3), np.uint8))
    with pytest.raises(ValueError, match=r"a CSV refers to file names, .* give its sources as an \.npy"):
        load_data("array", path=tmp_path / "array.npy", source_file=tmp_path / "table.csv")


def test_source_files_of_another_format_are_errors(tmp_path):
    picture(16, 16).save(tmp_path / "one.png")
    (tmp_path / "notes.txt").write_text("one.png 1")
    with pytest.raises(ValueError, match=r"source_file must be a \.csv .* or an \.npy .*, got .*notes\.txt"):
        load_data("csv", path=tmp_path, resolution=16, source_file=tmp_path / "notes.txt")


def test_wrong_arrays(tmp_path):
    for i, (images, message) in enumerate(
        [
            (np.zeros((5, 8, 8, 3)), "resolution is for images of bytes"),
            (np.zeros((5, 8, 8, 3), np.int64), "resolution is for images of bytes"),
            (np.zeros((5, 8, 8, 2), np.uint8), "must be uint8 of shape"),
            (np.zeros((0, 8, 8, 3), np.uint8), "must be uint8 of shape"),
            (np.zeros((5, 8), np.uint8), "must be uint8 of shape"),
        ]
    ):
        np.save(tmp_path / f"{i}.npy", images)
        with pytest.raises(ValueError, match=message):
            load_data("mine", path=tmp_path / f"{i}.npy", resolution=16)
    (tmp_path / "objects.npy").write_bytes(object_array((1,)))
    with pytest.raises(ValueError, match="holds pickled objects"):
        load_data(str(tmp_path / "objects.npy"))
    np.save(tmp_path / "good.npy", np.zeros((5, 8, 8, 3), np.uint8))
    np.save(tmp_path / "sources.npy", np.zeros((4, 2)))
    with pytest.raises(ValueError, match="sources must have one row for each of 5"):
        load_data("good", path=tmp_path / "good.npy", source_file=tmp_path / "sources.npy")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(ValueError, match="has no images: no PNG, JPEG, WebP"):
        load_data(str(tmp_path / "nothing"))
    (tmp_path / "nothing" / "x.png").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"none of the 1 images in .* can be read"):
        load_data(str(tmp_path / "nothing"))


def test_the_pass_over_a_folder_is_reported(folder):
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            load_data(str(folder), resolution=16, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (10, 10)
    assert len(seen) <= 10
