"""DCI: disentanglement, completeness and informativeness from the importances of latents in predicting sources.

Eastwood & Williams (2018), "A Framework for the Quantitative Evaluation of Disentangled Representations". With R_ij the
importance of latent j for source i,

    D = Σ_j ρ_j (1 − H_{n_s}(R_·j / Σ_i R_ij)),  ρ_j = Σ_i R_ij / Σ R        (entropy to base n_s)
    C = Σ_i ρ'_i (1 − H_{n_z}(R_i· / Σ_j R_ij)),  ρ'_i = Σ_j R_ij / Σ R       (entropy to base n_z)
    I = mean held-out accuracy over sources (R², not below 0, for continuous sources).

Protocols:

* `paper` (Hsu et al. 2023, appendix): one random forest per source, 100 trees, entropy criterion, 0.9/0.1 split, depth
  tuned on held-out accuracy. All depths come from one forest (forest.py).
* `tripod` (kylehkhsu/tripod): depth 10, and the fixed split of that code, which does not depend on the seed.
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
from .splits import random_split, train_size

DEPTHS = tuple(range(1, 17))
PROTOCOLS = ("paper", "tripod", "disentanglement_lib")


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
    """(n_s,) accuracy on the training samples; only with the protocol "disentanglement_lib"."""
    depth: Ints | None
    """(n_s,) the chosen depth of each forest."""
    depths: tuple[int, ...]
    """The depths tried."""
    accuracy_by_depth: Floats | None
    """(n_s, num_depths) held-out accuracy of each forest, truncated at each depth."""
    protocol: str
    num_samples: int
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists, suitable for JSON."""
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
    """Compute nonlinear DCI (Eastwood & Williams 2018) by trees.

    The trees see codes as numbers. With few latents, a forest that considers the square root of their number at each
    split is forced to split on irrelevant ones, which keeps D below 1 even for perfect codes; with `max_features=None`
    it considers all.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        protocol: "paper", "tripod" or "disentanglement_lib".
        depths: depths to choose from, by default 1 to 16 ("paper") or 10 ("tripod").
        num_trees, max_features: of the random forests.
        seed: of the split and of the forests.
        n_jobs: threads that fit forests, as in scikit-learn; the result does not depend on it.

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).integers(0, 4, size=(400, 2))
    >>> print(dci(sources, sources, num_trees=10, max_features=None))
    D 1.000  C 1.000  I 1.000  [paper; depths 2, 2; n = 400]
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol is {protocol!r}; allowed are 'paper', 'tripod' and 'disentanglement_lib'.")
    whole_number("seed", seed, 0)
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    leave_out_constant(s)
    if protocol == "disentanglement_lib":
        if depths is not None:
            raise ValueError(
                "depths belong to random forests; the protocol 'disentanglement_lib' boosts trees of depth 3."
            )
        return _boosted(s, z, seed)
    tried = _check_depths(protocol, depths)
    whole_number("num_trees", num_trees, 1)
    if not (max_features in (None, "sqrt", "log2") or (isinstance(max_features, int | float) and max_features > 0)):
        raise ValueError(f"max_features is {max_features!r}; give 'sqrt', 'log2', None, or a number above 0.")
    train, test = _split(s.num_samples, protocol, seed)
    values = plain_columns(z.values)
    curve, importance = np.zeros((s.num_sources, len(tried))), np.zeros((s.num_sources, z.num_latents))
    depth = np.zeros(s.num_sources, dtype=np.int64)
    for i in np.flatnonzero(s.varying).tolist():
        target: Any = s.labels[:, i] if s.discrete[i] else plain_columns(s.values[:, i])
        forest = forest_by_depth(
            values[train],
            target[train],
            values[test],
            target[test],
            depths=tried,
            classify=s.discrete[i],
            num_trees=num_trees,
            max_features=max_features,
            seed=seed,
            n_jobs=n_jobs,
        )
        best = int(np.argmax(forest.scores))
        curve[i], importance[i], depth[i] = forest.scores, forest.importances[best], tried[best]
    curve = np.maximum(curve, 0.0)
    return _result(s, protocol, seed, importance, curve.max(axis=1), depth=depth, depths=tried, accuracy_by_depth=curve)


def _check_depths(protocol: str, depths: Sequence[int] | None) -> tuple[int, ...]:
    if depths is None:
        return DEPTHS if protocol == "paper" else (10,)
    checked = tuple(whole_number("a depth", depth, 1) for depth in depths)
    if not checked:
        raise ValueError("depths are empty; give at least one.")
    return checked


def _split(n: int, protocol: str, seed: int) -> tuple[Ints, Ints]:
    """Return the numbers of the training rows and of the test rows."""
    if protocol == "tripod":
        train, test = train_test_split(np.arange(n), test_size=0.1, random_state=42)
        return train, test
    return random_split(n, seed)


def _boosted(sources: Sources, latents: Latents, seed: int) -> DCI:
    cut, values = train_size(sources.num_samples), plain_columns(latents.values)
    importance = np.zeros((sources.num_sources, latents.num_latents))
    train_accuracy, test_accuracy = np.zeros(sources.num_sources), np.zeros(sources.num_sources)
    for i in np.flatnonzero(sources.varying).tolist():
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
        train_accuracy[i] = max(0.0, model.score(values[:cut], target[:cut]))
        test_accuracy[i] = max(0.0, model.score(values[cut:], target[cut:]))
    return _result(sources, "disentanglement_lib", seed, importance, test_accuracy, train_accuracy=train_accuracy)


def _result(
    sources: Sources,
    protocol: str,
    seed: int,
    importance: Floats,
    accuracy: Floats,
    *,
    train_accuracy: Floats | None = None,
    depth: Ints | None = None,
    depths: tuple[int, ...] = (),
    accuracy_by_depth: Floats | None = None,
) -> DCI:
    varying = sources.varying
    return DCI(
        d=specificity(importance[varying].T),
        c=specificity(importance[varying]),
        i=float(accuracy[varying].mean()),
        importance=importance,
        accuracy=accuracy,
        train_accuracy=train_accuracy,
        depth=depth,
        depths=depths,
        accuracy_by_depth=accuracy_by_depth,
        protocol=protocol,
        num_samples=sources.num_samples,
        seed=seed,
    )


def specificity(matrix: Floats) -> float:
    """Return the mean over rows, weighted by their sums, of 1 − entropy of the row (to the base of its length).

    >>> import numpy as np
    >>> round(specificity(np.array([[1.0, 0.0], [0.5, 0.5]])), 6)
    0.5
    """
    total = matrix.sum()
    if total <= 0:
        return 0.0
    if matrix.shape[1] == 1:
        return 1.0
    shares = matrix + 1e-11  # as in disentanglement_lib
    shares = shares / shares.sum(axis=1, keepdims=True)
    entropies = -np.sum(shares * np.log(shares), axis=1) / np.log(matrix.shape[1])
    return float(np.clip(np.sum((1.0 - entropies) * matrix.sum(axis=1)) / total, 0.0, 1.0))
