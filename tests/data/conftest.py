"""Every test of data has its own cache folder and its own registrations."""

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("QLAE_CACHE", str(folder))
    return folder


@pytest.fixture(autouse=True)
def _no_registrations(monkeypatch):
    monkeypatch.setattr("qlae.data.loading._REGISTRATIONS", {})
