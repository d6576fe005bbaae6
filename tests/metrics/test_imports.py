"""The metrics stand alone."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
import qlae.metrics
own = ("qlae.metrics", "qlae._extras", "qlae._version")
print([name for name in sys.modules if name == "torch" or (name.startswith("qlae.") and not name.startswith(own))])
"""


def test_importing_metrics_loads_neither_torch_nor_the_rest_of_the_package() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
