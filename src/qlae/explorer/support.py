"""The support of each latent: how many runs of a consensus have one like it.

The model of a consensus has it in its config. For a run that was compared with others, it is read from the
``consensus.json`` in the folder of the runs, or in the folder ``consensus`` there.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path

from .._io import read_json
from .._parsing import Count, parse
from ..registry import OBJECTIVES
from ..runs.directory import Run

PLACES = ("consensus/consensus.json", "consensus.json")  # relative to the folder of the runs


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
    """A run in a ``consensus.json``; its path is None if it was an array."""

    name: str
    run: str | None


@dataclass(frozen=True)
class SavedConsensus:
    """What the explorer reads of a ``consensus.json``."""

    runs: tuple[SavedRun, ...]
    factors: tuple[SavedFactor, ...]


def find_support(run: Run, num_latents: int) -> list[str]:
    """Describe the support of each latent, such as "found in 4 of 5 runs"; empty where it is not known.

    A ``consensus.json`` that cannot be read is left out with a warning.
    """
    own: list[str] = OBJECTIVES.build(run.config.objective).describe_support(num_latents)
    if own:
        return own
    home = run.path.resolve()
    for path in (home.parent / place for place in PLACES):
        if not path.is_file():
            continue
        try:
            saved = parse(read_json(path), SavedConsensus, "", allow_unknown=True)
        except (ValueError, OSError) as error:
            warnings.warn(f"the support of latents is not shown, because {path} cannot be read: {error}", stacklevel=2)
            continue
        names = [entry.name for entry in saved.runs if entry.run is not None and Path(entry.run).name == home.name]
        if names:
            return _support_in(saved, names[0], num_latents)
    return [""] * num_latents


def _support_in(saved: SavedConsensus, name: str, num_latents: int) -> list[str]:
    """Describe the support of each latent of a run, by the factor like it that most runs found."""
    texts = [""] * num_latents
    for factor in sorted(saved.factors, key=lambda factor: factor.num_found):
        counterpart = factor.counterparts.get(name)
        if counterpart is not None and counterpart.found and counterpart.latent < num_latents:
            verdict = "" if factor.status == "confirmed" else ", not confirmed"
            texts[counterpart.latent] = f"found in {factor.num_found} of {len(saved.runs)} runs{verdict}"
    return texts
