"""Training on a GPU: recorded updates are the same updates, runs go on exactly, what cannot be recorded still runs."""

import numpy as np
import pytest
import torch
from torch import nn

from qlae._process import training_process
from qlae.data import RenderedImages, data_config, images_of, load_data
from qlae.data.batches import HostBatches
from qlae.models.building import build_model
from qlae.models.model import place
from qlae.pipeline import train
from qlae.presets import MODELS, resolve
from qlae.registry import OBJECTIVES
from qlae.runs.directory import Run
from qlae.training.graphs import GraphUpdates
from qlae.training.launch import build_state
from qlae.training.state import TrainingState
from qlae.training.step import Step

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
GPU = torch.device("cuda")


@pytest.fixture(autouse=True)
def _process():
    """Kernels, and cuDNN as training sets it."""
    with training_process(GPU, compile=True):
        yield


def config_of(data, model="qlae", **options):
    options = {"batch_size": 16, "precision": "bfloat16"} | options
    return resolve(model, data_config(data), 2, size="small", **options)


def advance(state, updates: int) -> None:
    end = state.step + updates
    while state.step < end:
        if state.step % 100 == 0:
            for turn in state.update.turns:
                turn.window.filled = 0
        state.step += state.updates.advance(state.step, min(end - state.step, 100 - state.step % 100))


def tensors(state) -> dict[str, torch.Tensor]:
    return state.to_checkpoint().tensors


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("model", MODELS)
def test_recorded_updates_are_the_same_updates_and_go_on_exactly(tiny_data, model):
    config = config_of(tiny_data, model)
    whole, again, parts, eager = (build_state(config, tiny_data, GPU) for _ in range(4))
    advance(whole, 60)
    middle = whole.to_checkpoint()
    advance(whole, 90)
    advance(again, 150)
    parts.from_checkpoint(middle)
    advance(parts, 90)
    eager.updates.block = 1
    advance(eager, 150)
    assert whole.updates.is_recorded
    assert not eager.updates.is_recorded
    for other in (again, parts, eager):
        assert same(tensors(whole), tensors(other))


@pytest.mark.parametrize("model", MODELS)
def test_kernels_change_a_loss_by_rounding_only(tiny_data, model):
    """The first loss from the same weights and batch, by kernels and by torch, both in float32."""
    losses = []
    for compile in (True, False):
        with training_process(GPU, compile=compile):
            state = build_state(config_of(tiny_data, model, precision="float32"), tiny_data, GPU, compile=compile)
            state.update(5)  # at which every player moves
        losses.append(torch.cat([turn.window.values[:1, 0].cpu() for turn in state.update.turns]))
    assert torch.allclose(losses[0], losses[1], rtol=2e-3, atol=2e-3)


def test_batches_from_the_host_are_recorded_too(tiny_data):
    config = config_of(tiny_data)
    images = np.asarray(tiny_data.images[: len(tiny_data)])
    states = []
    for block in (None, 1):
        torch.manual_seed(config.training.seed)
        model = place(build_model(config), GPU)
        batches = HostBatches(images, config.training.batch_size, torch.Generator().manual_seed(3), GPU)
        step = Step(OBJECTIVES.build(config.objective).players(model), batches, config)
        updates = GraphUpdates(step, log_every=config.training.log_every)
        updates.block = block or updates.block
        states.append(TrainingState(model, step, updates))
        advance(states[-1], 100)
    assert states[0].updates.is_recorded
    assert same(tensors(states[0]), tensors(states[1]))


class Reading(nn.Module):
    """A network that looks at its own numbers, which a graph cannot do."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, x):
        outputs = self.network(x)
        assert outputs.abs().max().item() >= 0
        return outputs


def test_what_cannot_be_recorded_runs_one_operation_after_the_other(tmp_path, tiny_data):
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 4))
    decoder = nn.Sequential(nn.Linear(4, 3 * 16 * 16), nn.Unflatten(1, (3, 16, 16)))
    with pytest.warns(UserWarning, match="cannot be recorded as a CUDA graph, so training is slower"):
        run = train(
            "qlae",
            tiny_data,
            out=tmp_path / "run",
            networks=(Reading(encoder), decoder),
            device="cuda",
            steps=120,
            num_latents=4,
            show=False,
            evaluate=False,
        )
    assert [row["step"] for row in run.log()] == [100, 120]


def test_a_run_from_the_command_s_defaults(tmp_path, tiny_data):
    run = train("qlae", tiny_data, out=tmp_path / "run", device="cuda", size="small", steps=130, show=False)
    assert run.config.training.precision == "bfloat16"
    assert Run(tmp_path / "run").results["device"].startswith("cuda (")
    losses = [row["loss"] for row in run.log()]
    assert losses[-1] < losses[0]
    train("qlae", tiny_data, out=tmp_path / "run", device="cuda", size="small", steps=160, show=False)
    assert [row["step"] for row in run.log()] == [100, 130, 160]


def test_images_are_rendered_where_they_are_used_and_kept_between_runs_if_asked_for(monkeypatch):
    data = load_data("shapes3d", resolution=16, sources=["floor hue", "shape"])
    rows = np.array([3, 39, 7])
    on_cpu, on_gpu = data.images[rows], images_of(data, rows, "cuda")
    assert np.abs(on_cpu.astype(int) - on_gpu).max() <= 1
    data.images.keeps = True
    states = [build_state(config_of(data), data, GPU) for _ in range(2)]
    assert states[0].update.batches.images.data_ptr() == states[1].update.batches.images.data_ptr()
    monkeypatch.setattr(RenderedImages, "on", lambda *_: pytest.fail("rendered once more"))
    assert np.array_equal(images_of(data, rows, "cuda"), on_gpu)
