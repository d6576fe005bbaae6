"""A folder to share: ``config.json``, ``model.safetensors`` and a model card, as on model hubs.

Unlike a run directory it holds one set of weights and nothing that only training needs. It contains no pickle and no
code: loading it executes nothing.
"""

import dataclasses
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from .._io import read_regular, require_regular, write_bytes, write_json
from .._version import __version__
from ..config import RunConfig
from ..metrics import count_informative, find_score
from ..published import published_results
from ..registry import NETWORKS
from .directory import read_config
from .results import WEIGHTS, read_results

WEIGHTS_FILE = "model.safetensors"
CARD = "README.md"
RESULTS = "results.json"
SAMPLE = "sample.npz"  # only in folders that can be explored
ENCODER, DECODER = "encoder.onnx", "decoder.onnx"
REMEDY = "copy it again from where it came"
FILES = ("config.json", WEIGHTS_FILE, RESULTS, SAMPLE, CARD, ENCODER, DECODER)
CARD_SCORES = ("infom", "informative", "infoe", "infoc", "d", "i", "c", "active", "psnr", "r2")


@dataclass(frozen=True)
class Origin:
    """Where a model's weights come from.

    Attributes:
        config: of the run.
        weights: ``"averaged"`` or ``"raw"``.
        results: of the run, as in ``results.json``; empty if it was not scored.
    """

    config: RunConfig
    weights: str
    results: dict[str, Any]

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
        write_json(folder / "config.json", public.config.to_dict())
        if public.results:
            write_json(folder / RESULTS, public.results)
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


def read_pretrained(folder: Path) -> tuple[Origin, dict[str, Tensor]]:
    """Return what ``Origin.write`` wrote; raise an error that names a missing or damaged file."""
    path = folder / WEIGHTS_FILE
    try:
        require_regular(path)
        with safetensors.safe_open(path, "pt") as file:
            weights = (file.metadata() or {}).get("weights", "averaged")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f"{path} cannot be read ({error}); {REMEDY}") from None
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder / 'config.json'} is missing; {REMEDY}")
    if weights not in WEIGHTS:
        raise ValueError(f"{path} must hold the averaged or the raw weights, got {weights[:60]!r}; {REMEDY}")
    config = read_config(folder / "config.json", remedy=REMEDY)
    results = read_results(folder / RESULTS, remedy=REMEDY) if (folder / RESULTS).is_file() else {}
    return Origin(config, weights, results), tensors


def tensors_to_bytes(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Return tensors from any device as the bytes of a safetensors file."""
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return bytes(safetensors.torch.save(on_cpu, metadata))


def _require_free(folder: Path) -> None:
    """Raise an error if the folder holds other files, or a model card that somebody has edited."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, not a folder; choose another")
    if (folder / "checkpoint.json").exists():
        raise ValueError(f"{folder} is a run directory; choose another folder for the model")
    there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if there and not _is_ours(folder):
        raise ValueError(
            f"{folder} holds other files ({there[0]}, …); choose a new or empty folder, or one of an earlier export"
        )
    if CARD in there and read_regular(folder / CARD) != model_card(read_pretrained(folder)[0]).encode():
        raise ValueError(f"{folder / CARD} was edited after the export; move it away or choose another folder")


def _is_ours(folder: Path) -> bool:
    """Return whether ``Origin.write`` wrote the weights in a folder, according to their metadata."""
    try:
        require_regular(folder / WEIGHTS_FILE)
        with safetensors.safe_open(folder / WEIGHTS_FILE, "pt") as file:
            return "qlae" in (file.metadata() or {})
    except (safetensors.SafetensorError, OSError, ValueError):
        return False


def _without_paths(origin: Origin) -> Origin:
    """Return the origin without the paths of the machine that the model was trained on."""
    data = origin.config.data
    if data.spec is not None and data.spec.paths():
        data = dataclasses.replace(data, spec=None)
    results = dict(origin.results)
    if "data" in results:
        results["data"] = {key: value for key, value in results["data"].items() if key not in ("files", "skipped")}
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
    """Return the table of scores, what they were computed on, the paper's, and a warning about noise."""
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
    parts = [
        part for part in (config.to_dict()[name] for name in ("networks", "latent", "objective")) if "module" in part
    ]
    modules = dict.fromkeys(part["module"].removesuffix(".py") for part in parts)
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
