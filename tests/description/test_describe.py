"""What a description says of models whose latents are known: a decoder written by hand, and small trained runs."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import qlae
from qlae.cli.describe import Describe
from qlae.data import load_data
from qlae.description.effects import choose_settings, interval
from qlae.description.samples import take_sample
from qlae.models.latents import QuantizedLatent
from qlae.models.model import Model
from qlae.observations import VECTORS, Observations

OPTIONS = {"size": "small", "batch_size": 8, "device": "cpu", "threads": 1, "show": False}
SCALE = (2.0, 1.0, 5.0)


def known_model():
    """A model of vectors (a, b, noise): latent 0 is a, latent 1 is b, latent 2 always has one value."""
    latent = QuantizedLatent(3, 3)
    encoder, decoder = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
    with torch.no_grad():
        encoder.weight.copy_(torch.diag(torch.tensor([0.4, 0.4, 0.0])))
        decoder.weight.copy_(torch.diag(torch.tensor([2.5, 2.5, 0.0])))
    observed = Observations(VECTORS, (3,), "float64", ("width", "height", "noise"), (10.0, 0.0, 0.0), SCALE)
    return Model(encoder, latent, decoder, observations=observed).eval()


def known_rows(num=300):
    """Vectors of two independent sources with three levels, and noise that no latent has."""
    random = np.random.default_rng(0)
    levels = random.integers(-1, 2, (num, 2))
    noise = random.normal(size=num)
    columns = {"width": 10 + 2 * 1.25 * levels[:, 0], "height": 1.25 * levels[:, 1], "noise": 5 * noise}
    return pd.DataFrame(columns), levels


@pytest.fixture(scope="module")
def known():
    rows, levels = known_rows()
    return known_model().describe(load_data(rows, sources=levels, hold_out=0))


def test_each_latent_moves_its_feature_by_the_decoded_difference(known):
    assert [each.latent for each in known.ranked] == [0, 1] or [each.latent for each in known.ranked] == [1, 0]
    effects = known.effects_frame().set_index(["latent", "feature"])
    # From the lowest to the highest of three values, −½ to ½: 2.5 standardised units.
    assert effects.change[0, "width"] == pytest.approx(2.5 * 2.0, abs=1e-5)
    assert effects.change[1, "height"] == pytest.approx(2.5 * 1.0, abs=1e-5)
    assert effects.change[0, "height"] == pytest.approx(0.0, abs=1e-9)
    assert effects.change_low[0, "width"] == pytest.approx(effects.change_high[0, "width"])  # the same in all rows
    assert "width (+5)" in known.latents[0].sentence
    assert "height" not in known.latents[0].sentence


def test_what_is_lost_without_a_latent(known):
    lost = known.to_frame().score_lost
    # Two of three features are reconstructed exactly. With one code for all rows the best is the middle one, of whose
    # feature nothing is explained then.
    assert known.score == pytest.approx(2 / 3, abs=0.02)
    assert lost[0] == pytest.approx(1 / 3, abs=0.02)
    assert lost[2] == 0.0
    assert known.latents[2].movement is None
    assert "Latent 2 always has the same code" in str(known)


def test_sources_beyond_chance_go_with_their_latent_alone(known):
    assert [[name for name, _ in each.sources] for each in known.latents] == [["source 1"], ["source 2"], []]


def test_codes_of_an_exact_model_survive(known):
    assert [each.returned for each in known.latents] == [1.0, 1.0, 1.0]
    assert [each.returned_recombined for each in known.latents] == [1.0, 1.0, 1.0]


def test_interval_is_that_of_the_mean():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    mean, low, high = interval(values)
    assert (mean, high - mean) == (2.5, pytest.approx(1.96 * values.std(ddof=1) / 2))
    assert mean - low == pytest.approx(high - mean)


def test_effects_that_cancel_over_rows_are_reported_as_dependent():
    class Product(nn.Module):
        def forward(self, z):
            return torch.stack([8 * z[:, 0] * z[:, 1], z[:, 1], 0 * z[:, 2]], 1)

    model = known_model()
    model.decoder = Product()
    description = model.describe(known_rows()[0])
    assert description.latents[0].movement.consistency < 0.1
    assert any("depends on the other latents" in text for text in description.latents[0].details)


def test_names_take_the_place_of_numbers(known):
    rows, _ = known_rows()
    sample = take_sample(known_model(), rows)
    sample.names.update({"latents": {"0": "size"}, "values": {"0": {"2": "large"}}})
    from qlae.description.describe import describe_sample

    first = describe_sample(sample).latents[0]
    assert first.title == "size (latent 0)"
    assert "“large”" in first.sentence


def test_rare_codes_and_many_codes_are_left_out():
    rows, _ = known_rows()
    sample = take_sample(known_model(), rows)
    codes = np.zeros((1000, 3), dtype=np.int64)
    codes[:400, 0], codes[400, 0] = 1, 2
    object.__setattr__(sample, "codes", codes)
    settings = choose_settings(sample, 0)
    assert settings.values.tolist() == [0, 1]
    assert settings.num_used == 3
    assert settings.shares.tolist() == [0.599, 0.4]
    assert [len(members) for members in settings.members] == [599, 400]


@pytest.fixture(scope="module")
def image_run(tmp_path_factory, tiny_data):
    path = tmp_path_factory.mktemp("described") / "run"
    return qlae.train("qlae", tiny_data, out=path, steps=150, num_values=5, **OPTIONS)


def test_the_page_of_an_image_model_is_one_file_without_scripts(image_run, tmp_path):
    description = qlae.describe(image_run)
    paths = description.save(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["effects.csv", "index.html", "latents.csv"]
    page = paths[0].read_text()
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    assert "of the picture" in page
    assert "One training cannot tell" in page
    assert "<code>qlae train … --consensus 5</code>" in page
    for each in description.ranked:
        assert f'id="latent-{each.latent}"' in page
    again = pd.read_csv(paths[1])
    assert again.latent.tolist() == description.to_frame().latent.tolist()
    assert set(description.effects_frame().feature) >= {"top left", "middle centre", "bottom right"}


def test_nothing_is_overwritten(image_run, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    description = qlae.describe(image_run)
    with pytest.raises(ValueError, match=r"notes\.txt"):
        description.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    description.save(tmp_path / "new")
    description.save(tmp_path / "new")  # an earlier description is replaced


def test_an_image_model_describes_other_images(image_run, tiny_data):
    images = np.asarray(tiny_data.images)[:10]
    description = qlae.describe(image_run, images)
    assert "10 images" in description.about
    assert qlae.load(image_run.path).describe(images).to_frame().equals(description.to_frame())


@pytest.mark.parametrize(("model", "data"), [("beta-vae", "sensors"), ("vq-vae", "sensors"), ("qlae", "pendulum")])
def test_every_kind_of_latent_and_of_data(tmp_path, model, data):
    run = qlae.train(model, load_data(data, num_images=200), out=tmp_path / "run", steps=5, **OPTIONS)
    description = qlae.describe(run.path)
    frame = description.to_frame()
    assert len(frame) == run.config.latent.num_latents
    assert np.isfinite(frame.returned).all()
    assert description.save(tmp_path / "out")[0].stat().st_size > 1000


def test_what_cannot_be_described_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="without a decoder"):
        qlae.describe(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="takes data"):
        qlae.describe(known_model())
    with pytest.raises(ValueError, match="no run directory"):
        qlae.describe("no-such-run")
    with pytest.raises(ValueError, match=r"shape \(n, 3\)"):
        known_model().describe(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="at least two"):
        known_model().describe(np.ones((1, 3)))


def test_the_command_writes_into_the_run_by_default(image_run, capsys):
    Describe(image_run.path)()
    printed = capsys.readouterr().out
    assert "Without it, PSNR" in printed
    assert (image_run.path / "description" / "index.html").is_file()


def test_a_shipped_model_is_described():
    description = qlae.describe("shapes3d-qlae")
    walls = [each for each in description.latents if each.sources and each.sources[0][0] == "wall hue"]
    assert walls
    assert all("middle third of its height" in each.sentence for each in walls)


def test_effects_are_measured_on_rows_that_were_held_out(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 4)), columns=list("abcd"))
    frame.to_csv(tmp_path / "own.csv", index=False)
    data = load_data(tmp_path / "own.csv", hold_out=0.2)
    run = qlae.train("qlae", data, out=tmp_path / "run", steps=5, **OPTIONS)
    sample = take_sample(run)
    measured = sample.draw(1000, sample.measured)
    assert len(measured) == len(data.held_out_rows) >= 20
    assert sorted(sample.read(measured)[:, 0]) == sorted(np.asarray(data.images)[data.held_out_rows, 0])
    assert (sample.codes[measured] == qlae.load(run.path).encode(sample.read(measured))).all()
    assert f"{len(measured)} that were held out from training" in sample.about
    other = take_sample(run, frame)  # of which no row is known to have been trained on
    assert len(other) == 200
    assert other.measured is None


def test_levels_are_in_percent_and_missing_values_do_not_count(tmp_path):
    random = np.random.default_rng(0)
    group = random.integers(0, 2, 200)
    frame = pd.DataFrame({"colour": np.where(group, "red", "blue"), "weight": 5.0 * group + random.normal(size=200)})
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(10 * group, unit="D")
    frame.loc[::7, "weight"] = np.nan
    data = load_data(frame, hold_out=0)
    run = qlae.train("qlae", data, out=tmp_path / "run", **OPTIONS | {"steps": 300, "num_latents": 2, "num_values": 3})
    description = qlae.describe(run, data)
    first = description.ranked[0]
    assert re.search(r"colour \((red|blue) [+−]\d+", first.sentence)  # one of two levels
    assert "<th>colour</th>" in first.html
    assert re.search(r"<td>(red|blue) \d+%", first.html)
    assert re.search(r"<td>2024-01-\d\d</td>", first.html)
    effects = description.effects_frame()
    assert set(effects.feature) == {"colour=red", "colour=blue", "weight", "day"}
    assert set(effects[effects.feature == "colour=red"].unit) == {"%"}
    strongest = effects[effects.feature == "day"].change.abs().max()
    assert 5 < strongest < 15
    assert description.score == pytest.approx(run.results["averaged"]["r2"], abs=1e-5)


def test_r2_is_that_of_the_results(tmp_path):
    random = np.random.default_rng(0)
    group = random.choice(["a", "b", "c", "rare"], 200, p=[0.5, 0.3, 0.18, 0.02])
    numbers = random.normal(size=(200, 3)) * [1, 10, 0.1]
    for name, columns in {
        "tables": {"group": group, "size": numbers[:, 0]},
        "vectors": dict(zip("abc", numbers.T, strict=True)),
    }.items():
        run = qlae.train(
            "qlae", load_data(pd.DataFrame(columns), hold_out=0.3), out=tmp_path / name, steps=20, **OPTIONS
        )
        description = qlae.describe(run, load_data(pd.DataFrame(columns), hold_out=0.3))
        assert description.num_rows == 60
        assert description.score == pytest.approx(run.results["averaged"]["held_out_r2"], abs=1e-5)
