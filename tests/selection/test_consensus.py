"""The consensus of several runs: arrays and runs with known answers, bad input, encoding, files."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from selection_runs import disentangled, entangled, write_run

import qlae
from qlae.data import load_data
from qlae.selection.consensus import consensus

OPTIONS = {"size": "small", "steps": 60, "batch_size": 16, "device": "cpu", "threads": 1, "show": False}


def draw_sources(num_rows=3000, sizes=(4, 3, 5), seed=0):
    random = np.random.default_rng(seed)
    return np.column_stack([random.integers(size, size=num_rows) for size in sizes])


def relabelled(sources, seed, columns=None):
    """Return codes: each source in one latent, in an order and numbering of their own, from 7 on."""
    random = np.random.default_rng(seed)
    columns = random.permutation(sources.shape[1]) if columns is None else columns
    return np.column_stack([7 + random.permutation(sources[:, c].max() + 1)[sources[:, c]] for c in columns])


def noisy(codes, seed, share=0.1):
    """Return the codes with a share of all entries drawn anew."""
    random = np.random.default_rng(100 + seed)
    redrawn = np.column_stack([random.permutation(column) for column in codes.T])
    return np.where(random.random(codes.shape) < share, redrawn, codes)


def mixture(sources, first, second):
    return sources[:, first] + 10 * sources[:, second]


def infom(sources, found):
    return qlae.metrics.infomec(sources, found.codes).infom


def test_sources_that_all_runs_found_are_confirmed_and_pure():
    sources = draw_sources()
    found = consensus([relabelled(sources, seed) for seed in range(4)])
    assert len(found.factors) == len(found.confirmed) == 3
    assert all(factor.purity > 0.95 and factor.num_found == 4 and factor.stability == 1.0 for factor in found.factors)
    assert infom(sources, found) > 0.95
    assert "3 factors, each found again" in found.describe()


def test_a_mixture_that_most_runs_share_loses_to_its_parts():
    sources = draw_sources()
    mixed = [np.column_stack([mixture(sources, 0, 1), relabelled(sources, s, [2])]) for s in range(3)]
    runs = [*(noisy(codes, s, 0.05) for s, codes in enumerate(mixed)), *(relabelled(sources, s) for s in (3, 4))]
    found = consensus(runs)
    assert infom(sources, found) > 0.95
    assert all(factor.run >= 3 or factor.latent == 1 for factor in found.factors)  # latent 0 of runs 0 to 2 is mixed


def test_entangled_runs_among_disentangled_ones_are_not_taken():
    sources = draw_sources()
    runs = [entangled(sources, 0), relabelled(sources, 1), entangled(sources, 2), relabelled(sources, 3)]
    found = consensus(runs)
    assert {factor.run for factor in found.factors} <= {1, 3}
    assert infom(sources, found) > 0.95


def test_a_failed_run_breaks_nothing_and_is_mentioned():
    sources = draw_sources()
    good = [noisy(relabelled(sources, seed), seed) for seed in range(3)]
    failed = np.zeros_like(good[0])
    found = consensus([good[0], failed, *good[1:]])
    assert len(found.confirmed) == 3
    assert all(factor.run != 1 and factor.counterparts[1] == -1 and not factor.found[1] for factor in found.factors)
    assert any("model 1 varies" in warning for warning in found.warnings)


def test_runs_without_latents_in_use_have_no_consensus_and_say_why():
    constant = [np.full((1000, 3), value) for value in range(3)]
    assert "no run has latents that vary" in consensus(constant).describe()
    found = consensus([constant[0], draw_sources(1000), constant[1]])
    assert "only model 1 has latents that vary" in found.describe()
    assert not found.confirmed
    json.dumps(found.to_dict())
    assert "No consensus" in str(found)


def test_models_may_differ_in_latents_and_values():
    sources = draw_sources()
    finer = np.column_stack([sources[:, 2] * 3 + np.random.default_rng(5).integers(3, size=3000), sources[:, 0]])
    found = consensus([relabelled(sources, 0), finer, sources[:, [2, 1]].astype(float), relabelled(sources, 3)])
    assert len(found.confirmed) == 3
    assert infom(sources, found) > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_noise_has_no_consensus(seed):
    random = np.random.default_rng(seed)
    found = consensus([random.integers(4, size=(2000, 6)) for _ in range(5)])
    assert not found.confirmed
    assert found.describe().startswith("No consensus")
    found = consensus([random.normal(size=(2000, 6)) for _ in range(5)])
    assert found.describe().startswith("No consensus")


def test_latents_of_one_gaussian_in_random_directions_have_no_consensus():
    random = np.random.default_rng(0)
    points = random.normal(size=(3000, 6))
    rotations = [np.linalg.qr(random.normal(size=(6, 6)))[0] for _ in range(5)]
    assert not consensus([points @ rotation for rotation in rotations]).confirmed


def test_more_runs_do_not_lower_the_purity():
    sources = draw_sources()
    runs = [noisy(entangled(sources, s) if s % 2 else relabelled(sources, s), s, 0.05) for s in range(6)]
    scores = [infom(sources, consensus(runs[:count])) for count in (3, 4, 6)]
    assert scores[1] > scores[0] - 0.02
    assert scores[2] > scores[1] - 0.02


def test_the_order_of_the_runs_does_not_matter():
    sources = draw_sources()
    runs = [noisy(relabelled(sources, seed), seed, 0.05 + 0.05 * seed) for seed in range(4)]
    order = [2, 0, 3, 1]
    found, again = consensus(runs), consensus([runs[k] for k in order])
    assert {(f.run, f.latent) for f in found.factors} == {(order[f.run], f.latent) for f in again.factors}
    assert found.describe() == again.describe()


def test_codes_are_the_columns_as_they_were_given():
    runs = [relabelled(draw_sources(), seed) for seed in range(3)]
    found = consensus(runs)
    for k, factor in enumerate(found.factors):
        assert np.array_equal(found.codes[:, k], runs[factor.run][:, factor.latent])
    assert found.codes.min() == 7


def test_continuous_latents_are_kept_and_their_codes_are_bins():
    sources = draw_sources(sizes=(50, 50)) + np.random.default_rng(1).random((3000, 2))
    runs = [sources, -sources[:, ::-1], sources + 0.1 * np.random.default_rng(2).random((3000, 2))]
    found = consensus(runs)
    assert len(found.confirmed) == 2
    assert all(found.is_continuous)
    assert found.codes.max() == 19
    for k, factor in enumerate(found.factors):
        assert np.array_equal(found.latents[:, k], runs[factor.run][:, factor.latent])


def test_arrays_need_no_torch():
    code = (
        "import numpy as np, sys, qlae; s = np.random.default_rng(0).integers(4, size=(500, 2));"
        "print(qlae.consensus([s, 3 - s[:, ::-1]])); sys.exit('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "found again by the other run" in result.stdout


def test_arrays_cannot_encode(tmp_path):
    found = consensus([relabelled(draw_sources(), seed) for seed in range(3)])
    with pytest.raises(ValueError, match=r"has no models.*of model"):
        found.encode(np.zeros((1, 8, 8, 3), np.uint8))
    assert found.scores() is None
    assert [path.name for path in found.save(tmp_path)] == ["consensus.json", "codes.npz", "factors.png"]
    assert np.array_equal(np.load(tmp_path / "codes.npz")["codes"], found.codes)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([draw_sources()], "at least two"),
        ([], "at least two"),
        ([draw_sources(), draw_sources()], "models 0 and 1 are the same"),
        ([draw_sources(), draw_sources(100, seed=1)], "100 rows"),
        ([draw_sources(), "runs/s1"], "1 paths and 1 other"),
        ([draw_sources()[:, 0], draw_sources()[:, 1]], r"shape \(3000,\)"),
        (draw_sources(), r"model 0 has the shape \(3,\)"),
        ([{"a": 1}, draw_sources()], "model 0 is a dict"),
        ([draw_sources(), np.full((3000, 2), np.nan)], "model 1: .*NaN"),
        ([[["a"], ["b"]], [["b"], ["a"]]], "model 0: .*strings"),
    ],
)
def test_bad_arrays_are_explained(runs, message):
    with pytest.raises(ValueError, match=message):
        consensus(runs)


# Run directories.


def write_good(folder, count=3, **options):
    return [write_run(folder / f"s{seed}", disentangled, seed, **options) for seed in range(count)]


def test_runs_give_the_codes_of_their_samples(tmp_path):
    runs = write_good(tmp_path)
    for given in (tmp_path, [run.path for run in runs], runs, [str(tmp_path / "s0"), runs[1], tmp_path / "s2"]):
        found = consensus(given, show=False)
        assert found.names == ("s0", "s1", "s2")
        assert len(found.confirmed) == 3
    for k, factor in enumerate(found.factors):
        with np.load(runs[factor.run].sample_path) as sample:
            assert np.array_equal(found.codes[:, k], sample["codes"][:, factor.latent])
            assert np.array_equal(found.indices, sample["indices"])
    assert (found.data, found.kind, found.weights, found.num_images) == ("shapes3d", "images", "averaged", 320)
    assert any("only 3 runs" in warning for warning in found.warnings)
    scores = found.scores()
    assert scores["code"]["infom"] > 0.95
    assert {name for name, _ in scores["sources"]} == {"floor hue", "scale", "shape"}


def test_sources_have_no_influence(tmp_path):
    write_good(tmp_path / "with")
    write_good(tmp_path / "without", sources=False)
    found, blind = consensus(tmp_path / "with", show=False), consensus(tmp_path / "without", show=False)
    assert [vars(factor) for factor in found.factors] == [vars(factor) for factor in blind.factors]
    assert blind.scores() is None


def test_scores_in_another_way_are_not_averaged(tmp_path):
    runs = write_good(tmp_path)
    scores = {"psnr": 30.0, "infom": 0.5, "infoe": 0.6, "infoc": 0.7}
    for number, run in enumerate(runs):
        results = run.results | {"averaged": scores, "protocol": "paper" if number else "tripod"}
        run.results_path.write_text(json.dumps(results))
    counts = consensus(tmp_path, show=False).scores()
    assert (counts["protocol"], counts["num_runs"]) == ("tripod", 1)
    assert counts["mean"] == {"infom": 0.5, "infoe": 0.6, "infoc": 0.7}


def test_bad_runs_are_explained(tmp_path):
    runs = write_good(tmp_path / "runs", 2)
    with pytest.raises(ValueError, match=r"at least two finished runs.*got 1"):
        consensus(runs[0], show=False)
    with pytest.raises(ValueError, match="is named twice; it counts as one run"):
        consensus([runs[0], runs[0].path], show=False)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no run directory"):
        consensus(tmp_path / "empty", show=False)
    with pytest.raises(ValueError, match="does not exist"):
        consensus([runs[0], tmp_path / "nowhere"], show=False)
    with pytest.raises(ValueError, match="unknown set of weights"):
        consensus(runs, weights="best", show=False)
    other = write_run(tmp_path / "other", disentangled, 5, data=load_data("shapes3d", resolution=16, sources=["scale"]))
    with pytest.raises(ValueError, match="of different data"):
        consensus([*runs, other], show=False)
    shutil.copytree(runs[1].path, tmp_path / "copy")
    with pytest.raises(ValueError, match="is a copy of"):
        consensus([runs[1], tmp_path / "copy"], show=False)
    found = consensus([*runs, tmp_path / "copy"], show=False)
    assert [skip.path.name for skip in found.skipped] == ["copy"]


def test_runs_with_collapsed_latents_have_no_consensus(tmp_path):
    runs = [write_run(tmp_path / f"s{s}", lambda sources, _: np.zeros((len(sources), 3), int), s) for s in range(2)]
    found = consensus(runs, show=False)
    assert "no run has latents that vary" in found.describe()
    assert found.scores() is None
    found.save(tmp_path / "out")
    assert "nothing to compare" in (tmp_path / "out" / "index.html").read_text()


@pytest.fixture(scope="module")
def small_data():
    """320 rendered images of 16×16."""
    return load_data("shapes3d", resolution=16, sources=["floor hue", "scale", "shape"]).in_memory()


@pytest.fixture(scope="module")
def trained(tmp_path_factory, small_data):
    """Three tiny runs with codes and two with continuous latents, after a few updates."""
    folder = tmp_path_factory.mktemp("trained")
    for seed in range(3):
        qlae.train("qlae", small_data, out=folder / f"s{seed}", seed=seed, **OPTIONS)
    for seed in range(2):
        qlae.train("beta-vae", small_data, out=folder / f"b{seed}", seed=seed, **OPTIONS)
    return folder


@pytest.mark.parametrize("names", [("s0", "s1", "s2"), ("b0", "b1"), ("s0", "b0", "b1")])
def test_encoding_gives_the_codes_of_the_sample(trained, small_data, names):
    found = consensus([trained / name for name in names], show=False)
    assert found.factors
    assert np.array_equal(found.encode(small_data)[found.indices], found.codes)
    assert np.array_equal(found.encode(np.asarray(small_data.images[found.indices[:7]])), found.codes[:7])
    with pytest.raises(ValueError, match=r"expected uint8 images of shape \(n, 16, 16, 3\)"):
        found.encode(np.zeros((2, 4, 4, 3), np.uint8))


def test_nothing_is_written_into_the_runs(trained, tmp_path):
    def contents():
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(trained.rglob("*"))}

    before = contents()
    found = consensus(trained, show=False)
    found.save(tmp_path / "out")
    assert contents() == before


def test_the_page_shows_each_factor_and_says_which_run_cannot_be_shown(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "runs")
    found = consensus([tmp_path / "runs" / f"s{seed}" for seed in range(3)], show=False)
    paths = found.save(tmp_path / "out")
    assert [path.name for path in paths] == ["consensus.json", "codes.npz", "factors.png", "index.html"]
    page = paths[3].read_text()
    assert page.count("<img") == 1 + len(found.factors)
    assert all(f"f{k}: {found.names[factor.run]}" in page for k, factor in enumerate(found.factors))
    assert "is not shown below" not in page
    content = json.loads(paths[0].read_text())
    assert [row["latent"] for row in content["factors"]] == [factor.latent for factor in found.factors]
    assert content["scores"]["code"] == found.scores()["code"]
    gone = found.runs[found.factors[0].run]
    for path in [*gone.path.glob("checkpoint*"), *gone.path.glob("previous*")]:
        path.unlink()
    found.save(tmp_path / "out")
    assert f"{gone.path.name} is not shown below: {gone.path} has no checkpoint" in paths[3].read_text()


def test_a_run_that_was_trained_further_is_not_used_to_encode(trained, tmp_path, small_data):
    shutil.copytree(trained, tmp_path / "runs")
    found = consensus([tmp_path / "runs" / f"s{seed}" for seed in range(3)], show=False)
    gone = found.runs[found.factors[0].run]
    text = (gone.path / "checkpoint.json").read_text()
    (gone.path / "checkpoint.json").write_text(text.replace('"step": 60', '"step": 70'))
    with pytest.raises(ValueError, match="scored after update 60, and its checkpoint is of update 70"):
        found.encode(small_data)


def test_other_samples_are_encoded(trained, tmp_path, small_data):
    shutil.copytree(trained / "s1", tmp_path / "s1")
    qlae.evaluate(tmp_path / "s1", data=small_data, num_samples=200, show=False, device="cpu")
    found = consensus([trained / "s0", tmp_path / "s1"], data=small_data, show=False)
    expected = consensus([trained / "s0", trained / "s1"], show=False)
    assert np.array_equal(found.codes, expected.codes)
    assert np.array_equal(found.sources, expected.sources)
    few = load_data("shapes3d", resolution=16, sources=["scale"])
    with pytest.raises(ValueError, match="rows; pass the data"):
        consensus([trained / "s0", tmp_path / "s1"], data=few, show=False)
