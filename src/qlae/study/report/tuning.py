"""Show how values were selected: the chosen values, and InfoM and PSNR or R² over the grid of each tuned model.

On data without sources, agreement takes the place of InfoM.
"""

import csv
import io

from ...metrics import count_informative, find_score
from ...report.page import paragraph, plain_table
from ..selection import FIDELITY_SCORES, describe_rule, lowest_near
from .aggregate import Group, Summary
from .charts import CurvePoint, Dot, draw_curve, make_bounds
from .run_links import run_link
from .tables import order_models


def tuning_html(summary: Summary) -> str:
    """Return the chosen values and the tuning curves; only the values if nothing was tuned."""
    parts = [_chosen_html(summary)]
    pairs = [pair for pair in _ordered_pairs(summary) if summary.tuning.get(pair)]
    if pairs:
        fidelity = summary.fidelity
        rule = describe_rule(summary.plan.near_db, summary.plan.scored_weights, fidelity)
        headings = " or ".join(find_score(key).heading for key in fidelity)
        parts.append(
            paragraph(
                f"Selected: {rule}. Each dot is a run, the line passes through the means, the band marks the selected "
                f"value. Dashed: the lowest mean {headings} that counts; values below it are grey."
            )
        )
        panels = [
            f"<div class=panel><h3>{data}: {model}</h3><div class=pair>{_curves(summary, data, model)}</div></div>"
            for data, model in pairs
        ]
        parts.append(f"<div class=charts>{''.join(panels)}</div>")
    return "".join(parts)


def _ordered_pairs(summary: Summary) -> list[tuple[str, str]]:
    models = [model for block in order_models(summary) for model in block]
    return [(data, model) for data in summary.data for model in models]


def _chosen_html(summary: Summary) -> str:
    """Return a table of the value that the reruns of each model used."""
    rows = []
    for data, model in _ordered_pairs(summary):
        group = summary.groups.get((data, model))
        if group is None:
            continue
        model_plan = next(entry for entry in summary.plan.models if entry.label == model)
        selected = summary.index.selected_values(data, model)
        grid = ", ".join(f"{value:g}" for value in model_plan.grid)
        source = f"selected out of {grid}" if selected else "preset or plan"
        rows.append(
            (data, model, model_plan.tuned.replace("_", " "), f"{_value_of(group, model_plan.tuned):g}", source)
        )
    return plain_table(("data", "model", "hyperparameter", "value", "from"), rows, num_text=5)


def _value_of(group: Group, tuned: str) -> float:
    """Return the tuned hyperparameter of the first run of a group, from its config."""
    config = group.runs[0].config
    return float(config.training.optimizer.weight_decay if tuned == "weight_decay" else config.objective.weights[tuned])


def _curves(summary: Summary, data: str, model: str) -> str:
    """Return the charts of one grid: InfoM or agreement, and PSNR or R²."""
    groups = summary.tuning[data, model]
    candidates = {entry["value"]: entry for entry in summary.index.selected.get(f"{data}/{model}", ())}
    model_plan = next(entry for entry in summary.plan.models if entry.label == model)
    charts = []
    for score in (next(iter(groups.values())).quality, *FIDELITY_SCORES):
        if any(group.cell(score) is None for group in groups.values()):
            continue
        points = [_point(group, score, value, candidates.get(value, {})) for value, group in groups.items()]
        values = [dot.value for point in points for dot in point.dots]
        filters = score in FIDELITY_SCORES and model_plan.reconstructs
        floor = lowest_near(score, max(point.mean for point in points), summary.plan.near_db) if filters else None
        bounds = make_bounds([*values, *([floor] if floor is not None else [])], find_score(score).bounds)
        charts.append(draw_curve(find_score(score).heading, model_plan.tuned.replace("_", " "), points, bounds, floor))
    return "".join(charts)


def _point(group: Group, score: str, value: float, candidate: dict[str, object]) -> CurvePoint:
    cell = group.cell(score)
    assert cell is not None  # the caller has checked that every run has this score
    dots = tuple(
        Dot(number, group.describe_value(place, score), run_link(run))
        for place, (number, run) in enumerate(zip(cell.values, group.runs, strict=True))
    )
    chosen, near = bool(candidate.get("selected")), bool(candidate.get("near", True))
    return CurvePoint(f"{value:g}", dots, cell.mean, chosen, excluded=not near)


def to_csv(summary: Summary) -> str:
    """Return the tuning runs as CSV, with what was selected."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = ("data", "model", "hyperparameter", "value", "seed", "weights")
    writer.writerow((*heads, "infom", "informative", "agreement", *summary.fidelity, "near", "selected"))
    for (data, model), groups in summary.tuning.items():
        tuned = next(entry.tuned for entry in summary.plan.models if entry.label == model)
        candidates = {entry["value"]: entry for entry in summary.index.selected.get(f"{data}/{model}", ())}
        for value, group in groups.items():
            near, selected = (int(candidates.get(value, {}).get(key, 0)) for key in ("near", "selected"))
            for seed, scores in zip(group.seeds, group.scores(), strict=True):
                count = count_informative(scores)
                informative = f"{count.informative}/{count.active}" if count else ""
                infom, agreement, *fidelity = (
                    f"{scores[key]:.6g}" if key in scores else "" for key in ("infom", "agreement", *summary.fidelity)
                )
                numbers = (infom, informative, agreement, *fidelity, near, selected)
                writer.writerow((data, model, tuned, f"{value:g}", seed, group.weights, *numbers))
    return out.getvalue()
