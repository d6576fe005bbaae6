"""Every test of data has a cache folder of its own."""

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("QLAE_CACHE", str(folder))
    return folder
