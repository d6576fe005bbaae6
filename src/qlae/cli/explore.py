"""The command that opens a run in the browser: explore."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from .._imports import import_modules
from .arguments import Directory, Imports


@dataclass(frozen=True)
class Explore:
    """Open a local web page that shows what each latent and each code of a trained model means.

    The server needs `pip install 'qlae[explorer]'`; --export needs only qlae.
    For example: qlae explore runs/quick
    """

    run: Positional[Directory]
    """The run directory."""
    port: int = 8642
    """Preferred port on 127.0.0.1; if it is not available, a free one is used."""
    no_browser: bool = False
    """Only print the address of the page; do not open the browser."""
    export: Annotated[Path | None, arg(metavar="DIR")] = None
    """Write a page that needs no server to this folder, instead of serving one."""
    export_samples: int = 12
    """Number of samples on an exported page."""
    device: str = "cpu"
    """Where the model runs: auto, cpu, cuda, cuda:1, …; a CPU is fast enough for one picture at a time."""
    imports: Imports = ()
    """Modules of your own to import first, which register the run's parts."""
    quiet: bool = False
    """Do not draw progress bars."""

    def __call__(self) -> None:
        from ..explorer import explore, open_run, save_page
        from ..explorer.saved import MAX_SAMPLES

        import_modules(self.imports)
        if self.export is None:
            explore(self.run, port=self.port, browser=not self.no_browser, device=self.device, show=not self.quiet)
            return
        if not 1 <= self.export_samples <= MAX_SAMPLES:
            raise ValueError(f"--export-samples must lie between 1 and {MAX_SAMPLES}, got {self.export_samples}")
        exploration = open_run(self.run, device=self.device, show=not self.quiet)
        print(save_page(exploration, self.export, num_samples=self.export_samples, show=not self.quiet))
