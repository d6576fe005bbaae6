"""The result of a selection: runs in the order of their agreement, and what it depends on."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..metrics.inputs import Floats
from ..observations import KINDS, Kind
from ..runs.directory import Run
from ..scoring.fidelity import fidelity_db
from .reading import Skipped


@dataclass(frozen=True)
class RankedRun:
    """A run and what speaks for it.

    Attributes:
        run: the run directory.
        model, seed: as in its results.
        agreement: mean agreement with the other runs, from 0 to 1.
        spread: the middle half of these agreements, as (lower quartile, upper quartile).
        first: share of the bootstrap draws in which the run comes first.
        gap: straight-through gap in nats per image; None if it is unknown or the latents are continuous.
        num_used, num_latents: latents that vary enough to count, and all latents.
        psnr: mean PSNR of images in dB; None for other data, or if the run does not have it.
        r2: R² of vectors and series; None for images, or if the run does not have it.
        is_near: whether it may be taken: its reconstructions are nearly as good as the best, and it does not use few
            latents.
        uses_few: whether it uses at most a quarter as many latents as the median run.
        infom: InfoM, if the data have sources. Not used for the choice.
    """

    run: Run
    model: str
    seed: int
    agreement: float
    spread: tuple[float, float]
    first: float
    gap: float | None
    num_used: int
    num_latents: int
    psnr: float | None
    r2: float | None
    is_near: bool
    uses_few: bool
    infom: float | None

    @property
    def path(self) -> Path:
        return self.run.path

    @property
    def decibels(self) -> float | None:
        """How faithful reconstructions are: the PSNR, or what corresponds to it for vectors and series."""
        return fidelity_db({key: value for key, value in (("psnr", self.psnr), ("r2", self.r2)) if value is not None})

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        fields = {name: value for name, value in vars(self).items() if name != "run"}
        return {"run": str(self.path), **fields, "spread": list(self.spread)}


@dataclass(frozen=True, eq=False)
class Selection:
    """Runs in the order of their agreement.

    Attributes:
        runs: the runs, best first.
        matrix: (n, n) agreement of each pair, in the same order; NaN on the diagonal.
        chance: mean agreement of these runs if the rows of each are shuffled, so that they have nothing in common.
        skipped: runs that could not be compared, and why.
        num_images: number of observations that they were compared on.
        kind: of the observations: ``"images"``, ``"vectors"`` or ``"series"``.
        data: name of the data set.
        weights: the set of weights, ``"averaged"`` or ``"raw"``.
        near_db: how many decibels below the best PSNR a run may be to be taken.
        warnings: what limits the trust in the choice.
    """

    runs: tuple[RankedRun, ...]
    matrix: Floats
    chance: float
    skipped: tuple[Skipped, ...]
    num_images: int
    kind: str
    data: str
    weights: str
    near_db: float
    warnings: tuple[str, ...] = field(default=())

    @property
    def best(self) -> RankedRun:
        """The run to take: the first that may be taken."""
        return next(run for run in self.runs if run.is_near)

    @property
    def traits(self) -> Kind:
        """What depends on the kind of the observations, such as what they are called."""
        return KINDS[self.kind]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        matrix = [[None if np.isnan(value) else round(float(value), 6) for value in row] for row in self.matrix]
        return {
            "take": str(self.best.path),
            "data": self.data,
            "kind": self.kind,
            "weights": self.weights,
            "num_images": self.num_images,
            "near_db": self.near_db if math.isfinite(self.near_db) else None,
            "chance": round(self.chance, 6),
            "runs": [run.to_dict() for run in self.runs],
            "agreement": matrix,
            "skipped": [{"run": str(skip.path), "reason": skip.reason} for skip in self.skipped],
            "warnings": list(self.warnings),
        }
