"""Compare the scores of rows that took no part in the training with those of the rows that did.

``held_out.npz`` holds these rows as ``sample.npz`` holds training rows. ``results.json`` has their scores under
``held_out`` (`sample.score_held_out`), and their R², accuracy or PSNR next to
those of the training rows.
"""

from collections.abc import Mapping
from typing import Any

from ..metrics import find_score

#: How much worse a score may be on held-out rows before a warning says so; the PSNR in dB.
GAPS = {"r2": 0.05, "accuracy": 0.05, "psnr": 1.0}


def with_held_out(scores: Mapping[str, Any], held_out: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores of a set of weights with R², accuracy or PSNR of held-out rows, given the scores of both."""
    return {**scores, **{f"held_out_{key}": held_out[key] for key in GAPS if key in held_out}}


def describe_gap(scores: Mapping[str, Any]) -> str | None:
    """Return a warning if the scores of a set of weights are much worse on held-out rows; else None.

    >>> describe_gap({"r2": 0.884, "held_out_r2": 0.598}).partition(":")[0]
    'R² is 0.884 on training rows and 0.598 on held-out rows'
    >>> describe_gap({"psnr": 30.0, "held_out_psnr": 29.5})
    """
    for key, most in GAPS.items():
        if key in scores and scores[key] - scores.get(f"held_out_{key}", scores[key]) > most:
            score = find_score(key)
            numbers = (f"{score.format(scores[name])} {score.unit}".strip() for name in (key, f"held_out_{key}"))
            return (
                "{title} is {} on training rows and {} on held-out rows: the model fits its training rows better than "
                "others, so rely on the lower figure; more rows, fewer updates or more weight_decay help"
            ).format(*numbers, title=score.title)
    return None
