"""The observations that a description measures, and their codes.

A run brings its evaluation sample. For other data, or a model without a run, the observations are encoded here.
"""

import copy
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._progress import progress_bar
from ..data import SourceDataset, images_of
from ..data.model_inputs import load_matching, to_model_inputs
from ..data.tables import is_frame
from ..explorer.exploration import open_run
from ..models.building import Networks
from ..models.latents import DiscreteLatent
from ..models.model import Model
from ..runs.directory import Run, find_folder, find_taken_run
from ..runs.export import is_pretrained
from ..runs.latent_names import Names, names_file
from ..runs.load_model import load
from ..scoring.sample import NUM_SAMPLES, draw_sample

MIN_HELD_OUT, MAX_HELD_OUT = 16, 1_000  # rows; with fewer, effects are measured on the evaluation sample


def _no_names() -> dict[str, Any]:
    return {"latents": {}, "values": {}}


@dataclass(frozen=True, eq=False)
class Sample:
    """Encoded observations of a model.

    Attributes:
        model: the model.
        codes: (n, num_latents) codes, or numbers if latents are continuous.
        read: returns the observations of rows (k,) of the sample, in their order.
        sources: (n, number of sources).
        source_names: their names.
        title: of the page.
        about: the data and the sample in a few words.
        measured: the rows on which interventions are made, or drawn from: those that were held out from training, if
            there are enough; None for all rows.
        names: of latents and values, as ``names.json`` has them.
        run: the run directory or the exported model; None for a model in memory.
    """

    model: Model
    codes: NDArray[Any]
    read: Callable[[NDArray[np.int64]], NDArray[Any]]
    sources: NDArray[Any]
    source_names: tuple[str, ...]
    title: str
    about: str
    measured: NDArray[np.int64] | None = None
    names: dict[str, Any] = field(default_factory=_no_names)
    run: Run | None = None

    @property
    def has_codes(self) -> bool:
        return isinstance(self.model.latent, DiscreteLatent)

    def __len__(self) -> int:
        return len(self.codes)

    def decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return decoded observations as an array (n, *shape)."""
        return np.asarray(self.model.decode(codes, as_array=True))

    def draw(self, count: int, rows: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return ``count`` rows of the sample, or of some rows, drawn at random; all if there are fewer."""
        rows = np.arange(len(self)) if rows is None else rows
        return np.random.default_rng(0).choice(rows, min(count, len(rows)), replace=False)


def take_sample(
    run: Any, data: Any = None, *, networks: Networks | None = None, device: str = "cpu", show: bool = False
) -> Sample:
    """Return the sample that a description measures; arguments as for `describe`."""
    if isinstance(run, Model):
        if data is None:
            raise ValueError("describing a model takes data: the observations that its codes are measured on")
        return _encode(run, data, device=device, show=show, title="this model")
    path = run.path if isinstance(run, Run) else run
    if not isinstance(path, str | os.PathLike):
        raise ValueError(
            "describe takes a run directory, the name of a shipped model or a model that qlae.load returns, got "
            f"{type(run).__name__}; a representation without a decoder cannot be described"
        )
    path = find_taken_run(path) or path
    title = _title(Path(path).resolve())
    if data is None:
        folder = find_folder(path)
        if not (is_pretrained(folder) and not (folder / "sample.npz").is_file()):
            return _of_run(path, networks=networks, device=device, title=title, show=show)
    model = load(path, networks=networks, device=device)
    if data is None:
        raise ValueError(
            f"{path} has no evaluation sample; describe it with data=…, such as the data it was trained on"
        )
    names = Names(names_file(path), []).read()
    opened = Run.open(find_folder(path))
    return _encode(model, data, device=device, show=show, title=title, names=names, run=opened)


def _title(path: Path) -> str:
    """Return the name of a run, with that of its folder if it is one of several seeds."""
    return f"{path.parent.name}/{path.name}" if re.fullmatch(r"s\d+", path.name) else path.name


def _of_run(path: Any, *, networks: Networks | None, device: str, title: str, show: bool) -> Sample:
    """Return the evaluation sample of a run, and rows that were held out from its training, if there are some."""
    opened = open_run(path, networks=networks, device=device, show=show)
    if opened.data is None:
        raise ValueError(f"the data of {path} are not available, so pass them, or others of the same kind, with data=…")
    known = {"title": title, "names": opened.names.read(), "run": opened.run}
    return _of_rows(opened.model, opened.data, opened.indices, opened.codes, device=device, **known)


def _of_rows(
    model: Model, data: SourceDataset, rows: NDArray[np.int64], codes: NDArray[Any], *, device: str, **known: Any
) -> Sample:
    """Return a sample of rows with known codes, and of rows that were held out from training, if there are enough."""
    many, held_out = data.observations.traits.many, _draw_held_out(data)
    about, measured = f"{data.name}: {len(rows):,} {many}", None
    if len(held_out) >= MIN_HELD_OUT:
        measured = np.arange(len(rows), len(rows) + len(held_out))
        codes = np.concatenate([codes, _codes_of(model, _reader(data, held_out, device), len(held_out))])
        rows = np.concatenate([rows, held_out])
        about += f", and {len(held_out):,} that were held out from training, on which effects are measured"
    return Sample(
        model=model,
        codes=codes,
        read=_reader(data, rows, device),
        sources=data.sources[rows],
        source_names=data.source_names,
        about=about,
        measured=measured,
        **known,
    )


def _draw_held_out(data: SourceDataset) -> NDArray[np.int64]:
    """Return rows that were held out from training, a thousand at most."""
    rows = data.held_out_rows
    return np.sort(np.random.default_rng(0).choice(rows, min(MAX_HELD_OUT, len(rows)), replace=False))


def _codes_of(
    model: Model, read: Callable[[NDArray[np.int64]], NDArray[Any]], count: int, *, show: bool = False
) -> NDArray[Any]:
    """Return the codes of ``count`` observations, or their latents if these are continuous."""
    encode = model.encode if isinstance(model.latent, DiscreteLatent) else model.latents
    parts = []
    with progress_bar("encoding", count, show=show) as report:
        for chunk in np.array_split(np.arange(count), max(1, count // 1000)):
            parts.append(encode(read(chunk)))
            report(int(chunk[-1]) + 1)
    return np.concatenate(parts)


def _load(data: Any, model: Model) -> SourceDataset:
    """Return data as a data set that the model can encode, files and data frames read as the training data were."""
    observed, spec = model.observations, None if model.origin is None else model.origin.config.data.spec
    if isinstance(data, str | os.PathLike) or is_frame(data):
        return load_matching(Path(data) if isinstance(data, os.PathLike) else data, observed, spec)
    rows = to_model_inputs(data, observed, spec)
    if isinstance(data, SourceDataset):
        return data if rows is data.images else data.with_images(rows)
    return SourceDataset(rows, name="array", origin="real", observations=observed)


def _encode(model: Model, data: Any, *, device: str, show: bool, **known: Any) -> Sample:
    """Return a sample of data with its codes: of all rows, or, of a data set that has a split, of both parts."""
    loaded = _load(data, model)
    if len(loaded) < 2:
        raise ValueError(f"describing needs at least two {loaded.observations.traits.many}, got {len(loaded)}")
    if not isinstance(data, SourceDataset):  # no row of which was trained on, as far as is known
        loaded = copy.copy(loaded)
        loaded.hold_out = 0.0
    rows = draw_sample(loaded, NUM_SAMPLES)
    codes = _codes_of(model, _reader(loaded, rows, device), len(rows), show=show)
    return _of_rows(model, loaded, rows, codes, device=device, **known)


def _reader(
    data: SourceDataset, indices: NDArray[np.int64], device: str
) -> Callable[[NDArray[np.int64]], NDArray[Any]]:
    """Return a function that reads the observations of rows of a sample, whose row numbers in the data are given."""

    def read(rows: NDArray[np.int64]) -> NDArray[Any]:
        wanted = indices[rows]
        unique, places = np.unique(wanted, return_inverse=True)  # files are fastest to read in ascending order
        return np.asarray(images_of(data, unique, device)[places.reshape(-1)])

    return read
