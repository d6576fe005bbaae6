"""Parity with the authors' code: the form ``official`` makes their updates, for nine models.

The numbers are in `fixtures/parity` (`QLAE_PARITY` names another folder of the same format); `parity.py` repeats the
updates. In float64 everything agrees to rounding. In float32, each update starts from the exact state of the update
before; see `finish_in_lockstep`.
"""

from dataclasses import replace

import pytest
import torch

from parity import COMPILED_32, COMPILED_64, PLAIN_64, Repetition, finish_in_lockstep, models

EXACT = 1e-9  # relative to a tensor's norm; measured: up to 5e-12
# About ten times the largest deviations measured on a CPU, for these numbers and for five other sets of weights,
# batches and noise. The gradient penalty of GANs has more kinks that rounding can decide.
ROUNDED = {"gradients": 4e-5, "gradient_kinks": 0.5, "latents": 2e-5}
ROUNDED_AUTOENCODER = ROUNDED | {"loss": 3e-6, "terms": 1e-5, "parameters": 6e-7, "parameter_kinks": 2e-3}
ROUNDED_GAN = ROUNDED | {"loss": 4e-3, "terms": 4e-3, "parameters": 8e-4, "parameter_kinks": 9e-3}

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
on_each_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
of_each_model = pytest.mark.parametrize("model", models())


def require_exact(found):
    assert all(deviation <= EXACT for deviation in found.values()), found


@on_each_device
@of_each_model
def test_parity_of_plain_operations(model, device):
    require_exact(Repetition(model, PLAIN_64, device).finish())


@on_each_device
@of_each_model
def test_parity_of_fused_operations_and_kernels(model, device):
    """Fused operations in float64; and in float32, on a GPU by kernels."""
    exact = Repetition(model, COMPILED_64, device)
    rounded = finish_in_lockstep(exact, Repetition(model, COMPILED_32, device))
    require_exact(exact.finish())
    tolerances = ROUNDED_GAN if "encoder_loss" in exact.recorded else ROUNDED_AUTOENCODER
    assert all(rounded[name] <= tolerances[name] for name in rounded), rounded


@needs_gpu
@of_each_model
def test_parity_of_recorded_updates(model):
    """CUDA graphs in float64; in float32 they have the bits of single updates."""
    recorded = Repetition(model, replace(COMPILED_64, graphs=True), "cuda")
    require_exact(recorded.finish())
    assert recorded.state.updates.is_recorded
    graphs, single = (Repetition(model, replace(COMPILED_32, graphs=graphs), "cuda") for graphs in (True, False))
    graphs.finish()
    single.finish()
    assert graphs.state.updates.is_recorded
    assert not single.state.updates.is_recorded
    assert all(torch.equal(graphs.parameters[name], single.parameters[name]) for name in single.parameters)
