"""How often encoding a decoded code returns it."""

import numpy as np
import pytest

import qlae
from qlae.scoring.round_trip import measure_round_trip, recombine


class Echo:
    """A model whose second latent never returns from codes above 0."""

    def decode(self, codes, as_array):
        return codes

    def encode(self, codes):
        return codes * np.array([1, 0])


def test_shares_of_codes_that_return():
    codes = np.array([[1, 0], [2, 1], [3, 1], [0, 1]])
    shares = measure_round_trip(Echo(), codes)
    assert shares["num_rows"] == 4
    assert shares["data"] == {"latents": [1.0, 0.25], "mean": 0.625, "all": 0.25}
    assert shares["recombined"]["latents"][0] == 1.0


def test_recombined_codes_keep_the_marginals_and_nothing_else():
    column = np.repeat([0, 1, 1, 1], 500)
    drawn = recombine(np.column_stack([column, column]), 4000)
    assert drawn.mean(0) == pytest.approx([0.75, 0.75], abs=0.03)
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(0, abs=0.05)


def test_an_evaluation_reports_it_for_codes_alone(tmp_path, tiny_data):
    options = {"size": "small", "steps": 5, "batch_size": 8, "device": "cpu", "threads": 1, "show": False}
    run = qlae.train("qlae", tiny_data, out=tmp_path / "qlae", **options)
    shares = run.results["averaged"]["round_trip"]
    assert shares["num_rows"] == len(tiny_data)
    assert len(shares["data"]["latents"]) == len(shares["recombined"]["latents"]) == run.config.latent.num_latents
    assert "round_trip" not in run.results["raw"]
    assert qlae.rescore(run, show=False)["averaged"]["round_trip"] == shares
    assert "round_trip" not in qlae.train("ae", tiny_data, out=tmp_path / "ae", **options).results["averaged"]
