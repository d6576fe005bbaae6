"""The support of each latent: how many runs of a consensus have one like it.

The model of a consensus has it in its config. For a run that was compared with others, it is read from the
``consensus.json`` in the folder of the runs, or in the folder ``consensus`` there.
"""

from ..registry import OBJECTIVES
from ..runs.directory import Run
from ..selection.verdict import SavedConsensus, find_consensus


def find_support(run: Run, num_latents: int) -> list[str]:
    """Describe the support of each latent, such as "found in 4 of 5 runs"; empty where it is not known.

    A ``consensus.json`` that cannot be read is left out with a warning.
    """
    own: list[str] = OBJECTIVES.build(run.config.objective).describe_support(num_latents)
    if own:
        return own
    found = find_consensus(run)
    return [""] * num_latents if found is None else _support_in(found[0], found[1].name, num_latents)


def _support_in(saved: SavedConsensus, name: str, num_latents: int) -> list[str]:
    """Describe the support of each latent of a run, by the factor like it that most runs found."""
    texts = [""] * num_latents
    for factor in sorted(saved.factors, key=lambda factor: factor.num_found):
        counterpart = factor.counterparts.get(name)
        if counterpart is not None and counterpart.found and counterpart.latent < num_latents:
            verdict = "" if factor.status == "confirmed" else ", not confirmed"
            texts[counterpart.latent] = f"found in {factor.num_found} of {len(saved.runs)} runs{verdict}"
    return texts
