"""Write the leaderboards from their studies in ``results``: per data set a chart, a table and pictures."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from generated_pages import register, write_page
from run_pictures import TITLES, beside_heatmap, copy_pictures, draw_heatmap, find_pictures

from qlae.published import published_results
from qlae.study.folder import StudyFolder
from qlae.study.report.charts import Dot, DotRow, draw_dots
from qlae.study.report.summary import Group, Summary, summarise

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
        groups = sorted((g for (name, _), g in summary.groups.items() if name == data), key=_mean_infom, reverse=True)
        published = {group.model: _published(board, group) for group in groups}
        lines += [f"## {TITLES[data]}", "", _chart(groups, published), "", *table(summary, groups, published), ""]
        lines += ["### What the latents encode", "", "Of each model, the run of median InfoM.", ""]
        for group in groups:
            lines += _pictures(group, pictures)
    write_page(folder / f"{board.name}.md", "\n".join(lines))


def _published(board: Board, group: Group) -> float | None:
    """Return the published InfoM of a model, also for variants of it; None if there is none."""
    key = group.data, group.results["model"], "infom"
    return published_results()[key].mean if board.shows_published and key in published_results() else None


def table(summary: Summary, groups: list[Group], published: Mapping[str, float | None]) -> list[str]:
    """Return the lines of a data set's table, from the best model to the worst, and of the models without runs.

    Args:
        summary: of the study.
        groups: the runs of each model.
        published: InfoM by model; there is no such column if there are no values.
    """
    has_published = any(published.values())
    heads = ["model", "InfoM", "of each seed", *["published"] * has_published, *MEANS.values(), "s"]
    lines = [_line(*heads), "|---|---:|---|" + "---:|" * (len(heads) - 3)]
    for group in groups:
        values = list(group.values("infom").values())
        mean = published[group.model]
        lines.append(
            _line(
                f"`{group.model}`",
                f"{fmean(values):.3f}",
                _in_rows([f"{value:.3f}" for value in values]),
                *([f"{mean:.2f}" if mean else "–"] if has_published else []),
                *(_mean(group, key) for key in MEANS),
                f"{group.rows.seconds.median():.0f}",
            )
        )
    finished = {group.model for group in groups}
    absent = [f"`{model.label}`" for model in summary.plan.models if model.label not in finished]
    return [*lines, *(["", f"Not run yet: {', '.join(absent)}."] if absent else [])]


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _in_rows(texts: list[str], length: int = 2) -> str:
    """Return texts with a comma between them, in rows of a few, so that the table fits into the page."""
    return ",<br>".join(", ".join(texts[start : start + length]) for start in range(0, len(texts), length))


def _mean_infom(group: Group) -> float:
    return fmean(group.values("infom").values())


def _mean(group: Group, key: str) -> str:
    values = group.values(key).values()
    return f"{fmean(values):.{1 if key == 'psnr' else 2}f}" if values else "–"


def _chart(groups: list[Group], published: Mapping[str, float | None]) -> str:
    """Return a dot per seed and model over InfoM, with a line at the published mean."""
    rows = []
    for group in groups:
        dots = (Dot(value, group.describe_value(n, "infom")) for n, value in enumerate(group.values("infom").values()))
        rows.append(DotRow(group.model, tuple(dots), published[group.model]))
    title = "InfoM, a dot per seed" + ("; line: published" if any(published.values()) else "")
    chart = draw_dots(title, rows, (0.0, 1.0))
    return f"```{{raw}} html\n{chart}\n```"


def _pictures(group: Group, pictures: Path) -> list[str]:
    name = f"{group.data}-{group.model}"
    run = group.median_run
    results = run.results
    scores = results[group.weights]
    draw_heatmap(run.path, scores, results["data"]["source_names"], pictures / f"{name}-nmi.png")
    title = f"{group.model} on {TITLES[group.data]}"
    most_telling = dict(itertools.islice(find_pictures([run.path], name).items(), 1))
    right = copy_pictures(most_telling, pictures, name, title)
    return [
        f"**{group.model}**, seed {results['seed']}, InfoM {scores['infom']:.3f}",
        "",
        *beside_heatmap(pictures, f"{name}-nmi.png", f"NMI of latents and sources, {title}", right),
    ]


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    return register(app, lambda folder, root: write_leaderboards(folder, root / "results"))
