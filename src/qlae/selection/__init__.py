"""Comparing runs without labels: which to take (`ranking`), and on which factors they agree (`consensus`).

Importing this package, or a consensus of arrays, does not import torch.
"""

from .agreement import Representation, agreement, represent, similarity

__all__ = ["Representation", "agreement", "represent", "similarity"]
