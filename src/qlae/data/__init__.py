"""Data: images with the sources that generated them. Importing this does not load torch; rendering does."""

from .dataset import ImageArray, Progress, SourceDataset
from .loading import data_names, load_data, prepare_data
from .loading_again import data_config, load_again, load_from_config
from .registration import register_dataset
from .rendering import RenderedImages, images_of, keep_on_disk
from .sampling import NoisyImages

__all__ = [
    "ImageArray",
    "NoisyImages",
    "Progress",
    "RenderedImages",
    "SourceDataset",
    "data_config",
    "data_names",
    "images_of",
    "keep_on_disk",
    "load_again",
    "load_data",
    "load_from_config",
    "prepare_data",
    "register_dataset",
]
