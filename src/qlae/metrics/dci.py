"""DCI: disentanglement, completeness and informativeness from the importances of latents in predicting sources.

Eastwood & Williams (2018), "A Framework for the Quantitative Evaluation of Disentangled Representations". With R_ij the
importance of latent j for source i,

    D = Σ_j ρ_j (1 − H_{n_s}(R_·j / Σ_i R_ij)),  ρ_j = Σ_i R_ij / Σ R        (entropy to base n_s)
    C = Σ_i ρ'_i (1 − H_{n_z}(R_i· / Σ_j R_ij)),  ρ'_i = Σ_j R_ij / Σ R       (entropy to base n_z)
    I = mean held-out accuracy over sources (R², not below 0, for continuous sources).

A forest that considers √n_z latents per split must often split on latents that say nothing about the source, so D of an
ideal representation is about 0.5 to 0.7, not 1; `max_features="all"` gives 1. The literature reports the former.

Protocols:

* `paper` (Hsu et al. 2023, appendix): one random forest per source, 100 trees, entropy criterion, 0.9/0.1 split, depth
  tuned on held-out accuracy. All depths come from one forest (forest.py). I is the accuracy on the rows that chose the
  depth, so it is too high: above chance even for noise. `split="honest"` chooses the depth on other rows.
* `tripod` (kylehkhsu/tripod): depth 10, and the fixed split of that code, which does not depend on the seed.
* `disentanglement_lib` (google-research/disentanglement_lib): gradient boosting with scikit-learn's defaults; the first
  ⌈0.9 n⌉ rows train, the rest test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .forest import IMPLEMENTATIONS, features_per_split, forest_by_depth
from .inputs import (
    MAX_DRAWS,
    Floats,
    Ints,
    Latents,
    Sources,
    check_pair,
    honest_split,
    leave_out_constant,
    plain_columns,
    random_split,
    require_choice,
    train_size,
    whole_number,
)
from .metric import UNIT, Score, register_metric

DEPTHS = tuple(range(1, 17))
PROTOCOLS = ("paper", "tripod", "disentanglement_lib")
SPLITS = ("paper", "honest")
_LABELS = {"sqrt": "√n_z", "log2": "log₂ n_z"}  # max_features → text for readers


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
    chance: Floats
    """(n_s,) accuracy on the same rows of guessing the most frequent class; 0 for continuous sources."""
    split: str
    """Rows of I: "paper", those that chose the depths, or "honest", others."""
    protocol: str
    num_samples: int
    seed: int
    train_accuracy: Floats | None = None
    """(n_s,) accuracy on the training samples; only with the protocol "disentanglement_lib". The following fields are
    those of the other protocols."""
    depth: Ints | None = None
    """(n_s,) the chosen depth of each forest."""
    depths: tuple[int, ...] = ()
    """The depths tried."""
    accuracy_by_depth: Floats | None = None
    """(n_s, num_depths) accuracy of each forest, truncated at each depth, on the rows that choose the depth."""
    max_features: str | float | None = None
    """Latents that each split considers: a word, a number or a share."""
    forest: str | None = None
    """Implementation of the forests: "numba" or "scikit-learn"."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists, suitable for JSON."""
        result: dict[str, Any] = {"d": self.d, "i": self.i, "c": self.c, "chance": self.mean_chance}
        result |= {key: getattr(self, key) for key in ("split", "protocol", "num_samples", "seed")}
        if self.depth is not None:
            result |= {"depth": self.depth.tolist(), "max_features": self.max_features, "forest": self.forest}
        return result

    @property
    def mean_chance(self) -> float:
        """The I of guessing the most frequent class of each source."""
        return float(self.chance[np.isfinite(self.chance)].mean())

    def __str__(self) -> str:
        depth = "" if self.depth is None else f"; depths {', '.join(map(str, self.depth))}"
        honest = ", honest split" if self.split == "honest" else ""
        features = _LABELS.get(str(self.max_features), f"{self.max_features}")
        split = "" if self.max_features is None else f"; {features} latents per split"
        return (
            f"D {self.d:.3f}  C {self.c:.3f}  I {self.i:.3f} (chance {self.mean_chance:.3f})  "
            f"[{self.protocol}{honest}{depth}{split}; n = {self.num_samples:,}]"
        )

    def __repr__(self) -> str:
        return f"DCI({self})"


@register_metric(
    "dci",
    scores=[
        Score("d", "D", meaning="DCI disentanglement", bounds=UNIT),
        Score("c", "C", meaning="DCI completeness", bounds=UNIT),
        Score("i", "I", meaning="DCI informativeness, held-out accuracy", bounds=UNIT),
    ],
    takes_checked=True,
)
def dci(
    sources: Any,
    latents: Any,
    *,
    protocol: str = "paper",
    depths: Sequence[int] | None = None,
    num_trees: int = 100,
    max_features: str | float | None = "sqrt",
    split: str = "paper",
    forest: str = "numba",
    seed: int = 0,
    n_jobs: int | None = None,
    source_kinds: str | Sequence[str] = "auto",
    latent_kind: str = "auto",
) -> DCI:
    """Compute nonlinear DCI (Eastwood & Williams 2018) by trees.

    The trees see codes as numbers. D of an ideal representation is 0.5 to 0.7 for forests as in the literature, and 1
    with ``max_features="all"``.

    Args:
        sources, latents, source_kinds, latent_kind: as for `infomec`.
        protocol: "paper", "tripod" or "disentanglement_lib".
        depths: depths to choose from, by default 1 to 16 ("paper") or 10 ("tripod").
        num_trees: size of each forest.
        max_features: latents that each split considers: "sqrt", "log2", "all" (or None), a whole number, or a share
            up to 1.0.
        split: "paper": nine tenths of the rows train, and the others both choose the depth and give I. "honest": eight
            tenths train, one tenth chooses the depth, and the last tenth gives I.
        forest: implementation of the forests: "numba", compiled on the first call, or "scikit-learn", which takes ten
            times as long. Their random numbers differ, so the results agree in distribution, not exactly.
        seed: of the split and of the forests.
        n_jobs: threads that fit forests, as in scikit-learn; the result does not depend on it.

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).integers(0, 4, size=(400, 2))
    >>> print(dci(sources, sources, num_trees=10, max_features="all"))
    D 1.000  C 1.000  I 1.000 (chance 0.200)  [paper; depths 2, 2; all latents per split; n = 400]
    """
    require_choice("protocol", protocol, PROTOCOLS)
    require_choice("split", split, SPLITS)
    require_choice("forest", forest, IMPLEMENTATIONS)
    if split == "honest" and protocol != "paper":
        raise ValueError(f"split='honest' belongs to the protocol 'paper'; {protocol!r} has its own split.")
    whole_number("seed", seed, 0)
    s, z = check_pair(sources, latents, source_kinds=source_kinds, latent_kind=latent_kind)
    varying = leave_out_constant(s)
    if protocol == "disentanglement_lib":
        if depths is not None:
            raise ValueError("depths belong to random forests; this protocol boosts trees of depth 3.")
        fields = _boost(s, z, seed)
    else:
        options: dict[str, Any] = {
            "depths": _check_depths(protocol, depths),
            "num_trees": whole_number("num_trees", num_trees, 1, MAX_DRAWS),
            "num_drawn": features_per_split(max_features, z.num_latents),
            "implementation": forest,
            "seed": seed,
            "n_jobs": n_jobs,
        }
        fields = _grow_forests(s, z, _split(s.num_samples, protocol, split, seed), options)
        fields |= {"max_features": "all" if max_features is None else max_features, "forest": forest}
    fields |= {"split": split, "protocol": protocol, "num_samples": s.num_samples, "seed": seed}
    importance, i = fields["importance"][varying], float(fields["accuracy"][varying].mean())
    return DCI(d=specificity(importance.T), c=specificity(importance), i=i, **fields)


def _targets(sources: Sources) -> Iterator[tuple[int, bool, Any]]:
    """Yield the number of each source that varies, whether it has classes, and its labels or values (n,)."""
    for i in np.flatnonzero(sources.varying).tolist():
        classify = sources.discrete[i]
        yield i, classify, sources.labels[:, i] if classify else plain_columns(sources.values[:, i])


def _grow_forests(
    sources: Sources, latents: Latents, split: tuple[Ints, Ints, Ints], options: dict[str, Any]
) -> dict[str, Any]:
    """Fit one forest per source, and return the fields of `DCI` at the depths with the best accuracy."""
    train, choose, test = split
    held_out = choose if choose is test else np.concatenate([choose, test])
    chosen_by, scored_by = slice(0, choose.size), slice(held_out.size - test.size, None)
    depths, values = options["depths"], plain_columns(latents.values)
    fields = _empty_fields(sources, latents) | {"depths": depths}
    curve, depth = np.zeros((sources.num_sources, len(depths))), np.zeros(sources.num_sources, dtype=np.int64)
    for i, classify, target in _targets(sources):
        fit = forest_by_depth(values[train], target[train], values[held_out], classify=classify, **options)
        curve[i] = fit.scores(target[held_out], chosen_by)
        best = int(np.argmax(curve[i]))
        fields["accuracy"][i] = max(0.0, fit.scores(target[held_out], scored_by)[best])
        fields["importance"][i], depth[i] = fit.importances[best], depths[best]
        fields["chance"][i] = _chance(target[train], target[test]) if classify else 0.0
    return fields | {"depth": depth, "accuracy_by_depth": np.maximum(curve, 0.0)}


def _boost(sources: Sources, latents: Latents, seed: int) -> dict[str, Any]:
    """Boost trees for each source, and return the fields of `DCI`."""
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    cut, values = train_size(sources.num_samples), plain_columns(latents.values)
    fields = _empty_fields(sources, latents) | {"train_accuracy": np.zeros(sources.num_sources)}
    for i, classify, target in _targets(sources):
        if classify and np.unique(target[:cut]).size < 2:
            raise ValueError(
                f"source {i} is constant in the first {cut} rows, which train this protocol: shuffle the rows."
            )
        model = (GradientBoostingClassifier if classify else GradientBoostingRegressor)(random_state=seed)
        model.fit(values[:cut], target[:cut])
        fields["importance"][i] = np.abs(model.feature_importances_)
        fields["train_accuracy"][i] = max(0.0, model.score(values[:cut], target[:cut]))
        fields["accuracy"][i] = max(0.0, model.score(values[cut:], target[cut:]))
        fields["chance"][i] = _chance(target[:cut], target[cut:]) if classify else 0.0
    return fields


def _empty_fields(sources: Sources, latents: Latents) -> dict[str, Any]:
    num_sources, num_latents = sources.num_sources, latents.num_latents
    importance, chance = np.zeros((num_sources, num_latents)), np.full(num_sources, np.nan)
    return {"importance": importance, "accuracy": np.zeros(num_sources), "chance": chance}


def _check_depths(protocol: str, depths: Sequence[int] | None) -> tuple[int, ...]:
    if depths is None:
        return DEPTHS if protocol == "paper" else (10,)
    if not len(depths):
        raise ValueError("depths are empty; give at least one.")
    return tuple(whole_number("a depth", depth, 1) for depth in depths)


def _split(n: int, protocol: str, split: str, seed: int) -> tuple[Ints, Ints, Ints]:
    """Return the numbers of the rows that train, that choose the depth and that give I (for "paper" the same)."""
    from sklearn.model_selection import train_test_split

    if split == "honest":
        return honest_split(n, seed)
    if protocol == "tripod":
        train, test = train_test_split(np.arange(n), test_size=0.1, random_state=42)
    else:
        train, test = random_split(n, seed)
    return train, test, test


def _chance(train: Ints, test: Ints) -> float:
    """Return the accuracy on test labels of guessing the most frequent training label."""
    return float((test == np.bincount(train).argmax()).mean())


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
