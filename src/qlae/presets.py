"""Every constant of the paper, once, each citing its table; and the way from a few names to a whole config.

Tables are those of the paper's appendix "Hyperparameters". ``paper`` follows its text, ``official`` the authors' code
where the two differ. The tuned values are the ones the authors settled on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .config import DataConfig, LatentConfig, NetworkConfig, OptimizerConfig, RunConfig
from .names import require_known

# Table "Fixed latent quantization hyperparameters".
NUM_VALUES = 10
QUANTIZED = {"reconstruct": 1.0, "quantize": 0.01, "commit": 0.01}

# Table "Fixed hyperparameters for all autoencoder variants".
LATENTS_PER_SOURCE = 2
LEARNING_RATE = 1e-3
BETA1 = 0.9
BETA2 = {"paper": 0.99, "official": 0.999}
STEPS = 200_000
BATCH_SIZE = 128
RECONSTRUCTED = {"reconstruct": 1.0}

FORMS = ("paper", "official")
OFFICIAL_CLIP = 1.0  # elementwise, on decayed parameters


@dataclass(frozen=True)
class SizePreset:
    """A network size and the training that suits it."""

    learning_rate: float
    batch_size: int
    steps: int
    num_values: int
    weight_decay_factor: float  # on the tuned weight decay, which was tuned for the full size


SIZES = {
    "full": SizePreset(LEARNING_RATE, BATCH_SIZE, STEPS, NUM_VALUES, weight_decay_factor=1.0),
    # Ours, a CPU's share, found by a search at 32×32. Four values instead of ten matter most: small networks organise
    # 4^12 codes in a few thousand updates, 10^12 in several times as many.
    "small": SizePreset(2e-3, 64, 8_000, num_values=4, weight_decay_factor=3.0),
}


@dataclass(frozen=True)
class ModelPreset:
    """A row of the paper's tables: a latent space, loss weights and a weight decay."""

    latent: str
    weights: Mapping[str, float]
    weight_decay: float
    weight_decay_on: Mapping[str, float] = field(default_factory=dict)  # data sets that take another value
    tuned: str = "weight_decay"  # the one hyperparameter that the paper tunes: this or a loss weight
    tuned_on: Mapping[str, float] = field(default_factory=dict)  # its value on data sets, where it is a loss weight
    shared: bool = False
    decomposed: bool = False

    def weight_decay_for(self, data: str) -> float:
        return self.weight_decay_on.get(data, self.weight_decay)

    def weights_for(self, data: str) -> dict[str, float]:
        return dict(self.weights) | ({self.tuned: self.tuned_on[data]} if data in self.tuned_on else {})


# Table "Key regularization hyperparameter tuning", at the values the authors settled on.
MODELS: dict[str, ModelPreset] = {
    "ae": ModelPreset("continuous", RECONSTRUCTED, weight_decay=0.001),
    "beta-vae": ModelPreset(
        "gaussian",
        {"reconstruct": 1.0, "kl": 1.0},
        weight_decay=0.0,
        tuned="kl",
        tuned_on={"shapes3d": 3.0, "mpi3d": 0.1, "falcor3d": 10.0, "isaac3d": 0.3},
    ),
    "beta-tcvae": ModelPreset(
        "gaussian",
        {"reconstruct": 1.0, "mutual_information": 1.0, "total_correlation": 1.0, "dimension_kl": 1.0},
        weight_decay=0.0,
        tuned="total_correlation",
        tuned_on={"shapes3d": 3.0, "mpi3d": 0.3, "falcor3d": 3.0, "isaac3d": 1.0},
        decomposed=True,
    ),
    "bioae": ModelPreset(
        "continuous",
        {"reconstruct": 1.0, "nonnegative": 1.0, "activity": 0.01},
        weight_decay=0.0,
        tuned="activity",
        tuned_on={"isaac3d": 0.1},
    ),
    "qlae": ModelPreset("quantized", QUANTIZED, weight_decay=0.1, weight_decay_on={"mpi3d": 0.001}),
    "qlae-global-codebook": ModelPreset(
        "quantized", QUANTIZED, weight_decay=0.1, weight_decay_on={"mpi3d": 0.001}, shared=True
    ),
    "qlae-no-weight-decay": ModelPreset("quantized", QUANTIZED, weight_decay=0.0),
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
    num_latents: int | None = None,
    num_values: int | None = None,
    seed: int = 0,
) -> RunConfig:
    """The whole config behind a model's name; what is not given is the paper's.

    Args:
        model: a key of ``MODELS``.
        data: the images; their name decides the tuned weight decay.
        num_sources: n_s of the data, from which the number of latents follows.
        form: ``"paper"`` or ``"official"``.
        size: ``"full"`` or ``"small"``.
    """
    preset = MODELS[require_known(model, MODELS, "model")]
    require_known(form, FORMS, "form")
    trained = SIZES[require_known(size, SIZES, "size")]
    if num_latents is None:
        if not num_sources:
            raise ValueError(
                f"{data.name} has no sources to count, so say how many latents: num_latents=12, for example"
            )
        num_latents = LATENTS_PER_SOURCE * num_sources
    if weight_decay is None:
        weight_decay = trained.weight_decay_factor * preset.weight_decay_for(data.name)
    official = form == "official"
    return RunConfig(
        model=model,
        data=data,
        network=NetworkConfig(size=size, form=form),
        latent=LatentConfig(
            kind=preset.latent,
            num_latents=num_latents,
            num_values=trained.num_values if num_values is None else num_values,
            shared=preset.shared,
            reduction="mean" if official else "sum",
            decomposed=preset.decomposed,
        ),
        weights=preset.weights_for(data.name),
        optimizer=OptimizerConfig(
            learning_rate=trained.learning_rate if learning_rate is None else learning_rate,
            beta1=BETA1,
            beta2=BETA2[form],
            weight_decay=weight_decay,
            decay_biases=not official,
            clip=OFFICIAL_CLIP if official else None,
        ),
        batch_size=trained.batch_size if batch_size is None else batch_size,
        steps=trained.steps if steps is None else steps,
        seed=seed,
    )
