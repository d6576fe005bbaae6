"""Metrics of disentanglement over plain arrays: sources (n, n_s) and latents (n, n_z).

This package needs no model and imports neither torch nor the rest of qlae.

>>> import numpy as np
>>> from qlae.metrics import infomec
>>> sources = np.random.default_rng(0).integers(0, 4, size=(200, 2))
>>> infomec(sources, 3 - sources[:, ::-1]).infom > 0.95
True
"""

# isort: off
# One line per metric: importing its file registers it, and the order of these lines is that of METRICS and of tables.
from .infomec import infomec as infomec
from .dci import dci as dci
from .mig import mig as mig
from .sap import sap as sap
from .modularity import modularity as modularity, explicitness as explicitness
from .irs import irs as irs
from .mcc import mcc as mcc
from .conditional_infomec import conditional_infomec as conditional_infomec
from .mig_variants import mig_sup as mig_sup, jemmig as jemmig, dcimig as dcimig
from .mcc_rdc import mcc_rdc as mcc_rdc
from .snc_nk import snc as snc, nk as nk
from .dci_es import dci_es as dci_es
from .reconstruction import psnr, r2, r2_per_feature

# isort: on
from .conditional_infomec import ConditionalInfoMEC
from .dci import DCI
from .heatmap import nmi_figure, plot_nmi
from .infomec import InfoMEC, InformativeCount, active_latents, count_informative
from .information import mutual_information, nmi
from .metric import (
    METRICS,
    Metric,
    MetricResult,
    Score,
    find_metric,
    find_score,
    known_scores,
    metric_names,
    register_metric,
    register_score,
    unregister_metric,
    watched_scores,
)
from .paired import beta_vae_score, factor_vae_score
from .scores import NullScores, Scores, null_scores, print_scores, score, score_file, score_table

__all__ = [
    "DCI",
    "METRICS",
    "ConditionalInfoMEC",
    "InfoMEC",
    "InformativeCount",
    "Metric",
    "MetricResult",
    "NullScores",
    "Score",
    "Scores",
    "active_latents",
    "beta_vae_score",
    "count_informative",
    "factor_vae_score",
    "find_metric",
    "find_score",
    "known_scores",
    "metric_names",
    "mutual_information",
    "nmi",
    "nmi_figure",
    "null_scores",
    "plot_nmi",
    "print_scores",
    "psnr",
    "r2",
    "r2_per_feature",
    "register_metric",
    "register_score",
    "score",
    "score_file",
    "score_table",
    "unregister_metric",
    "watched_scores",
]
__all__ += METRICS  # the functions of the metrics have their names
