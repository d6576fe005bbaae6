"""qlae: disentangled representation learning by latent quantization.

The public names load on first use, so that ``import qlae`` and ``import qlae.metrics`` do not load torch, and work
where it is not installed.

    >>> import qlae
    >>> data = qlae.load_data("shapes3d", resolution=64)
    >>> len(data), data.images.shape
    (480000, (480000, 64, 64, 3))
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._imports import explain_missing
from ._version import __version__

if TYPE_CHECKING:
    from .components import find_components
    from .configuring import configure
    from .data import SourceDataset, load_data, register_dataset
    from .estimator import QLAE
    from .metrics import register_metric
    from .models.latents import QuantizedLatent
    from .pipeline import resume, train
    from .presets import ModelSpec, register_model
    from .registry import LATENTS, NETWORKS, OBJECTIVES
    from .runs.directory import Run
    from .runs.load_model import load
    from .scoring.evaluation import evaluate_run as evaluate
    from .scoring.sample import rescore_run as rescore
    from .selection import select
    from .selection.train_seeds import train_seeds
    from .training.callbacks import Callback

__all__ = [
    "LATENTS",
    "NETWORKS",
    "OBJECTIVES",
    "QLAE",
    "Callback",
    "ModelSpec",
    "QuantizedLatent",
    "Run",
    "SourceDataset",
    "__version__",
    "configure",
    "evaluate",
    "find_components",
    "load",
    "load_data",
    "register_dataset",
    "register_metric",
    "register_model",
    "rescore",
    "resume",
    "select",
    "train",
    "train_seeds",
]

_HOMES = {
    "LATENTS": (".registry", "LATENTS"),
    "NETWORKS": (".registry", "NETWORKS"),
    "OBJECTIVES": (".registry", "OBJECTIVES"),
    "QLAE": (".estimator", "QLAE"),
    "Callback": (".training.callbacks", "Callback"),
    "ModelSpec": (".presets", "ModelSpec"),
    "QuantizedLatent": (".models.latents", "QuantizedLatent"),
    "Run": (".runs.directory", "Run"),
    "SourceDataset": (".data", "SourceDataset"),
    "configure": (".configuring", "configure"),
    "evaluate": (".scoring.evaluation", "evaluate_run"),
    "find_components": (".components", "find_components"),
    "load": (".runs.load_model", "load"),
    "load_data": (".data", "load_data"),
    "register_dataset": (".data", "register_dataset"),
    "register_metric": (".metrics", "register_metric"),
    "register_model": (".presets", "register_model"),
    "rescore": (".scoring.sample", "rescore_run"),
    "resume": (".pipeline", "resume"),
    "select": (".selection", "select"),
    "train": (".pipeline", "train"),
    "train_seeds": (".selection.train_seeds", "train_seeds"),
}

_MODULES = (
    "config",
    "data",
    "estimator",
    "explorer",
    "metrics",
    "models",
    "objectives",
    "observations",
    "options",
    "presets",
    "registry",
    "report",
    "selection",
    "study",
)


def __getattr__(name: str) -> Any:
    if name not in _MODULES and name not in _HOMES:
        raise AttributeError(f"module 'qlae' has no attribute {name!r}")
    try:
        if name in _MODULES:
            return importlib.import_module(f".{name}", __name__)
        module, attribute = _HOMES[name]
        return getattr(importlib.import_module(module, __name__), attribute)
    except ModuleNotFoundError as error:
        explained = explain_missing(error, f"qlae.{name}")
        if explained is None:
            raise
        raise explained from None


def __dir__() -> list[str]:
    return __all__
