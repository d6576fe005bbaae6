"""Fixtures of the explorer tests: small trained runs, an API client, a server, and a browser if one is installed."""

import csv
import shutil
import threading
import time

import numpy as np
import pytest
from chromium import find_chromium
from explored_data import PHOTOS, flowers, waves
from PIL import Image
from starlette.testclient import TestClient

from qlae.data import load_data
from qlae.explorer import Exploration, open_run
from qlae.explorer.serve import bind
from qlae.explorer.server import build_app
from qlae.pipeline import train

CHROMIUM = find_chromium()
OPTIONS = {"size": "small", "batch_size": 8, "device": "cpu", "show": False}


@pytest.fixture(scope="session")
def run_path(tmp_path_factory, tiny_data):
    """A QLAE on 40 images of 16×16, trained long enough to use its codes."""
    path = tmp_path_factory.mktemp("explorer") / "run"
    train("qlae", tiny_data, out=path, steps=300, num_values=5, **OPTIONS)
    return path


@pytest.fixture
def run_copy(run_path, tmp_path):
    """A copy of that run, to write names into."""
    return shutil.copytree(run_path, tmp_path / "run")


@pytest.fixture(scope="session")
def folder_path(tmp_path_factory):
    """A run on a folder of pictures, without sources."""
    folder = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    (folder / "pictures").mkdir()
    for i in range(24):
        pixels = np.full((20, 20, 3), rng.integers(0, 256, 3), np.uint8)
        Image.fromarray(pixels).save(folder / "pictures" / f"{i:02d}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QLAE_CACHE", str(folder / "cache"))
        data = load_data(folder / "pictures", resolution=16)
        train("ae", data, out=folder / "run", steps=20, num_latents=4, **OPTIONS)
    return folder / "run"


@pytest.fixture(scope="session")
def table_path(tmp_path_factory):
    """A run on a table of four features and a source."""
    folder = tmp_path_factory.mktemp("table")
    lines = [[*row, "abc"[i % 3]] for i, row in enumerate(flowers().tolist())]
    with (folder / "flowers.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["width, cm", "height", "area <b>", "constant", "species"], *lines])
    data = load_data(folder / "flowers.csv", source_columns=["species"])
    train("qlae", data, out=folder / "run", steps=200, num_latents=3, num_values=5, **OPTIONS)
    return folder / "run"


@pytest.fixture(scope="session")
def series_path(tmp_path_factory):
    """A run on series of two channels, without sources."""
    folder = tmp_path_factory.mktemp("series")
    np.savez(folder / "waves.npz", x=waves(), feature_names=["position", "level"])
    train("qlae", load_data(folder / "waves.npz"), out=folder / "run", steps=60, num_latents=3, num_values=4, **OPTIONS)
    return folder / "run"


@pytest.fixture(scope="session")
def vectors(table_path) -> Exploration:
    return open_run(table_path, show=False)


@pytest.fixture(scope="session")
def series(series_path) -> Exploration:
    return open_run(series_path, show=False)


@pytest.fixture(scope="session")
def photos_path(tmp_path_factory):
    """A run on a folder of photographs of several sizes, and a second run on the same."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for name, size in PHOTOS.items():
        path = folder / "album" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        colour = tuple(rng.integers(0, 256, 3).tolist())
        Image.new("RGB", size, colour).save(path)
    (folder / "album" / "secret.txt").write_text("not an image")
    data = load_data(folder / "album", resolution=16)
    for seed, name in enumerate(("run", "other")):
        train("qlae", data, out=folder / name, steps=20, num_latents=3, num_values=3, seed=seed, **OPTIONS)
    return folder / "run"


@pytest.fixture(scope="session")
def photos(photos_path) -> Exploration:
    return open_run(photos_path, show=False)


@pytest.fixture(scope="session")
def exploration(run_path) -> Exploration:
    return open_run(run_path, show=False)


@pytest.fixture(scope="session")
def client():
    """Return a function that opens a client for an exploration, with the address that the page would use."""

    def connect(exploration: Exploration) -> TestClient:
        return TestClient(build_app(exploration), base_url="http://127.0.0.1:8642", raise_server_exceptions=False)

    return connect


@pytest.fixture(scope="session")
def api(exploration, client) -> TestClient:
    return client(exploration)


class ThreadedServer:
    """A real server of one run or two, in a thread."""

    def __init__(self, exploration: Exploration, beside: Exploration | None = None):
        import uvicorn

        bound = bind(0)
        self.address = f"http://127.0.0.1:{bound.getsockname()[1]}/"
        self.server = uvicorn.Server(uvicorn.Config(build_app(exploration, beside), log_level="warning"))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [bound]}, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()


@pytest.fixture(scope="session")
def serve():
    """Return a function that serves an exploration until the session ends and returns its address."""
    running = {}

    def start(exploration: Exploration, beside: Exploration | None = None) -> str:
        if (exploration, beside) not in running:
            running[exploration, beside] = ThreadedServer(exploration, beside)
        return running[exploration, beside].address

    yield start
    for server in running.values():
        server.stop()


@pytest.fixture(scope="session")
def browser():
    """The installed Chromium, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="browser tests left out: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("browser tests left out: no Chromium found (on Debian, as root: make chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Return a function that opens an address; console errors, page errors and foreign requests fail the test."""
    contexts, problems = [], []

    def open_address(address: str, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: problems.append(message.text) if _is_problem(message) else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: None if _is_own(request.url, address) else problems.append(request.url))
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_address
    for context in contexts:
        context.close()
    assert not problems


def _is_problem(message) -> bool:
    from_tests = message.text.startswith("Canvas2D: Multiple readback")  # the tests read pixels, the page does not
    return message.type in ("error", "warning") and not from_tests


def _is_own(url: str, address: str) -> bool:
    return url.startswith((address.partition("#")[0].rpartition("/")[0], "data:", "blob:"))
