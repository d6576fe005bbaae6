"""The sentences that explain the tables of a study, for the page, the Markdown files and comments in LaTeX."""

from ...metrics.protocols import PROTOCOLS
from .aggregate import AGGREGATED, Summary

CELLS = (
    "In brackets: the published mean and the difference. Bold: the interval overlaps the one with the highest upper "
    "end, as in the paper; autoencoders and GANs are compared separately."
)
CODE_INPUTS = {"one-hot": "as one-hot vectors", "scalar": "as numbers"}
INFORMATIVE = (
    "Informative: among the latents that InfoM counts, the share that is more informative about some source than it is "
    "with shuffled samples. Latents of pure noise have an InfoM of 0.4 to 0.8, so a high InfoM means nothing if this "
    "share is low."
)
NOT_THE_SAME = (
    "Rendered data are not the published data sets: they have the same sources but different pixels. A difference from "
    "a published number is therefore not necessarily a failure, and an agreement not necessarily a success."
)


def notes(summary: Summary) -> list[str]:
    """Return what a reader of the tables has to know, one paragraph per string; the first is about data and runs."""
    origins = [NOT_THE_SAME] if "rendered" in summary.origins()[AGGREGATED] else []
    return [_data_note(summary), *origins, f"{_seeds_note(summary)} {CELLS}", INFORMATIVE]


def _data_note(summary: Summary) -> str:
    steps = sorted({result["steps"] for group in summary.groups.values() for result in group.results})
    updates = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
    sets = [
        f"{label} ({about['origin']}, {about['resolution']}×{about['resolution']}, {about['num_images']:,} images)"
        for label, about in summary.data_descriptions().items()
    ]
    codes = CODE_INPUTS[PROTOCOLS[summary.plan.protocol].code_input]
    return (
        f"Data: {'; '.join(sets)}. {updates} updates per run; the paper used 200,000 at 64×64. "
        f"Scored on up to {summary.plan.num_samples:,} samples with the protocol {summary.plan.protocol}, in which "
        f"InfoE reads codes {codes}."
    )


def _seeds_note(summary: Summary) -> str:
    most = summary.num_seeds
    if most == 1:
        return "One seed, so there are no intervals."
    fewer = any(len(group.results) < most for group in summary.groups.values())
    return f"Mean ± half of the 95% t-interval over {most} seeds{' (fewer where n is given)' if fewer else ''}."
