"""The quantized-latent autoencoder in plain PyTorch, as one would write it on a page.

It is what the package is timed against. Library modules throughout (``InstanceNorm2d``, ``ConvTranspose2d``,
``torch.optim.AdamW``), float32, one operation after the other.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SLOPE = 0.3
WIDTHS = (32, 64, 128, 256)
DENSE = 256


class PlainEncoderLayer(nn.Module):
    def __init__(self, in_width: int, width: int, kernel: int, stride: int):
        super().__init__()
        self.conv = nn.Conv2d(in_width, width, kernel, stride, (kernel - stride + 1) // 2)
        self.norm = nn.InstanceNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(F.leaky_relu(self.conv(x), SLOPE))


class PlainStyleLayer(nn.Module):
    def __init__(self, in_width: int, width: int, style_width: int, stride: int):
        super().__init__()
        self.conv = nn.ConvTranspose2d(in_width, width, 4 if stride == 2 else 3, stride, padding=1)
        self.norm = nn.InstanceNorm2d(width)
        self.style = nn.Linear(style_width, 2 * width)

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        scale, shift = self.style(w)[:, :, None, None].chunk(2, dim=1)
        return scale * self.norm(F.leaky_relu(self.conv(x), SLOPE)) + shift


class PlainQLAE(nn.Module):
    """Encoder, latent quantization and decoder of the paper's appendix at 64×64."""

    def __init__(self, num_latents: int = 12, num_values: int = 10):
        super().__init__()
        layers: list[nn.Module] = []
        in_width = 3
        for width in WIDTHS:
            for kernel, stride in ((3, 1), (3, 1), (4, 2)):
                layers.append(PlainEncoderLayer(in_width, width, kernel, stride))
                in_width = width
        self.encoder = nn.Sequential(
            *layers,
            nn.Flatten(),
            nn.Linear(16 * in_width, DENSE),
            nn.ReLU(),
            nn.Linear(DENSE, DENSE),
            nn.ReLU(),
            nn.Linear(DENSE, num_latents),
        )
        self.values = nn.Parameter(torch.linspace(-0.5, 0.5, num_values).repeat(num_latents, 1))
        self.dense_layers = nn.Sequential(nn.Linear(num_latents, DENSE), nn.ReLU(), nn.Linear(DENSE, DENSE), nn.ReLU())
        self.start = nn.Parameter(torch.full((1, WIDTHS[-1], 4, 4), 0.1))
        style_layers = []
        for width in reversed(WIDTHS):
            for stride in (1, 1, 2):
                style_layers.append(PlainStyleLayer(in_width, width, DENSE, stride))
                in_width = width
        self.style_layers = nn.ModuleList(style_layers)
        self.output = nn.Conv2d(in_width, 3, 1)

    def loss(self, images: Tensor) -> Tensor:
        x = self.encoder(images)
        codes = (x.detach()[:, :, None] - self.values.detach()).abs().argmin(-1)
        z = self.values.gather(1, codes.T).T
        quantize = (x.detach() - z).square().sum(1).mean()
        commit = (x - z.detach()).square().sum(1).mean()
        w = self.dense_layers(x + (z - x).detach())
        h = self.start.expand(len(images), -1, -1, -1)
        for layer in self.style_layers:
            h = layer(h, w)
        logits = self.output(h)
        return F.binary_cross_entropy_with_logits(logits, images) + 0.01 * quantize + 0.01 * commit


class PlainStep:
    """An update of a plain model: batch from memory, AdamW, average of the weights."""

    def __init__(self, model: PlainQLAE, images: Tensor, *, batch_size: int, learning_rate: float):
        self.model, self.images, self.batch_size = model, images, batch_size
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.99), weight_decay=0.1)
        self.average = [p.detach().clone() for p in model.parameters()]

    def __call__(self) -> None:
        rows = torch.randint(len(self.images), (self.batch_size,), device=self.images.device)
        images = self.images[rows].permute(0, 3, 1, 2).float() / 255
        self.optimizer.zero_grad()
        self.model.loss(images).backward()
        self.optimizer.step()
        with torch.no_grad():
            for average, parameter in zip(self.average, self.model.parameters(), strict=True):
                average.lerp_(parameter, 0.0005)
