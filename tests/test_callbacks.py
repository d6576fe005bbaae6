"""Callbacks see the log, checkpoints and the end of a training; TensorBoard is one of them."""

import sys

import pytest

import qlae

OPTIONS = {"size": "small", "batch_size": 8, "show": False}


class Recorder(qlae.Callback):
    def __init__(self):
        self.rows, self.checkpoints, self.ends = [], [], []

    def on_log(self, step, terms):
        self.rows.append((step, terms))
        terms["loss"] = float("nan")  # a copy of the caller's

    def on_checkpoint(self, step, path):
        self.checkpoints.append((step, path))

    def on_end(self, run):
        self.ends.append(run.results["averaged"]["infom"] if run.results_path.exists() else None)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_callbacks_see_log_checkpoints_and_end_and_change_nothing(tmp_path, tiny_data):
    seen = Recorder()
    run = qlae.train("qlae", tiny_data, out=tmp_path / "run", steps=230, callbacks=[seen, qlae.Callback()], **OPTIONS)
    assert [step for step, _ in seen.rows] == [100, 200, 230]
    assert {"loss", "reconstruct", "quantize", "commit", "seconds"} <= seen.rows[0][1].keys()
    assert seen.checkpoints[-1] == (230, run.path)
    assert seen.ends == [run.results["averaged"]["infom"]]
    plain = qlae.train("qlae", tiny_data, out=tmp_path / "plain", steps=230, **OPTIONS)
    without_time = [[{k: v for k, v in row.items() if k != "seconds"} for row in r.log()] for r in (run, plain)]
    assert without_time[0] == without_time[1]


def test_tensorboard_writes_the_log(tmp_path, tiny_data):
    accumulation = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for steps in (100, 200):  # interrupted in between
        run = qlae.train(
            "qlae", tiny_data, out=tmp_path / "run", steps=steps, tensorboard=True, evaluate=False, **OPTIONS
        )
    events = accumulation.EventAccumulator(str(run.path / "tensorboard"))
    events.Reload()
    assert {"loss", "reconstruct", "quantize", "commit"} == set(events.Tags()["scalars"])
    points = events.Scalars("loss")
    assert [point.step for point in points] == [100, 200]
    assert [point.value for point in points] == pytest.approx([row["loss"] for row in run.log()], rel=1e-5)


def test_tensorboard_that_is_missing_is_named(tmp_path, tiny_data, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match=r"needs TensorBoard: pip install 'qlae\[tensorboard\]'"):
        qlae.train("qlae", tiny_data, out=tmp_path / "run", steps=5, tensorboard=True, **OPTIONS)
