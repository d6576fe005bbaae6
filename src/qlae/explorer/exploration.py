"""A run under exploration: its model, its evaluation sample and, where they can be had, the images behind it.

This is all that the page can ask for, in NumPy and plain dictionaries; it knows nothing of servers.
"""

import dataclasses
import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import SourceDataset, data_of
from ..data.dataset import ImageArray
from ..data.pictures import decode as decode_picture
from ..models.building import Networks
from ..models.latents import DiscreteLatent
from ..models.model import Model
from ..runs import checkpoint
from ..runs.directory import Run
from ..runs.loading import model_from
from ..runs.names import FILE, Names
from ..runs.pretrained import is_pretrained
from ..scoring.evaluation import evaluate_run
from ..scoring.sample import NUM_SAMPLES
from .controls import Control, build_controls
from .search import Found, nearest, sharing

LIMIT = 1e6  # of a continuous latent that is decoded; far beyond any model's
SHOWN_SCORES = ("infom", "infoe", "infoc", "d", "i", "c", "psnr")


class Exploration:
    """What can be asked about a run.

    Args:
        run: the run.
        model: its model.
        sample: the arrays of its ``sample.npz``.
        results: its ``results.json``.
        images: of its data set, ``None`` where they are not to be had; reconstructions then stand in for them.
    """

    def __init__(
        self,
        run: Run,
        model: Model,
        *,
        sample: dict[str, NDArray[Any]],
        results: dict[str, Any],
        images: ImageArray | None,
    ):
        self.run, self.model, self.results = run, model, results
        self.images = images
        self.indices = sample["indices"]
        self.sources = sample["sources"]
        self.discrete = isinstance(model.latent, DiscreteLatent)
        self.form: NDArray[Any] = sample["codes" if self.discrete else "latents"]  # (n, num_latents)
        self.controls: list[Control] = build_controls(model.latent, self.form, results["averaged"])
        self.names = Names(run.path / FILE, [control.num_values for control in self.controls])
        self.names.read()  # a damaged file is told of now, not by the page

    def __len__(self) -> int:
        return len(self.form)

    @property
    def num_latents(self) -> int:
        return self.model.latent.num_latents

    def describe(self) -> dict[str, Any]:
        """Everything that the page needs before a sample is chosen, fit for JSON."""
        data, scores = self.results["data"], self.results["averaged"]
        return {
            "run": self.run.path.resolve().name,
            "model": self.results["model"],
            "data": {key: data[key] for key in ("name", "origin", "resolution", "num_images")},
            "resolution": self.model.resolution,
            "steps": self.results["steps"],
            "seed": self.results["seed"],
            "num_samples": len(self),
            "has_images": self.images is not None,
            "scores": {name: scores[name] for name in SHOWN_SCORES if name in scores},
            "source_names": list(data["source_names"]),
            "source_sizes": list(data["source_sizes"]),
            "nmi": scores.get("nmi"),
            "latents": [dataclasses.asdict(control) for control in self.controls],
            "names": self.names.read(),
        }

    def sample(self, row: int) -> dict[str, Any]:
        """A row of the sample: its place in the data set, its code and its sources."""
        self.require_rows([row])
        return {
            "row": row,
            "index": int(self.indices[row]),
            "code": self.form[row].tolist(),
            "sources": [number.item() for number in self.sources[row]],
        }

    def pictures(self, rows: list[int]) -> NDArray[np.uint8]:
        """The images (n, r, r, 3) of rows of the sample, or their reconstructions where there are no images."""
        self.require_rows(rows)
        if self.images is None:
            return self.model.decode(self.form[rows])
        order = np.argsort(self.indices[rows], kind="stable")  # files are read forwards
        found = np.empty((len(rows), self.model.resolution, self.model.resolution, 3), np.uint8)
        found[order] = self.images[self.indices[rows][order]]
        return found

    def decode(self, codes: NDArray[Any]) -> NDArray[np.uint8]:
        """Codes or latents (n, num_latents) → images (n, r, r, 3)."""
        return self.model.decode(codes)

    def encode(self, content: bytes) -> tuple[NDArray[np.uint8], list[float]]:
        """The bytes of an image file → the picture as the model sees it, (r, r, 3), and its code."""
        picture = np.array(decode_picture(content, self.model.resolution))  # torch wants what it may write to
        form = self.model.encode(picture[None]) if self.discrete else self.model.latents(picture[None])
        return picture, form[0].tolist()

    def to_code(self, entries: list[float]) -> NDArray[Any]:
        """One code from plain numbers; an error says what is wrong with it."""
        if len(entries) != self.num_latents:
            raise ValueError(f"a code of this model has {self.num_latents} entries, got {len(entries)}")
        for control, entry in zip(self.controls, entries, strict=True):
            self.require_value(control.index, entry)
        return np.asarray(entries, dtype=np.int64 if self.discrete else np.float32)

    def require_value(self, latent: int, entry: float) -> None:
        """An error unless ``entry`` is something that the latent can be set to."""
        if not 0 <= latent < self.num_latents:
            raise ValueError(f"latents run from 0 to {self.num_latents - 1}, got {latent}")
        if self.discrete:
            size = self.controls[latent].num_values
            if not isinstance(entry, int) or not 0 <= entry < size:
                raise ValueError(f"the codes of z{latent} are whole numbers from 0 to {size - 1}, got {entry}")
        elif not abs(entry) <= LIMIT:  # NaN fails as well
            raise ValueError(f"z{latent} must be a number between −{LIMIT:g} and {LIMIT:g}, got {entry}")

    def require_rows(self, rows: list[int]) -> None:
        """An error unless all rows are in the sample."""
        wrong = next((row for row in rows if not 0 <= row < len(self)), None)
        if wrong is not None:
            raise ValueError(f"rows run from 0 to {len(self) - 1}, got {wrong}")

    def find_sharing(self, latent: int, value: float, limit: int) -> Found:
        """The rows that share a value; see ``search.sharing``."""
        self.require_value(latent, value)
        return sharing(self.form, latent, value, limit)

    def find_nearest(self, code: NDArray[Any], limit: int) -> Found:
        """The rows nearest to a code; see ``search.nearest``."""
        return nearest(self.form, code, self.controls, limit)


def open_run(
    path: str | os.PathLike[str],
    *,
    data: SourceDataset | None = None,
    networks: Networks | None = None,
    device: str = "cpu",
    show: bool = True,
) -> Exploration:
    """A run directory, ready to be explored; one that was never scored, or trained on since, is scored first.

    Args:
        path: the run directory.
        data: what it was trained on, where only you have it.
        networks: the encoder and the decoder, where it was trained with networks of your own.
        device: where the model runs.
        show: draw progress bars.
    """
    run = Run.open(path)
    if is_pretrained(run.path):
        raise ValueError(f"{run.path} holds a model but no sample of its codes; explore the run that it came from")
    saved = checkpoint.load(run.path)
    if saved is None:
        raise ValueError(f"{run.path} has no checkpoint yet; let `qlae train` finish, or stop it with Ctrl-C to save")
    if not _is_scored(run, saved.state["step"]):
        evaluate_run(run, data=data, networks=networks, device=device, num_samples=NUM_SAMPLES, show=show)
    model = model_from(run, saved, weights="averaged", device=device, networks=networks)
    sample = run.arrays(run.sample_path)
    images = _images(run, data)
    if images is not None and sample["indices"].max() >= len(images):
        raise ValueError(f"{run.path}: its sample goes beyond the {len(images):,} images of this data set")
    return Exploration(run, model, sample=sample, results=run.results, images=images)


def _is_scored(run: Run, step: int) -> bool:
    return run.sample_path.is_file() and run.results_path.is_file() and run.results["steps"] == step


def _images(run: Run, data: SourceDataset | None) -> ImageArray | None:
    """The images behind a run; without them the explorer still shows what the model makes of the codes."""
    try:
        return (data_of(run.config.data) if data is None else data).images
    except (ValueError, OSError) as error:
        warnings.warn(f"the images of {run.path} are not to be had, reconstructions stand in: {error}", stacklevel=3)
        return None
