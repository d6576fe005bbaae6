"""Models on the Hugging Face Hub: ``hf://user/model`` stands for a folder there, and `push_model` writes one.

The hub holds exported folders (``export.py``): weights, a config, a model card and scores, without pickle or code.
``huggingface_hub`` (``pip install 'qlae[hub]'``) downloads them into its cache and finds the token of the user.
"""

import os
import re
import tempfile
from pathlib import Path
from typing import Any

from .._io import read_sealed

#: As typed, and as a ``Path`` makes it of that.
ADDRESS = re.compile(r"hf:/{1,2}(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
#: What is downloaded; other files of a repository are not needed.
FILES = ("config.json", "model.safetensors", "results.json", "sample.npz", "names.json")
REMEDY = "ask its author to push it again"


def is_hub_address(path: str | os.PathLike[str]) -> bool:
    """Return whether a path names a model on the hub."""
    return os.fspath(path).startswith("hf:/")


def download_model(path: str | os.PathLike[str]) -> Path:
    """Return the folder in the cache that holds a model of the hub, which is downloaded if it is not there.

    Args:
        path: such as ``"hf://user/model"``, or ``"hf://user/model@v1"`` for a branch, tag or commit.

    Raises:
        ValueError: if the address is wrong, there is no such model, or a file is missing or was altered.
    """
    repo, revision = _parse_address(os.fspath(path))
    hub = _require_hub()
    try:
        api = hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
        folder = Path(api.snapshot_download(repo, revision=revision, allow_patterns=list(FILES)))
    except Exception as error:  # of several libraries
        raise ValueError(f"hf://{repo} cannot be downloaded: {_reason(error)}") from None
    _require_intact(folder, repo)
    return folder


def push_model(
    run: str | os.PathLike[str], repo: str, *, private: bool = False, half: bool = False, num_samples: int = 0
) -> str:
    """Export the model of a run, write it to a repository of the hub, and return its address there.

    Args:
        run: the run directory.
        repo: such as ``"user/model"``; it is created if it does not exist.
        private: whether a new repository is private.
        half, num_samples: as for ``qlae.export``.

    Raises:
        ValueError: if the name is wrong, the run has no model, or the hub refuses.
    """
    from .export import export_run

    repo, revision = _parse_address(repo if is_hub_address(repo) else f"hf://{repo}")
    if revision is not None:
        raise ValueError(f"models are pushed to the main branch, so leave out @{revision}")
    hub = _require_hub()
    with tempfile.TemporaryDirectory(prefix="qlae-") as folder:
        files = export_run(run, Path(folder) / "model", half=half, num_samples=num_samples)
        try:
            api = hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
            api.create_repo(repo, private=private, exist_ok=True)
            api.upload_folder(repo_id=repo, folder_path=files[0].parent, commit_message="Upload a model with qlae")
        except Exception as error:  # of several libraries
            raise ValueError(f"hf://{repo} cannot be written: {_reason(error)}") from None
    return f"hf://{repo}"


def _parse_address(address: str) -> tuple[str, str | None]:
    """Return the repository and the revision of an address."""
    match = ADDRESS.fullmatch(address)
    if match is None:
        raise ValueError(f"a model on the hub is named hf://user/model, or hf://user/model@revision, got {address!r}")
    return match["repo"], match["revision"]


def _require_hub() -> Any:
    try:
        import huggingface_hub
    except ModuleNotFoundError:
        raise ValueError(
            "models on the hub need huggingface_hub, which is not installed: pip install 'qlae[hub]'"
        ) from None
    return huggingface_hub


def _reason(error: Exception) -> str:
    """Return the first line of an error, which the hub's library continues with advice for its own users."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def _require_intact(folder: Path, repo: str) -> None:
    """Raise an error unless the files that every export has are there with their checksums."""
    for name in FILES[:2]:
        if not (folder / name).is_file():
            raise ValueError(f"hf://{repo} is not a model of qlae: it has no {name}")
    read_sealed(folder / "config.json", remedy=REMEDY, required=True)
