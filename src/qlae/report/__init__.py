"""Reports of runs: tables for the terminal, pictures, and the parts that HTML pages are made of.

Importing this package does not import torch. The report of a study is in ``qlae.study.report``.
"""

import importlib
import warnings
from typing import Any

from .pictures import draw_pictures
from .table import intervals_table, print_results, results_table

__all__ = ["draw_pictures", "intervals_table", "print_results", "results_table"]


def __getattr__(name: str) -> Any:
    if name == "report_study":
        warnings.warn(
            "qlae.report.report_study has moved to qlae.study.report.report_study", DeprecationWarning, stacklevel=2
        )
        return importlib.import_module("qlae.study.report").report_study
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
