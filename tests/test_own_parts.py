"""Mistakes in parts from outside the package are errors that say what to do, before anything is written."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import qlae
from qlae.models.latents import DiscreteLatentConfig, LatentConfig, LatentOutput, LatentSpace
from qlae.objectives import Objective, ObjectiveConfig, Player

OPTIONS = {"size": "small", "batch_size": 8, "steps": 3, "show": False, "evaluate": False, "num_latents": 4}

pytestmark = pytest.mark.usefixtures("own_registrations")


def train_players(players, data, out: Path, *, parts=None, weights=None):
    """Train a model whose objective has the players that a function of the objective and the model returns."""

    @dataclass(frozen=True)
    class Config(ObjectiveConfig):
        pass

    @qlae.OBJECTIVES.register("mine", Config)
    class Mine(Objective):
        def build_parts(self, model):
            return parts or {}

        def players(self, model):
            return players(self, model)

    spec = qlae.ModelSpec("mine", "continuous", weights or {"reconstruct": 1.0}, objective="mine")
    return qlae.train(spec, data, out=out, **OPTIONS)


def error_of(model, images, generator=None):
    return F.binary_cross_entropy_with_logits(model(images, generator).logits, images)


def player(model, loss=None, terms=("loss",), *, name="all", decayed=None, undecayed=(), **settings) -> Player:
    loss = loss or (lambda images, generator, number: {"loss": error_of(model, images)})
    modules = (model.encoder, model.decoder) if decayed is None else decayed
    return Player(name, modules, undecayed, loss, terms, **settings)


def terms(function):
    """The players of an objective with one player, whose loss returns a function of the reconstruction error."""
    return lambda _, model: [player(model, lambda images, g, number: function(error_of(model, images)))]


@pytest.mark.parametrize(
    ("players", "message"),
    [
        (terms(lambda error: error), 'must return a dictionary of terms, such as {"loss": …}, got Tensor'),
        (terms(lambda error: {"other": error}), "computed other, and not the loss term 'loss'"),
        (terms(lambda error: {"loss": error.expand(8)}), r"'loss' is of shape \(8,\); take its mean"),
        (terms(lambda error: {"loss": 1.0}), "must return scalar tensors, and 'loss' is 1.0"),
        (terms(lambda error: {"loss": error.detach()}), "depends on none of the parameters"),
        (lambda _, model: [player(model, terms=("error",))], "including 'loss', which it descends"),
        (lambda _, model: [player(model, period=0)], "period of the player 'all' must be a whole number"),
        (lambda _, model: [player(model), player(model, name="again")], "'all' and 'again' both move a parameter"),
        (lambda _, model: [player(model), player(model, decayed=())], "two players are called 'all'"),
        (lambda _, model: [player(model, undecayed=(nn.Linear(2, 1),))], "return its module from build_parts"),
    ],
)
def test_mistakes_in_players(tmp_path, tiny_data, players, message):
    with pytest.raises(ValueError, match=message):
        train_players(players, tiny_data, tmp_path / "run")


def test_a_weight_without_its_term_names_the_terms_there_are(tmp_path, tiny_data):
    def players(objective, model):
        weighting = objective.weighting()
        return [player(model, weighting.loss(lambda images, g, n: {"error": error_of(model, images)}), weighting.names)]

    with pytest.raises(ValueError, match=r"computed error, and not the loss term 'reconstruct'"):
        train_players(players, tiny_data, tmp_path / "run")
    with pytest.raises(ValueError, match="at least one term"):
        qlae.train(qlae.ModelSpec("none", "continuous", {}), tiny_data, out=tmp_path / "none", **OPTIONS)


def latent_space(config: type, *, body: dict[str, Any] | None = None) -> str:
    def constructor(self, num_latents, **settings):
        LatentSpace.__init__(self)
        self.num_latents = self.num_inputs = self.num_outputs = num_latents
        self.settings = settings

    def forward(self, x, generator=None):
        return LatentOutput(x, None, {})

    def sample(self, num_samples, generator=None):
        return torch.zeros(num_samples, self.num_outputs)

    methods = {"__init__": constructor, "forward": forward, "sample": sample} | (body or {})
    qlae.LATENTS.register("own", config)(type("Own", (LatentSpace,), methods))
    return "own"


def train_latent(data, out: Path, **settings):
    spec = qlae.ModelSpec("mine", "own", {"reconstruct": 1.0}, latent_options=settings)
    return qlae.train(spec, data, out=out, **OPTIONS)


def test_settings_of_many_types_come_back(tmp_path, tiny_data):
    @dataclass(frozen=True)
    class Config(LatentConfig):
        sizes: tuple[int, ...] = (1, 2)
        rate: float | None = None
        form: Literal["round", "flat"] = "round"
        either: int | str = 3
        exact: float | int = 2
        table: dict[str, float] = field(default_factory=dict)
        steps: list[int] = field(default_factory=list)

    latent_space(Config)
    settings = {"sizes": (3,), "rate": 0.5, "form": "flat", "either": "x", "table": {"a": 1.0}, "steps": [1, 2]}
    train_latent(tiny_data, tmp_path / "run", **settings)
    restored = qlae.load(tmp_path / "run").latent.settings
    assert restored == settings | {"exact": 2}


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (float, "big", "config.latent.size must be float, got 'big'"),
        (Literal["a", "b"], "c", "config.latent.size must be one of 'a', 'b', got 'c'"),
        (Any, {1, 2}, r"config.json cannot hold latent.size = \{1, 2\}"),
        (Any, (1, 2), r"latent.size is \(1, 2\) and would be restored from config.json as \[1, 2\]"),
        (list[int] | tuple[int, ...], None, "type JSON cannot hold"),
    ],
)
def test_settings_that_would_not_come_back_are_an_error_before_anything_is_written(
    tmp_path, tiny_data, kind, value, message
):
    config = dataclass(frozen=True)(type("Config", (LatentConfig,), {"__annotations__": {"size": kind}, "size": None}))
    latent_space(config)
    with pytest.raises(ValueError, match=message):
        train_latent(tiny_data, tmp_path / "run", size=value)
    assert not (tmp_path / "run").exists()


def test_a_latent_space_that_contradicts_its_config(tmp_path, tiny_data):
    latent_space(DiscreteLatentConfig)
    with pytest.raises(ValueError, match="Own is no space of codes, so its config DiscreteLatentConfig must be a sub"):
        train_latent(tiny_data, tmp_path / "run")
    qlae.LATENTS.unregister("own")

    @dataclass(frozen=True)
    class Config(LatentConfig):
        pass

    latent_space(Config, body={"__init__": lambda self, num_latents: LatentSpace.__init__(self)})
    with pytest.raises(ValueError, match=r"Own must set self\.num_latents in its constructor"):
        train_latent(tiny_data, tmp_path / "run")


@pytest.mark.parametrize(
    ("base", "name", "message"),
    [
        (LatentConfig, "kind", "must not have a field 'kind', which config.json uses"),
        (LatentConfig, "module", "must not have a field 'module'"),
        (object, "size", "must be a subclass of LatentConfig, and Config has no field 'num_latents'"),
    ],
)
def test_configs_that_cannot_be_registered(base, name, message):
    config = dataclass(frozen=True)(type("Config", (base,), {"__annotations__": {name: str}, name: "x"}))
    with pytest.raises(ValueError, match=message):
        latent_space(config)


def test_mistakes_in_specifications():
    for name in ("", "a/b", "..", 3):
        with pytest.raises(ValueError, match="the name of a model consists of letters"):
            qlae.ModelSpec(name, "continuous", {"reconstruct": 1.0})
    with pytest.raises(ValueError, match="hyperparameter that mine tunes 'beta'"):
        qlae.ModelSpec("mine", "continuous", {"reconstruct": 1.0}, tuned="beta")
    with pytest.raises(ValueError, match=r"takes a qlae\.ModelSpec, got str"):
        qlae.register_model("qlae")


def test_an_option_overrides_the_specification_also_with_the_default(tmp_path, tiny_data):
    training = {"schedule": "cosine", "weight_decay_schedule": "step"}
    spec = qlae.ModelSpec("falling", "continuous", {"reconstruct": 1.0}, training=training)
    falling = qlae.train(spec, tiny_data, out=tmp_path / "falling", **OPTIONS).config.training
    assert (falling.schedule.kind, bool(falling.weight_decay_schedule)) == ("cosine", True)
    options = OPTIONS | {"schedule": "constant", "weight_decay_schedule": "constant"}
    constant = qlae.train(spec, tiny_data, out=tmp_path / "constant", **options).config.training
    assert (constant.schedule.kind, constant.weight_decay_schedule) == ("constant", ())
