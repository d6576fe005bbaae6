"""Models: encoder → latent space → decoder."""

from .building import Networks, build_model
from .model import Model, ModelOutput

__all__ = ["Model", "ModelOutput", "Networks", "build_model"]
