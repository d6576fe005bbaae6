"""The report of a study: tables beside the paper's, rank correlations, figures, and one HTML page."""

from .writing import report_study

__all__ = ["report_study"]
