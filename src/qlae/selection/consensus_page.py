"""The files of a consensus: consensus.json, the codes of the sample, a picture, and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .._io import write_json, write_npz

if TYPE_CHECKING:
    from .consensus import Consensus

JSON_FILE, CODES_FILE = "consensus.json", "codes.npz"


def write_consensus(consensus: Consensus, folder: Path, *, show: bool = False) -> list[Path]:
    """Write the files of a consensus; see `Consensus.save`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / JSON_FILE, folder / CODES_FILE]
    write_json(paths[0], consensus.to_dict())
    arrays = {"codes": consensus.codes}
    if consensus.latents is not None:
        arrays["latents"] = consensus.latents
    if consensus.runs:
        arrays["indices"] = consensus.indices
    write_npz(paths[1], **arrays)
    return paths
