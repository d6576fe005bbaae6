"""A model: encoder → latent space → decoder, whatever the objective that trains it.

``Model.forward`` is what training uses: float tensors in, logits out. ``encode``, ``latents`` and ``decode`` are for
people: NumPy in, NumPy out, in chunks, on whatever device the model is.
"""

import os
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .._checks import MAX_SEED, whole_number
from ..data.model_inputs import require_usable, to_model_inputs
from ..data.table_encoding import decode_rows
from ..observations import TABLES, Observations
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

    def encode(self, images: Any) -> NDArray[np.int64]:
        """Return the codes (n, num_latents) of observations: the index of each latent's value in its codebook.

        Args:
            images: whatever ``qlae.load_data`` takes: an array, such as images (n, r, r, 3) uint8, a tensor, a data
                frame, a data set, or a path, which is read as the training data were. For models of images also a
                picture of Pillow, and lists of pictures or of paths; images of another size are scaled and cropped.
        """
        if not isinstance(self.latent, DiscreteLatent):
            raise ValueError("this model has continuous latents and no codes; use .latents(images)")
        return self._over_images(images, lambda x: self.latent(self.encoder(x)).codes)

    def latents(self, images: Any) -> NDArray[np.float32]:
        """Return the latents (n, num_outputs) of observations, as ``encode`` takes them: the values that ``decode``
        takes."""
        return self._over_images(images, lambda x: self.latent(self.encoder(x)).z)

    def reconstruct(self, images: Any, *, as_array: bool = False) -> Any:
        """Return the reconstructions of observations, as ``encode`` takes them, in the model's shape and type, such as
        images (n, r, r, 3) uint8; further arguments as for ``decode``."""
        decoded = self._over_images(images, lambda x: self.form.to_array(self(x).logits))
        return self._present(decoded, as_array)

    def decode(self, latents: NDArray[Any], *, as_array: bool = False) -> Any:
        """Return observations, such as images (n, r, r, 3) uint8.

        Args:
            latents: codes (n, num_latents) integers or latents (n, num_outputs) floats.
            as_array: return an array of features (n, d), with the shares of levels, also where the model was trained
                on a table with categories, dates or missing values; else these become a data frame with its columns.
        """
        return self._present(self._decode_array(latents), as_array)

    def _present(self, decoded: NDArray[Any], as_array: bool) -> Any:
        """Return decoded observations as users get them: rows of a table as a data frame."""
        if as_array or self.observations.kind != TABLES:
            return decoded
        return decode_rows(decoded, self.observations)

    def _decode_array(self, latents: NDArray[Any]) -> NDArray[Any]:
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

    def sample(self, num_samples: int, *, seed: int = 0, as_array: bool = False) -> Any:
        """Return observations, such as images (num_samples, r, r, 3) uint8, decoded from latents that are drawn from
        the prior; ``as_array`` as for ``decode``."""
        whole_number("num_samples", num_samples, at_least=0)
        whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
        generator = torch.Generator(self.device).manual_seed(seed)
        with torch.inference_mode():
            return self._present(self._decode(self.latent.sample(num_samples, generator)), as_array)

    def describe(self, data: Any, **options: Any) -> Any:
        """Return what every latent means, measured on observations: a ``qlae.description.Description``.

        Args:
            data: a data set, its name or path, or an array or data frame of observations.
            options: as for ``qlae.describe``.
        """
        return pkgutil.resolve_name("qlae.description:describe")(self, data, **options)  # which imports this module

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
        with torch.inference_mode(), self._exactly():
            outputs = (self.decoder(self.latent.decoder_inputs(z.to(self.device))) for z in latents.split(CHUNK))
            return np.concatenate([self.form.to_array(output).cpu().numpy() for output in outputs])

    def _over_images(self, images: Any, function: Callable[[Tensor], Tensor | None]) -> NDArray[Any]:
        spec = None if self.origin is None else self.origin.config.data.spec
        rows = to_model_inputs(images, self.observations, spec)
        dtype = np.dtype(self.observations.dtype)
        parts = []
        with torch.inference_mode(), self._exactly():
            for start in range(0, max(len(rows), 1), CHUNK):
                with np.errstate(over="ignore"):
                    batch = np.array(rows[start : start + CHUNK], dtype=dtype)  # a copy: images on disk are read-only
                if dtype.kind == "f":
                    require_usable(batch, self.observations, first_row=start)
                result = function(self.form.to_input(torch.from_numpy(batch).to(self.device)))
                assert result is not None
                parts.append(result.cpu().numpy())
        return np.concatenate(parts)

    def _exactly(self) -> torch.autocast:
        """Return a context in which networks compute in their own precision, also where the caller has autocast."""
        return torch.autocast(self.device.type, enabled=False)


def run_in_own_precision(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return a network's outputs, computed in the precision of its weights, in the precision of the inputs."""
    outputs: Tensor = network(inputs.to(next(network.parameters(), inputs).dtype))
    return outputs.to(inputs.dtype)


def place(model: Model, device: torch.device) -> Model:
    """Return the model on a device, its weights channels last, where convolutions are fastest."""
    model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model
