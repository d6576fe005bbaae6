"""What the scores of a run say about each latent: whether it is active, whether it is informative, what it encodes.

The explorer and the pictures take their labels of latents from here. Nothing in this module needs torch.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..metrics import active_latents


class Meaning(NamedTuple):
    """The source that a latent is most informative about."""

    source: int  # column of the sources
    nmi: float  # normalised mutual information with that source, from 0 to 1


def find_meanings(scores: dict[str, Any], num_latents: int) -> list[Meaning | None]:
    """Return the meaning of each latent, read from the NMI matrix of a run's scores.

    Args:
        scores: Scores of one set of weights, as in ``results.json``.
        num_latents: Number of latents of the model.

    Returns:
        One entry per latent. It is ``None`` where the latent is no more informative than noise, and for every latent
        where the data have no sources.
    """
    if "nmi" not in scores:
        return [None] * num_latents
    nmi = np.asarray(scores["nmi"], dtype=float)  # (num_sources, num_latents)
    informative = find_informative(scores, num_latents)
    best = nmi.argmax(0)
    return [Meaning(int(i), float(nmi[i, j])) if informative[j] else None for j, i in enumerate(best)]


def name_meanings(results: dict[str, Any], num_latents: int) -> list[str]:
    """Return the name of the source that each latent is most informative about.

    Args:
        results: Content of ``results.json``; the scores of the averaged weights count.
        num_latents: Number of latents of the model.

    Returns:
        One name per latent, empty where ``find_meanings`` finds no meaning.
    """
    names = results["data"]["source_names"]
    meanings = find_meanings(results["averaged"], num_latents)
    return ["" if meaning is None else names[meaning.source] for meaning in meanings]


def find_informative(scores: dict[str, Any], num_latents: int) -> NDArray[np.bool_]:
    """Return which latents are informative about some source, as far as is known.

    Args:
        scores: Scores of one set of weights. If the data have no sources, nothing is known against any latent.
        num_latents: Number of latents of the model.

    Returns:
        Booleans (num_latents,).
    """
    return _flags(scores, "informative_latents", num_latents)


def find_active(scores: dict[str, Any], codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which latents vary enough over the evaluation sample to count as active.

    Args:
        scores: Scores of one set of weights. Where the data have sources, they list the active latents.
        codes: Codes or continuous latents (n, num_latents) of the sample. Without such a list, InfoMEC's rule (the
            paper's protocol) is applied to them.

    Returns:
        Booleans (num_latents,).
    """
    if "active_latents" in scores:
        return _flags(scores, "active_latents", codes.shape[1])
    if len(codes) < 2:  # a single image does not vary
        return np.zeros(codes.shape[1], dtype=bool)
    return active_latents(codes)


def listed_active(scores: dict[str, Any], num_latents: int) -> NDArray[np.bool_]:
    """Return which latents the scores list as active; all of them if the data have no sources.

    Args:
        scores: Scores of one set of weights.
        num_latents: Number of latents of the model.
    """
    return _flags(scores, "active_latents", num_latents)


def _flags(scores: dict[str, Any], key: str, num_latents: int) -> NDArray[np.bool_]:
    """Return a list of booleans of the scores, by default all true; raise an error unless there is one per latent."""
    flags = np.asarray(scores.get(key, [True] * num_latents), dtype=bool)
    if len(flags) != num_latents:
        raise ValueError(
            f"{key} in results.json are {len(flags)}, and the run has {num_latents} latents: "
            "its files are of different evaluations; run `qlae evaluate` on it"
        )
    return flags
