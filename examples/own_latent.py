"""A custom latent space: QLAE whose codes are chosen at random while it trains.

Each entry of the encoder's output is assigned to one of the codebook's values with a probability that falls with the
distance (a softmax with a temperature), and to the nearest value in evaluation. The gradient passes straight through.

    python examples/own_latent.py             # train it on rendered Shapes3D
    qlae train stochastic-qlae --import examples/own_latent.py --size small --resolution 32
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import qlae
from qlae.models.latents import DiscreteLatent, DiscreteLatentConfig, LatentOutput
from qlae.ops.quantization import look_up, quantization_terms


@dataclass(frozen=True)
class StochasticConfig(DiscreteLatentConfig):
    temperature: float = 0.01


@qlae.LATENTS.register("stochastic", StochasticConfig)
class StochasticLatent(DiscreteLatent):
    def __init__(self, num_latents: int, num_values: int | Sequence[int] = 10, temperature: float = 0.01):
        super().__init__((num_values,) * num_latents if isinstance(num_values, int) else tuple(num_values))
        self.num_latents = self.num_inputs = self.num_outputs = num_latents
        self.temperature = temperature
        self.values = nn.Parameter(torch.linspace(-0.5, 0.5, max(self.num_values)).repeat(num_latents, 1))

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> LatentOutput:
        self.require_inputs(x)
        logits = -self._distances(x) / self.temperature
        if self.training:
            noise = torch.rand(logits.shape, generator=generator, device=x.device)
            logits = logits - (-noise.clamp(min=1e-9).log()).log()  # the Gumbel trick: argmax is then a sample
        codes = logits.argmax(-1)
        z, quantize, commit = quantization_terms(x, self.look_up(codes), "sum")
        return LatentOutput(z, codes, {"quantize": quantize, "commit": commit})

    def to_codes(self, x: Tensor) -> Tensor:
        return self._distances(x).argmin(-1)

    def look_up(self, codes: Tensor) -> Tensor:
        return look_up(self.values, codes)

    def _distances(self, x: Tensor) -> Tensor:
        distances = (x.detach().unsqueeze(-1) - self.values.detach()).square()
        return distances.masked_fill(torch.arange(self.values.shape[1], device=x.device) >= self.sizes[:, None], 1e9)


STOCHASTIC_QLAE = qlae.register_model(
    qlae.ModelSpec(
        "stochastic-qlae",
        latent="stochastic",
        weights={"reconstruct": 1.0, "quantize": 0.01, "commit": 0.01},
        weight_decay=0.1,
    )
)


def main(out: str = "runs/stochastic-qlae", steps: int = 7_000) -> qlae.Run:
    data = qlae.load_data("shapes3d", resolution=32)
    return qlae.train(STOCHASTIC_QLAE, data, out=out, size="small", steps=steps)


if __name__ == "__main__":
    print(main().results["averaged"]["infom"])
