"""Decide which runs may stand beside a published number: those of the same model, data set and scoring.

The published numbers are of full-size networks at 64×64 pixels, on every combination of a data set's sources, scored on
10,000 samples. A run may differ in its number of updates, its tuned value, its form (paper or official), its precision,
and in whether its images are rendered; the notes of the tables say so. Any other difference is a reason to show none.
"""

import math
from typing import TYPE_CHECKING, Any

from ...data.sources import SOURCES
from ...observations import described_observations, square_images
from ...presets import MODELS
from ...published import published_results
from ...resolving import resolve
from ..plan import Plan

if TYPE_CHECKING:
    from .aggregate import Group

RESOLUTION = 64
NUM_SAMPLES = 10_000
RANDOM_SOURCES = ("noise", "continuous", "correlated")  # entries of a data set that change its images


def differences_from_paper(plan: Plan, group: "Group") -> list[str] | None:
    """Return in words how runs differ from those of the paper.

    Returns:
        An empty list if published numbers may stand beside them; None if the paper has no such model or data set.
    """
    if not any(key[:2] == (group.data, group.model) for key in published_results()):
        return None
    model = next(entry for entry in plan.models if entry.label == group.model)
    data = next(entry for entry in plan.data if entry.label == group.data)
    reasons = [f"it is the model {model.name}"] if model.name != model.label else []
    reasons += [f"it is the data set {data.name}"] if data.name != data.label else []
    return reasons or [
        *_data_differences(group.data, group.results[0]["data"], data.options),
        *_model_differences(group, model.options),
        *_scoring_differences(group.results[0]),
    ]


def _data_differences(name: str, description: dict[str, Any], options: dict[str, Any]) -> list[str]:
    reasons = []
    observed = described_observations(description)
    if observed != square_images(RESOLUTION):
        unit = " pixels" if observed.is_standard else ""
        reasons.append(f"{observed.size}{unit} instead of {RESOLUTION}×{RESOLUTION}")
    sources = SOURCES[name]
    missing = [source for source in sources if source not in description["source_names"]]
    sizes = dict(zip(description["source_names"], description.get("source_sizes", ()), strict=False))
    if missing:
        reasons.append(f"no varying {', '.join(missing)}")
    elif sizes and sizes != sources:
        reasons.append("other numbers of values per source")
    elif description["num_images"] != math.prod(sources.values()):
        reasons.append(f"{description['num_images']:,} images instead of {math.prod(sources.values()):,}")
    return reasons + [f"{key} sources" if key != "noise" else key for key in RANDOM_SOURCES if options.get(key)]


def _model_differences(group: "Group", options: dict[str, Any]) -> list[str]:
    """Return how the config of the first run differs from the paper's preset, apart from the tuned value."""
    if options.get("size", "full") != "full":
        return ["small networks"]
    config = group.runs[0].config
    preset = MODELS[group.model]
    same = {key: options[key] for key in ("form",) if key in options}
    same |= {"steps": config.training.steps, "seed": config.training.seed, "precision": config.training.precision}
    paper = resolve(group.model, config.data, len(config.data.source_names), **same)
    tuned = "weight_decay" if preset.tuned == "weight_decay" else f"weights.{preset.tuned}"
    return [
        f"{key.rpartition('.')[2].replace('_', ' ')} {ours} instead of {theirs}"
        for key, (ours, theirs) in config.difference(paper).items()
        if not (preset.grid and key.endswith(tuned))
    ]


def _scoring_differences(results: dict[str, Any]) -> list[str]:
    number = results["num_samples"]
    return [] if number == NUM_SAMPLES else [f"scored on {number:,} samples instead of {NUM_SAMPLES:,}"]
