"""Repeat the authors' updates with ours, and measure how far we are from their numbers.

`fixtures/parity/README.md` describes the files: for each model the rule of the initial weights, and of 20 updates the
batches, the noise and the losses, the gradients and the final parameters. Everything runs through `build_state` and its
`Step`, as in a training. Only what a training draws at random (weights, batches, noise) comes from the files.

    python tests/parity.py                   # deviations of all models on the CPU
    python tests/parity.py --device cuda     # on a GPU
    QLAE_PARITY=folder python tests/parity.py
"""

import argparse
import ast
import contextlib
import functools
import math
import os
import re
import statistics
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from qlae._process import training_process
from qlae.config import DataConfig
from qlae.data import SourceDataset
from qlae.observations import square_images
from qlae.resolving import resolve
from qlae.training.state import TrainingState, build_state

COMMITTED = Path(__file__).parent / "fixtures" / "parity"
FOLDER = Path(os.environ.get("QLAE_PARITY") or COMMITTED)
MODELS = (
    "qlae",
    "qlae-global-codebook",
    "ae",
    "bioae",
    "vq-vae-weight-decay",
    "beta-vae",
    "beta-tcvae",
    "infowgan-gp",
    "qlinfowgan-gp",
)
NUM_SOURCES, NUM_IMAGES = 6, 480_000  # of Shapes3D
BLOCK = 5  # updates per CUDA graph; the first block runs operation by operation
NEGLIGIBLE = 1e-6  # tensors whose norm is below this share of the largest are zeros, or differences that cancel

# The authors' name of a tensor → ours, one substitution after the other; a number in brackets is a row of our tensor.
NAMES = (
    (r"^\.encoder\.critic", "parts.critic"),
    (r"^\.encoder(\.base)?", "encoder"),
    (r"^\.(decoder|generator)", "decoder"),
    (r"^\.latent", "latent"),
    (r"^encoder\.conv\.layers\[(\d+)\]\.layers\[0\]", r"encoder.layers.\1.conv"),
    (r"^encoder\.conv\.layers\[(\d+)\]\.layers\[1\]", r"encoder.layers.\1.norm"),
    (r"\.dense\.layers\[0\]\.layers\[0\]", ".dense1"),
    (r"\.dense\.layers\[1\]\.layers\[0\]", ".dense2"),
    (r"style_conv_transpose\.blocks\[(\d+)\]\.forward_block\.layers\[0\]", r"layers.\1.conv"),
    (r"style_conv_transpose\.blocks\[(\d+)\]\.conditioning\.layers\[0\]", r"layers.\1.style"),
    (r"^decoder\.conv\.layers\[0\]", "decoder.output"),
    (r"input_map$", "start[0]"),
    (r"latent\.values$", "latent.values[0]"),
    (r"_values_per_latent\[(\d+)\]$", r"values[\1]"),
    (r"embeddings$", "vectors"),
)

# Our name of a loss term → the authors'. Ours in nats are divided by the entries of an image; see ``unit``.
TERMS = {
    "reconstruct": "binary_cross_entropy_loss",
    "quantize": "quantization_loss",
    "commit": "commitment_loss",
    "nonnegative": "nonnegative_loss",
    "activity": "activity_loss",
    "kl": "kl_loss",
    "mutual_information": "mutual_information_loss",
    "total_correlation": "total_correlation_loss",
    "dimension_kl": "dimension_wise_kl_loss",
    "reconstruct_latent": "latent_loss",
    "value": "value_loss",
    "gradient_penalty": "gradient_loss",
}

Recording = Mapping[str, Any]
Deviations = dict[str, float]


@dataclass(frozen=True)
class Way:
    """A way to run the updates.

    Attributes:
        dtype: the type of everything.
        compile: fused operations or, in float32 on a GPU, kernels; plain operations otherwise.
        graphs: whether a GPU records updates as CUDA graphs.
        tf32: whether a GPU may round the factors of products.
    """

    dtype: torch.dtype
    compile: bool
    graphs: bool = False
    tf32: bool = False

    def __str__(self) -> str:
        words = "compiled" if self.compile else "plain", str(self.dtype).removeprefix("torch.")
        return " ".join((*words, *["graphs"] * self.graphs, *["tf32"] * self.tf32))


PLAIN_64 = Way(torch.float64, compile=False)
COMPILED_64 = Way(torch.float64, compile=True)
COMPILED_32 = Way(torch.float32, compile=True)


def models() -> tuple[str, ...]:
    """Return the names of the models in the folder; the committed one must have all of them."""
    if FOLDER == COMMITTED:
        return MODELS
    found = tuple(sorted(path.stem for path in FOLDER.glob("*.npz") if path.stem != "batches"))
    if not found:
        raise FileNotFoundError(f"QLAE_PARITY={FOLDER} has no recordings of models")
    return found


@functools.cache
def load(model: str) -> Recording:
    """Return the arrays of a model's file, and the batches as ``images``."""
    with np.load(FOLDER / f"{model}.npz") as file, np.load(FOLDER / "batches.npz") as batches:
        return {name: file[name] for name in file.files} | {"images": batches["images"]}


class Repetition:
    """The updates of a recording, repeated in one of the ways to run them.

    Attributes:
        firsts: the first gradient of each parameter by its name, before clipping, and the first latents as ``z``.
        gradients: the latest gradients.
    """

    def __init__(self, model: str, way: Way, device: str = "cpu"):
        self.way, self.device, self.recorded = way, torch.device(device), load(model)
        self.firsts: dict[str, Tensor] = {}
        self.gradients: dict[str, Tensor] = {}
        with self._process():
            self.state = build(model, self.recorded, self.device, way)
            self.noise = RecordedNoise(self.state, self.recorded)
        self.parameters = dict(self.state.model.named_parameters())
        for turn in self.state.update.turns:
            self._watch_gradients(turn)
        self._hook = self.state.model.latent.register_forward_hook(self._keep_latents)

    @property
    def is_done(self) -> bool:
        return self.state.step == len(self.recorded["images"])

    def advance(self) -> None:
        """Make the next update, or a block of them if they are recorded as a CUDA graph."""
        with self._process(), self.noise:
            left = len(self.recorded["images"]) - self.state.step
            self.state.step += self.state.updates.advance(self.state.step, left)
        self._hook.remove()

    def finish(self) -> Deviations:
        """Make all updates, and return the largest relative deviation of each quantity in the recording."""
        while not self.is_done:
            self.advance()
        return {
            "parameters": tensor_deviation(self.recorded, "final", self.parameters),
            "gradients": self._gradient_deviation(),
            **self.loss_deviations(),
        }

    def loss_deviations(self) -> Deviations:
        """Return the largest deviations of the losses and their terms and, if they are recorded, the first latents."""
        turns = self.state.update.turns
        if "encoder_loss" not in self.recorded:
            latents = relative(self.firsts["z"].double().cpu().numpy(), self.recorded["first_latents"])
            return {"latents": latents, **loss_deviations(self.recorded, turns[0], "loss", "term")}
        by_name = {turn.player.name: turn for turn in turns}
        encoder = loss_deviations(self.recorded, by_name["encoder"], "encoder_loss", "enc_term")
        generator = loss_deviations(self.recorded, by_name["generator"], "generator_loss", "gen_term")
        return {name: max(encoder[name], generator[name]) for name in encoder}

    def set_state(self, other: "Repetition") -> None:
        """Take over the parameters and the moments of another repetition of the same updates."""
        pairs = zip(self.state.update.turns, other.state.update.turns, strict=True)
        with torch.no_grad():
            for turn, given in pairs:
                turn.flat.values.copy_(given.flat.values)
                for name in ("first", "second", "moves"):
                    getattr(turn.optimizer, name).copy_(getattr(given.optimizer, name))

    def _gradient_deviation(self) -> float:
        if "gradient_names" in self.recorded:
            return tensor_deviation(self.recorded, "gradient", self.firsts)
        return max(  # a player moves only its own tensors
            tensor_deviation(self.recorded, "encoder_gradient", self.firsts, of=r"\.encoder"),
            tensor_deviation(self.recorded, "generator_gradient", self.firsts, of=r"\.(generator|latent)"),
        )

    def _keep_latents(self, latent: Any, inputs: tuple[Tensor, ...], output: Any) -> None:
        """Keep the first latents; the authors recorded the means of those that are drawn."""
        self.firsts["z"] = (latent.unrounded(inputs[0]) if "noise" in self.recorded else output.z).detach().clone()

    def _watch_gradients(self, turn: Any) -> None:
        names = {parameter: name for name, parameter in self.parameters.items()}
        own_names, step = [names[parameter] for parameter in turn.flat.parameters], turn.optimizer.step

        def watched(gradients: Any) -> None:
            self.gradients |= zip(own_names, gradients, strict=True)
            if own_names[0] not in self.firsts:
                self.firsts |= {name: self.gradients[name].detach().clone() for name in own_names}
            step(gradients)

        turn.optimizer.step = watched

    @contextlib.contextmanager
    def _process(self) -> Iterator[None]:
        """Set up the process as a training does, but in the type of ``way``, and without TF32 unless asked for."""
        cudnn = torch.backends.cudnn
        before = cudnn.allow_tf32
        with training_process(self.device, compile=self.way.compile):
            torch.set_default_dtype(self.way.dtype)  # which ``training_process`` restores
            cudnn.allow_tf32 = self.way.tf32
            try:
                yield
            finally:
                cudnn.allow_tf32 = before


def finish_in_lockstep(exact: Repetition, rounded: Repetition) -> Deviations:
    """Make all updates of both, each of them from the state of the exact one; return the deviations of the rounded one.

    In float32 the first updates of Adam multiply differences: it moves every entry by about the learning rate, also
    those whose gradient is nothing but rounding. From the exact state, every update has to agree.

    Returns:
        The deviations of losses from the recording, and of gradients and of parameters that moved from the exact ones:
        norms of differences relative to norms. ``gradients`` and ``parameters`` are the largest over tensors of the
        median over updates, ``gradient_kinks`` and ``parameter_kinks`` the largest of all. These are larger because
        rounding sometimes decides on which side of its kink a ReLU is, or the direction in which Adam moves an entry.
    """
    gradients: dict[str, list[float]] = {}
    parameters: dict[str, list[float]] = {}
    while not exact.is_done:
        rounded.set_state(exact)
        for repetition in (exact, rounded):
            repetition.gradients.clear()
            repetition.advance()
        moved = exact.gradients.keys()
        own, theirs = ({name: run.parameters[name] for name in moved} for run in (rounded, exact))
        for name, error in distances(rounded.gradients, exact.gradients).items():
            gradients.setdefault(name, []).append(error)
        for name, error in distances(own, theirs).items():
            parameters.setdefault(name, []).append(error)
    return {
        "gradients": max(map(statistics.median_low, gradients.values())),
        "gradient_kinks": max(map(max, gradients.values())),
        "parameters": max(map(statistics.median_low, parameters.values())),
        "parameter_kinks": max(map(max, parameters.values())),
        **rounded.loss_deviations(),
    }


def build(model: str, recorded: Recording, device: torch.device, way: Way) -> TrainingState:
    """Return a run before its first update, with the recorded initial weights and batches."""
    images = recorded["images"]
    num_updates, batch_size, resolution = images.shape[:3]
    data = DataConfig("shapes3d", square_images(resolution), num_images=NUM_IMAGES)
    options: dict[str, Any] = {"form": "official", "batch_size": batch_size, "steps": num_updates}
    config = resolve(model, data, NUM_SOURCES, precision="float32", **options)
    config = replace(config, training=replace(config.training, log_every=num_updates))
    rows = SourceDataset(images.reshape(-1, *images.shape[2:]).copy(), name="shapes3d", origin="rendered")
    state = build_state(config, rows, device, compile=way.compile)
    initialise(state.model, recorded)
    step = state.update
    batches = torch.from_numpy(images).to(device)
    step.batches.draw_with_targets = lambda: (row_of(batches, step.number), None)
    if way.compile:  # PyTorch's fused AdamW reads the number of steps as float32, whatever the type of the weights
        for turn in step.turns:
            turn.optimizer.moves = turn.optimizer.moves.float()
    if hasattr(state.updates, "block"):
        state.updates.block = BLOCK if way.graphs else 1
    return state


@torch.no_grad()
def initialise(model: nn.Module, recorded: Recording) -> None:
    """Write the initial tensors of a recording into a model; every parameter must occur in it."""
    parameters = dict(model.named_parameters())
    num_written = dict.fromkeys(parameters, 0)
    salt = str(recorded.get("salt", ""))
    for name, shape, norm, projected in columns(recorded, "init"):
        tensor = initial_tensor(name, shape, salt)
        assert math.isclose(np.linalg.norm(tensor), norm, rel_tol=1e-12), name
        assert math.isclose(projection(name, tensor), projected, rel_tol=1e-9, abs_tol=1e-9 * norm), name
        own_name, row = place(name)
        target = parameters[own_name] if row is None else parameters[own_name][row]
        target.copy_(other_layout(own_name, torch.from_numpy(tensor)))
        num_written[own_name] += target.numel()
    missing = [name for name, parameter in parameters.items() if num_written[name] != parameter.numel()]
    assert not missing, f"the recording has no initial values of {missing}"


@functools.lru_cache(maxsize=512)
def standard_normal(seed: int, shape: tuple[int, ...]) -> Any:
    """Return the normal numbers of a seed, an array that nobody may write to."""
    numbers = np.random.RandomState(seed).standard_normal(shape)
    numbers.flags.writeable = False
    return numbers


def initial_tensor(name: str, shape: tuple[int, ...], salt: str) -> Any:
    """Return the initial value of one of the authors' tensors, an array."""
    normal = standard_normal(zlib.crc32((name + salt).encode()), shape)
    if "values" in name:
        return np.linspace(-0.5, 0.5, shape[0]) + 0.01 * normal
    if name.endswith("input_map"):
        return +normal
    if name.endswith("embeddings"):
        return normal / 8
    if len(shape) >= 2:
        return normal / np.sqrt(np.prod(shape[1:]))
    if ".layers[1].weight" in name and ".conv." in name:
        return 1 + 0.1 * normal
    return 0.1 * normal


def projection(name: str, array: Any) -> float:
    """Return the projection of an array on the direction that belongs to a name."""
    return float((array * standard_normal(zlib.crc32(name.encode()) ^ 1, array.shape)).sum())


def place(name: str) -> tuple[str, int | None]:
    """Return our name of one of the authors' tensors, and which row of ours it is; None for all of it.

    >>> place(".latent._values_per_latent[3]"), place(".encoder.base.dense.layers[1].layers[0].bias")
    (('latent.values', 3), ('encoder.dense2.bias', None))
    """
    for pattern, replacement in NAMES:
        name = re.sub(pattern, replacement, name)
    own_name, _, row = name.partition("[")
    return own_name, int(row.removesuffix("]")) if row else None


def other_layout(own_name: str, tensor: Tensor) -> Tensor:
    """Return one of our tensors in the authors' layout, or one of theirs in ours.

    Their transposed convolutions have weights (out, in, k, k), which they do not flip.
    """
    if re.fullmatch(r"decoder\.layers\.\d+\.conv\.weight", own_name):
        return tensor.transpose(0, 1).flip(2, 3)
    return tensor


def columns(recorded: Recording, kind: str) -> Iterator[tuple[str, tuple[int, ...], float, float]]:
    """Yield name, shape, norm and projection of each tensor of a kind, such as ``final``."""
    shapes = map(ast.literal_eval, recorded[f"{kind}_shapes"].tolist())
    numbers = (recorded[f"{kind}_{name}"].tolist() for name in ("norms", "projections"))
    return zip(recorded[f"{kind}_names"].tolist(), shapes, *numbers, strict=True)


class RecordedNoise(TorchFunctionMode):
    """Replaces the random numbers that an update draws from its generator by the recorded ones.

    Args:
        state: of the run.
        recorded: the recording.
    """

    def __init__(self, state: TrainingState, recorded: Recording):
        super().__init__()
        self.step, self.model = state.update, state.model
        names = [name for name in ("noise", "epsilon", "encoder_samples", "generator_samples") if name in recorded]
        device, dtype = self.step.batches.device, torch.get_default_dtype()
        self.tables = {name: torch.from_numpy(recorded[name]).to(device, dtype) for name in names}
        self.num_updates = len(recorded["images"])

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function not in (torch.rand, torch.randn) or kwargs.get("generator") is not self.step.noise:
            return function(*args, **kwargs)
        shape = tuple(args) if isinstance(args[0], int) else tuple(args[0])
        numbers = self._normal() if function is torch.randn else self._uniform(shape)
        assert numbers.shape == shape, f"an update draws {shape}, the recording has {tuple(numbers.shape)}"
        return numbers

    def _normal(self) -> Tensor:
        return self._row("noise")

    def _uniform(self, shape: tuple[int, ...]) -> Tensor:
        if shape == self.tables["epsilon"].shape[1:]:
            return self._row("epsilon")
        # The parameters of the player whose turn it is need gradients, the others' do not.
        is_encoder = next(self.model.encoder.parameters()).requires_grad
        latents = self._row("encoder_samples" if is_encoder else "generator_samples")
        if not self.model.latent.has_codes:
            return latents
        codebook = self.model.latent.codebook().detach()
        codes = (latents.unsqueeze(-1) - codebook).abs().argmin(-1)
        return (codes + 0.5) / codebook.shape[-1]  # for which these codes are drawn

    def _row(self, name: str) -> Tensor:
        table = self.tables[name]
        return row_of(table, self.step.number * len(table) / self.num_updates)


def row_of(table: Tensor, number: Tensor) -> Tensor:
    """Return the row of a number from 1, which stays on the device, so that a CUDA graph can be recorded."""
    index = (number - 1).round().long().clamp(min=0)
    return table.index_select(0, index.view(1))[0]


def tensor_deviation(recorded: Recording, kind: str, tensors: Mapping[str, Tensor], of: str = "") -> float:
    """Return the largest deviation of norms and projections, relative to the norms.

    Args:
        recorded: the recording.
        kind: of the tensors, such as ``final``.
        tensors: ours, by our names.
        of: a pattern of the authors' names; by default, all of them.
    """
    rows = [row for row in columns(recorded, kind) if re.match(of, row[0])]
    floor = NEGLIGIBLE * max(norm for _, _, norm, _ in rows)
    worst = 0.0
    for name, shape, norm, projected in rows:
        own_name, row = place(name)
        tensor = tensors[own_name] if row is None else tensors[own_name][row]
        array = other_layout(own_name, tensor.detach()).double().cpu().numpy()
        assert array.shape == shape, name
        error = max(abs(np.linalg.norm(array) - norm), abs(projection(name, array) - projected))
        worst = max(worst, finite(error / max(norm, floor)))
    return worst


def distances(tensors: Mapping[str, Tensor], exact: Mapping[str, Tensor]) -> Deviations:
    """Return the norm of the difference between tensors of the same name, relative to the exact one's norm."""
    assert tensors.keys() == exact.keys()
    norms = {name: float(tensor.detach().norm()) for name, tensor in exact.items()}
    floor = NEGLIGIBLE * max(norms.values())
    errors = {name: float((tensors[name].detach().double() - exact[name].detach()).norm()) for name in norms}
    return {name: finite(errors[name] / max(norms[name], floor)) for name in norms}


def loss_deviations(recorded: Recording, turn: Any, loss: str, prefix: str) -> Deviations:
    """Return the largest deviations of a player's loss and of its terms, each relative to its largest value."""
    window = turn.window.values[: turn.window.filled].double().cpu().numpy()
    own = dict(zip(turn.window.terms, window.T, strict=True))
    terms = [0.0]
    for name in own:
        theirs = f"{prefix}_{TERMS.get(name)}"
        if theirs in recorded:
            terms.append(relative(own[name], unit(name, recorded) * recorded[theirs]))
    return {"loss": relative(own["loss"], recorded[loss]), "terms": max(terms)}


def unit(term: str, recorded: Recording) -> float:
    """Return one of the authors' loss terms in ours."""
    num_entries = math.prod(recorded["images"].shape[2:])
    if term == "kl":  # theirs is a mean over latents
        return float(recorded["noise"].shape[-1] / num_entries)
    return 1 / num_entries if term in ("mutual_information", "total_correlation", "dimension_kl") else 1.0


def relative(own: Any, theirs: Any) -> float:
    """Return the largest difference between two arrays, relative to the largest entry."""
    assert own.shape == theirs.shape, f"{own.shape} instead of {theirs.shape}"
    return finite(float(np.abs(own - theirs).max()) / max(float(np.abs(theirs).max()), np.finfo(float).tiny))


def finite(deviation: float) -> float:
    """Return a deviation, with infinity for NaN, which would be below every tolerance."""
    return math.inf if math.isnan(deviation) else float(deviation)


def describe(model: str, way: Way, found: Deviations, seconds: float) -> str:
    """Return a line of a table of deviations."""
    numbers = "  ".join(f"{name} {found[name]:.0e}" for name in sorted(found))
    return f"{way!s:24} {model:22} {numbers}  ({seconds:.1f} s)"


def main() -> None:
    """Print the deviations of models in all ways to run them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("models", nargs="*", default=models(), help="all if left out")
    arguments = parser.parse_args()
    ways = [PLAIN_64, COMPILED_64, COMPILED_32]
    if arguments.device != "cpu":
        ways += [replace(COMPILED_64, graphs=True), replace(COMPILED_32, tf32=True)]
    for way in ways:
        for model in arguments.models:
            begun = time.monotonic()
            run = Repetition(model, way, arguments.device)
            if way.dtype == torch.float64:
                found = run.finish()
            else:
                found = finish_in_lockstep(Repetition(model, COMPILED_64, arguments.device), run)
            print(describe(model, way, found, time.monotonic() - begun), flush=True)


if __name__ == "__main__":
    main()
