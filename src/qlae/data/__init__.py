"""Data: images with the sources that made them. Importing this does not load torch; rendering does."""

from .dataset import ImageArray, Progress, SourceDataset
from .loading import data_config, data_names, data_of, load_again, load_data, prepare_data
from .rendered import RenderedImages, images_of, keep_on_disk
from .sampled import NoisyImages

__all__ = [
    "ImageArray",
    "NoisyImages",
    "Progress",
    "RenderedImages",
    "SourceDataset",
    "data_config",
    "data_names",
    "data_of",
    "images_of",
    "keep_on_disk",
    "load_again",
    "load_data",
    "prepare_data",
]
