"""A run directory: the only interface between training, evaluation, reports and the explorer.

It holds ``config.json``, ``log.jsonl``, the checkpoint pair, ``sample.npz``, ``pictures.npz``, ``results.json``, the
pictures, and ``left_out.json`` if files of the data could not be read. Reading one needs no torch.

Models that come with the package have names, such as ``shapes3d-qlae``. Each is an exported folder in ``qlae/shipped``,
where ``models.json`` lists them with the SHA-256 of their files, which is checked before a model is loaded. A folder of
the same name in the working directory comes first.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .._checks import nearest_name
from .._io import (
    LOCK_FILE,
    TEMPORARY,
    locked_directory,
    open_own,
    read_json,
    read_npz,
    read_regular,
    read_sealed,
    seal,
    write_bytes,
    write_json,
)
from .._parsing import decode_json
from ..config import DataConfig, RunConfig
from ..metrics.sample_files import require_few_numbers
from ..observations import Observations
from ..registry import MissingPart
from .hub import download_model, is_hub_address
from .results import check_arrays, is_count, is_number, read_results

SELECTION_FILE = "selection.json"  # in a folder of runs of several seeds
SHIPPED_INDEX = "models.json"
MOST_NAMED = 8  # runs in an error message


def read_config(path: Path, *, remedy: str) -> RunConfig:
    """Return the config in a ``config.json``; ``remedy``, advice for a damaged file, ends the error message."""
    content = read_sealed(path, remedy=remedy)
    try:
        return RunConfig.from_dict(content)
    except MissingPart as error:  # the file is as it should be
        raise MissingPart(f"{path}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path} cannot be read ({error}); {remedy}") from None


def find_taken_run(folder: str | os.PathLike[str]) -> Path | None:
    """Return the run that ``selection.json`` takes in a folder of several seeds; None if this is not such a folder.

    The folder may have moved since, so only the last part of the path in the file counts.
    """
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        with contextlib.suppress(ValueError, OSError, KeyError):
            taken = folder / Path(str(read_json(folder / SELECTION_FILE)["take"])).name
            return taken if (taken / "config.json").is_file() else None
    return None


def runs_inside(folder: Path) -> list[Path]:
    """Return the run directories in a folder and in the folders of a study, in order."""
    patterns = ("*/config.json", "*/*/config.json", "*/*/*/config.json")
    return sorted(path.parent for pattern in patterns for path in folder.glob(pattern))


def shipped_folder() -> Path:
    """Return the folder of the models that come with the package."""
    return Path(str(resources.files("qlae") / "shipped"))


@cache
def shipped_models() -> dict[str, dict[str, Any]]:
    """Return the models that come with the package: name → ``about``, ``files`` (name → SHA-256)."""
    index: dict[str, dict[str, Any]] = read_json(shipped_folder() / SHIPPED_INDEX, remedy="install qlae again")
    return index


def is_shipped(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is the name of a model that comes with the package, and no folder has this name."""
    return os.fspath(path) in shipped_models() and not os.path.lexists(path)


def find_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder of a run or a model: a path as it is, and where a shipped model or one of the hub is.

    Raises:
        ValueError: if the path is empty, if it is a name that neither a folder nor a shipped model has, or if a shipped
            file is damaged.
    """
    if is_hub_address(path):
        return download_model(path)
    name, models = os.fspath(path), shipped_models()
    if not name:
        raise ValueError(f"the path is empty; give a run directory or a shipped model: {', '.join(models)}")
    if os.path.lexists(path) or os.path.basename(name) != name:
        return Path(path)
    if name not in models:
        known = nearest_name(name, models)
        raise ValueError(f"there is no run directory {name}, and no shipped model of this name: {known}")
    folder = shipped_folder() / name
    for file, expected in models[name]["files"].items():
        shipped = folder / file
        if not shipped.is_file() or hashlib.sha256(read_regular(shipped)).hexdigest() != expected:
            raise ValueError(f"{shipped} is missing or not the file that qlae was published with; install qlae again")
    return folder


class Run:
    """A run directory, by its path.

    Args:
        path: the directory; it need not exist yet.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self.config_path = self.path / "config.json"
        self.log_path = self.path / "log.jsonl"
        self.results_path = self.path / "results.json"
        self.sample_path = self.path / "sample.npz"
        self.held_out_path = self.path / "held_out.npz"
        self.pictures_path = self.path / "pictures.npz"
        self._config: tuple[tuple[int, int, int], RunConfig] | None = None  # with the stamp of its file

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @staticmethod
    def open(path: str | os.PathLike[str]) -> "Run":
        """Return a run that exists; otherwise raise an error that names what is missing."""
        run = Run(path)
        if run.config_path.is_file():
            return run
        if run.path.is_file():
            raise ValueError(f"{run.path} is a file, not a run directory; give the folder, such as {run.path.parent}")
        if is_shipped(path):
            raise ValueError(
                f"{path} is an exported model that comes with qlae, and this needs a run directory, which `qlae train` "
                f"makes. `qlae explore {path}`, `qlae encode {path}` and qlae.load({os.fspath(path)!r}) take the model"
            )
        if taken := find_taken_run(run.path):
            raise ValueError(
                f"{run.path} is not a run directory, but holds runs of several seeds; name one of them, such as "
                f"{taken}, the one to take by {SELECTION_FILE}"
            )
        if inside := runs_inside(run.path):
            names = [str(path) for path in inside[:MOST_NAMED]] + ["…"] * (len(inside) > MOST_NAMED)
            raise ValueError(f"{run.path} is not a run directory, but holds runs; name one of them: {', '.join(names)}")
        what = "has no config.json" if run.path.is_dir() else "does not exist"
        raise ValueError(f"{run.path} is not a run directory: it {what}; `qlae train` makes one")

    @property
    def config(self) -> RunConfig:
        """The configuration; the file is read once, and again only if it was replaced."""
        status = self.config_path.stat()
        stamp = status.st_ino, status.st_mtime_ns, status.st_size
        if self._config is None or self._config[0] != stamp:
            remedy = "if it was damaged, restore it or start again in another folder"
            self._config = stamp, read_config(self.config_path, remedy=remedy)
        return self._config[1]

    @property
    def observations(self) -> Observations:
        """What each observation is. Unlike ``config`` this needs no part of the model, and no torch."""
        content = read_sealed(self.config_path, remedy="restore it or start again in another folder")
        try:
            return DataConfig.from_dict(content.get("data"), "config.data").observations
        except ValueError as error:
            raise ValueError(f"{self.config_path} cannot be read ({error}); restore it") from None

    @property
    def results(self) -> dict[str, Any]:
        """The scores, as ``qlae evaluate`` wrote them."""
        if self.results_path.is_file():
            return read_results(self.results_path, remedy=self._remedy)
        made = self.updates_made
        if made is None or made < self.config.training.steps:
            raise ValueError(f"{self.path} {self.describe_unfinished(made)}")
        raise ValueError(f"{self.path} has no results yet; run `qlae evaluate {self.path}`")

    @property
    def results_so_far(self) -> dict[str, Any] | None:
        """The scores; None if there are none yet, or if they are damaged and an evaluation has to write them again."""
        with contextlib.suppress(ValueError):
            return self.results if self.results_path.is_file() else None
        return None

    def describe_unfinished(self, made: int | None) -> str:
        """Describe that a run has made no or fewer updates than planned, and how to resume it."""
        config, state = self.config, "has neither results nor a checkpoint"
        if made is not None:
            state = f"is unfinished after {made:,} of {config.training.steps:,} updates"
        if config.data.spec is None:  # they were passed as arrays
            how = f"`qlae.resume({str(self.path)!r}, data=…)` in Python, since its data were in memory"
        else:
            how = f"`qlae train --resume {self.path}`"
        return f"{state}; resume it with {how}"

    @property
    def updates_made(self) -> int | None:
        """The number of updates in the newest checkpoint, by its JSON alone; None if there is no checkpoint."""
        steps = []
        for name in ("checkpoint.json", "previous.json"):
            with contextlib.suppress(ValueError, OSError, KeyError, TypeError):  # missing or damaged
                steps.append(read_json(self.path / name)["state"]["step"])
        return max((step for step in steps if is_count(step)), default=None)

    @property
    def is_begun(self) -> bool:
        """Whether it holds anything that could be lost: a checkpoint, or results."""
        return any((self.path / name).exists() for name in ("checkpoint.json", "previous.json", self.results_path.name))

    def arrays(self, path: Path, required: Collection[str] = ()) -> dict[str, NDArray[Any]]:
        """Return the arrays of ``sample_path`` or ``pictures_path``, of which some are required.

        Raises:
            ValueError: the file is missing or damaged, or an array is missing or of another kind than expected.
        """
        if not path.is_file():
            raise ValueError(f"{self.path} has no {path.name} yet; run `qlae evaluate {self.path}`")
        arrays = read_npz(path, remedy=self._remedy)
        try:
            if path in (self.sample_path, self.held_out_path):
                require_few_numbers(arrays, path)
            check_arrays(arrays, required, self.observations if path == self.pictures_path else None)
        except ValueError as error:
            raise ValueError(f"{path} cannot be read ({error}); {self._remedy}") from None
        return arrays

    @property
    def _remedy(self) -> str:
        """What to do about a damaged file that an evaluation writes."""
        return f"run `qlae evaluate {self.path}` to write it again"

    def log(self) -> list[dict[str, Any]]:
        """Return the rows of the log, up to the first line that is damaged, as the last one is after a kill."""
        rows: list[dict[str, Any]] = []
        for line in read_regular(self.log_path).splitlines() if self.log_path.is_file() else []:
            try:
                row = decode_json(line)
            except ValueError:
                break
            if not isinstance(row, dict) or not all(map(is_number, row.values())) or not is_count(row.get("step")):
                break
            rows.append(row)
        return rows

    def require_free(self, config: RunConfig) -> None:
        """Raise an error unless the directory is new, empty, or holds a run of this config.

        A run with the same config and another number of updates is the same run, to be trained for longer. A run that
        has neither a checkpoint nor results may be replaced.
        """
        if self.config_path.is_file():
            if self.is_begun and (difference := self.config.difference(config)):
                fields = "; ".join(f"{key} is {old!r}, asked for {new!r}" for key, (old, new) in difference.items())
                raise ValueError(
                    f"{self.path} holds another run: {fields}. Choose another folder with out=…, or resume that "
                    f"run with its own configuration: qlae train --resume {self.path}"
                )
        elif self.path.is_dir():
            # A killed process may have left a lock and temporary files.
            if any(path.name != LOCK_FILE and path.suffix != TEMPORARY for path in self.path.iterdir()):
                raise ValueError(f"{self.path} is not empty and not a run directory; choose another folder with out=…")
        elif self.path.exists():
            raise ValueError(f"{self.path} is a file, not a folder; choose another path with out=…")

    def write_config(self, config: RunConfig) -> None:
        """Write the config; the directory is then a run directory."""
        write_json(self.config_path, seal(config.to_dict()))

    def write_left_out(self, files: Mapping[str, str]) -> None:
        """Write the names of files that the data do not have because they could not be read, and why."""
        if files:
            write_json(self.path / "left_out.json", dict(files))

    def trim_log(self, step: int) -> None:
        """Remove the rows of the log after update ``step``, which a resumed run will write again."""
        rows = [row for row in self.log() if row["step"] <= step]
        write_bytes(self.log_path, "".join(json.dumps(row) + "\n" for row in rows).encode())

    def append_log(self, row: dict[str, Any]) -> None:
        """Add a row to the log."""
        try:
            with open_own(self.log_path, append=True) as file:
                file.write((json.dumps(row, allow_nan=False) + "\n").encode())
        except OSError as error:
            error.filename = error.filename or str(self.log_path)  # as for a full disk
            raise

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the run against a second trainer; the system releases the lock however the process ends."""
        message = (
            f"{self.path} is being trained by another process ({{holder}}); "
            "wait for it, stop it, or choose another folder with out=…"
        )
        with locked_directory(self.path, message):
            yield
