"""Reports of runs: tables for the terminal, pictures, and the parts that HTML pages are made of."""

from .run_pictures import draw_pictures
from .score_table import intervals_table, print_results, results_table

__all__ = ["draw_pictures", "intervals_table", "print_results", "results_table"]
