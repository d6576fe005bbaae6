"""The figures in results/README.md that are computed from the committed runs of the paper's experiment."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool():
    return runpy.run_path(str(ROOT / "tools" / "paper_claims.py"))


def test_the_page_has_the_figures_of_the_committed_runs(tool):
    text = tool["content"](tool["Claims"](tool["RESULTS"] / "paper-small"))
    assert text in tool["README"].read_text(), "run `python tools/paper_claims.py`"


def test_verdicts_count_data_sets(tool):
    say = tool["say"]
    assert say([True, True, None]) == "Holds"
    assert say([True, False, False]) == "Holds on 1 of 3 data sets"
    assert (say([False]), say([None])) == ("Does not hold", "Open")
