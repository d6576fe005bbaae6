"""``qlae select``: choose among runs without labels."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from .._imports import import_modules
from .arguments import Flag, Imports, OptionalPath
from .seeds import next_step


@dataclass(frozen=True)
class Select:
    """Rank runs of one data set without labels, and name the one to take.

    Disentangled runs resemble each other; entangled ones differ. So runs are ranked by how much their codes agree with
    those of the other runs, on the same images. For example:
      qlae select runs/shapes3d-qlae-*
      qlae select runs/seeds --plot agreement.png    # a folder of runs

    Attributes:
        runs: Run directories, or folders that hold run directories. They may differ in seed, hyperparameters and
            model, but not in data.
        weights: Which weights to compare.
        near_db: Runs whose PSNR is further below the best than this, in dB, are not taken; GANs are exempt. For vectors
            and series, the share of the variance that is not explained, 1 − R², takes the place of the PSNR.
        no_gap: Leave out the straight-through gap of discrete latents, which needs checkpoints and images.
        device: Where models run, if images have to be encoded: auto, cpu, cuda, cuda:1, …
        json: Print only JSON to standard output.
        csv: Write the table to this file, as CSV.
        plot: Draw the agreement of each pair of runs to this .png, .svg or .pdf file.
        imports: A module or file of yours to import first, which registers the runs' parts.
        quiet: Do not show progress bars.
    """

    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUN|FOLDER …", help_behavior_hint="")]]
    weights: Literal["averaged", "raw"] = "averaged"
    near_db: float = 6.0
    no_gap: Flag = False
    device: str = "auto"
    json: Flag = False
    csv: OptionalPath = None
    plot: OptionalPath = None
    imports: Imports = ()
    quiet: Flag = False

    def __call__(self) -> None:
        from .._io import write_bytes
        from ..selection import select
        from ..selection.display import plot_selection, print_selection, require_picture_path, selection_csv

        import_modules(self.imports)
        if not self.runs:
            raise ValueError("name the runs to compare: qlae select runs/shapes3d-qlae-*")
        if self.plot is not None:
            require_picture_path(self.plot)
        if self.csv is not None and not self.csv.parent.is_dir():
            raise ValueError(f"--csv takes a file in a folder that exists, got {self.csv}")
        if not self.near_db >= 0:
            raise ValueError(f"--near-db must not be negative, got {self.near_db:g}")
        selection = select(
            self.runs,
            weights=self.weights,
            gap=not self.no_gap,
            near_db=self.near_db,
            device=self.device,
            show=not self.quiet,
        )
        if self.csv is not None:
            write_bytes(self.csv, selection_csv(selection).encode())
        if self.plot is not None:
            plot_selection(selection, self.plot)
        if self.json:
            print(json.dumps(selection.to_dict(), indent=2, allow_nan=False))
            return
        print_selection(selection)
        if self.csv is not None:
            print(f"Table as CSV: {self.csv}")
        if self.plot is not None:
            print(f"Picture: {self.plot}")
        print(next_step(selection.best.run, self.imports))
