"""The verdict on the latents of a run: which of them the other runs of a consensus found again, as sentences.

The numbers come from a `Consensus`, or from the ``consensus.json`` next to a run. ``docs/consensus.md`` has the
evidence for the thresholds.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .._io import read_json
from .._parsing import Count, parse
from .consensus import SURE_RUNS
from .factors import CONFIRMED, describe_found

if TYPE_CHECKING:
    from ..runs.directory import Run

PLACES = ("consensus/consensus.json", "consensus.json")  # relative to the folder of the runs
MOST_RUNS = 20  # that are compared after a training without being asked; the time grows with their square
UNKNOWN = (
    "One training cannot tell which of its latents to trust. To find out, train several and compare them: "
    "`qlae train … --consensus 5`."
)


@dataclass(frozen=True)
class Counterpart:
    """The latent of a run that is most like a factor, in a ``consensus.json``."""

    latent: Count
    found: bool


@dataclass(frozen=True)
class SavedFactor:
    """A factor in a ``consensus.json``, with its counterparts by the names of their runs."""

    status: str
    num_found: Count
    counterparts: dict[str, Counterpart]


@dataclass(frozen=True)
class SavedRun:
    """A run in a ``consensus.json``.

    Attributes:
        name: as counterparts of factors name it.
        run: its path; None if it was an array.
        found_again: by latent in use, the number of other runs that found it; None in files of earlier versions.
    """

    name: str
    run: str | None
    found_again: dict[str, Count] | None = None


@dataclass(frozen=True)
class SavedConsensus:
    """What is read of a ``consensus.json``."""

    runs: tuple[SavedRun, ...]
    factors: tuple[SavedFactor, ...]


def find_consensus(run: Run) -> tuple[SavedConsensus, SavedRun] | None:
    """Return the consensus in the folder of the runs, and the entry of a run in it; None if there is none.

    A ``consensus.json`` that cannot be read is left out with a warning.
    """
    home = run.path.resolve()
    for path in (home.parent / place for place in PLACES):
        if not path.is_file():
            continue
        try:
            saved = parse(read_json(path), SavedConsensus, "", allow_unknown=True)
        except (ValueError, OSError) as error:
            warnings.warn(f"the support of latents is not shown, because {path} cannot be read: {error}", stacklevel=3)
            continue
        entries = [entry for entry in saved.runs if entry.run is not None and Path(entry.run).name == home.name]
        if entries:
            return saved, entries[0]
    return None


@dataclass(frozen=True)
class LatentVerdict:
    """Whether other runs found a latent.

    Attributes:
        latent: its column.
        status: ``"confirmed"`` by at least half of the other runs, found by ``"some"`` or ``"none"`` of them, or
            ``"unused"``: it hardly varies.
        text: a sentence without its subject.
        found_again: number of other runs that found it; None if only the sentence is known.
    """

    latent: int
    status: str
    text: str
    found_again: int | None = None


@dataclass(frozen=True)
class RunVerdict:
    """The verdict on the latents of a run, and on the run as a whole."""

    latents: tuple[LatentVerdict, ...]
    num_runs: int
    is_consensus: bool  # whether the runs have a clear factor in common

    @property
    def confirmed(self) -> tuple[int, ...]:
        """The latents that at least half of the other runs found."""
        return tuple(each.latent for each in self.latents if each.status == "confirmed")

    def describe(self, titles: Sequence[str] | None = None) -> str:
        """Return the verdict on the run in a few sentences.

        Args:
            titles: what to call the latents; "z0", "z1", … by default.
        """
        few = f" With only {self.num_runs} runs, all may make the same mistake; five are better."
        return self._describe(titles) + (few if 0 < self.num_runs < SURE_RUNS and self.confirmed else "")

    def _describe(self, titles: Sequence[str] | None) -> str:
        used = sum(each.status != "unused" for each in self.latents)
        if not self.is_consensus:
            return f"These {self.num_runs} runs found different things; do not name the latents."
        if not self.confirmed:
            return "No latent of this run was found again by at least half of the other runs; do not name them."
        names = ", ".join(f"z{j}" if titles is None else titles[j] for j in self.confirmed)
        if len(self.confirmed) == used:
            return f"Each latent in use was found again by at least half of the other runs: {names}."
        return (
            f"{len(self.confirmed)} of {used} latents in use were found again by at least half of the other runs: "
            f"{names}. Do not name the others; they may be accidents of this training."
        )


def judge_run(saved: SavedConsensus, run: SavedRun, num_latents: int) -> RunVerdict | None:
    """Return the verdict on the latents of a run of a consensus; None if the file does not say it."""
    if run.found_again is None:
        return None
    is_consensus = any(factor.status == "confirmed" for factor in saved.factors)
    others = len(saved.runs) - 1
    latents = [_judge(j, run.found_again.get(str(j)), others, is_consensus) for j in range(num_latents)]
    return RunVerdict(tuple(latents), len(saved.runs), is_consensus)


def _judge(latent: int, found_again: int | None, others: int, is_consensus: bool) -> LatentVerdict:
    """Return the verdict on a latent by the number of other runs that found it; None if it is not in use."""
    if found_again is None:
        return LatentVerdict(latent, "unused", "hardly varies", None)
    if not is_consensus:
        text = f"somewhat alike in {found_again} of {others} other runs: not enough to rely on it"
        return LatentVerdict(latent, "none", text if found_again else describe_found(0, others, "none"), found_again)
    is_confirmed = found_again >= max(1.0, CONFIRMED * others)
    status = "confirmed" if is_confirmed else "some" if found_again else "none"
    return LatentVerdict(latent, status, describe_found(found_again, others, status), found_again)


def find_verdict(run: Run, num_latents: int) -> RunVerdict | None:
    """Return the verdict on a run, from its config or the consensus next to it; None if it was never compared."""
    from ..registry import OBJECTIVES

    own: list[str] = OBJECTIVES.build(run.config.objective).describe_support(num_latents)
    if own:
        statuses = ["some" if text.endswith("not confirmed") else "confirmed" for text in own]
        latents = [LatentVerdict(j, status, text) for j, (status, text) in enumerate(zip(statuses, own, strict=True))]
        return RunVerdict(tuple(latents), 0, "confirmed" in statuses)
    found = find_consensus(run)
    return None if found is None else judge_run(*found, num_latents)


def verdict_lines(verdict: RunVerdict) -> Sequence[str]:
    """Return the verdict as lines for the terminal: one per group of latents with the same text, then the whole."""
    groups: dict[str, list[str]] = {}
    order = {"confirmed": 0, "some": 1, "none": 2, "unused": 3}
    for each in sorted(verdict.latents, key=lambda each: (order[each.status], -(each.found_again or 0))):
        groups.setdefault(each.text, []).append(f"z{each.latent}")
    return [*(f"{', '.join(names)}: {text}" for text, names in groups.items()), verdict.describe()]
