"""A command that cannot succeed says so before it reads thousands of image files."""

import numpy as np
import pytest
from PIL import Image

import qlae
from qlae.cli import main
from qlae.data.image_files import FolderFiles
from qlae.training import callbacks


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """A folder whose files must not be read."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(4):
        Image.fromarray(np.full((20, 20, 3), 40 * i, np.uint8)).save(folder / f"{i}.png")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "letter.txt").write_text("dear")
    (tmp_path / "file").write_text("")
    (tmp_path / "photos.png").write_text("")
    (tmp_path / "broken.csv").write_text("file,a\n0.png,1,2\n")
    (tmp_path / "others.csv").write_text("file,a\nx.png,1\n")
    np.save(tmp_path / "short.npy", np.zeros((3, 1)))

    def read(self, names):
        raise AssertionError("files were read")

    monkeypatch.setattr(FolderFiles, "read", read)
    return folder


WRONG = [
    (["--num-latents", "0"], "num_latents must be"),
    (["--num-latents", "3", "--num-values", "2", "3"], "num"),
    (["--num-values", "0"], "num"),
    (["--steps", "0"], "steps must be"),
    (["--batch-size", "-1"], "batch_size must be"),
    (["--learning-rate", "-1"], "learning_rate must be"),
    (["--weight-decay", "-1"], "weight_decay must"),
    (["--weight-decay-schedule", "sometimes"], "schedule"),
    (["--weights", "nonsense=1"], "nonsense"),
    (["--weight-schedules", "nonsense=0:0,5:1"], "nonsense"),
    (["--warm-up", "-5"], "warm_up"),
    (["--learning-rate-warm-up", "-5"], "warm_up"),
    (["--schedule", "linear", "--decay-steps", "9999999"], "decay_steps must lie"),
    (["--schedule", "linear", "--floor", "2"], "floor"),
    (["--networks", "nonsense"], "nonsense"),
    (["--networks", "tripod", "--resolution", "60"], "Tripod's networks take square"),
    (["--seed", "-1"], "seed must be"),
    (["--device", "cuda:99"], "no such device"),
    (["--threads", "0"], "threads must be"),
    (["--checkpoint-seconds", "-1"], "checkpoint_seconds must"),
    (["--score-every", "7"], "score_every must be a multiple"),
    (["--batch-size", "999999999"], "of memory"),
    (["--resolution", "7"], "from 8 to 1024"),
    (["--resolution", "60x9000"], "8 to 256 pixels"),
    (["--sources", "shape"], "sources does not apply to the image files"),
    (["--continuous"], "continuous does not apply to the image files"),
    (["--num-images", "5"], "num_images does not apply to the image files"),
    (["--correlated", "a,b,0.5"], "correlated does not apply to the image files"),
    (["--noise", "-1"], "noise must be a standard deviation"),
    (["--layout", "vectors"], "layout does not apply to the image files"),
    (["--source-columns", "a"], "source_columns does not apply to the image files"),
    (["--source-file", "missing.csv"], "missing.csv is not a file"),
    (["--source-file", "sources.txt"], "must be a .csv"),
    (["--source-file", "broken.csv"], "broken.csv has rows with another number of cells than the"),
    (["--source-file", "others.csv"], "has no line for 4 of 4 images"),
    (["--source-file", "short.npy"], "one row for each of 4 "),
    (["--out", "own"], "is not empty and not a run directory"),
    (["--out", "file"], "is a file, not a folder"),
    (["--seeds", "1"], "seeds must be"),
    (["--seeds", "2", "--steps", "0"], "steps must be"),
    (["--seeds", "2", "--no-evaluate"], "leave out --no-evaluate"),
    (["--recipe", "fast", "--steps", "0"], "steps must be"),
]


def fails(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_train_refuses_before_reading(photos, capsys, flags, message):
    error = fails(capsys, "train", "qlae", "--data", "photos", "--size", "small", *flags)
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_missing_package_is_named_before_reading(photos, capsys, monkeypatch):
    def require():
        raise ValueError("needs TensorBoard")

    monkeypatch.setattr("qlae.configuring.require_tensorboard", require)
    assert callbacks.require_tensorboard is not require
    assert "needs TensorBoard" in fails(capsys, "train", "qlae", "--data", "photos", "--tensorboard")


def test_another_run_in_the_folder_is_named_before_reading(photos, capsys, tiny_data):
    qlae.train("qlae", tiny_data, out="run", size="small", steps=2, evaluate=False, show=False)
    error = fails(capsys, "train", "qlae", "--data", "photos", "--size", "small", "--out", "run", "--num-latents", "7")
    assert "run holds another run: latent.num_latents is 4, asked for 7" in error


def test_other_commands_and_python_refuse_before_reading(photos, capsys):
    assert "photos.png exists already" in fails(capsys, "data", "inspect", "photos")
    assert "resolution must be" in fails(capsys, "data", "prepare", "mine", "--from", "photos", "--resolution", "no")
    with pytest.raises(ValueError, match="num_latents must be"):
        qlae.train("qlae", "photos", out="new", num_latents=0)
    with pytest.raises(ValueError, match="unknown option of train"):
        qlae.train("qlae", "photos", out="new", num_latent=3)


def test_what_can_succeed_reads_the_files(photos):
    with pytest.raises(AssertionError, match="files were read"):
        qlae.train("qlae", "photos", out="new", size="small", steps=2, num_values=[2, 3, 4])
