"""The verdict on the latents of a run, from the consensus of runs."""

import numpy as np
import pytest
from selection_runs import disentangled, entangled, write_run

import qlae
from qlae.selection.verdict import SavedConsensus, SavedFactor, SavedRun, find_verdict, judge_run, verdict_lines


def judged(found_again, num_latents, *, others=4, status="confirmed"):
    runs = tuple(SavedRun(f"s{k}", f"runs/s{k}", found_again) for k in range(others + 1))
    return judge_run(SavedConsensus(runs, (SavedFactor(status, 2, {}),)), runs[1], num_latents)


@pytest.mark.parametrize(
    ("count", "status", "text"),
    [
        (4, "confirmed", "found again by all other runs"),
        (2, "confirmed", "found again by 2 of 4 other runs"),
        (1, "some", "found again by 1 of 4 other runs: do not rely on it"),
        (0, "none", "not found by any other run: do not name it"),
    ],
)
def test_a_latent_is_judged_by_the_runs_that_found_it(count, status, text):
    verdict = judged({"0": count}, 2)
    assert (verdict.latents[0].status, verdict.latents[0].text) == (status, text)
    assert verdict.latents[1].status == "unused"


def test_without_a_consensus_no_latent_is_confirmed():
    verdict = judged({"0": 4}, 1, status="some")
    assert verdict.latents[0].status == "none"
    assert "not enough to rely on it" in verdict.latents[0].text
    assert verdict.describe() == "These 5 runs found different things; do not name the latents."


def test_runs_that_found_the_sources_confirm_each_other(tmp_path):
    runs = [write_run(tmp_path / f"s{seed}", disentangled, seed) for seed in range(3)]
    qlae.consensus(runs, show=False).save(tmp_path / "consensus")
    verdict = find_verdict(runs[1], 3)
    assert verdict is not None
    assert {each.status for each in verdict.latents} == {"confirmed"}
    assert {each.found_again for each in verdict.latents} == {2}
    assert verdict.describe().startswith("Each latent in use was found again")
    assert verdict_lines(verdict)[0].endswith("found again by all other runs")


def test_runs_that_mix_the_sources_confirm_nothing(tmp_path):
    runs = [write_run(tmp_path / f"s{seed}", entangled, seed) for seed in range(3)]
    found = qlae.consensus(runs, show=False)
    found.save(tmp_path)
    verdict = find_verdict(runs[0], 3)
    assert verdict is not None
    assert not verdict.confirmed
    assert not found.confirmed


def test_a_latent_counts_although_the_code_takes_another_like_it():
    random = np.random.default_rng(0)
    sources = random.integers(4, size=(2000, 2))
    twice = sources[:, [0, 0, 1]]
    twice = np.where(random.random(twice.shape) < 0.02, 3 - twice, twice)
    found = qlae.consensus([twice, sources, 3 - sources])
    assert found.found.found_again[0] == {0: 2, 1: 2, 2: 2}


def test_a_run_that_was_never_compared_has_no_verdict(tmp_path):
    assert find_verdict(write_run(tmp_path / "s0", disentangled, 0), 3) is None
