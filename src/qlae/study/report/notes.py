"""The sentences that explain the tables of a study, for the page, the Markdown files and comments in LaTeX."""

from collections import defaultdict

import pandas as pd

from ...metrics import find_score
from ...observations import described_observations
from ...presets import training_preset
from ...published import PAPER_COLUMNS
from ...selection.ranking import MIN_RUNS
from ..plan import SCORED_WEIGHTS
from ..tuning import AGREEMENT
from .cells import MIN_SEEDS
from .summary import AGGREGATED, Group, Summary, describe_counts

BOLD = {
    "authors": "Bold, as in the paper: the interval overlaps the one with the highest upper end.",
    "": (
        "Bold: the highest mean, and means that Welch's t-test does not find lower (one-sided, 5%, Holm's correction "
        "over the column); nothing is bold where the test tells no model from the best, or the best has fewer than "
        f"{MIN_SEEDS} seeds."
    ),
}
SEPARATE = "Autoencoders and GANs are compared separately."
INFORMATIVE = (
    "Informative: of the latents that InfoM counts, the number that are more informative about some source than they "
    "are with shuffled samples; a range if it differs between runs. Latents of pure noise have an InfoM of 0.4 to 0.9, "
    "so InfoM means nothing where most latents are not informative."
)
NOT_THE_SAME = "Rendered data are not the published data sets: they have the same sources but different pixels."
NO_VERDICT = (
    " A difference from a published number is therefore not necessarily a failure, and an agreement not necessarily a "
    "success."
)
SAME_KIND = (
    "The published InfoE stands below the column of its own kind: the authors' code reads codes as one-hot vectors for "
    "VQ-VAE, and as the numbers that they stand for in quantized models."
)


def notes(summary: Summary) -> list[str]:
    """Return what a reader of the tables has to know, one paragraph per string; the first is about data and runs."""
    has_published = any(summary.published(*key, score) for key in summary.groups for score in PAPER_COLUMNS)
    is_rendered = "rendered" in summary.origins[AGGREGATED]
    has_infom = summary.has_sources
    origins = [NOT_THE_SAME + (NO_VERDICT if has_published else "")] if is_rendered else []
    return [
        *uninformative_groups(summary),
        _data_note(summary),
        *origins,
        *_incomparable_note(summary),
        _weights_note(summary),
        _seeds_note(summary),
        *_agreement_notes(summary),
        *([_infoe_note(summary) + (f" {SAME_KIND}" if has_published else ""), INFORMATIVE] if has_infom else []),
    ]


def _agreement_notes(summary: Summary) -> list[str]:
    """Return for each data set without sources how its runs are compared, and which of them to take."""
    lines = []
    for data in summary.data:
        groups = [group for key, group in summary.groups.items() if key[0] == data and not group.has_sources]
        if not groups:
            continue
        start = f"{data} has no sources, so there is no InfoMEC."
        runs = pd.concat([group.rows.assign(agreement=group.column(AGREEMENT)) for group in groups]).dropna(
            subset=[AGREEMENT]
        )
        if runs.empty:
            lines.append(f"{start} Agreement compares at least two runs; raise rerun_seeds to train more.")
            continue
        best = runs.loc[runs[AGREEMENT].idxmax()]
        others = "the other run" if len(runs) == 2 else f"the other {len(runs) - 1} runs"
        few = f" With {len(runs)} runs, agreement says little." if len(runs) < MIN_RUNS else ""
        lines.append(
            f"{start} Its runs are compared by agreement: how far the codes of a run correspond to those of {others} "
            f"on the same images (mean). The run to take is {best.model} with seed {best.seed} (agreement "
            f"{best[AGREEMENT]:.3f}): runs/{best.run} in the folder of the study.{few}"
        )
    return lines


def uninformative_groups(summary: Summary) -> list[str]:
    """Return a warning for each model whose InfoM counts mostly latents that are informative about no source."""
    warnings = []
    for key, group in summary.groups.items():
        for weights in SCORED_WEIGHTS if summary.differences[key] == [] else [summary.weights]:  # those in the tables
            counts = list(group.latent_counts(weights).values())
            if any(count.warning for count in counts):
                warnings.append(
                    f"Warning: the InfoM of {group.model} on {group.data} is not meaningful, because "
                    f"{describe_counts(counts)} latents that it counts are informative about any source "
                    f"({weights} weights)."
                )
    return warnings


def _data_note(summary: Summary) -> str:
    sets = [
        f"{label} ({about['origin']}, {observed.size}, {about['num_images']:,} {observed.traits.many})"
        for label, about in summary.data_descriptions.items()
        for observed in (described_observations(about),)
    ]
    return (
        f"Data: {'; '.join(sets)}. {_updates_note(list(summary.groups.values()))} Scored on up to "
        f"{summary.plan.num_samples:,} samples with the protocol {summary.plan.protocol}."
    )


def _updates_note(groups: list[Group]) -> str:
    """Return the number of updates, compared with the paper's."""
    steps = sorted({int(number) for group in groups for number in group.rows["steps"]})
    updates = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
    return f"{updates} updates per run; the paper's runs have {training_preset('full', '').steps:,} at 64×64."


def _weights_note(summary: Summary) -> str:
    selected = f" Hyperparameters were selected by those of the {summary.plan.scored_weights} weights."
    return (
        f"Scores of the {summary.weights} weights, unless a row says otherwise"
        " (averaged: an exponential average over the training, which the authors' code does not have; raw: those of "
        f"the last update).{selected if summary.tuning else ''}"
    )


def _seeds_note(summary: Summary) -> str:
    most = summary.num_seeds
    stages = {
        "reruns": "",
        "all-seeds": ", those of tuning included",
        "authors": ", those of tuning included, with the deviation of the authors' tables, which divides by n",
    }[summary.aggregate]
    if most < MIN_SEEDS:
        number = "One seed" if most == 1 else "Two seeds, both shown"
        return f"{number}{stages}: too few for an interval or a test, so nothing is bold."
    fewer = any(len(group.rows) < most for group in summary.groups.values())
    return (
        f"Mean ± half of the 95% t-interval over {most} seeds{stages}"
        f"{' (where n is given, over fewer; with two seeds, both values)' if fewer else ''}. "
        f"{BOLD.get(summary.aggregate, BOLD[''])} {SEPARATE}"
    )


def _infoe_note(summary: Summary) -> str:
    """Return how InfoE reads codes, as the results say."""
    one_hot = [group.model for group in summary.groups.values() if group.infoe_input == "one-hot"]
    if not one_hot:
        return "InfoE reads numbers: continuous latents, or those that codes stand for."
    text = f"InfoE reads the codes of {', '.join(dict.fromkeys(one_hot))} as one-hot vectors"
    if any(group.values("infoe_scalar") for group in summary.groups.values()):
        text += f"; the column “{find_score('infoe_scalar').heading}” reads the numbers that they stand for"
    return f"{text}."


def _incomparable_note(summary: Summary) -> list[str]:
    """Return why no published numbers are shown for models of the paper, one sentence per reason."""
    by_reason: dict[str, list[tuple[str, str]]] = defaultdict(list)
    known = [key for key, reasons in summary.differences.items() if reasons is not None]
    for key in known:
        by_reason[", ".join(summary.differences[key] or ())].append(key)
    return [
        f"No published numbers are shown for {_name_pairs(pairs, known)}, because the runs differ from the paper's: "
        f"{reason}."
        for reason, pairs in by_reason.items()
        if reason
    ]


def _name_pairs(pairs: list[tuple[str, str]], known: list[tuple[str, str]]) -> str:
    """Describe pairs of data set and model, more briefly if they are all models of a data set."""
    names = []
    for data in dict.fromkeys(pair[0] for pair in pairs):
        models = [model for name, model in pairs if name == data]
        everything = len(models) == sum(name == data for name, _ in known)
        names.append(f"{'the models' if everything else ', '.join(models)} on {data}")
    return "; ".join(names)
