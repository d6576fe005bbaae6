"""Every reader survives damaged files: it returns something or raises one clear error, and never anything else.

`make test` tries a few inputs per reader, `make test-fuzz` ten thousand. Seeds are fixed, so a failure can be repeated.
"""

import io
import json
import random
import shutil
import tarfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from mutations import NUM_INPUTS, damage_bytes, damage_json, survives
from PIL import Image

import qlae
from qlae._files import read_json, read_npy, read_npz
from qlae.config import RunConfig
from qlae.data import cache
from qlae.data.files import read_files
from qlae.data.pictures import decode
from qlae.data.source_table import read_table
from qlae.data.user_images import read_user_images
from qlae.metrics import score_file
from qlae.report import draw_pictures, results_table
from qlae.runs import checkpoint
from qlae.runs.directory import Run
from qlae.runs.names import Names
from qlae.runs.pretrained import read_pretrained
from qlae.study import StudyFolder
from qlae.study.plan import read_plan

RESULTS = Path(__file__).parents[2] / "results"
STUDY = RESULTS / "study" / "study.json"

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("quiet"),
]


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory, tiny_data):
    """A scored run with names and an export."""
    folder = tmp_path_factory.mktemp("fuzz") / "run"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        qlae.train("qlae", tiny_data, out=folder, size="small", steps=100, batch_size=8, show=False)
    (folder / "names.json").write_text(json.dumps({"latents": {"0": "hue"}, "values": {"0": {"1": "red"}}}))
    qlae.load(folder).save_pretrained(folder.parent / "export")
    return Run(folder)


@pytest.fixture
def damaged(run, tmp_path):
    """A copy of the run, to damage."""
    return Run(shutil.copytree(run.path, tmp_path / "run"))


def fuzz_json(path, content, read, *, num_inputs=NUM_INPUTS):
    """Write damaged JSON to a path, and read it."""
    source = random.Random(path.name)
    for _ in range(num_inputs):
        written = damage_json(content, source) if source.random() < 0.8 else damage_bytes(_plain(content), source)
        path.write_bytes(written)
        survives(read, written)


def fuzz_bytes(path, content, read, *, num_inputs=NUM_INPUTS):
    """Write damaged bytes to a path, and read it."""
    source = random.Random(path.name)
    for _ in range(num_inputs):
        written = damage_bytes(content, source)
        path.write_bytes(written)
        survives(read, written)


def _plain(content):
    return json.dumps(content).encode()


def test_config(damaged):
    content = json.loads(damaged.config_path.read_text())
    fuzz_json(damaged.config_path, content, lambda: damaged.config)
    source = random.Random(1)
    for _ in range(NUM_INPUTS):
        text = damage_json(content, source)
        survives(lambda: RunConfig.from_dict(json.loads(text)) if text.startswith(b'{"model') else None, text)  # noqa: B023


def test_config_of_0_1(damaged):
    old = json.loads((Run(RESULTS / "paper-length" / "seed-5").config_path).read_text())
    fuzz_json(damaged.config_path, old, lambda: damaged.config)


def test_results(damaged):
    content = json.loads(damaged.results_path.read_text())

    def read():
        results_table([damaged])
        draw_pictures(damaged)

    fuzz_json(damaged.results_path, content, read, num_inputs=max(10, NUM_INPUTS // 10))


def test_log(damaged, run):
    def read():
        damaged.log()
        damaged.trim_log(100)

    fuzz_bytes(damaged.log_path, damaged.log_path.read_bytes() * 3, read)
    fuzz_json(damaged.log_path, json.loads(run.log_path.read_text()), read)


def test_checkpoint(damaged):
    manifest = json.loads((damaged.path / "checkpoint.json").read_text())
    fuzz_json(damaged.path / "checkpoint.json", manifest, lambda: checkpoint.load(damaged.path))


def test_signed_manifest(damaged):
    """A manifest whose checksum is right, but whose content is not."""
    path = damaged.path / "checkpoint.json"
    manifest = json.loads(path.read_text())
    source = random.Random(2)
    for _ in range(NUM_INPUTS):
        text = damage_json(manifest, source)
        changed = json.loads(text) if len(text) < 100_000 else {}
        if isinstance(changed, dict):
            changed["sha256"] = checkpoint._manifest_sha256(changed)
        path.write_text(json.dumps(changed))
        survives(lambda: qlae.load(damaged.path), b"")


def test_names(damaged):
    path = damaged.path / "names.json"
    fuzz_json(path, json.loads(path.read_text()), lambda: Names(path, [4] * 4).read())


def test_export(run, tmp_path):
    folder = shutil.copytree(run.path.parent / "export", tmp_path / "export")
    fuzz_bytes(
        folder / "model.safetensors", (folder / "model.safetensors").read_bytes(), lambda: read_pretrained(folder)
    )
    shutil.copy(run.path.parent / "export" / "model.safetensors", folder)
    config = json.loads((folder / "config.json").read_text())
    fuzz_json(folder / "config.json", config, lambda: read_pretrained(folder))


def test_arrays(tmp_path):
    file = io.BytesIO()
    np.savez_compressed(file, sources=np.arange(60).reshape(30, 2) % 3, latents=np.arange(90.0).reshape(30, 3))
    path = tmp_path / "x.npz"
    fuzz_bytes(path, file.getvalue(), lambda: read_npz(path))
    fuzz_bytes(path, file.getvalue(), lambda: score_file(path))
    single = io.BytesIO()
    np.save(single, np.arange(12).reshape(3, 4))
    fuzz_bytes(tmp_path / "x.npy", single.getvalue(), lambda: read_npy(tmp_path / "x.npy"))


def test_json(tmp_path):
    fuzz_json(tmp_path / "x.json", {"a": [1, {"b": 2}]}, lambda: read_json(tmp_path / "x.json"))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF"])
def test_images(form):
    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (24, 20, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(file, form)
    source = random.Random(form)
    for _ in range(NUM_INPUTS):
        content = damage_bytes(file.getvalue(), source)
        survives(lambda: decode(content, 16), content)  # noqa: B023


def archive(suffix):
    picture = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(picture, "PNG")
    file = io.BytesIO()
    if suffix == ".zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name in ("a.png", "b/c.png"):
                zipped.writestr(name, picture.getvalue())
        return file.getvalue()
    with tarfile.open(
        fileobj=file, mode={".tar": "w", ".tar.gz": "w:gz", ".tar.xz": "w:xz", ".tar.bz2": "w:bz2"}[suffix]
    ) as tar:
        for name in ("a.png", "b/c.png"):
            info = tarfile.TarInfo(name)
            info.size = len(picture.getvalue())
            tar.addfile(info, io.BytesIO(picture.getvalue()))
    return file.getvalue()


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tar.xz", ".tar.bz2"])
def test_archives(tmp_path, suffix):
    path = tmp_path / f"images{suffix}"
    fuzz_bytes(path, archive(suffix), lambda: list(read_user_images(path).batches(8, 0)))


def test_array_of_images(tmp_path):
    file = io.BytesIO()
    np.savez_compressed(file, images=np.zeros((4, 8, 8, 3), np.uint8), sources=np.arange(4)[:, None])
    path = tmp_path / "images.npz"
    fuzz_bytes(path, file.getvalue(), lambda: list(read_user_images(path).batches(8, 0)))


def test_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "3dshapes.h5"
    with h5py.File(path, "w") as file:
        file["images"] = np.zeros((4, 8, 8, 3), np.uint8)
        file["labels"] = np.zeros((4, 6))
    fuzz_bytes(path, path.read_bytes(), lambda: list(read_files("shapes3d", path).batches(8, 0)))


def test_csv(tmp_path):
    path = tmp_path / "sources.csv"
    content = b"file,shape,size\na.png,1,2.5\nb/c.png,cube,3\n"
    fuzz_bytes(path, content, lambda: read_table(path, ["a.png", "b/c.png"]))


def test_plan(tmp_path):
    path = tmp_path / "plan.toml"
    content = b'data = ["shapes3d"]\nmodels = ["qlae", "ae"]\nsteps = 100\nseeds = [0, 1]\nsize = "small"\n'
    fuzz_bytes(path, content, lambda: read_plan(path))
    nested = tmp_path / "nested.json"
    fuzz_json(nested, {"data": ["shapes3d"], "models": ["qlae"], "steps": 100}, lambda: read_plan(nested))
    nested.write_bytes(b'{"data":' * 100_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_plan(nested)


def test_study_folder(tmp_path):
    folder = StudyFolder(tmp_path)
    content = json.loads(STUDY.read_text())
    fuzz_json(folder.plan_path, content, lambda: folder.plan)
    folder.plan_path.write_text(json.dumps(content))
    entry = {"data": "shapes3d", "model": "qlae", "seed": 0, "state": "done"}
    fuzz_json(folder.index_path, {"runs": {"shapes3d/qlae/s0": entry}}, lambda: folder.index)


def test_cache_entry(tmp_path, tiny_data, monkeypatch):
    monkeypatch.setenv("QLAE_CACHE", str(tmp_path))
    pixels = tmp_path / "pixels"
    pixels.mkdir()
    for i in range(3):
        Image.new("RGB", (8, 8), (i, 0, 0)).save(pixels / f"{i}.png")
    read_user_images(pixels).prepare(8)
    (entry,) = [path.parent for path in tmp_path.glob("*/info.json")]
    for name in ("info.json", "files.json"):
        path = entry / name
        content = json.loads(path.read_text())
        fuzz_json(path, content, lambda: cache.open_entry(entry))
        path.write_text(json.dumps(content))
