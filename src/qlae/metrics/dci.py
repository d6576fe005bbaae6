"""DCI: disentanglement, completeness and informativeness from the importances of latents in predicting sources.

Eastwood & Williams (2018), "A Framework for the Quantitative Evaluation of Disentangled Representations". With R_ij the
importance of latent j for source i,

    D = Σ_j ρ_j (1 − H_{n_s}(R_·j / Σ_i R_ij)),  ρ_j = Σ_i R_ij / Σ R        (entropy to base n_s)
    C = Σ_i ρ'_i (1 − H_{n_z}(R_i· / Σ_j R_ij)),  ρ'_i = Σ_j R_ij / Σ R       (entropy to base n_z)
    I = mean held-out accuracy over sources (R², not below 0, for continuous sources).

Protocols:

* `paper` (Hsu et al. 2023, appendix): a random forest a source, 100 trees, entropy criterion, 0.9/0.1 split, depth
  tuned on held-out accuracy. All depths come from one forest (forest.py).
* `tripod` (kylehkhsu/tripod): depth 10, and that code's own split, whatever the seed.
* `disentanglement_lib` (google-research/disentanglement_lib): gradient boosting with scikit-learn's defaults; the first
  ⌈0.9 n⌉ rows train, the rest test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.model_selection import train_test_split

from .forest import forest_by_depth
from .inputs import Floats, Ints, Latents, Sources, check_pair, leave_out_constant, plain_columns, whole_number
from .registry import UNIT, Score, register_metric

DEPTHS = tuple(range(1, 17))


@dataclass(frozen=True, eq=False)
class DCI:
    """Scores in [0, 1], the importances behind them and how the models were chosen."""

    d: float
    """Disentanglement: each latent matters for one source."""
    c: float
    """Completeness: one latent matters for each source."""
    i: float
    """Informativeness: mean held-out accuracy (R² for continuous sources)."""
    importance: Floats
    """(n_s, n_z) importance of each latent for each source; a row sums to 1, or 0 if nothing was learned."""
    accuracy: Floats
    """(n_s,) held-out accuracy of the chosen model."""
    train_accuracy: Floats | None
    """(n_s,) accuracy on the training samples; only where the protocol reports it."""
    depth: Ints | None
    """(n_s,) the chosen depth of each forest."""
    depths: tuple[int, ...]
    """The depths tried."""
    accuracy_by_depth: Floats | None
    """(n_s, num_depths) held-out accuracy of each forest cut off at each depth."""
    protocol: str
    num_samples: int
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, fit for JSON."""
        result: dict[str, Any] = {
            "d": self.d,
            "i": self.i,
            "c": self.c,
            "protocol": self.protocol,
            "num_samples": self.num_samples,
            "seed": self.seed,
        }
        if self.depth is not None:
            result["depth"] = self.depth.tolist()
        return result

    def __str__(self) -> str:
        depth = "" if self.depth is None else f"; depths {', '.join(map(str, self.depth))}"
        return f"D {self.d:.3f}  C {self.c:.3f}  I {self.i:.3f}  [{self.protocol}{depth}; n = {self.num_samples:,}]"

    def __repr__(self) -> str:
        return f"DCI({self})"


@register_metric(
    "dci",
    scores=[
        Score("d", "D", meaning="DCI disentanglement", bounds=UNIT),
        Score("c", "C", meaning="DCI completeness", bounds=UNIT),
        Score("i", "I", meaning="DCI informativeness, held-out accuracy", bounds=UNIT),
    ],
    validates=True,
)
def dci(
    sources: Any,
    latents: Any,
    *,
    protocol: str = "paper",
    depths: Sequence[int] | None = None,
    num_trees: int = 100,
    max_features: str | float | None = "sqrt",
    seed: int = 0,
    n_jobs: int | None = None,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> DCI:
    """Nonlinear DCI (Eastwood & Williams 2018) by trees.

    The trees see codes as numbers. With few latents a forest that considers the square root of their number at each
    split is forced to split on irrelevant ones, which keeps D below 1 even for perfect codes; `max_features=None` lets
    it see all.

    Parameters
    ----------
    sources, latents : as for `infomec`.
    protocol : "paper", "tripod" or "disentanglement_lib".
    depths : depths to choose from, by default 1 to 16 ("paper") or 10 ("tripod").
    num_trees, max_features : of the random forests.
    seed : of the split and of the forests.
    n_jobs : threads for fitting forests, as in scikit-learn; the result is the same.

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).integers(0, 4, size=(400, 2))
    >>> print(dci(sources, sources, num_trees=10, max_features=None))
    D 1.000  C 1.000  I 1.000  [paper; depths 2, 2; n = 400]
    """
    if protocol not in ("paper", "tripod", "disentanglement_lib"):
        raise ValueError(f"protocol is {protocol!r}; allowed are 'paper', 'tripod' and 'disentanglement_lib'.")
    whole_number("seed", seed, 0)
    checked, given = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(checked)
    if protocol == "disentanglement_lib":
        if depths is not None:
            raise ValueError(
                "depths belong to the forests; the protocol 'disentanglement_lib' boosts trees of depth 3."
            )
        return _boosted(checked, given, np.flatnonzero(varying).tolist(), seed)
    tried = tuple(depths) if depths is not None else (DEPTHS if protocol == "paper" else (10,))
    if not tried:
        raise ValueError("depths are empty; give at least one.")
    tried = tuple(whole_number("a depth", depth, 1) for depth in tried)
    whole_number("num_trees", num_trees, 1)
    if not (max_features in (None, "sqrt", "log2") or (isinstance(max_features, int | float) and max_features > 0)):
        raise ValueError(f"max_features is {max_features!r}; give 'sqrt', 'log2', None, or a number above 0.")
    train, test = _split(checked.num_samples, protocol, seed)
    num_sources, values = checked.num_sources, plain_columns(given.values)
    curve, importance = np.zeros((num_sources, len(tried))), np.zeros((num_sources, given.num_latents))
    chosen = np.zeros(num_sources, dtype=np.int64)
    for i in np.flatnonzero(varying).tolist():
        target: Any = checked.labels[:, i] if checked.discrete[i] else plain_columns(checked.values[:, i])
        grown = forest_by_depth(
            values[train],
            target[train],
            values[test],
            target[test],
            depths=tried,
            classify=checked.discrete[i],
            num_trees=num_trees,
            max_features=max_features,
            seed=seed,
            n_jobs=n_jobs,
        )
        best = int(np.argmax(grown.scores))
        curve[i], importance[i], chosen[i] = grown.scores, grown.importances[best], tried[best]
    curve = np.maximum(curve, 0.0)
    return _result(importance, curve.max(axis=1), None, chosen, tried, curve, protocol, checked, seed, varying)


def _boosted(sources: Sources, latents: Latents, index: list[int], seed: int) -> DCI:
    cut, values = _train_size(sources.num_samples), plain_columns(latents.values)
    importance = np.zeros((sources.num_sources, latents.num_latents))
    train_score, test_score = np.zeros(sources.num_sources), np.zeros(sources.num_sources)
    for i in index:
        target: Any
        if sources.discrete[i]:
            target, model = sources.labels[:, i], GradientBoostingClassifier(random_state=seed)
            if np.unique(target[:cut]).size < 2:
                raise ValueError(
                    f"source {i} is constant in the first {cut} rows, which train this protocol: shuffle the rows."
                )
        else:
            target, model = plain_columns(sources.values[:, i]), GradientBoostingRegressor(random_state=seed)
        model.fit(values[:cut], target[:cut])
        importance[i] = np.abs(model.feature_importances_)
        train_score[i] = max(0.0, model.score(values[:cut], target[:cut]))
        test_score[i] = max(0.0, model.score(values[cut:], target[cut:]))
    varying = sources.varying
    return _result(importance, test_score, train_score, None, (), None, "disentanglement_lib", sources, seed, varying)


def _result(
    importance: Floats,
    accuracy: Floats,
    train_accuracy: Floats | None,
    depth: Ints | None,
    depths: tuple[int, ...],
    curve: Floats | None,
    protocol: str,
    sources: Sources,
    seed: int,
    varying: Any,
) -> DCI:
    used = importance[varying]
    return DCI(
        d=specificity(used.T),
        c=specificity(used),
        i=float(accuracy[varying].mean()),
        importance=importance,
        accuracy=accuracy,
        train_accuracy=train_accuracy,
        depth=depth,
        depths=depths,
        accuracy_by_depth=curve,
        protocol=protocol,
        num_samples=sources.num_samples,
        seed=seed,
    )


def specificity(matrix: Floats) -> float:
    """Mean over rows, weighted by their sums, of 1 − entropy of the row (to the base of its length).

    >>> import numpy as np
    >>> round(specificity(np.array([[1.0, 0.0], [0.5, 0.5]])), 6)
    0.5
    """
    total = matrix.sum()
    if total <= 0:
        return 0.0
    if matrix.shape[1] == 1:
        return 1.0
    shares = matrix + 1e-11  # as disentanglement_lib
    shares = shares / shares.sum(axis=1, keepdims=True)
    entropies = -np.sum(shares * np.log(shares), axis=1) / np.log(matrix.shape[1])
    return float(np.clip(np.sum((1.0 - entropies) * matrix.sum(axis=1)) / total, 0.0, 1.0))


def _split(n: int, protocol: str, seed: int) -> tuple[Ints, Ints]:
    """Rows that train and rows that test, 0.9 to 0.1."""
    if protocol == "tripod":
        train, test = train_test_split(np.arange(n), test_size=0.1, random_state=42)
        return train, test
    order = np.random.default_rng(seed).permutation(n)
    return order[: _train_size(n)], order[_train_size(n) :]


def _train_size(n: int) -> int:
    """⌈0.9 n⌉, but at least one sample is held out."""
    return min(int(np.ceil(0.9 * n)), n - 1)
