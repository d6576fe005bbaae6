"""The sentences that explain the tables of a study, for the page, the Markdown files and comments in LaTeX."""

import pandas as pd

from ...metrics import find_score
from ...observations import described_observations
from ...paper_tables import PAPER_COLUMNS
from ...presets import training_preset
from ...resolving import PUBLISHED_SETS
from ...selection.ranking import MIN_RUNS
from ..plan import SCORED_WEIGHTS
from ..tuning import AGREEMENT
from .summary import AGGREGATED, MIN_SEEDS, Cell, Summary, describe_counts

BOLD = {
    "authors": "Bold, as in the paper: the interval overlaps the one with the highest upper end.",
    "tested": (
        "Bold: the highest mean, and means that Welch's t-test does not find lower (one-sided, 5%, Holm's correction "
        "over the column); nothing is bold where the test tells no model from the best, or the best has fewer than "
        f"{MIN_SEEDS} seeds."
    ),
}
LOW_INFOE = 0.5  # share of the best InfoE of a grid below which a selected value is called into question
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
    return [
        *(f"Warning: {warning}" for warning in [*uninformative_groups(summary), *_collapsed_note(summary)]),
        _data_note(summary),
        *([NOT_THE_SAME + NO_VERDICT * has_published] if is_rendered else []),
        *_incomparable_note(summary),
        _weights_note(summary),
        _seeds_note(summary),
        *(_agreement_note(summary, data) for data in summary.data if not summary.has_sources(data)),
        *([_infoe_note(summary) + f" {SAME_KIND}" * has_published, INFORMATIVE] if summary.has_sources() else []),
    ]


def winners(summary: Summary) -> list[str]:
    """Return which model has the highest mean of the score that the study selects by, for each data set and block.

    A block is left out if fewer than two of its models have an interval. Models whose InfoM describes noise are left
    out as well.
    """
    sentences = []
    for data in summary.data:
        score = summary.quality(data)
        for block in summary.blocks:
            cells = {model: summary.cell(data, model, score) for model in block if (data, model) in summary.groups}
            ranked = sorted(
                ((model, cell, cell.half) for model, cell in cells.items() if cell and cell.half is not None),
                key=lambda entry: -entry[1].mean,
            )
            if score == "infom":
                noise = {m for m, *_ in ranked if any(c.warning for c in summary.latent_counts(data, m))}
                ranked = [entry for entry in ranked if entry[0] not in noise]
            if len(ranked) > 1:
                sentences.append(_describe_winner(data, score, ranked))
    return sentences


def _describe_winner(data: str, score: str, ranked: list[tuple[str, Cell, float]]) -> str:
    """Describe the first of at least two models and how its interval lies to those of the others."""
    known, (first, best, half) = find_score(score), ranked[0]
    close = [model for model, cell, other in ranked[1:] if cell.mean + other >= best.mean - half]
    if close:
        verbs = "overlaps that" if len(close) == 1 else "overlaps those"
        comparison = f"Its interval {verbs} of {', '.join(close)}, so the order may be chance."
    else:
        comparison = (
            f"Its interval lies above that of {ranked[1][0]}, the next, {_mean_and_interval(score, *ranked[1][1:])}."
        )
    return (
        f"Highest mean {known.title} on {data}: {first}, {_mean_and_interval(score, best, half)} (95% interval, "
        f"{len(best.values)} seeds). {comparison}"
    )


def _mean_and_interval(score: str, cell: Cell, half: float) -> str:
    return f"{find_score(score).format(cell.mean)} ± {find_score(score).format(half)}"


def uninformative_groups(summary: Summary) -> list[str]:
    """Return a sentence for each model whose InfoM counts mostly latents that are informative about no source."""
    sentences = []
    for data, model in summary.groups:
        for weights in SCORED_WEIGHTS if summary.is_compared(data, model) else [summary.weights]:  # in the tables
            counts = summary.latent_counts(data, model, weights)
            if any(count.warning for count in counts):
                sentences.append(
                    f"the InfoM of {model} on {data} is not meaningful, because {describe_counts(counts)} latents "
                    f"that it counts are informative about any source ({weights} weights)."
                )
    return sentences


def _collapsed_note(summary: Summary) -> list[str]:
    """Return which selected values encode much less of the sources than other values that were eligible."""
    runs, score = summary.runs, summary.column("infoe", summary.plan.scored_weights)
    if score not in runs:
        return []
    tuning = runs[(runs.stage == "tune") & (runs.state == "done") & runs.near.ne(False)]
    cells = []
    for (data, model), grid in tuning.groupby(["data", "model"], sort=False):
        means = grid.groupby("value").agg(infoe=(score, "mean"), selected=("selected", "any"))
        best, selected = means.infoe.idxmax(), means[means.selected]
        if len(selected) and selected.infoe.iloc[0] < LOW_INFOE * means.infoe[best]:
            value, infoe = selected.index[0], selected.infoe.iloc[0]
            cells.append(f"{model} on {data} ({value:g}: InfoE {infoe:.2f}; {best:g}: {means.infoe[best]:.2f})")
    if not cells:
        return []
    return [
        "the selected value of the hyperparameter has less than half of the InfoE of another value that could have "
        f"been selected: {', '.join(cells)}. Selection takes the highest InfoM, which says nothing about sources that "
        "a model does not encode."
    ]


def _agreement_note(summary: Summary, data: str) -> str:
    """Return how the runs on data without sources are compared, and which of them to take."""
    start = f"{data} has no sources, so there is no InfoMEC."
    runs = summary.counted[summary.counted.data == data]
    runs = runs[runs[AGREEMENT].notna()] if AGREEMENT in runs else runs[:0]
    if runs.empty:
        return f"{start} Agreement compares at least two runs; raise rerun_seeds to train more."
    best = runs.loc[runs[AGREEMENT].idxmax()]
    others = "the other run" if len(runs) == 2 else f"the other {len(runs) - 1} runs"
    few = f" With {len(runs)} runs, agreement says little." if len(runs) < MIN_RUNS else ""
    return (
        f"{start} Its runs are compared by agreement: how far the codes of a run correspond to those of {others} "
        f"on the same images (mean). The run to take is {best.model} with seed {best.seed} (agreement "
        f"{best[AGREEMENT]:.3f}): runs/{best.run} in the folder of the study.{few}"
    )


def _data_note(summary: Summary) -> str:
    sets = [
        f"{label} ({about['origin']}, {observed.size}, {about['num_images']:,} {observed.traits.many})"
        for label, about in summary.data_descriptions.items()
        for observed in (described_observations(about),)
    ]
    steps = summary.counted.steps
    updates = f"{steps.min():,.0f}" + (f" to {steps.max():,.0f}" if steps.nunique() > 1 else "")
    paper = f"; the paper's runs have {training_preset('full', '').steps:,} at 64×64"
    is_papers = any(about["name"] in PUBLISHED_SETS for about in summary.data_descriptions.values())
    return (
        f"Data: {'; '.join(sets)}. {updates} updates per run{paper if is_papers else ''}. Scored on up to "
        f"{summary.plan.num_samples:,} samples with the protocol {summary.plan.protocol}."
    )


def _weights_note(summary: Summary) -> str:
    is_tuned = ((summary.runs.stage == "tune") & (summary.runs.state == "done")).any()
    selected = f" Hyperparameters were selected by those of the {summary.plan.scored_weights} weights."
    return (
        f"Scores of the {summary.weights} weights, unless a row says otherwise"
        " (averaged: an exponential average over the training, which the authors' code does not have; raw: those of "
        f"the last update).{selected if is_tuned else ''}"
    )


def _seeds_note(summary: Summary) -> str:
    numbers = [len(runs) for runs in summary.groups.values()]
    most = max(numbers)
    stages = {
        "reruns": "",
        "all-seeds": ", those of tuning included",
        "authors": ", those of tuning included, with the deviation of the authors' tables, which divides by n",
    }[summary.aggregate]
    if most < MIN_SEEDS:
        number = "One seed" if most == 1 else "Two seeds, both shown"
        return f"{number}{stages}: too few for an interval or a test, so nothing is bold."
    scored = [len(summary.values(*pair, score)) or most for pair in summary.groups for score in PAPER_COLUMNS]
    fewer = " (where n is given, over fewer; with one or two, each value)" if min(numbers + scored) < most else ""
    bold = BOLD["authors" if summary.aggregate == "authors" else "tested"]
    return f"Mean ± half of the 95% t-interval over {most} seeds{stages}{fewer}. {bold} {SEPARATE}"


def _infoe_note(summary: Summary) -> str:
    """Return how InfoE reads codes, as the results say."""
    one_hot = [model for data, model in summary.groups if summary.infoe_input(data, model) == "one-hot"]
    if not one_hot:
        return "InfoE reads numbers: continuous latents, or those that codes stand for."
    text = f"InfoE reads the codes of {', '.join(dict.fromkeys(one_hot))} as one-hot vectors"
    if any(summary.values(*pair, "infoe_scalar") for pair in summary.groups):
        text += f"; the column “{find_score('infoe_scalar').heading}” reads the numbers that they stand for"
    return f"{text}."


def _incomparable_note(summary: Summary) -> list[str]:
    """Return how runs of the paper's models differ from the paper's, one sentence per reason."""
    known = [(*pair, ", ".join(why)) for pair, why in summary.differences.items() if why is not None]
    table = pd.DataFrame(known, columns=["data", "model", "reason"])
    sentences = []
    for reason, rows in table[table.reason != ""].groupby("reason", sort=False):
        names = [
            f"{'the models' if len(models) == (table.data == data).sum() else ', '.join(models)} on {data}"
            for data, models in rows.groupby("data", sort=False).model
        ]
        sentences.append(
            f"The runs of {'; '.join(names)} differ from the paper's: {reason}. Compare ranks rather than numbers."
            if summary.plan.show_published
            else f"No published numbers are shown for {'; '.join(names)}, because the runs differ from the paper's: "
            f"{reason}."
        )
    return sentences
