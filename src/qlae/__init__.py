"""qlae: disentangled representation learning by latent quantization.

The public names load on first use, so that ``import qlae`` and ``import qlae.metrics`` stay free of torch.

    >>> import qlae
    >>> data = qlae.load_data("shapes3d", resolution=64)
    >>> len(data), data.images.shape
    (480000, (480000, 64, 64, 3))
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .data import SourceDataset, load_data
    from .models.latents import QuantizedLatent
    from .runs.directory import Run
    from .runs.loading import load
    from .scoring.evaluation import evaluate_run as evaluate
    from .scoring.sample import rescore_run as rescore
    from .training import train

__all__ = [
    "QuantizedLatent",
    "Run",
    "SourceDataset",
    "__version__",
    "evaluate",
    "load",
    "load_data",
    "rescore",
    "train",
]

_HOMES = {
    "QuantizedLatent": (".models.latents", "QuantizedLatent"),
    "Run": (".runs.directory", "Run"),
    "SourceDataset": (".data", "SourceDataset"),
    "evaluate": (".scoring.evaluation", "evaluate_run"),
    "load": (".runs.loading", "load"),
    "load_data": (".data", "load_data"),
    "rescore": (".scoring.sample", "rescore_run"),
    "train": (".training", "train"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'qlae' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module, __name__), attribute)


def __dir__() -> list[str]:
    return __all__
