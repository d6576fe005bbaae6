"""Metrics of disentanglement over plain arrays: sources (n, n_s) and latents (n, n_z).

Nothing here knows of models or imports torch.

>>> import numpy as np
>>> from qlae.metrics import infomec
>>> sources = np.random.default_rng(0).integers(0, 4, size=(200, 2))
>>> infomec(sources, 3 - sources[:, ::-1]).infom > 0.95
True
"""

from qlae.metrics.dci import DCI, dci
from qlae.metrics.heatmap import nmi_figure, plot_nmi
from qlae.metrics.infomec import InfoMEC, infomec
from qlae.metrics.information import mutual_information, nmi
from qlae.metrics.irs import irs
from qlae.metrics.mcc import mcc
from qlae.metrics.mig import mig
from qlae.metrics.modularity import explicitness, modularity
from qlae.metrics.paired import beta_vae_score, factor_vae_score
from qlae.metrics.psnr import psnr
from qlae.metrics.result import Score
from qlae.metrics.sap import sap
from qlae.metrics.scoring import METRICS, Scores, score, score_file
from qlae.metrics.table import print_scores, score_table

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
