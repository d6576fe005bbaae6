"""Every model of the registry through the same life: train, stop, go on, load, encode, decode, report."""

import warnings

import numpy as np
import pytest
import torch

import qlae
from qlae.data import data_config, load_data
from qlae.models import build_model
from qlae.models.latents import DiscreteLatent
from qlae.presets import MODELS, SIZES
from qlae.report import draw_pictures
from qlae.resolving import resolve
from qlae.runs import checkpoint
from qlae.runs.directory import Run
from qlae.training import train_run

PUBLISHED = (
    *("ae", "beta-vae", "beta-tcvae", "bioae", "vq-vae", "qlae", "qlae-global-codebook", "qlae-no-weight-decay"),
    *("vq-vae-weight-decay", "infowgan-gp", "qlinfowgan-gp", "qlinfowgan-gp-no-weight-decay"),
)
STEPS = {"tripod": 250_000, "factor-vae": 500_000, "factor-qvae": 50_000}  # of the others, the paper's


def small(data, model, **options):
    return resolve(model, data_config(data), 2, size="small", **{"steps": 30, "batch_size": 8} | options)


def trained(out, data, config) -> Run:
    run = Run(out)
    train_run(run, config, data, device="cpu", show=False)
    return run


def test_the_twelve_rows_of_the_paper():
    assert [name for name, preset in MODELS.items() if preset.published] == list(PUBLISHED)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", ["paper", "official"])
def test_learns(tmp_path, tiny_data, model, form):
    run = trained(tmp_path / "run", tiny_data, small(tiny_data, model, form=form, steps=200))
    log = run.log()
    assert [row["step"] for row in log] == [100, 200]
    assert all(np.isfinite(value) for row in log for value in row.values())
    assert log[1]["loss"] < log[0]["loss"]
    assert set(run.config.objective.weights) <= set(log[0])


@pytest.mark.parametrize("model", MODELS)
def test_stopping_and_going_on_is_exact(tmp_path, tiny_data, model):
    constant = {"schedule": "constant"} if "schedule" in MODELS[model].training else {}
    whole = trained(tmp_path / "whole", tiny_data, small(tiny_data, model, steps=130, **constant))
    for steps in (1, 37, 100, 101, 130):  # a run may go on for longer; 37 and 101 lie between a generator's moves
        parts = trained(tmp_path / "parts", tiny_data, small(tiny_data, model, steps=steps, **constant))
    first, second = (checkpoint.load(run.path).tensors for run in (whole, parts))
    assert first.keys() == second.keys()
    for name in first:
        assert name.startswith("window") or torch.equal(first[name], second[name]), name


@pytest.mark.parametrize("model", MODELS)
def test_encodes_decodes_and_reports(tmp_path, tiny_data, model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so short a training may leave no active latent
        run = qlae.train(model, tiny_data, out=tmp_path, size="small", steps=20, batch_size=8, show=False)
        paths = draw_pictures(run)
    assert 0 <= run.results["averaged"]["infom"] <= 1
    assert run.results["averaged"]["psnr"] > 3
    loaded = qlae.load(run.path)
    assert ("generated" in [path.stem for path in paths]) == loaded.latent.has_prior
    images = np.asarray(tiny_data.images)
    latents = loaded.latents(images)
    assert np.array_equal(loaded.decode(latents), loaded.reconstruct(images))
    if isinstance(loaded.latent, DiscreteLatent):
        codes = loaded.encode(images)
        assert codes.shape == (40, 4)
        assert (codes >= 0).all()
        assert (codes < np.array(loaded.latent.num_values)).all()
        assert np.array_equal(loaded.decode(codes), loaded.reconstruct(images))
    else:
        with pytest.raises(ValueError, match="continuous latents and no codes"):
            loaded.encode(images)
    if not loaded.latent.has_prior:
        with pytest.raises(ValueError, match="no prior to sample from"):
            loaded.sample(3)
    else:
        assert loaded.sample(3).shape == (3, 16, 16, 3)
        assert np.array_equal(loaded.sample(3, seed=1), loaded.sample(3, seed=1))


@pytest.mark.parametrize("model", MODELS)
def test_every_configuration_fits_every_data_set(model):
    for name in ("shapes3d", "mpi3d", "falcor3d", "isaac3d"):
        data = load_data(name)
        config = resolve(model, data_config(data), len(data.source_names))
        assert config.latent.num_latents == 2 * len(data.source_names)
        assert config.training.steps == STEPS.get(model, 200_000)


@pytest.mark.parametrize("model", MODELS)
def test_tuned_values_are_those_of_the_grid(model):
    preset = MODELS[model]
    if preset.grid:
        for data in ("shapes3d", "mpi3d", "falcor3d", "isaac3d"):
            decay, weights = preset.weight_decay_on.get(data, preset.weight_decay), preset.weights_for(data)
            assert (decay if preset.tuned == "weight_decay" else weights[preset.tuned]) in preset.grid


def test_gans_take_their_own_table():
    config = resolve("qlinfowgan-gp", data_config(load_data("falcor3d")), 7)
    optimizer = config.training.optimizer
    assert (optimizer.learning_rate, optimizer.beta1, optimizer.beta2) == (2e-4, 0.0, 0.9)
    assert (config.training.batch_size, config.objective.generator_period, optimizer.weight_decay) == (64, 5, 0.0001)
    assert config.objective.weights == {
        **{"reconstruct_latent": 200.0, "value": 1.0, "gradient_penalty": 10.0},
        **{"quantize": 0.01, "commit": 0.01},
    }
    assert resolve("qlinfowgan-gp", data_config(load_data("isaac3d")), 9).training.optimizer.weight_decay == 0.001


def test_every_size_serves_every_objective():
    presets = {spec.preset or spec.objective for spec in MODELS.values()}
    assert all(set(size) == presets for size in SIZES.values())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("size", SIZES)
def test_a_forward_pass_of_both_sizes(tiny_data, model, size):
    config = resolve(model, data_config(tiny_data), 2, size=size)
    built = build_model(config).eval()
    output = built(torch.rand(2, 3, 16, 16))
    assert output.logits.shape == (2, 3, 16, 16)
    assert output.latent.z.shape == (2, built.latent.num_outputs)
