"""The verb that hands a model on: export."""

from dataclasses import dataclass
from typing import Literal

from tyro.conf import Positional

from .arguments import Directory, OptionalPath


@dataclass(frozen=True)
class Export:
    """Write a trained model to a folder to hand on: config.json, model.safetensors and a model card with its scores.

    `qlae.load` reads the folder as it reads a run directory.
    For example: qlae export runs/quick --onnx --out quick
    """

    run: Positional[Directory]
    """The run directory."""
    out: OptionalPath = None
    """The folder; RUN/export by default."""
    onnx: bool = False
    """Also write encoder.onnx and decoder.onnx, checked against torch; needs `pip install 'qlae[onnx]'`."""
    weights: Literal["averaged", "raw"] = "averaged"
    """The exponential average of the weights, or those after the last update."""

    def __call__(self) -> None:
        from ..export import export_run

        for path in export_run(self.run, self.out or self.run / "export", onnx=self.onnx, weights=self.weights):
            print(path)
