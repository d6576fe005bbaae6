"""The former place of the titles of scores, which are in `qlae.report.titles`."""

from .titles import TITLES  # alias until merge

__all__ = ["TITLES"]
