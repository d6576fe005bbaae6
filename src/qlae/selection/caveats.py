"""Say what limits the trust in a choice: few runs or observations, collapsed runs, and agreement near chance."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..metrics import find_score
from ..metrics.inputs import Floats
from ..observations import Kind
from .agreement import mean_agreement, similarity
from .reading import Candidate
from .representation import Representation

MIN_RUNS = 4  # with fewer, a warning says that agreement means little
MIN_SAMPLES = 1_000  # with fewer observations, unrelated runs agree noticeably
TIMES_CHANCE = 3.0  # the best agreement should be at least this many times that of unrelated runs
NUM_PAIRS = 20  # of runs, shuffled to find the agreement of unrelated ones


def chance_agreement(representations: Sequence[Representation]) -> float:
    """Return the mean agreement of pairs of runs if the rows of one of the two are shuffled.

    The similarity of single latents has its mean by chance subtracted, but is cut off at 0, and the largest of several
    counts; on few observations, runs without anything in common therefore agree a little.

    >>> from .representation import represent
    >>> codes = np.random.default_rng(0).integers(5, size=(2, 40, 6))
    >>> 0.01 < chance_agreement([represent(codes=codes[0]), represent(codes=codes[1])]) < 0.1
    True
    """
    random = np.random.default_rng(0)
    within: dict[int, Floats] = {}
    values = []
    for number in range(NUM_PAIRS):
        i = number % len(representations)
        j = int((i + random.integers(1, len(representations))) % len(representations))
        for k in (i, j):
            if k not in within:
                within[k] = similarity(representations[k], representations[k])
        other = representations[j]
        shuffled = replace(other, labels=other.labels[random.permutation(other.num_samples)])
        values.append(mean_agreement(similarity(representations[i], shuffled), within[i], within[j]))
    return float(np.mean(values))


def find_caveats(
    candidates: Sequence[Candidate],
    representations: Sequence[Representation],
    *,
    best: float,
    chance: float,
    traits: Kind,
) -> list[str]:
    """Return what limits the trust in a choice among these runs.

    Args:
        candidates: the runs.
        representations: of the same observations by each run.
        best: the highest agreement.
        chance: the agreement of unrelated runs.
        traits: what observations are called.
    """
    count, num_samples = len(candidates), representations[0].num_samples
    messages = []
    if count == 2:
        fidelity = find_score(traits.load_fidelity().key).title
        messages.append(
            "two runs agree with each other equally, so agreement cannot choose between them; the smaller gap or the "
            f"higher {fidelity} decides. Train more seeds"
        )
    elif count < MIN_RUNS:
        messages.append(f"only {count} runs: the agreement of so few says little. Train more seeds")
    if num_samples < MIN_SAMPLES:
        messages.append(
            f"the runs are compared on only {num_samples:,} {traits.many}, where agreement is imprecise; better are "
            f"{MIN_SAMPLES:,} or more, if there are as many: `qlae evaluate RUN --num-samples N`"
        )
    if best < TIMES_CHANCE * chance:
        messages.append(
            f"the best agreement is {best:.3f}, and that of unrelated runs would be {chance:.3f}: these runs have "
            "hardly anything in common, so the choice says little"
        )
    messages += [
        f"{candidate.run.path}: no latent is used, so it agrees with nothing"
        for candidate, representation in zip(candidates, representations, strict=True)
        if not representation.num_used
    ]
    return messages
