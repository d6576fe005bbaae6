"""The report of a study: tables with the published numbers, rank correlations, figures, and one HTML page."""

from .study_page import report_study

__all__ = ["report_study"]
