"""Image files in other shapes than squares, and with one channel; squares in colour as before, bit for bit."""

import io
import zipfile

import numpy as np
import pytest
from PIL import Image, ImageOps

import qlae
from qlae.cli import main
from qlae.data import cache, pictures
from qlae.data.pictures import PictureSize, decode, picture_size, shrink, wanted_size
from qlae.explorer import open_run
from qlae.runs.encode import encode_to_file


def picture(width, height, seed=0):
    small = np.random.default_rng(seed).integers(0, 255, (6, 8, 3)).astype(np.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)


def as_bytes(image, **options):
    file = io.BytesIO()
    image.save(file, "PNG", **options)
    return file.getvalue()


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "photos"
    path.mkdir()
    for i in range(12):
        picture(40 + i, 30, i).save(path / f"{i:02}.png")
    return path


def test_sizes_are_written_in_several_ways():
    assert picture_size("60x90") == picture_size((60, 90)) == picture_size("60×90") == PictureSize(60, 90)
    assert wanted_size("64", grey=True) == PictureSize(64, 64, 1)
    for size in (64, "60x90", "64x64x1"):
        assert picture_size(picture_size(size).plain) == picture_size(size)


@pytest.mark.parametrize("wrong", ["", "60x", "x90", "a", "60x90x2", True, 7.5, (1, 2, 3), None, "-8"])
def test_other_texts_are_errors(wrong):
    with pytest.raises(ValueError, match="resolution must be an integer from 8 to 1024, or height and width"):
        picture_size(wrong)


@pytest.mark.parametrize(
    ("wrong", "message"), [("7x20", "8 to 256 pixels"), ("300x20", "8 to 256"), ("2000", "8 to 1024")]
)
def test_sizes_that_no_network_takes_are_errors(wrong, message):
    with pytest.raises(ValueError, match=message):
        wanted_size(wrong)


def test_pictures_are_scaled_to_cover_the_size_and_cropped_in_the_middle():
    image = picture(100, 80)
    expected = ImageOps.fit(image, (30, 16), Image.Resampling.BICUBIC)
    assert np.array_equal(decode(as_bytes(image), PictureSize(16, 30)), np.asarray(expected))
    grey = decode(as_bytes(image), PictureSize(16, 30, 1))
    assert np.array_equal(grey, np.asarray(expected.convert("L"))[..., None])


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
@pytest.mark.parametrize("sides", [(1250, 900), (1050, 1050)])
def test_large_pictures_are_cropped_to_the_shape_whichever_way_they_lie(orientation, sides, monkeypatch):
    monkeypatch.setattr(pictures, "LARGE_PIXELS", 2**20)
    monkeypatch.setattr(pictures, "STRIP_PIXELS", 2**16)
    image = picture(*sides)
    exif = Image.Exif()
    exif[0x0112] = orientation
    size = PictureSize(12, 48)
    direct = ImageOps.fit(ImageOps.exif_transpose(_with(image, exif)), (48, 12), Image.Resampling.BICUBIC)
    decoded = decode(as_bytes(image, exif=exif), size)
    assert decoded.shape == (12, 48, 3)
    assert np.abs(decoded.astype(int) - np.asarray(direct)).max() <= 8  # the crop is a whole number of squares


def _with(image, exif):
    copy = image.copy()
    copy.getexif()[0x0112] = exif[0x0112]
    return copy


def test_shrinking_keeps_the_shape():
    small = shrink(picture(4000, 900), PictureSize(20, 60))
    assert small.height >= 80
    assert small.width >= 240
    assert small.width / small.height == pytest.approx(3, rel=0.05)


def test_a_folder_in_another_shape_is_found_again(folder, tmp_path):
    data = qlae.load_data(folder, resolution="12x20", grey=True)
    assert data.images.shape == (12, 12, 20, 1)
    assert np.array_equal(data.images[3], decode((folder / "03.png").read_bytes(), PictureSize(12, 20, 1)))
    (entry,) = cache.entries()
    assert entry.size == PictureSize(12, 20, 1)
    assert qlae.load_data(folder, resolution=(12, 20), grey=True).checksum == data.checksum
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        for path in folder.iterdir():
            archive.write(path, path.name)
    assert np.array_equal(qlae.load_data(tmp_path / "photos.zip", resolution="12x20", grey=True).images, data.images)


def test_squares_in_colour_have_the_same_entry_as_before(folder):
    data = qlae.load_data(folder, resolution=16)
    assert data.describe()["resolution"] == 16
    (entry,) = cache.entries()
    assert entry.key.startswith("photos-real-16-")


def test_prepared_names_have_their_size(folder):
    qlae.load_data("mine", path=folder, resolution="12x20")
    assert qlae.load_data("mine", resolution="12x20").images.shape == (12, 12, 20, 3)
    with pytest.raises(ValueError, match="prepared at 12×20 pixels, not at 64×64: choose resolution 12x20, or prepare"):
        qlae.load_data("mine")


@pytest.mark.parametrize("options", [{"resolution": "16x20"}, {"grey": True}])
def test_rendered_images_are_square_and_coloured(options):
    with pytest.raises(ValueError, match=r"shapes3d has square images|grey does not apply to .* shapes3d"):
        qlae.load_data("shapes3d", **options)


def test_arrays_and_tables_are_not_made_grey_by_accident(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((4, 16, 20, 3), np.uint8))
    with pytest.raises(ValueError, match="keeps its size and channels"):
        qlae.load_data(tmp_path / "a.npy", grey=True)
    assert qlae.load_data(tmp_path / "a.npy", grey=True, resolution="8x10").images.shape == (4, 8, 10, 1)
    assert qlae.load_data(tmp_path / "a.npy", resolution="8x10").images.shape == (4, 8, 10, 3)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(ValueError, match="resolution does not apply to the table"):
        qlae.load_data(tmp_path / "t.csv", resolution="8x10")
    with pytest.raises(ValueError, match="grey does not apply to data in memory"):
        qlae.load_data(np.zeros((4, 16, 20, 3), np.uint8), grey=True)


def test_a_model_of_oblong_grey_photographs_end_to_end(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = ["--size", "small", "--steps", "3", "--num-latents", "2", "--out", "run", "--quiet"]
    with pytest.raises(SystemExit, match="0"):
        main(["train", "qlae", "--data", str(folder), "--resolution", "12x20", "--grey", *options])
    run = qlae.Run.open("run")
    assert run.observations.shape == (12, 20, 1)
    assert (run.path / "reconstructions.png").is_file()
    for path, name in (("run", "again.csv"), ("export", "exported.csv")):
        if path == "export":
            qlae.load("run").save_pretrained("export")
        encode_to_file(path, name, data=folder, show=False)
    encode_to_file("run", "own.csv", show=False)
    texts = {(tmp_path / name).read_text() for name in ("again.csv", "exported.csv", "own.csv")}
    assert len(texts) == 1
    exploration = open_run("run", show=False)
    assert exploration.images is not None
    tile, code, _ = exploration.encode((folder / "05.png").read_bytes())
    assert tile.shape == (12, 20, 3)
    assert code == qlae.load("run").encode(exploration.images[5:6])[0].tolist()
    with pytest.raises(SystemExit, match="0"):  # resumes with the same data
        main(["train", "--resume", "run", "--steps", "5", "--quiet"])
    assert run.results["steps"] == 5
