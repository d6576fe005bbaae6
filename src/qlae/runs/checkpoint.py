"""Checkpoints: tensors in safetensors, everything else in JSON, complete and exact.

A checkpoint is a pair, ``checkpoint.safetensors`` and ``checkpoint.json``; the pair before it stays as
``previous.safetensors`` and ``previous.json``. The JSON carries the SHA-256 of its tensors and of itself, so a
truncated or altered file is detected. A pair is matched by checksum, not by file name: at whatever instant a process
is killed between the four renames of ``save``, one of the JSON files still finds its tensors.
"""

import contextlib
import hashlib
import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from .._io import read_regular, read_sealed, seal, sync_folder, write_bytes, write_json
from .._parsing import Count, parse

NAMES = ("checkpoint", "previous")
FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint: tensors by dotted name, and plain data such as the number of updates (``step``)."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; the one that it replaces becomes ``previous``."""
    content = safetensors.torch.save({name: tensor.contiguous() for name, tensor in checkpoint.tensors.items()})
    manifest = seal({"format": FORMAT, "tensors_sha256": _sha256(content), "state": checkpoint.state})
    new_tensors, new_manifest = directory / "next.safetensors", directory / "next.json"
    try:
        write_bytes(new_tensors, content)
        write_json(new_manifest, manifest)
    except OSError:
        new_tensors.unlink(missing_ok=True)
        raise
    for suffix in (".safetensors", ".json"):
        if (directory / f"checkpoint{suffix}").exists():
            os.replace(directory / f"checkpoint{suffix}", directory / f"previous{suffix}")
    os.replace(new_tensors, directory / "checkpoint.safetensors")
    os.replace(new_manifest, directory / "checkpoint.json")
    sync_folder(directory)


def load(directory: Path) -> Checkpoint | None:
    """Return the newest checkpoint that is intact, or ``None`` if there is none at all.

    A damaged checkpoint causes a warning that names the checkpoint used instead.

    Raises:
        ValueError: if there are checkpoints and none is intact.
    """
    present = [path for path in (directory / f"{name}.json" for name in NAMES) if path.exists()]
    manifests = {path.name: manifest for path in present if (manifest := _read_manifest(path))}
    damaged = [path.name for path in present if path.name not in manifests]
    for name, manifest in sorted(manifests.items(), key=lambda item: -int(item[1]["state"]["step"])):
        tensors = _find_tensors(directory, manifest["tensors_sha256"])
        if tensors is None:
            damaged.append(name.replace(".json", ".safetensors"))
            continue
        if damaged:
            warnings.warn(
                f"{directory}: {' and '.join(damaged)} is damaged or incomplete; "
                f"resuming from the checkpoint of update {manifest['state']['step']}",
                stacklevel=2,
            )
        return Checkpoint(tensors, manifest["state"])
    if present:
        raise ValueError(
            f"{directory}: no checkpoint is intact ({', '.join(damaged)} damaged); "
            "restore one from a copy, or start again in another folder"
        )
    return None


@dataclass(frozen=True)
class _State:
    """What a model is loaded, and a training is resumed, from; the trainer adds entries."""

    step: Count
    window_filled: dict[str, Count] = field(default_factory=dict)
    threads: Count = 1
    seconds: float = 0.0


@dataclass(frozen=True)
class _Manifest:
    """The content of ``checkpoint.json``."""

    tensors_sha256: str
    state: _State


def _read_manifest(path: Path) -> dict[str, Any] | None:
    """Return the content of ``checkpoint.json``, or None if it is damaged."""
    try:
        manifest = read_sealed(path, required=True)
        parse(manifest, _Manifest, "", allow_unknown=True)
    except (OSError, ValueError):
        return None
    return manifest


def _find_tensors(directory: Path, sha256: str) -> dict[str, Tensor] | None:
    for path in (directory / f"{name}.safetensors" for name in NAMES):
        with contextlib.suppress(ValueError):  # a pipe or a device, which is damage like any other
            if path.exists() and _sha256(content := read_regular(path)) == sha256:
                return dict(safetensors.torch.load(content))
    return None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
