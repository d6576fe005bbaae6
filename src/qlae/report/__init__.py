"""Reports: tables and pictures from run directories. Never imports torch."""

from .pictures import draw_pictures
from .table import results_table

__all__ = ["draw_pictures", "results_table"]
