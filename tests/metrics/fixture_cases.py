"""The fixture cases: arrays, and what the published implementations give for them (see fixtures/README.md)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "fixtures"
CASES: dict[str, Any] = json.loads((FOLDER / "cases.json").read_text())
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())

DISCRETE_SOURCES = [name for name, case in CASES.items() if case["sources"] == "discrete"]
CODES = [name for name in DISCRETE_SOURCES if CASES[name]["latents"] == "codes"]
CONTINUOUS = [name for name in DISCRETE_SOURCES if CASES[name]["latents"] == "continuous"]


@cache
def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Sources and latents as int64 or float64, as the references saw them."""
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        arrays = [file[key] for key in ("sources", "latents")]
    wide = [array.astype(np.int64 if array.dtype.kind == "i" else np.float64) for array in arrays]
    for array in wide:
        array.flags.writeable = False
    return wide[0], wide[1]


def expected(name: str, implementation: str, metric: str) -> Any:
    """The recorded value, or None if there is none."""
    return EXPECTED[name].get(implementation, {}).get(metric)


def bounds(value: Any) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest recorded value, as arrays."""
    if isinstance(value, dict):
        return np.array(value["min"], dtype=float), np.array(value["max"], dtype=float)
    return np.array(value, dtype=float), np.array(value, dtype=float)


def is_number(value: Any) -> bool:
    """Whether a number (or a spread of numbers) was recorded, rather than what went wrong."""
    if isinstance(value, dict):
        return not value.get("nan_runs") and is_number(value["mean"])
    return isinstance(value, int | float)
