"""The programs of docs/estimator.md run as they stand, but for the number of updates."""

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "estimator.md"


def test_programs_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(programs) == 3
    names: dict[str, object] = {}
    for program in programs:
        names["X"] = names.get("X_train")  # of the second program
        short = program.replace("random_state=0).fit", "steps=200, random_state=0).fit")
        exec(compile(short.replace("QLAE(random_state=0)", "QLAE(steps=200, random_state=0)"), "page", "exec"), names)
    share, shape, accuracy, scores = capsys.readouterr().out.splitlines()
    assert len(scores.split()) == 2  # training and held out
    assert float(share) > 0.2
    assert shape == "(450, 64)"
    assert float(accuracy) > 0.6
    assert np.array_equal(names["again"].transform(names["X_test"]), names["latents"])
