"""Everything the page can ask about a run, answered in NumPy arrays and plain dictionaries, without a server.

Throughout the explorer a *code* is one entry per latent: integers where the model has codes, numbers where its latents
are continuous.
"""

import dataclasses
import io
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..data import SourceDataset, load_from_config
from ..data.image_files import open_files
from ..data.pictures import decode_whole
from ..metrics import count_informative, find_score
from ..models.building import Networks
from ..models.latents import DiscreteLatent
from ..models.model import Model
from ..runs import checkpoint
from ..runs.directory import Run, find_folder
from ..runs.export import is_pretrained
from ..runs.latent_names import Names, names_file
from ..runs.load_model import load
from ..scoring.evaluation import evaluate_run
from ..scoring.fidelity import score_rows
from ..scoring.sample import NUM_SAMPLES
from .controls import Control, build_controls
from .observation_views import View
from .support import find_support

NUM_EXAMPLES = 500  # from which the ranges of features are measured
MAX_MAGNITUDE = 1e6  # of a continuous latent to decode; far beyond the range of any model
MAX_SIDE = 2048  # pixels; larger originals are scaled down
MAX_LOSSLESS = 2**18  # pixels; larger originals become JPEG files
QUALITY = 90  # of these
MAX_VALUES = 1024  # of a condition of a search
SHOWN_SCORES = ("infom", "informative", "infoe", "infoc", "d", "i", "c", "psnr", "r2")  # in the header of the page


Number = int | float  # an integer stays one, since codes are integers


class Matches(NamedTuple):
    """The result of a search."""

    rows: list[int]  # of the sample, best match first
    distances: list[float]  # for codes the number of latents that differ, for continuous latents the distance
    total: int  # number of rows that match; ``rows`` may list fewer


@dataclass(frozen=True)
class Condition:
    """A latent and its allowed ``values``, or the lowest and the highest number of a continuous latent."""

    latent: int
    values: Annotated[list[Number], msgspec.Meta(min_length=1, max_length=MAX_VALUES)] | None = None
    low: Number | None = None
    high: Number | None = None


class Originals(NamedTuple):
    """The files that the images of a data set were read from, shown next to the model's input.

    Only files that the data set names are read, and each is decoded and encoded again, so that nothing but pixels
    leaves this machine's disk: no metadata, and no file that merely looks like an image.
    """

    path: Path  # of the folder or archive
    names: Sequence[str]  # of each image's file in it

    def read(self, index: int) -> tuple[bytes, str]:
        """Return the file of an image of the data set, scaled down if it is large, and its media type."""
        name = self.names[index]
        try:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ValueError("its name leads out of the data set")
            image = decode_whole(open_files(self.path).read_one(name), MAX_SIDE)
        except (ValueError, OSError, KeyError, StopIteration) as error:
            reason = str(error) if isinstance(error, ValueError) else "it is gone"
            raise ValueError(f"the original of {name} cannot be shown: {reason}") from None
        is_lossy = image.format == "JPEG" or image.width * image.height > MAX_LOSSLESS
        file = io.BytesIO()
        image.save(file, format="JPEG" if is_lossy else "PNG", quality=QUALITY)
        return file.getvalue(), "image/jpeg" if is_lossy else "image/png"


def find_originals(data: SourceDataset | None) -> Originals | None:
    """Return the files of a data set, or ``None`` if its images were not files or are no longer there."""
    if data is None or data.file_names is None:
        return None
    path = getattr(data.spec, "path", None) or data.details.get("files", {}).get("path")
    return Originals(Path(path), data.file_names) if path is not None and Path(path).exists() else None


class Exploration:
    """A run with its model, its evaluation sample and, if they are available, the observations of the sample.

    Args:
        run: The run.
        model: Its model.
        data: The data set that it was trained on, or ``None`` if it is not available; reconstructions are then shown
            instead.
        names: File of the names that users give to latents.
    """

    def __init__(self, run: Run, model: Model, data: SourceDataset | None, names: Path):
        self.run, self.model, self.results = run, model, run.results
        sample = read_sample(run, model)
        self.indices, self.sources = sample["indices"], sample["sources"]
        self.row_scores = score_rows(sample)
        self.data, self.images = data, None if data is None else data.images
        if self.images is not None and self.indices.max() >= len(self.images):
            raise ValueError(
                f"the sample of {run.path} refers to image {self.indices.max():,}, but the data set has "
                f"{len(self.images):,} images; give the data set that the run was trained on"
            )
        self.file_names, self.originals = None if data is None else data.file_names, find_originals(data)
        self.view: View = model.observations.traits.load("view")(model.observations)
        self.has_codes = isinstance(model.latent, DiscreteLatent)
        self.codes: NDArray[Any] = sample["codes" if self.has_codes else "latents"]  # (n, num_latents)
        self.controls = build_controls(model.latent, self.codes, self.results["averaged"])
        self.support = find_support(run, len(self.controls))
        self.names = Names(names, [control.num_values for control in self.controls])
        self.names.read()  # raises now, rather than on the page, if the file is damaged

    def __len__(self) -> int:
        return len(self.codes)

    def describe(self) -> dict[str, Any]:
        """Return everything that the page needs before a sample is chosen, ready for JSON."""
        data, scores = self.results["data"], self.results["averaged"]
        count = count_informative(scores)
        return {
            "run": self.run.path.resolve().name,
            "model": self.results["model"],
            "data": {key: data[key] for key in ("name", "origin", "num_images")},
            "observations": self.view.describe(lambda: self.examples),
            "steps": self.results["steps"],
            "seed": self.results["seed"],
            "num_samples": len(self),
            "has_images": self.images is not None,
            "has_files": self.file_names is not None,
            "has_originals": self.originals is not None,
            "scores": [
                {"title": find_score(key).title, "text": _score_text(scores, key)}
                for key in SHOWN_SCORES
                if key in scores
            ],
            "warning": count.warning if count is not None else "",
            "source_names": list(data["source_names"]),
            "nmi": scores.get("nmi"),
            "latents": [
                dataclasses.asdict(control) | {"support": support}
                for control, support in zip(self.controls, self.support, strict=True)
            ],
            "names": self.names.read(),
        }

    def sample(self, row: int) -> dict[str, Any]:
        """Return one row of the sample: its index in the data set, file, code, sources, and PSNR or R²."""
        self.require_rows([row])
        index = int(self.indices[row])
        return {
            "row": row,
            "index": index,
            "file": None if self.file_names is None else self.file_names[index],
            "code": self.codes[row].tolist(),
            "sources": self.sources[row].tolist(),
            "fidelity": self._fidelity(row),
        }

    def _fidelity(self, row: int) -> str | None:
        """Return the PSNR or R² of the reconstruction of a row; ``None`` if the sample does not have it."""
        if self.row_scores is None:
            return None
        key, values = self.row_scores
        score = find_score(key)
        return f"{score.title} {_score_text({key: float(values[row])}, key)}".replace("-", "−")

    def original(self, row: int) -> tuple[bytes, str]:
        """Return the file that a row of the sample was read from, and its media type."""
        self.require_rows([row])
        if self.originals is None:
            raise ValueError(f"the {self.model.observations.traits.many} of this run are not files on this machine")
        return self.originals.read(int(self.indices[row]))

    def pictures(self, rows: list[int]) -> NDArray[Any]:
        """Return the observations of rows of the sample, as ``View.to_page`` does."""
        self.require_rows(rows)
        return self.view.to_page(self._observations(rows))

    def decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Decode codes (n, num_latents) to pictures for the page."""
        return self.view.to_page(self.model.decode(codes, as_array=True))

    def encode(self, content: bytes) -> tuple[NDArray[Any], list[float], str]:
        """Return the picture of an uploaded file or text, its code, and a note for the user, which may be empty."""
        observation, note = self.view.read(content)
        rows = observation[None]
        code = (self.model.encode(rows) if self.has_codes else self.model.latents(rows))[0]
        if not np.isfinite(code).all():
            raise ValueError("the encoder gives no finite latents for these numbers; they are too far from the data")
        return self.view.to_page(rows)[0], code.tolist(), note

    @cached_property
    def examples(self) -> NDArray[Any]:
        """Some observations, spread evenly over the sample."""
        rows = np.linspace(0, len(self) - 1, min(NUM_EXAMPLES, len(self))).round().astype(int)
        return self._observations(rows.tolist())

    def _observations(self, rows: list[int]) -> NDArray[Any]:
        if self.images is None:
            decoded: NDArray[Any] = self.model.decode(self.codes[rows], as_array=True)
            return decoded
        order = np.argsort(self.indices[rows], kind="stable")  # files are fastest to read in ascending order
        arrays = np.empty((len(rows), *self.model.observations.shape), self.model.observations.dtype)
        arrays[order] = self.images[self.indices[rows][order]]
        return arrays

    def to_code(self, entries: list[float]) -> NDArray[Any]:
        """Return a code (num_latents,) from plain numbers, if the model can decode them."""
        if len(entries) != len(self.controls):
            raise ValueError(f"a code of this model has {len(self.controls)} entries, got {len(entries)}")
        for latent, entry in enumerate(entries):
            self.require_value(latent, entry)
        return np.asarray(entries, dtype=np.int64 if self.has_codes else np.float32)

    def require_value(self, latent: int, entry: float) -> None:
        """Raise a ``ValueError`` unless the latent exists and can be set to ``entry``."""
        if not 0 <= latent < len(self.controls):
            raise ValueError(f"latents run from 0 to {len(self.controls) - 1}, got {latent}")
        size = self.controls[latent].num_values
        if self.has_codes and not (isinstance(entry, int) and 0 <= entry < size):
            raise ValueError(f"the codes of z{latent} are integers from 0 to {size - 1}, got {entry}")
        if not self.has_codes and not abs(entry) <= MAX_MAGNITUDE:  # also true for NaN
            raise ValueError(
                f"z{latent} must be a number between −{MAX_MAGNITUDE:g} and {MAX_MAGNITUDE:g}, got {entry}"
            )

    def require_rows(self, rows: list[int]) -> None:
        """Raise a ``ValueError`` unless all rows are in the sample."""
        wrong = next((row for row in rows if not 0 <= row < len(self)), None)
        if wrong is not None:
            raise ValueError(f"rows run from 0 to {len(self) - 1}, got {wrong}")


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
        networks: The encoder and the decoder, if the run was trained with custom networks.
        device: Where the model runs.
        show: Whether to draw progress bars.

    Raises:
        ValueError: If the directory is not a run, has no checkpoint, or does not match ``data``.
    """
    names = names_file(path)
    run = Run.open(find_folder(path))
    has_sample = run.sample_path.is_file() and run.results_path.is_file()
    if is_pretrained(run.path):
        if not has_sample:
            raise ValueError(
                f"{run.path} is an exported model without an evaluation sample; explore the run that it was exported "
                "from, or export it again with --samples 1000"
            )
    else:
        snapshot = checkpoint.load(run.path)
        if snapshot is not None and not (has_sample and run.results["steps"] == snapshot.state["step"]):
            evaluate_run(run, data=data, networks=networks, device=device, num_samples=NUM_SAMPLES, show=show)
    model = load(run.path, networks=networks, device=device)
    return Exploration(run, model, _load_data(run) if data is None else data, names)


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


def _load_data(run: Run) -> SourceDataset | None:
    """Return the data set of a run, or warn and return ``None`` if it is not available."""
    try:
        return load_from_config(run.config.data)
    except (ValueError, OSError) as error:
        many = run.observations.traits.many
        warnings.warn(
            f"the {many} of {run.path} are not available, so reconstructions are shown instead: {error}", stacklevel=3
        )
        return None


def _score_text(scores: dict[str, Any], key: str) -> str:
    if key == "informative" and (count := count_informative(scores)) is not None:
        return str(count)
    score = find_score(key)
    return f"{score.format(scores[key], max_digits=2)} {score.unit}".rstrip()


def find_matching(codes: NDArray[Any], conditions: Sequence[Condition], limit: int) -> Matches:
    """Return rows that fulfil all conditions, spread evenly over the sample.

    ``codes`` are the codes or continuous latents (n, num_latents) of the sample; at most ``limit`` rows are returned.
    """
    matching = np.ones(len(codes), dtype=bool)
    for condition in conditions:
        column = codes[:, condition.latent]
        if condition.low is not None and condition.high is not None:
            matching &= (column >= condition.low) & (column <= condition.high)
        else:
            matching &= np.isin(column, condition.values or ())
    found = np.flatnonzero(matching)
    rows = found[np.linspace(0, len(found) - 1, min(limit, len(found))).round().astype(int)]
    return Matches(rows.tolist(), [0.0] * len(rows), len(found))


def find_nearest(codes: NDArray[Any], code: NDArray[Any], controls: Sequence[Control], limit: int) -> Matches:
    """Return the rows nearest to a code, compared over the active latents.

    Codes are ranked by the number of latents that differ and, among equals, by how far apart their values are.
    Continuous latents are ranked by Euclidean distance, each latent in units of its standard deviation.
    """
    compared = [control.index for control in controls if control.active] or list(range(codes.shape[1]))
    if np.issubdtype(codes.dtype, np.integer):
        distances = (codes[:, compared] != code[compared]).sum(1)
        gaps = np.sum([_value_gaps(controls[j], codes[:, j], int(code[j])) for j in compared], axis=0)
        rows = np.lexsort((gaps, distances))[:limit]
    else:
        deviations = codes[:, compared].std(0)
        offsets = (codes[:, compared] - code[compared]) / np.where(deviations > 0, deviations, 1)
        distances = np.sqrt((offsets**2).sum(1))
        rows = np.argsort(distances, kind="stable")[:limit]
    return Matches(rows.tolist(), distances[rows].astype(float).round(4).tolist(), len(codes))


def _value_gaps(control: Control, column: NDArray[np.int64], code: int) -> NDArray[np.float64]:
    """Return how far the values of a column lie from that of a code, as a share of the codebook's range."""
    if not control.values or control.high == control.low:
        return np.zeros(len(column))
    values = np.asarray(control.values)
    return np.asarray(np.abs(values[column] - values[code]) / (control.high - control.low))


def find_files(names: Sequence[str], text: str, limit: int) -> Matches:
    """Return rows whose file name contains a text in any case; a file of exactly that name comes first."""
    rows = [row for row, name in enumerate(names) if text.casefold() in name.casefold()]
    rows.sort(key=lambda row: (names[row] != text, names[row]))
    return Matches(rows[:limit], [0.0] * len(rows[:limit]), len(rows))
