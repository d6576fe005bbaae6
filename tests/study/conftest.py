"""Fixtures of the tests of studies."""

import shutil
import sys

import pytest
from study_fixtures import write_study

from qlae.presets import MODELS
from qlae.study import StudyFolder


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A finished study whose numbers are known in advance; tests that change it work on a copy."""
    return write_study(tmp_path_factory.mktemp("study") / "study")


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


@pytest.fixture
def copy_of(tmp_path):
    """A function that copies a study, so that a test may change it."""

    def copy(folder):
        return StudyFolder(shutil.copytree(folder.path, tmp_path / "copy"))

    return copy
