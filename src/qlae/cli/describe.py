"""``qlae describe``: what every latent of a model means, as a page and tables."""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from .._imports import import_modules
from .arguments import Directory, Flag, Imports, OptionalName, OptionalPath


@dataclass(frozen=True)
class Describe:
    """Describe what every latent of a trained model means: write a page and two tables, and print a summary.

    Each latent is set to each of its codes while the others stay as they are. The page shows what changes in the
    decoded observations, with intervals; what is lost without the latent; examples of each code; whether other runs
    found the latent too, if `qlae consensus` compared them; and how many codes survive decoding. For example:
      qlae describe runs/photos/s0
      qlae describe shapes3d-qlae --out shapes3d    # a model that comes with qlae
      qlae describe runs/wine --data other-wines.csv

    Attributes:
        run: The run directory, the folder of an exported model, or the name of a model that comes with qlae.
        data: A data set by name, or the path of your own, to measure on; by default the evaluation sample of the run.
        out: The folder to write index.html, latents.csv and effects.csv to; by default RUN/description, or
            description for a model that comes with qlae. It must be new, empty, or hold an earlier description.
        device: Where the model runs: auto, cpu, cuda, cuda:1, …
        imports: A module or file of yours to import first, which registers the run's parts.
        quiet: Print only the paths of the files.
    """

    run: Positional[Directory]
    data: OptionalName = None
    out: OptionalPath = None
    device: str = "cpu"
    imports: Imports = ()
    quiet: Flag = False

    def __call__(self) -> None:
        from ..description import describe
        from ..description.describe import FOLDER, require_description_folder
        from ..runs.directory import find_taken_run, is_shipped

        import_modules(self.imports)
        run = find_taken_run(self.run) or self.run
        folder = self.out or (Path(FOLDER) if is_shipped(run) else run / FOLDER)
        require_description_folder(folder)
        description = describe(run, self.data, device=self.device, show=not self.quiet)
        paths = description.save(folder)
        if self.quiet:
            print(*paths, sep="\n")
            return
        print(description)
        print(f"\n{folder}: {', '.join(path.name for path in paths)}. Open {paths[0]} in a browser")
