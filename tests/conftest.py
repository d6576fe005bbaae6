"""What every test needs: one thread per worker, Ctrl-C that arrives, and small data."""

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib
import numpy as np
import pytest

from qlae.data import SourceDataset, load_data

matplotlib.use("Agg")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in what a script starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as under nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items):
    """Mark the tests that drive a browser, so that `make test` can leave most of them to `make test-browser`."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Nothing is left in the user's cache, and nothing is found there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QLAE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def tiny_data() -> SourceDataset:
    """40 rendered images of 16×16: floor hue and shape."""
    return load_data("shapes3d", resolution=16, sources=["floor hue", "shape"]).in_memory()


@pytest.fixture
def own_registrations():
    """Whatever the test registers is removed after it."""
    from qlae.metrics import METRICS, unregister_metric
    from qlae.presets import MODELS
    from qlae.registry import LATENTS, NETWORKS, OBJECTIVES

    tables = {LATENTS: LATENTS.unregister, NETWORKS: NETWORKS.unregister, OBJECTIVES: OBJECTIVES.unregister}
    before = {table: set(table) for table in tables}
    models, metrics = set(MODELS), set(METRICS)
    yield
    for table, unregister in tables.items():
        for kind in set(table) - before[table]:
            unregister(kind)
    for name in set(MODELS) - models:
        del MODELS[name]
    for name in set(METRICS) - metrics:
        unregister_metric(name)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
