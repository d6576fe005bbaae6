"""Choosing among runs without labels: by how much the representations of different runs agree.

Importing this package does not import torch; only the straight-through gap needs it, and images that runs do not share.
"""

from .agreement import agreement, similarity
from .ranking import select
from .representation import Representation, represent
from .result import RankedRun, Selection

__all__ = ["RankedRun", "Representation", "Selection", "agreement", "represent", "select", "similarity"]
