"""A training that will take long is announced, with the options that shorten it; short updates use one thread."""

import numpy as np
import pytest
import torch

import qlae

QUICK = {"steps": 4, "batch_size": 4, "num_latents": 2, "device": "cpu", "evaluate": False}
SHORTER_IN_PYTHON = "(size='small' in Python). Ctrl-C stops it and saves the run"


@pytest.fixture
def at_once(monkeypatch):
    """Estimate after one update, and call everything long."""
    monkeypatch.setattr("qlae.training.trainer._Pace.SKIPPED_UPDATES", 1)
    monkeypatch.setattr("qlae.training.trainer._Pace.SECONDS", 0.0)
    monkeypatch.setattr("qlae.pipeline.LONG_SECONDS", 0.0)


def announcement(data, out, capsys, **options) -> str:
    qlae.train("ae", data, out=out, **QUICK | options)
    lines = [line for line in capsys.readouterr().err.splitlines() if "training will take about" in line]
    assert len(lines) == 1
    return lines[0]


def test_bundled_images_cannot_be_resized(at_once, tmp_path, capsys):
    message = announcement("digits", tmp_path / "run", capsys)
    assert f"small networks take minutes on a CPU: --size small {SHORTER_IN_PYTHON}" in message


def test_images_by_name_can_be_resized(at_once, tmp_path, capsys):
    data = qlae.load_data("shapes3d", resolution=64, sources=["floor hue"])
    message = announcement(data, tmp_path / "run", capsys)
    assert f"small networks take minutes on a CPU: --size small --resolution 32 {SHORTER_IN_PYTHON}" in message


def test_vectors_have_no_resolution(at_once, tmp_path, capsys, rng):
    message = announcement(rng.normal(size=(20, 3)), tmp_path / "run", capsys)
    assert f"--size small {SHORTER_IN_PYTHON}" in message


def test_small_networks_take_fewer_updates(at_once, tmp_path, capsys, rng):
    message = announcement(rng.normal(size=(20, 3)), tmp_path / "run", capsys, size="small", steps=30)
    assert "fewer updates take less, such as --steps 3 (steps=… in Python)" in message


def test_nothing_is_announced_quietly(at_once, tmp_path, capsys, rng):
    qlae.train("ae", rng.normal(size=(20, 3)), out=tmp_path / "run", show=False, **QUICK)
    assert "training will take" not in capsys.readouterr().err


class Threads(qlae.Callback):
    """Notes the number of threads during a training."""

    def on_log(self, step, row):
        self.number = torch.get_num_threads()


@pytest.mark.parametrize(
    ("shape", "options", "expected"),
    [
        ((20, 5), {"size": "small"}, 1),
        ((20, 5), {"size": "small", "threads": 2}, 2),
        ((20, 5), {"size": "full"}, 2),
        ((20, 40, 40, 1), {"size": "small"}, 2),  # more than 1,024 numbers
        ((20, 16, 16, 3), {"size": "small"}, 2),  # the paper's images
    ],
)
def test_short_updates_use_one_thread(shape, options, expected, tmp_path, rng):
    array = (255 * rng.random(shape)).astype(np.uint8 if len(shape) == 4 else np.float64)
    note, before = Threads(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        qlae.train("ae", array, out=tmp_path / "run", callbacks=[note], show=False, **QUICK | options)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert note.number == expected
