"""Helpers of the training benchmarks: updates as the trainer makes them, a clock, and the name of the machine."""

import datetime
import importlib.util
import platform
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from qlae._process import training_process
from qlae.config import RunConfig
from qlae.data import SourceDataset
from qlae.training.graphs import GraphUpdates
from qlae.training.state import build_state


class Updates:
    """The updates of a run, starting with the first, without log and checkpoints."""

    def __init__(self, config: RunConfig, data: SourceDataset, device: torch.device, *, compile: bool):
        self.device, self.compile = device, compile
        with self._process():
            state = build_state(config, data, device, compile=compile)
        self.update, self.updates = state.update, state.updates
        self.log_every = config.training.log_every
        self.done = 0

    def _process(self) -> AbstractContextManager[None]:
        return training_process(self.device, compile=self.compile)

    @property
    def block(self) -> int:
        """The number of updates that are launched at once."""
        return self.updates.block if isinstance(self.updates, GraphUpdates) else 1

    @property
    def period(self) -> int:
        """The number of updates after which every player has had a turn."""
        return max(turn.player.period for turn in self.update.turns)

    def start(self) -> None:
        """Warm up: with CUDA graphs, run one block eagerly, then record and launch one; otherwise make one update."""
        self(2 * self.block if isinstance(self.updates, GraphUpdates) else 1)

    def __call__(self, num_updates: int) -> None:
        """Make the next updates."""
        end = self.done + num_updates
        with self._process():
            while self.done < end:
                to_log = self.log_every - self.done % self.log_every
                self.done += self.updates.advance(self.done, min(to_log, end - self.done))
                if self.done % self.log_every == 0:
                    for turn in self.update.turns:
                        turn.window.filled = 0


def milliseconds(work: Callable[[], None], device: torch.device) -> float:
    """Return the milliseconds that some work takes, until everything that it launches has finished."""
    synchronize(device)
    start = time.perf_counter()
    work()
    synchronize(device)
    return 1000 * (time.perf_counter() - start)


def synchronize(device: torch.device) -> None:
    """Wait for a GPU; do nothing on a CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def up_to_multiple(number: int, of: int) -> int:
    """Round up to a multiple.

    >>> up_to_multiple(51, 25), up_to_multiple(50, 25)
    (75, 50)
    """
    return -(-number // of) * of


def machine(device: torch.device) -> dict[str, Any]:
    """Return the machine, the versions and the date of a measurement."""
    on_gpu = device.type == "cuda"
    triton = importlib.util.find_spec("triton") and importlib.import_module("triton").__version__
    return {
        "machine": torch.cuda.get_device_name(device) if on_gpu else f"CPU ({platform.machine()})",
        "torch": torch.__version__,
        "triton": triton,
        "date": datetime.date.today().isoformat(),
    }


def describe(where: dict[str, Any]) -> str:
    """Return the content of `machine` as one line."""
    return f"{where['machine']}, torch {where['torch']}, triton {where['triton']}, {where['date']}"
