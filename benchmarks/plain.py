"""The quantized-latent autoencoder and GAN in plain PyTorch, as a short script would define them.

The benchmarks compare the package with these models. They use library modules throughout (``InstanceNorm2d``,
``ConvTranspose2d``, ``torch.optim.AdamW``), in float32, one operation after the other.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SLOPE = 0.3
WIDTHS = (32, 64, 128, 256)
DENSE = 256


class PlainEncoderLayer(nn.Module):
    """Convolution, leaky ReLU and instance norm."""

    def __init__(self, in_width: int, width: int, kernel: int, stride: int):
        super().__init__()
        self.conv = nn.Conv2d(in_width, width, kernel, stride, (kernel - stride + 1) // 2)
        self.norm = nn.InstanceNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(F.leaky_relu(self.conv(x), SLOPE))


class PlainStyleLayer(nn.Module):
    """Transposed convolution, leaky ReLU, instance norm and style."""

    def __init__(self, in_width: int, width: int, style_width: int, stride: int):
        super().__init__()
        self.conv = nn.ConvTranspose2d(in_width, width, 4 if stride == 2 else 3, stride, padding=1)
        self.norm = nn.InstanceNorm2d(width)
        self.style = nn.Linear(style_width, 2 * width)

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        scale, shift = self.style(w)[:, :, None, None].chunk(2, dim=1)
        return scale * self.norm(F.leaky_relu(self.conv(x), SLOPE)) + shift


class PlainQLAE(nn.Module):
    """The encoder, latent quantization and decoder of the paper's appendix at 64×64."""

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
        )
        self.head = nn.Linear(DENSE, num_latents)
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

    def quantize(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the nearest values, with straight-through gradients, and the sum of the quantize and commit losses."""
        codes = (x.detach()[:, :, None] - self.values.detach()).abs().argmin(-1)
        z = self.values.gather(1, codes.T).T
        quantize = (x.detach() - z).square().sum(1).mean()
        commit = (x - z.detach()).square().sum(1).mean()
        return x + (z - x).detach(), quantize + commit

    def decode(self, z: Tensor) -> Tensor:
        w = self.dense_layers(z)
        h = self.start.expand(len(z), -1, -1, -1)
        for layer in self.style_layers:
            h = layer(h, w)
        return self.output(h)

    def loss(self, images: Tensor) -> Tensor:
        z, distance = self.quantize(self.head(self.encoder(images)))
        return F.binary_cross_entropy_with_logits(self.decode(z), images) + 0.01 * distance


class PlainQLInfoWGAN(PlainQLAE):
    """The same networks as a generator, and an encoder with a critic (Wasserstein GAN with gradient penalty)."""

    def __init__(self) -> None:
        super().__init__()
        self.critic = nn.Linear(DENSE, 1)

    def sample(self, num_samples: int) -> tuple[Tensor, Tensor]:
        codes = torch.randint(self.values.shape[1], (num_samples, len(self.values)), device=self.values.device)
        z = self.values.gather(1, codes.T).T
        return z, self.decode(z).sigmoid()

    def encoder_loss(self, images: Tensor) -> Tensor:
        with torch.no_grad():
            z, fake = self.sample(len(images))
        fake_features, real_features = self.encoder(fake), self.encoder(images)
        encoded, distance = self.quantize(self.head(fake_features))
        value = self.critic(fake_features).mean() - self.critic(real_features).mean()
        share = torch.rand(len(images), 1, 1, 1, device=images.device)
        mixed = torch.lerp(fake, images, share).requires_grad_()
        (slope,) = torch.autograd.grad(self.critic(self.encoder(mixed)).sum(), mixed, create_graph=True)
        penalty = (slope.flatten(1).norm(dim=1) - 1).square().mean()
        return F.mse_loss(encoded, z) + value + 10 * penalty + 0.01 * distance

    def generator_loss(self, num_samples: int) -> Tensor:
        z, fake = self.sample(num_samples)
        features = self.encoder(fake)
        encoded, distance = self.quantize(self.head(features))
        return F.mse_loss(encoded, z) - self.critic(features).mean() + 0.01 * distance


class PlainStep:
    """One update of a plain model: draw a batch from memory, step with AdamW, update the weight average."""

    def __init__(self, model: PlainQLAE, images: Tensor, *, batch_size: int, learning_rate: float = 1e-3):
        self.model, self.images, self.batch_size = model, images, batch_size
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.99), weight_decay=0.1)
        self.average = [p.detach().clone() for p in model.parameters()]

    def __call__(self) -> None:
        self.optimizer.zero_grad()
        self.model.loss(self.draw()).backward()
        self.optimizer.step()
        self.update_average()

    def draw(self) -> Tensor:
        rows = torch.randint(len(self.images), (self.batch_size,), device=self.images.device)
        return self.images[rows].permute(0, 3, 1, 2).float() / 255

    def update_average(self) -> None:
        with torch.no_grad():
            for average, parameter in zip(self.average, self.model.parameters(), strict=True):
                average.lerp_(parameter, 0.0005)


class PlainGANStep(PlainStep):
    """Five updates of encoder and critic, followed by one of generator and codebook."""

    def __init__(self, model: PlainQLInfoWGAN, images: Tensor, *, batch_size: int, learning_rate: float = 2e-4):
        super().__init__(model, images, batch_size=batch_size)
        self.gan = model
        encoder = [*model.encoder.parameters(), *model.head.parameters(), *model.critic.parameters()]
        encoder_ids = {id(parameter) for parameter in encoder}
        generator = [parameter for parameter in model.parameters() if id(parameter) not in encoder_ids]
        self.optimizers = [torch.optim.AdamW(group, lr=learning_rate) for group in (encoder, generator)]

    def __call__(self) -> None:
        for _ in range(5):
            self._step(0, self.gan.encoder_loss(self.draw()))
            self.update_average()
        self._step(1, self.gan.generator_loss(self.batch_size))

    def _step(self, player: int, loss: Tensor) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()
        self.optimizers[player].step()
