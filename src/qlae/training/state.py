"""Everything that a run must remember to go on exactly: to and from a checkpoint.

Tensors are named ``weights.*`` (parameters and buffers), ``average.*``, ``optimizer.<player>.*``, ``window.<player>``,
``sampler`` and ``noise``; the number of the last update, the seconds spent and the number of threads (on which the last
bit of a sum depends) stand in the JSON.
"""

from typing import Any

import torch
from torch import Tensor, nn, optim

from .checkpoint import Checkpoint
from .step import EagerStep


class TrainingState:
    """A model, its update, and how far they are."""

    def __init__(self, model: nn.Module, update: EagerStep):
        self.model = model
        self.update = update
        self.step = 0
        self.seconds = 0.0

    def to_checkpoint(self) -> Checkpoint:
        tensors = {f"weights.{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"average.{name}": average for name, average in self.update.average.tensors().items()}
        for turn in self.update.turns:
            tensors |= self._optimizer_tensors(f"optimizer.{turn.player.name}", turn.optimizer)
            tensors[f"window.{turn.player.name}"] = turn.window.values
        tensors["sampler"] = self.update.batches.generator.get_state()
        tensors["noise"] = self.update.noise.get_state()
        state = {
            "step": self.step,
            "seconds": self.seconds,
            "window_filled": {turn.player.name: turn.window.filled for turn in self.update.turns},
            "threads": torch.get_num_threads(),
        }
        return Checkpoint({name: tensor.cpu() for name, tensor in tensors.items()}, state)

    def from_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Become what was saved, bit for bit."""
        tensors, state = checkpoint.tensors, checkpoint.state
        with torch.no_grad():
            for name, tensor in self.model.state_dict().items():
                _copy(tensor, tensors, f"weights.{name}")
            for name, average in self.update.average.tensors().items():
                _copy(average, tensors, f"average.{name}")
        for turn in self.update.turns:
            name = turn.player.name
            self._load_optimizer(f"optimizer.{name}", turn.optimizer, tensors)
            _copy(turn.window.values, tensors, f"window.{name}")
            turn.window.filled = int(state["window_filled"][name])
        self.update.batches.generator.set_state(_tensor(tensors, "sampler"))
        self.update.noise.set_state(_tensor(tensors, "noise"))
        self.step, self.seconds = int(state["step"]), float(state["seconds"])
        if self.update.batches.device.type == "cpu":
            torch.set_num_threads(int(state["threads"]))

    def _optimizer_tensors(self, prefix: str, optimizer: optim.Optimizer) -> dict[str, Tensor]:
        return {
            f"{prefix}.{name}.{key}": value
            for name, parameter in self.model.named_parameters()
            for key, value in optimizer.state.get(parameter, {}).items()
        }

    @torch.no_grad()
    def _load_optimizer(self, prefix: str, optimizer: optim.Optimizer, tensors: dict[str, Tensor]) -> None:
        content = optimizer.state_dict()
        state: dict[int, Any] = {}
        names = {parameter: name for name, parameter in self.model.named_parameters()}
        order = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        for index, parameter in enumerate(order):
            start = f"{prefix}.{names[parameter]}."
            entries = {key.removeprefix(start): value for key, value in tensors.items() if key.startswith(start)}
            if entries:  # moments must lie in memory as their parameter does, which may be channels last
                state[index] = {
                    key: torch.empty_like(parameter).copy_(value) if value.shape == parameter.shape else value.clone()
                    for key, value in entries.items()
                }
        optimizer.load_state_dict(content | {"state": state})


def _tensor(tensors: dict[str, Tensor], name: str) -> Tensor:
    if name not in tensors:
        raise ValueError(
            f"the checkpoint has no {name!r}: another version of qlae wrote it; start again in another folder"
        )
    return tensors[name]


def _copy(target: Tensor, tensors: dict[str, Tensor], name: str) -> None:
    if name not in tensors or tensors[name].shape != target.shape:
        found = tuple(tensors[name].shape) if name in tensors else "nothing"
        raise ValueError(
            f"the checkpoint does not fit the model: {name} should be {tuple(target.shape)}, found {found}"
        )
    target.copy_(tensors[name])
