"""qlae: disentangled representation learning by latent quantization.

The public names load on first use, so that ``import qlae`` and ``import qlae.metrics`` stay free of torch.
"""

from ._version import __version__

__all__ = ["__version__"]
