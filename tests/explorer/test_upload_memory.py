"""A small picture file that unfolds to many pixels takes little memory of the running server."""

import contextlib
import io
import json
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

MAX_MEGABYTES = 1000
MAX_SECONDS = 300  # for an answer, on a busy machine
NUM_CALLERS = 3
SIDE = 8192


def grey_16_bits() -> Image.Image:
    return Image.fromarray(np.zeros((SIDE, SIDE), np.uint16))


PICTURES = {
    "16 bits": ("PNG", grey_16_bits),
    "rgba": ("PNG", lambda: Image.new("RGBA", (SIDE, SIDE), (255, 0, 0, 128))),
    "tiff": ("TIFF", grey_16_bits),
    "webp": ("WEBP", lambda: Image.new("RGB", (5016, 5016), (255, 0, 0))),
}


def encoded(kind) -> bytes:
    form, make = PICTURES[kind]
    file = io.BytesIO()
    make().save(file, form, **({"compression": "tiff_adobe_deflate"} if form == "TIFF" else {}))
    return file.getvalue()


@contextlib.contextmanager
def served(run):
    """Serve a run in a process of its own; yield the process and its address."""
    command = [sys.executable, "-m", "qlae", "explore", str(run), "--port", "0", "--no-browser"]
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
    return next(int(line.split()[1]) * 1024 // 10**6 for line in lines if line.startswith("VmHWM"))


def post(address, content):
    try:
        with urllib.request.urlopen(f"{address}/api/encode", content, timeout=MAX_SECONDS) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of a process from /proc")
def test_large_pictures_take_little_memory(run_path):
    """One kind after the other is posted to the same server, each by several callers at once."""
    with served(run_path) as (process, address):
        print(f"{peak_megabytes(process)} MB before")
        for kind in PICTURES:
            content = encoded(kind)
            assert len(content) < 2**20
            with ThreadPoolExecutor(NUM_CALLERS) as pool:
                answers = list(pool.map(lambda content: post(address, content), [content] * NUM_CALLERS))
            assert [status for status, _ in answers] == [200] * NUM_CALLERS
            peak = peak_megabytes(process)
            print(f"{kind}: {len(content):,} bytes, {peak} MB at the peak")
            assert peak < MAX_MEGABYTES, kind


READ_ORIGINALS = """
import pathlib, sys
from qlae.explorer.exploration import Originals
folder = pathlib.Path(sys.argv[1])
names = sorted(path.name for path in folder.iterdir())
for index, name in enumerate(names):
    print(name, len(Originals(folder, names).read(index)[0]))
lines = pathlib.Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) * 1024 // 10**6 for line in lines if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of a process from /proc")
def test_large_originals_take_little_memory(tmp_path):
    """The files of a data set are shown at up to 2,048 pixels per side."""
    for kind in PICTURES:
        (tmp_path / f"{kind}.{PICTURES[kind][0].lower()}").write_bytes(encoded(kind))
    command = [sys.executable, "-c", READ_ORIGINALS, str(tmp_path)]
    *sizes, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    print(sizes, peak)
    assert len(sizes) == len(PICTURES)
    assert int(peak) < 600
