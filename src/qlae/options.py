"""The options of a training, declared once: for ``qlae.train``, the command line and the plans of studies.

``TrainingOptions`` decide the result and end up in a run's config. ``ExecutionOptions`` say where and how a run is
carried out; they never change what it computes beyond rounding. The descriptions of the attributes are the help of the
command line.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ._checks import plain, require_known

CHECKPOINT_SECONDS = 60.0


@dataclass(frozen=True)
class TrainingOptions:
    """What determines the result of a training.

    Options that are not set follow the recipe and the preset of the model; both are the paper's by default.

    Attributes:
        recipe: The paper's recipe (200,000 updates at a constant learning rate), or a faster one for autoencoders,
            with 60,000 updates, a learning rate that falls to 0 in the second half, and, for qlae and fsq-ae, a
            penalty on the entropy of codes. factor-qvae keeps its own learning rate.
        size: The paper's networks (full), or small ones that a CPU can train in minutes, with fewer updates. By default
            full on a GPU and small without one.
        form: Follow the paper's text, or the authors' code where it differs.
        networks: Name of an encoder and decoder, paper, tripod, or a pair that your module registers (--import),
            instead of the model's own.
        steps: Number of updates; 200,000 in the paper.
        batch_size: Observations per update; 128 in the paper, 64 for GANs. With a discriminator, half are for it.
        learning_rate: Learning rate of AdamW; 0.001 in the paper, 0.0002 for GANs.
        schedule: Schedule of the learning rate: constant, as in the paper, or a linear or cosine decay at the end of
            the run.
        decay_steps: Number of updates at the end of the run over which the learning rate decays; half of the run if not
            set.
        floor: Final learning rate of a decay, as a fraction of the initial one; 0 if not set.
        learning_rate_warm_up: Number of updates at the start over which the learning rate rises linearly from 0; 0 if
            not set.
        weight_decay: Decoupled weight decay; the preset's value is the one tuned for the model and the data set.
        weight_decay_schedule: Factor on the weight decay: constant, step (0 in the first half of the run, as in the
            paper's negative results), or a curve of update:factor pairs, such as 0:0,50000:1.
        weights: Weights of single loss terms instead of the preset's, such as kl=4. Every model also accepts l1, the
            weight of an L1 penalty on the parameters of the networks; qlae, its ablations and fsq-ae accept entropy, a
            penalty on the use of codes.
        weight_schedules: Factors on the weights of single loss terms: curves of update:factor pairs with linear
            interpolation, such as quantize=0:0,5000:1.
        warm_up: Number of updates over which the weights of all loss terms of the latent space (KL, quantize and
            commit, …) rise linearly from 0; 0 if not set.
        num_latents: Number of latents; the preset is twice the number of sources. Your own data and digits have at
            least 10, since more may vary than their sources (vectors of fewer features: as many as features).
        num_values: Values per codebook, one number or one per latent; 10 in the paper (VQ-VAE: 512 vectors), 4
            with size small.
        fixed_values: Keep the codebooks at their initial, evenly spaced values instead of learning them.
        codebook_player: The player of a GAN that updates the codebooks: the generator, as in the paper, or the encoder,
            as in its negative results.
        precision: Precision of the networks' weights and activations: auto means bfloat16 on a GPU that supports it,
            else float32. Everything else is computed in float32.
        seed: Seed of the initial weights and of the batches.
    """

    recipe: Literal["paper", "fast"] = "paper"
    size: Literal["full", "small"] | None = None
    form: Literal["paper", "official"] = "paper"
    networks: str | None = None
    steps: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    schedule: Literal["constant", "linear", "cosine"] | None = None
    decay_steps: int | None = None
    floor: float | None = None
    learning_rate_warm_up: int | None = None
    weight_decay: float | None = None
    weight_decay_schedule: str | Sequence[tuple[int, float]] | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    weight_schedules: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)
    warm_up: int | None = None
    num_latents: int | None = None
    num_values: int | Sequence[int] | None = None
    fixed_values: bool = False
    codebook_player: Literal["generator", "encoder"] = "generator"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_values", plain(self.num_values))  # arrays become tuples, which can be compared


@dataclass(frozen=True)
class ExecutionOptions:
    """Where and how a training is carried out.

    Attributes:
        device: auto, cpu, cuda, cuda:1, …; mps is accepted but untested, and auto never chooses it.
        compile: Use the fast path (fused operations, and on a GPU Triton kernels and CUDA graphs) instead of plain
            PyTorch.
        threads: Number of CPU threads; if not set, one per core, or one for small networks on short observations.
            Fewer are faster if other programs use the cores.
        checkpoint_seconds: Number of seconds between checkpoints.
        score_every: Number of updates between evaluations during training, whose scores go into the log and its
            picture; a multiple of 100, or 0 for none.
        evaluate: Score the trained model and draw its pictures.
        tensorboard: Also write the log as TensorBoard events (pip install 'qlae[tensorboard]').
    """

    device: str = "auto"
    compile: bool = True
    threads: int | None = None
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    score_every: int = 0
    evaluate: bool = True
    tensorboard: bool = False


def option_names(*groups: type) -> tuple[str, ...]:
    """Return the names of the options that dataclasses declare, in order."""
    return tuple(field.name for group in groups for field in dataclasses.fields(group))


def split_options(options: Mapping[str, Any]) -> tuple[TrainingOptions, ExecutionOptions]:
    """Return keyword arguments as the two groups of options; an unknown name is an error that suggests the nearest."""
    of_training = option_names(TrainingOptions)
    for name in options:
        require_known(name, (*of_training, *option_names(ExecutionOptions)), "option of train")
    training = {name: value for name, value in options.items() if name in of_training}
    execution = {name: value for name, value in options.items() if name not in of_training}
    return TrainingOptions(**training), ExecutionOptions(**execution)


def chosen_options(options: TrainingOptions) -> dict[str, Any]:
    """Return the options that differ from their defaults."""
    default = TrainingOptions()
    return {name: value for name, value in vars(options).items() if value != getattr(default, name)}
