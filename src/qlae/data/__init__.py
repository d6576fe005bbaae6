"""Data: images, vectors and series with the sources that generated them."""

from ..registry import DATA
from .dataset import ImageArray, NoisyImages, Progress, SourceDataset
from .loading import (
    data_config,
    data_names,
    data_spec,
    hold_out_as,
    load_data,
    load_from_config,
    register_dataset,
    unread_config,
)
from .rendered import RenderedImages, images_of, keep_on_disk
from .spec import DataSpec

__all__ = [
    "DATA",
    "DataSpec",
    "ImageArray",
    "NoisyImages",
    "Progress",
    "RenderedImages",
    "SourceDataset",
    "data_config",
    "data_names",
    "data_spec",
    "hold_out_as",
    "images_of",
    "keep_on_disk",
    "load_data",
    "load_from_config",
    "register_dataset",
    "unread_config",
]
