"""The metrics and `qlae score` work where torch is not installed, and everything else says what to install."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from qlae.metrics import score

BLOCK = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "safetensors", "h5py"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process in which torch cannot be imported."""
    command = [sys.executable, "-c", BLOCK + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def cli(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run("from qlae.cli import main; main()", *map(str, arguments))


@pytest.fixture(scope="module")
def sample() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    sources = rng.integers(0, 4, (400, 2))
    return sources, np.column_stack([sources[:, 1], (sources[:, 0] + (rng.random(400) < 0.2)) % 4, sources[:, 0]])


def test_all_metrics_equal_those_computed_with_torch_installed(sample: tuple[np.ndarray, np.ndarray]) -> None:
    sources, codes = sample
    code = """
import json, warnings, numpy as np
warnings.simplefilter("ignore")
import qlae, qlae.metrics
sources, codes = (np.array(json.loads(x)) for x in sys.argv[1:])
few = {"dci": {"num_trees": 5}}
print(json.dumps(dict(qlae.metrics.score(sources, codes, metrics="all", metric_options=few).values)))
"""
    done = run(code, json.dumps(sources.tolist()), json.dumps(codes.tolist()))
    assert done.returncode == 0, done.stderr
    expected = score(sources, codes, metrics="all", metric_options={"dci": {"num_trees": 5}}).values
    assert json.loads(done.stdout) == pytest.approx(dict(expected), abs=1e-12)


def test_importing_metrics_loads_neither_slow_packages_nor_the_rest_of_qlae() -> None:
    code = "import sys, qlae, qlae.metrics; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {
        "torch",
        "pandas",
        "sklearn",
        "scipy",
        "matplotlib",
        "joblib",
        "threadpoolctl",
        "rich",
        "numba",
    }
    rest = {name for name in loaded if name.startswith("qlae.")} - {"qlae._imports", "qlae._version"}
    assert all(name.startswith("qlae.metrics") for name in rest), rest


@pytest.mark.parametrize("name", ["train", "load", "evaluate", "models", "QuantizedLatent", "QLAE"])
def test_what_needs_torch_names_what_to_install(name: str) -> None:
    done = run(f"import qlae; qlae.{name}")
    last = done.stderr.splitlines()[-1]
    assert re.search(rf"qlae\.{name} needs (torch|safetensors|h5py)\b", last), last  # whichever is imported first
    assert "pip install 'qlae[train]'" in last


@pytest.mark.parametrize(("command", "extra"), [("train", "train"), ("explore", "explorer")])
def test_commands_that_need_torch_say_so_in_one_line(command: str, extra: str) -> None:
    done = cli(command, "qlae")
    assert done.returncode == 2
    installed = "only the metrics of qlae are installed"
    assert done.stderr == f"qlae: qlae {command} needs torch, and {installed}: pip install 'qlae[{extra}]'\n"


def test_score_reads_npz_csv_and_two_files_without_torch(sample: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    sources, codes = sample
    np.savez(tmp_path / "a.npz", sources=sources, latents=codes)
    np.save(tmp_path / "sources.npy", sources)
    np.save(tmp_path / "latents.npy", codes)
    header = "image,source_a,source_b,z0,z1,z2"
    rows = [",".join(map(str, (i, *s, *z))) for i, (s, z) in enumerate(zip(sources, codes, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join([header, *rows]))
    results = [
        cli("score", tmp_path / "a.npz", "--json"),
        cli("score", tmp_path / "sources.npy", tmp_path / "latents.npy", "--json"),
        cli("score", tmp_path / "t.csv", "--json"),
    ]
    assert all(done.returncode == 0 for done in results), [done.stderr for done in results]
    expected = score(sources, codes)["infoe_corrected"]
    for done in results:
        assert json.loads(done.stdout)["infomec"]["infoe_corrected"] == pytest.approx(expected, abs=1e-12)
