"""Metrics of disentanglement over plain arrays: sources (n, n_s) and latents (n, n_z).

Nothing here knows of models or imports torch.

>>> import numpy as np
>>> from qlae.metrics import infomec
>>> sources = np.random.default_rng(0).integers(0, 4, size=(200, 2))
>>> infomec(sources, 3 - sources[:, ::-1]).infom > 0.95
True
"""

from qlae.metrics.infomec import InfoMEC, infomec
from qlae.metrics.information import mutual_information, nmi
from qlae.metrics.psnr import psnr

__all__ = ["InfoMEC", "infomec", "mutual_information", "nmi", "psnr"]
