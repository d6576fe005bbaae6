"""The options of a training, declared once: for ``qlae.train``, the command line and the plans of studies.

``TrainingOptions`` decide the result and end up in a run's config. ``ExecutionOptions`` say where and how a run is
carried out; they never change what it computes beyond rounding. The texts below the fields are the command line's help.

This module imports no torch.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ._checks import plain, require_known

CHECKPOINT_SECONDS = 60.0


@dataclass(frozen=True)
class TrainingOptions:
    """What decides the result of a training. Options that are not set follow the paper."""

    size: Literal["full", "small"] = "full"
    """Networks of the paper, or small ones that a CPU can train, with a budget to match."""
    form: Literal["paper", "official"] = "paper"
    """Follow the paper's text, or the authors' code where it differs."""
    networks: str | None = None
    """A pair of networks that a module of yours has registered (--import), instead of the paper's."""
    steps: int | None = None
    """Number of updates; 200,000 in the paper."""
    batch_size: int | None = None
    """Images per update; 128 in the paper, 64 for GANs."""
    learning_rate: float | None = None
    """Learning rate of AdamW; 0.001 in the paper, 0.0002 for GANs."""
    schedule: Literal["constant", "linear", "cosine"] | None = None
    """Keep the learning rate constant, as the paper does, or let it fall over the last part of the run; constant by
    default."""
    decay_steps: int | None = None
    """Number of updates at the end over which the learning rate falls; half of the run by default."""
    floor: float = 0.0
    """Share of the learning rate that is left at the end of its fall."""
    learning_rate_warm_up: int = 0
    """Number of updates at the start over which the learning rate rises linearly."""
    weight_decay: float | None = None
    """Decoupled weight decay; by default the value tuned for the model and the data set."""
    weight_decay_schedule: str | Sequence[tuple[int, float]] | None = None
    """constant (the default), step (none in the first half of the run, as in the paper's negative results), or factors
    by update, such as 0:0,50000:1."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weights of loss terms instead of the preset's, such as --weights kl=4. Every model also takes l1, a weight of the
    ℓ1 norm of the networks' parameters."""
    weight_schedules: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)
    """Factors on the weights of single loss terms by update, linear in between, such as
    --weight-schedules quantize=0:0,5000:1."""
    warm_up: int = 0
    """Number of updates over which the latent space's own loss terms (KL, quantize and commit, …) all gain their
    weight, linearly."""
    num_latents: int | None = None
    """Number of latents; twice the number of sources by default."""
    num_values: int | Sequence[int] | None = None
    """Values per codebook, one number or one per latent; 10 in the paper (VQ-VAE: 512 vectors), 4 for --size small."""
    fixed_values: bool = False
    """Keep the values of the codebooks where they start instead of learning them."""
    codebook_player: Literal["generator", "encoder"] = "generator"
    """Move the codebooks of a GAN with the generator, as the paper does, or with the encoder, as in its negative
    results."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of the networks' weights and activations: auto means bfloat16 on a GPU that supports it, else float32.
    Everything else is computed in float32."""
    seed: int = 0
    """Seed of the initial weights and the batches."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_values", plain(self.num_values))  # arrays become tuples, which can be compared


@dataclass(frozen=True)
class ExecutionOptions:
    """Where and how a training is carried out."""

    device: str = "auto"
    """auto, cpu, cuda, cuda:1, …; mps is accepted but untried, and auto never chooses it."""
    compile: bool = True
    """Run the plain PyTorch operations one by one, which are easiest to read and debug, instead of the fast path
    (fused operations, and on a GPU Triton kernels and CUDA graphs)."""
    threads: int | None = None
    """CPU threads; one per core by default. Fewer are faster if other programs use the cores."""
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    """Seconds between checkpoints."""
    score_every: int = 0
    """Number of updates between scorings during the training, for the log and its picture; a multiple of 100, or 0
    for none."""
    evaluate: bool = True
    """Neither score the trained model nor draw its pictures."""
    tensorboard: bool = False
    """Also write the log as TensorBoard events (pip install 'qlae[tensorboard]')."""


def option_names(*classes: type) -> tuple[str, ...]:
    """Return the names of the options that dataclasses declare, in order."""
    return tuple(f.name for cls in classes for f in dataclasses.fields(cls))


def split_options(options: Mapping[str, Any]) -> tuple[TrainingOptions, ExecutionOptions]:
    """Return keyword arguments as the two groups of options; an unknown name is an error that suggests the nearest."""
    known = option_names(TrainingOptions, ExecutionOptions)
    for name in options:
        require_known(name, known, "option of train")
    training, execution = (
        {name: value for name, value in options.items() if name in option_names(cls)}
        for cls in (TrainingOptions, ExecutionOptions)
    )
    return TrainingOptions(**training), ExecutionOptions(**execution)


def chosen_options(options: TrainingOptions) -> dict[str, Any]:
    """Return the options that differ from their defaults."""
    default = TrainingOptions()
    return {name: value for name, value in vars(options).items() if value != getattr(default, name)}


def parse_curve(text: str) -> tuple[tuple[int, float], ...]:
    """Return a curve from text.

    >>> parse_curve("0:0,5000:1")
    ((0, 0.0), (5000, 1.0))
    """
    try:
        pairs = [point.split(":") for point in text.split(",")]
        return tuple((int(step), float(factor)) for step, factor in pairs)
    except ValueError:
        raise ValueError(
            f'a schedule lists "update:factor" pairs separated by commas, such as 0:0,5000:1, got {text!r}'
        ) from None
