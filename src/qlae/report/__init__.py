"""Reports of runs: tables for the terminal, pictures, and the parts that HTML pages are made of.

Importing this package does not import torch. The report of a study is in ``qlae.study.report``.
"""

from .pictures import draw_pictures
from .table import intervals_table, print_results, results_table

__all__ = ["draw_pictures", "intervals_table", "print_results", "results_table"]
