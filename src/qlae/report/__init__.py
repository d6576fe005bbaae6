"""Reports: tables, pictures and pages from run directories and studies. Never imports torch."""

from .pictures import draw_pictures
from .study import report_study
from .table import intervals_table, print_results, results_table

__all__ = ["draw_pictures", "intervals_table", "print_results", "report_study", "results_table"]
