"""A folder to share: ``config.json``, ``model.safetensors`` and a model card, as on model hubs.

Unlike a run directory it holds one set of weights and nothing that only training needs. It contains no pickle and no
code: loading it executes nothing.
"""

import dataclasses
import html
import json
import re
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
        """Write the model with these tensors to a folder; see ``write_pretrained``."""
        write_pretrained(folder, self, tensors, half=half)


def is_pretrained(folder: Path) -> bool:
    """Return whether a folder was written by ``write_pretrained``, rather than being a run directory."""
    return (folder / WEIGHTS_FILE).is_file() and not (folder / "checkpoint.json").exists()


def write_pretrained(folder: Path, origin: Origin, tensors: dict[str, Tensor], *, half: bool = False) -> None:
    """Write the folder; the weights come last, so that a folder that has them is complete.

    Args:
        folder: new, empty, or written by this function before; then its old files are removed.
        origin: where the weights come from.
        tensors: all tensors of the model.
        half: store those of the networks in half precision. Codebooks stay exact.
    """
    _require_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in (WEIGHTS_FILE, RESULTS, SAMPLE, ENCODER, DECODER):
        (folder / name).unlink(missing_ok=True)
    origin = _without_paths(origin)
    write_json(folder / "config.json", origin.config.to_dict())
    if origin.results:
        write_json(folder / RESULTS, origin.results)
    write_bytes(folder / CARD, model_card(origin).encode())
    metadata = {"format": "pt", "weights": origin.weights, "qlae": __version__}
    cpu_tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    if half:
        cpu_tensors = {
            name: tensor.half() if name.startswith(("encoder.", "decoder.")) and tensor.is_floating_point() else tensor
            for name, tensor in cpu_tensors.items()
        }
    write_bytes(folder / WEIGHTS_FILE, safetensors.torch.save(cpu_tensors, metadata))


def read_pretrained(folder: Path) -> tuple[Origin, dict[str, Tensor]]:
    """Return what ``write_pretrained`` wrote; raise an error that names a missing or damaged file."""
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


def pack_tensors(tensors: dict[str, Tensor]) -> bytes:
    """Return tensors as the bytes of a safetensors file."""
    return bytes(safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}))


def unpack_tensors(content: bytes) -> dict[str, Tensor]:
    """Return the tensors that ``pack_tensors`` packed."""
    try:
        return safetensors.torch.load(content)
    except safetensors.SafetensorError as error:
        raise ValueError(f"the weights of the model cannot be read ({error}); restore them from a copy") from None


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
    """Return whether ``write_pretrained`` wrote the weights in a folder, according to their metadata."""
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
    data, latent, training = config.data, config.latent, config.training
    scores, kind = results.get(origin.weights, {}), data.observations.traits
    rows = [(find_score(key).heading, key, scores[key]) for key in CARD_SCORES if key in scores]
    model, name = _as_markdown(config.model), _as_markdown(data.name)
    lines = [
        *_front_matter(origin, rows),
        f"# {model} on {name}",
        "",
        f"A **{model}** trained with [qlae](https://arxiv.org/abs/2305.18378) on {name} ({data.origin}, "
        f"{data.observations.size}, {data.num_images:,} {kind.many}). It turns {kind.with_article} into "
        f"{latent.num_latents} latents ({latent.description}) and back.",
        "",
        *_score_lines(origin, rows),
        "## Use",
        "",
        "```python",
        *_import_lines(config),
        "",
        *_use_lines(origin),
        "```",
        "",
        "## Training",
        "",
        f"{results.get('steps', training.steps):,} updates of {training.batch_size} {kind.many}, weight decay "
        f"{training.optimizer.weight_decay:g}, seed {training.seed}, {_describe_networks(config.networks)}; "
        f"{origin.weights} weights. Everything else is in `config.json`.",
        "",
    ]
    return "\n".join(lines)


def _as_markdown(text: str) -> str:
    """Return text on one line in which nothing has a meaning in Markdown or HTML.

    >>> _as_markdown("qlae-2 <b>")
    'qlae-2 &lt;b&gt;'
    """
    line = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\`*_{}\[\]#|!$])", r"\\\1", line)


def _front_matter(origin: Origin, rows: list[tuple[str, str, float]]) -> list[str]:
    """Return YAML for hubs; every value is JSON, which is YAML too."""
    config = origin.config
    lines = ["---", "library_name: qlae", 'tags: ["disentanglement", "representation-learning", "latent-quantization"]']
    if rows:
        name = json.dumps(f"{config.model} on {config.data.name}")
        metrics = [{"type": key, "name": label, "value": round(value, 4)} for label, key, value in rows]
        task = {"type": "feature-extraction"}
        entry = {"task": task, "dataset": {"name": config.data.name, "type": config.data.name}, "metrics": metrics}
        lines += ["model-index:", f"- name: {name}", f"  results: {json.dumps([entry], ensure_ascii=False)}"]
    return [*lines, "---", ""]


def _import_lines(config: RunConfig) -> list[str]:
    """Return the imports that loading needs: qlae, and the modules that register parts from outside the package."""
    parts = config.to_dict()
    modules = dict.fromkeys(
        parts[part]["module"] for part in ("networks", "latent", "objective") if "module" in parts[part]
    )
    names = [module.removesuffix(".py") for module in modules]
    return [
        *(f"import {name}  # registers parts of this model" for name in names if name.replace(".", "_").isidentifier()),
        "import qlae",
    ]


def _describe_networks(config: Any) -> str:
    if config.own:
        return f"with its maker's own {' and '.join(config.own)}"
    entry = NETWORKS.entry_of(config)
    if not entry.is_ours:
        return f"networks `{entry.kind}` of the module `{entry.module}`"
    if entry.kind != "paper":
        return f"{config.size} networks `{entry.kind}`"
    return f"{config.size} networks of the {config.form} form"


def _score_lines(origin: Origin, rows: list[tuple[str, str, float]]) -> list[str]:
    if not rows:
        return ["## Scores", "", "It was not scored.", ""]
    count = count_informative(origin.results[origin.weights])
    sample = f"{origin.results['num_samples']:,} samples"
    if any(key == "infom" for _, key, _ in rows):
        sample += f", InfoMEC protocol {origin.results['protocol']}"
    return [
        *("## Scores", ""),
        "| " + " | ".join(label for label, _, _ in rows) + " |",
        "|" + "---|" * len(rows),
        "| " + " | ".join(find_score(key).format(value) for _, key, value in rows) + " |",
        *("", f"On {sample}.{_published_sentence(origin)}", ""),
        *([count.warning, ""] if count is not None and count.warning else []),
    ]


def _published_sentence(origin: Origin) -> str:
    """Return the paper's scores of the same model and data set as a sentence; empty if there are none."""
    config = origin.config
    table = published_results()
    cells = {key: table.get((config.data.name, config.model, key)) for key in ("infom", "infoc", "psnr")}
    texts = [f"{find_score(key).heading} {cell.mean:g}" for key, cell in cells.items() if cell]
    if not texts:
        return ""
    return f" The paper reports {', '.join(texts)} for full-size networks on the published images at 64×64."


def _use_lines(origin: Origin) -> list[str]:
    config = origin.config
    roles = ", ".join(role if role in config.networks.own else "None" for role in ("encoder", "decoder"))
    own = f", networks=({roles})" if config.networks.own else ""
    raw = ', weights="raw"' if origin.weights == "raw" else ""
    load_line = f'model = qlae.load("path/to/this/folder"{raw}{own})'
    observed, size = config.data.observations, config.latent.num_latents
    arrays = observed.traits.many
    shape = f"{arrays} {observed.with_sample_axis()}"
    if config.latent.has_codes:
        encode_line = f"codes = model.encode({arrays})  # {shape} → (n, {size}) integers"
        return [load_line, encode_line, f"{arrays} = model.decode(codes)"]
    return [
        load_line,
        f"latents = model.latents({arrays})  # {shape} → (n, {size}) floats",
        f"{arrays} = model.decode(latents)",
    ]
