"""The support of each latent: how many runs of a consensus have one like it.

The model of a consensus has it in its config. For a run that was compared with others, it is read from the
``consensus.json`` in the folder of the runs, or in the folder ``consensus`` there.
"""

import contextlib
from pathlib import Path

from .._io import read_json
from ..registry import OBJECTIVES
from ..runs.directory import Run

PLACES = ("consensus/consensus.json", "consensus.json")  # relative to the folder of the runs


def find_support(run: Run, num_latents: int) -> list[str]:
    """Describe the support of each latent, such as "found in 4 of 5 runs"; empty where it is not known."""
    own: list[str] = OBJECTIVES.build(run.config.objective).describe_support(num_latents)
    if own:
        return own
    for place in PLACES:
        with contextlib.suppress(ValueError, OSError, KeyError, TypeError, AttributeError, IndexError):
            return _support_in(run.path.resolve().parent / place, run, num_latents)
    return [""] * num_latents


def _support_in(path: Path, run: Run, num_latents: int) -> list[str]:
    """Return the support of each latent of a run by a ``consensus.json``; raise an error if the run is not in it."""
    content = read_json(path)
    names = {Path(entry["run"]).name: entry["name"] for entry in content["runs"]}
    name, count = names[run.path.resolve().name], len(names)
    found, texts = [0] * num_latents, [""] * num_latents
    for factor in content["factors"]:
        counterpart, num_found = factor["counterparts"].get(name, {"found": False}), int(factor["num_found"])
        if counterpart["found"] and num_found > found[counterpart["latent"]]:
            verdict = "" if factor["status"] == "confirmed" else ", not confirmed"
            found[counterpart["latent"]] = num_found
            texts[counterpart["latent"]] = f"found in {num_found} of {count} runs{verdict}"
    return texts
