"""The observations that a description measures, and their codes.

A run brings its evaluation sample. For other data, or a model without a run, the observations are encoded here.
"""

import os
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
    names: dict[str, Any] = field(default_factory=_no_names)
    run: Run | None = None

    @property
    def has_codes(self) -> bool:
        return isinstance(self.model.latent, DiscreteLatent)

    def __len__(self) -> int:
        return len(self.codes)

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
        return _encode(run, _load(data, run), device=device, title="this model", names=_no_names(), run=None, show=show)
    path = run.path if isinstance(run, Run) else run
    if not isinstance(path, str | os.PathLike):
        raise ValueError(
            "describe takes a run directory, the name of a shipped model or a model that qlae.load returns, got "
            f"{type(run).__name__}; a representation without a decoder cannot be described"
        )
    path = find_taken_run(path) or path
    title = Path(path).resolve().name
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
    return _encode(model, _load(data, model), device=device, title=title, names=names, run=opened, show=show)


def _of_run(path: Any, *, networks: Networks | None, device: str, title: str, show: bool) -> Sample:
    """Return the evaluation sample of a run."""
    opened = open_run(path, networks=networks, device=device, show=show)
    data, indices = opened.data, opened.indices
    if data is None:
        raise ValueError(f"the data of {path} are not available, so pass them, or others of the same kind, with data=…")
    return Sample(
        model=opened.model,
        codes=opened.codes,
        read=_reader(data, indices, device),
        sources=opened.sources,
        source_names=tuple(opened.results["data"]["source_names"]),
        title=title,
        about=f"{data.name}: {len(indices):,} {data.observations.traits.many} of the evaluation",
        names=opened.names.read(),
        run=opened.run,
    )


def _load(data: Any, model: Model) -> SourceDataset:
    """Return data as a data set that the model can encode, files and data frames read as the training data were."""
    observed, spec = model.observations, None if model.origin is None else model.origin.config.data.spec
    if isinstance(data, str | os.PathLike) or is_frame(data):
        return load_matching(Path(data) if isinstance(data, os.PathLike) else data, observed, spec)
    rows = to_model_inputs(data, observed, spec)
    if isinstance(data, SourceDataset):
        return data if rows is data.images else data.with_images(rows)
    return SourceDataset(rows, name="array", origin="real", observations=observed)


def _encode(
    model: Model,
    data: SourceDataset,
    *,
    device: str,
    title: str,
    names: dict[str, Any],
    run: Run | None,
    show: bool,
) -> Sample:
    """Return a sample of a data set with its codes."""
    if len(data) < 2:
        raise ValueError(f"describing needs at least two {data.observations.traits.many}, got {len(data)}")
    rows = draw_sample(data, NUM_SAMPLES)
    read = _reader(data, rows, device)
    encode = model.encode if isinstance(model.latent, DiscreteLatent) else model.latents
    parts = []
    with progress_bar("encoding", len(rows), show=show) as report:
        for chunk in np.array_split(np.arange(len(rows)), max(1, len(rows) // 1000)):
            parts.append(encode(read(chunk)))
            report(int(chunk[-1]) + 1)
    return Sample(
        model=model,
        codes=np.concatenate(parts),
        read=read,
        sources=data.sources[rows],
        source_names=data.source_names,
        title=title,
        about=f"{data.name}: {len(rows):,} {data.observations.traits.many}",
        names=names,
        run=run,
    )


def _reader(
    data: SourceDataset, indices: NDArray[np.int64], device: str
) -> Callable[[NDArray[np.int64]], NDArray[Any]]:
    """Return a function that reads the observations of rows of a sample, whose row numbers in the data are given."""

    def read(rows: NDArray[np.int64]) -> NDArray[Any]:
        wanted = indices[rows]
        unique, places = np.unique(wanted, return_inverse=True)  # files are fastest to read in ascending order
        return np.asarray(images_of(data, unique, device)[places.reshape(-1)])

    return read
