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
from qlae.models.networks import FULL, ConvEncoder, StyleDecoder
from qlae.pipeline import train
from qlae.presets import MODELS
from qlae.registry import OBJECTIVES
from qlae.resolving import resolve
from qlae.runs.directory import Run
from qlae.training.graphs import GraphUpdates
from qlae.training.state import TrainingState, build_state, initial_model
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


def require_same_when_recorded(config, data, **usual) -> None:
    """Recorded and eager updates have the same bits, and others than those of the model without its options."""
    whole, eager = (build_state(config, data, GPU) for _ in range(2))
    advance(whole, 150)
    eager.updates.block = 1
    advance(eager, 150)
    assert whole.updates.is_recorded
    assert same(tensors(whole), tensors(eager))
    without = build_state(config_of(data, config.model, **usual), data, GPU)
    advance(without, 150)
    assert not same(tensors(whole), tensors(without))


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
        step = Step(OBJECTIVES.build(config.objective).players(model), batches, config, model.form.to_input)
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
    stream = torch.cuda.current_stream()
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
    assert torch.cuda.current_stream() == stream


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


def test_images_are_rendered_on_the_stream_of_the_caller():
    data = load_data("shapes3d", resolution=16, sources=["floor hue", "shape"])
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(500_000_000)  # whatever runs on another stream is done long before
        images = data.images.render_on("cuda").cpu().numpy()
    assert np.abs(np.asarray(data.images).astype(int) - images).max() <= 1


class TwiceEncoder(nn.Module):
    """The paper's encoder called twice: each of its weights has two gradients to add."""

    def __init__(self, num_latents: int):
        super().__init__()
        self.inner = ConvEncoder(16, num_latents, size=FULL)

    def forward(self, images):
        return self.inner(images) + self.inner(images.flip(3))


class TwiceDecoder(nn.Module):
    """The paper's decoder called twice, with a weight that is also used outside of its layer."""

    def __init__(self, num_latents: int):
        super().__init__()
        self.inner = StyleDecoder(16, num_latents, size=FULL)

    def forward(self, z):
        return self.inner(z) + self.inner(-z) * (1 + self.inner.dense1.weight.square().mean())


def gradients_of(networks, data, *, compile: bool, verified: list[bool]) -> list[torch.Tensor]:
    config = resolve("qlae", data_config(data), 2, batch_size=16, own_networks=("encoder", "decoder"))
    with training_process(GPU, compile=compile):
        state = build_state(config, data, GPU, model=initial_model(config, networks, GPU), compile=compile)
        (turn,) = state.update.turns
        images = torch.rand(16, 3, 16, 16, device=GPU, generator=torch.Generator(GPU).manual_seed(1))
        images = images.contiguous(memory_format=torch.channels_last)
        for _ in range(3):  # the claim is checked at the first
            _, gradients = turn.loss_and_gradients(images, state.update.noise, torch.ones((), device=GPU))
        verified.append(turn._uses_weights_once)
        if compile and turn._uses_weights_once:  # the same on one stream
            turn._uses_weights_once = False
            _, alone = turn.loss_and_gradients(images, state.update.noise, torch.ones((), device=GPU))
            assert all(torch.allclose(a, b, rtol=1e-3, atol=1e-6) for a, b in zip(gradients, alone, strict=True))
        return [gradient.double().cpu() for gradient in gradients]


@pytest.mark.parametrize("twice", ["encoder", "decoder", "neither"])
def test_networks_that_use_a_weight_twice_get_the_right_gradients(tiny_data, twice):
    torch.manual_seed(0)
    encoder = TwiceEncoder(4) if twice == "encoder" else ConvEncoder(16, 4, size=FULL)
    decoder = TwiceDecoder(4) if twice == "decoder" else StyleDecoder(16, 4, size=FULL)
    verified: list[bool] = []
    fast, plain = (gradients_of((encoder, decoder), tiny_data, compile=c, verified=verified) for c in (True, False))
    assert verified[0] == (twice == "neither")
    for ours, theirs in zip(fast, plain, strict=True):
        # Products in TF32 differ by a few percent after all layers; a lost or raced gradient differs by far more.
        assert (ours - theirs).norm() <= 0.15 * theirs.norm() + 1e-9


@pytest.mark.parametrize("model", ["qlae", "beta-tcvae"])
@pytest.mark.parametrize("options", [{"schedule": "cosine"}, {"weight_decay_schedule": "step", "warm_up": 20}])
def test_schedules_are_the_same_when_recorded(tiny_data, model, options):
    require_same_when_recorded(config_of(tiny_data, model, steps=150, **options), tiny_data, steps=150)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("qlae", {"form": "official"}),
        ("vq-vae", {"form": "official"}),
        ("bioae", {"form": "official"}),
        ("qlinfowgan-gp", {"form": "official"}),
        ("qlae", {"weights": {"l1": 1e-4}}),
        ("qlinfowgan-gp", {"weights": {"l1": 1e-4}}),
        ("qlinfowgan-gp", {"codebook_player": "encoder"}),
        ("qlae", {"weight_schedules": {"quantize": "0:0, 100:1"}}),
        ("qlae", {"recipe": "fast"}),
        ("qlae", {"weights": {"entropy": 0.005}}),
        ("fsq-ae", {"weights": {"entropy": 0.005}}),
    ],
    ids=str,
)
def test_variants_are_the_same_when_recorded(tiny_data, model, options):
    require_same_when_recorded(config_of(tiny_data, model, **options), tiny_data)


def test_the_process_is_left_as_it_was(tmp_path, tiny_data):
    torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = False
    torch.cuda.manual_seed(5)
    state = torch.cuda.get_rng_state()
    train("qlae", tiny_data, out=tmp_path / "run", device="cuda", size="small", steps=60, show=False, evaluate=False)
    assert not torch.backends.cudnn.benchmark
    assert not torch.backends.cudnn.deterministic
    assert torch.equal(torch.cuda.get_rng_state(), state)
