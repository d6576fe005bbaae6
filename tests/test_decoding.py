"""``qlae encode`` and ``qlae decode`` are a pair: each reads what the other writes."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import qlae
from qlae.cli import main
from qlae.runs.decode import file_names

OPTIONS = {"size": "small", "steps": 4, "batch_size": 4, "num_latents": 3, "evaluate": False, "show": False}
SUFFIXES = (".csv", ".parquet", ".npz")


def run_quietly(*words):
    with pytest.raises(SystemExit) as stop:
        main([*map(str, words), "--quiet"])
    return stop.value.code


@pytest.fixture(scope="module", params=["qlae", "ae"])
def photos(request, tmp_path_factory):
    """The run of a model of photographs in folders."""
    place = tmp_path_factory.mktemp("photos") / "holiday"
    (place / "beach").mkdir(parents=True)
    random = np.random.default_rng(0)
    for name in ("b.png", "beach/a.jpg", "beach/b.png"):
        Image.fromarray(random.integers(0, 255, (20, 20, 3), dtype=np.uint8)).save(place / name)
    data = qlae.load_data(place, resolution=16, hold_out=0)
    return qlae.train(request.param, data, out=place.parent / "run", **OPTIONS).path


@pytest.fixture(scope="module")
def table_run(tmp_path_factory):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=["width", "height", "z1"])
    data = qlae.load_data(frame, hold_out=0)
    return qlae.train("qlae", data, out=tmp_path_factory.mktemp("table") / "run", **OPTIONS).path, frame


@pytest.fixture(scope="module")
def windows_run(tmp_path_factory):
    steps = np.arange(40.0)
    parts = [pd.DataFrame({"unit": u, "time": steps, "a": np.sin(steps + k), "b": steps}) for k, u in enumerate("xy")]
    data = qlae.load_data(pd.concat(parts), window=8, unit_column="unit", time_column="time", hold_out=0)
    return qlae.train("qlae", data, out=tmp_path_factory.mktemp("windows") / "run", **OPTIONS).path, data


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("flags", [(), ("--numbers",)])
def test_photographs_there_and_back(photos, suffix, flags, tmp_path):
    codes = tmp_path / f"codes{suffix}"
    assert run_quietly("encode", photos, "--out", codes, *flags) == 0
    assert run_quietly("decode", photos, codes, "--out", tmp_path / "out") == 0
    model, names = qlae.load(photos), ("b", "beach/a", "beach/b")
    images = qlae.load_data(photos.parent / "holiday", resolution=16).images
    expected = model.decode(model.encode(images) if model.latent.has_codes else model.latents(images))
    assert sorted(path.name for path in (tmp_path / "out").rglob("*.png")) == ["a.png", "b.png", "b.png"]
    for name, image in zip(names, expected, strict=True):
        assert np.abs(np.asarray(Image.open(tmp_path / "out" / f"{name}.png")).astype(int) - image).max() <= 1
    decoded = qlae.decode(photos, codes, out=tmp_path / "decoded.npz", show=False)
    with np.load(tmp_path / "decoded.npz") as arrays:
        assert arrays["file"].tolist() == ["b.png", "beach/a.jpg", "beach/b.png"]
        assert np.array_equal(arrays["observations"], decoded)
    assert qlae.load_data(tmp_path / "out", resolution=16).images.shape == images.shape


def test_pictures_by_their_paths_are_named_by_them(photos, tmp_path):
    paths = [str(photos.parent / "holiday" / name) for name in ("beach/b.png", "b.png")]
    whole = qlae.encode(photos, show=False).set_index("file").loc[["beach/b.png", "b.png"]]
    table = qlae.encode(photos, paths, show=False)
    assert table["file"].tolist() == paths
    assert np.allclose(table.drop(columns="file"), whole, atol=1e-6)
    assert run_quietly("encode", photos, "--data", paths[1], "--out", tmp_path / "one.csv") == 0
    assert pd.read_csv(tmp_path / "one.csv")["file"].tolist() == paths[1:]
    plain = qlae.encode(photos, [Image.open(path) for path in paths], show=False)
    assert plain["image"].tolist() == [0, 1]


def test_names_of_latents_and_values_are_used_both_ways(table_run, tmp_path):
    run, frame = table_run
    named = qlae.name_latents(run, {0: "size", 1: "shape"}, {0: {code: f"size {code}" for code in range(4)}})
    assert named["latents"] == {"0": "size", "1": "shape"}
    plain = qlae.load(run).encode(frame)
    try:
        table = qlae.encode(run, frame, out=tmp_path / "codes.csv", show=False)
        assert list(table) == ["vector", "size", "shape", "z2"]
        assert table["size"].tolist() == [named["values"]["0"].get(str(code), str(code)) for code in plain[:, 0]]
        expected = qlae.load(run).decode(plain)
        assert np.array_equal(qlae.decode(run, tmp_path / "codes.csv", show=False), expected)
        assert np.array_equal(qlae.decode(run, table, show=False), expected)
        shuffled = table.rename(columns={"shape": "z1"})[["z2", "z1", "vector", "size"]]
        assert np.array_equal(qlae.decode(run, shuffled, show=False), expected)
        with pytest.raises(ValueError, match=r"has 'huge' in the column 'size', which is no number, nor one of 'size"):
            qlae.decode(run, table.assign(size="huge"), show=False)
        with pytest.raises(ValueError, match="the values of z0 run from 0"):
            qlae.name_latents(run, values={0: {99: "none"}})
    finally:
        (run / "names.json").unlink()
    with pytest.raises(ValueError, match=r"the table lacks the latent 'z0': .* 3 latents, and has 'vector', 'size'"):
        qlae.decode(run, table, show=False)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_tables_there_and_back(table_run, suffix, tmp_path):
    run, frame = table_run
    frame.to_csv(tmp_path / "t.csv", index=False)
    qlae.name_latents(run, {1: "second"})
    try:
        assert run_quietly("encode", run, "--data", tmp_path / "t.csv", "--out", tmp_path / f"c{suffix}") == 0
        assert run_quietly("decode", run, tmp_path / f"c{suffix}", "--out", tmp_path / f"d{suffix}") == 0
    finally:
        (run / "names.json").unlink()
    expected = qlae.load(run).decode(qlae.load(run).encode(frame))
    if suffix == ".npz":
        with np.load(tmp_path / "d.npz") as arrays:
            assert arrays["feature_names"].tolist() == list(frame)
            assert np.array_equal(arrays["observations"], expected)
        assert qlae.load_data(tmp_path / "d.npz").observations.feature_names == tuple(frame)
        return
    decoded = pd.read_csv(tmp_path / "d.csv") if suffix == ".csv" else pd.read_parquet(tmp_path / "d.parquet")
    assert list(decoded) == ["vector", *frame]
    assert np.array_equal(decoded[list(frame)].to_numpy(), expected)


def test_windows_there_and_back(windows_run, tmp_path):
    run, data = windows_run
    codes = qlae.encode(run, data, out=tmp_path / "codes.csv", show=False)
    assert list(codes) == ["unit", "time", "z0", "z1", "z2"]
    assert codes["time"].tolist()[:3] == [0, 2, 4]
    decoded = qlae.decode(run, tmp_path / "codes.csv", out=tmp_path / "d.csv", show=False)
    assert decoded.shape == data.images.shape
    table = pd.read_csv(tmp_path / "d.csv")
    assert list(table) == ["unit", "time", "step", "a", "b"]
    assert len(table) == len(data) * 8
    assert np.array_equal(table[["a", "b"]].to_numpy().reshape(decoded.shape), decoded)
    assert table.loc[9, ["unit", "time", "step"]].tolist() == ["x", 2.0, 1]


def test_what_cannot_be_written_is_refused_first(table_run, tmp_path):
    run, frame = table_run
    for name in ("codes.txt", "codes"):
        with pytest.raises(ValueError, match=r"out must end in \.csv, \.parquet"):
            qlae.encode(run, frame, out=tmp_path / name, show=False)
    codes = qlae.encode(run, frame, show=False)
    with pytest.raises(ValueError, match=r"out must end in one of \.csv"):
        qlae.decode(run, codes, out=tmp_path / "folder", show=False)
    (tmp_path / "there.csv").touch()
    with pytest.raises(ValueError, match=r"there.csv exists already"):
        qlae.decode(run, codes, out=tmp_path / "there.csv", show=False)
    with pytest.raises(ValueError, match=r"codes of latent 0 range from 0"):
        qlae.decode(run, codes.assign(z0=77), show=False)
    qlae.name_latents(run, {0: "vector"})
    try:
        with pytest.raises(ValueError, match="names a latent and a column that identifies rows"):
            qlae.encode(run, frame, show=False)
    finally:
        (run / "names.json").unlink()


def test_names_of_files_are_distinct_and_stay_in_the_folder():
    def names(*files):
        return file_names(pd.DataFrame({"file": files}))

    assert names("a.jpg", "b/c.png") == ["a.png", "b/c.png"]
    assert names("a.jpg", "a.png") == ["a.jpg.png", "a.png.png"]
    assert names("a", "a", "../../etc/x.png", "/tmp/y") == ["a.png", "a-2.png", "etc/x.png.png", "tmp/y.png"]
    assert file_names(pd.DataFrame({"unit": ["a", "b"], "row": [0, 3]})) == ["a_0.png", "b_3.png"]
    assert file_names(pd.DataFrame(index=range(2))) == ["0.png", "1.png"]
