"""Fixtures of the tests of studies."""

import sys

import pytest

from qlae.presets import MODELS


@pytest.fixture
def own_presets(tmp_path):
    """Remove the presets that a test registers, and the modules that it imports from its temporary folder."""
    presets = dict(MODELS)
    yield
    MODELS.clear()
    MODELS.update(presets)
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
