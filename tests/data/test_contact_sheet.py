"""The contact sheet of a data set."""

import numpy as np
import pytest
from PIL import Image

from qlae.data import SourceDataset, load_data
from qlae.data.inspection import contact_sheet, sweep_rows


@pytest.mark.parametrize(
    "arguments",
    [{"sources": ["shape", "scale"]}, {"num_images": 30, "continuous": True}, {"num_images": 3}, {"noise": 0.1}],
)
def test_a_sheet_for_every_kind_of_data(tmp_path, arguments):
    data = load_data("shapes3d", resolution=16, **arguments)
    path = contact_sheet(data, tmp_path / "new" / "sheet.png")
    with Image.open(path) as image:
        strips = len(data.source_names) + (2 if len(data) > 10 else 1)
        assert image.size == (10 * (128 + 4) + 4, strips * (128 + 4 + 18) + 4)


def test_without_sources(tmp_path):
    data = SourceDataset(np.zeros((5, 16, 16, 3), np.uint8), np.zeros((5, 0)), name="mine", origin="real")
    with Image.open(contact_sheet(data, tmp_path / "sheet.png")) as image:
        assert image.size[1] == 128 + 4 + 18 + 4


def test_a_sweep_moves_one_source_and_no_other():
    data = load_data("mpi3d", resolution=16)
    for source, size in enumerate(data.source_sizes):
        rows, exact = sweep_rows(data, source, np.random.default_rng(0))
        assert exact
        assert len(rows) == min(size, 10)
        levels = data.sources[rows]
        assert levels[0, source] == 0
        assert levels[-1, source] == size - 1
        assert (np.diff(levels[:, source]) > 0).all()
        assert (np.delete(levels, source, axis=1) == np.delete(levels[0], source)).all()


def test_a_sweep_of_a_random_sample_is_in_order():
    data = load_data("shapes3d", resolution=16, num_images=500, continuous=True)
    rows, exact = sweep_rows(data, 3, np.random.default_rng(0))
    assert not exact
    assert (np.diff(data.sources[rows, 3]) > 0).all()
    assert data.sources[rows[0], 3] == data.sources[:, 3].min()
