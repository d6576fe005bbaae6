"""AE + ICA: components that are known, latents of low rank, and a fitted transform through the whole life of a run."""

import shutil
import warnings

import numpy as np
import pytest
import torch

import qlae
from qlae.cli import main
from qlae.models.latents import IndependentComponents
from qlae.models.latents import independent as module
from qlae.models.latents.independent import fit_components
from qlae.runs import checkpoint
from qlae.runs.directory import Run
from qlae.runs.load_model import FITTED_FILE, read_fitted

OPTIONS = {"size": "small", "batch_size": 8, "show": False, "threads": 1}


def sources(num_rows: int = 4000, size: int = 4) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (num_rows, size))


def mixed(size: int = 4, dimensions: int = 4) -> tuple[np.ndarray, np.ndarray]:
    matrix = np.random.default_rng(1).normal(size=(size, dimensions))
    return sources(size=size), sources(size=size) @ matrix + np.arange(dimensions)


def test_finds_independent_sources_behind_a_linear_mixture():
    truth, x = mixed()
    fitted = fit_components(x)
    components = (x - fitted.mean) @ fitted.unmixing.T
    assert np.allclose(np.cov(components.T, bias=True), np.eye(4), atol=1e-8)
    correlations = np.abs(np.corrcoef(truth.T, components.T)[:4, 4:])
    assert (correlations.max(0) > 0.99).all()
    assert sorted(correlations.argmax(0)) == [0, 1, 2, 3]
    assert np.allclose(components @ fitted.mixing.T + fitted.mean, x)
    explained = np.square(fitted.mixing).sum(0)
    assert (np.diff(explained) <= 1e-12).all()  # in the order of the variance that they explain
    assert ((components**3).mean(0) >= 0).all()


def test_is_the_same_each_time():
    _, x = mixed()
    first, second = fit_components(x), fit_components(x)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    turned = fit_components(x, seed=5)  # other starts find the same components
    assert np.allclose(np.abs(first.unmixing), np.abs(turned.unmixing), rtol=0.05, atol=0.05)


def test_directions_without_variance_are_dropped():
    truth, x = mixed(size=2, dimensions=5)
    x[:, 4] = 7.0  # rank 2 in 5 dimensions, one of them constant
    fitted = fit_components(x)
    components = (x - fitted.mean) @ fitted.unmixing.T
    assert (components[:, 2:] == 0).all()
    assert (np.abs(np.corrcoef(truth.T, components[:, :2].T)[:2, 2:]).max(0) > 0.99).all()
    assert np.allclose(components @ fitted.mixing.T + fitted.mean, x, atol=1e-6)


def test_constant_latents_and_one_latent():
    with pytest.warns(UserWarning, match="all latents are constant"):
        fitted = fit_components(np.ones((10, 3)))
    assert not fitted.unmixing.any()
    one = fit_components(np.random.default_rng(0).exponential(size=(50, 1)))
    assert one.unmixing.shape == (1, 1)
    assert one.unmixing[0, 0] * one.mixing[0, 0] == pytest.approx(1)
    for wrong in (np.ones((1, 3)), np.full((5, 2), np.nan), np.ones(3)):
        with pytest.raises(ValueError, match="at least two rows of finite latents"):
            fit_components(wrong)


def test_warns_if_ica_does_not_converge(monkeypatch):
    monkeypatch.setattr(module, "MAX_ITERATIONS", 1)
    _, x = mixed()
    with pytest.warns(UserWarning, match="ICA did not converge within 1 iterations"):
        fitted = fit_components(x)
    assert np.allclose((x - fitted.mean) @ fitted.unmixing.T @ fitted.mixing.T + fitted.mean, x)


def test_the_latent_space_is_plain_in_training_and_transformed_in_evaluation():
    _, x = mixed()
    latent = IndependentComponents(4)
    rows = torch.from_numpy(x).float()
    latent.fit(x)
    assert latent(rows).z is rows
    assert latent.decoder_inputs(rows) is rows
    latent.eval()
    z = latent(rows).z
    assert torch.allclose(z.var(0, correction=0), torch.ones(4), atol=1e-3)
    assert torch.allclose(latent.decoder_inputs(z), rows, atol=1e-4)
    with pytest.raises(ValueError, match="no prior"):
        latent.sample(2)


@pytest.fixture(scope="module")
def run(tmp_path_factory, tiny_data) -> Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return qlae.train("ae-ica", tiny_data, out=tmp_path_factory.mktemp("ica") / "run", steps=150, **OPTIONS)


def test_a_run_is_fitted_and_everything_uses_it(run, tiny_data, tmp_path):
    images = np.asarray(tiny_data.images)
    model = qlae.load(run.path)
    latents = model.latents(images)
    covariance = np.cov(latents.T, bias=True)
    active = np.diag(covariance) > 0.5
    assert active.any()
    assert np.allclose(covariance[np.ix_(active, active)], np.eye(active.sum()), atol=1e-2)
    assert np.array_equal(run.arrays(run.sample_path)["latents"], latents)
    assert np.array_equal(model.decode(latents), model.reconstruct(images))
    # The decoder is that of the autoencoder: its reconstructions are those without the transform.
    plain = model.encoder(torch.from_numpy(images).permute(0, 3, 1, 2) / 255)
    direct = model.decoder(plain).sigmoid().mul(255).permute(0, 2, 3, 1).numpy()
    assert np.abs(direct - model.reconstruct(images)).max() < 2
    again = qlae.load(model.save_pretrained(tmp_path / "export"))
    assert np.array_equal(again.latents(images), latents)
    assert np.array_equal(again.decode(latents), model.decode(latents))
    raw = qlae.load(run.path, weights="raw")
    assert not np.array_equal(raw.latents(images), latents)
    assert np.allclose(run.arrays(run.sample_path)["raw_latents"], raw.latents(images))
    assert "independent components" in (tmp_path / "export" / "README.md").read_text()


def test_training_further_makes_the_fit_stale(run, tiny_data, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run.path, copy)
    before = (copy / FITTED_FILE).read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        qlae.resume(copy, steps=160, data=tiny_data, show=False, evaluate=False, threads=1)
        assert (copy / FITTED_FILE).read_bytes() != before
        (copy / FITTED_FILE).write_bytes(before)  # that of the earlier checkpoint
    assert read_fitted(copy, checkpoint.load(copy), "averaged") is None
    with pytest.warns(UserWarning, match=r"were not fitted since update 160, .* `qlae evaluate"):
        model = qlae.load(copy)
    assert torch.equal(model.latent.unmixing, torch.eye(4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        qlae.evaluate(copy, data=tiny_data, show=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*were not fitted")
        assert not torch.equal(qlae.load(copy).latent.unmixing, torch.eye(4))


def test_a_damaged_file_is_written_again(run, tiny_data, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run.path, copy)
    original = (copy / FITTED_FILE).read_bytes()
    (copy / FITTED_FILE).write_bytes(original[:100])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = qlae.evaluate(copy, data=tiny_data, show=False)
    assert (copy / FITTED_FILE).read_bytes() == original
    assert results["averaged"] == run.results["averaged"]


def test_scores_during_training_are_those_of_the_components(tiny_data, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = qlae.train("ae-ica", tiny_data, out=tmp_path, steps=100, score_every=100, **OPTIONS)
    assert run.log()[-1]["infom"] == pytest.approx(run.results["averaged"]["infom"])


# --- components of a run that is trained already -------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(tmp_path_factory, tiny_data) -> Run:
    return qlae.train("ae", tiny_data, out=tmp_path_factory.mktemp("plain") / "run", steps=150, **OPTIONS)


def test_components_of_a_trained_run_are_those_of_a_training(run, plain, tiny_data, tmp_path):
    before = {path.name: path.read_bytes() for path in plain.path.iterdir()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = qlae.find_components(plain.path, out=tmp_path / "ica", data=tiny_data, show=False, threads=1)
        again = qlae.find_components(plain, out=tmp_path / "ica", data=tiny_data, show=False, threads=1)
    assert found.config == run.config
    assert (found.path / FITTED_FILE).read_bytes() == (run.path / FITTED_FILE).read_bytes()
    for name in ("latents", "raw_latents", "sources"):
        assert np.array_equal(found.arrays(found.sample_path)[name], run.arrays(run.sample_path)[name])
    assert found.results["averaged"] == run.results["averaged"] == again.results["averaged"]
    assert [row["loss"] for row in found.log()] == [row["loss"] for row in run.log()]
    assert {path.name: path.read_bytes() for path in plain.path.iterdir()} == before


def test_components_need_a_finished_plain_autoencoder_and_another_folder(run, plain, tiny_data, tmp_path):
    with pytest.raises(ValueError, match="is a run of ae-ica; components are found for `ae`"):
        qlae.find_components(run.path, out=tmp_path / "a")
    with pytest.raises(ValueError, match="is the run itself; choose another folder"):
        qlae.find_components(plain.path, out=plain.path)
    with pytest.raises(ValueError, match="holds another run"):
        qlae.find_components(plain.path, out=_other_run(tiny_data, tmp_path / "b"))
    part = tmp_path / "part"
    shutil.copytree(plain.path, part)
    for path in (*part.glob("checkpoint*"), *part.glob("previous*")):
        path.unlink()
    with pytest.raises(ValueError, match=r"unfinished, or its checkpoint was removed.*`qlae train --resume"):
        qlae.find_components(part, out=tmp_path / "c")
    assert not (tmp_path / "c").exists()


def _other_run(data, path):
    return qlae.train("ae", data, out=path, steps=10, seed=5, evaluate=False, **OPTIONS).path


def test_the_command_line_takes_a_trained_run(tmp_path, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = qlae.load_data("shapes3d", resolution=8, sources=["floor hue", "shape"])
        trained = qlae.train("ae", data, out=tmp_path / "ae", steps=20, **OPTIONS).path
        for arguments, message in (
            (["train", "ae", "--trained", str(trained)], "use `qlae train ae-ica --trained"),
            (["train", "ae-ica", "--trained", str(trained), "--steps", "5"], "so leave out --steps"),
        ):
            with pytest.raises(SystemExit) as stop:
                main(arguments)
            assert stop.value.code == 2
            assert message in capsys.readouterr().err.replace("\n", " ")
        with pytest.raises(SystemExit) as stop:
            main(["train", "ae-ica", "--trained", str(trained), "--threads", "1", "--quiet"])
    assert stop.value.code == 0
    assert Run(tmp_path / "ae-ica").results["model"] == "ae-ica"
