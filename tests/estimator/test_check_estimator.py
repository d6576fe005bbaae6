"""scikit-learn's own checks of estimators, and the tools of scikit-learn that use one."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import check_estimator

import qlae

#: Name of a check → why it is expected to fail. All pass.
EXPECTED_FAILURES: dict[str, str] = {}
#: Checks that scikit-learn runs only if the environment variable SCIPY_ARRAY_API is set.
SKIPPED = {"check_array_api_input"}


@pytest.mark.parametrize("output", ["latents", "codes"])
def test_scikit_learn_accepts_the_estimator(output):
    expected = dict(EXPECTED_FAILURES)
    if output == "codes":
        expected["check_transformer_preserve_dtypes"] = "codes are integers, whatever the type of the observations"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short trainings on tiny data may leave no latent that varies
        estimator = qlae.QLAE(steps=20, output=output)
        results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    names = {status: [] for status in ("passed", "failed", "xfail", "skipped")}
    for result in results:
        names[result["status"]].append(result["check_name"])
    assert names["failed"] == []
    assert names["xfail"] == list(expected)
    assert set(names["skipped"]) <= SKIPPED
    assert len(names["passed"]) > 35


@pytest.fixture(scope="module")
def digits():
    return train_test_split(*load_digits(return_X_y=True), random_state=0)


def test_codes_of_digits_classify_them(digits):
    train, test, train_labels, test_labels = digits
    estimator = qlae.QLAE(steps=500, random_state=0, output="codes")
    pipeline = make_pipeline(estimator, OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000))
    assert pipeline.fit(train, train_labels).score(test, test_labels) > 0.7
    assert 0.4 < pipeline[0].score(test) < pipeline[0].score(train) < 1


def test_grid_search_prefers_the_better_model(digits):
    search = GridSearchCV(qlae.QLAE(steps=150, random_state=0), {"num_latents": [1, 8]}, cv=2, error_score="raise")
    search.fit(digits[0][:400])
    assert search.best_params_ == {"num_latents": 8}
    assert search.best_estimator_.transform(digits[1]).shape == (len(digits[1]), 8)


def test_it_works_in_other_processes(digits):
    scores = cross_val_score(qlae.QLAE(steps=20, random_state=0), digits[0][:200], cv=2, n_jobs=2)
    alone = cross_val_score(qlae.QLAE(steps=20, random_state=0), digits[0][:200], cv=2)
    assert scores == pytest.approx(alone, abs=1e-4)


def test_clones_have_the_same_parameters_and_no_model(digits):
    estimator = qlae.QLAE(4, [2, 3, 4, 5], steps=10, random_state=3).fit(digits[0])
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    assert not hasattr(copy, "model_")
    assert np.array_equal(copy.fit(digits[0]).transform(digits[1]), estimator.transform(digits[1]))
    assert "num_latents=4" in repr(copy)
