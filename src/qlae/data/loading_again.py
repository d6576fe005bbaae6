"""Load the data of a run again: from its config, or from the recipe in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..config import DataConfig
from .array_files import checksum, holds_images, is_array_file
from .dataset import Progress, SourceDataset
from .loading import load_data
from .registration import require_registered
from .sources import BUNDLED_SETS, GENERATED_SETS, SOURCES
from .tables import is_table


def load_again(
    name: str, resolution: int | str, recipe: Mapping[str, Any], *, progress: Progress | None = None
) -> SourceDataset:
    """Load the data that a recipe describes, by calling `load_data` with the same arguments.

    Args:
        name: the name of the data set.
        resolution: height and width of the images, or a text such as ``"60x90"``; 0 for observations that are read as
            they are.
        recipe: `SourceDataset.recipe`.
        progress: as for `load_data`.

    Raises:
        ValueError: the recipe is of a registered data set, and the module that registers it has not been imported.

    >>> data = load_data("shapes3d", resolution=16, sources=["scale", "shape"], correlated={("scale", "shape"): 0.5})
    >>> again = load_again("shapes3d", 16, data.recipe)
    >>> bool((again.sources == data.sources).all())
    True
    """
    arguments = dict(recipe)
    module = arguments.pop("module", None)
    if module is not None:
        require_registered(name, module)
    if "correlated" in arguments:
        arguments["correlated"] = {(first, second): value for first, second, value in arguments["correlated"]}
    resolution = arguments.pop("resolution", resolution)
    if _has_no_resolution(name, arguments.get("path"), arguments.get("kind")):
        resolution = 0
    return load_data(name, resolution=resolution or None, progress=progress, **arguments)


def _has_no_resolution(name: str, path: str | None, kind: str | None) -> bool:
    """Return whether observations are read as they are: generated ones, tables, and arrays that are not of bytes."""
    if path is None:
        return name in (*GENERATED_SETS, *BUNDLED_SETS)
    if name in SOURCES or not Path(path).is_file():
        return False
    return is_table(path) or (is_array_file(path) and not holds_images(path, kind))


def load_from_config(config: DataConfig) -> SourceDataset:
    """Load the data of a run from its config.

    Raises:
        ValueError: the config has no recipe, or the data has changed since the run was trained.
    """
    if config.recipe is None:
        raise ValueError(f"{config.name} was passed as arrays, which a run does not store: pass them again as data=…")
    data = load_again(config.name, config.resolution, config.recipe)
    many = data.observations.traits.many
    if len(data) != config.num_images:
        raise ValueError(
            f"{config.name} had {config.num_images:,} {many} when the model was trained, but has {len(data):,} now"
        )
    if config.checksum is not None and data.checksum not in (None, config.checksum):
        raise ValueError(
            f"{config.name} has other {many} than when the model was trained, although the same number: "
            "restore the original files"
        )
    return data


def data_config(data: SourceDataset) -> DataConfig:
    """Return the config of a data set, from which `load_from_config` loads it again.

    Arrays in memory cannot be loaded again; their checksum shows whether a run gets the same ones another time.
    """
    is_callers_array = data.recipe is None and isinstance(data.images, np.ndarray)
    return DataConfig(
        name=data.name,
        resolution=data.resolution,
        observations=None if data.observations.is_standard else data.observations,
        origin=data.origin,
        num_images=len(data),
        source_names=data.source_names,
        recipe=data.recipe,
        checksum=checksum(data) if data.checksum is None and is_callers_array else data.checksum,
    )


def require_same_array(data: SourceDataset, trained_on: DataConfig) -> None:
    """Raise a ``ValueError`` if a run was started with another array than these data.

    Data with a recipe are not compared: a run of files may go on with the same images from an array.
    """
    if trained_on.recipe is None and trained_on.checksum is not None:
        checksum_now = data_config(data).checksum
        if checksum_now not in (None, trained_on.checksum):
            raise ValueError(
                f"the run was started with other {trained_on.observed.traits.many} than those in data=…: pass the same "
                "ones, or start another run"
            )
