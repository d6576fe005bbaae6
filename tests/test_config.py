"""Configs: to JSON and back, and what is told of bad ones."""

import json
import warnings

import pytest

from qlae.config import DataConfig, RunConfig
from qlae.data import data_spec
from qlae.data.sources import SOURCES
from qlae.observations import Observations, square_images
from qlae.presets import MODELS
from qlae.resolving import resolve

SPEC = data_spec("shapes3d", resolution=16, sources=["scale", "shape"], fixed={"orientation": 3})
DATA = DataConfig("shapes3d", square_images(16), num_images=32, source_names=("scale", "shape"), spec=SPEC)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", ["paper", "official"])
def test_round_trip_through_json(model, form):
    config = resolve(model, DATA, 2, form=form)
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_the_default_is_the_paper_s():
    config = resolve("qlae", DataConfig("shapes3d"), 6)
    assert config.latent.num_latents == 12
    assert config.latent.num_values == 10
    assert config.objective.weights == {"reconstruct": 1.0, "quantize": 0.01, "commit": 0.01}
    optimizer = config.training.optimizer
    assert (optimizer.learning_rate, optimizer.beta1, optimizer.beta2, optimizer.weight_decay) == (1e-3, 0.9, 0.99, 0.1)
    assert (config.training.batch_size, config.training.steps) == (128, 200_000)
    assert resolve("qlae", DataConfig("mpi3d"), 7).training.optimizer.weight_decay == 0.001
    assert resolve("ae", DataConfig("isaac3d"), 9).training.optimizer.weight_decay == 0.001
    assert resolve("qlae-no-weight-decay", DataConfig("isaac3d"), 9).training.optimizer.weight_decay == 0


def test_tuned_loss_weights_follow_the_data():
    assert resolve("beta-vae", DataConfig("falcor3d"), 7).objective.weights["kl"] == 10.0
    assert resolve("beta-tcvae", DataConfig("mpi3d"), 7).objective.weights["total_correlation"] == 0.3
    assert resolve("bioae", DataConfig("shapes3d"), 6).objective.weights["activity"] == 0.01
    assert resolve("bioae", DataConfig("isaac3d"), 9).objective.weights["activity"] == 0.1


def test_small_is_a_cpu_s_share():
    config = resolve("qlae", DataConfig("shapes3d"), 6, size="small")
    assert (config.latent.num_values, config.training.optimizer.weight_decay) == (4, pytest.approx(0.3))
    assert (config.training.batch_size, config.training.steps, config.training.optimizer.learning_rate) == (
        64,
        7_000,
        2e-3,
    )
    assert resolve("qlae", DataConfig("shapes3d"), 6, size="small", num_values=10).latent.num_values == 10


def test_official_differs_where_the_code_does():
    config = resolve("qlae", DATA, 2, form="official")
    assert config.training.optimizer.beta2 == 0.999
    assert config.training.optimizer.clip == 1.0
    assert not config.training.optimizer.decay_biases
    assert config.latent.reduction == "mean"


def test_difference_leaves_steps_out():
    config = resolve("qlae", DATA, 2, steps=10)
    assert config.difference(resolve("qlae", DATA, 2, steps=20)) == {}
    other = resolve("qlae", DATA, 2, seed=3, learning_rate=0.5)
    assert config.difference(other) == {"training.optimizer.learning_rate": (1e-3, 0.5), "training.seed": (0, 3)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        ({"batch_size": -1}, "batch_size must be a whole number of at least 1, got -1"),
        ({"seed": -1}, "seed must be a whole number from 0 to 4,294,967,295, got -1"),
        ({"weight_decay": float("nan")}, "weight_decay must be a finite number of at least 0, got nan"),
        ({"steps": 2.5}, "steps must be a whole number of at least 1, got 2.5"),
        ({"seed": 2**32}, "seed must be a whole number from 0 to 4,294,967,295"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0, got 0.0"),
        ({"num_values": 0}, "num_values must be a whole number of at least 1, got 0"),
        ({"form": "papr"}, 'unknown form .papr.: did you mean "paper"'),
        ({"size": "smal"}, 'unknown size .smal.: did you mean "small"'),
    ],
)
def test_bad_options_are_told(options, message):
    with pytest.raises(ValueError, match=message):
        resolve("qlae", DATA, 2, **options)


def test_unknown_model_suggests_the_nearest():
    with pytest.raises(ValueError, match=r'unknown model .qlea.: did you mean "qlae"'):
        resolve("qlea", DATA, 2)


def test_no_sources_give_ten_latents_with_a_warning():
    with pytest.warns(UserWarning, match="folder has no known sources, so the model gets 10 latents by default"):
        assert resolve("qlae", DataConfig("folder"), 0).latent.num_latents == 10
    assert resolve("qlae", DataConfig("folder"), 0, num_latents=5).latent.num_latents == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": 1}, "config has unknown fields: colour"),
        ({"training": {"seed": "0"}}, "config.training.seed must be int, got '0'"),
        ({"latent": 3}, "config.latent must be an object, got 3"),
        (
            {"objective": {"kind": "autoencoding", "weights": {"reconstruct": "x"}}},
            "config.objective.weights.reconstruct must be float, got 'x'",
        ),
    ],
)
def test_bad_files_are_told(change, message):
    with pytest.raises(ValueError, match=message):
        RunConfig.from_dict(resolve("qlae", DATA, 2).to_dict() | change)


def test_missing_fields_are_told():
    content = resolve("qlae", DATA, 2).to_dict()
    del content["model"]
    with pytest.raises(ValueError, match=r"config is incomplete: it has no .model"):
        RunConfig.from_dict(content)


def test_official_bioae_decays_its_weights():
    """1e-4 in the authors' configuration; the paper tunes its activity alone."""
    decays = {
        form: resolve("bioae", DataConfig("isaac3d"), 9, form=form).training.optimizer.weight_decay
        for form in ("paper", "official")
    }
    assert decays == {"paper": 0.0, "official": 0.0001}
    chosen = resolve("bioae", DataConfig("isaac3d"), 9, form="official", weight_decay=0.5)
    assert chosen.training.optimizer.weight_decay == 0.5
    same = [resolve("qlae", DataConfig("mpi3d"), 7, form=form) for form in ("paper", "official")]
    assert {config.training.optimizer.weight_decay for config in same} == {0.001}


REAL = DataConfig("digits", origin="real", observations=Observations("images", (8, 8, 1)))


@pytest.mark.parametrize(("num_sources", "expected"), [(0, 10), (1, 10), (4, 10), (5, 10), (6, 12)])
def test_data_of_ones_own_get_at_least_ten_latents(num_sources, expected):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert resolve("qlae", REAL, num_sources).latent.num_latents == expected
    assert bool(caught) == (expected > 2 * num_sources)


def test_a_warning_names_the_number_of_latents_and_how_to_choose_another():
    message = "digits has 1 source, and more may vary than that, so the model gets 10 latents .* num_latents=20"
    with pytest.warns(UserWarning, match=message):
        resolve("qlae", REAL, 1)


@pytest.mark.parametrize(("num_sources", "expected"), [(1, 3), (2, 4)])
def test_narrow_vectors_get_as_many_latents_as_features(num_sources, expected):
    narrow = DataConfig("table", origin="real", observations=Observations("vectors", (3,), "float64"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert resolve("qlae", narrow, num_sources).latent.num_latents == expected


@pytest.mark.parametrize("origin", ["rendered", "generated"])
def test_data_that_their_sources_generate_keep_two_latents_per_source(origin, recwarn):
    assert resolve("qlae", DataConfig("mine", origin=origin), 2).latent.num_latents == 4
    assert not recwarn.list


@pytest.mark.parametrize("name", SOURCES)
def test_published_files_keep_two_latents_per_source(name, recwarn):
    assert resolve("qlae", DataConfig(name, origin="real"), 2).latent.num_latents == 4
    assert not recwarn.list


def test_a_list_of_values_says_how_many_latents_data_of_ones_own_have(recwarn):
    assert resolve("qlae", REAL, 1, num_values=[2, 4, 10]).latent.num_latents == 3
    assert not recwarn.list
    with pytest.raises(ValueError, match="num_values has 3 entries for 4 latents"):
        resolve("qlae", DATA, 2, num_values=[2, 4, 10])
