"""A custom objective: FactorVAE (Kim & Mnih 2018) in its simplest form, without editing the package.

qlae has the model as ``factor-vae``, with the published settings (``objectives/total_correlation.py``). Here a
discriminator learns to tell latents from latents whose dimensions are permuted independently across the batch. Its
logits estimate the total correlation of the latents, which the autoencoder descends with weight γ.

    python examples/own_objective.py          # train a small FactorVAE on rendered Shapes3D
    qlae train my-factor-vae --import examples/own_objective.py --size small --resolution 32
"""

import itertools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import qlae
from qlae.config import OptimizerConfig
from qlae.models import Model
from qlae.objectives import Objective, ObjectiveConfig, Player, Terms
from qlae.objectives.objective import latent_losses
from qlae.ops.cross_entropy import cross_entropy


@dataclass(frozen=True)
class FactorConfig(ObjectiveConfig):
    width: int = 1000  # of the discriminator's layers
    learning_rate: float = 1e-4  # of its optimizer


@qlae.OBJECTIVES.register("factor", FactorConfig)
class Factor(Objective):
    terms = ("reconstruct", "total_correlation")  # computed here; the latent space adds its own, "kl"

    def build_parts(self, model: Model) -> dict[str, nn.Module]:
        sizes = [model.latent.num_outputs, *[self.config.width] * 5]
        hidden = [m for a, b in itertools.pairwise(sizes) for m in (nn.Linear(a, b), nn.LeakyReLU(0.2))]
        return {"discriminator": nn.Sequential(*hidden, nn.Linear(self.config.width, 2))}

    def players(self, model: Model) -> list[Player]:
        discriminator = model.parts["discriminator"]
        weighting = self.weighting()

        def autoencoder_terms(images: Tensor, generator: torch.Generator | None, number: Tensor) -> Terms:
            output = model(images, generator)
            logits = discriminator(output.latent.z)
            num_entries = images[0].numel()  # nats per image, like the KL term
            return {
                "reconstruct": cross_entropy(output.logits, images),
                "total_correlation": (logits[:, 0] - logits[:, 1]).mean() / num_entries,
                **latent_losses(model, output.latent.losses, num_entries),
            }

        def discriminator_loss(images: Tensor, generator: torch.Generator | None, number: Tensor) -> Terms:
            with torch.no_grad():
                z = model(images, generator).latent.z
                order = torch.rand(z.shape, generator=generator, device=z.device).argsort(0)
            logits = discriminator(torch.cat((z, z.gather(0, order))))  # latents, then permuted ones
            labels = torch.arange(2, device=z.device).repeat_interleave(len(z))
            return {"loss": F.cross_entropy(logits, labels)}

        adam = OptimizerConfig(learning_rate=self.config.learning_rate, beta1=0.5, beta2=0.9)
        networks, loss = (model.encoder, model.decoder), weighting.loss(autoencoder_terms)
        return [
            Player("vae", networks, (model.latent,), loss, weighting.names, uses_weights_once=True),
            Player("discriminator", (), (discriminator,), discriminator_loss, ("loss",), optimizer=adam),
        ]


FACTOR_VAE = qlae.register_model(
    qlae.ModelSpec(
        "my-factor-vae",
        latent="gaussian",
        objective="factor",
        weights={"reconstruct": 1.0, "kl": 1.0, "total_correlation": 10.0},
        tuned="total_correlation",
        grid=(1.0, 10.0, 30.0),
    )
)


def main(out: str = "runs/my-factor-vae", steps: int = 7_000) -> qlae.Run:
    data = qlae.load_data("shapes3d", resolution=32)
    return qlae.train("my-factor-vae", data, out=out, size="small", steps=steps)


if __name__ == "__main__":
    print(main().results["averaged"]["infom"])
