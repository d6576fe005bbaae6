"""Training: one trainer for every objective."""

from .launch import train, train_run
from .trainer import TrainingDiverged, TrainingInterrupted

__all__ = ["TrainingDiverged", "TrainingInterrupted", "train", "train_run"]
