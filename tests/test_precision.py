"""Networks in bfloat16, everything else in float32."""

import pytest
import torch
from torch import nn

from qlae.config import DataConfig
from qlae.data import data_config
from qlae.presets import MODELS
from qlae.resolving import resolve
from qlae.training.optimizer import FlatParameters
from qlae.training.state import build_state

CPU = torch.device("cpu")
AUTOENCODERS = [name for name, preset in MODELS.items() if preset.objective == "autoencoding"]


def small(data, model="qlae", **options):
    return resolve(model, data_config(data), 2, size="small", batch_size=16, **options)


def run(state, first: int, last: int) -> None:
    for step in range(first, last + 1):
        state.update(step)


@pytest.mark.parametrize("model", AUTOENCODERS)
def test_learns_as_in_float32(tiny_data, model):
    losses = []
    for precision in ("float32", "bfloat16"):
        state = build_state(small(tiny_data, model, precision=precision), tiny_data, CPU)
        run(state, 1, 60)
        losses.append(state.update.turns[0].window.values[:60, 0])
    assert torch.allclose(losses[0][0], losses[1][0], rtol=0.02)
    assert losses[1][40:].mean() < losses[1][:10].mean()
    assert torch.allclose(losses[0][40:].mean(), losses[1][40:].mean(), rtol=0.15)


def test_what_is_reduced_and_what_is_not(tiny_data):
    state = build_state(small(tiny_data, precision="bfloat16"), tiny_data, CPU)
    run(state, 1, 2)
    model, (turn,) = state.model, state.update.turns
    assert {p.dtype for module in (model.encoder, model.decoder) for p in module.parameters()} == {torch.bfloat16}
    assert model.latent.values.dtype == torch.float32
    for buffer in (turn.flat.values, turn.optimizer.gradients.values, turn.optimizer.first, turn.window.values):
        assert buffer.dtype == torch.float32
    saved = state.to_checkpoint().tensors
    assert {saved[name].dtype for name in saved if name not in ("sampler", "noise")} == {torch.float32}


def test_small_steps_are_not_lost_to_rounding(tiny_data):
    """A bfloat16 weight of 1 does not feel a step of 1e-4; the float32 weight behind it does."""
    state = build_state(small(tiny_data, precision="bfloat16", learning_rate=1e-4, weight_decay=0.0), tiny_data, CPU)
    before = {name: tensor.clone() for name, tensor in state.to_checkpoint().tensors.items()}
    run(state, 1, 1)
    after = state.to_checkpoint().tensors
    name = "weights.decoder.layers.0.style.bias"  # whose first half starts at 1
    moved = (after[name] - before[name]).abs()
    assert (moved > 0).all()
    assert moved.max() < 2e-4


def test_going_on_is_exact(tiny_data):
    config = small(tiny_data, precision="bfloat16")
    whole, parts = (build_state(config, tiny_data, CPU) for _ in range(2))
    run(whole, 1, 3)
    parts.from_checkpoint(whole.to_checkpoint())
    for state in (whole, parts):
        run(state, 4, 6)
    first, second = whole.to_checkpoint().tensors, parts.to_checkpoint().tensors
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_copies_follow_their_stretch():
    network, codebook = nn.Linear(4, 3), nn.Linear(2, 2)
    groups = [list(network.parameters()), list(codebook.parameters())]
    flat = FlatParameters(groups, reduced=groups[0])
    flat.values.fill_(1.001)
    assert (codebook.weight == 1.001).all()
    assert (network.weight.float() != 1.001).all()
    flat.refresh()
    assert torch.equal(network.weight, torch.full((3, 4), 1.001, dtype=torch.bfloat16))


def test_bad_precision_is_told():
    with pytest.raises(ValueError, match="precision must be one of float32, bfloat16, got 'half'"):
        resolve("qlae", DataConfig("shapes3d"), 6, precision="half")
