"""Which source each latent encodes, and which latents are active, according to the scores of a run."""

import numpy as np
import pytest

from qlae.explorer.controls import build_controls
from qlae.metrics import infomec
from qlae.models.latents import ContinuousLatent
from qlae.scoring.latent_labels import LatentLabels, find_active, find_encoded_sources, find_informative

SCORES = {"nmi": [[0.1, 0.0], [0.7, 0.0]], "informative_latents": [True, False]}


def test_a_latent_encodes_the_source_with_the_highest_nmi():
    assert find_encoded_sources(SCORES, 2) == [(1, 0.7), None]
    both = SCORES | {"informative_latents": [True, True]}
    assert find_encoded_sources(both, 2)[1] == (0, 0.0)


def test_uninformative_latents_are_marked_where_sources_are_known():
    codes = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert [control.informative for control in build_controls(ContinuousLatent(2), codes, SCORES)] == [True, False]
    assert [control.informative for control in build_controls(ContinuousLatent(2), codes, {})] == [True, True]
    assert find_informative({}, 3).all()


def test_without_sources_no_latent_has_a_name():
    assert find_encoded_sources({}, 2) == [None, None]
    labels = LatentLabels.from_results({"averaged": {}, "data": {"source_names": []}}, 2)
    assert labels.names == ["", ""]
    assert labels.active.all()


def test_pictures_and_explorer_label_latents_alike():
    names = ["hue", "shape"]
    controls = build_controls(ContinuousLatent(2), np.array([[0.0, 1.0], [1.0, 0.0]]), SCORES)
    labels = ["" if control.source is None else names[control.source] for control in controls]
    results = {"averaged": SCORES, "data": {"source_names": names}}
    assert LatentLabels.from_results(results, 2).names == labels == ["shape", ""]


def test_scores_decide_which_latents_are_active():
    assert find_active({"active_latents": [True, False]}, np.zeros((3, 2), int)).tolist() == [True, False]


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_without_sources_infomec_s_rule_decides(rng, dtype):
    latents = rng.random((60, 5))
    latents[:2] = [[0.0], [1.0]]  # so that the ranges below are exact
    latents = (latents * [0, 4, 6, 50, 100]).astype(dtype)  # a continuous latent is active from a range of 5
    scored = infomec(rng.integers(0, 3, (60, 2)), latents)
    active = find_active({}, latents)
    np.testing.assert_array_equal(active, scored.active)
    assert active.tolist() == [False, dtype is np.int64, True, True, True]


def test_a_single_image_has_no_active_latents():
    assert not find_active({}, np.ones((1, 3), np.float32)).any()
