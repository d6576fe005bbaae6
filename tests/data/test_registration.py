"""Data sets registered from outside the package."""

import json
import subprocess
import sys

import numpy as np
import pytest

from qlae.data import DATA, SourceDataset, data_config, data_names, load_data, load_from_config, register_dataset

MODULE = """
import numpy as np
from qlae.data import SourceDataset, register_dataset

def load_greys(resolution, num_images=5):
    greys = np.linspace(0, 255, num_images).astype(np.uint8)
    images = np.tile(greys[:, None, None, None], (1, resolution, resolution, 3))
    return SourceDataset(images, np.arange(num_images), name="anything", origin="rendered", source_names=["grey"])

register_dataset("greys", load_greys)
"""


def load_stripes(resolution, num_stripes=3, offset=0, seed=0):
    """Return images that each have one bright column; the seed shuffles them."""
    images = np.zeros((num_stripes, resolution, resolution, 3), np.uint8)
    order = np.random.default_rng(seed).permutation(num_stripes)
    for image, column in zip(images, order, strict=True):
        image[:, column + offset] = 200
    return SourceDataset(images, order, name="x", origin="rendered", source_names=["column"])


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module outside the package that registers the data set ``greys``."""
    (tmp_path / "my_greys.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "my_greys"
    sys.modules.pop("my_greys", None)


def through_json(spec):
    return DATA.from_dict(json.loads(json.dumps(DATA.to_dict(spec))), "data")


def test_a_registered_data_set_is_loaded_by_name_and_from_its_spec():
    register_dataset("stripes", load_stripes)
    assert "stripes" in data_names()
    data = load_data("stripes", resolution=8, num_stripes=6, offset=0, seed=4)
    assert (data.name, len(data), data.source_names) == ("stripes", 6, ("column",))
    assert data.spec.options == {"num_stripes": 6, "offset": 0}
    assert (data.spec.seed, data.spec.registered_by) == (4, __name__)
    again = through_json(data.spec).load()
    assert np.array_equal(again.images, data.images)
    assert np.array_equal(again.sources, data.sources)
    assert again.spec == data.spec
    assert not np.array_equal(load_data("stripes", resolution=8, num_stripes=6).sources, data.sources)


def test_noise_is_added_to_any_data_set():
    register_dataset("stripes", load_stripes)
    data = load_data("stripes", resolution=8, noise=0.1)
    assert not np.array_equal(np.asarray(data.images), load_data("stripes", resolution=8).images)
    assert np.array_equal(np.asarray(through_json(data.spec).load().images), np.asarray(data.images))


def test_options_of_load_data_reach_the_loader(tmp_path):
    calls = []

    def load(resolution, **options):
        calls.append(options)
        return load_stripes(resolution)

    register_dataset("stripes", load)
    data = load_data("stripes", resolution=8, path=tmp_path, continuous=["a"], size=0)
    through_json(data.spec).load()
    first, second = calls
    assert first == second == {"path": str(tmp_path), "continuous": ["a"], "size": 0, "seed": 0}


def test_the_config_of_a_run_names_the_module_to_import(module):
    __import__(module)
    data = load_data("greys", resolution=8, num_images=7)
    config = data_config(data)
    assert np.array_equal(load_from_config(config).images, data.images)
    code = (
        "from qlae.data import load_from_config\n"
        f"from qlae.config import DataConfig\nconfig = DataConfig.from_dict({config.to_dict()!r}, 'data')\n"
        "try: load_from_config(config)\nexcept ValueError as error: print(error)\n"
        "import my_greys\nprint(len(load_from_config(config)))"
    )
    path = [*sys.path, str(next(p for p in sys.path if p))]
    shown = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}\n{code}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert shown == [
        "the data set 'greys' is not registered: import the module my_greys first, which registers it "
        "(on the command line: --import my_greys)",
        "7",
    ]


def test_a_script_is_no_module_to_import():
    with pytest.raises(ValueError, match="script or a notebook"):
        DATA.from_dict({"kind": "registered", "name": "mine", "registered_by": "__main__"}, "data").load()


def test_unknown_names_list_the_registered_ones():
    register_dataset("stripes", load_stripes)
    with pytest.raises(ValueError, match=r"unknown data set 'stripe': did you mean \"stripes\"\? Known: .*, stripes"):
        load_data("stripe")
    with pytest.raises(ValueError, match=r"unknown data set 'zebra'.*and no imported module registers it"):
        load_data("zebra")
    with pytest.raises(ValueError, match="num_stripes does not apply to the rendered data set shapes3d"):
        load_data("shapes3d", num_stripes=3)


def test_a_registered_name_comes_before_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "a.npz", images=np.zeros((4, 16, 16, 3), np.uint8))
    load_data("stripes", path=tmp_path / "a.npz", resolution=16)
    assert len(load_data("stripes", resolution=16)) == 4
    (tmp_path / "stripes").mkdir()
    register_dataset("stripes", load_stripes)
    assert len(load_data("stripes", resolution=16)) == 3


@pytest.mark.parametrize("name", ["shapes3d", "dsprites", "", "a/b", "../x", "two words", None])
def test_names_that_cannot_be_registered(name):
    with pytest.raises(ValueError, match=r"is a built-in data set|must consist of letters, digits"):
        register_dataset(name, load_stripes)


def test_the_same_module_may_register_a_name_again(module):
    register_dataset("stripes", load_stripes)
    register_dataset("stripes", lambda resolution: load_stripes(resolution, num_stripes=2))
    assert len(load_data("stripes", resolution=8)) == 2
    register_dataset("greys", load_stripes)
    with pytest.raises(ValueError, match="'greys' is registered by the module test_registration already"):
        __import__(module)


@pytest.mark.parametrize(
    ("loader", "options", "message"),
    [
        (load_stripes, {"noise_level": 1}, "no option 'noise_level': its loader takes resolution, num_stripes, offset"),
        (load_stripes, {"num_images": 3}, "the data set 'bad' has no option 'num_images'"),
        (load_stripes, {"offset": np.arange(2)}, "options of a data set must be fit for JSON"),
        (lambda resolution: np.zeros(3), {}, "the loader of 'bad' must return a SourceDataset, got ndarray"),
        (lambda resolution: load_stripes(16), {}, r"returned images of 16×16 pixels for resolution=8"),
    ],
)
def test_loaders_and_options_that_do_not_fit(loader, options, message):
    register_dataset("bad", loader)
    with pytest.raises(ValueError, match=message):
        load_data("bad", resolution=8, **options)
