"""The null-encoder baseline: scores of latents that are independent of the sources.

Many scores are not 0 for noise. Their size depends on the number of latents, their levels and the sample size. A score
is meaningful if it exceeds that of a null encoder of the same size.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .inputs import MAX_DRAWS, check_latents, require_choice, whole_number
from .metric import find_score
from .scores import score


@dataclass(frozen=True, eq=False)
class NullScores:
    """Scores of null encoders: the mean and the standard deviation over several draws, by key."""

    latents: str
    """A description of the latents."""
    num_draws: int
    values: Mapping[str, float]
    deviations: Mapping[str, float]
    """0 for a single draw."""

    def __getitem__(self, key: str) -> float:
        return self.values[key]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, suitable for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"null encoder: {self.latents}, {self.num_draws} draws"]
        for key, value in self.values.items():
            described = find_score(key)
            lines.append(f"  {described.title} {described.format(value)} ± {described.format(self.deviations[key])}")
        return "\n".join(lines)


def null_scores(
    sources: Any,
    latents: Any = None,
    *,
    num_latents: int | None = None,
    kind: str = "continuous",
    num_values: int = 10,
    num_draws: int = 5,
    seed: int = 0,
    **options: Any,
) -> NullScores:
    """Score latents that are independent of the sources.

    Args:
        sources: (n, n_s), as for `score`.
        latents: (n, n_z) latents of an encoder, whose rows are shuffled: the baseline keeps their distribution. If
            None, independent latents are drawn.
        num_latents: number of latents to draw; only without `latents`.
        kind: of the latents to draw: "continuous" (standard normal) or "codes" (uniform).
        num_values: number of values of each code.
        num_draws: number of null encoders; each score is their mean.
        seed: of the draws.
        options: as for `score`: ``metrics``, ``protocol``, ``source_kinds``, …

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).integers(0, 4, size=(500, 3))
    >>> null = null_scores(sources, num_latents=6, kind="codes", num_values=8)
    >>> bool(null["infoc"] > 0.05), null["infoc_corrected"]
    (True, 0.0)
    """
    if (latents is None) == (num_latents is None):
        raise ValueError("give either latents, whose rows are shuffled, or num_latents to draw, not both or neither.")
    whole_number("num_draws", num_draws, 1, MAX_DRAWS)
    require_choice("kind", kind, ("continuous", "codes"))
    whole_number("num_values", num_values, 2)
    random = np.random.default_rng(seed)
    if latents is not None:
        checked = check_latents(latents, kind=options.get("latent_kind", "auto"))
        options["latent_kind"] = "codes" if checked.discrete else "continuous"
        description, shape = f"{checked.num_latents} latents with their rows shuffled", checked.values.shape
    else:
        shape = np.shape(sources)[0], whole_number("num_latents", num_latents, 1)
        drawn_from = "normal latents" if kind == "continuous" else f"codes with {num_values} values"
        description = f"{shape[1]} independent {drawn_from}"

    def draw() -> Any:
        if latents is not None:
            return checked.values[random.permutation(shape[0])]
        return random.normal(size=shape) if kind == "continuous" else random.integers(0, num_values, size=shape)

    drawn: dict[str, list[float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the latents are uninformative is the point
        for number in range(num_draws):
            for key, value in score(sources, draw(), seed=seed + number, **options).values.items():
                drawn.setdefault(key, []).append(value)
    means = {key: float(np.mean(values)) for key, values in drawn.items()}
    deviations = {key: float(np.std(values, ddof=1)) if len(values) > 1 else 0.0 for key, values in drawn.items()}
    return NullScores(description, num_draws, means, deviations)
