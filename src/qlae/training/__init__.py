"""Training: one trainer for every objective."""

from .callbacks import Callback
from .launch import train_run
from .trainer import TrainingDiverged, TrainingInterrupted

__all__ = ["Callback", "TrainingDiverged", "TrainingInterrupted", "train_run"]
