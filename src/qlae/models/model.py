"""A model: encoder → latent space → decoder, whatever the objective that trains it.

``Model.forward`` is what training uses: float tensors in, logits out. ``encode``, ``latents`` and ``decode`` are for
people: NumPy in, NumPy out, in chunks, on whatever device the model is.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .._checks import whole_number
from ..data.dataset import ImageArray
from ..observations import Observations
from .forms import Form
from .latents import DiscreteLatent, LatentOutput, LatentSpace

CHUNK = 256  # images per forward pass outside of training


class ModelOutput(NamedTuple):
    """The result of a forward pass."""

    logits: Tensor  # of the decoder: logits of images (b, c, h, w), means of vectors (b, d) or series (b, c, t)
    latent: LatentOutput
    encoded: Tensor  # output of the encoder (b, latent.num_inputs)


class Model(nn.Module):
    """Encoder, latent space and decoder.

    Arrays of observations have the shape (n, h, w, c) for images, (n, d) for vectors and (n, t, c) for series.
    Networks see them as ``form`` says: images (b, c, h, w) in [0, 1], standardised vectors (b, d) and series (b, c, t).

    Args:
        encoder: inputs → (b, latent.num_inputs).
        latent: a latent space of ``qlae.models.latents``.
        decoder: (b, latent.num_outputs), ``latent.decoder_inputs`` of latents → logits of images, or means of other
            observations, in the inputs' shape.
        observations: what the model takes and gives.
    """

    def __init__(self, encoder: nn.Module, latent: LatentSpace, decoder: nn.Module, *, observations: Observations):
        super().__init__()
        self.observations = observations
        self.encoder = encoder
        self.latent = latent
        self.decoder = decoder
        self.parts = nn.ModuleDict()  # that the objective adds, such as the critic of a GAN
        self.form: Form = self.observations.traits.load("form")(self.observations)
        self.origin: Any = None  # of a trained model: the ``runs.export.Origin`` that can write it

    def forward(self, images: Tensor, generator: torch.Generator | None = None) -> ModelOutput:
        """Return the decoder's outputs and the latents of inputs, such as images (b, c, h, w) in [0, 1].

        Networks run in the precision of their weights, the latent space in that of the inputs.
        """
        encoded = run_in_own_precision(self.encoder, images)
        latent = self.latent(encoded, generator)
        logits = run_in_own_precision(self.decoder, self.latent.decoder_inputs(latent.z))
        return ModelOutput(logits, latent, encoded)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def encode(self, images: ImageArray) -> NDArray[np.int64]:
        """Return the codes (n, num_latents) of observations, such as images (n, r, r, 3) uint8: the index of each
        latent's value in its codebook."""
        if not isinstance(self.latent, DiscreteLatent):
            raise ValueError("this model has continuous latents and no codes; use .latents(images)")
        return self._over_images(images, lambda x: self.latent(self.encoder(x)).codes)

    def latents(self, images: ImageArray) -> NDArray[np.float32]:
        """Return the latents (n, num_outputs) of observations, such as images (n, r, r, 3) uint8: the values that
        ``decode`` takes."""
        return self._over_images(images, lambda x: self.latent(self.encoder(x)).z)

    def reconstruct(self, images: ImageArray) -> NDArray[Any]:
        """Return the reconstructions of observations, such as images (n, r, r, 3) uint8, in the same shape and type."""
        return self._over_images(images, lambda x: self.form.to_array(self(x).logits))

    def decode(self, latents: NDArray[Any]) -> NDArray[Any]:
        """Return observations, such as images (n, r, r, 3) uint8, for codes (n, num_latents) integers or latents
        (n, num_outputs) floats."""
        latents = np.asarray(latents)
        if latents.ndim != 2:
            raise ValueError(f"expected one row per image, (n, num_latents), got shape {latents.shape}")
        if np.issubdtype(latents.dtype, np.integer):
            if not isinstance(self.latent, DiscreteLatent):
                raise ValueError("this model has continuous latents; decode floats, not integers")
            codes = torch.tensor(latents, dtype=torch.int64)
            self.latent.require_codes(codes)
            with torch.inference_mode():
                return self._decode(self.latent.look_up(codes.to(self.device)))
        if not np.issubdtype(latents.dtype, np.floating):
            raise ValueError(f"decode takes integers (codes) or floats (latents), got {latents.dtype}")
        if latents.shape[1] != self.latent.num_outputs or not np.isfinite(latents).all():
            raise ValueError(f"latents must be (n, {self.latent.num_outputs}) and finite, got shape {latents.shape}")
        return self._decode(torch.tensor(latents, dtype=torch.float32))  # a copy: data frames give read-only arrays

    def sample(self, num_samples: int, *, seed: int = 0) -> NDArray[Any]:
        """Return observations, such as images (num_samples, r, r, 3) uint8, decoded from latents that are drawn from
        the prior."""
        whole_number("num_samples", num_samples, at_least=0)
        generator = torch.Generator(self.device).manual_seed(seed)
        with torch.inference_mode():
            return self._decode(self.latent.sample(num_samples, generator))

    def save_pretrained(self, folder: str | os.PathLike[str], *, half: bool = False) -> Path:
        """Write ``config.json``, ``model.safetensors`` and a model card, which ``qlae.load(folder)`` loads as this
        model.

        Args:
            folder: new, empty, or written by this method before; then it is replaced.
            half: round the weights of the networks to half precision, which halves the file.
        """
        if self.origin is None:
            raise ValueError("only a model that qlae.load returned can be saved; one built by hand has no config")
        self.origin.write(Path(folder), self.state_dict(), half=half)
        return Path(folder)

    def _decode(self, latents: Tensor) -> NDArray[Any]:
        if not len(latents):
            return np.empty((0, *self.observations.shape), self.observations.dtype)
        with torch.inference_mode():
            outputs = (self.decoder(self.latent.decoder_inputs(z.to(self.device))) for z in latents.split(CHUNK))
            return np.concatenate([self.form.to_array(output).cpu().numpy() for output in outputs])

    def _over_images(self, images: ImageArray, function: Callable[[Tensor], Tensor | None]) -> NDArray[Any]:
        if hasattr(images, "detach"):
            images = images.detach().cpu().numpy()
        images = np.asarray(images) if isinstance(images, list | tuple) else images
        if not hasattr(images, "shape") or not hasattr(images, "dtype"):
            raise ValueError(
                f"expected an array of {self.observations.traits.many}, got {type(images).__name__}; "
                "qlae.load_data(path) reads files"
            )
        *sides, channels = self.observations.shape
        if sides and channels == 1 and tuple(images.shape[1:]) == tuple(sides):  # as data of one channel may be given
            images = np.asarray(images)[..., None]
        _require_observations(images, self.observations)
        parts = []
        with torch.inference_mode():
            for start in range(0, max(len(images), 1), CHUNK):
                # A copy: images on disk are read-only.
                rows = np.array(images[start : start + CHUNK], dtype=self.observations.dtype)
                result = function(self.form.to_input(torch.from_numpy(rows).to(self.device)))
                assert result is not None
                parts.append(result.cpu().numpy())
        return np.concatenate(parts)


def run_in_own_precision(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return a network's outputs, computed in the precision of its weights, in the precision of the inputs."""
    outputs: Tensor = network(inputs.to(next(network.parameters(), inputs).dtype))
    return outputs.to(inputs.dtype)


def _require_observations(array: ImageArray, observations: Observations) -> None:
    """Raise an error unless an array holds observations as described; numbers may have another type than floats."""
    shape, kind = tuple(array.shape), observations.traits
    is_number = str(array.dtype) == "uint8" if observations.dtype == "uint8" else np.dtype(array.dtype).kind in "fiub"
    if shape[1:] != observations.shape or not is_number:
        expected = ", ".join(map(str, observations.shape))
        raise ValueError(
            f"expected {observations.dtype} {kind.many} of shape (n, {expected}), got {array.dtype} of shape {shape}; "
            f"one {kind.one} is {kind.many}[None]"
        )


def place(model: Model, device: torch.device) -> Model:
    """Return the model on a device, its weights channels last, where convolutions are fastest."""
    model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model
