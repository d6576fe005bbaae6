"""The encoders and decoders: one pair for each kind of observations, and Tripod's. Each registers itself."""

from ...config import NetworksConfig
from .dense import DenseDecoder, DenseEncoder
from .paper import FULL, OFFICIAL, PAPER, SMALL, ConvEncoder, NetworkForm, NetworkSize, StyleDecoder
from .residual import ResidualDecoder, ResidualEncoder
from .series import SeriesDecoder, SeriesEncoder

__all__ = [
    "FULL",
    "OFFICIAL",
    "PAPER",
    "SMALL",
    "ConvEncoder",
    "DenseDecoder",
    "DenseEncoder",
    "NetworkForm",
    "NetworkSize",
    "NetworksConfig",
    "ResidualDecoder",
    "ResidualEncoder",
    "SeriesDecoder",
    "SeriesEncoder",
    "StyleDecoder",
]
