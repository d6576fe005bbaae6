"""Everything the page can ask about a run, answered in NumPy arrays and plain dictionaries, without a server.

Throughout the explorer a *code* is one entry per latent: integers where the model has codes, numbers where its latents
are continuous.
"""

import dataclasses
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import SourceDataset, load_from_config
from ..data.colours import to_colours
from ..data.dataset import ImageArray
from ..data.pictures import decode as decode_picture
from ..metrics import count_informative, find_score
from ..models.building import Networks
from ..models.latents import DiscreteLatent
from ..models.model import Model
from ..runs import checkpoint
from ..runs.directory import Run
from ..runs.loading import load, model_from
from ..runs.names import Names
from ..runs.pretrained import is_pretrained
from ..runs.shipped import find_folder, names_file
from ..scoring.evaluation import evaluate_run
from ..scoring.sample import NUM_SAMPLES
from .controls import Control, build_controls
from .search import Matches, find_nearest, find_sharing

LUMA = np.array([0.299, 0.587, 0.114])  # of red, green and blue in grey, as in PIL
MAX_MAGNITUDE = 1e6  # of a continuous latent to decode; far beyond the range of any model
SHOWN_SCORES = ("infom", "informative", "infoe", "infoc", "d", "i", "c", "psnr")  # in the header of the page


class Exploration:
    """A run with its model, its evaluation sample and, if they are available, the images of the sample.

    Args:
        run: The run.
        model: Its model.
        sample: Arrays of its ``sample.npz``.
        results: Content of its ``results.json``.
        names: File of the names that users give to latents.
        images: Images of its data set, or ``None`` if they are not available; reconstructions are then shown instead.
    """

    def __init__(
        self,
        run: Run,
        model: Model,
        *,
        sample: dict[str, NDArray[Any]],
        results: dict[str, Any],
        names: Path,
        images: ImageArray | None,
    ):
        self.run, self.model, self.results = run, model, results
        self.images = images
        self.indices = sample["indices"]
        self.sources = sample["sources"]
        self.has_codes = isinstance(model.latent, DiscreteLatent)
        self.codes: NDArray[Any] = sample["codes" if self.has_codes else "latents"]  # (n, num_latents)
        self.controls: list[Control] = build_controls(model.latent, self.codes, results["averaged"])
        self.names = Names(names, [control.num_values for control in self.controls])
        self.names.read()  # raises now, rather than on the page, if the file is damaged

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def side(self) -> int:
        """Pixels per side of a tile; images that are not square are centred on one."""
        height, width, _ = self.model.observations.shape
        return max(height, width)

    @property
    def num_latents(self) -> int:
        return self.model.latent.num_latents

    def describe(self) -> dict[str, Any]:
        """Return everything that the page needs before a sample is chosen, ready for JSON."""
        data, scores = self.results["data"], self.results["averaged"]
        count = count_informative(scores)
        return {
            "run": self.run.path.resolve().name,
            "model": self.results["model"],
            "data": {key: data[key] for key in ("name", "origin", "num_images")} | {"resolution": self.side},
            "resolution": self.side,
            "steps": self.results["steps"],
            "seed": self.results["seed"],
            "num_samples": len(self),
            "has_images": self.images is not None,
            "scores": [
                {"title": find_score(key).title, "text": _score_text(scores, key)}
                for key in SHOWN_SCORES
                if key in scores
            ],
            "warning": count.warning if count is not None else "",
            "source_names": list(data["source_names"]),
            "source_sizes": list(data["source_sizes"]),
            "nmi": scores.get("nmi"),
            "latents": [dataclasses.asdict(control) for control in self.controls],
            "names": self.names.read(),
        }

    def sample(self, row: int) -> dict[str, Any]:
        """Return one row of the sample: its index in the data set, its code and its sources."""
        self.require_rows([row])
        return {
            "row": row,
            "index": int(self.indices[row]),
            "code": self.codes[row].tolist(),
            "sources": [number.item() for number in self.sources[row]],
        }

    def pictures(self, rows: list[int]) -> NDArray[np.uint8]:
        """Return the images of rows of the sample, or their reconstructions if the images are not available.

        Returns:
            Tiles (n, r, r, 3).
        """
        self.require_rows(rows)
        if self.images is None:
            return self.decode(self.codes[rows])
        order = np.argsort(self.indices[rows], kind="stable")  # files are fastest to read in ascending order
        pictures = np.empty((len(rows), *self.model.observations.shape), self.model.observations.dtype)
        pictures[order] = self.images[self.indices[rows][order]]
        return self.tiles(pictures)

    def decode(self, codes: NDArray[Any]) -> NDArray[np.uint8]:
        """Decode codes (n, num_latents) to tiles (n, r, r, 3)."""
        return self.tiles(self.model.decode(codes))

    def tiles(self, images: NDArray[Any]) -> NDArray[np.uint8]:
        """Return images (n, h, w, c) as tiles (n, r, r, 3): in three colours, and on squares if they are not square."""
        colours = to_colours(images, self.model.observations)
        height, width = colours.shape[1:3]
        if height == width:
            return colours
        tiles = np.full((len(colours), self.side, self.side, 3), 255, np.uint8)
        top, left = (self.side - height) // 2, (self.side - width) // 2
        tiles[:, top : top + height, left : left + width] = colours
        return tiles

    def encode(self, content: bytes) -> tuple[NDArray[np.uint8], list[float]]:
        """Encode an image file.

        Args:
            content: The bytes of the file.

        Returns:
            The picture as a tile (r, r, 3), and its code.

        Raises:
            ValueError: If the file cannot be read, or the model does not take grey or coloured square images of bytes.
        """
        observations = self.model.observations
        height, width, channels = observations.shape
        if height != width or channels not in (1, 3) or observations.dtype != "uint8":
            raise ValueError(
                f"this model takes {observations.traits.many} of {observations.size} ({observations.dtype}); only "
                "square grey or coloured images of bytes can be uploaded: use model.encode in Python"
            )
        colours = decode_picture(content, self.model.resolution)
        picture = np.array(colours)  # a copy: torch requires a writable array
        if channels == 1:
            picture = np.rint(colours @ LUMA).astype(np.uint8)[..., None]
        codes = self.model.encode(picture[None]) if self.has_codes else self.model.latents(picture[None])
        return self.tiles(picture[None])[0], codes[0].tolist()

    def to_code(self, entries: list[float]) -> NDArray[Any]:
        """Return a code (num_latents,) from plain numbers.

        Raises:
            ValueError: If the number of entries is wrong or the model cannot decode one of them.
        """
        if len(entries) != self.num_latents:
            raise ValueError(f"a code of this model has {self.num_latents} entries, got {len(entries)}")
        for control, entry in zip(self.controls, entries, strict=True):
            self.require_value(control.index, entry)
        return np.asarray(entries, dtype=np.int64 if self.has_codes else np.float32)

    def require_value(self, latent: int, entry: float) -> None:
        """Raise a ``ValueError`` unless the latent exists and can be set to ``entry``."""
        if not 0 <= latent < self.num_latents:
            raise ValueError(f"latents run from 0 to {self.num_latents - 1}, got {latent}")
        if self.has_codes:
            size = self.controls[latent].num_values
            if not isinstance(entry, int) or not 0 <= entry < size:
                raise ValueError(f"the codes of z{latent} are integers from 0 to {size - 1}, got {entry}")
        elif not abs(entry) <= MAX_MAGNITUDE:  # also true for NaN
            raise ValueError(
                f"z{latent} must be a number between −{MAX_MAGNITUDE:g} and {MAX_MAGNITUDE:g}, got {entry}"
            )

    def require_rows(self, rows: list[int]) -> None:
        """Raise a ``ValueError`` unless all rows are in the sample."""
        wrong = next((row for row in rows if not 0 <= row < len(self)), None)
        if wrong is not None:
            raise ValueError(f"rows run from 0 to {len(self) - 1}, got {wrong}")

    def find_sharing(self, latent: int, value: float, limit: int) -> Matches:
        """Return rows that share a value of one latent; see ``search.find_sharing``."""
        self.require_value(latent, value)
        return find_sharing(self.codes, latent, value, limit)

    def find_nearest(self, code: NDArray[Any], limit: int) -> Matches:
        """Return the rows nearest to a code; see ``search.find_nearest``."""
        return find_nearest(self.codes, code, self.controls, limit)


def open_run(
    path: str | os.PathLike[str],
    *,
    data: SourceDataset | None = None,
    networks: Networks | None = None,
    device: str = "cpu",
    show: bool = True,
) -> Exploration:
    """Open a run directory, an exported model with a sample, or a shipped model for exploration.

    A run that was never scored, or was trained further since, is scored first.

    Args:
        path: The run directory, the folder of the model, or the name of a shipped model.
        data: The data set that the run was trained on, if it cannot be loaded by name.
        networks: The encoder and the decoder, if the run was trained with networks of your own.
        device: Where the model runs.
        show: Whether to draw progress bars.

    Raises:
        ValueError: If the directory is not a run, has no checkpoint, or does not match ``data``.
    """
    names = names_file(path)
    run = Run.open(find_folder(path))
    if is_pretrained(run.path):
        if not (run.sample_path.is_file() and run.results_path.is_file()):
            raise ValueError(
                f"{run.path} is an exported model without an evaluation sample; explore the run that it was exported "
                "from, or export it again with --samples 1000"
            )
        _require_images(run)
        model = load(run.path, networks=networks, device=device)
        return _explore(run, model, data=data, names=names)
    _require_images(run)
    snapshot = checkpoint.load(run.path)
    if snapshot is None:
        raise ValueError(f"{run.path} has no checkpoint yet; let `qlae train` finish, or stop it with Ctrl-C to save")
    if not _is_scored(run, snapshot.state["step"]):
        evaluate_run(run, data=data, networks=networks, device=device, num_samples=NUM_SAMPLES, show=show)
    model = model_from(run, snapshot, weights="averaged", device=device, networks=networks)
    return _explore(run, model, data=data, names=names)


def _explore(run: Run, model: Model, *, data: SourceDataset | None, names: Path) -> Exploration:
    sample = read_sample(run, model)
    images = _load_images(run, data)
    if images is not None and sample["indices"].max() >= len(images):
        raise ValueError(
            f"the sample of {run.path} refers to image {sample['indices'].max():,}, but the data set has "
            f"{len(images):,} images; give the data set that the run was trained on"
        )
    return Exploration(run, model, sample=sample, results=run.results, names=names, images=images)


def _require_images(run: Run) -> None:
    """Raise a ``ValueError`` unless the model's observations can be shown on the page."""
    observations = run.observations
    if not observations.traits.load_drawing().has_tiles:
        raise ValueError(
            f"{run.path} is a model of {observations.traits.many} ({observations.size}), and the explorer shows models "
            "of images only. Its pictures show what each latent does (interventions.png); in Python, "
            "qlae.load(run).decode(codes) decodes any code"
        )


def read_sample(run: Run, model: Model) -> dict[str, NDArray[Any]]:
    """Return the evaluation sample of a run; raise a ``ValueError`` unless it is one that its model can decode."""
    name = "codes" if isinstance(model.latent, DiscreteLatent) else "latents"
    sample = run.arrays(run.sample_path, ("indices", "sources", name))
    codes, indices = sample[name], sample["indices"]
    fits = codes.shape[1] == model.latent.num_latents and indices.min() >= 0
    if fits and isinstance(model.latent, DiscreteLatent):
        fits = codes.min() >= 0 and bool((codes < np.asarray(model.latent.num_values)).all())
    if not fits:
        raise ValueError(
            f"{run.sample_path} does not belong to the model of the run; "
            f"run `qlae evaluate {run.path}` to write it again"
        )
    return sample


def _is_scored(run: Run, step: int) -> bool:
    return run.sample_path.is_file() and run.results_path.is_file() and run.results["steps"] == step


def _load_images(run: Run, data: SourceDataset | None) -> ImageArray | None:
    """Return the images of a run's data set, or warn and return ``None`` if they are not available."""
    try:
        return (load_from_config(run.config.data) if data is None else data).images
    except (ValueError, OSError) as error:
        warnings.warn(
            f"the images of {run.path} are not available, so reconstructions are shown instead: {error}", stacklevel=3
        )
        return None


def _score_text(scores: dict[str, Any], key: str) -> str:
    if key == "informative" and (count := count_informative(scores)) is not None:
        return str(count)
    score = find_score(key)
    return f"{score.format(scores[key], max_digits=2)} {score.unit}".rstrip()
