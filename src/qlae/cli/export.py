"""``qlae encode`` and ``qlae export``: write the codes of images, or a model, for other programs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from .._imports import import_modules
from .arguments import Directory, Flag, Imports, OptionalName, OptionalPath


@dataclass(frozen=True)
class Encode:
    """Write codes to a CSV file, one row per observation: its file name or row number, then one column per latent.

    Latents and values that were named in `qlae explore` appear under these names. For example:
      qlae encode runs/holiday --out codes.csv
      qlae encode runs/holiday --data more/ --out more.csv

    Attributes:
        run: The run directory, the folder of an exported model, or the name of a model that comes with qlae.
        data: A data set by name, or the path of your own images; by default those that the run was trained on.
        out: The CSV file to write; it must not exist.
        numbers: Write the values that codes stand for, instead of the codes.
        device: Where the model runs: auto, cpu, cuda, cuda:1, …
        imports: A module or file of yours to import first, which registers the run's parts.
        quiet: Do not show progress bars.
    """

    run: Positional[Directory]
    data: OptionalName = None
    out: Path = Path("codes.csv")
    numbers: Flag = False
    device: str = "auto"
    imports: Imports = ()
    quiet: Flag = False

    def __call__(self) -> None:
        from ..runs.encode import encode_to_csv

        import_modules(self.imports)
        show = not self.quiet
        print(encode_to_csv(self.run, self.out, data=self.data, numbers=self.numbers, device=self.device, show=show))


@dataclass(frozen=True)
class Export:
    """Write a trained model to a folder to share: config.json, model.safetensors and a model card with its scores.

    Names that you gave to latents and values in `qlae explore` are included (names.json). In Python, `qlae.load` loads
    the folder like a run directory. For example:
      qlae export runs/quick --onnx --out quick

    Attributes:
        run: The run directory.
        out: The folder; by default RUN/export. It must be new, empty, or hold an earlier export, which is replaced.
        half: Round the weights to half precision, which halves the file.
        samples: Also write this many rows of the evaluation sample (codes and sources, no images), so
            that `qlae explore` can open the folder; 0 for none.
        onnx: Also write encoder.onnx and decoder.onnx, and check them against torch. Needs `pip install 'qlae[onnx]'`.
        weights: Export the exponential average of the weights, or the raw weights after the last update.
        imports: A module or file of yours to import first, which registers the run's parts.
    """

    run: Positional[Directory]
    out: OptionalPath = None
    half: Flag = False
    samples: int = 0
    onnx: Flag = False
    weights: Literal["averaged", "raw"] = "averaged"
    imports: Imports = ()

    def __call__(self) -> None:
        from ..runs.export import export_run

        import_modules(self.imports)
        paths = export_run(
            self.run,
            self.out or self.run / "export",
            onnx=self.onnx,
            half=self.half,
            num_samples=self.samples,
            weights=self.weights,
        )
        for path in paths:
            print(path)
