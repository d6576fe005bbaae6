"""Bring your own encoder and decoder: any two modules of the right sizes take the place of the paper's.

Run it with ``python examples/own_networks.py``; half a minute on a CPU.
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn

import qlae

NUM_LATENTS = 6
RESOLUTION = 16
WIDTH = 128


class Encoder(nn.Module):
    """Images (b, 3, 16, 16) → (b, 6). ``features`` and ``head`` are only needed where a GAN is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(3 * RESOLUTION**2, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU())
        self.head = nn.Linear(WIDTH, NUM_LATENTS)

    def features(self, images: Tensor) -> Tensor:
        features: Tensor = self.body(images)
        return features

    def forward(self, images: Tensor) -> Tensor:
        latents: Tensor = self.head(self.features(images))
        return latents


class Decoder(nn.Module):
    """Latents (b, 6) → logits (b, 3, 16, 16), of which the sigmoid is the image."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(NUM_LATENTS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 3 * RESOLUTION**2))

    def forward(self, latents: Tensor) -> Tensor:
        logits: Tensor = self.body(latents)
        return logits.unflatten(1, (3, RESOLUTION, RESOLUTION))


def main(out: Path, steps: int) -> float:
    """Train, load and use a QLAE over these networks; its InfoM."""
    torch.manual_seed(0)  # the initial weights of your modules are yours to seed
    networks = (Encoder(), Decoder())
    data = qlae.load_data("shapes3d", resolution=RESOLUTION, sources=["floor hue", "wall hue", "shape"])
    run = qlae.train("qlae", data, out=out, networks=networks, size="small", steps=steps, num_latents=NUM_LATENTS)
    model = qlae.load(run.path, networks=networks)
    codes = model.encode(data.images[:4])
    print(codes)
    return float(run.results["averaged"]["infom"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/own_networks"))
    parser.add_argument("--steps", type=int, default=2000)
    arguments = parser.parse_args()
    print(f"InfoM {main(arguments.out, arguments.steps):.2f}")
