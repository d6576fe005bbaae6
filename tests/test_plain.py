"""The plain forms are the definition: whole updates by plain PyTorch and by the fused operations agree."""

import pytest
import torch

import qlae
from qlae._process import training_process
from qlae.data import data_config
from qlae.ops import dispatch
from qlae.ops.overlap import uses_once
from qlae.presets import MODELS
from qlae.resolving import resolve
from qlae.training.state import build_state

CPU = torch.device("cpu")
PERIOD = 5  # at which every player moves


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", ["paper", "official"])
def test_gradients_of_a_whole_update_agree(tiny_data, model, form):
    config = resolve(model, data_config(tiny_data), 2, size="small", batch_size=8, form=form)
    exact = "gan" not in model  # a GAN's random numbers are in single precision
    dtype, tolerance = (torch.float64, 1e-5) if exact else (torch.float32, 5e-3)
    gradients, losses = [], []
    for compile in (True, False):
        with training_process(CPU, compile=compile):
            assert dispatch.is_plain() != compile
            state = build_state(config, tiny_data, CPU, compile=compile)
            state.model.to(dtype)
            images = torch.rand(8, 3, 16, 16, generator=torch.Generator().manual_seed(3)).to(dtype)
            for turn in state.update.turns:
                with state.update.others_frozen(turn):
                    noise = torch.Generator().manual_seed(1)
                    terms, found = turn.loss_and_gradients(images, noise, torch.tensor(1.0))
                losses.append(terms["loss"].detach())
                gradients.append(found)
    half = len(gradients) // 2
    assert all(torch.allclose(a, b, rtol=tolerance) for a, b in zip(losses[:half], losses[half:], strict=True))
    for fused, plain in zip(gradients[:half], gradients[half:], strict=True):
        for ours, theirs in zip(fused, plain, strict=True):
            assert (ours - theirs).norm() <= tolerance * theirs.norm() + 1e-9


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("model", ["qlae", "beta-tcvae", "qlinfowgan-gp"])
def test_training_by_plain_forms_stays_close(tmp_path, tiny_data, model):
    """Through optimizer and average as well, until rounding has grown."""
    options = {"size": "small", "batch_size": 8, "steps": 10, "evaluate": False, "show": False}
    fused = qlae.train(model, tiny_data, out=tmp_path / "fused", **options)
    plain = qlae.train(model, tiny_data, out=tmp_path / "plain", compile=False, **options)
    first, second = (run.log()[-1] for run in (fused, plain))
    assert first.keys() == second.keys()
    for name in first:
        assert name == "seconds" or second[name] == pytest.approx(first[name], rel=2e-2, abs=1e-3), name


def test_a_graph_says_whether_a_weight_is_used_once():
    first, second = torch.ones(3, 3, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    x = torch.ones(4, 3)
    joined = torch.cat((first, second))
    assert uses_once((x @ joined.T).sum(), [joined])
    assert uses_once((x @ first).sum(), [first])
    assert not uses_once((x @ first @ first).sum(), [first])
    assert not uses_once((x @ joined.T).sum() + (x @ joined.T).square().sum(), [joined])
    assert not uses_once((x @ joined.T).sum() + first.square().sum(), [joined])
    scaled = 2 * first
    assert not uses_once((x @ scaled).sum(), [scaled])  # whose gradient is computed with at once
