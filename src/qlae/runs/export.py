"""Exported models: a folder to share, with weights, a model card and optionally ONNX files of encoder and decoder.

As on model hubs, the folder holds ``config.json``, ``model.safetensors`` and ``README.md``. Unlike a run directory it
holds one set of weights and nothing that only training needs. It contains no pickle and no code: loading it executes
nothing.

The ONNX files take and give the same arrays as ``Model.encode`` and ``Model.decode``: observations such as images
(n, r, r, 3) uint8, codes (n, num_latents) int64, latents float32. Before they are written, onnxruntime must give the
same results as torch.
"""

import contextlib
import dataclasses
import hashlib
import html
import json
import logging
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .._checks import whole_number
from .._io import SEAL, read_regular, require_regular, seal, write_bytes, write_json, write_npz
from .._version import __version__
from ..config import RunConfig
from ..metrics import count_informative, find_score
from ..models.building import Networks
from ..models.latents import DiscreteLatent
from ..models.model import Model
from ..paper_tables import published_results
from ..registry import NETWORKS
from .directory import Run, read_config
from .latent_names import FILE as NAMES_FILE
from .latent_names import Names
from .results import WEIGHTS, read_results

WEIGHTS_FILE = "model.safetensors"
CARD = "README.md"
RESULTS = "results.json"
SAMPLE = "sample.npz"  # only in folders that can be explored
ENCODER, DECODER = "encoder.onnx", "decoder.onnx"
REMEDY = "copy it again from where it came"
FILES = ("config.json", WEIGHTS_FILE, RESULTS, SAMPLE, CARD, ENCODER, DECODER)
CARD_SCORES = ("infom", "informative", "infoe", "infoc", "d", "i", "c", "active", "psnr", "r2")
OPSET = 18
NUM_CHECKED = 16  # images on which the two are compared
MAX_LATENT_ERROR = 1e-3  # of the largest latent
MIN_SAME_CODES = 0.98  # an entry between two values may round either way


def export_run(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    onnx: bool = False,
    half: bool = False,
    num_samples: int = 0,
    weights: str = "averaged",
    networks: Networks | None = None,
) -> list[Path]:
    """Write the model of a run to a folder, as ``Model.save_pretrained`` does, and optionally as ONNX.

    Names that were given to latents and values in the explorer are copied too.

    Args:
        path: the run directory.
        out: the folder; new, empty, or of an earlier export, which is replaced.
        onnx: also write ``encoder.onnx`` and ``decoder.onnx``.
        half: round the weights of the networks to half precision.
        num_samples: also write this many rows of the evaluation sample (codes and sources, no images), so that the
            explorer can open the folder.
        weights: ``"averaged"`` or ``"raw"``.
        networks: the encoder and the decoder, if the run was trained with custom networks.

    Returns:
        The files.
    """
    from .load_model import load  # which imports this module

    if onnx:
        require_onnx()
    whole_number("num_samples", num_samples, at_least=0)
    model = load(path, weights=weights, networks=networks)
    sample = _sample_rows(Run(path), model, weights, num_samples) if num_samples else None
    names = Names(Path(path) / NAMES_FILE, []).read()
    folder, files = model.save_pretrained(out, half=half), list(FILES)
    if sample is not None:
        write_npz(folder / SAMPLE, **sample)
    if names["latents"] or names["values"]:
        write_json(folder / NAMES_FILE, names)
        files.append(NAMES_FILE)
    if onnx:
        export_onnx(model, folder)
    return sorted(path for path in folder.iterdir() if path.name in files)


def _sample_rows(run: Run, model: Model, weights: str, count: int) -> dict[str, NDArray[Any]]:
    """Return rows of the evaluation sample of a run, encoded with the exported weights.

    The sample is in the order of the data, where neighbours are alike, so the rows are spread over all of it.
    """
    if weights != "averaged":
        raise ValueError("the explorer shows averaged weights, so a sample is exported with these only")
    if not (isinstance(model.origin, Origin) and model.origin.results and run.sample_path.is_file()):
        raise ValueError(
            f"{run.path} has no scores of its last update and so no sample; run `qlae evaluate {run.path}` first"
        )
    arrays = run.arrays(run.sample_path)
    size = len(arrays["indices"])
    rows = np.linspace(0, size - 1, min(count, size)).round().astype(np.int64)
    return {name: arrays[name][rows] for name in ("indices", "sources", "codes", "latents", "psnr") if name in arrays}


@dataclass(frozen=True)
class Origin:
    """Where a model's weights come from: the run's config and results, and which of its weights they are."""

    config: RunConfig
    weights: str  # "averaged" or "raw"
    results: dict[str, Any]  # as in ``results.json``; empty if the run was not scored

    def write(self, folder: Path, tensors: dict[str, Tensor], *, half: bool = False) -> None:
        """Write the model to a folder; the weights come last, so that a folder that has them is complete.

        The folder is new, empty, or written by this method before; then its old files are removed. With ``half``, the
        networks are stored in half precision, and codebooks stay exact.
        """
        _require_free(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in (WEIGHTS_FILE, RESULTS, SAMPLE, ENCODER, DECODER):
            (folder / name).unlink(missing_ok=True)
        public = _without_paths(self)
        write_json(folder / "config.json", seal(public.config.to_dict()))
        if public.results:
            write_json(folder / RESULTS, seal(public.results))
        write_bytes(folder / CARD, model_card(public).encode())
        if half:
            tensors = {
                name: tensor.half()
                if name.startswith(("encoder.", "decoder.")) and tensor.is_floating_point()
                else tensor
                for name, tensor in tensors.items()
            }
        metadata = {"format": "pt", "weights": self.weights, "qlae": __version__}
        write_bytes(folder / WEIGHTS_FILE, tensors_to_bytes(tensors, metadata))


def is_pretrained(folder: Path) -> bool:
    """Return whether a folder was written by ``Origin.write``, rather than being a run directory."""
    return (folder / WEIGHTS_FILE).is_file() and not (folder / "checkpoint.json").exists()


def read_tensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return the metadata and the tensors of a safetensors file; raise a ``ValueError`` if it is damaged."""
    try:
        require_regular(path)
        with safetensors.safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f"{path} cannot be read ({error}); {REMEDY}") from None
    if SEAL in metadata and metadata[SEAL] != tensors_checksum(tensors):
        raise ValueError(f"{path} cannot be read (it was altered after it was written); {REMEDY}")
    return metadata, tensors


def read_pretrained(folder: Path) -> tuple[Origin, dict[str, Tensor]]:
    """Return what ``Origin.write`` wrote; raise an error that names a missing or damaged file."""
    metadata, tensors = read_tensors(folder / WEIGHTS_FILE)
    weights = metadata.get("weights", "averaged")
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder / 'config.json'} is missing; {REMEDY}")
    if weights not in WEIGHTS:
        which = f"must hold the averaged or the raw weights, got {weights[:60]!r}"
        raise ValueError(f"{folder / WEIGHTS_FILE} {which}; {REMEDY}")
    config = read_config(folder / "config.json", remedy=REMEDY)
    results = read_results(folder / RESULTS, remedy=REMEDY) if (folder / RESULTS).is_file() else {}
    return Origin(config, weights, results), tensors


def tensors_to_bytes(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Return tensors from any device as the bytes of a safetensors file, with their checksum in its metadata.

    The same tensors give the same bytes. The library writes metadata in random order, so the header is sorted here.
    """
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = safetensors.torch.save(on_cpu, {**(metadata or {}), SEAL: tensors_checksum(on_cpu)})
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:start]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[start:]


def tensors_checksum(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of tensors, with their names, types and shapes."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _require_free(folder: Path) -> None:
    """Raise an error if the folder holds other files, or a model card that somebody has edited."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, not a folder; choose another")
    if (folder / "checkpoint.json").exists():
        raise ValueError(f"{folder} is a run directory; choose another folder for the model")
    there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    metadata: dict[str, str] = {}
    with contextlib.suppress(ValueError):
        metadata = read_tensors(folder / WEIGHTS_FILE)[0]
    if there and "qlae" not in metadata:  # which says who wrote the weights
        raise ValueError(
            f"{folder} holds other files ({there[0]}, …); choose a new or empty folder, or one of an earlier export"
        )
    if CARD in there and read_regular(folder / CARD) != model_card(read_pretrained(folder)[0]).encode():
        raise ValueError(f"{folder / CARD} was edited after the export; move it away or choose another folder")


def _without_paths(origin: Origin) -> Origin:
    """Return the origin without the paths of the machine that the model was trained on."""
    data = origin.config.data
    if data.spec is not None and data.spec.paths():
        data = dataclasses.replace(data, spec=None)
    results = dict(origin.results)
    if "data" in results:
        results["data"] = {key: value for key, value in results["data"].items() if key != "files"}
    return Origin(dataclasses.replace(origin.config, data=data), origin.weights, results)


def model_card(origin: Origin) -> str:
    """Return a model card: a description of the model, its scores, and how to use it."""
    config, results = origin.config, origin.results
    data, latent, training, kind = config.data, config.latent, config.training, config.data.observations.traits
    article, scored = "an" if kind.one[0] in "aeiou" else "a", results.get(origin.weights, {})
    scores = {key: scored[key] for key in CARD_SCORES if key in scored}
    model, name = _as_markdown(config.model), _as_markdown(data.name)
    return f"""\
---
library_name: qlae
tags: ["disentanglement", "representation-learning", "latent-quantization"]
{_model_index(config, scores)}---

# {model} on {name}

A **{model}** trained with [qlae](https://arxiv.org/abs/2305.18378) on {name} ({data.origin}, \
{data.observations.size}, {data.num_images:,} {kind.many}). It turns {article} {kind.one} into \
{latent.num_latents} latents ({latent.description}) and back.

## Scores

{_score_text(origin, scores)}

## Use

```python
{_usage(origin)}
```

## Training

{results.get("steps", training.steps):,} updates of {training.batch_size} {kind.many}, weight decay \
{training.optimizer.weight_decay:g}, seed {training.seed}, {_describe_networks(config.networks)}; \
{origin.weights} weights. Everything else is in `config.json`.
"""


def _as_markdown(text: str) -> str:
    """Return text on one line in which nothing has a meaning in Markdown or HTML.

    >>> _as_markdown("qlae-2 <b>")
    'qlae-2 &lt;b&gt;'
    """
    line = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\`*_{}\[\]#|!$])", r"\\\1", line)


def _model_index(config: RunConfig, scores: Mapping[str, float]) -> str:
    """Return the scores as YAML for hubs; every value is JSON, which is YAML too."""
    if not scores:
        return ""
    data = {"name": config.data.name, "type": config.data.name}
    metrics = [{"type": key, "name": find_score(key).heading, "value": round(scores[key], 4)} for key in scores]
    entry = {"task": {"type": "feature-extraction"}, "dataset": data, "metrics": metrics}
    name = json.dumps(f"{config.model} on {config.data.name}")
    return f"model-index:\n- name: {name}\n  results: {json.dumps([entry], ensure_ascii=False)}\n"


def _score_text(origin: Origin, scores: Mapping[str, float]) -> str:
    """Return the table of scores, their sample, the paper's scores, and a warning about noise."""
    if not scores:
        return "It was not scored."
    config, results, found = origin.config, origin.results, [find_score(key) for key in scores]
    text = f"| {' | '.join(score.heading for score in found)} |\n|{'---|' * len(found)}\n"
    text += f"| {' | '.join(score.format(scores[score.key]) for score in found)} |\n\n"
    text += f"On {results['num_samples']:,} samples"
    text += f", InfoMEC protocol {results['protocol']}." if "infom" in scores else "."
    cells = {key: published_results().get((config.data.name, config.model, key)) for key in ("infom", "infoc", "psnr")}
    published = ", ".join(f"{find_score(key).heading} {cell.mean:g}" for key, cell in cells.items() if cell)
    if published:
        text += f" The paper reports {published} for full-size networks on the published images at 64×64."
    count = count_informative(results[origin.weights])
    return f"{text}\n\n{count.warning}" if count is not None and count.warning else text


def _usage(origin: Origin) -> str:
    """Return the Python code that loads the model and uses it, with imports of parts from outside the package."""
    config, own = origin.config, origin.config.networks.own
    parts = [config.to_dict()[name] for name in ("networks", "latent", "objective")]
    modules = dict.fromkeys(part["module"].removesuffix(".py") for part in parts if "module" in part)
    named = [name for name in modules if name.replace(".", "_").isidentifier()]
    options = ', weights="raw"' if origin.weights == "raw" else ""
    if own:
        options += f", networks=({', '.join(role if role in own else 'None' for role in ('encoder', 'decoder'))})"
    arrays, observed = config.data.observations.traits.many, config.data.observations
    encoded, encode, kind = (
        ("codes", "encode", "integers") if config.latent.has_codes else ("latents", "latents", "floats")
    )
    lines = [
        *(f"import {name}  # registers parts of this model" for name in named),
        "import qlae",
        "",
        f'model = qlae.load("path/to/this/folder"{options})',
        f"{encoded} = model.{encode}({arrays})  # {arrays} {observed.with_sample_axis()} → "
        f"(n, {config.latent.num_latents}) {kind}",
        f"{arrays} = model.decode({encoded})",
    ]
    return "\n".join(lines)


def _describe_networks(config: Any) -> str:
    if config.own:
        return f"custom {' and '.join(config.own)}"
    entry = NETWORKS.entry_of(config)
    if not entry.is_ours:
        return f"networks `{entry.kind}` of the module `{entry.module}`"
    return f"{config.size} networks " + (f"of the {config.form} form" if entry.kind == "paper" else f"`{entry.kind}`")


class _Encode(nn.Module):
    """Observations, such as images (n, r, r, 3) uint8 → codes, if the model has any, and latents."""

    def __init__(self, model: Model):
        super().__init__()
        self.form, self.encoder, self.latent = model.form, model.encoder, model.latent

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        output = self.latent(self.encoder(self.form.to_input(images)))
        return (output.z,) if output.codes is None else (output.codes, output.z)


class _Decode(nn.Module):
    """Codes, or latents of a model without codes → observations, such as images (n, r, r, 3) uint8."""

    def __init__(self, model: Model):
        super().__init__()
        self.form, self.latent, self.decoder = model.form, model.latent, model.decoder

    def forward(self, code: Tensor) -> Tensor:
        z = self.latent.to_values(code) if isinstance(self.latent, DiscreteLatent) else code
        return self.form.to_array(self.decoder(self.latent.decoder_inputs(z)))


def export_onnx(model: Model, folder: str | os.PathLike[str]) -> None:
    """Write ``encoder.onnx`` and ``decoder.onnx`` to a folder and check them; they take any number of images."""
    require_onnx()
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    model = model.cpu().eval()
    observations = _random_observations(model)
    discrete, name = isinstance(model.latent, DiscreteLatent), model.observations.traits.many
    code = model.encode(observations) if discrete else model.latents(observations)
    encoder = _to_onnx(_Encode(model), observations, name, ["codes"] * discrete + ["latents"])
    decoder = _to_onnx(_Decode(model), code, "codes" if discrete else "latents", [name])
    check_onnx(model, encoder, decoder, observations)
    write_bytes(target / ENCODER, encoder)
    write_bytes(target / DECODER, decoder)


def check_onnx(model: Model, encoder: bytes, decoder: bytes, observations: NDArray[Any]) -> None:
    """Raise an error if the results of onnxruntime differ from those of torch by more than rounding."""
    *codes, latents = _run(encoder, observations)
    code: NDArray[Any]
    code = reference = model.latents(observations)
    same = np.ones_like(latents, dtype=bool)
    if codes:  # where a code fell to the other side of a tie its latent follows, and is counted once, as a code
        code = model.encode(observations)
        same = np.repeat(codes[0] == code, model.latent.num_outputs // model.latent.num_latents, axis=1)
    latent_error = (np.abs(latents - reference) * same).max() / max(np.abs(reference).max(), 1e-12)
    difference = np.abs(_run(decoder, code)[0].astype(float) - model.decode(code, as_array=True).astype(float))
    decoded_error = (difference / (model.observations.scale or 1.0)).max()
    most = 1 if model.observations.dtype == "uint8" else MAX_LATENT_ERROR
    if latent_error > MAX_LATENT_ERROR or same.mean() < MIN_SAME_CODES or decoded_error > most:
        raise RuntimeError(
            f"onnxruntime and torch disagree: latents by {latent_error:.2g} of the largest, {1 - same.mean():.2%} of "
            f"the codes, decoded {model.observations.traits.many} by {decoded_error:.2g}; nothing was written"
        )


def require_onnx() -> None:
    """Raise an error that says what to install if a part of ONNX is missing."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ValueError(f"--onnx needs {error.name}: pip install 'qlae[onnx]'") from None


def _random_observations(model: Model) -> NDArray[Any]:
    observations = model.observations
    unit = np.random.default_rng(0).random((NUM_CHECKED, *observations.shape))
    if observations.dtype == "uint8":
        return (unit * 255).astype(np.uint8)
    if len(observations.shape) < 3:
        unit = (unit - 0.5) * np.sqrt(12)  # of variance 1
    array: NDArray[Any] = unit * np.asarray(observations.scale) + np.asarray(observations.offset)
    return array.astype(observations.dtype)


def _to_onnx(module: nn.Module, example: NDArray[Any], name: str, outputs: list[str]) -> bytes:
    with torch.no_grad(), _quietly():
        program = torch.onnx.export(
            module.eval(),
            (torch.from_numpy(example),),
            input_names=[name],
            output_names=outputs,
            dynamic_shapes=({0: torch.export.Dim("n", min=1)},),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        proto = program.model_proto
    for entry in (*proto.graph.node, *proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        del entry.metadata_props[:]  # traces of the code, with the paths of this machine
    content: bytes = proto.SerializeToString()
    return content


def _run(model: bytes, array: NDArray[Any]) -> list[NDArray[Any]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {session.get_inputs()[0].name: array}))


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Silence the exporter, which logs and warns about its own inner workings."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
