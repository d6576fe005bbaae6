"""``qlae consensus``: the factors on which several runs agree."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from .._imports import import_modules
from .arguments import Flag, Imports, OptionalInt, OptionalName
from .train import next_step


@dataclass(frozen=True)
class Consensus:
    """Find the factors on which several runs of one data set agree, without labels.

    A latent that encodes one source of the data has a counterpart in every run that found the source. Entangled latents
    are entangled differently in each run. So the code that is kept takes each latent from the run that has it purest,
    and says how many other runs confirm it. Train five seeds or more, then compare them. For example:
      qlae train qlae --data photos/ --num-latents 12 --seeds 5 --out runs/photos
      qlae consensus runs/photos                    # a folder of runs
      qlae consensus runs/photos --out consensus    # write a page with pictures: consensus/index.html
      qlae consensus runs/a runs/b runs/c           # runs of different models or settings
      qlae consensus runs/photos --out consensus --model    # also train one model of it: consensus/model

    Attributes:
        runs: Run directories, or folders that hold run directories. They may differ in seed, hyperparameters and
            model, but not in data.
        out: Write a page (index.html), a picture of factors and runs (factors.png), the codes of the compared
            observations (codes.npz) and all numbers (consensus.json) to this folder.
        model: Also train one qlae that imitates the latents of the consensus, to OUT/model. It is a run directory like
            any other, with networks of the size that the runs have. The same command resumes it.
        free_latents: Number of latents of the model that imitate nothing, for what no factor explains.
        steps: Number of updates of the model; by default as for `qlae train qlae`.
        threads: Number of CPU threads that train the model.
        weights: Which weights to compare.
        data: The data set by name, or the path of your own, if it is no longer where the runs say; needed only if the
            runs were evaluated on different observations.
        device: Where models run: auto, cpu, cuda, cuda:1, …
        json: Print only JSON to standard output.
        imports: A module or file of yours to import first, which registers the runs' parts.
        quiet: Do not show progress bars.
    """

    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUN|FOLDER …", help_behavior_hint="")]]
    out: Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")] = None
    model: Flag = False
    free_latents: int = 4
    steps: OptionalInt = None
    threads: OptionalInt = None
    weights: Literal["averaged", "raw"] = "averaged"
    data: OptionalName = None
    device: str = "auto"
    json: Flag = False
    imports: Imports = ()
    quiet: Flag = False

    def __call__(self) -> None:
        from ..selection.consensus import consensus

        import_modules(self.imports)
        if not self.runs:
            raise ValueError("name the runs to compare: qlae consensus runs/photos")
        if self.out is not None:
            require_folder(self.out)
        elif self.model:
            raise ValueError("--model trains a model in a folder; name it with --out DIR")
        show, data = not self.quiet, self._data()
        found = consensus(self.runs, weights=self.weights, data=data, device=self.device, show=show)
        scores = found.scores()
        paths = [] if self.out is None else found.save(self.out, device=self.device, show=show)
        if not self.json:
            print_consensus(found, scores)
        model = self._train_model(found, data) if self.model and found.confirmed else None
        if self.json:
            made = {} if model is None else {"model": str(model.path)}
            print(json.dumps(found.to_dict() | {"scores": scores} | made, indent=2, allow_nan=False))
            return
        if paths:
            print(f"{self.out}: {', '.join(path.name for path in paths)}")
        else:
            print("For a page with pictures of each factor, add --out DIR")
        if model is not None:
            print(f"{model.path}: a model that imitates the latents. {next_step(model, self.imports)}")
        elif self.model:
            print("No model was trained, since there is nothing to imitate")

    def _train_model(self, found: Any, data: Any) -> Any:
        """Train the model of a consensus, and return its run."""
        from ..selection.distill import train_consensus_model

        assert self.out is not None
        return train_consensus_model(
            found,
            data,
            self.out / "model",
            num_free=self.free_latents,
            steps=self.steps,
            threads=self.threads,
            device=self.device,
            show=not self.quiet,
        )

    def _data(self) -> Any:
        """Return the data set that was named, read as the first run reads its data; None if none was named."""
        if self.data is None:
            return None
        from ..data.model_inputs import load_matching
        from ..selection.ranking import find_runs

        config = find_runs(self.runs)[0].config.data
        return load_matching(self.data, config.observations, config.spec)


def require_folder(path: Path) -> None:
    """Raise an error unless a consensus can be written to a folder: a new or an empty one, or that of a consensus."""
    if path.is_file():
        raise ValueError(f"--out takes a folder, and {path} is a file")
    if path.is_dir() and any(path.iterdir()) and not (path / "consensus.json").is_file():
        raise ValueError(f"{path} is not empty and holds no consensus; choose a new folder with --out")


def print_consensus(found: Any, scores: dict[str, Any] | None) -> None:
    """Print the factors, the scores if the data have sources, the caveats and the verdict."""
    from ..report.score_table import print_table
    from ..selection.consensus_display import consensus_table

    console = print_table(consensus_table(found)) if found.factors else Console()
    if scores:
        console.print()
        console.print(score_table(scores))
        console.print("Scores by the sources, which the consensus never uses", highlight=False)
    console.print()
    notes = [f"Skipped: {skip.reason}" for skip in found.skipped]
    notes += [f"Warning: {warning}" for warning in found.warnings]
    for note in notes:
        console.print(note, style="yellow", markup=False, highlight=False, soft_wrap=True)
    console.print(found.describe(), markup=False, highlight=False, soft_wrap=True)


def score_table(scores: dict[str, Any]) -> Table:
    """Return InfoMEC of the code and of the single runs as a table."""
    from ..selection.consensus_display import score_rows

    table = Table(box=SIMPLE_HEAD, show_edge=False)
    for name in ("code", "InfoM", "InfoE", "InfoC"):
        table.add_column(name, justify="left" if name == "code" else "right")
    for name, row in score_rows(scores):
        table.add_row(name, *(f"{row[key]:.3f}" for key in ("infom", "infoe", "infoc")))
    return table
