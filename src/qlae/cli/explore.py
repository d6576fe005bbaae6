"""``qlae explore``: open a run in the browser."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from .._imports import import_modules
from .arguments import Directory, Flag, Imports


@dataclass(frozen=True)
class Explore:
    """Open a local web page that shows what each latent and each code of a trained model means.

    The server needs `pip install 'qlae[explorer]'`; --export needs only qlae. For example:
      qlae explore shapes3d-qlae             # a trained model that comes with qlae
      qlae explore runs/quick
      qlae explore runs/a runs/b             # two runs of the same data, side by side
      qlae explore runs/quick --export page/

    Attributes:
        run: The run directory, a folder of several seeds (which opens the run to take), an exported folder with a
            sample (qlae export --samples), or the name of a model that comes with qlae.
        beside: Another run of the same data, to be shown beside the first.
        port: Preferred port on 127.0.0.1; if it is not available, a free one is used.
        no_browser: Only print the address of the page; do not open the browser.
        export: Instead of starting the server, write a page that needs none to this folder.
        export_samples: Number of samples on an exported page.
        device: Where the model runs: auto, cpu, cuda, cuda:1, …; a CPU is fast enough for one picture at a time.
        imports: A module or file of yours to import first, which registers the run's parts.
        quiet: Do not show progress bars.
    """

    run: Positional[Directory]
    beside: Positional[Annotated[Path | None, arg(metavar="[RUN]", help_behavior_hint="")]] = None
    port: int = 8642
    no_browser: Flag = False
    export: Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")] = None
    export_samples: int = 12
    device: str = "cpu"
    imports: Imports = ()
    quiet: Flag = False

    def __call__(self) -> None:
        from ..explorer import explore, open_run, save_page
        from ..explorer.static_page import MAX_SAMPLES
        from ..runs.shipped import is_shipped, shipped_models

        import_modules(self.imports)
        run = self._find_run()
        if self.export is None:
            browser = not self.no_browser
            if is_shipped(self.run):
                print(f"{self.run}: {shipped_models()[str(self.run)]['about']}")
            explore(run, self.beside, port=self.port, browser=browser, device=self.device, show=not self.quiet)
            return
        if self.beside is not None:
            raise ValueError("--export writes the page of one run; leave the second out")
        if not 1 <= self.export_samples <= MAX_SAMPLES:
            raise ValueError(f"--export-samples must lie between 1 and {MAX_SAMPLES}, got {self.export_samples}")
        exploration = open_run(run, device=self.device, show=not self.quiet)
        print(save_page(exploration, self.export, num_samples=self.export_samples, show=not self.quiet))

    def _find_run(self) -> Path:
        """Return the run to open; in a folder of several seeds, the one to take."""
        from ..runs.directory import SELECTION_FILE, find_taken_run

        taken = find_taken_run(self.run)
        if taken is None:
            return self.run
        print(f"{self.run} holds runs of several seeds; opening {taken}, the one to take by {SELECTION_FILE}")
        return taken
