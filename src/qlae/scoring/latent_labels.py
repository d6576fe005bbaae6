"""Label latents by the scores of a run: which are active, which are informative, and which source each encodes.

The explorer and the pictures take their labels from here.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..metrics import active_latents


class LatentLabels(NamedTuple):
    """The labels of all latents of a model."""

    active: NDArray[np.bool_]  # (num_latents,)
    informative: NDArray[np.bool_]  # (num_latents,)
    names: list[str]  # of the source that each latent is most informative about, if there is one; and what else to say
    numbers: tuple[int, ...] | None = None  # of the latents, if they are not all those of a model

    @staticmethod
    def from_results(results: dict[str, Any], num_latents: int, weights: str = "averaged") -> "LatentLabels":
        """Return the labels by the scores of one set of weights in ``results.json``."""
        scores, names = results[weights], results["data"]["source_names"]
        encoded = find_encoded_sources(scores, num_latents)
        unconfirmed = results.get("unconfirmed_latents", [])  # of a model that imitates a consensus
        names = ["" if each is None else names[each[0]] for each in encoded]
        return LatentLabels(
            _flags(scores, "active_latents", num_latents),
            find_informative(scores, num_latents),
            [f"{name} (not confirmed)".lstrip() if j in unconfirmed else name for j, name in enumerate(names)],
        )


def find_encoded_sources(scores: dict[str, Any], num_latents: int) -> list[tuple[int, float] | None]:
    """Return the column of the source that each latent encodes, and their NMI, from the scores of one set of weights.

    It is ``None`` where a latent is no more informative than noise, and everywhere if the data have no sources.
    """
    if "nmi" not in scores:
        return [None] * num_latents
    nmi = np.asarray(scores["nmi"], dtype=float)  # (num_sources, num_latents)
    informative = find_informative(scores, num_latents)
    best = nmi.argmax(0)
    return [(int(i), float(nmi[i, j])) if informative[j] else None for j, i in enumerate(best)]


def find_informative(scores: dict[str, Any], num_latents: int) -> NDArray[np.bool_]:
    """Return which latents (num_latents,) are informative about some source; all of them if there are no sources."""
    return _flags(scores, "informative_latents", num_latents)


def find_active(scores: dict[str, Any], codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which latents (num_latents,) vary enough over the evaluation sample to count as active.

    Scores of data without sources do not say it, so InfoMEC's rule is applied to the codes (n, num_latents).
    """
    if "active_latents" in scores:
        return _flags(scores, "active_latents", codes.shape[1])
    if len(codes) < 2:  # a single image does not vary
        return np.zeros(codes.shape[1], dtype=bool)
    return active_latents(codes)


def _flags(scores: dict[str, Any], key: str, num_latents: int) -> NDArray[np.bool_]:
    """Return a list of booleans of the scores, by default all true; raise an error unless there is one per latent."""
    flags = np.asarray(scores.get(key, [True] * num_latents), dtype=bool)
    if len(flags) != num_latents:
        raise ValueError(
            f"results.json has {len(flags)} {key}, and the run has {num_latents} latents: its files are of different "
            "evaluations; run `qlae evaluate` on it"
        )
    return flags
