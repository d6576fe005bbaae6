"""Train runs whose decoder is additive in the latents, as a source of runs that err differently from those of `qlae`.

    python benchmarks/additive.py runs/additive --data isaac3d --seeds 5
    python benchmarks/consensus.py keep runs/additive/isaac3d/s? --data isaac3d --model additive

The two dense layers before the styles are replaced by some hidden units per latent, so that the styles are sums of
functions of single latents. ``docs/consensus.md`` reads the figures.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import qlae
from qlae.models.networks import NetworksConfig, StyleDecoder
from qlae.models.networks.paper import FORMS, SIZES, StyleLayer

HIDDEN = 16


class AdditiveDecoder(StyleDecoder):
    """The paper's decoder, with styles that are sums of functions of single latents."""

    def __init__(self, resolution: tuple[int, int], num_inputs: int, *, channels: int, size: Any, form: Any):
        super().__init__(resolution, num_inputs, channels=channels, size=size, form=form)
        del self.dense1, self.dense2
        self.slopes = nn.Parameter(torch.randn(num_inputs, HIDDEN))
        self.offsets = nn.Parameter(torch.randn(num_inputs, HIDDEN))
        for layer in self.layers:
            assert isinstance(layer, StyleLayer)
            layer.style = nn.Linear(num_inputs * HIDDEN, layer.style.out_features)

    def forward(self, z: Tensor) -> Tensor:
        hidden = F.relu(z[:, :, None] * self.slopes + self.offsets)
        return self._logits(self._styled(self.start, hidden.flatten(1), slice(None)))


@dataclass(frozen=True)
class AdditiveConfig(NetworksConfig):
    """The networks' size and form, as for the paper's."""


@qlae.NETWORKS.register("additive", AdditiveConfig)
class AdditiveNetworks:
    """The paper's encoder, and an additive decoder."""

    @staticmethod
    def from_config(config: Any, observations: Any, latent: Any) -> tuple[None, AdditiveDecoder]:
        height, width, channels = observations.shape
        size, form = SIZES[config.size], FORMS[config.form]
        return None, AdditiveDecoder((height, width), latent.num_outputs, channels=channels, size=size, form=form)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", nargs="+", default=["isaac3d", "mpi3d"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=7000)
    arguments = parser.parse_args()
    for name in arguments.data:
        data = qlae.load_data(name, resolution=32)
        for seed in range(arguments.seeds):
            run = qlae.train(
                "qlae",
                data,
                out=arguments.out / name / f"s{seed}",
                networks="additive",
                size="small",
                seed=seed,
                steps=arguments.steps,
            )
            scores = run.results["averaged"]
            print(name, seed, *(f"{key} {scores[key]:.3f}" for key in ("infom", "infoe", "infoc", "psnr")), flush=True)


if __name__ == "__main__":
    main()
