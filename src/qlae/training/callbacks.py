"""Callbacks: code of the caller that runs at log points, at checkpoints and at the end of a training.

    class Print(qlae.Callback):
        def on_log(self, step, terms):
            print(step, terms["loss"])

    qlae.train("qlae", data, out="runs/x", callbacks=[Print()])

Callbacks see numbers on the host, after the fact. They cannot change the result of a training.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..runs.directory import Run


class Callback:
    """The base class of callbacks; every method may be left out."""

    def on_log(self, step: int, terms: Mapping[str, float]) -> None:
        """Handle a row of the log.

        Args:
            step: the number of updates made.
            terms: means of the loss terms since the last row, ``seconds``, and scores where there are any.
        """

    def on_checkpoint(self, step: int, path: Path) -> None:
        """Handle a checkpoint that was saved after ``step`` updates in the run directory ``path``."""

    def on_end(self, run: "Run") -> None:
        """Handle the end of a training: finished and, unless that was turned off, scored."""


def require_tensorboard() -> None:
    """Raise an error that says what to install if TensorBoard is missing."""
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        raise ValueError("tensorboard=True needs TensorBoard: pip install 'qlae[tensorboard]'") from None


class TensorBoard(Callback):
    """Writes the log as TensorBoard events; ``tensorboard --logdir runs`` shows them.

    A resumed run writes its rows from the checkpoint on; TensorBoard drops the earlier ones of the same updates.

    Args:
        folder: for the event files, which the first row creates.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._writer: Any = None

    def on_log(self, step: int, terms: Mapping[str, float]) -> None:
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._folder), purge_step=step)
        for name, value in terms.items():
            if name not in ("step", "seconds"):
                self._writer.add_scalar(name, value, step)

    def on_checkpoint(self, step: int, path: Path) -> None:
        self._writer.flush()

    def on_end(self, run: "Run") -> None:
        if self._writer is not None:  # else the run had ended before
            self._writer.close()
