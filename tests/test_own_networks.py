"""An encoder and a decoder of the caller's in place of the paper's."""

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import qlae
from qlae.runs import checkpoint

EXAMPLE = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "own_networks.py"))


def networks() -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    return EXAMPLE["Encoder"](), EXAMPLE["Decoder"]()


def trained(out, data, model="qlae", steps=20, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return qlae.train(
            model,
            data,
            **{"out": out, "networks": networks(), "num_latents": 6, "size": "small", "show": False} | options,
            steps=steps,
        )


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert EXAMPLE["main"](tmp_path / "run", 30) >= 0
    assert "[[" in capsys.readouterr().out


@pytest.mark.parametrize("model", ["ae", "beta-vae", "qlae", "qlinfowgan-gp"])
def test_trains_resumes_and_loads(tmp_path, tiny_data, model):
    if model == "beta-vae":  # its encoder gives means and deviations
        given = networks()
        given[0].head = nn.Linear(128, 12)
    else:
        given = networks()
    whole = trained(tmp_path / "whole", tiny_data, model, networks=given)
    trained(tmp_path / "parts", tiny_data, model, steps=7, networks=given)
    parts = trained(tmp_path / "parts", tiny_data, model, networks=given)
    first, second = (checkpoint.load(run.path).tensors for run in (whole, parts))
    for name in first:
        assert name.startswith("window") or torch.equal(first[name], second[name]), name
    assert int(first["weights.encoder.body.2.num_batches_tracked"]) >= 20  # buffers are kept too
    loaded = qlae.load(whole.path, networks=given)
    assert loaded.reconstruct(np.asarray(tiny_data.images)).shape == (40, 16, 16, 3)
    assert torch.equal(loaded.encoder.body[2].running_mean, first["weights.encoder.body.2.running_mean"])


def test_networks_that_draw_repeat_and_go_on_exactly(tmp_path, tiny_data):
    given = networks()
    given[0].head = nn.Sequential(nn.Dropout(0.5), given[0].head)
    before = torch.get_rng_state()
    runs = [trained(tmp_path / name, tiny_data, networks=given, evaluate=False) for name in ("first", "again")]
    trained(tmp_path / "parts", tiny_data, networks=given, steps=7, evaluate=False)
    torch.rand(3)  # whatever else the process draws
    runs.append(trained(tmp_path / "parts", tiny_data, networks=given, evaluate=False))
    first, *others = (checkpoint.load(run.path).tensors for run in runs)
    for other in others:
        for name in first:
            assert name.startswith("window") or torch.equal(first[name], other[name]), name
    torch.set_rng_state(before)


def test_another_architecture_is_refused_also_if_it_is_a_part_of_the_first(tmp_path, tiny_data):
    given = networks()
    run = trained(tmp_path / "run", tiny_data, networks=given, steps=5, evaluate=False)
    fewer = networks()
    fewer[0].body[2] = nn.Identity()
    with pytest.raises(ValueError, match=r"does not fit the model: it has average.encoder.body.2"):
        trained(tmp_path / "run", tiny_data, networks=fewer, steps=10, evaluate=False)
    with pytest.raises(ValueError, match=r"run: the weights do not fit the networks that were passed"):
        qlae.load(run.path, networks=fewer)


def test_an_encoder_that_gives_no_tensor(tmp_path, tiny_data):
    class Two(nn.Module):
        def forward(self, x):
            return x, x

    with pytest.raises(ValueError, match="Two must return a tensor, it returns a tuple"):
        trained(tmp_path / "run", tiny_data, networks=(Two(), networks()[1]))


def test_the_caller_s_modules_stay_as_they_are(tmp_path, tiny_data):
    given = networks()
    before = [parameter.detach().clone() for module in given for parameter in module.parameters()]
    statistics = given[0].body[2].running_mean.clone()
    trained(tmp_path / "run", tiny_data, networks=given)
    after = [parameter for module in given for parameter in module.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert torch.equal(given[0].body[2].running_mean, statistics)


def test_the_start_is_the_caller_s(tmp_path, tiny_data):
    given = networks()
    run = trained(tmp_path / "run", tiny_data, networks=given, steps=1, learning_rate=1e-12, evaluate=False)
    weight = checkpoint.load(run.path).tensors["weights.encoder.head.weight"]
    assert torch.allclose(weight, given[0].head.weight, atol=1e-6)


def test_forgotten_or_needless_networks_are_told(tmp_path, tiny_data):
    own = trained(tmp_path / "own", tiny_data)
    with pytest.raises(ValueError, match=r"custom encoder and decoder; pass the same in Python: networks="):
        qlae.load(own.path)
    with pytest.raises(ValueError, match=r"holds another run: networks.own is .*encoder.*, asked for"):
        qlae.train("qlae", tiny_data, out=own.path, num_latents=6, size="small", steps=20, show=False)
    plain = trained(tmp_path / "plain", tiny_data, networks=None, evaluate=False)
    with pytest.raises(ValueError, match="trained with the networks of qlae; leave networks=… out"):
        qlae.load(plain.path, networks=networks())


def test_wrong_sizes_are_told_before_anything_is_written(tmp_path, tiny_data):
    out = tmp_path / "run"
    with pytest.raises(ValueError, match=r"the encoder must map .* to \(b, 5\) for 5 latents; it returns \(b, 6\)"):
        trained(out, tiny_data, num_latents=5)
    encoder, _ = networks()
    with pytest.raises(ValueError, match=r"the decoder must map \(b, 6\) to logits .*; it returns \(b, 6\)"):
        trained(out, tiny_data, networks=(encoder, nn.Identity()))
    bare = nn.Sequential(nn.Flatten(), nn.Linear(768, 6))
    with pytest.raises(ValueError, match=r"the encoder needs features\(images\)"):
        trained(out, tiny_data, "infowgan-gp", networks=(bare, networks()[1]))
    assert not out.exists()


def test_what_is_no_pair_of_modules_or_does_not_fit_is_told(tmp_path, tiny_data):
    with pytest.raises(ValueError, match=r"networks takes two torch modules, \(encoder, decoder\), .* got \(Linear\)"):
        qlae.train("ae", tiny_data, out=tmp_path / "a", networks=nn.Linear(2, 2), show=False)
    with pytest.raises(ValueError, match=r"Linear does not take \(b, 3, 16, 16\): mat1 and mat2 shapes"):
        qlae.train("ae", tiny_data, out=tmp_path / "b", networks=(nn.Linear(5, 4), nn.Linear(4, 4)), show=False)
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()


class Scaled(nn.Module):
    """The example's encoder behind a change of its input."""

    def __init__(self, change):
        super().__init__()
        self.change, self.rest = change, networks()[0]

    def forward(self, x):
        return self.rest(self.change(x))


class Viewed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.linear = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4 * 16 * 16, 6)

    def forward(self, x):
        h = self.conv(x)
        return self.linear(h.view(len(h), -1))


def tied() -> nn.Module:
    encoder = networks()[0]
    encoder.again = encoder.head
    return encoder


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (lambda: Scaled(lambda x: x.mul_(2).sub_(1)), "Scaled modifies its input"),
        (Viewed, r"images come channels last, so write .flatten\(1\)"),
        (tied, "one tensor under two names, head.weight and again.weight"),
    ],
    ids=["in place", "view", "tied"],
)
def test_what_would_fail_or_go_wrong_in_training_is_told_before_it(tmp_path, tiny_data, encoder, message):
    with pytest.raises(ValueError, match=message):
        trained(tmp_path / "run", tiny_data, networks=(encoder(), networks()[1]))
    assert not (tmp_path / "run").exists()


def test_a_decoder_or_a_head_that_changes_its_input_is_told(tmp_path, tiny_data):
    encoder, decoder = networks()
    clipping = nn.Sequential(nn.ReLU(inplace=True), decoder)
    with pytest.raises(ValueError, match="Sequential modifies its input"):
        trained(tmp_path / "run", tiny_data, networks=(encoder, clipping))
    encoder.head = nn.Sequential(nn.ReLU(inplace=True), encoder.head)
    with pytest.raises(ValueError, match="Encoder modifies its input"):
        trained(tmp_path / "run", tiny_data, "infowgan-gp", networks=(encoder, decoder))
    assert not (tmp_path / "run").exists()


def test_networks_that_cannot_learn_are_told(tmp_path, tiny_data):
    encoder, decoder = networks()
    options = {"num_latents": 6, "size": "small", "show": False, "steps": 2, "evaluate": False}
    with pytest.warns(UserWarning, match="no parameter of the encoder has requires_grad"):
        qlae.train("qlae", tiny_data, out=tmp_path / "a", networks=(encoder.requires_grad_(False), decoder), **options)
    with pytest.warns(UserWarning, match="the decoder is in evaluation mode"):
        qlae.train("qlae", tiny_data, out=tmp_path / "b", networks=(networks()[0], decoder.eval()), **options)


def test_a_part_in_evaluation_mode_stays_in_it(tmp_path, tiny_data):
    encoder, decoder = networks()
    encoder.body[2].eval()
    run = trained(tmp_path / "run", tiny_data, networks=(encoder, decoder), evaluate=False)
    assert int(checkpoint.load(run.path).tensors["weights.encoder.body.2.num_batches_tracked"]) == 0
