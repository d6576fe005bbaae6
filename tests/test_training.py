"""The trainer: losses fall, averages follow, runs resume, bad runs stop."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import qlae
from qlae.config import OptimizerConfig, RunConfig
from qlae.data import SourceDataset, data_config
from qlae.models.building import build_model
from qlae.objectives import Autoencoding
from qlae.pipeline import train
from qlae.resolving import resolve
from qlae.runs import checkpoint
from qlae.runs.directory import Run
from qlae.training import TrainingDiverged, TrainingInterrupted, train_run
from qlae.training.graphs import GraphUpdates
from qlae.training.optimizer import AdamW, FlatParameters, decay_groups
from qlae.training.state import build_state
from qlae.training.step import EagerUpdates, Step
from qlae.training.trainer import run_updates

CPU = torch.device("cpu")


def small(data: SourceDataset, model: str = "qlae", **options) -> RunConfig:
    options = {"size": "small", "steps": 30, "batch_size": 8} | options
    return resolve(model, data_config(data), len(data.source_names), **options)


def trained(path, data, **options) -> Run:
    run = Run(path)
    train_run(run, small(data, **options), data, device="cpu", show=False)
    return run


def tensors(run: Run) -> dict[str, torch.Tensor]:
    return checkpoint.load(run.path).tensors


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def rows(run: Run) -> list[dict]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in run.log()]


@pytest.fixture(params=[False, True], ids=["in step", "ahead"])
def runs_ahead(request, monkeypatch):
    """Whether log points are read when the next updates have been launched, as on a GPU."""
    monkeypatch.setattr(EagerUpdates, "runs_ahead", request.param)


def test_loss_is_the_weighted_sum_of_its_terms(tiny_data):
    config = small(tiny_data)
    model = build_model(config)
    images = torch.rand(4, 3, 16, 16)
    (player,) = Autoencoding(config.objective).players(model)
    terms = player.loss(images, None, torch.tensor(1.0))
    output = model(images)
    p = output.logits.sigmoid()
    by_hand = -(images * p.log() + (1 - images) * (1 - p).log()).mean()
    assert torch.allclose(terms["reconstruct"], by_hand, atol=1e-5)
    total = by_hand + 0.01 * output.latent.losses["quantize"] + 0.01 * output.latent.losses["commit"]
    assert torch.allclose(terms["loss"], total, atol=1e-5)


def test_kl_terms_are_divided_by_the_image_entries(tiny_data):
    """So that β times the term has the scale that it has beside a summed likelihood."""
    for name in ("beta-vae", "beta-tcvae"):
        config = small(tiny_data, model=name)
        model = build_model(config)
        images = torch.rand(4, 3, 16, 16)
        (player,) = Autoencoding(config.objective).players(model)
        terms = player.loss(images, torch.Generator().manual_seed(0), torch.tensor(1.0))
        in_nats = model(images, torch.Generator().manual_seed(0)).latent.losses
        for term, value in in_nats.items():
            assert torch.allclose(terms[term] * 3 * 16 * 16, value)
        assert config.objective.weights["kl" if name == "beta-vae" else "total_correlation"] == 3.0


def test_codebook_values_move_when_a_model_trains(tmp_path, tiny_data):
    run = trained(tmp_path / "run", tiny_data, steps=20)
    values = tensors(run)["weights.latent.values"]
    assert (values - torch.linspace(-0.5, 0.5, 4)).abs().max() > 1e-3


def test_the_same_seed_gives_the_same_weights_and_another_gives_others(tmp_path, tiny_data):
    first, again = trained(tmp_path / "a", tiny_data), trained(tmp_path / "b", tiny_data)
    other = trained(tmp_path / "c", tiny_data, seed=1)
    assert same(tensors(first), tensors(again))
    assert not torch.equal(tensors(first)["weights.encoder.head.weight"], tensors(other)["weights.encoder.head.weight"])


def test_training_leaves_the_global_random_state_alone(tmp_path, tiny_data):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    trained(tmp_path / "run", tiny_data, steps=2)
    assert torch.equal(torch.rand(3), expected)


def interrupted_after(monkeypatch, updates: int) -> None:
    """Let Ctrl-C come after a number of updates."""
    import signal

    plain, count = Step.__call__, [0]

    def call(self, step):
        plain(self, step)
        count[0] += 1
        if count[0] == updates:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Step, "__call__", call)


def test_ctrl_c_saves_and_going_on_is_exact_with_its_log(tmp_path, tiny_data, monkeypatch, runs_ahead):
    whole = trained(tmp_path / "whole", tiny_data, steps=230)
    with monkeypatch.context() as patch:
        interrupted_after(patch, 137)
        with pytest.raises(TrainingInterrupted, match=r"stopped after update 137 of 230; saved in .*parts"):
            trained(tmp_path / "parts", tiny_data, steps=230)
    parts = trained(tmp_path / "parts", tiny_data, steps=230)
    assert same(tensors(whole), tensors(parts))
    assert rows(whole) == rows(parts)
    assert [row["step"] for row in rows(parts)] == [100, 200, 230]


def test_reading_the_log_late_changes_nothing(tmp_path, tiny_data, monkeypatch):
    runs, noted = [], []
    append_log = Run.append_log

    def append(self, row):
        noted.append(row["step"])
        append_log(self, row)

    monkeypatch.setattr(Run, "append_log", append)
    for ahead in (False, True):
        monkeypatch.setattr(EagerUpdates, "runs_ahead", ahead)
        runs.append(trained(tmp_path / str(ahead), tiny_data, steps=230))
    assert noted == [100, 200, 230] * 2
    assert rows(runs[0]) == rows(runs[1])
    assert same(tensors(runs[0]), tensors(runs[1]))


def test_log_rows_after_the_checkpoint_are_written_anew(tmp_path, tiny_data):
    whole = trained(tmp_path / "whole", tiny_data, steps=300)
    parts = trained(tmp_path / "parts", tiny_data, steps=100)
    with open(parts.log_path, "a") as file:  # as if killed after more updates, the last line cut short
        file.write(json.dumps({"step": 200, "seconds": 1.0, "loss": 9.0}) + '\n{"step": 30')
    parts = trained(tmp_path / "parts", tiny_data, steps=300)
    assert rows(whole) == rows(parts)


def test_a_damaged_checkpoint_costs_time_but_no_exactness(tmp_path, tiny_data):
    whole = trained(tmp_path / "whole", tiny_data, steps=120)
    trained(tmp_path / "parts", tiny_data, steps=50)
    parts = trained(tmp_path / "parts", tiny_data, steps=80)
    (parts.path / "checkpoint.safetensors").write_bytes(b"broken")
    with pytest.warns(UserWarning, match="resuming from the checkpoint of update 50"):
        trained(tmp_path / "parts", tiny_data, steps=120)
    assert same(
        {name: value for name, value in tensors(whole).items() if not name.startswith("window")},
        {name: value for name, value in tensors(parts).items() if not name.startswith("window")},
    )


def test_going_on_in_channels_last_memory(tiny_data):
    """Weights are channels last, a checkpoint is contiguous: moments must follow the weights."""
    config = small(tiny_data)
    states = [build_state(config, tiny_data, CPU) for _ in range(2)]
    for step in range(1, 4):
        states[0].update(step)
    states[1].from_checkpoint(states[0].to_checkpoint())
    for state in states:
        state.update(4)
    first, second = (state.to_checkpoint().tensors for state in states)
    assert same(first, second)
    assert states[1].model.encoder.layers[0].conv.weight.is_contiguous(memory_format=torch.channels_last)


def test_a_checkpoint_that_lacks_a_tensor_is_told(tiny_data):
    state = build_state(small(tiny_data), tiny_data, CPU)
    saved = state.to_checkpoint()
    del saved.tensors["window.autoencoder"]
    with pytest.raises(ValueError, match=r"does not fit the model: it has window\.autoencoder of shape None"):
        state.from_checkpoint(saved)


def test_a_finished_run_is_left_as_it_is(tmp_path, tiny_data):
    run = trained(tmp_path / "run", tiny_data)
    before = (run.path / "checkpoint.safetensors").stat().st_mtime_ns
    trained(tmp_path / "run", tiny_data)
    assert (run.path / "checkpoint.safetensors").stat().st_mtime_ns == before


def test_fewer_updates_than_were_made_are_refused(tmp_path, tiny_data):
    run = trained(tmp_path / "run", tiny_data, steps=30)
    with pytest.raises(ValueError, match="has made 30 updates already, more than steps=20"):
        trained(tmp_path / "run", tiny_data, steps=20)
    assert run.config.training.steps == 30


@pytest.mark.parametrize("column", [np.arange(40), np.full(40, np.nan), np.zeros(40)], ids=["ids", "NaN", "constant"])
def test_sources_that_cannot_be_scored_are_told_before_training(tmp_path, tiny_data, column):
    data = SourceDataset(np.asarray(tiny_data.images[:40]), column, name="mine", origin="real")
    with pytest.raises(
        ValueError, match=r"no model of mine could be scored by its sources \(source 1\): .*evaluate=False"
    ):
        train("ae", data, out=tmp_path / "run", steps=5, size="small", show=False)
    assert not (tmp_path / "run").exists()
    train("ae", data, out=tmp_path / "run", steps=5, size="small", show=False, evaluate=False)


@pytest.mark.parametrize(
    ("weights", "message"),
    [({"reconstruct": "a"}, "must be a finite number of at least 0, got 'a'"), ([("reconstruct", 1)], "must map")],
)
def test_weights_that_are_none(tiny_data, weights, message):
    with pytest.raises(ValueError, match=message):
        small(tiny_data, weights=weights)


def test_whole_numbers_of_numpy_are_whole_numbers(tiny_data):
    config = small(tiny_data, steps=np.int64(9), num_latents=np.int32(3), num_values=np.array([2, 3, 4]))
    assert (config.training.steps, config.latent.num_latents, config.latent.num_values) == (9, 3, (2, 3, 4))
    assert json.loads(json.dumps(config.latent.num_values)) == [2, 3, 4]


def test_nan_loss_stops_with_the_update_and_the_last_good_checkpoint(tmp_path, tiny_data, runs_ahead):
    run = Run(tmp_path / "run")
    config = small(tiny_data, steps=300)
    state = build_state(config, tiny_data, CPU)
    train_run(run, small(tiny_data, steps=40), tiny_data, device="cpu", show=False)
    state.from_checkpoint(checkpoint.load(run.path))
    plain = state.updates

    class Poisoned:
        def advance(self, done, most):
            if done == 56:
                with torch.no_grad():
                    state.model.decoder.start.fill_(torch.nan)
            return plain.advance(done, most)

        def __getattr__(self, name):
            return getattr(plain, name)

    state.updates = Poisoned()
    with pytest.raises(TrainingDiverged, match=r"finite at update 57; the last good checkpoint is update 40 in .*run"):
        run_updates(run, config, state, checkpoint_seconds=1e9, show=False)
    assert checkpoint.load(run.path).state["step"] == 40
    assert torch.isfinite(tensors(run)["weights.decoder.start"]).all()


def test_nan_is_never_saved(tmp_path, tiny_data, runs_ahead):
    """With a checkpoint after every update, the one that turns bad is not written."""
    run = Run(tmp_path / "run")
    config = small(tiny_data, steps=20, learning_rate=1e30)
    with pytest.raises(TrainingDiverged, match="not finite at update"):
        train_run(run, config, tiny_data, device="cpu", show=False, checkpoint_seconds=0.0)
    found = checkpoint.load(run.path)
    assert found is None or all(torch.isfinite(found.tensors["window.autoencoder"].flatten()))


def test_second_trainer_refuses(tmp_path, tiny_data):
    run = trained(tmp_path / "run", tiny_data)
    with run.locked(), pytest.raises(ValueError, match=r"is being trained by another process \(process \d+\)"):
        train_run(Run(run.path), small(tiny_data, steps=50), tiny_data, device="cpu", show=False)
    trained(tmp_path / "run", tiny_data, steps=50)


def test_another_configuration_refuses_and_changes_nothing(tmp_path, tiny_data):
    run = trained(tmp_path / "run", tiny_data)
    before = {path.name: path.read_bytes() for path in run.path.iterdir()}
    with pytest.raises(ValueError, match=r"holds another run: training.seed is 0, asked for 4\. Choose another folder"):
        trained(tmp_path / "run", tiny_data, seed=4)
    assert {path.name: path.read_bytes() for path in run.path.iterdir()} == before


def test_a_folder_of_something_else_refuses(tmp_path, tiny_data):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="is not empty and not a run directory"):
        trained(tmp_path, tiny_data)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_averages_by_hand(tiny_data):
    config = small(tiny_data)
    state = build_state(config, tiny_data, CPU)
    name, parameter = next(iter(state.model.named_parameters()))
    expected = parameter.detach().clone()
    for step in range(1, 6):
        state.update(step)
        decay = min(0.9995, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * parameter.detach()
    assert torch.allclose(state.to_checkpoint().tensors[f"average.{name}"], expected, atol=1e-6)


def test_codebook_is_undecayed_and_official_spares_biases(tiny_data):
    for form, biases_decayed in (("paper", True), ("official", False)):
        config = small(tiny_data, form=form)
        model = build_model(config)
        (player,) = Autoencoding(config.objective).players(model)
        decayed, undecayed = decay_groups(player, config.training.optimizer)
        assert any(p is model.latent.values for p in undecayed)
        assert any(p is model.encoder.head.weight for p in decayed)
        assert any(p is model.encoder.head.bias for p in decayed) == biases_decayed
        assert any(p is model.decoder.start for p in decayed)
        assert len(decayed) + len(undecayed) == len(list(model.parameters()))


def test_decay_is_decoupled(tiny_data):
    """With a zero gradient a decayed parameter shrinks by lr·wd and a codebook stays."""
    config = small(tiny_data, weight_decay=0.5)
    state = build_state(config, tiny_data, CPU)
    model = state.model
    weight, values = model.encoder.head.weight.detach().clone(), model.latent.values.detach().clone()
    turn = state.update.turns[0]
    turn.optimizer.step([torch.zeros_like(parameter) for parameter in turn.flat.parameters])
    assert torch.allclose(model.encoder.head.weight, weight * (1 - config.training.optimizer.learning_rate * 0.5))
    assert torch.equal(model.latent.values, values)


@pytest.mark.parametrize("clip", [None, 0.3])
def test_the_optimizer_is_torch_s_adamw(clip):
    """The same gradients for torch.optim.AdamW over the parameters one by one."""
    config = OptimizerConfig(learning_rate=0.01, beta1=0.8, beta2=0.95, weight_decay=0.5, clip=clip)
    generator = torch.Generator().manual_seed(0)
    shapes = [(4, 3, 2, 2), (7,), (5, 6)]
    ours, theirs = ([nn.Parameter(torch.linspace(-1, 1, math.prod(s)).view(s)) for s in shapes] for _ in range(2))
    flat = FlatParameters([ours[:2], ours[2:]])
    optimizer = AdamW(flat, config)
    reference = torch.optim.AdamW(
        [{"params": theirs[:2], "weight_decay": 0.5}, {"params": theirs[2:], "weight_decay": 0.0}],
        lr=0.01,
        betas=(0.8, 0.95),
    )
    for _ in range(6):
        gradients = [torch.randn(s, generator=generator) for s in shapes]
        for parameter, gradient in zip(theirs, gradients, strict=True):
            parameter.grad = gradient.clone()
        if clip is not None:
            nn.utils.clip_grad_value_(theirs[:2], clip)
        optimizer.step(gradients)
        reference.step()
    for our, their in zip(ours, theirs, strict=True):
        assert torch.allclose(our, their, atol=1e-6)


def test_clipping_bounds_each_entry_of_decayed_gradients(tiny_data):
    config = small(tiny_data, form="official")
    optimizer = replace(config.training.optimizer, clip=1e-6)
    config = replace(config, training=replace(config.training, optimizer=optimizer))
    state = build_state(config, tiny_data, CPU)
    state.update(1)
    (turn,) = state.update.turns
    decayed, undecayed = turn.flat.spans
    assert 0 < turn.optimizer.gradients.values[decayed].abs().max() <= 1e-6
    assert turn.optimizer.gradients.values[undecayed].abs().max() > 1e-6


class Replayed(GraphUpdates):
    """Makes the updates of a block at every replay, as a graph would: the same sequence without a GPU."""

    replays = 0

    def _record(self):
        self._graph = self
        return True

    def replay(self):
        self.replays += 1
        with self._own_windows():
            self._run_block()


@pytest.mark.parametrize(("model", "stopped"), [("qlae", 60), ("qlae", 130), ("qlinfowgan-gp", 75)])
def test_blocks_of_updates_are_the_same_updates(tmp_path, tiny_data, model, stopped):
    """Logs and weights are those of single updates, wherever the run was interrupted and resumed."""
    config = small(tiny_data, model=model, steps=210)
    runs = []
    for name in ("eager", "replayed"):
        run = Run(tmp_path / name)
        run.path.mkdir()
        for steps in (stopped, 210):
            state = build_state(config, tiny_data, CPU)
            if name == "replayed":
                state.updates = Replayed(state.update, log_every=100, rehearse=False)
            saved = checkpoint.load(run.path)
            if saved is not None:
                state.from_checkpoint(saved)
            run_updates(run, replace(config, training=replace(config.training, steps=steps)), state, show=False)
        runs.append(run)
    assert state.updates.replays >= 1
    assert rows(runs[0]) == rows(runs[1])
    assert same(tensors(runs[0]), tensors(runs[1]))


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_flat_parameters_are_views_of_one_buffer(memory_format):
    modules = [nn.Conv2d(3, 5, 3).to(memory_format=memory_format), nn.Linear(7, 2)]
    before = [p.detach().clone() for module in modules for p in module.parameters()]
    flat = FlatParameters([list(module.parameters()) for module in modules])
    for old, new in zip(before, flat.parameters, strict=True):
        assert torch.equal(old, new)
        assert new.untyped_storage().data_ptr() == flat.values.untyped_storage().data_ptr()
        assert new.data_ptr() % 256 == flat.values.data_ptr() % 256
    assert modules[0].weight.is_contiguous(memory_format=memory_format)
    flat.values[flat.spans[1]] = 3.0
    assert (modules[1].weight == 3).all()
    assert torch.equal(modules[0].weight, before[0])
    assert [view.shape for view in flat.views(torch.zeros_like(flat.values))] == [p.shape for p in flat.parameters]


def test_training_from_python_end_to_end(tmp_path, tiny_data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = qlae.train("qlae", tiny_data, out=tmp_path / "run", steps=20, size="small", seed=0, show=False)
        assert run.results["steps"] == 20
        model = qlae.load(run.path)
    codes = model.encode(tiny_data.images)
    assert codes.shape == (40, 4)
    assert np.issubdtype(codes.dtype, np.integer)
    assert model.latents(tiny_data.images).shape == (40, 4)
    images = model.decode(codes)
    assert images.dtype == np.uint8
    assert images.shape == (40, 16, 16, 3)
    assert np.array_equal(images, model.decode(model.latents(tiny_data.images)))
    assert np.array_equal(images, model.reconstruct(tiny_data.images))


def test_scores_on_the_way_go_into_the_log_and_change_nothing(tmp_path, tiny_data, runs_ahead):
    options = {"device": "cpu", "size": "small", "batch_size": 8, "evaluate": False, "show": False}
    plain = train("qlae", tiny_data, out=tmp_path / "plain", steps=300, **options)
    watched = train("qlae", tiny_data, out=tmp_path / "watched", steps=150, score_every=200, **options)
    assert not any("infom" in row for row in watched.log())
    watched = train("qlae", tiny_data, out=tmp_path / "watched", steps=300, score_every=200, **options)
    assert same(tensors(plain), tensors(watched))
    scored = {row["step"]: row for row in watched.log() if "infom" in row}
    assert list(scored) == [200]
    shorter = train("qlae", tiny_data, out=tmp_path / "shorter", steps=200, **options | {"evaluate": True})
    for name in ("infom", "infoe", "infoc", "psnr"):
        assert scored[200][name] == pytest.approx(shorter.results["averaged"][name], abs=1e-9)
    with pytest.raises(ValueError, match="score_every must be a multiple of 100"):
        train("qlae", tiny_data, out=tmp_path / "odd", score_every=150, **options)
    assert not (tmp_path / "odd").exists()


def test_scores_on_the_way_without_sources(tmp_path, tiny_data):
    images = SourceDataset(np.asarray(tiny_data.images[:40]), np.zeros((40, 0)), name="mine", origin="real")
    run = train(
        "ae",
        images,
        out=tmp_path / "run",
        device="cpu",
        size="small",
        num_latents=3,
        steps=100,
        score_every=100,
        evaluate=False,
        show=False,
    )
    assert set(run.log()[-1]) >= {"step", "psnr"}
    assert "infom" not in run.log()[-1]


def test_training_without_evaluation_leaves_no_results(tmp_path, tiny_data):
    run = train("ae", tiny_data, out=tmp_path / "run", steps=5, size="small", evaluate=False, show=False)
    assert not run.results_path.exists()


def test_wrong_arguments_are_told(tmp_path, tiny_data):
    with pytest.raises(ValueError, match=r'unknown option of train .stepz.: did you mean "steps"'):
        qlae.train("qlae", tiny_data, out=tmp_path / "run", stepz=3)
    with pytest.raises(ValueError, match=r"data must be a data set, its name or path, or an array, got NoneType"):
        qlae.train("qlae", None, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_list_of_images_is_encoded(tiny_data):
    model = build_model(small(tiny_data)).eval()
    images = [np.asarray(tiny_data.images[i : i + 1])[0] for i in range(3)]
    assert np.array_equal(model.encode(images), model.encode(np.stack(images)))
    with pytest.raises(ValueError, match=r"expected uint8 images of shape .* got int64 of shape \(2, 2\)"):
        model.encode([[1, 2], [3, 4]])
