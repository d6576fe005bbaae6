"""Consensus of several runs: the latents on which independent trainings agree, found without labels.

A latent that encodes one source has a counterpart in every run that found the source. Entangled latents are entangled
differently in each run. So the latents of other runs can play the part that sources play in InfoMEC. All runs are
compared on the same observations; I is mutual information minus its amount by chance, and H is entropy.

* The *similarity* of two latents is R_ij = I_ij / √(H_i H_j).
* The *replicability* of a latent is the mean, over the other runs, of its best similarity there.
* The *purity* of a latent stands for its modularity. Draw two latents a, b of other runs, with probability in
  proportion to their similarity to i times their replicability: purity is the probability that they depend on each
  other, d_ab = 1 − exp(−R_ab / DEPENDENT), rescaled so that pairs drawn without regard to i give 0. A latent of one
  source is only similar to latents of this source, which depend on each other; a mixture also to latents of either of
  its parts, which do not. A mixture that most runs share is also recognised by the *parts* that some runs have: if runs
  contain two independent, replicated latents that are each informative about i, the smaller of the two amounts counts
  against it.
* The *coverage* of a set of latents is the share of the entropy of every latent of every run that the best pair of the
  set explains, up to the share that another run explains on average. Every source counts about once: latents are
  weighted by their purity and divided by the number of latents like them.

The consensus is the cheapest set of latents whose coverage is `COVERAGE`, where a latent costs its impurity plus
`PRICE`: it is found greedily, then improved by leaving out and exchanging latents. So a consensus is about as
informative as a run, as far as runs agree, and made of the purest latents. More runs offer a larger choice.

Each latent of the result is a `Factor`, which knows its counterparts in the other runs. Latents that some runs miss can
be part of the code; whether a factor is *confirmed* is a separate question: at least half of the other runs must have
found it. There is no consensus at all if no latent has clear counterparts.

This module does not import torch. ``docs/consensus.md`` has the evidence.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..metrics.information import entropy, sum_count_log_count
from ..metrics.inputs import Floats, Ints
from .agreement import Representation, represent

MIN_ENTROPY = 0.15  # nats of a latent that can be part of a consensus
DEPENDENT = 0.02  # similarity of latents that depend on each other rather than not
INDEPENDENT = 0.01  # similarity of the independent parts of a mixture
MIN_PART = 0.4  # replicability of the parts of a mixture
COVERAGE = 0.98  # of what the runs explain about each other
PRICE = 0.05  # of a latent, in units of impurity
MIN_GAIN = 0.006  # of coverage, by a latent that enters the consensus
FOUND = 0.4  # similarity of a counterpart, from which on a run counts as having found a factor
CLEAR = 0.55  # similarity that one factor must reach in half of the other runs, or there is no consensus
CONFIRMED = 0.5  # share of the other runs that must have found a confirmed factor
TIMES_CHANCE = 3.0  # a counterpart is at least so many times as similar as the best by chance
MAX_ROWS = 10_000  # observations that are compared
MIN_HALF = 500  # observations in half of the sample, to see whether factors are found again there
MAX_LEVELS = 32  # labels of a latent; rarer ones share the last


@dataclass(frozen=True)
class Factor:
    """A latent of the consensus, and its counterparts in the other runs.

    Attributes:
        run: position of the run that the latent is taken from.
        latent: its column in that run.
        purity: modularity as far as other runs can tell; 1 is best, 0 that of an arbitrary latent.
        replicability: mean, over the other runs, of the similarity of its counterpart.
        counterparts: for each run, the column of the most similar latent; -1 for a run without used latents.
        similarities: for each run, the similarity of that latent, from 0 to 1; 1 for the run that the factor is from.
        found: for each run, whether it found the factor.
        stability: share of the consensuses with one of the other runs left out, and in either half of the observations,
            that have a latent like this one; NaN for two runs on few observations.
        is_confirmed: whether at least half of the other runs found the factor, and the runs have a consensus at all.
    """

    run: int
    latent: int
    purity: float
    replicability: float
    counterparts: tuple[int, ...]
    similarities: tuple[float, ...]
    found: tuple[bool, ...]
    stability: float
    is_confirmed: bool

    @property
    def num_found(self) -> int:
        """The number of runs that found the factor, including its own."""
        return sum(self.found)

    @property
    def status(self) -> str:
        """``"confirmed"``, found by ``"some"`` other runs, or by ``"none"``."""
        return "confirmed" if self.is_confirmed else "some" if self.num_found > 1 else "none"

    def describe(self) -> str:
        """Return the verdict on the factor in a sentence."""
        return describe_found(self.num_found - 1, len(self.found) - 1, self.status)


def describe_found(found: int, others: int, status: str) -> str:
    """Return the verdict on a latent with a status, as of `Factor`, that some of the other runs found.

    >>> describe_found(3, 4, "confirmed"), describe_found(1, 1, "confirmed")
    ('found again by 3 of 4 other runs', 'found again by the other run')
    """
    if status == "confirmed":
        few = f"{found} of {others} other runs"
        return f"found again by {'the other run' if others == 1 else 'all other runs' if found == others else few}"
    if status == "some":
        return f"found again by {found} of {others} other runs: do not rely on it"
    return "not found by any other run: do not name it"


@dataclass(frozen=True, eq=False)
class FoundFactors:
    """What several representations of the same observations agree on.

    Attributes:
        factors: the latents of the consensus, the most replicable first.
        codes: (n, number of factors) the labels of these latents.
        coverage: the share of what one run explains about the others that the consensus explains.
        num_used: for each run, its latents that were compared.
        chance: the highest replicability of a latent if the rows of each run are shuffled.
        found_again: for each run, by column of its compared latents, the number of other runs that found the latent.
    """

    factors: tuple[Factor, ...]
    codes: Ints
    coverage: float
    num_used: tuple[int, ...]
    chance: float
    found_again: tuple[dict[int, int], ...] = ()

    @property
    def confirmed(self) -> tuple[Factor, ...]:
        """The confirmed factors."""
        return tuple(factor for factor in self.factors if factor.is_confirmed)

    def describe(self) -> str:
        """Return the verdict on the whole in a sentence."""
        count, confirmed = len(self.factors), len(self.confirmed)
        runs = len(self.num_used)
        if not confirmed:
            return f"No consensus: these {runs} runs found different things. Do not name their latents."
        if confirmed == count:
            return f"Consensus: {_many(confirmed, 'factor')}, each found again by other runs."
        left = count - confirmed
        rest = (
            f"{_many(left, 'latent')} that {'completes' if left == 1 else 'complete'} the code but cannot be confirmed"
        )
        return f"Consensus: {_many(confirmed, 'factor')} found again by at least half of the other runs, and {rest}."


def find_factors(representations: Sequence[Representation]) -> FoundFactors:
    """Return the factors that two or more representations of the same observations agree on.

    >>> random = np.random.default_rng(0)
    >>> sources = random.integers(4, size=(2000, 3))
    >>> runs = [represent(codes=sources[:, random.permutation(3)]) for _ in range(3)]
    >>> found = find_factors(runs)
    >>> len(found.factors), {factor.status for factor in found.factors}
    (3, {'confirmed'})
    """
    count = representations[0].num_samples
    rows: Ints = np.linspace(0, count - 1, min(MAX_ROWS, count)).astype(np.int64)
    pool = _Pool([_columns(representation, rows) for representation in representations])
    chance = pool.chance()
    chosen = pool.solve() if pool.size else []
    again = [*_without_each_run(pool, chosen), *_in_halves(pool, representations, rows, chosen)]
    clear, found = (max(limit, TIMES_CHANCE * chance) for limit in (CLEAR, FOUND))
    is_consensus = any(pool.similarity_in_half(i) >= clear for i in chosen)
    factors = [pool.factor(i, found, again, is_consensus) for i in chosen]
    order = sorted(range(len(chosen)), key=lambda k: -factors[k].replicability)
    columns = [representations[factors[k].run].labels[:, factors[k].latent] for k in order]
    return FoundFactors(
        factors=tuple(factors[k] for k in order),
        codes=np.stack(columns, axis=1) if columns else np.zeros((representations[0].num_samples, 0), dtype=np.int64),
        coverage=pool.coverage(chosen) / pool.target if chosen else 0.0,
        num_used=tuple(int((pool.run == k).sum()) for k in range(len(representations))),
        chance=chance,
        found_again=pool.found_again(found),
    )


def _columns(representation: Representation, rows: Ints) -> dict[int, Ints]:
    """Return the labels of the latents that can be part of a consensus, by their column, with few levels."""
    columns = {}
    for j in np.flatnonzero(representation.used & (representation.entropies >= MIN_ENTROPY)).tolist():
        labels = np.unique(representation.labels[rows, j], return_inverse=True)[1].reshape(-1)
        counts = np.bincount(labels)
        if counts.size > MAX_LEVELS:
            rank = np.empty(counts.size, dtype=np.int64)
            rank[np.argsort(-counts, kind="stable")] = np.arange(counts.size)
            labels = np.minimum(rank, MAX_LEVELS - 1)[labels]
        if counts.size > 1:
            columns[j] = labels.astype(np.int64)
    return columns


def _without_each_run(pool: _Pool, chosen: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return the consensus without each run in turn, and that run, as latents of the whole pool; none for two runs."""
    if pool.num_runs < 3 or not chosen:
        return []
    results = []
    for left_out in range(pool.num_runs):
        kept = np.flatnonzero(pool.run != left_out)
        if len(set(pool.run[kept].tolist())) > 1:
            part = pool.part(kept)
            results.append((left_out, kept[part.solve()].tolist()))
    return results


def _in_halves(
    pool: _Pool, representations: Sequence[Representation], rows: Ints, chosen: Sequence[int]
) -> list[tuple[int, list[int]]]:
    """Return the consensus in each half of the observations, as latents of the whole pool; -1 is the run left out."""
    if not chosen or len(rows) < 2 * MIN_HALF:
        return []
    place = {named: i for i, named in enumerate(pool.named)}
    results = []
    for half in (rows[::2], rows[1::2]):
        part = _Pool([_columns(representation, half) for representation in representations])
        names = [part.named[i] for i in part.solve()]
        results.append((-1, [place[named] for named in names if named in place]))
    return results


class _Pool:
    """The latents of all runs, and the information that they share."""

    def __init__(self, runs: Sequence[dict[int, Ints]]):
        self.num_runs = len(runs)
        self.run = np.array([k for k, columns in enumerate(runs) for _ in columns], dtype=np.int64)
        self.latent = [j for columns in runs for j in columns]
        columns = [column for run in runs for column in run.values()]
        self.labels = np.asfortranarray(np.stack(columns, axis=1) if columns else np.zeros((0, 0), dtype=np.int64))
        self.levels = np.array([int(column.max()) + 1 for column in columns], dtype=np.int64)
        self.entropies = np.array([entropy(column) for column in columns])
        self.terms = _column_terms(self.labels)
        self.shares = np.clip(self._explained_by(self.labels, self.levels), 0.0, 1.0)
        self.pairs: dict[tuple[int, int], Floats] = {}
        self._score()

    def part(self, kept: Ints) -> _Pool:
        """Return the pool of some of the latents, which shares the tables of this one."""
        other = object.__new__(_Pool)
        runs = np.unique(self.run[kept])
        other.num_runs, other.run = len(runs), np.searchsorted(runs, self.run[kept])
        other.latent = [self.latent[i] for i in kept]
        other.labels, other.levels = np.asfortranarray(self.labels[:, kept]), self.levels[kept]
        other.entropies, other.terms = self.entropies[kept], self.terms[kept]
        other.shares = self.shares[np.ix_(kept, kept)]
        place = {int(i): k for k, i in enumerate(kept)}
        other.pairs = {
            (place[a], place[b]): shares[kept] for (a, b), shares in self.pairs.items() if a in place and b in place
        }
        other._score()
        return other

    @property
    def size(self) -> int:
        return len(self.latent)

    @property
    def named(self) -> list[tuple[int, int]]:
        """The run and the column of each latent."""
        return list(zip(self.run.tolist(), self.latent, strict=True))

    def _explained_by(self, labels: Ints, levels: Ints) -> Floats:
        """Return the share (pool, columns) of the entropy of each latent that columns of labels explain."""
        nats = _information(self.labels, self.levels, labels, levels, self.terms)
        return np.asarray(nats / np.maximum(self.entropies, 1e-12)[:, None])

    def _score(self) -> None:
        """Compute replicability, purity and weights of all latents."""
        root = np.sqrt(np.maximum(self.entropies, 1e-12))
        similarity = np.clip(self.shares * root[:, None] / root[None, :], 0.0, 1.0)
        similarity = (similarity + similarity.T) / 2
        np.fill_diagonal(similarity, 0.0)
        self.similarity = similarity
        self.other = self.run[:, None] != self.run[None, :]
        self.best = np.full((self.size, self.num_runs), np.nan)
        for k in range(self.num_runs):
            if (self.run == k).any():
                self.best[:, k] = similarity[:, self.run == k].max(axis=1)
        self.best[np.arange(self.size), self.run] = np.nan
        if not self.size or np.isnan(self.best).all():
            self.replicability = self.purity = self.weights = np.zeros(self.size)
            return
        self.replicability = np.nan_to_num(np.nanmean(self.best, axis=1))
        self.purity = self._purity() * (1.0 - 2.0 * np.minimum(self._parts(), 0.5))
        alike = similarity.copy()
        np.fill_diagonal(alike, 1.0)
        self.weights = np.maximum(self.purity, 0.0) / alike.sum(axis=1)

    def _purity(self) -> Floats:
        dependent = 1.0 - np.exp(-self.similarity / DEPENDENT)
        np.fill_diagonal(dependent, 1.0)
        drawn = np.where(self.other, self.similarity * self.replicability[None, :], 0.0)
        drawn = drawn / np.maximum(drawn.sum(axis=1, keepdims=True), 1e-12)
        together = np.einsum("ia,ia->i", drawn @ dependent, drawn)
        weights = self.replicability * self.entropies
        pairs = np.outer(weights, weights) * self.other
        by_chance = float((pairs * dependent).sum() / max(pairs.sum(), 1e-12))
        return np.asarray((together - by_chance) / max(1.0 - by_chance, 1e-6))

    def _parts(self) -> Floats:
        """Return for each latent the information about it of the smaller of two independent parts, in two runs."""
        independent = (self.similarity < INDEPENDENT) & ~np.eye(self.size, dtype=bool)
        parts = np.zeros(self.size)
        for i in range(self.size):
            strongest = np.zeros(self.num_runs)
            for k in set(self.run.tolist()) - {int(self.run[i])}:
                there = np.flatnonzero((self.run == k) & (self.replicability > MIN_PART) & (self.shares[i] > 0.05))
                if there.size > 1:
                    known = self.shares[i, there]
                    smaller = np.minimum.outer(known, known) * independent[np.ix_(there, there)]
                    strongest[k] = smaller.max()
            parts[i] = np.sort(strongest)[-2:].mean()
        return parts

    def pair(self, a: int, b: int) -> Floats:
        """Return the share of the entropy of each latent that two latents together explain; 0 for these two."""
        key = (a, b) if a < b else (b, a)
        if key not in self.pairs:
            joint = self.labels[:, a] * self.levels[b] + self.labels[:, b]
            joint = np.unique(joint, return_inverse=True)[1].reshape(-1, 1)
            shares = np.clip(self._explained_by(joint, np.array([int(joint.max()) + 1]))[:, 0], 0.0, 1.0)
            shares[[a, b]] = 0.0
            self.pairs[key] = shares
        return self.pairs[key]

    def explained(self, chosen: Sequence[int]) -> Floats:
        """Return the share of the entropy of each latent that the best pair of other, chosen latents explains."""
        shares = np.zeros(self.size)
        for count, i in enumerate(chosen):
            shares = self._with(shares, chosen[:count], i)
        return shares

    def _with(self, shares: Floats, chosen: Sequence[int], added: int) -> Floats:
        """Return the shares that the chosen latents explain with one more, given those without it."""
        alone = self.shares[:, added].copy()
        alone[added] = 0.0
        return np.asarray(np.maximum.reduce([shares, alone, *(self.pair(added, i) for i in chosen)]))

    @cached_property
    def by_runs(self) -> Floats:
        """The share of the entropy of each latent that another run explains, on average."""
        shares = np.stack(
            [self.explained(np.flatnonzero(self.run == k).tolist()) for k in range(self.num_runs)], axis=1
        )
        shares[np.arange(self.size), self.run] = np.nan
        return np.asarray(np.nanmean(shares, axis=1))

    @cached_property
    def target(self) -> float:
        """The coverage of a set that explains as much about each latent as another run does."""
        return float((self.by_runs * self.weights).sum() / max(self.weights.sum(), 1e-12))

    def coverage(self, chosen: Sequence[int], shares: Floats | None = None) -> float:
        """Return how much of the latents of all runs a set explains, at most as much as another run does."""
        shares = (self.explained(chosen) if shares is None else shares).copy()
        shares[list(chosen)] = self.by_runs[list(chosen)]
        return float((np.minimum(shares, self.by_runs) * self.weights).sum() / max(self.weights.sum(), 1e-12))

    def solve(self) -> list[int]:
        """Return the latents of the consensus."""
        if not self.size or self.target <= 0.0:
            return []
        costs = np.maximum(1.0 - self.purity, 0.0) + PRICE
        chosen, reached = self._cover(costs)
        return self._improve(chosen, costs, reached)

    def _cover(self, costs: Floats) -> tuple[list[int], float]:
        """Add the latent with the largest gain of coverage for its cost, until the coverage is reached."""
        goal, least = COVERAGE * self.target, MIN_GAIN * self.target
        chosen: list[int] = []
        shares, reached = np.zeros(self.size), 0.0
        while reached < goal:
            best, gain, after = -1, 0.0, shares
            for i in range(self.size):
                if i in chosen:
                    continue
                candidate = self._with(shares, chosen, i)
                more = min(self.coverage([*chosen, i], candidate), goal) - reached
                is_enough = more >= least or reached + more >= goal
                if is_enough and more > 1e-9 and (best < 0 or more / costs[i] > gain / costs[best]):
                    best, gain, after = i, more, candidate
            if best < 0:
                break
            chosen.append(best)
            shares, reached = after, reached + gain
        return chosen, reached

    def _improve(self, chosen: list[int], costs: Floats, goal: float) -> list[int]:
        """Leave out latents, and exchange them for cheaper ones, as long as the coverage stays."""
        goal = goal - 1e-9
        while True:
            by_cost = sorted(chosen, key=lambda i: -costs[i])
            dispensable = (i for i in by_cost if self.coverage(_without(chosen, i)) >= goal)
            if (left_out := next(dispensable, None)) is not None:
                chosen = _without(chosen, left_out)
                continue
            exchanges = sorted(
                (costs[j] - costs[i], i, j)
                for i, j in itertools.product(chosen, range(self.size))
                if j not in chosen and costs[j] < costs[i] - 1e-3
            )
            kept = {i: (_without(chosen, i), self.explained(_without(chosen, i))) for i in chosen}
            for _, i, j in exchanges:
                rest, shares = kept[i]
                if self.coverage([*rest, j], self._with(shares, rest, j)) >= goal:
                    chosen = [*rest, j]
                    break
            else:
                return chosen

    def chance(self) -> float:
        """Return the highest replicability of a latent if the rows of each run are shuffled."""
        if self.size < 2:
            return 0.0
        random, labels = np.random.default_rng(0), self.labels.copy(order="F")
        for k in range(self.num_runs):
            labels[:, self.run == k] = labels[random.permutation(len(labels))][:, self.run == k]
        nats = _information(labels, self.levels, labels, self.levels, self.terms)
        similarity = np.maximum(nats, 0.0) / np.sqrt(np.outer(self.entropies, self.entropies))
        best = [np.where(self.other, similarity, 0.0)[:, self.run == k].max(axis=1) for k in set(self.run.tolist())]
        return float((np.sum(best, axis=0) / max(len(best) - 1, 1)).max())

    def found_again(self, found: float) -> tuple[dict[int, int], ...]:
        """Return for each run, by column, how many other runs have a latent of a similarity of at least ``found``."""
        counts: list[dict[int, int]] = [{} for _ in range(self.num_runs)]
        for (run, latent), best in zip(self.named, self.best, strict=True):
            counts[run][latent] = int((np.nan_to_num(best) >= found).sum())
        return tuple(counts)

    def similarity_in_half(self, i: int) -> float:
        """Return the similarity that the counterparts of a latent reach in half of the other runs."""
        others = np.sort(np.nan_to_num(np.delete(self.best[i], self.run[i])))[::-1]
        return float(others[max(1, math.ceil(CONFIRMED * others.size)) - 1])

    def factor(self, i: int, found: float, again: Sequence[tuple[int, list[int]]], is_consensus: bool) -> Factor:
        """Return a latent of the consensus with its counterparts; a run found it from a similarity on."""
        counterparts, similarities = [], []
        for k in range(self.num_runs):
            there = np.flatnonzero(self.run == k)
            if k == self.run[i]:
                counterparts.append(self.latent[i])
                similarities.append(1.0)
            elif there.size:
                nearest = int(there[self.similarity[i, there].argmax()])
                counterparts.append(self.latent[nearest])
                similarities.append(float(self.similarity[i, nearest]))
            else:
                counterparts.append(-1)
                similarities.append(0.0)
        others = sum(similarity >= found for similarity in similarities) - 1
        kept = [chosen for left_out, chosen in again if left_out != self.run[i]]
        is_stable = [i in chosen or self.similarity[i, chosen].max(initial=0.0) >= found for chosen in kept]
        return Factor(
            run=int(self.run[i]),
            latent=self.latent[i],
            purity=float(self.purity[i]),
            replicability=float(self.replicability[i]),
            counterparts=tuple(counterparts),
            similarities=tuple(similarities),
            found=tuple(similarity >= found for similarity in similarities),
            stability=float(np.mean(is_stable)) if is_stable else float("nan"),
            is_confirmed=is_consensus and others >= max(1.0, CONFIRMED * (self.num_runs - 1)),
        )


def _without(chosen: Sequence[int], i: int) -> list[int]:
    return [j for j in chosen if j != i]


def _information(first: Ints, first_levels: Ints, second: Ints, second_levels: Ints, terms: Floats) -> Floats:
    """Return the information (m, k) of all pairs of columns of labels (n, m) and (n, k), minus that by chance.

    The amount by chance is (levels − 1) (levels − 1) / 2n. ``terms`` are those of the first columns, Σ c log c.
    """
    if not first.size or not second.size:
        return np.zeros((first.shape[1], second.shape[1]))
    joint, n = _compiled_joint_terms()(first, first_levels, second, second_levels), len(first)
    nats = np.log(n) + (joint - terms[:, None] - _column_terms(second)[None, :]) / n
    return np.asarray(nats - np.outer(first_levels - 1, second_levels - 1) / (2 * n))


def _column_terms(labels: Ints) -> Floats:
    return np.array([sum_count_log_count(np.bincount(column)) for column in labels.T])


@lru_cache
def _compiled_joint_terms() -> Any:
    """Return a function that sums c log c over the joint counts c of all pairs of columns."""
    from ..metrics.compiled_forest import compiled  # numba takes half a second to import

    @compiled()
    def joint_terms(first, first_levels, second, second_levels):  # type: ignore[no-untyped-def]
        n = first.shape[0]
        logs = np.zeros(n + 1)
        for c in range(2, n + 1):
            logs[c] = c * np.log(c)
        result = np.zeros((first.shape[1], second.shape[1]))
        for j in range(second.shape[1]):
            column = second[:, j].copy()
            for i in range(first.shape[1]):
                counts = np.zeros(second_levels[j] * first_levels[i], dtype=np.int64)
                width = first_levels[i]
                for row in range(n):
                    counts[column[row] * width + first[row, i]] += 1
                total = 0.0
                for c in counts:
                    total += logs[c]
                result[i, j] = total
        return result

    return joint_terms


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def find_factors_of_arrays(arrays: Sequence[Any]) -> FoundFactors:
    """Return what several models agree on, from their codes (integers) or latents (floats) (n, n_z) of the same rows.

    >>> sources = np.random.default_rng(0).integers(4, size=(2000, 2))
    >>> found = find_factors_of_arrays([sources, 3 - sources[:, ::-1]])
    >>> print(found.describe())
    Consensus: 2 factors, each found again by other runs.
    """
    if len(arrays) < 2:
        raise ValueError(f"a consensus needs the codes of at least two models, got {len(arrays)}")
    representations = []
    for number, array in enumerate(map(np.asarray, arrays)):
        is_codes = np.issubdtype(array.dtype, np.integer)
        try:
            representations.append(represent(codes=array) if is_codes else represent(latents=array))
        except ValueError as error:
            raise ValueError(f"model {number}: {error}") from None
        if len(array) != len(arrays[0]):
            raise ValueError(
                f"model {number} has {len(array):,} rows and model 0 has {len(arrays[0]):,}: give the codes of the "
                "same observations, in the same order"
            )
        for earlier, other in enumerate(representations[:-1]):
            if np.array_equal(other.labels, representations[-1].labels) and other.num_used:
                raise ValueError(f"models {earlier} and {number} are the same: a copy always agrees with its original")
    return find_factors(representations)
