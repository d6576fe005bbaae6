"""The support of latents by the runs of a consensus, as the explorer shows it."""

import pytest

import qlae
from qlae.explorer import open_run
from qlae.explorer.support import find_support
from qlae.objectives.imitation import Imitated, Imitation, ImitationConfig
from qlae.runs.directory import Run

OPTIONS = {"size": "small", "steps": 40, "batch_size": 8, "device": "cpu", "threads": 1, "show": False}


@pytest.fixture(scope="module")
def runs(tmp_path_factory, tiny_data):
    folder = tmp_path_factory.mktemp("runs")
    return [qlae.train("qlae", tiny_data, out=folder / f"s{seed}", seed=seed, **OPTIONS) for seed in range(2)]


@pytest.mark.parametrize("place", [".", "consensus"])
def test_latents_of_a_consensus_show_in_how_many_runs_they_were_found(runs, place):
    found = qlae.consensus(runs, show=False)
    assert found.factors
    paths = found.save(runs[0].path.parent / place)
    exploration = open_run(runs[0].path, show=False)
    shown = [latent["support"] for latent in exploration.describe()["latents"]]
    for factor in found.factors:
        if factor.found[0]:
            assert shown[factor.counterparts[0]].startswith("found in ")
    known = {factor.counterparts[0] for factor in found.factors if factor.found[0]}
    assert {j for j, text in enumerate(shown) if text} == known
    whole = paths[0].read_text()
    for damaged in ("{}", whole[:-9], whole.replace('"found": true', '"found": 1')):
        paths[0].write_text(damaged)
        with pytest.warns(UserWarning, match=r"is not shown, because .*consensus.json cannot be read"):
            assert find_support(runs[0], len(shown)) == [""] * len(shown)
    for path in paths:
        path.unlink()


def test_a_run_without_a_consensus_shows_nothing(runs):
    assert find_support(Run(runs[1].path), 3) == ["", "", ""]


def test_the_model_of_a_consensus_knows_its_support():
    imitated = (Imitated("s1", 4, 5, 5, True), Imitated("s0", 2, 2, 5, False))
    objective = Imitation(ImitationConfig(weights={"reconstruct": 1.0, "imitate": 1.0}, imitated=imitated))
    assert objective.describe_support(3) == [
        *("found in 5 of 5 runs", "found in 2 of 5 runs, not confirmed", "free, not confirmed")
    ]
