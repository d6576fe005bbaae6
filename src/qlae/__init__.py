"""qlae: disentangled representation learning by latent quantization.

The public names load on first use, so that ``import qlae`` and ``import qlae.metrics`` do not load torch, and work
where it is not installed.

    >>> import qlae
    >>> data = qlae.load_data("shapes3d", resolution=64)
    >>> len(data), data.images.shape
    (480000, (480000, 64, 64, 3))
"""

import importlib
import importlib.util
import random
from typing import TYPE_CHECKING, Any

from ._imports import explain_missing
from ._version import __version__

if TYPE_CHECKING:
    from .configuring import configure
    from .data import SourceDataset, load_data, register_dataset
    from .description import describe
    from .estimator import QLAE
    from .metrics import register_metric
    from .models.latents import QuantizedLatent
    from .pipeline import find_components, resume, train
    from .presets import ModelSpec, register_model
    from .registry import LATENTS, NETWORKS, OBJECTIVES
    from .runs.decode import decode
    from .runs.directory import Run
    from .runs.encode import add_codes, encode
    from .runs.latent_names import name_latents
    from .runs.load_model import load
    from .scoring.evaluation import evaluate_run as evaluate
    from .scoring.sample import rescore_run as rescore
    from .selection.consensus import consensus
    from .selection.distill import train_consensus_model
    from .selection.ranking import select
    from .selection.train_consensus import train_consensus
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
    "add_codes",
    "configure",
    "consensus",
    "decode",
    "describe",
    "encode",
    "evaluate",
    "find_components",
    "load",
    "load_data",
    "name_latents",
    "register_dataset",
    "register_metric",
    "register_model",
    "rescore",
    "resume",
    "select",
    "train",
    "train_consensus",
    "train_consensus_model",
    "train_seeds",
]

#: Module → the public names that it defines.
_HOMES = {
    "configuring": ("configure",),
    "data": ("SourceDataset", "load_data", "register_dataset"),
    "description": ("describe",),
    "estimator": ("QLAE",),
    "metrics": ("register_metric",),
    "models.latents": ("QuantizedLatent",),
    "pipeline": ("find_components", "resume", "train"),
    "presets": ("ModelSpec", "register_model"),
    "registry": ("LATENTS", "NETWORKS", "OBJECTIVES"),
    "runs.decode": ("decode",),
    "runs.directory": ("Run",),
    "runs.encode": ("add_codes", "encode"),
    "runs.latent_names": ("name_latents",),
    "runs.load_model": ("load",),
    "scoring.evaluation": ("evaluate",),
    "scoring.sample": ("rescore",),
    "selection.consensus": ("consensus",),
    "selection.ranking": ("select",),
    "selection.distill": ("train_consensus_model",),
    "selection.train_consensus": ("train_consensus",),
    "selection.train_seeds": ("train_seeds",),
    "training.callbacks": ("Callback",),
}
_DEFINED_AS = {"evaluate": "evaluate_run", "rescore": "rescore_run"}


def __getattr__(name: str) -> Any:
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None and (name.startswith("_") or importlib.util.find_spec(f"{__name__}.{name}") is None):
        raise AttributeError(f"module 'qlae' has no attribute {name!r}")
    state = random.getstate()
    try:
        module = importlib.import_module(f"{__name__}.{home or name}")
        return module if home is None else getattr(module, _DEFINED_AS.get(name, name))
    except ModuleNotFoundError as error:
        raise explain_missing(error, f"qlae.{name}") or error from None
    finally:
        random.setstate(state)  # rich draws numbers when it is imported


def __dir__() -> list[str]:
    return __all__
