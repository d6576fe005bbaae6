"""How faithful reconstructions are, for each kind of observations: measured with the model, scored without it.

``ExplainedVariance(form, sample)`` and ``Psnr(form, sample)`` measure batch by batch: ``add(outputs, inputs)`` takes
the outputs of the decoder and the inputs of the encoder. Their ``arrays()`` are stored in ``sample.npz``.
``score_fidelity`` computes scores and intervals from these arrays, whichever they are. Nothing here imports torch.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics.reconstruction import psnr_of_errors, r2_of_errors
from .shares import explained_share, interval_of
from .table_fidelity import TableFidelity

Arrays = dict[str, NDArray[Any]]


class Psnr:
    """The PSNR of each image, in decibels, from the mean squared error of intensities in [0, 1]."""

    key = "psnr"  # of the score
    parts = ("psnr",)

    def __init__(self, form: Any, sample: Any):
        self.form = form
        self._rows: list[NDArray[np.float32]] = []

    def add(self, outputs: Any, inputs: Any) -> None:
        errors = (self.form.to_mean(outputs) - inputs).square().mean((1, 2, 3)).cpu().numpy()
        self._rows.append(psnr_of_errors(errors).astype(np.float32))

    def arrays(self) -> Arrays:
        return {"psnr": np.concatenate(self._rows)}

    @staticmethod
    def score(arrays: Arrays) -> dict[str, Any]:
        """Return the mean over images."""
        return {"psnr": float(arrays["psnr"].mean(dtype=np.float64))}

    @staticmethod
    def rows(arrays: Arrays) -> NDArray[Any]:
        """Return the PSNR of each image."""
        return arrays["psnr"]

    @staticmethod
    def score_unseen(arrays: Arrays) -> float:
        return float(Psnr.score(arrays)["psnr"])

    @staticmethod
    def intervals(arrays: Arrays, num_halves: int) -> dict[str, list[float]]:
        """Return the 95% interval of the mean."""
        values = arrays["psnr"].astype(np.float64)
        return {"psnr": interval_of(lambda rows: float(values[rows].mean()), len(values), num_halves)}


class ExplainedVariance:
    """R² of standardised features: of each, and over all of them.

    ``errors`` and ``variances`` hold squared errors and squared deviations from the sample's mean: for each observation
    the mean over features, each divided by its variance in the sample, and for each feature the mean over observations.
    """

    key = "r2"  # of the score over all features
    parts = ("errors", "variances", "feature_errors", "feature_variances")

    def __init__(self, form: Any, sample: NDArray[Any]):
        self.form = form
        observations = form.observations
        scale = np.asarray(observations.scale)
        values = (np.asarray(sample, np.float64) - np.asarray(observations.offset)) / scale
        axes = tuple(range(values.ndim - 1))
        self._mean = values.mean(axes)
        self._variance = np.where(np.ptp(values, axes) > 0, values.var(axes), 0.0)  # a constant rounds to above 0
        self._weights = np.where(self._variance > 0, 1 / np.where(self._variance > 0, self._variance, 1.0), 0.0)
        self._errors: list[NDArray[np.float64]] = []
        self._deviations: list[NDArray[np.float64]] = []

    def add(self, outputs: Any, inputs: Any) -> None:
        mean = inputs.new_tensor(self._mean)
        is_series = inputs.dim() == 3  # (b, c, t)
        for differences, rows in (
            (self.form.to_mean(outputs) - inputs, self._errors),
            (inputs - (mean[:, None] if is_series else mean), self._deviations),
        ):
            squares = differences.double().square()
            rows.append((squares.mean(2) if is_series else squares).cpu().numpy())

    def arrays(self) -> Arrays:
        errors, deviations = np.concatenate(self._errors), np.concatenate(self._deviations)
        return {
            "errors": (errors * self._weights).mean(1),
            "variances": (deviations * self._weights).mean(1),
            "feature_errors": errors.mean(0),
            "feature_variances": np.where(self._variance > 0, deviations.mean(0), 0.0),
        }

    @staticmethod
    def score(arrays: Arrays) -> dict[str, Any]:
        """Return R², and R² of each feature; None for features that do not vary."""
        shares = r2_of_errors(arrays["feature_errors"], arrays["feature_variances"])
        each = [None if np.isnan(share) else round(float(share), 6) for share in shares]
        return {"r2": explained_share(arrays["errors"], arrays["variances"]), "r2_features": each}

    @staticmethod
    def rows(arrays: Arrays) -> NDArray[np.float64]:
        """Return a number for each observation, whose mean is R²."""
        total = arrays["variances"].mean()
        return np.asarray(1 - arrays["errors"] / total if total > 0 else np.zeros(len(arrays["errors"])))

    @staticmethod
    def score_unseen(arrays: Arrays) -> float:
        """Return R² of data that the model was not fitted to.

        Features are standardised by the statistics of the training data alone. A feature that hardly varies in a small
        sample would dominate if it were divided by its variance there.
        """
        return explained_share(arrays["feature_errors"], arrays["feature_variances"])

    @staticmethod
    def intervals(arrays: Arrays, num_halves: int) -> dict[str, list[float]]:
        """Return the 95% interval of R²."""
        errors, variances = arrays["errors"], arrays["variances"]
        return {"r2": interval_of(lambda rows: explained_share(errors[rows], variances[rows]), len(errors), num_halves)}


FIDELITIES: tuple[Any, ...] = (Psnr, ExplainedVariance, TableFidelity)
PARTS = tuple(part for fidelity in FIDELITIES for part in fidelity.parts)
LEAST_ERROR = 1e-10  # share of the variance, as for the PSNR, which is capped at 100 dB


def score_fidelity(arrays: Arrays, num_halves: int) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Return scores and, from ``num_halves`` half-samples if any, confidence intervals."""
    scores: dict[str, Any] = {}
    intervals: dict[str, list[float]] = {}
    for fidelity in FIDELITIES:
        if all(part in arrays for part in fidelity.parts):
            scores |= fidelity.score(arrays)
            if num_halves:
                intervals |= fidelity.intervals(arrays, num_halves)
    return scores, intervals


def score_unseen(arrays: Arrays) -> dict[str, Any]:
    """Return the scores of data that the model was not trained on."""
    for fidelity in FIDELITIES:
        if all(part in arrays for part in fidelity.parts):
            return {**fidelity.score(arrays), fidelity.key: fidelity.score_unseen(arrays)}
    return {}


def score_rows(arrays: Arrays) -> tuple[str, NDArray[Any]] | None:
    """Return the key of the score of reconstructions, and a number for each observation whose mean is the score."""
    for fidelity in FIDELITIES:
        if all(part in arrays for part in fidelity.parts):
            return fidelity.key, fidelity.rows(arrays)
    return None


def fidelity_db(scores: Mapping[str, Any]) -> float | None:
    """Return how faithful reconstructions are, in decibels: the PSNR of images, or −10 log10(1 − R²) of other data.

    Both are ratios of a signal to the mean squared error, so a distance means the same: 6 dB are twice the error.

    >>> round(fidelity_db({"r2": 0.99}), 6), fidelity_db({"psnr": 30.0}), fidelity_db({})
    (20.0, 30.0, None)
    """
    if "psnr" in scores:
        return float(scores["psnr"])
    return -10 * math.log10(max(1 - scores["r2"], LEAST_ERROR)) if "r2" in scores else None
