"""Write the leaderboards from their studies in ``results``: per data set a chart, a table and pictures."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
from generated_pages import register, write_page
from run_pictures import TITLES, beside_heatmap, copy_pictures, draw_heatmap, find_pictures

from qlae.paper_tables import published_results
from qlae.study.folder import StudyFolder
from qlae.study.report.charts import draw_dots
from qlae.study.report.study_page import score_dots
from qlae.study.report.summary import Summary, summarise

#: Scores of which a row shows the mean, with short headings.
MEANS = {
    **{"infom_corrected": "corrected", "infoc": "InfoC", "infoe": "InfoE", "d": "D", "i": "I", "c": "C"},
    "psnr": "PSNR",
}
FULL_SIZE = """# Leaderboard

All models make the same number of updates ({steps:,}) on the four rendered data sets, with the paper's networks and
published hyperparameters; nothing was tuned here. Models are ordered by their mean InfoM, and every seed is shown. The
[leaderboard of small networks](leaderboard-small.md) needs no GPU.

```bash
qlae study results/leaderboard/plan.toml --out runs/leaderboard
```

`qlae-fast` is QLAE by [our recipe](../../recipe.md), `qlae` is QLAE by the paper's, stopped after as many updates, and
`qlae-4-values` has the falling learning rate of our recipe and codebooks of 4 values, without the penalty on entropy.
Scores are those of the averaged weights on 10,000 samples, protocol `paper`. D, I and C are computed from the kept
samples (`qlae evaluate RUN --from-sample --metrics dci`). Published values are those of the model on the real images,
after 200,000 updates. The last column is the median duration of training in seconds, on one NVIDIA H200, which some
runs shared with others.

"Corrected" is InfoM [corrected for chance](../../metrics.md#scores-corrected-for-chance); PSNR is in dB. **{done} of
{all} runs are finished.**
"""
SMALL = """# Leaderboard of small networks

All models make the same number of updates ({steps:,}) on the four rendered data sets at 32×32 pixels, with [small
networks](../../models.md) that one CPU core trains in minutes; nothing was tuned here. Models are ordered by their mean
InfoM, and every seed is shown. These are not the paper's numbers: for those, see the [leaderboard at full
size](leaderboard.md).

```bash
qlae study results/leaderboard-small/plan.toml --out runs/leaderboard-small
```

The study takes two to three hours on two CPU cores, and resumes where it stopped. `qlae-fast` is QLAE by [our
recipe](../../recipe.md), `qlae` is QLAE with a constant learning rate, as in the paper. Both have codebooks of 4
values, the default of small networks. Scores are those of the averaged weights on 10,000 samples, protocol `paper`.
The last column is the median duration of training in seconds, on one core, while other jobs were running.

"Corrected" is InfoM [corrected for chance](../../metrics.md#scores-corrected-for-chance); PSNR is in dB. **{done} of
{all} runs are finished.**
"""


@dataclass(frozen=True)
class Board:
    """A leaderboard.

    Attributes:
        name: of the page, and of the study in ``results``.
        opening: how the page begins, with places for ``steps``, ``done`` and ``all``.
        shows_published: whether the published values are those of the same networks.
    """

    name: str
    opening: str
    shows_published: bool = True


BOARDS = (Board("leaderboard", FULL_SIZE), Board("leaderboard-small", SMALL, shows_published=False))


def write_leaderboards(folder: Path, results: Path) -> None:
    """Write the page of each leaderboard into a folder."""
    for board in BOARDS:
        write_leaderboard(board, folder, results)


def write_leaderboard(board: Board, folder: Path, results: Path) -> None:
    """Write the page of a leaderboard and its pictures into a folder."""
    pictures = folder / board.name
    pictures.mkdir(parents=True, exist_ok=True)
    summary = summarise(StudyFolder.open(results / board.name))
    steps = summary.plan.content["steps"]
    lines = [board.opening.format(steps=steps, done=(summary.runs.state == "done").sum(), all=len(summary.runs))]
    for data in summary.data:
        means = {
            model: fmean(summary.values(data, model, "infom").values()) for d, model in summary.groups if d == data
        }
        models = sorted(means, key=means.__getitem__, reverse=True)
        published = {model: value for model in models if (value := _published(board, summary, data, model))}
        chart = _chart(summary, data, models, published)
        lines += [f"## {TITLES[data]}", "", chart, "", *table(summary, data, models, published), ""]
        lines += ["### What the latents encode", "", "Of each model, the run of median InfoM.", ""]
        for model in models:
            lines += _pictures(summary, data, model, pictures)
    write_page(folder / f"{board.name}.md", "\n".join(lines))


def _published(board: Board, summary: Summary, data: str, model: str) -> float | None:
    """Return the published InfoM of a model, also for variants of it; None if there is none."""
    cell = published_results().get((data, summary.groups[data, model].preset.iloc[0], "infom"))
    return cell.mean if board.shows_published and cell else None


def table(summary: Summary, data: str, models: list[str], published: dict[str, float]) -> list[str]:
    """Return the lines of a data set's table, from the best model to the worst, and of the models without runs.

    Args:
        summary: of the study.
        data: label of the data set.
        models: labels of its models that have runs.
        published: InfoM by model; there is no such column if there are no values.
    """
    heads = ["model", "InfoM", "of each seed", *["published"] * bool(published), *MEANS.values(), "s"]
    lines = [_line(*heads), "|---|---:|---|" + "---:|" * (len(heads) - 3)]
    for model in models:
        values = summary.values(data, model, "infom").values()
        mean = f"{published[model]:.2f}" if model in published else "–"
        lines.append(
            _line(
                f"`{model}`",
                f"{fmean(values):.3f}",
                _in_rows([f"{value:.3f}" for value in values]),
                *[mean] * bool(published),
                *(_mean(summary, data, model, key) for key in MEANS),
                f"{summary.groups[data, model].seconds.median():.0f}",
            )
        )
    absent = [f"`{model.label}`" for model in summary.plan.models if model.label not in models]
    return [*lines, *(["", f"Not run yet: {', '.join(absent)}."] if absent else [])]


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _in_rows(texts: list[str], length: int = 2) -> str:
    """Return texts with a comma between them, in rows of a few, so that the table fits into the page."""
    return ",<br>".join(", ".join(texts[start : start + length]) for start in range(0, len(texts), length))


def _mean(summary: Summary, data: str, model: str, key: str) -> str:
    cell = summary.cell(data, model, key)
    return f"{cell.mean:.{1 if key == 'psnr' else 2}f}" if cell else "–"


def _chart(summary: Summary, data: str, models: list[str], published: dict[str, float]) -> str:
    """Return a dot per seed and model over InfoM, with a line at the published mean."""
    dots = pd.concat([score_dots(summary, summary.groups[data, model], "infom") for model in models])
    title = "InfoM, a dot per seed" + ("; line: published" if published else "")
    chart = draw_dots(title, dots.assign(link=""), (0.0, 1.0), published)
    return f"```{{raw}} html\n{chart}\n```"


def _pictures(summary: Summary, data: str, model: str, pictures: Path) -> list[str]:
    name = f"{data}-{model}"
    run = summary.median_run(data, model)
    results = run.results
    scores = results[summary.weights]
    draw_heatmap(run.path, scores, results["data"]["source_names"], pictures / f"{name}-nmi.png")
    title = f"{model} on {TITLES[data]}"
    most_telling = dict(itertools.islice(find_pictures([run.path], name).items(), 1))
    right = copy_pictures(most_telling, pictures, name, title)
    return [
        f"**{model}**, seed {results['seed']}, InfoM {scores['infom']:.3f}",
        "",
        *beside_heatmap(pictures, f"{name}-nmi.png", f"NMI of latents and sources, {title}", right),
    ]


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    return register(app, lambda folder, root: write_leaderboards(folder, root / "results"))
