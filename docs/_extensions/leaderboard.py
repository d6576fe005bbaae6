"""Write the leaderboard from the study in ``results/leaderboard``: per data set a chart, a table and pictures."""

import itertools
from pathlib import Path
from statistics import fmean, median
from typing import Any

from generated_pages import register, write_page
from run_pictures import TITLES, beside_heatmap, copy_pictures, draw_heatmap, find_pictures

from qlae.metrics import find_score
from qlae.study.folder import StudyFolder
from qlae.study.report.aggregate import Group, Summary, summarise
from qlae.study.report.charts import Dot, DotRow, draw_dots

#: Scores of which a row shows the mean, with short headings.
MEANS = {
    **{"infom_corrected": "corrected", "infoc": "InfoC", "infoe": "InfoE", "d": "D", "i": "I", "c": "C"},
    "psnr": "PSNR",
}
OPENING = """# Leaderboard

All models make the same number of updates ({steps:,}) on the four rendered data sets, with the paper's networks and
published hyperparameters; nothing was tuned here. Models are ordered by their mean InfoM, and every seed is shown.

```bash
qlae study results/leaderboard/plan.toml --out runs/leaderboard
```

`qlae-fast` is QLAE by [our recipe](../../recipe.md), `qlae` is QLAE by the paper's, stopped after as many updates, and
`qlae-4-values` has the falling learning rate of our recipe and codebooks of 4 values, without the penalty on entropy.
Scores are those of the averaged weights on 10,000 samples, protocol `paper`. D, I and C are computed from the kept
samples (`qlae evaluate RUN --from-sample --metrics dci`). Published values are of the real images, after 200,000
updates. Seconds are the median duration of training on one NVIDIA H200, which some runs shared with others.

"Corrected" is InfoM [corrected for chance](../../metrics.md#scores-corrected-for-chance); PSNR is in dB. **{done} of
{all} runs are finished.**
"""


def write_leaderboard(folder: Path, results: Path) -> None:
    """Write ``leaderboard.md`` and its pictures into a folder."""
    pictures = folder / "leaderboard"
    pictures.mkdir(parents=True, exist_ok=True)
    summary = summarise(StudyFolder.open(results / "leaderboard"))
    states = [entry.state for entry in summary.index.runs.values()]
    steps = summary.plan.content["steps"]
    lines = [OPENING.format(steps=steps, done=states.count("done"), all=len(states))]
    for data in summary.data:
        groups = sorted((g for (name, _), g in summary.groups.items() if name == data), key=_mean_infom, reverse=True)
        lines += [f"## {TITLES[data]}", "", _chart(summary, groups), "", *table(summary, data, groups), ""]
        lines += ["### What the latents encode", "", "Of each model, the run of median InfoM.", ""]
        for group in groups:
            lines += _pictures(group, pictures)
    write_page(folder / "leaderboard.md", "\n".join(lines))


def table(summary: Summary, data: str, groups: list[Group]) -> list[str]:
    """Return the lines of a data set's table, from the best model to the worst, and of the models without runs."""
    heads = ["model", "InfoM", "of each seed", "published", *MEANS.values(), "seconds"]
    lines = [_line(*heads), "|---|---:|---|" + "---:|" * (len(heads) - 3)]
    for group in groups:
        values = list(group.values("infom").values())
        published = summary.published(data, group.model, "infom")
        seconds = [result["seconds"] for result in group.results]
        lines.append(
            _line(
                f"`{group.model}`",
                f"{fmean(values):.3f}",
                ", ".join(f"{value:.3f}" for value in values),
                f"{published.mean:.2f}" if published else "–",
                *(_mean(group, key) for key in MEANS),
                f"{median(seconds):.0f}",
            )
        )
    finished = {group.model for group in groups}
    absent = [f"`{model.label}`" for model in summary.plan.models if model.label not in finished]
    return [*lines, *(["", f"Not run yet: {', '.join(absent)}."] if absent else [])]


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _mean_infom(group: Group) -> float:
    return fmean(group.values("infom").values())


def _mean(group: Group, key: str) -> str:
    values = group.values(key).values()
    return find_score(key).format(fmean(values)) if values else "–"


def _chart(summary: Summary, groups: list[Group]) -> str:
    """Return a dot per seed and model over InfoM, with a line at the published mean."""
    rows = []
    for group in groups:
        dots = (Dot(value, group.describe_value(n, "infom")) for n, value in enumerate(group.values("infom").values()))
        published = summary.published(group.data, group.model, "infom")
        rows.append(DotRow(group.model, tuple(dots), published.mean if published else None))
    chart = draw_dots("InfoM, a dot per seed; line: published", rows, (0.0, 1.0))
    return f"```{{raw}} html\n{chart}\n```"


def _pictures(group: Group, pictures: Path) -> list[str]:
    index = group.median_index()
    name = f"{group.data}-{group.model}"
    run = group.runs[index]
    scores = group.scores()[index]
    draw_heatmap(run.path, scores, group.results[index]["data"]["source_names"], pictures / f"{name}-nmi.png")
    title = f"{group.model} on {TITLES[group.data]}"
    most_telling = dict(itertools.islice(find_pictures([run.path], name).items(), 1))
    right = copy_pictures(most_telling, pictures, name, title)
    return [
        f"**{group.model}**, seed {group.seeds[index]}, InfoM {scores['infom']:.3f}",
        "",
        *beside_heatmap(pictures, f"{name}-nmi.png", f"NMI of latents and sources, {title}", right),
    ]


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    return register(app, lambda folder, root: write_leaderboard(folder, root / "results"))
