"""Scores that need samples which share one source: the β-VAE score and the FactorVAE score.

Both take latents of batches in which one source, the *factor*, is fixed, as in google-research/disentanglement_lib:
`batches` (points, batch, n_z), and `factors` (points,), the index of the fixed source of each point.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .inputs import Floats, Ints, unwrap_tensor
from .metric import MetricResult


def beta_vae_score(
    first: Any, second: Any, factors: Any, *, eval_first: Any, eval_second: Any, eval_factors: Any, seed: int = 0
) -> MetricResult:
    """Compute the β-VAE score (Higgins et al. 2017): accuracy of predicting the fixed source from differences.

    Each point is a batch of pairs whose two members share the source `factors[point]` and differ in the others; its
    feature is the mean over the batch of their absolute difference, classified by logistic regression with
    scikit-learn's defaults.

    Args:
        first, second: (points, batch, n_z) latents of the two members of each pair.
        factors: (points,) index of the source that the pairs share.
        eval_first, eval_second, eval_factors: the same for held-out points.
        seed: of the logistic regression.

    Returns:
        The held-out accuracy, with `details["train_accuracy"]`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> factors = rng.integers(0, 2, 100)
    >>> first, second = rng.normal(size=(2, 100, 8, 2))
    >>> second[np.arange(100), :, factors] = first[np.arange(100), :, factors]
    >>> beta_vae_score(first, second, factors, eval_first=first, eval_second=second, eval_factors=factors).score
    1.0
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    train, labels = _differences(first, second, factors, "first")
    held_out, held_out_labels = _differences(eval_first, eval_second, eval_factors, "eval_first")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(random_state=seed).fit(train, labels)
    accuracy = float(np.mean(model.predict(held_out) == held_out_labels))
    details = {"train_accuracy": float(np.mean(model.predict(train) == labels))}
    return MetricResult("beta_vae_score", accuracy, None, "disentanglement_lib", labels.size, details)


def factor_vae_score(
    latents: Any, batches: Any, factors: Any, *, eval_batches: Any, eval_factors: Any, threshold: float = 0.05
) -> MetricResult:
    """Compute the FactorVAE score (Kim & Mnih 2018): accuracy of a majority vote from the latent that varies least.

    The latent with the least variance in the batch, relative to its overall variance, votes for the fixed source.

    Args:
        latents: (n, n_z) a sample in which all sources vary, for the overall variances.
        batches: (points, batch, n_z) latents of samples that share the source `factors[point]`.
        factors: (points,) index of the fixed source.
        eval_batches, eval_factors: the same for held-out points.
        threshold: latents with a smaller overall standard deviation do not vote; 0.05 in the large study of Locatello
            et al. (2019), 0 in the default of disentanglement_lib's function. Constant latents never vote.

    Returns:
        The held-out accuracy; `matrix` (num_factors, n_z) holds the training votes, `details` the training accuracy.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> factors = rng.integers(0, 2, 100)
    >>> batches = rng.normal(size=(100, 16, 2))
    >>> batches[np.arange(100), :, factors] *= 0.1
    >>> everything = rng.normal(size=(500, 2))
    >>> factor_vae_score(everything, batches, factors, eval_batches=batches, eval_factors=factors).score
    1.0
    """
    overall = np.asarray(unwrap_tensor(latents, "latents"), dtype=np.float64)
    if overall.ndim != 2 or overall.shape[0] < 2 or not np.isfinite(overall).all():
        raise ValueError(f"latents have shape {overall.shape}; give (num_samples, num_latents) of finite numbers.")
    variances = overall.var(axis=0, ddof=1)
    active = (np.sqrt(variances) >= threshold) & (variances > 0)
    train, labels = _points(batches, factors, "batches")
    held_out, held_out_labels = _points(eval_batches, eval_factors, "eval_batches")
    if {train.shape[2], held_out.shape[2]} != {overall.shape[1]}:
        raise ValueError(
            f"latents have {overall.shape[1]} columns, batches {train.shape[2]}, eval_batches {held_out.shape[2]}."
        )
    num_factors = int(max(labels.max(), held_out_labels.max())) + 1
    votes = np.zeros((num_factors, overall.shape[1]), dtype=np.int64)
    details: dict[str, Any] = {"active": active, "train_accuracy": 0.0, "eval_votes": votes.copy()}
    if not active.any():
        return MetricResult("factor_vae_score", 0.0, votes.astype(float), "disentanglement_lib", labels.size, details)
    np.add.at(votes, (labels, _least_varying(train, variances, active)), 1)
    np.add.at(details["eval_votes"], (held_out_labels, _least_varying(held_out, variances, active)), 1)
    voted_for = votes.argmax(axis=0)
    columns = np.arange(overall.shape[1])
    details["train_accuracy"] = float(votes[voted_for, columns].sum() / votes.sum())
    accuracy = float(details["eval_votes"][voted_for, columns].sum() / held_out_labels.size)
    return MetricResult("factor_vae_score", accuracy, votes.astype(float), "disentanglement_lib", labels.size, details)


def _least_varying(batches: Floats, variances: Floats, active: Any) -> Ints:
    """Return (points,) the active latent with the least variance in the batch, relative to its overall variance."""
    local = batches[:, :, active].var(axis=1, ddof=1) / variances[active]
    return np.asarray(np.flatnonzero(active)[local.argmin(axis=1)], dtype=np.int64)


def _differences(first: Any, second: Any, factors: Any, name: str) -> tuple[Floats, Ints]:
    a, labels = _points(first, factors, name)
    b, _ = _points(second, factors, name.replace("first", "second"))
    if a.shape != b.shape:
        raise ValueError(f"{name} has shape {a.shape}, its partner {b.shape}: pairs need equal shapes.")
    return np.abs(a - b).mean(axis=1), labels


def _points(batches: Any, factors: Any, name: str) -> tuple[Floats, Ints]:
    points = np.asarray(unwrap_tensor(batches, name), dtype=np.float64)
    labels = np.asarray(unwrap_tensor(factors, f"the factors of {name}"))
    if points.ndim != 3 or points.shape[0] < 1 or points.shape[1] < 2:
        raise ValueError(f"{name} has shape {points.shape}; give (points, batch, num_latents) with batch ≥ 2.")
    if not np.isfinite(points).all():
        raise ValueError(f"{name} holds NaN or infinite values.")
    if labels.shape != points.shape[:1] or labels.dtype.kind not in "iu" or labels.min() < 0:
        raise ValueError(
            f"the factors of {name} have shape {labels.shape} and type {labels.dtype}; give an index from 0 per point."
        )
    return points, labels.astype(np.int64)
