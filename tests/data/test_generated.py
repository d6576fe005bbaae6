"""The generated data sets: their laws, their sources, and how they are loaded by name."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import qlae
from qlae.data import data_config, data_names, load_data, load_from_config, register_dataset
from qlae.data.generated import GENERATED, LEAK, MIXTURES, NUM_STEPS, PENDULUM, SENSORS, STEP, mixing_matrices
from qlae.data.sources import GENERATED_SETS

#: The first entries of each set. The values are rounded, so they are the same on every machine.
FIRST = {
    "mixtures": [-0.0068301, -0.0001481, 0.018158],
    "pendulum": [0.261799, -2.25, -0.065626],
    "sensors": [2798.179, 36.5284, -0.08388],
}


@pytest.fixture(scope="module", params=GENERATED_SETS)
def data(request):
    return load_data(request.param)


def test_rows_are_described(data):
    generated = GENERATED[data.name]
    assert data.name in data_names()
    assert data.origin == "generated"
    assert data.observations.kind == generated.kind
    assert data.observations.feature_names == generated.feature_names
    assert data.source_names == tuple(quantity.name for quantity in generated.quantities)
    assert data.images.dtype == np.float32
    assert np.isfinite(data.images).all()
    assert (np.asarray(data.observations.scale) > 0).all()
    for quantity, column in zip(generated.quantities, data.sources.T, strict=True):
        if quantity.name in generated.continuous:
            assert column.min() >= quantity.low
            assert column.max() <= quantity.high
            assert np.ptp(column) > 0.99 * (quantity.high - quantity.low)
        else:
            assert np.array_equal(np.unique(column), np.arange(quantity.num_levels))


def test_the_same_rows_every_time_and_everywhere(data):
    again = load_data(data.name)
    assert np.array_equal(again.images, data.images)
    assert np.array_equal(again.sources, data.sources)
    np.testing.assert_allclose(data.images.reshape(-1)[:3], FIRST[data.name], rtol=2e-6)
    code = (
        f"import hashlib, qlae; data = qlae.load_data({data.name!r}); "
        "print(hashlib.sha256(data.images.tobytes()).hexdigest())"
    )
    other = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3"}  # a processor of 2004
    digest = hashlib.sha256(data.images.tobytes()).hexdigest()
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | other, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest


def test_sources_are_independent(data):
    correlation = np.corrcoef(data.sources.T.astype(float)) - np.eye(len(data.source_names))
    assert np.abs(correlation).max() < 0.03


def test_a_run_finds_its_rows_again(data):
    drawn = load_data(data.name, num_images=50, seed=4)
    assert len(drawn) == 50
    assert not np.array_equal(drawn.images, load_data(data.name, num_images=50).images)
    for one in (data, drawn):
        again = load_from_config(data_config(one))
        assert np.array_equal(again.images, one.images)
        assert np.array_equal(again.sources, one.sources)
        assert again.spec == one.spec
    assert np.array_equal(drawn.spec.load().images, drawn.images)


def test_other_seeds_give_other_rows_of_the_same_law():
    first, second = (load_data("sensors", seed=seed) for seed in (0, 1))
    assert second.spec.seed == 1
    assert not np.array_equal(first.images, second.images)
    shift = np.subtract(first.observations.offset, second.observations.offset) / first.observations.scale
    assert np.abs(shift).max() < 0.05
    assert load_data("pendulum", seed=1).spec == load_data("pendulum").spec  # a grid without noise has no seed


def test_sources_can_be_selected_fixed_correlated_and_continuous():
    data = load_data("pendulum", sources=["length", "angle"], fixed={"damping": 0})
    assert (len(data), data.fixed) == (100, {"damping": 0, "velocity": 5})
    assert np.array_equal(data.sources[13], [1, 3])
    whole = load_data("pendulum")
    row = np.flatnonzero((whole.sources == [1, 0, 3, 5]).all(1))
    assert np.array_equal(whole.images[row[0]], data.images[13])
    drawn = load_data("pendulum", continuous=["length"], correlated={("length", "angle"): 0.6}, num_images=5000)
    assert drawn.sources.dtype == np.float64
    assert 0.25 <= drawn.sources[:, 0].min() < drawn.sources[:, 0].max() <= 1.0  # metres
    assert np.array_equal(np.unique(drawn.sources[:, 2]), np.arange(10))  # levels
    assert np.corrcoef(drawn.sources.T)[0, 2] == pytest.approx(0.6, abs=0.03)
    one_mode = load_data("sensors", fixed={"mode": 3}, num_images=100)
    assert "mode" not in one_mode.source_names
    assert (one_mode.images[:, 2] > 1).all()  # the return flow of the bypass


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pendulum", {"resolution": 32}, "resolution does not apply to .* pendulum"),
        ("pendulum", {"noise": 0.1}, "noise does not apply to .* pendulum"),
        ("pendulum", {"source_file": "x.csv"}, "source_file does not apply to .* pendulum"),
        ("pendulum", {"sources": ["shape"]}, "shape"),
        ("pendulum", {"fixed": {"length": 10}}, "must be an integer from 0 to 9, got 10"),
        ("sensors", {"continuous": ["mode"]}, "'mode' is a category"),
        ("sensors", {"num_images": 0}, "num_images must be a whole number of at least 1, got 0"),
        ("mixtures", {"correlated": {("source 1", "source 9"): 0.5}}, "source 9"),
        ("digits", {"sources": ["digit"]}, "sources does not apply to"),
        ("digits", {"resolution": 16}, "resolution does not apply to .* digits"),
        ("mixture", {}, "did you mean 'mixtures'|mixtures"),
    ],
)
def test_arguments_that_do_not_apply(name, options, message):
    with pytest.raises(ValueError, match=message):
        load_data(name, **options)


def test_names_are_taken():
    for name in (*GENERATED_SETS, "digits", "dsprites"):
        with pytest.raises(ValueError, match="is a built-in data set: choose another name"):
            register_dataset(name, lambda resolution: None)


def test_a_file_may_have_the_name_of_a_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sensors.csv").write_text("a,b\n" + "\n".join(f"{i % 7},{i * i}" for i in range(20)))
    data = load_data("sensors.csv")
    assert (data.name, data.observations.feature_names) == ("sensors", ("a", "b"))
    assert np.array_equal(load_from_config(data_config(data)).images, data.images)


# The laws.


def test_mixtures_can_be_undone():
    rng = np.random.default_rng(1)
    values = rng.uniform(-1, 1, (200, 5))
    hidden = MIXTURES.simulate(values)
    *rotations, spread = mixing_matrices()
    for matrix in (spread, *reversed(rotations)):
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(5), atol=1e-12)
        hidden = np.where(hidden > 0, hidden, hidden / LEAK) @ matrix.T
    np.testing.assert_allclose(hidden, values, atol=1e-10)


def test_mixtures_are_not_linear():
    data = load_data("mixtures", num_images=4000)
    x = np.column_stack([np.ones(len(data)), data.images])
    residual = data.sources - x @ np.linalg.lstsq(x, data.sources, rcond=None)[0]
    explained = 1 - residual.var(0) / data.sources.var(0)
    assert (explained > 0.6).all()
    assert (explained < 0.92).all()


def test_the_pendulum_follows_its_equation():
    values = np.array([[0.25, 0.05, 105.0, 2.25], [1.0, 0.95, 15.0, -2.25], [0.6, 0.4, 60.0, 0.0]])
    series = PENDULUM.simulate(values)
    for (length, damping, degrees, velocity), path in zip(values, series, strict=True):
        exact = solve_ivp(
            lambda _, state, k=9.81 / length, c=2 * damping: [state[1], -k * np.sin(state[0]) - c * state[1]],
            (0, 4),
            [np.deg2rad(degrees), velocity],
            t_eval=np.arange(NUM_STEPS) * STEP,
            rtol=1e-10,
            atol=1e-10,
        )
        np.testing.assert_allclose(path, exact.y.T, atol=2e-4)


def test_small_swings_are_those_of_the_closed_form():
    length, damping, angle = 0.5, 0.3, 0.5  # m, 1/s, degrees
    path = PENDULUM.simulate(np.array([[length, damping, angle, 0.0]]))[0, :, 0]
    t = np.arange(NUM_STEPS) * STEP
    frequency = np.sqrt(9.81 / length - damping**2)
    exact = np.exp(-damping * t) * (np.cos(frequency * t) + damping / frequency * np.sin(frequency * t))
    np.testing.assert_allclose(path, np.deg2rad(angle) * exact, atol=1e-6)


def test_the_pump_obeys_its_laws():
    base = {"mode": 1, "valve": 60.0, "ambient": 15.0, "leak": 5.0, "wear": 30.0}
    names = [name.split(" (")[0] for name in SENSORS.feature_names]

    def channels(**changes):
        return dict(zip(names, SENSORS.simulate(np.array([list((base | changes).values())]))[0], strict=True))

    usual, warm = channels(), channels(ambient=25.0)
    assert warm["winding"] - usual["winding"] == pytest.approx(10)
    assert warm["flow"] == usual["flow"]
    assert channels(mode=2)["outlet pressure"] > 1.5 * usual["outlet pressure"]
    assert usual["return flow"] == 0 < channels(mode=3)["return flow"]
    assert channels(leak=15.0)["flow"] < usual["flow"]
    assert channels(wear=90.0)["vibration"] > usual["vibration"]
    assert usual["torque"] * usual["speed"] / 9549 == pytest.approx(usual["power"])


def test_every_source_is_visible_in_every_mode():
    rng = np.random.default_rng(0)
    quantities = SENSORS.quantities
    values = np.stack([rng.uniform(q.low, q.high, 400) for q in quantities], axis=1)
    values[:, 0] = rng.integers(0, 4, 400)
    spread = SENSORS.simulate(values).std(0)
    for column, quantity in enumerate(quantities[1:], start=1):
        moved = values.copy()
        step = 0.1 * (quantity.high - quantity.low)
        moved[:, column] += np.where(values[:, column] + step > quantity.high, -step, step)
        change = np.abs(SENSORS.simulate(moved) - SENSORS.simulate(values)) / spread
        assert change.max(1).min() > 0.02, quantity.name  # the noise
        assert np.median(change.max(1)) > 0.1, quantity.name


def test_noise_is_a_share_of_the_spread():
    data = load_data("sensors", num_images=4000)
    values = data.sources.copy()
    clean = SENSORS.simulate(values)
    noise = (data.images - clean) / clean.std(0)
    np.testing.assert_allclose(noise.std(0), 0.02, rtol=0.08)
    np.testing.assert_allclose(noise.mean(0), 0, atol=0.002)


# Digits, and the way through training.


def test_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    data, bunch = load_data("digits"), load_digits()
    assert (data.images.shape, data.images.dtype) == ((1797, 8, 8, 1), np.uint8)
    assert np.array_equal(np.rint(data.images[..., 0] / 255 * 16), bunch.images)
    assert np.array_equal(data.sources[:, 0], bunch.target)
    assert (data.source_names, data.source_sizes, data.origin) == (("digit",), (10,), "real")
    assert np.array_equal(load_from_config(data_config(data)).images, data.images)


@pytest.mark.parametrize("name", ["pendulum", "digits"])
def test_a_model_trains_on_a_set_by_its_name(name, tmp_path):
    options = {"size": "small", "steps": 5, "batch_size": 8, "device": "cpu", "show": False, "evaluate": False}
    run = qlae.train("qlae", name, out=tmp_path / "run", num_latents=4, **options)
    qlae.resume(run.path, steps=6, show=False, evaluate=False)
    results = qlae.evaluate(run.path, num_samples=300, show=False)
    assert (results["data"]["name"], results["steps"]) == (name, 6)
    assert 0 <= results["averaged"]["infom"] <= 1


def test_generated_rows_are_written_to_a_file_and_read_again(tmp_path, capsys):
    from qlae.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["data", "render", "sensors", "--num-images", "30", "--out", str(tmp_path / "pump.npz")])
    assert ended.value.code == 0
    data, expected = load_data(tmp_path / "pump.npz"), load_data("sensors", num_images=30)
    assert np.array_equal(data.images, expected.images)
    assert data.observations == expected.observations
    assert np.allclose(data.sources, expected.sources)
    with pytest.raises(SystemExit):
        main(["data", "render", "sensors"])
    assert "only rendered images without noise can be cached on disk" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["data", "list"])
    listing = capsys.readouterr().out
    assert all(name in listing for name in data_names())
    assert "valve (continuous)" in " ".join(listing.split())
