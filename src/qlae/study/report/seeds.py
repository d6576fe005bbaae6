"""Show every seed: a dot per run for each score, and the same numbers as CSV."""

import csv
import io

from ...metrics import find_score
from ..plan import SCORED_WEIGHTS
from .aggregate import Group, Summary
from .charts import Dot, DotRow, draw_dots, make_bounds
from .run_links import run_link
from .tables import EVERYTHING, order_models

#: Scores that have a chart.
CHARTS = tuple(key for key in EVERYTHING if key not in ("informative", "infoe_corrected", "infoc_corrected"))


def draw_seeds(summary: Summary) -> dict[str, list[str]]:
    """Return the charts of each data set, one per score: a row per model in the order of the tables."""
    models = [model for block in order_models(summary) for model in block]
    charts: dict[str, list[str]] = {}
    for data in summary.data:
        charts[data] = [chart for score in CHARTS if (chart := _draw_score(summary, data, models, score))]
    return charts


def _draw_score(summary: Summary, data: str, models: list[str], score: str) -> str:
    """Return the chart of one score; an empty string if no model has it."""
    rows = []
    for model in models:
        group = summary.groups.get((data, model))
        dots = _dots(group, score) if group else ()
        if dots:
            published = summary.published(data, model, score)
            rows.append(DotRow(model, dots, published.mean if published else None))
    if not rows:
        return ""
    values = [dot.value for row in rows for dot in row.dots] + [row.mark for row in rows if row.mark is not None]
    return draw_dots(find_score(score).heading, rows, make_bounds(values, find_score(score).bounds))


def _dots(group: Group, score: str) -> tuple[Dot, ...]:
    runs = zip(group.values(score).values(), group.runs, group.entries, strict=False)  # none without this score
    return tuple(
        Dot(value, group.describe_value(number, score), run_link(run), hollow=entry.stage == "tune")
        for number, (value, run, entry) in enumerate(runs)
    )


def to_csv(summary: Summary) -> str:
    """Return the scores of each run that counts as CSV, of both sets of weights."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("data", "model", "seed", "stage", "weights", "score", "value"))
    for group in summary.groups.values():
        for weights in SCORED_WEIGHTS:
            for scores, seed, entry in zip(group.scores(weights), group.seeds, group.entries, strict=True):
                for key in (*EVERYTHING, "active"):
                    if key in scores:
                        start = (group.data, group.model, seed, entry.stage, weights, key)
                        writer.writerow((*start, f"{scores[key]:.6g}"))
    return out.getvalue()
