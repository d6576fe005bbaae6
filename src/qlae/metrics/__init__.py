"""Metrics of disentanglement over plain arrays: sources (n, n_s) and latents (n, n_z).

Nothing here knows of models or imports torch.

>>> import numpy as np
>>> from qlae.metrics import infomec
>>> sources = np.random.default_rng(0).integers(0, 4, size=(200, 2))
>>> infomec(sources, 3 - sources[:, ::-1]).infom > 0.95
True
"""

from .dci import DCI, dci
from .heatmap import nmi_figure, plot_nmi
from .infomec import InfoMEC, infomec
from .information import mutual_information, nmi
from .irs import irs
from .mcc import mcc
from .mig import mig
from .modularity import explicitness, modularity
from .paired import beta_vae_score, factor_vae_score
from .psnr import psnr
from .result import Score
from .sap import sap
from .scoring import METRICS, Scores, score, score_file
from .table import print_scores, score_table

__all__ = [
    "DCI",
    "METRICS",
    "InfoMEC",
    "Score",
    "Scores",
    "beta_vae_score",
    "dci",
    "explicitness",
    "factor_vae_score",
    "infomec",
    "irs",
    "mcc",
    "mig",
    "modularity",
    "mutual_information",
    "nmi",
    "nmi_figure",
    "plot_nmi",
    "print_scores",
    "psnr",
    "sap",
    "score",
    "score_file",
    "score_table",
]
