"""Metrics of disentanglement over plain arrays: sources (n, n_s) and latents (n, n_z).

This package needs no model and imports neither torch nor the rest of qlae.

>>> import numpy as np
>>> from qlae.metrics import infomec
>>> sources = np.random.default_rng(0).integers(0, 4, size=(200, 2))
>>> infomec(sources, 3 - sources[:, ::-1]).infom > 0.95
True
"""

# isort: off
# Importing a metric's file registers the metric, so the order of these lines is the order of METRICS and of tables.
from .infomec import InfoMEC, infomec
from .dci import DCI, dci
from .mig import mig
from .sap import sap
from .modularity import explicitness, modularity
from .irs import irs
from .mcc import mcc
from .psnr import psnr
from .r2 import r2, r2_per_feature

# isort: on
from .heatmap import nmi_figure, plot_nmi
from .information import mutual_information, nmi
from .informative_count import InformativeCount, count_informative
from .null_encoder import NullScores, null_scores, null_scores_of_file
from .paired import beta_vae_score, factor_vae_score
from .protocols import active_latents
from .registry import (
    METRICS,
    Metric,
    Score,
    find_metric,
    find_score,
    known_scores,
    metric_names,
    metric_of,
    register_metric,
    register_score,
    unregister_metric,
    watched_scores,
)
from .result import MetricResult
from .scoring import Scores, score, score_file
from .table import print_scores, score_table

__all__ = [
    "DCI",
    "METRICS",
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
    "dci",
    "explicitness",
    "factor_vae_score",
    "find_metric",
    "find_score",
    "infomec",
    "irs",
    "known_scores",
    "mcc",
    "metric_names",
    "metric_of",
    "mig",
    "modularity",
    "mutual_information",
    "nmi",
    "nmi_figure",
    "null_scores",
    "null_scores_of_file",
    "plot_nmi",
    "print_scores",
    "psnr",
    "r2",
    "r2_per_feature",
    "register_metric",
    "register_score",
    "sap",
    "score",
    "score_file",
    "score_table",
    "unregister_metric",
    "watched_scores",
]
