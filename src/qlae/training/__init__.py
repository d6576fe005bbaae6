"""Training: one trainer for every objective."""

from .._moved import former_names
from .callbacks import Callback
from .trainer import TrainingDiverged, TrainingInterrupted, train_run

__all__ = ["Callback", "TrainingDiverged", "TrainingInterrupted", "train_run"]

__getattr__ = former_names(__name__, {"train": "pipeline.train"})
