"""A small picture file that unfolds to many pixels takes little memory of the running server."""

import contextlib
import io
import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

MAX_MEGABYTES = 1000
MAX_SECONDS = 60
SIDE = 8192


def grey_16_bits() -> Image.Image:
    return Image.fromarray(np.zeros((SIDE, SIDE), np.uint16))


PICTURES = {
    "16 bits": ("PNG", grey_16_bits),
    "rgba": ("PNG", lambda: Image.new("RGBA", (SIDE, SIDE), (255, 0, 0, 128))),
    "tiff": ("TIFF", grey_16_bits),
    "webp": ("WEBP", lambda: Image.new("RGB", (5790, 5790), (255, 0, 0))),
}


@contextlib.contextmanager
def served(run):
    """Serve a run in a process of its own; yield the process and its address."""
    command = [sys.executable, "-m", "qlae.cli", "explore", str(run), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().split(" at ")[1].split()[0]
        finally:
            process.send_signal(2)
            process.communicate(timeout=60)


def peak_megabytes(process) -> int:
    """Return the most memory that a process has had, with everything it has loaded."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def post(address, content):
    try:
        with urllib.request.urlopen(f"{address}/api/encode", content, timeout=MAX_SECONDS) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of a process from /proc")
@pytest.mark.parametrize("kind", PICTURES)
def test_a_large_picture_takes_little_memory(run_path, kind):
    form, make = PICTURES[kind]
    file = io.BytesIO()
    make().save(file, form, **({"compression": "tiff_adobe_deflate"} if form == "TIFF" else {}))
    assert len(file.getvalue()) < 2**20
    with served(run_path) as (process, address):
        before = peak_megabytes(process)
        statuses = []
        callers = [threading.Thread(target=lambda: statuses.append(post(address, file.getvalue()))) for _ in range(3)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        after = peak_megabytes(process)
    print(f"{kind}: {len(file.getvalue()):,} bytes, {before} MB before, {after} MB at the peak")
    assert [status for status, _ in statuses] == [200] * 3
    assert after < MAX_MEGABYTES
