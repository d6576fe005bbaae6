"""Short updates of small networks use one thread."""

import numpy as np
import pytest
import torch

import qlae

QUICK = {"steps": 4, "batch_size": 4, "num_latents": 2, "device": "cpu", "evaluate": False}


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
