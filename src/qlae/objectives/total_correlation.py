"""Total correlation by a discriminator: the objective of FactorVAE and FactorQVAE.

Papers: Kim and Mnih, "Disentangling by Factorising" (2018, arXiv:1802.05983); Baykal, Kandemir and Unal,
"Disentanglement with Factor Quantized Variational Autoencoders" (2024; code: ituvisionlab/FactorQVAE). A discriminator
D learns to tell latents of images from latents whose dimensions are permuted independently across a batch. Its logits
estimate the density ratio of q(z) and Π_k q(z_k), so the total correlation is

    total_correlation = mean over z of  D_0(z) − D_1(z),

and the autoencoder descends  reconstruct + β · kl + γ · total_correlation, with the latent space's own ``kl``.

An update draws one batch of twice the published size. Its first half trains the autoencoder and gives the
discriminator its latents; the second half is permuted (the two batches of Algorithm 2 of Kim and Mnih). The autoencoder
moves first, the discriminator second.

- ``factor-vae``: a Gaussian latent space, β = 1, γ = 7 (that of the paper's figures for 3D Shapes; the paper has none
  of our other sets), 64 + 64 images, Adam 1e-4 (0.9, 0.999), 500,000 updates; the discriminator has six layers of 1,000
  units, leaky ReLU 0.2, and Adam 1e-4 (0.5, 0.9).
- ``factor-qvae``: one codebook of 64 scalars, relaxed (``models/latents/relaxed.py``). The discriminator sees the
  weights of the values instead of the latents, has five layers, and shares the autoencoder's optimizer settings, Adam
  1e-3 with a cosine decay to 1.25e-6. The reconstruction is a squared error, and nothing is divided by the number of
  pixels. The authors' 100,000 steps count those of two optimizers: 50,000 updates of 256 + 256 images. γ and β are
  those of the authors' configurations; there is none for Falcor3D, which takes those of Shapes3D.

Deviations:

- Networks are those of the paper of this package, also for FactorQVAE, whose own are larger (those of DALL·E's dVAE)
  and have no sigmoid.
- The discriminator sees latents of the encoder after its update, with fresh noise, instead of those that the
  autoencoder was trained on. Its layers are initialised as PyTorch does by default.
- The posterior's deviation is a softplus instead of the exponential of a half.
- Terms in nats per image are divided by the number of image entries, as the reconstruction is (``divided``).
"""

import itertools
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._checks import require_known, whole_number
from ..config import ObjectiveConfig, OptimizerConfig
from ..models.model import Model, run_in_own_precision
from ..registry import OBJECTIVES
from .autoencoding import autoencoder_player
from .objective import L1, Objective, Player, Terms, latent_losses

SLOPE = 0.2  # of the discriminator's leaky ReLU
RECONSTRUCTIONS = ("cross_entropy", "squared_error")


@dataclass(frozen=True)
class TotalCorrelationConfig(ObjectiveConfig):
    """The settings of ``TotalCorrelation``.

    Attributes:
        width: of the discriminator's layers.
        num_layers: of the discriminator, before the one that returns two logits.
        discriminator: its optimizer; None for that of the autoencoder, with its schedule.
        reconstruction: ``"cross_entropy"`` or ``"squared_error"``, averaged over pixels and channels.
        divided: whether the total correlation, in nats per image, is divided by the number of image entries.
    """

    width: int = 1000
    num_layers: int = 6
    discriminator: OptimizerConfig | None = field(
        default_factory=lambda: OptimizerConfig(learning_rate=1e-4, beta1=0.5, beta2=0.9)
    )
    reconstruction: str = "cross_entropy"
    divided: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("width", self.width)
        whole_number("num_layers", self.num_layers)
        require_known(self.reconstruction, RECONSTRUCTIONS, "reconstruction")


@OBJECTIVES.register("total-correlation", TotalCorrelationConfig)
class TotalCorrelation(Objective):
    """Reconstruction, the latent space's terms, and the total correlation that a discriminator estimates."""

    terms = ("reconstruct", "total_correlation")
    optional_terms = (L1,)

    def build_parts(self, model: Model) -> dict[str, nn.Module]:
        """Return the discriminator: dense layers with leaky ReLUs, and two logits."""
        if not self._has_discriminator:
            return {}
        in_width = model.latent.num_latents * model.latent.num_features
        widths = [in_width, *[self.config.width] * self.config.num_layers]
        hidden = [m for a, b in itertools.pairwise(widths) for m in (nn.Linear(a, b), nn.LeakyReLU(SLOPE))]
        return {"discriminator": nn.Sequential(*hidden, nn.Linear(widths[-1], 2))}

    @property
    def _has_discriminator(self) -> bool:
        return "total_correlation" in self.config.weights

    def players(self, model: Model) -> list[Player]:
        """Return the autoencoder, and against it the discriminator, unless the total correlation has no weight."""
        game = Factorisation(model, self.config)
        autoencoder = autoencoder_player(model, self.weighting(), game.autoencoder_terms)
        if not self._has_discriminator:
            return [autoencoder]
        discriminator = Player(
            name="discriminator",
            decayed=(),
            undecayed=(model.parts["discriminator"],),
            loss=game.discriminator_terms,
            terms=("loss",),
            optimizer=self.config.discriminator,
        )
        return [autoencoder, discriminator]


class Factorisation:
    """The loss terms of both players."""

    def __init__(self, model: Model, config: TotalCorrelationConfig):
        self.model, self.config = model, config
        self.discriminator: Any = dict(model.parts.items()).get("discriminator")

    def autoencoder_terms(self, images: Tensor, generator: torch.Generator | None, number: Tensor) -> Terms:
        """Return the unweighted terms of the autoencoder on the first half of a batch (b, 3, r, r)."""
        images = images[: _half(images)]
        x = run_in_own_precision(self.model.encoder, images)
        latent, features = self.model.latent.with_features(x, generator, number)
        logits = run_in_own_precision(self.model.decoder, latent.z)
        num_entries = self.model.form.num_terms
        terms = latent_losses(self.model, latent.losses, num_entries)
        if self.discriminator is not None:
            guesses = self.discriminator(features.flatten(1))
            difference = (guesses[:, 0] - guesses[:, 1]).mean()
            terms["total_correlation"] = difference / num_entries if self.config.divided else difference
        return {"reconstruct": self._reconstruction(logits, images), **terms}

    def discriminator_terms(self, images: Tensor, generator: torch.Generator | None, number: Tensor) -> Terms:
        """Return the cross entropy of the guesses on both halves of a batch (b, 3, r, r)."""
        half = _half(images)
        with torch.no_grad():
            x = run_in_own_precision(self.model.encoder, images)
            _, features = self.model.latent.with_features(x, generator, number)
            rows = torch.cat((features[:half], permuted(features[half:], generator))).flatten(1)
        guesses = self.discriminator(rows)
        labels = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
        labels[half:] = 1
        errors = F.cross_entropy(guesses, labels, reduction="none")
        return {"loss": (errors[:half].mean() + errors[half:].mean()) / 2}

    def _reconstruction(self, logits: Tensor, images: Tensor) -> Tensor:
        if self.config.reconstruction == "cross_entropy":
            return self.model.form.error(logits, images)
        return F.mse_loss(self.model.form.to_mean(logits), images)


def permuted(features: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Return features (b, num_latents, k) whose rows are permuted, for each latent by itself."""
    keys = torch.rand(features.shape[:2], generator=generator, device=features.device)
    order = keys.argsort(dim=0, stable=True)
    return features.gather(0, order.unsqueeze(-1).expand_as(features))


def _half(images: Tensor) -> int:
    """Return the number of images that train the autoencoder; the others are for the discriminator."""
    if len(images) < 2:
        raise ValueError("a discriminator needs two halves of a batch, so batch_size must be at least 2, got 1")
    return (len(images) + 1) // 2
