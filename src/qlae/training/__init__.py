"""Training: one trainer for every objective."""

from .callbacks import Callback
from .trainer import TrainingDiverged, TrainingInterrupted, train_run

__all__ = ["Callback", "TrainingDiverged", "TrainingInterrupted", "train_run"]
