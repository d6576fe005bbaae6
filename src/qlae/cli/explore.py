"""The verb that opens a run in the browser: explore."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from .._imports import import_modules
from .arguments import Directory, Imports


@dataclass(frozen=True)
class Explore:
    """Open a page on this machine where you see what every code of a trained model means.

    The server needs `pip install 'qlae[explorer]'`; --export needs nothing but qlae.
    For example: qlae explore runs/quick
    """

    run: Positional[Directory]
    """The run directory."""
    port: int = 8642
    """On 127.0.0.1; where it is taken, a free one is used instead."""
    no_browser: bool = False
    """Do not open the page in the browser; print its address only."""
    export: Annotated[Path | None, arg(metavar="DIR")] = None
    """Write a page that needs no server to this folder instead, with some samples."""
    export_samples: int = 12
    """Samples on such a page."""
    device: str = "cpu"
    """auto, cpu, cuda, cuda:1, …; a CPU is fast enough for one picture at a time."""
    imports: Imports = ()
    """Modules of your own to import first, which register the run's parts."""
    quiet: bool = False
    """No progress bars."""

    def __call__(self) -> None:
        from ..explorer import explore, open_run, save_page

        import_modules(self.imports)
        if self.export is None:
            explore(self.run, port=self.port, browser=not self.no_browser, device=self.device, show=not self.quiet)
            return
        exploration = open_run(self.run, device=self.device, show=not self.quiet)
        print(save_page(exploration, self.export, num_samples=self.export_samples, show=not self.quiet))
