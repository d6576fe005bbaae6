"""A model: encoder → latent space → decoder, whatever the objective that trains it.

``Model.forward`` is what training uses: float tensors in, logits out. ``encode``, ``latents`` and ``decode`` are what
people use: NumPy in, NumPy out, in chunks, on whatever device the model is.
"""

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .._checks import require_known
from ..config import LatentConfig, NetworkConfig, RunConfig
from ..data.dataset import ImageArray
from ..runs.pretrained import Origin, write_pretrained
from . import networks
from .latents import (
    ContinuousLatent,
    DiscreteLatent,
    FiniteScalarLatent,
    GaussianLatent,
    LatentOutput,
    LatentSpace,
    QuantizedLatent,
    UniformLatent,
    VectorQuantizedLatent,
)

CHUNK = 256  # images a forward pass outside of training

#: objective → size → the networks.
SIZES = {
    "autoencoding": {"full": networks.FULL, "small": networks.SMALL},
    "adversarial": {"full": networks.FULL, "small": networks.SMALL_GAN},
}
FORMS = {"paper": networks.PAPER, "official": networks.OFFICIAL}

Networks = tuple[nn.Module, nn.Module]  # an encoder and a decoder of the caller's


class ModelOutput(NamedTuple):
    """What a forward pass gives."""

    logits: Tensor  # (b, 3, r, r); sigmoid makes them images
    latent: LatentOutput


class Model(nn.Module):
    """Encoder, latent space and decoder.

    Args:
        encoder: images (b, 3, r, r) in [0, 1] → (b, latent.num_inputs).
        latent: a latent space of ``qlae.models.latents``.
        decoder: (b, latent.num_outputs) → logits (b, 3, r, r).
        resolution: r.
        critic: features of the encoder (b, …) → values (b, 1); only GANs have one.
    """

    def __init__(
        self,
        encoder: nn.Module,
        latent: LatentSpace,
        decoder: nn.Module,
        *,
        resolution: int,
        critic: nn.Module | None = None,
    ):
        super().__init__()
        self.encoder = encoder
        self.latent = latent
        self.decoder = decoder
        self.critic = critic
        self.resolution = resolution
        self.origin: Origin | None = None  # of a trained model: where its weights come from

    def forward(self, images: Tensor, generator: torch.Generator | None = None) -> ModelOutput:
        """Images (b, 3, r, r) in [0, 1]; networks run in the precision of their weights, latents in that of images."""
        latent = self.latent(in_its_precision(self.encoder, images), generator)
        return ModelOutput(in_its_precision(self.decoder, latent.z), latent)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def encode(self, images: ImageArray) -> NDArray[np.int64]:
        """Images (n, r, r, 3) uint8 → codes (n, num_latents): the index of each latent's value in its codebook."""
        if not isinstance(self.latent, DiscreteLatent):
            raise ValueError("this model has continuous latents and no codes; use .latents(images)")
        return self._over_images(images, lambda x: self._latent_output(x).codes)

    def latents(self, images: ImageArray) -> NDArray[np.float32]:
        """Images (n, r, r, 3) uint8 → latents (n, num_outputs): the values that the decoder sees."""
        return self._over_images(images, lambda x: self._latent_output(x).z)

    def reconstruct(self, images: ImageArray) -> NDArray[np.uint8]:
        """Images (n, r, r, 3) uint8 → their reconstructions, the same shape and type."""
        return self._over_images(images, lambda x: to_uint8(self(x).logits))

    def decode(self, latents: NDArray[Any]) -> NDArray[np.uint8]:
        """Codes (integers) or latents (floats), (n, …) → images (n, r, r, 3) uint8."""
        latents = np.asarray(latents)
        if latents.ndim != 2:
            raise ValueError(f"expected one row an image, (n, num_latents), got shape {latents.shape}")
        if np.issubdtype(latents.dtype, np.integer):
            z_of = self._codes_to_z(latents)
        elif np.issubdtype(latents.dtype, np.floating):
            if latents.shape[1] != self.latent.num_outputs or not np.isfinite(latents).all():
                raise ValueError(
                    f"latents must be (n, {self.latent.num_outputs}) and finite, got shape {latents.shape}"
                )
            z_of = torch.as_tensor(latents, dtype=torch.float32)
        else:
            raise ValueError(f"decode takes integers (codes) or floats (latents), got {latents.dtype}")
        return self._decode(z_of)

    def sample(self, num_samples: int, *, seed: int = 0) -> NDArray[np.uint8]:
        """Images (num_samples, r, r, 3) uint8 decoded from latents drawn at random from the prior."""
        generator = torch.Generator(self.device).manual_seed(seed)
        with torch.inference_mode():
            return self._decode(self.latent.sample(num_samples, generator))

    def save_pretrained(self, folder: str | os.PathLike[str]) -> Path:
        """Write ``config.json``, ``model.safetensors`` and a model card; ``qlae.load(folder)`` is this model again.

        The folder must be new or empty, or one that this wrote before, which is replaced.
        """
        if self.origin is None:
            raise ValueError("only a model that qlae.load gave can be saved: one put together by hand has no config")
        write_pretrained(Path(folder), self.origin, self.state_dict())
        return Path(folder)

    def _decode(self, latents: Tensor) -> NDArray[np.uint8]:
        with torch.inference_mode():
            parts = [to_uint8(self.decoder(z.to(self.device))).cpu().numpy() for z in latents.split(CHUNK)]
        return np.concatenate(parts) if parts else np.empty((0, self.resolution, self.resolution, 3), np.uint8)

    def _codes_to_z(self, codes: NDArray[np.integer]) -> Tensor:
        if not isinstance(self.latent, DiscreteLatent):
            raise ValueError("this model has continuous latents; decode floats, not integers")
        sizes = np.asarray(self.latent.num_values)
        if codes.shape[1] != len(sizes):
            raise ValueError(f"expected codes of shape (n, {len(sizes)}), got {codes.shape}")
        if codes.size and (codes.min() < 0 or (codes >= sizes).any()):
            raise ValueError(f"codes run from 0 to {sizes.max() - 1}, got {codes.min()} to {codes.max()}")
        with torch.inference_mode():
            return self.latent.to_values(torch.as_tensor(codes, dtype=torch.int64, device=self.device))

    def _latent_output(self, images: Tensor) -> LatentOutput:
        output: LatentOutput = self.latent(self.encoder(images))
        return output

    def _over_images(self, images: ImageArray, function: Callable[[Tensor], Tensor | None]) -> NDArray[Any]:
        images = np.asarray(images) if isinstance(images, list | tuple) else images
        if not hasattr(images, "shape") or not hasattr(images, "dtype"):
            raise ValueError(
                f"expected an array of images, got {type(images).__name__}; qlae.load_data(path) reads files"
            )
        shape, side = tuple(images.shape), self.resolution
        if shape[1:] != (side, side, 3) or images.dtype != np.uint8:
            raise ValueError(
                f"expected uint8 images of shape (n, {side}, {side}, 3), got {images.dtype} of shape {shape}; "
                "one image is images[None]"
            )
        parts = []
        with torch.inference_mode():
            for start in range(0, max(len(images), 1), CHUNK):
                rows = np.array(images[start : start + CHUNK])  # a copy: what is kept on disk is not to be written to
                result = function(to_float(torch.from_numpy(rows).to(self.device)))
                assert result is not None
                parts.append(result.cpu().numpy())
        return np.concatenate(parts)


def in_its_precision(network: nn.Module, inputs: Tensor) -> Tensor:
    """A network's outputs, computed in the precision of its weights, in that of the inputs."""
    outputs: Tensor = network(inputs.to(next(network.parameters(), inputs).dtype))
    return outputs.to(inputs.dtype)


def to_float(images: Tensor) -> Tensor:
    """uint8 (b, r, r, 3) → float32 (b, 3, r, r) in [0, 1], channels last."""
    return torch.div(images, 255).permute(0, 3, 1, 2)


def to_uint8(logits: Tensor) -> Tensor:
    """Logits (b, 3, r, r) → images (b, r, r, 3) uint8."""
    return logits.sigmoid().mul(255).round().to(torch.uint8).permute(0, 2, 3, 1)


def place(model: Model, device: torch.device) -> Model:
    """The model on a device, its weights channels last, where convolutions are fastest."""
    model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model


def build_latent(config: LatentConfig, num_images: int) -> LatentSpace:
    """The latent space that a config names, for a data set of so many images."""
    spaces: dict[str, Callable[[], LatentSpace]] = {
        "continuous": lambda: ContinuousLatent(config.num_latents),
        "gaussian": lambda: GaussianLatent(config.num_latents, num_images if config.decomposed else None),
        "uniform": lambda: UniformLatent(config.num_latents),
        "quantized": lambda: QuantizedLatent(
            config.num_latents,
            config.num_values,
            shared=config.shared,
            reduction=config.reduction,
            learned=config.learned,
        ),
        "vector-quantized": lambda: VectorQuantizedLatent(
            config.num_latents,
            _one_size(config),
            config.vector_size,
            reduction=config.reduction,
            learned=config.learned,
        ),
        "finite-scalar": lambda: FiniteScalarLatent(config.num_latents, config.num_values),
    }
    return spaces[require_known(config.kind, spaces, "latent space")]()


def _one_size(config: LatentConfig) -> int:
    if isinstance(config.num_values, tuple):
        raise ValueError(
            f"a vector codebook is one for all latents: num_values takes one number, got {config.num_values}"
        )
    return config.num_values


def build_networks(config: RunConfig, latent: LatentSpace) -> Networks:
    """The encoder and the decoder that a config names, for a latent space."""
    resolution = config.data.resolution
    size, form = SIZES[config.objective][config.network.size], FORMS[config.network.form]
    encoder = networks.ConvEncoder(resolution, latent.num_inputs, size=size, form=form)
    decoder = networks.StyleDecoder(resolution, latent.num_outputs, size=size, form=form)
    return encoder, decoder


def build_model(config: RunConfig, own: Networks | None = None) -> Model:
    """A freshly initialised model; its weights follow from torch's global seed.

    Args:
        config: of the run.
        own: the caller's encoder and decoder where the config says so; copies are taken, they stay as they are.
    """
    _require_matching(config.network, own)
    latent = build_latent(config.latent, config.data.num_images)
    resolution = config.data.resolution
    if own is None:
        encoder, decoder = build_networks(config, latent)
    else:
        encoder, decoder = (copy.deepcopy(module).cpu() for module in own)
        _require_untied(encoder)
        _require_untied(decoder)
        _require_fit(encoder, decoder, latent, resolution)
    critic = _build_critic(encoder, resolution) if config.objective == "adversarial" else None
    return Model(encoder, latent, decoder, resolution=resolution, critic=critic)


def require_buildable(config: RunConfig, own: Networks | None = None) -> None:
    """An error if no model can be built for a config, before anything is made or written."""
    with torch.random.fork_rng(devices=[]):
        build_model(config, own)


def _require_matching(config: NetworkConfig, own: Networks | None) -> None:
    if config.own and own is None:
        raise ValueError(
            "this run was trained with an encoder and a decoder of its maker's; give them, in Python: "
            "networks=(encoder, decoder)"
        )
    if own is not None and not config.own:
        raise ValueError("this run was trained with the networks of qlae; leave networks=… out")
    if own is not None and not (
        isinstance(own, tuple | list) and len(own) == 2 and all(isinstance(module, nn.Module) for module in own)
    ):
        raise ValueError(f"networks takes two modules of torch, (encoder, decoder), got {type(own).__name__}")


def _build_critic(encoder: nn.Module, resolution: int) -> nn.Module:
    """The critic of a GAN: a linear head on the encoder's last feature layer."""
    features, head = getattr(encoder, "features", None), getattr(encoder, "head", None)
    if not callable(features) or not callable(head):
        raise ValueError(
            "a GAN's critic is one more head on the encoder's features: the encoder needs features(images) → "
            "(b, width) and head(features), of which forward(images) is made"
        )
    shape = _output_shape(encoder, features, 3, resolution, resolution)
    _output_shape(encoder, head, *shape)
    return nn.Linear(shape[-1], 1)


def _require_fit(encoder: nn.Module, decoder: nn.Module, latent: LatentSpace, resolution: int) -> None:
    """An error unless the caller's encoder and decoder have the sizes that the latent space needs."""
    side = resolution
    encoded = _output_shape(encoder, encoder, 3, side, side)
    if encoded != (latent.num_inputs,):
        raise ValueError(
            f"the encoder must turn images (b, 3, {side}, {side}) into (b, {latent.num_inputs}) for "
            f"{latent.num_latents} latents; it gives (b, {', '.join(map(str, encoded))})"
        )
    decoded = _output_shape(decoder, decoder, latent.num_outputs)
    if decoded != (3, side, side):
        raise ValueError(
            f"the decoder must turn (b, {latent.num_outputs}) into logits (b, 3, {side}, {side}); "
            f"it gives (b, {', '.join(map(str, decoded))})"
        )


def _output_shape(module: nn.Module, function: Callable[[Tensor], Tensor], *shape: int) -> tuple[int, ...]:
    """The shape, without the batch, of what a function of a module makes of noise; the module stays as it is."""
    modes = {part: part.training for part in module.modules()}
    called = type(module).__name__
    draw = torch.rand if len(shape) == 3 else torch.randn  # images lie in [0, 1], latents and features anywhere
    noise = draw(2, *shape, generator=torch.Generator().manual_seed(0))
    given = noise.clone(memory_format=torch.channels_last if noise.dim() == 4 else torch.preserve_format)
    module.eval()
    try:
        with torch.inference_mode():
            made = function(given)
    except RuntimeError as error:
        told = (str(error).strip().splitlines() or [""])[0]
        hint = "; images come channels last, so write .flatten(1) or .reshape" if "view size" in told else ""
        raise ValueError(f"{called} does not take (b, {', '.join(map(str, shape))}): {told}{hint}") from error
    finally:
        for part, training in modes.items():
            part.training = training
    if not isinstance(made, Tensor):
        raise ValueError(f"{called} must give a tensor, it gives a {type(made).__name__}")
    if not torch.equal(given, noise):
        raise ValueError(f"{called} changes what it is given, which others use too: write x = 2 * x, not x.mul_(2)")
    return tuple(made.shape[1:])


def _require_untied(module: nn.Module) -> None:
    """An error if a tensor has two names in a module: it would be saved as two, and loaded as such."""
    names: dict[int, str] = {}
    for name, tensor in (
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ):
        if id(tensor) in names:
            raise ValueError(
                f"{type(module).__name__} has one tensor under two names, {names[id(tensor)]} and {name}; "
                "keep it under one, and use it where the other was"
            )
        names[id(tensor)] = name
