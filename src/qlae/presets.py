"""All constants of the paper, each with its table, the models, and recipes. ``resolving.py`` makes a config of them.

Tables are those of the paper's appendix "Hyperparameters". ``paper`` follows its text, ``official`` the authors' code
where the two differ. The tuned values are the ones the authors settled on.

Models that are not in the paper come after its own, with ``published`` false: an autoencoder with a fixed grid, Tripod,
FactorVAE, FactorQVAE, and AE + ICA. The files of their objectives and latent spaces say where the constants come from.

``MODELS`` is open: ``register_model`` adds a model, and ``qlae.train`` also takes a ``ModelSpec`` that is not in it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ._checks import require_known
from .config import OptimizerConfig

FORMS = ("paper", "official")
OFFICIAL_CLIP = 1.0  # elementwise, on decayed parameters
LATENTS_PER_SOURCE = 2  # Tables "Fixed hyperparameters", of both objectives
PAPER_NETWORKS = "paper"  # of a specification that names none; other kinds of observations have their own

# Table "Fixed latent quantization hyperparameters".
QUANTIZED = {"quantize": 0.01, "commit": 0.01}
# VQ-VAE keeps its own weights (Section "Negative results") and a global codebook of 512 vectors of size 64.
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
    """How an objective is optimised at a size of the networks.

    Attributes:
        beta2: by form.
        num_values: values per codebook, for latent spaces that have codebooks of scalars.
        weight_decay_factor: on the tuned weight decay, which was tuned for the full size.
        clip: elementwise bound on gradients also in the form ``paper``; None for none.
        decay_share: of a run, over which a learning rate decays if nothing else is asked for.
        objective_options, latent_options: settings of the objective and of the latent space at this size.
    """

    learning_rate: float
    beta1: float
    beta2: Mapping[str, float]
    batch_size: int
    steps: int
    num_values: int
    weight_decay_factor: float = 1.0
    clip: float | None = None
    decay_share: float = 0.5
    objective_options: Mapping[str, Any] = field(default_factory=dict)
    latent_options: Mapping[str, Any] = field(default_factory=dict)


# The same two tables, and of the first (Table "Fixed latent quantization hyperparameters") the number of values.
_FULL_AE = TrainingPreset(1e-3, 0.9, {"paper": 0.99, "official": 0.999}, 128, 200_000, num_values=10)
_FULL_GAN = TrainingPreset(2e-4, 0.0, {"paper": 0.9, "official": 0.9}, 64, 200_000, num_values=10)
# Ours, for a CPU, found by a search at 32×32. Four values instead of ten matter most: small networks organise 4^12
# codes in a few thousand updates, 10^12 in several times as many.
_SMALL_AE = replace(_FULL_AE, learning_rate=2e-3, batch_size=64, steps=7_000, num_values=4, weight_decay_factor=3.0)
_SMALL_GAN = replace(_FULL_GAN, steps=8_000, num_values=4)

# Of the models that came after (objectives/tripod.py, objectives/total_correlation.py). Their small ones are ours.
_ADAM_BETA2 = {"paper": 0.999, "official": 0.999}
_FULL_TRIPOD = TrainingPreset(2e-4, 0.9, _ADAM_BETA2, 64, 250_000, num_values=12, clip=1.0)
_SMALL_TRIPOD = replace(_FULL_TRIPOD, learning_rate=1e-3, steps=7_000, num_values=4)
_FULL_FACTOR_VAE = TrainingPreset(1e-4, 0.9, _ADAM_BETA2, 128, 500_000, num_values=10)
_FULL_FACTOR_QVAE = TrainingPreset(
    1e-3, 0.9, _ADAM_BETA2, 512, 50_000, num_values=64, decay_share=1.0, objective_options={"num_layers": 5}
)
_SMALL_DISCRIMINATOR = {"width": 256, "num_layers": 4}
# The discriminator learns as fast as the autoencoder, as in the paper.
_SMALL_FACTOR_VAE = replace(
    _FULL_FACTOR_VAE,
    learning_rate=2e-3,
    steps=7_000,
    objective_options=_SMALL_DISCRIMINATOR | {"discriminator": OptimizerConfig(2e-3, beta1=0.5, beta2=0.9)},
)
# The temperature falls to 1/e over the run, as in 50,000 updates of the full size.
_SMALL_FACTOR_QVAE = replace(
    _FULL_FACTOR_QVAE,
    learning_rate=2e-3,
    batch_size=128,
    steps=7_000,
    objective_options=_SMALL_DISCRIMINATOR,
    latent_options={"temperature_decay": 1 / 7_000},
)

_NAMES = ("autoencoding", "adversarial", "tripod", "factor-vae", "factor-qvae")
_FULL = (_FULL_AE, _FULL_GAN, _FULL_TRIPOD, _FULL_FACTOR_VAE, _FULL_FACTOR_QVAE)
_SMALL = (_SMALL_AE, _SMALL_GAN, _SMALL_TRIPOD, _SMALL_FACTOR_VAE, _SMALL_FACTOR_QVAE)
#: size → name → how a model is optimised. The name is the kind of the objective unless the model names another; kinds
#: that are not listed are optimised like autoencoders.
SIZES: dict[str, dict[str, TrainingPreset]] = {
    "full": dict(zip(_NAMES, _FULL, strict=True)),
    "small": dict(zip(_NAMES, _SMALL, strict=True)),
}


# Recipes: how long a model is trained, how its learning rate falls, and how its codes are kept short. ``paper`` is the
# paper's: 200,000 updates at a constant learning rate. ``fast`` is ours: 60,000 updates, in the second half of which
# the learning rate falls to 0, and a penalty on the entropy of codes (``objectives/code_penalties.py``), which rises at
# the start of the run and falls to a quarter at its end. Models that cannot compute the penalty, or have a schedule of
# their own, go without. ``docs/recipe.md`` lists the recipe of each model, the experiments and their results.

ShareCurve = tuple[tuple[float, float], ...]  # (share of the run, factor)


@dataclass(frozen=True)
class Recipe:
    """Defaults of the training instead of those of the preset.

    Attributes:
        steps: number of updates by size of the networks; sizes that are missing keep the preset's.
        schedule: of the learning rate.
        weights: of optional loss terms, for models that can compute them.
        weight_schedules: factors on these weights, by share of the run.
    """

    steps: Mapping[str, int] = field(default_factory=dict)
    schedule: str = "constant"
    weights: Mapping[str, float] = field(default_factory=dict)
    weight_schedules: Mapping[str, ShareCurve] = field(default_factory=dict)


RECIPES: dict[str, Recipe] = {
    "paper": Recipe(),
    "fast": Recipe(
        steps={"full": 60_000},
        schedule="linear",
        weights={"entropy": 0.02},
        weight_schedules={"entropy": ((0.0, 0.0), (0.06, 0.0), (0.3, 1.0), (0.6, 1.0), (0.9, 0.25))},
    ),
}


def training_preset(size: str, name: str) -> TrainingPreset:
    """Return how a model is optimised at a size of the networks, by the name of its preset."""
    presets = SIZES[require_known(size, SIZES, "size")]
    return presets.get(name, presets["autoencoding"])


MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


@dataclass(frozen=True)
class ModelSpec:
    """A model before its data set is known: a latent space, an objective with weights, and the tuned hyperparameter.

    Attributes:
        name: of the model, in results and on the command line.
        latent: kind of the latent space (``registry.LATENTS``).
        objective: kind of the objective (``registry.OBJECTIVES``).
        networks: kind of the network pair (``registry.NETWORKS``); the default stands for the pair of qlae that suits
            the observations, the paper's for images.
        weights: of the loss terms, those of the objective and those of the latent space.
        weights_on: other weights of single terms, by data set.
        latent_options, objective_options, networks_options: settings of the three parts, fields of their configs.
        training: defaults of training options, such as ``{"learning_rate": 1e-4}``, instead of the paper's.
        weight_decay: where ``weight_decay_on`` does not name the data set.
        weight_decay_on: data sets that take another value.
        official_weight_decay: the value of the form ``official`` on all data sets; None for that of the paper.
        tuned: the one hyperparameter that studies tune, ``"weight_decay"`` or a loss weight.
        grid: the values that studies try for it; empty where nothing is tuned.
        published: whether the model is a row of the paper's tables.
        preset: the entry of ``SIZES`` that says how the model is optimised; that of its objective if not set.
    """

    name: str
    latent: str
    weights: Mapping[str, float]
    objective: str = "autoencoding"
    networks: str = PAPER_NETWORKS
    latent_options: Mapping[str, Any] = field(default_factory=dict)
    objective_options: Mapping[str, Any] = field(default_factory=dict)
    networks_options: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    weight_decay: float = 0.0
    weight_decay_on: Mapping[str, float] = field(default_factory=dict)
    official_weight_decay: float | None = None
    tuned: str = "weight_decay"
    grid: tuple[float, ...] = ()
    published: bool = False
    weights_on: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    preset: str | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and MODEL_NAME.fullmatch(self.name)):
            raise ValueError(
                f"the name of a model consists of letters, digits, '.', '_', '+' and '-', since folders carry it; got "
                f"{self.name!r}"
            )
        if self.tuned != "weight_decay":
            require_known(self.tuned, ["weight_decay", *self.weights], f"hyperparameter that {self.name} tunes")
        for data, weights in self.weights_on.items():
            for name in weights:
                require_known(name, self.weights, f"loss term of {self.name} on {data}")

    def training_preset(self, size: str) -> TrainingPreset:
        """Return how the model is optimised at a size of the networks."""
        return training_preset(size, self.preset or self.objective)

    def weights_for(self, data: str) -> dict[str, float]:
        """Return the weights of the loss terms for a data set."""
        return dict(self.weights) | dict(self.weights_on.get(data, {}))


# Table "Key regularization hyperparameter tuning": the grids; and the values the authors settled on. The values of the
# InfoWGAN-GP without quantization are not published, nor are all of VQ-VAE's: those of the authors' configurations.
_BETAS = (0.1, 0.3, 1.0, 3.0, 10.0)
_DECAYS = (0.001, 0.01, 0.1, 1.0)
_GAN_DECAYS = (0.0001, 0.001, 0.01, 0.1)
_BY_DATA: dict[str, Any] = {"weight_decay": 0.1, "weight_decay_on": {"mpi3d": 0.001}, "grid": _DECAYS}
_UNTUNED: dict[str, Any] = {"weight_decay": 0.0, "weight_decay_on": {}, "grid": ()}

_QLAE = ModelSpec("qlae", "quantized", AUTOENCODING | QUANTIZED, published=True, **_BY_DATA)
_VQ_VAE = ModelSpec(
    "vq-vae",
    "vector-quantized",
    AUTOENCODING | VECTOR_QUANTIZED,
    latent_options={"num_values": NUM_VECTORS, "vector_size": VECTOR_SIZE},
    published=True,
)
_INFOGAN = ModelSpec(
    "infowgan-gp",
    "uniform",
    ADVERSARIAL,
    objective="adversarial",
    objective_options={"generator_period": GENERATOR_PERIOD},
    weight_decay=0.0001,
    grid=_GAN_DECAYS,
    published=True,
)
_QLGAN = replace(
    _INFOGAN,
    name="qlinfowgan-gp",
    latent="quantized",
    weights=ADVERSARIAL | QUANTIZED,
    weight_decay=0.001,
    weight_decay_on={"falcor3d": 0.0001},
)

_AE = ModelSpec("ae", "continuous", AUTOENCODING, weight_decay=0.001, grid=(0.0, 0.001, 0.01, 0.1), published=True)
# The authors' configurations (kylehkhsu/tripod). On other sets, those of Shapes3D.
_TRIPOD = ModelSpec(
    "tripod",
    "finite-scalar",
    AUTOENCODING | {"multi_information": 1e-4, "hessian": 1e-2},
    weights_on={
        "mpi3d": {"multi_information": 1e-8, "hessian": 1e-4},
        "falcor3d": {"multi_information": 1e-10, "hessian": 1e-2},
        "isaac3d": {"multi_information": 1e-4, "hessian": 1e-8},
    },
    objective="tripod",
    networks="tripod",
    latent_options={"low": -1.0, "high": 1.0},
)
# Kim and Mnih have γ = 7 on 3D Shapes; the other values are those that Locatello et al. (2019) tried.
_FACTOR_VAE = ModelSpec(
    "factor-vae",
    "gaussian",
    AUTOENCODING | {"kl": 1.0, "total_correlation": 7.0},
    objective="total-correlation",
    tuned="total_correlation",
    grid=(7.0, 10.0, 20.0, 30.0, 40.0, 50.0, 100.0),
    preset="factor-vae",
)
# The authors' configurations (ituvisionlab/FactorQVAE); they have no Falcor3D, and of MPI3D another version.
_FACTOR_QVAE = ModelSpec(
    "factor-qvae",
    "relaxed",
    AUTOENCODING | {"kl": 1e-3, "total_correlation": 1e-4},
    weights_on={
        "mpi3d": {"kl": 5e-5, "total_correlation": 1e-6},
        "isaac3d": {"kl": 5e-5, "total_correlation": 5e-5},
    },
    objective="total-correlation",
    latent_options={"num_values": 64},
    objective_options={"discriminator": None, "reconstruction": "squared_error", "divided": False},
    training={"schedule": "cosine", "floor": 0.00125},
    preset="factor-qvae",
)


def _each(term: str, **weights: float) -> dict[str, dict[str, float]]:
    """Return the weights of a term by data set."""
    return {data: {term: weight} for data, weight in weights.items()}


MODELS: dict[str, ModelSpec] = {
    spec.name: spec
    for spec in (
        _AE,
        ModelSpec(
            "beta-vae",
            "gaussian",
            AUTOENCODING | {"kl": 1.0},
            tuned="kl",
            weights_on=_each("kl", shapes3d=3.0, mpi3d=0.1, falcor3d=10.0, isaac3d=0.3),
            grid=_BETAS,
            published=True,
        ),
        ModelSpec(
            "beta-tcvae",
            "gaussian",
            AUTOENCODING | {"mutual_information": 1.0, "total_correlation": 1.0, "dimension_kl": 1.0},
            latent_options={"decomposed": True},
            tuned="total_correlation",
            weights_on=_each("total_correlation", shapes3d=3.0, mpi3d=0.3, falcor3d=3.0, isaac3d=1.0),
            grid=_BETAS,
            published=True,
        ),
        ModelSpec(
            "bioae",
            "continuous",
            AUTOENCODING | {"nonnegative": 1.0, "activity": 0.01},
            official_weight_decay=0.0001,
            tuned="activity",
            weights_on=_each("activity", isaac3d=0.1),
            grid=(0.01, 0.1, 1.0, 10.0, 100.0),
            published=True,
        ),
        _VQ_VAE,
        _QLAE,
        replace(_QLAE, name="qlae-global-codebook", latent_options={"shared": True}),
        replace(_QLAE, name="qlae-no-weight-decay", **_UNTUNED),
        replace(_VQ_VAE, name="vq-vae-weight-decay", weight_decay=0.01, grid=_DECAYS),
        _INFOGAN,
        _QLGAN,
        replace(_QLGAN, name="qlinfowgan-gp-no-weight-decay", **_UNTUNED),
        # Not in the paper: QLAE with a fixed grid (finite scalar quantization) in place of its codebooks.
        ModelSpec("fsq-ae", "finite-scalar", AUTOENCODING, **_BY_DATA),
        # What came after the paper.
        _TRIPOD,
        _FACTOR_VAE,
        _FACTOR_QVAE,
        replace(_AE, name="ae-ica", latent="independent-components", published=False),
    )
}


def register_model(spec: ModelSpec) -> ModelSpec:
    """Add a model to ``MODELS``, so that its name can be used wherever the names of the paper's models can.

    Raises:
        ValueError: if another model has that name.
    """
    if not isinstance(spec, ModelSpec):
        raise ValueError(f"register_model takes a qlae.ModelSpec, got {type(spec).__name__}")
    if MODELS.get(spec.name, spec) != spec:
        raise ValueError(f"there is a model {spec.name!r} already; give yours another name")
    MODELS[spec.name] = spec
    return spec


def find_model(model: str | ModelSpec) -> ModelSpec:
    """Return the specification behind a name; a specification is returned as it is."""
    if isinstance(model, ModelSpec):
        return model
    return MODELS[require_known(model, MODELS, "model")]
