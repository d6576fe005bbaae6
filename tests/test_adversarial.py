"""The adversarial objective: each term against another computation, and who moves when."""

import pytest
import torch
from torch import nn

from qlae.data import data_config
from qlae.models.building import build_model
from qlae.objectives.adversarial import Game
from qlae.registry import OBJECTIVES
from qlae.resolving import resolve
from qlae.training.state import build_state

CPU = torch.device("cpu")
MODELS = ("infowgan-gp", "qlinfowgan-gp")


def small(data, model, **options):
    return resolve(model, data_config(data), 2, size="small", batch_size=8, **options)


@pytest.fixture
def images():
    return torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))


@pytest.fixture(params=MODELS)
def objective(request, tiny_data):
    config = small(tiny_data, request.param)
    torch.manual_seed(0)
    return Game(build_model(config))


def test_terms_by_hand(objective, images):
    """The same draws, one image at a time."""
    model = objective.model
    terms = objective.encoder_terms(images, torch.Generator().manual_seed(5))
    generator = torch.Generator().manual_seed(5)
    z = model.latent.sample(6, generator)
    share = torch.rand(6, 1, 1, 1, generator=generator)
    fake = model.decoder(z).sigmoid()
    values, found, penalties = [], [], []
    for i in range(6):
        features = [model.encoder.features(x[i : i + 1]) for x in (fake, images)]
        values.append(model.parts["critic"](features[0]) - model.parts["critic"](features[1]))
        found.append(model.latent(model.encoder.head(features[0])).z)
        mixed = (share[i] * images[i] + (1 - share[i]) * fake[i])[None].detach().requires_grad_()
        (gradient,) = torch.autograd.grad(model.parts["critic"](model.encoder.features(mixed)), mixed)
        penalties.append((gradient.norm() - 1) ** 2)
    assert torch.allclose(terms["value"], torch.cat(values).mean(), atol=1e-5)
    assert torch.allclose(terms["reconstruct_latent"], (torch.cat(found) - z).square().mean(), atol=1e-5)
    assert torch.allclose(terms["gradient_penalty"], torch.stack(penalties).mean(), atol=1e-5)


def test_generator_terms_by_hand(objective, images):
    model = objective.model
    terms = objective.generator_terms(images, torch.Generator().manual_seed(5))
    z = model.latent.sample(6, torch.Generator().manual_seed(5))
    fake = model.decoder(z).sigmoid()
    assert torch.allclose(terms["value"], -model.parts["critic"](model.encoder.features(fake)).mean(), atol=1e-5)
    found = model.latent(model.encoder(fake)).z
    assert torch.allclose(terms["reconstruct_latent"], (found - z).square().mean(), atol=1e-5)
    assert "gradient_penalty" not in terms


def test_gradient_penalty_against_a_numerical_gradient(objective, images):
    model = objective.model.double()
    images = images.double()
    step = 1e-6
    norms = []
    for image in images[:2]:
        gradient = torch.zeros(image.numel(), dtype=torch.float64)
        with torch.no_grad():
            for start in range(0, image.numel(), 96):
                shifts = torch.zeros(96, image.numel(), dtype=torch.float64)
                shifts[torch.arange(96), torch.arange(start, start + 96)] = step
                shifts = shifts.view(96, *image.shape)
                up, down = (model.parts["critic"](model.encoder.features(image + sign * shifts)) for sign in (1, -1))
                gradient[start : start + 96] = ((up - down) / (2 * step)).flatten()
        norms.append(gradient.norm())
    expected = torch.stack([(norm - 1) ** 2 for norm in norms]).mean()
    assert torch.allclose(objective.gradient_penalty(images[:2]), expected, atol=1e-5)


def test_gradient_penalty_reaches_the_weights(objective, images):
    """True double backward: its derivative in a weight is that of a finite difference."""
    objective.model.double()
    weight = objective.critic.weight
    penalty = objective.gradient_penalty(images.double())
    (derivative,) = torch.autograd.grad(penalty, weight)
    step = torch.zeros_like(weight)
    step[0, 3] = 1e-6
    shifted = []
    for sign in (1, -1):
        with torch.no_grad():
            weight += sign * step
        shifted.append(objective.gradient_penalty(images.double()).detach())
        with torch.no_grad():
            weight -= sign * step
    assert torch.allclose(derivative[0, 3], (shifted[0] - shifted[1]) / 2e-6, rtol=1e-4)


def test_gradient_penalty_of_a_linear_critic():
    """‖∇‖ is the norm of the weights, whatever the image."""

    class Flat(nn.Module):
        features = nn.Flatten()
        head = nn.Identity()

    class Stub(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.parts = Flat(), nn.ModuleDict({"critic": nn.Linear(12, 1)})

    stub = Stub()
    with torch.no_grad():
        stub.parts["critic"].weight.fill_(0.5)
    penalty = Game(stub).gradient_penalty(torch.rand(3, 3, 2, 2))
    assert torch.allclose(penalty, torch.tensor((12 * 0.25) ** 0.5 - 1).square())


def snapshot(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in module.named_parameters()}


def moved(before: dict[str, torch.Tensor], module: nn.Module) -> set[str]:
    changed = (name for name, p in module.named_parameters() if not torch.equal(before[name], p))
    return {name.removeprefix("parts.").split(".")[0] for name in changed}


@pytest.mark.parametrize("name", MODELS)
def test_who_moves_when(tiny_data, name):
    state = build_state(small(tiny_data, name), tiny_data, CPU)
    model, players_of_generator = state.model, {"decoder"} | ({"latent"} if name == "qlinfowgan-gp" else set())
    for step in range(1, 11):
        before = snapshot(model)
        state.update(step)
        expected = {"encoder", "critic"} | (players_of_generator if step % 5 == 0 else set())
        assert moved(before, model) == expected, step


@pytest.mark.parametrize("name", MODELS)
def test_a_turn_moves_its_player_alone(tiny_data, images, name):
    state = build_state(small(tiny_data, name), tiny_data, CPU)
    for turn, expected in zip(state.update.turns, ({"encoder", "critic"}, {"decoder", "latent"}), strict=True):
        before = snapshot(state.model)
        with state.update.others_frozen(turn):
            _, gradients = turn.loss_and_gradients(images, state.update.noise, torch.tensor(1.0))
        turn.optimizer.step(gradients)
        assert moved(before, state.model) == expected - ({"latent"} if name == "infowgan-gp" else set())
        assert all(parameter.grad is None for parameter in state.model.parameters())


def test_every_parameter_has_one_player(tiny_data):
    model = build_model(small(tiny_data, "qlinfowgan-gp"))
    players = OBJECTIVES.build(small(tiny_data, "qlinfowgan-gp").objective).players(model)
    owned = [p for player in players for m in (*player.decayed, *player.undecayed) for p in m.parameters()]
    assert len(owned) == len({id(p) for p in owned}) == len(list(model.parameters()))
    assert [player.period for player in players] == [1, 5]
    assert model.latent in players[1].undecayed


def test_the_critic_shares_the_encoder_s_trunk(tiny_data):
    model = build_model(small(tiny_data, "infowgan-gp"))
    assert isinstance(model.parts["critic"], nn.Linear)
    critic = model.parts["critic"]
    assert (critic.in_features, critic.out_features) == (model.encoder.head.in_features, 1)
    assert len(build_model(small(tiny_data, "qlae")).parts) == 0


def test_log_rows_name_the_second_player_s_terms(tmp_path, tiny_data):
    from qlae.runs.directory import Run
    from qlae.training import train_run

    run = Run(tmp_path)
    train_run(run, small(tiny_data, "qlinfowgan-gp", steps=103), tiny_data, device="cpu", show=False)
    first, last = run.log()
    terms = ("loss", "reconstruct_latent", "value", "quantize", "commit")
    assert set(first) == {"step", "seconds", "gradient_penalty", *terms, *(f"generator_{term}" for term in terms)}
    assert "generator_loss" not in last  # the generator did not move between updates 101 and 103
    assert last["step"] == 103
