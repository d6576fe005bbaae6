"""What the paper's appendix "Negative Results" lists: whom each modification moves, exact resume, how to ask for it.

The modifications are VQ-VAE's loss weights, a step schedule of the weight decay, annealed ``quantize`` and ``commit``,
ℓ1 regularization, and a codebook that moves with the encoder of a GAN.
"""

import dataclasses

import pytest
import torch
from safetensors.torch import load_file

import qlae
from qlae.cli import main
from qlae.config import DataConfig
from qlae.data import data_config
from qlae.models.building import build_model
from qlae.objectives.adversarial import Game
from qlae.objectives.objective import l1_norm
from qlae.observations import square_images
from qlae.presets import MODELS
from qlae.resolving import resolve
from qlae.runs.directory import Run
from qlae.study import read_plan
from qlae.training.state import build_state
from qlae.training.trainer import train_run

CPU = torch.device("cpu")
DATA = DataConfig("shapes3d", square_images(16))
NEGATIVE = {
    "l1": ("qlae", {"weights": {"l1": 1e-4}}),
    "l1 without weight decay": ("qlae", {"weights": {"l1": 1e-4}, "weight_decay": 0.0}),
    "step": ("qlae", {"weight_decay_schedule": "step"}),
    "quantize annealed": ("qlae", {"weight_schedules": {"quantize": [[0, 0], [8, 1]]}}),
    "commit annealed": ("qlae", {"weight_schedules": {"commit": [[0, 0], [8, 1]]}}),
    "VQ-VAE's weights": ("qlae", {"weights": {"quantize": 1.0, "commit": 0.25}}),
    "l1 of a GAN": ("qlinfowgan-gp", {"weights": {"l1": 1e-4}}),
    "codebook with the encoder": ("qlinfowgan-gp", {"codebook_player": "encoder"}),
}


def small(data, model, **options):
    return resolve(model, data_config(data), 2, size="small", batch_size=8, **options)


def gradients(data, model, number=1.0, **options):
    """Return the gradients of each player's loss by name of the parameter, on the same images and weights."""
    torch.manual_seed(0)
    state = build_state(small(data, model, **options), data, CPU)
    names = {parameter: name for name, parameter in state.model.named_parameters()}
    images = torch.rand(8, 3, 16, 16, generator=torch.Generator().manual_seed(3))
    found = []
    for turn in state.update.turns:
        with state.update.others_frozen(turn):
            noise = torch.Generator().manual_seed(1)
            _, values = turn.loss_and_gradients(images, noise, torch.tensor(number))
        found.append({names[p]: value for p, value in zip(turn.flat.parameters, values, strict=True)})
    return state, found


@pytest.mark.parametrize("model", ["qlae", "qlinfowgan-gp"])
def test_l1_pulls_every_parameter_of_the_networks_by_its_sign_and_no_codebook(tiny_data, model):
    state, with_l1 = gradients(tiny_data, model, weights={"l1": 0.5})
    _, without = gradients(tiny_data, model)
    parameters = dict(state.model.named_parameters())
    for ours, plain in zip(with_l1, without, strict=True):
        assert ours.keys() == plain.keys()
        for name in ours:
            pull = torch.zeros_like(plain[name]) if name == "latent.values" else 0.5 * parameters[name].sign()
            assert torch.allclose(ours[name], plain[name] + pull, atol=1e-5), name
    assert "latent.values" in with_l1[-1]


def test_l1_is_the_norm_of_the_networks_of_each_player(tiny_data):
    config = small(tiny_data, "qlinfowgan-gp", weights={"l1": 1e-6})
    state = build_state(config, tiny_data, CPU)
    model, (encoder, generator) = state.model, state.update.turns
    images = torch.rand(8, 3, 16, 16)
    for turn, modules in ((encoder, (model.encoder, model.parts["critic"])), (generator, (model.decoder,))):
        terms = turn.player.loss(images, torch.Generator().manual_seed(0), torch.tensor(1.0))
        by_hand = sum(p.detach().double().abs().sum() for module in modules for p in module.parameters())
        assert terms["l1"].item() == pytest.approx(float(by_hand), rel=1e-5)
        weights = {name: weight for name, weight in config.objective.weights.items() if name in terms}
        assert terms["loss"].item() == pytest.approx(sum(w * terms[n].item() for n, w in weights.items()), rel=1e-5)


def test_l1_of_rounded_parameters_is_summed_in_float32():
    parameters = [torch.full((1000,), 1.0, dtype=torch.bfloat16), torch.full((30,), -0.5, dtype=torch.bfloat16)]
    assert l1_norm(parameters).dtype == torch.float32
    assert l1_norm(parameters).item() == 1015.0


def test_l1_has_one_name_as_weight_log_key_and_column(tmp_path, tiny_data):
    options = {"size": "small", "batch_size": 8, "steps": 40, "evaluate": False, "show": False}
    strong = qlae.train("qlae", tiny_data, out=tmp_path / "strong", weights={"l1": 0.01}, **options)
    logged = qlae.train("qlae", tiny_data, out=tmp_path / "logged", weights={"l1": 0.0}, **options)
    assert strong.config.objective.weights["l1"] == 0.01
    assert strong.log()[-1]["l1"] < 0.95 * logged.log()[-1]["l1"]  # a weight of 0 only logs it
    plain = qlae.train("qlae", tiny_data, out=tmp_path / "plain", **options)
    assert "l1" not in plain.log()[-1]
    first, second = (load_file(run.path / "checkpoint.safetensors") for run in (logged, plain))
    assert all(torch.equal(first[name], second[name]) for name in first if name.startswith("weights."))


def test_l1_does_not_claim_that_weights_are_used_once(tiny_data):
    players = [build_state(small(tiny_data, "qlae", **o), tiny_data, CPU).update.turns[0].player for o in ({}, L1)]
    assert [player.uses_weights_once for player in players] == [True, False]


L1 = {"weights": {"l1": 1e-6}}


@pytest.mark.parametrize("model", MODELS)
def test_every_model_takes_l1(model):
    config = resolve(model, DATA, 2, size="small", warm_up=10, **L1)
    assert config.objective.weights["l1"] == 1e-6
    assert "l1" not in config.objective.schedules  # the warm-up is for terms of the latent space
    scheduled = resolve(model, DATA, 2, size="small", weight_schedules={"l1": [[0, 0], [5, 1]]}, **L1)
    assert scheduled.objective.schedules == {"l1": ((0, 0.0), (5, 1.0))}


def test_annealing_quantize_moves_the_codebook_less_and_nothing_else(tiny_data):
    _, (plain,) = gradients(tiny_data, "qlae", number=50)
    _, (quantize,) = gradients(tiny_data, "qlae", number=50, weight_schedules={"quantize": [[0, 0], [100, 1]]})
    _, (commit,) = gradients(tiny_data, "qlae", number=50, weight_schedules={"commit": [[0, 0], [100, 1]]})
    assert torch.allclose(quantize["latent.values"], plain["latent.values"] / 2)
    assert all(torch.equal(quantize[name], plain[name]) for name in plain if name != "latent.values")
    unmoved = {name for name in plain if torch.equal(commit[name], plain[name])}
    assert "latent.values" in unmoved
    assert {name.split(".")[0] for name in plain.keys() - unmoved} == {"encoder"}
    assert all(torch.equal(commit[name], plain[name]) for name in plain if name.startswith("decoder."))


def test_a_codebook_that_moves_with_the_encoder(tiny_data):
    state = build_state(small(tiny_data, "qlinfowgan-gp", codebook_player="encoder"), tiny_data, CPU)
    encoder, generator = (turn.player for turn in state.update.turns)
    assert encoder.undecayed == (state.model.latent,)
    assert generator.undecayed == ()
    for step in range(1, 6):
        before = {name: parameter.detach().clone() for name, parameter in state.model.named_parameters()}
        state.update(step)
        changed = {n.split(".")[0] for n, p in state.model.named_parameters() if not torch.equal(before[n], p)}
        assert changed == {"encoder", "parts", "latent"} | ({"decoder"} if step == 5 else set())


@pytest.fixture
def exact_game(tiny_data):
    """A game in double precision, whose codebook moves with the encoder; its values and random numbers too."""
    torch.set_default_dtype(torch.float64)
    try:
        torch.manual_seed(0)
        yield Game(build_model(small(tiny_data, "qlinfowgan-gp")), moves_codebook_with_encoder=True)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("term", ["value", "gradient_penalty"])
def test_the_encoder_s_loss_reaches_the_codebook_through_generated_images(exact_game, term):
    """Its derivative in a value is that of a finite difference."""
    images = torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    values = exact_game.model.latent.values

    def compute():
        return exact_game.encoder_terms(images, torch.Generator().manual_seed(5))[term]

    (derivative,) = torch.autograd.grad(compute(), values)
    step, shifted = 1e-6, []
    for sign in (1, -1):
        with torch.no_grad():
            values[0, 1] += sign * step
        shifted.append(compute().detach())
        with torch.no_grad():
            values[0, 1] -= sign * step
    assert derivative[0, 1] != 0
    assert torch.allclose(derivative[0, 1], (shifted[0] - shifted[1]) / (2 * step), rtol=1e-4)


def test_with_the_generator_the_encoder_s_loss_reaches_the_codebook_by_quantize_alone(tiny_data):
    model = build_model(small(tiny_data, "qlinfowgan-gp"))
    terms = Game(model).encoder_terms(torch.rand(6, 3, 16, 16), torch.Generator().manual_seed(5))
    reached = {
        name
        for name, term in terms.items()
        if torch.autograd.grad(term, model.latent.values, allow_unused=True, retain_graph=True)[0] is not None
    }
    assert reached == {"quantize"}


@pytest.mark.parametrize("name", NEGATIVE)
def test_a_resumed_run_ends_with_the_same_bits(tmp_path, tiny_data, name):
    model, options = NEGATIVE[name]
    config = small(tiny_data, model, steps=10, **options)
    training = dataclasses.replace(config.training, log_every=5)
    for folder, stops in (("whole", (10,)), ("parts", (5, 10))):
        for steps in stops:
            planned = dataclasses.replace(config, training=dataclasses.replace(training, steps=steps))
            train_run(Run(tmp_path / folder), planned, tiny_data, device="cpu", show=False)
    first, second = (load_file(tmp_path / folder / "checkpoint.safetensors") for folder in ("whole", "parts"))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[tensor], second[tensor]) for tensor in first)


def test_the_command_line_takes_them_all(tmp_path):
    with pytest.raises(SystemExit) as stop:
        main(
            [
                *("train", "qlinfowgan-gp", "--resolution", "16", "--sources", "floor hue", "shape", "--quiet"),
                *("--size", "small", "--batch-size", "4", "--steps", "10", "--no-evaluate", "--device", "cpu"),
                *("--codebook-player", "encoder", "--weight-decay-schedule", "step"),
                *("--weights", "l1=0.000001", "quantize=1", "--weight-schedules", "commit=0:0,5:1"),
                *("--out", str(tmp_path / "run")),
            ]
        )
    assert stop.value.code == 0
    config = Run(tmp_path / "run").config
    assert config.objective.codebook_player == "encoder"
    assert config.training.weight_decay_schedule == ((0, 0.0), (5, 0.0), (5, 1.0))
    assert (config.objective.weights["l1"], config.objective.weights["quantize"]) == (1e-6, 1.0)
    assert config.objective.schedules == {"commit": ((0, 0.0), (5, 1.0))}


@pytest.mark.parametrize("model", ["qlae", "infowgan-gp"])
def test_models_without_a_codebook_and_a_generator_say_that_nothing_changes(model):
    with pytest.warns(UserWarning, match=rf"{model} is not a GAN with codebooks that learn, so codebook_player"):
        resolve(model, DATA, 2, codebook_player="encoder")


def test_an_unknown_player_is_refused():
    with pytest.raises(ValueError, match=r'unknown codebook_player .encodr.: did you mean "encoder"'):
        resolve("qlinfowgan-gp", DATA, 2, codebook_player="encodr")


@pytest.mark.parametrize("name", ["negative", "negative-quick"])
def test_the_plans_try_every_modification(name):
    """Every item of the appendix's list, for the autoencoder and the GAN, as options that resolve."""
    plan = read_plan(name)
    configs = {model.label: resolve(model.name, DATA, 2, **model.options) for model in plan.models}
    names = {model.label: model.name for model in plan.models}
    for base in ("qlae", "qlinfowgan-gp"):
        plain = configs[base].objective.weights
        found = [config for label, config in configs.items() if names[label] == base]
        assert any(c.objective.weights == plain | {"quantize": 1.0, "commit": 0.25} for c in found)
        assert any(c.training.weight_decay_schedule for c in found)
        assert {tuple(c.objective.schedules) for c in found} >= {("quantize",), ("commit",), ("quantize", "commit")}
        decays = {c.training.optimizer.weight_decay > 0 for c in found if c.objective.weights.get("l1")}
        assert decays == {True, False}  # in addition to weight decay, and without
    with_encoder = [c for c in configs.values() if getattr(c.objective, "codebook_player", "") == "encoder"]
    assert len(with_encoder) == 1
