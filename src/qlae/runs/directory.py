"""A run directory: the only contract between training, evaluation, reports and the explorer.

It holds ``config.json``, ``log.jsonl``, the checkpoint pair, ``sample.npz``, ``pictures.npz``, ``results.json`` and the
pictures. Reading one needs no torch.
"""

import contextlib
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._files import write_bytes, write_json
from .._locks import try_lock
from ..config import RunConfig

LOCK = ".lock"


class Run:
    """A run directory, by its path.

    Args:
        path: the directory; it need not exist yet.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @staticmethod
    def open(path: str | os.PathLike[str]) -> "Run":
        """A run that exists; an error says what is missing."""
        run = Run(path)
        if run.path.is_file():
            raise ValueError(f"{run.path} is a file, not a run directory; give the folder, such as {run.path.parent}")
        if not run.config_path.is_file():
            what = "has no config.json" if run.path.is_dir() else "does not exist"
            raise ValueError(f"{run.path} is not a run directory: it {what}; `qlae train` makes one")
        return run

    @property
    def config_path(self) -> Path:
        return self.path / "config.json"

    @property
    def log_path(self) -> Path:
        return self.path / "log.jsonl"

    @property
    def results_path(self) -> Path:
        return self.path / "results.json"

    @property
    def sample_path(self) -> Path:
        return self.path / "sample.npz"

    @property
    def pictures_path(self) -> Path:
        return self.path / "pictures.npz"

    @property
    def config(self) -> RunConfig:
        try:
            return RunConfig.from_dict(json.loads(self.config_path.read_text()))
        except ValueError as error:
            raise ValueError(
                f"{self.config_path} cannot be read ({error}); "
                "if it was damaged, restore it or start again in another folder"
            ) from None

    @property
    def results(self) -> dict[str, Any]:
        """The scores, as ``qlae evaluate`` wrote them."""
        if not self.results_path.is_file():
            raise ValueError(f"{self.path} has no results yet; run `qlae evaluate {self.path}`")
        try:
            results = dict(json.loads(self.results_path.read_text()))
        except (ValueError, TypeError) as error:
            raise self._damaged(self.results_path, error) from None
        missing = [key for key in ("model", "data", "protocol", "averaged") if key not in results]
        if missing:
            raise self._damaged(self.results_path, f"it lacks {', '.join(missing)}")
        return results

    @property
    def results_so_far(self) -> dict[str, Any] | None:
        """The scores; None if there are none yet, or they are damaged and an evaluation has to write them anew."""
        try:
            return self.results
        except ValueError:
            return None

    @property
    def is_begun(self) -> bool:
        """Whether there is anything in it that could be lost: a checkpoint, or results."""
        return any((self.path / name).exists() for name in ("checkpoint.json", "previous.json", self.results_path.name))

    def arrays(self, path: Path) -> dict[str, NDArray[Any]]:
        """The arrays of one of the run's ``.npz`` files."""
        if not path.is_file():
            raise ValueError(f"{self.path} has no {path.name} yet; run `qlae evaluate {self.path}`")
        try:
            with np.load(path, allow_pickle=False) as content:
                return {name: content[name] for name in content.files}
        except (ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
            told = "it is no .npz file of plain arrays" if isinstance(error, ValueError | AttributeError) else error
            raise self._damaged(path, told) from None

    def _damaged(self, path: Path, told: object) -> ValueError:
        return ValueError(f"{path} cannot be read ({told}); run `qlae evaluate {self.path}` to write it again")

    def log(self) -> list[dict[str, Any]]:
        """The log's rows; a last line that a kill cut short is left out."""
        rows = []
        for line in self.log_path.read_text().splitlines() if self.log_path.is_file() else []:
            try:
                rows.append(json.loads(line))
            except ValueError:
                break
        return rows

    def require_free(self, config: RunConfig) -> None:
        """An error unless the directory is new, empty, or holds a run of this config, or one that never got anywhere.

        The same config with another number of steps is the same run, to go on for longer.
        """
        if self.config_path.is_file():
            difference = self.config.difference(config) if self.is_begun else {}
            if difference:
                told = "; ".join(f"{key} is {old!r}, asked for {new!r}" for key, (old, new) in difference.items())
                raise ValueError(f"{self.path} holds another run: {told}. Choose another --out, or ask for the same")
        elif self.path.is_dir() and any(path.name != LOCK for path in self.path.iterdir()):
            raise ValueError(f"{self.path} is not empty and not a run directory; choose another --out")
        elif self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file, not a folder; choose another --out")

    def write_config(self, config: RunConfig) -> None:
        """Write the config; the directory is then a run directory."""
        write_json(self.config_path, config.to_dict())

    def trim_log(self, step: int) -> None:
        """Forget log rows after update ``step``, which a resumed run will write again."""
        rows = [row for row in self.log() if row["step"] <= step]
        write_bytes(self.log_path, "".join(json.dumps(row) + "\n" for row in rows).encode())

    def append_log(self, row: dict[str, Any]) -> None:
        """Add a row to the log."""
        with open(self.log_path, "a") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run against a second trainer; the system lets go of it however the process ends."""
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / LOCK, "a+") as file:
            if not try_lock(file):
                file.seek(0)
                raise ValueError(
                    f"{self.path} is being trained by another process ({file.read().strip() or 'unknown'}); "
                    "wait for it, stop it, or choose another --out"
                )
            file.truncate(0)
            file.write(f"process {os.getpid()}")
            file.flush()
            try:
                yield
            finally:
                file.truncate(0)
