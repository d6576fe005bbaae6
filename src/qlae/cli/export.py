"""The verbs that write results for other programs: encode, the codes of images; export, a model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from .._imports import import_modules
from .arguments import Directory, Imports, OptionalName, OptionalPath


@dataclass(frozen=True)
class Encode:
    """Write the code of every image to a CSV, one row per image: its file name, then one column per latent.

    Latents and values that were named in `qlae explore` appear under these names.
    For example: qlae encode runs/holiday --out codes.csv; or with other images: qlae encode runs/holiday --data more/
    """

    run: Positional[Directory]
    """The run directory, or the folder of an exported model."""
    data: OptionalName = None
    """A data set by name, or the path of images of your own; by default what the run was trained on."""
    out: Path = Path("codes.csv")
    """The CSV to write; it must not exist."""
    numbers: bool = False
    """Write the values that codes stand for, instead of the codes."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, …"""
    imports: Imports = ()
    """Modules of your own to import first, which register the run's parts."""
    quiet: bool = False
    """Draw no progress bars."""

    def __call__(self) -> None:
        from ..runs.encoding import encode_to_csv

        import_modules(self.imports)
        show = not self.quiet
        print(encode_to_csv(self.run, self.out, data=self.data, numbers=self.numbers, device=self.device, show=show))


@dataclass(frozen=True)
class Export:
    """Write a trained model to a folder to hand on: config.json, model.safetensors and a model card with its scores.

    Names that you gave to latents and values in `qlae explore` are copied too, in names.json.
    `qlae.load` reads the folder as it reads a run directory.
    For example: qlae export runs/quick --onnx --out quick
    """

    run: Positional[Directory]
    """The run directory."""
    out: OptionalPath = None
    """The folder, RUN/export by default; new, empty, or of an earlier export, which is replaced."""
    onnx: bool = False
    """Also write encoder.onnx and decoder.onnx, checked against torch; needs `pip install 'qlae[onnx]'`."""
    weights: Literal["averaged", "raw"] = "averaged"
    """The exponential average of the weights, or those after the last update."""
    imports: Imports = ()
    """Modules of your own to import first, which register the run's parts."""

    def __call__(self) -> None:
        from ..runs.export import export_run

        import_modules(self.imports)
        for path in export_run(self.run, self.out or self.run / "export", onnx=self.onnx, weights=self.weights):
            print(path)
