"""Choosing among runs without labels: by how much the representations of different runs agree."""

from .agreement import Representation, agreement, represent, similarity
from .ranking import RankedRun, Selection, select

__all__ = ["RankedRun", "Representation", "Selection", "agreement", "represent", "select", "similarity"]
