"""From a trained run to its scores: the evaluation sample, its metrics and their intervals."""
