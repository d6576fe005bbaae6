"""Scores in the terminal and as a picture: a table of all numbers, and the heatmap of NMI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qlae.metrics.infomec import InfoMEC
from qlae.metrics.scoring import Scores

if TYPE_CHECKING:
    from rich.table import Table

MEANING = {
    "infom": "modularity: each latent tells of one source",
    "infoe": "explicitness: sources can be read off linearly",
    "infoe_scalar": "the same, codes taken as numbers",
    "infoc": "compactness: each source sits in one latent",
    "d": "DCI disentanglement",
    "c": "DCI completeness",
    "i": "DCI informativeness, held-out accuracy",
    "mig": "gap between the two most informative latents",
    "sap": "gap between the two most predictive latents",
    "modularity": "modularity of Ridgeway & Mozer",
    "explicitness": "area under the ROC curve, 0.5 by chance",
    "irs": "robustness to interventions",
    "mcc": "mean correlation of matched pairs",
}


def score_table(scores: Scores, *, title: str | None = None) -> Table:
    """A `rich` table: one line a number, with its protocol, its meaning and, if there is one, its interval."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("score")
    table.add_column("value", justify="right")
    if scores.intervals:
        table.add_column(f"{scores.confidence:.0%} interval", justify="right")
    table.add_column("protocol")
    table.add_column("what it says")
    for name, value in scores.values.items():
        row = [name, f"{value:.3f}"]
        if scores.intervals:
            row.append("{:.3f} – {:.3f}".format(*scores.intervals[name]) if name in scores.intervals else "")
        table.add_row(*row, _protocol_of(scores, name), MEANING[name])
    return table


def print_scores(scores: Scores, *, title: str | None = None, console: Any = None) -> None:
    """Print the table, and what InfoMEC found out about the latents."""
    from rich.console import Console

    console = console or Console()
    console.print(score_table(scores, title=title))
    found = scores.results.get("infomec")
    if isinstance(found, InfoMEC):
        silent = np.flatnonzero(found.active & ~found.informative)
        console.print(f"{found.num_active} of {found.active.size} latents active, n = {found.num_samples:,}.")
        if silent.size:
            names = ", ".join(map(str, silent))
            console.print(f"Latents {names} tell no more than noise would: InfoM and InfoC count them all the same.")


def plot_nmi(
    result: InfoMEC, path: str | Path, *, source_names: Sequence[str] | None = None, title: str | None = None
) -> Path:
    """Write the heatmap of NMI, latents down and sources across; inactive latents red, uninformative ones grey.

    The name of the file decides the format (.png, .svg, .pdf).
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    num_sources, num_latents = result.nmi.shape
    names = list(source_names) if source_names is not None else [f"source {i}" for i in range(num_sources)]
    if len(names) != num_sources:
        raise ValueError(f"source_names has {len(names)} entries for {num_sources} sources: give one each.")
    figure = Figure(figsize=(1.6 + 0.62 * num_sources, 1.5 + 0.36 * num_latents), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    shown = np.clip(result.nmi.T, 0.0, 1.0)
    axes.imshow(shown, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    for j in range(num_latents):
        for i in range(num_sources):
            colour = "white" if shown[j, i] > 0.6 else "black"
            axes.text(i, j, f"{shown[j, i]:.2f}", ha="center", va="center", fontsize=7, color=colour)
    axes.set_xticks(range(num_sources), names, rotation=40, ha="right", fontsize=8)
    axes.set_yticks(range(num_latents), [f"z{j}" for j in range(num_latents)], fontsize=8)
    for j, label in enumerate(axes.get_yticklabels()):
        label.set_color("red" if not result.active[j] else "grey" if not result.informative[j] else "black")
    heading = f"InfoM {result.infom:.2f}   InfoE {result.infoe:.2f}   InfoC {result.infoc:.2f}"
    axes.set_title(f"{title}\n{heading}" if title else heading, fontsize=9)
    path = Path(path)
    figure.savefig(path, dpi=150)
    return path


def _protocol_of(scores: Scores, name: str) -> str:
    for result in scores.results.values():
        if name in result.to_dict():
            if name == "infoe" and isinstance(result, InfoMEC):
                return f"{result.protocol}, {result.infoe_input}"
            return str(result.protocol)
    return ""
