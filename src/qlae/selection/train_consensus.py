"""Train several seeds of a model, find what they agree on, and train one model of it.

The folder holds the runs ``s0``, ``s1``, …, their consensus in ``consensus`` and its model in ``model``. The same call
continues where it was interrupted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from .._io import read_json, write_json
from .._process import pick_device, usual_errors
from ..configuring import prepare_data
from ..metrics import find_score
from ..metrics.parallel import num_cores
from ..options import ExecutionOptions
from ..presets import ModelSpec, find_model
from ..runs.directory import SELECTION_FILE, Run
from .consensus import Consensus, consensus
from .consensus_display import score_rows
from .distill import BASE, NUM_FREE, score_model, train_consensus_model
from .train_seeds import Engine, train_seeds

CONSENSUS_FOLDER, MODEL_FOLDER = "consensus", "model"
SHARED = ("size", "seed", *(field.name for field in fields(ExecutionOptions)))  # with other models than QLAE
FIDELITY = ("psnr", "held_out_psnr", "r2", "held_out_r2")

Scores = dict[str, float]


class ConsensusTraining(NamedTuple):
    """The result of `train_consensus`.

    Attributes:
        runs: of the seeds, in their order.
        consensus: what they agree on.
        model: the run that imitates it; None if nothing is confirmed.
    """

    runs: tuple[Run, ...]
    consensus: Consensus
    model: Run | None

    def scores(self) -> list[tuple[str, Scores]]:
        """Return InfoMEC and the PSNR or R² of the runs, the code and the model, with what has them.

        Data without sources have only the PSNR or R².
        """
        own = self.consensus.scores()
        rows = [] if own is None else score_rows(own)
        averaged = [run.results["averaged"] for run in self.runs]
        keys = [key for key in FIDELITY if all(key in scores for scores in averaged)]
        means = {key: float(np.mean([scores[key] for scores in averaged])) for key in keys}
        title = f"mean of {len(self.runs)} single runs"
        rows = [(name, row | means if name == title else row) for name, row in rows]
        if title not in dict(rows):
            rows.append((title, means))
        if self.model is not None:
            scored, results = score_model(self.model) or {}, self.model.results["averaged"]
            if scored:
                rows.append(("model, imitated latents alone", scored["imitated"]))
            rows.append(("model, all latents", scored.get("all", {}) | {key: results[key] for key in keys}))
        return rows


@usual_errors()
def train_consensus(
    model: str | ModelSpec,
    data: Any,
    *,
    out: str | os.PathLike[str],
    seeds: int,
    workers: int = 1,
    imports: Sequence[str] = (),
    engine: Engine | None = None,
    num_free: int = NUM_FREE,
    show: bool = True,
    **options: Any,
) -> ConsensusTraining:
    """Train a model with several seeds, find their consensus, and train one QLAE of it.

    Args:
        model, data, show: as for ``qlae.train``.
        out: the folder of the runs, the consensus and its model.
        seeds, workers, imports, engine: as for ``qlae.train_seeds``.
        num_free: number of latents of the model that imitate nothing.
        options: as for ``qlae.train``; ``seed`` is the first seed. If ``model`` is ``"qlae"``, the model of the
            consensus is trained with the same options, otherwise only with the same ``size``, ``seed`` and options of
            the execution.
    """
    folder, spec = Path(out), find_model(model)
    data = prepare_data(model, data, out=folder / f"s{options.get('seed', 0)}", show=show, **options)
    training: dict[str, Any] = {"workers": workers, "imports": imports, "engine": engine}
    selection = train_seeds(model, data, out=folder, seeds=seeds, show=show, **training, **options)
    runs = tuple(sorted((ranked.run for ranked in selection.runs), key=lambda run: int(run.results["seed"])))
    device = options.get("device", "auto")
    found = consensus(runs, data=data, device=device, show=show)
    found.save(folder / CONSENSUS_FOLDER, device=device, show=show)
    if not found.confirmed:
        return ConsensusTraining(runs, found, None)
    shared = {name: value for name, value in options.items() if spec.name == BASE or name in SHARED}
    shared.pop("num_latents", None)
    if not isinstance(shared.get("num_values"), int):  # one number per latent of the runs
        shared.pop("num_values", None)
    distilled = train_consensus_model(found, data, folder / MODEL_FOLDER, num_free=num_free, show=show, **shared)
    selected = folder / SELECTION_FILE  # so that `qlae explore` on the folder opens the model
    write_json(selected, read_json(selected) | {"take": str(distilled.path)})
    return ConsensusTraining(runs, found, distilled)


def default_workers(seeds: int, device: str) -> int:
    """Return how many runs to train at the same time: one per core, or one on a GPU."""
    return min(seeds, num_cores()) if pick_device(device).type == "cpu" else 1


def training_table(rows: Sequence[tuple[str, Mapping[str, float]]]) -> Table:
    """Return a table of `ConsensusTraining.scores`."""
    keys = dict.fromkeys(key for _, row in rows for key in row)
    caption = "The consensus never uses the sources" if "infom" in keys else None
    table = Table(box=SIMPLE_HEAD, show_edge=False, caption=caption, caption_justify="left")
    for title in ("", *(find_score(key).title for key in keys)):
        table.add_column(title, justify="right" if title else "left")
    for name, row in rows:
        table.add_row(name, *(f"{row[key]:.{1 if key == 'psnr' else 3}f}" if key in row else "" for key in keys))
    return table
