"""Every constant of the paper, once, each citing its table; and the way from a few names to a whole config.

Tables are those of the paper's appendix "Hyperparameters". ``paper`` follows its text, ``official`` the authors' code
where the two differ. The tuned values are the ones the authors settled on.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ._checks import plain, require_known
from .config import DataConfig, LatentConfig, NetworkConfig, OptimizerConfig, RunConfig

FORMS = ("paper", "official")
OFFICIAL_CLIP = 1.0  # elementwise, on decayed parameters
LATENTS_PER_SOURCE = 2  # Tables "Fixed hyperparameters", of both objectives

# Table "Fixed latent quantization hyperparameters".
QUANTIZED = {"quantize": 0.01, "commit": 0.01}
# VQ-VAE keeps its own (Section "Negative results") and a global codebook of 512 vectors of size 64.
VECTOR_QUANTIZED = {"quantize": 1.0, "commit": 0.25}
NUM_VECTORS = 512
VECTOR_SIZE = 64
# Table "Fixed hyperparameters for all autoencoder variants".
AUTOENCODING = {"reconstruct": 1.0}
# Table "Fixed hyperparameters for all InfoGAN variants"; Algorithm 3 for the ratio of encoder to generator updates.
ADVERSARIAL = {"reconstruct_latent": 200.0, "value": 1.0, "gradient_penalty": 10.0}
GENERATOR_PERIOD = 5


@dataclass(frozen=True)
class TrainingPreset:
    """How an objective is optimised at a size of the networks."""

    learning_rate: float
    beta1: float
    beta2: Mapping[str, float]  # by form
    batch_size: int
    steps: int
    num_values: int
    weight_decay_factor: float = 1.0  # on the tuned weight decay, which was tuned for the full size


# The same two tables, and of the first (Table "Fixed latent quantization hyperparameters") the number of values.
_FULL_AE = TrainingPreset(1e-3, 0.9, {"paper": 0.99, "official": 0.999}, 128, 200_000, num_values=10)
_FULL_GAN = TrainingPreset(2e-4, 0.0, {"paper": 0.9, "official": 0.9}, 64, 200_000, num_values=10)
# Ours, a CPU's share, found by a search at 32×32. Four values instead of ten matter most: small networks organise 4^12
# codes in a few thousand updates, 10^12 in several times as many.
_SMALL_AE = replace(_FULL_AE, learning_rate=2e-3, batch_size=64, steps=7_000, num_values=4, weight_decay_factor=3.0)
_SMALL_GAN = replace(_FULL_GAN, steps=8_000, num_values=4)

#: size → objective → how it is optimised.
SIZES: dict[str, dict[str, TrainingPreset]] = {
    "full": {"autoencoding": _FULL_AE, "adversarial": _FULL_GAN},
    "small": {"autoencoding": _SMALL_AE, "adversarial": _SMALL_GAN},
}


@dataclass(frozen=True)
class ModelPreset:
    """A row of the paper's tables: a latent space, an objective with its weights, and what is tuned.

    Attributes:
        latent: a kind of ``LatentConfig``.
        weights: of the loss terms.
        weight_decay: where no data set says otherwise.
        weight_decay_on: data sets that take another value.
        tuned: the one hyperparameter that the paper tunes, ``"weight_decay"`` or a loss weight.
        tuned_on: its value on data sets, where it is a loss weight.
        grid: the values that the paper tries for it; none where it tunes nothing.
        published: whether the model is a row of the paper's tables.
    """

    latent: str
    weights: Mapping[str, float]
    weight_decay: float
    weight_decay_on: Mapping[str, float] = field(default_factory=dict)
    tuned: str = "weight_decay"
    tuned_on: Mapping[str, float] = field(default_factory=dict)
    grid: tuple[float, ...] = ()
    objective: str = "autoencoding"
    shared: bool = False
    decomposed: bool = False
    published: bool = True

    def weight_decay_for(self, data: str) -> float:
        return self.weight_decay_on.get(data, self.weight_decay)

    def weights_for(self, data: str) -> dict[str, float]:
        return dict(self.weights) | ({self.tuned: self.tuned_on[data]} if data in self.tuned_on else {})


# Table "Key regularization hyperparameter tuning": the grids; and the values the authors settled on. The values of the
# InfoWGAN-GP without quantization are not published, nor are all of VQ-VAE's: those of the authors' configurations.
_BETAS = (0.1, 0.3, 1.0, 3.0, 10.0)
_DECAYS = (0.001, 0.01, 0.1, 1.0)
_GAN_DECAYS = (0.0001, 0.001, 0.01, 0.1)

_QLAE = ModelPreset(
    "quantized", AUTOENCODING | QUANTIZED, weight_decay=0.1, weight_decay_on={"mpi3d": 0.001}, grid=_DECAYS
)
_VQ_VAE = ModelPreset("vector-quantized", AUTOENCODING | VECTOR_QUANTIZED, weight_decay=0.0)
_QLGAN = ModelPreset(
    "quantized",
    ADVERSARIAL | QUANTIZED,
    weight_decay=0.001,
    weight_decay_on={"falcor3d": 0.0001},
    grid=_GAN_DECAYS,
    objective="adversarial",
)

MODELS: dict[str, ModelPreset] = {
    "ae": ModelPreset("continuous", AUTOENCODING, weight_decay=0.001, grid=(0.0, 0.001, 0.01, 0.1)),
    "beta-vae": ModelPreset(
        "gaussian",
        AUTOENCODING | {"kl": 1.0},
        weight_decay=0.0,
        tuned="kl",
        tuned_on={"shapes3d": 3.0, "mpi3d": 0.1, "falcor3d": 10.0, "isaac3d": 0.3},
        grid=_BETAS,
    ),
    "beta-tcvae": ModelPreset(
        "gaussian",
        AUTOENCODING | {"mutual_information": 1.0, "total_correlation": 1.0, "dimension_kl": 1.0},
        weight_decay=0.0,
        tuned="total_correlation",
        tuned_on={"shapes3d": 3.0, "mpi3d": 0.3, "falcor3d": 3.0, "isaac3d": 1.0},
        grid=_BETAS,
        decomposed=True,
    ),
    "bioae": ModelPreset(
        "continuous",
        AUTOENCODING | {"nonnegative": 1.0, "activity": 0.01},
        weight_decay=0.0,
        tuned="activity",
        tuned_on={"isaac3d": 0.1},
        grid=(0.01, 0.1, 1.0, 10.0, 100.0),
    ),
    "vq-vae": _VQ_VAE,
    "qlae": _QLAE,
    "qlae-global-codebook": replace(_QLAE, shared=True),
    "qlae-no-weight-decay": replace(_QLAE, weight_decay=0.0, weight_decay_on={}, grid=()),
    "vq-vae-weight-decay": replace(_VQ_VAE, weight_decay=0.01, grid=_DECAYS),
    "infowgan-gp": ModelPreset("uniform", ADVERSARIAL, weight_decay=0.0001, grid=_GAN_DECAYS, objective="adversarial"),
    "qlinfowgan-gp": _QLGAN,
    "qlinfowgan-gp-no-weight-decay": replace(_QLGAN, weight_decay=0.0, weight_decay_on={}, grid=()),
    # Not in the paper: QLAE with a fixed grid (finite scalar quantization) in place of its codebooks.
    "fsq-ae": ModelPreset(
        "finite-scalar",
        AUTOENCODING,
        weight_decay=0.1,
        weight_decay_on={"mpi3d": 0.001},
        grid=_DECAYS,
        published=False,
    ),
}


def resolve(
    model: str,
    data: DataConfig,
    num_sources: int,
    *,
    form: str = "paper",
    size: str = "full",
    steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    weights: Mapping[str, float] | None = None,
    warm_up: int = 0,
    num_latents: int | None = None,
    num_values: int | Sequence[int] | None = None,
    fixed_values: bool = False,
    own_networks: bool = False,
    precision: str = "float32",
    seed: int = 0,
) -> RunConfig:
    """The whole config behind a model's name; what is not given is the paper's.

    Args:
        model: a key of ``MODELS``.
        data: the images; their name decides the tuned value.
        num_sources: n_s of the data, from which the number of latents follows.
        form: ``"paper"`` or ``"official"``.
        size: ``"full"`` or ``"small"``.
        weights: of some of the model's loss terms, such as ``{"kl": 4.0}``, instead of the preset's.
        warm_up: updates over which the weights of the latent space's own terms (KL and its parts, quantize and commit,
            activity) rise linearly from 0; the paper uses none.
        num_values: values a codebook, one number or one a latent.
        fixed_values: keep the codebooks where they start instead of learning them.
        own_networks: whether the caller brings encoder and decoder.
        precision: of the networks' weights and activations, ``"float32"`` or ``"bfloat16"``; everything else, the
            weights that the optimizer moves included, is in float32.
    """
    preset = MODELS[require_known(model, MODELS, "model")]
    require_known(form, FORMS, "form")
    trained = SIZES[require_known(size, SIZES, "size")][preset.objective]
    official, vectors = form == "official", preset.latent == "vector-quantized"
    asked = num_values is not None
    if num_values is None:
        num_values = NUM_VECTORS if vectors else trained.num_values
    if weight_decay is None:
        weight_decay = trained.weight_decay_factor * preset.weight_decay_for(data.name)
    if weights is not None and not isinstance(weights, Mapping):
        raise ValueError(f'weights must map loss terms to numbers, such as {{"reconstruct": 1.0}}, got {weights!r}')
    chosen = {require_known(name, preset.weights, f"loss term of {model}"): w for name, w in (weights or {}).items()}
    latent = LatentConfig(
        kind=preset.latent,
        num_latents=_count_latents(data, num_sources) if num_latents is None else plain(num_latents),
        num_values=plain(num_values),
        vector_size=VECTOR_SIZE,
        shared=preset.shared,
        learned=not fixed_values,
        reduction="mean" if official or vectors else "sum",
        decomposed=preset.decomposed,
    )
    if asked and not latent.has_codes:
        warnings.warn(f"{model} has no codebooks, so a number of their values changes nothing", stacklevel=2)
    if fixed_values and preset.latent not in ("quantized", "vector-quantized"):
        warnings.warn(f"{model} has no codebooks that learn, so fixing them changes nothing", stacklevel=2)
    return RunConfig(
        model=model,
        data=data,
        network=NetworkConfig(size=size, form=form, own=own_networks),
        latent=latent,
        objective=preset.objective,
        weights=preset.weights_for(data.name) | chosen,
        warm_up=plain(warm_up),
        generator_period=GENERATOR_PERIOD,
        optimizer=OptimizerConfig(
            learning_rate=trained.learning_rate if learning_rate is None else learning_rate,
            beta1=trained.beta1,
            beta2=trained.beta2[form],
            weight_decay=weight_decay,
            decay_biases=not official,
            clip=OFFICIAL_CLIP if official else None,
        ),
        batch_size=trained.batch_size if batch_size is None else plain(batch_size),
        steps=trained.steps if steps is None else plain(steps),
        seed=plain(seed),
        precision=precision,
    )


def _count_latents(data: DataConfig, num_sources: int) -> int:
    if not num_sources:
        raise ValueError(
            f"{data.name} has no sources to count, so say how many latents, such as --num-latents 12 (num_latents=12)"
        )
    return LATENTS_PER_SOURCE * num_sources
