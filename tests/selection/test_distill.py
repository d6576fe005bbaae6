"""One model of a consensus: it imitates the chosen latents, and is a run like any other."""

import csv
import json
import shutil

import numpy as np
import pytest
import torch

import qlae
from qlae.cli import main
from qlae.models.latents import QuantizedLatent
from qlae.objectives.imitation import imitation_error
from qlae.runs import checkpoint
from qlae.runs.targets import read_targets
from qlae.selection.consensus import Consensus
from qlae.selection.distill import imitation_accuracy, ordered, score_model, train_consensus_model
from qlae.selection.factors import Factor, FoundFactors

OPTIONS = {"size": "small", "batch_size": 8, "device": "cpu", "threads": 1, "show": False}


def factor(run, latent, *, confirmed=True):
    found = (True, confirmed)
    return Factor(run, latent, 1.0, 1.0, (latent, latent), (1.0, 1.0), found, float("nan"), confirmed)


def as_consensus(runs, chosen, **options):
    """Return a consensus of runs that takes (run, latent, is confirmed), whatever they agree on."""
    factors = tuple(factor(run, latent, confirmed=confirmed) for run, latent, confirmed in chosen)
    codes = np.zeros((40, len(factors)), dtype=np.int64)
    found = FoundFactors(factors, codes, 1.0, tuple(1 for _ in runs), 0.0)
    names = tuple(run.path.name for run in runs)
    continuous = (False,) * len(factors)
    return Consensus(found, codes, names, tuple(runs), weights="averaged", is_continuous=continuous, **options)


@pytest.fixture(scope="module")
def teachers(tmp_path_factory, tiny_data):
    """Two tiny runs whose latents vary."""
    folder = tmp_path_factory.mktemp("teachers")
    options = OPTIONS | {"num_latents": 3, "num_values": (3, 4, 5), "steps": 60, "evaluate": False}
    runs = []
    for seed in (0, 1):
        runs.append(qlae.train("qlae-no-weight-decay", tiny_data, out=folder / f"s{seed}", seed=seed, **options))
        qlae.evaluate(runs[-1], device="cpu", show=False)
    return runs


TRAINING = OPTIONS | {"learning_rate": 0.005, "batch_size": 20, "steps": 400, "num_free": 2, "evaluate": False}
CHOSEN = [(0, 2, True), (1, 1, True), (0, 0, False)]


@pytest.fixture(scope="module")
def distilled(teachers, tiny_data, tmp_path_factory):
    out = tmp_path_factory.mktemp("model") / "model"
    run = train_consensus_model(as_consensus(teachers, CHOSEN), tiny_data, out, **TRAINING)
    qlae.evaluate(run, device="cpu", show=False)
    return run


def test_the_first_latents_have_the_codes_of_the_chosen_ones(distilled, teachers, tiny_data):
    codes = qlae.load(distilled.path).encode(tiny_data.images)
    assert codes.shape == (40, 5)
    for j, (run, latent, _) in enumerate(CHOSEN):
        model = qlae.load(teachers[run].path)
        theirs = model.encode(tiny_data.images)[:, latent]
        values = model.latents(tiny_data.images)[:, latent]
        expected = np.unique(values, return_inverse=True)[1]
        assert len(np.unique(theirs)) == distilled.config.latent.num_values[j] > 1
        assert (codes[:, j] == expected).mean() > 0.9, j
    assert min(imitation_accuracy(distilled)) > 0.9


def test_the_config_and_the_labels_say_what_is_confirmed(distilled):
    imitated = distilled.config.objective.imitated
    assert [(one.run, one.latent, one.is_confirmed) for one in imitated] == [
        ("s0", 2, True),
        ("s1", 1, True),
        ("s0", 0, False),
    ]
    names = json.loads((distilled.path / "names.json").read_text())["latents"]
    assert names == {
        "2": "z2 (found by 1 of 2 runs)",
        "3": "z3 (free, not confirmed)",
        "4": "z4 (free, not confirmed)",
    }
    assert distilled.results["unconfirmed_latents"] == [2, 3, 4]
    scores = score_model(distilled)
    assert set(scores) == {"all", "imitated", "confirmed"}


def test_it_is_a_run_like_any_other(distilled, tmp_path, tiny_data, capsys):
    model = qlae.load(distilled.path)
    again = qlae.load(model.save_pretrained(tmp_path / "exported"))
    np.testing.assert_array_equal(again.encode(tiny_data.images), model.encode(tiny_data.images))
    for command in (
        ["encode", str(distilled.path), "--out", str(tmp_path / "codes.csv"), "--quiet"],
        ["evaluate", str(distilled.path), "--quiet"],
        ["explore", str(distilled.path), "--export", str(tmp_path / "page"), "--quiet"],
    ):
        with pytest.raises(SystemExit) as end:
            main(command)
        assert end.value.code == 0, capsys.readouterr()
    header = next(csv.reader((tmp_path / "codes.csv").read_text().splitlines()))
    assert header[1:] == [
        "z0",
        "z1",
        "z2 (found by 1 of 2 runs)",
        "z3 (free, not confirmed)",
        "z4 (free, not confirmed)",
    ]


ELSEWHERE = {"device": "cpu", "threads": 1, "evaluate": False, "show": False}


class Killed(Exception):
    pass


class Kill(qlae.Callback):
    """Ends a training at some moment after a checkpoint."""

    saved = False

    def on_checkpoint(self, step, path):
        self.saved = True

    def on_log(self, step, terms):
        if self.saved:
            raise Killed


def test_killed_and_resumed_without_the_teachers(distilled, teachers, tmp_path):
    """The same bits, from the run directory alone."""
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("config.json", "targets.npy"):
        shutil.copy(distilled.path / name, parts / name)
    with pytest.raises(Killed):
        qlae.resume(parts, checkpoint_seconds=0.2, callbacks=[Kill()], **ELSEWHERE)
    assert 0 < checkpoint.load(parts).state["step"] < 400
    qlae.resume(parts, **ELSEWHERE)
    whole, resumed = checkpoint.load(distilled.path).tensors, checkpoint.load(parts).tensors
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_the_same_call_resumes_and_another_consensus_is_refused(distilled, teachers, tiny_data, monkeypatch):
    monkeypatch.setattr(Consensus, "encode", lambda *_, **__: pytest.fail("the codes are stored"))
    before = (distilled.path / "checkpoint.json").read_bytes()
    again = train_consensus_model(as_consensus(teachers, CHOSEN), tiny_data, distilled.path, **TRAINING)
    assert (again.path / "checkpoint.json").read_bytes() == before
    with pytest.raises(ValueError, match="holds another run, which does not imitate this consensus"):
        train_consensus_model(as_consensus(teachers, CHOSEN[:2]), tiny_data, distilled.path, **TRAINING)
    with pytest.raises(ValueError, match="holds another run: "):
        train_consensus_model(as_consensus(teachers, CHOSEN), tiny_data, distilled.path, **TRAINING | {"num_free": 3})


def test_targets_belong_to_the_run_and_its_data(distilled, tmp_path):
    objective = distilled.config.objective
    targets = read_targets(distilled.path, objective, 40)
    assert targets.shape == (40, 3)
    with pytest.raises(ValueError, match="has targets of 40 observations, and the data have 41"):
        read_targets(distilled.path, objective, 41)
    with pytest.raises(ValueError, match="is missing, and the run needs it"):
        read_targets(tmp_path, objective, 40)
    np.save(tmp_path / "targets.npy", 1 + targets)
    with pytest.raises(ValueError, match="is not the file that the run was started with"):
        read_targets(tmp_path, objective, 40)


def test_what_cannot_be_imitated_is_an_error(teachers, tiny_data, tmp_path, rng):
    out = tmp_path / "model"
    arrays = qlae.selection.consensus.consensus([rng.integers(3, size=(50, 2)), rng.integers(3, size=(50, 2))])
    with pytest.raises(ValueError, match="is of arrays, which have no models to imitate"):
        train_consensus_model(arrays, tiny_data, out)
    with pytest.raises(ValueError, match=r"nothing to imitate\. No consensus"):
        train_consensus_model(as_consensus(teachers, [(0, 1, False)]), tiny_data, out)
    with pytest.raises(ValueError, match="name the new run directory"):
        train_consensus_model(as_consensus(teachers, CHOSEN), tiny_data)
    with pytest.raises(ValueError, match="num_latents follows from the consensus"):
        train_consensus_model(as_consensus(teachers, CHOSEN), tiny_data, out, num_latents=4)
    other = qlae.load_data("shapes3d", resolution=16, sources=["floor hue", "scale"])
    with pytest.raises(ValueError, match=r"the data are not those of .*s0: the number of images"):
        train_consensus_model(as_consensus(teachers, CHOSEN), other, out)
    vectors = [qlae.train("vq-vae", tiny_data, out=tmp_path / "vq", num_values=8, steps=1, evaluate=False, **OPTIONS)]
    qlae.evaluate(vectors[0], device="cpu", show=False)
    with pytest.raises(ValueError, match="stand for vectors and have no order"):
        train_consensus_model(as_consensus(vectors, [(0, 0, True)]), tiny_data, out)
    assert not out.exists()


def test_other_arrays_than_those_of_the_runs_are_refused(tmp_path, rng):
    images = rng.integers(256, size=(40, 16, 16, 3), dtype=np.uint8)
    run = qlae.train("qlae", images, out=tmp_path / "s0", num_latents=3, steps=3, evaluate=False, **OPTIONS)
    with pytest.raises(ValueError, match="the images differ, although they have the same number"):
        train_consensus_model(as_consensus([run], [(0, 0, True)]), 255 - images, tmp_path / "model")


def test_the_loss_is_the_squared_distance_of_the_first_outputs_from_an_even_grid():
    latent = QuantizedLatent(3, (3, 5, 4))
    x = torch.tensor([[0.5, 0.0, 9.0], [-0.4, -0.25, 9.0]], requires_grad=True)
    error = imitation_error(latent, x, torch.tensor([[2, 2], [0, 2]], dtype=torch.uint8))
    assert error.item() == pytest.approx((0.1**2 + 0.25**2) / 4)
    error.backward()
    assert x.grad[:, 2].tolist() == [0, 0]
    assert latent.values.grad is None


def test_codes_are_ordered_by_their_values():
    codes = np.repeat([0, 1, 2, 3], [2000, 2000, 1, 2000])
    ranks, count = ordered(codes, np.array([0.4, -0.4, 0.35, 0.0]))
    assert count == 3
    assert ranks[[0, 2000, 4000, 4001]].tolist() == [2, 0, 2, 1]


def test_the_model_of_a_consensus_is_no_evidence_for_it(distilled, teachers):
    skipped = qlae.select([*teachers, distilled], show=False).skipped
    assert [skip.path for skip in skipped] == [distilled.path]
    assert "imitates the latents of other runs" in skipped[0].reason


COMMAND = ["--sources", "floor hue", "shape", "--resolution", "16", "--size", "small", "--steps", "60", "--batch-size"]
COMMAND += ["8", "--num-latents", "3", "--num-values", "3", "4", "5", "--weight-decay", "0", "--threads", "1"]


def test_the_command_trains_seeds_in_processes_and_the_model(tmp_path, capsys, monkeypatch):
    from qlae.selection import train_consensus as module

    out = tmp_path / "runs"
    monkeypatch.setattr(module, "consensus", lambda runs, **_: as_consensus(runs, CHOSEN))
    monkeypatch.setattr(Consensus, "save", lambda *_, **__: [])
    monkeypatch.setattr(Consensus, "scores", lambda _: None)
    command = ["train", "qlae", "--consensus", "2", "--workers", "2", *COMMAND, "--quiet", "--out", str(out)]
    for _ in range(2):  # the second time, everything is there
        with pytest.raises(SystemExit) as end:
            main(command)
        text = capsys.readouterr().out
        assert end.value.code == 0, text
        assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["model", "s0", "s1"]
        assert "model, imitated latents alone" in text
        assert f"{out}: 2 runs compared in" in text
        assert f"qlae explore {out / 'model'}" in text
    assert json.loads((out / "selection.json").read_text())["take"] == str(out / "model")
    model = qlae.Run(out / "model").config
    assert model.latent.num_latents == 3 + 4
    assert model.training.steps == qlae.Run(out / "s1").config.training.steps == 60


def test_the_command_of_the_consensus_trains_its_model(teachers, tmp_path, capsys, monkeypatch):
    from qlae.selection import consensus as module

    monkeypatch.setattr(module, "consensus", lambda runs, **_: as_consensus(teachers, CHOSEN))
    monkeypatch.setattr(Consensus, "save", lambda *_, **__: [])
    monkeypatch.setattr(Consensus, "scores", lambda _: None)
    command = ["consensus", *(str(run.path) for run in teachers), "--model", "--quiet"]
    out = ["--out", str(tmp_path / "out"), "--steps", "5", "--threads", "1", "--free-latents", "1"]
    for extra, code in ((out, 0), ([], 2)):
        with pytest.raises(SystemExit) as end:
            main([*command, *extra])
        assert end.value.code == code
    captured = capsys.readouterr()
    assert f"{tmp_path / 'out' / 'model'}: a model that imitates the latents" in captured.out
    assert "name it with --out DIR" in captured.err
    config = qlae.Run(tmp_path / "out" / "model").config
    assert (config.latent.num_latents, config.training.steps, config.networks.size) == (4, 5, "small")


def test_runs_in_processes_are_those_of_one_process(tmp_path, tiny_data):
    options = OPTIONS | {"num_latents": 3, "steps": 20}
    alone = qlae.train_seeds("qlae", tiny_data, out=tmp_path / "alone", seeds=2, **options)
    parallel = qlae.train_seeds("qlae", tiny_data, out=tmp_path / "parallel", seeds=2, workers=2, **options)
    assert len(parallel.runs) == 2
    for run in alone.runs:
        tensors = [checkpoint.load(tmp_path / name / run.path.name).tensors for name in ("alone", "parallel")]
        assert all(torch.equal(tensors[0][name], tensors[1][name]) for name in tensors[0])


def test_what_other_processes_cannot_load_is_refused(tmp_path, rng):
    images = rng.integers(256, size=(40, 16, 16, 3), dtype=np.uint8)
    with pytest.raises(ValueError, match="data in memory, which have no name or path"):
        qlae.train_seeds("qlae", images, out=tmp_path / "a", seeds=2, workers=2, num_latents=3, **OPTIONS)
    with pytest.raises(ValueError, match="callbacks cannot be passed to other processes"):
        qlae.train_seeds("qlae", "mixtures", out=tmp_path / "b", seeds=2, workers=2, callbacks=[Kill()], **OPTIONS)
    assert not (tmp_path / "a").exists()
