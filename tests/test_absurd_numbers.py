"""Absurd numbers get an answer at once, with the figure that rules them out."""

import json
import shutil

import pytest

import qlae
from qlae._checks import whole_number
from qlae._io import read_sealed
from qlae.data import data_config
from qlae.resolving import resolve


def refused(tmp_path, data, match, **options):
    with pytest.raises(ValueError, match=match):
        qlae.train("qlae", data, out=tmp_path / "run", size="small", steps=1, show=False, **options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"num_latents": 10**9}, "num_latents must be a whole number of at most 1,048,576, got 1000000000"),
        ({"num_values": 10**9}, "num_values must be a whole number of at most 16,777,216, got 1000000000"),
        ({"num_latents": 10**6}, r"batches of 64 images of 16×16 with 1,000,000 latents of 4 values need at least"),
        ({"num_values": 10**7}, r"4 latents of 10,000,000 values need at least 21 GB of memory, and cpu has \d+ GB"),
        ({"batch_size": 10**8}, "batches of 100,000,000 images of 16×16 .* need at least 1,2.. GB of memory"),
        ({"batch_size": 10**30}, "batch_size must be a whole number of at most 9,007,199,254,740,992, got 1000"),
        ({"warm_up": 10**21}, "warm_up must be a whole number of at most 9,007,199,254,740,992"),
        ({"threads": 10**6}, "threads must be a whole number of at most "),
        ({"device": "meta"}, "device must be auto, cpu, cuda, mps or cuda:N, got 'meta'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_training_refuses(tmp_path, tiny_data, monkeypatch, options, match):
    monkeypatch.setattr("qlae.runs.load_model.total_memory", lambda device: 20 * 10**9)
    refused(tmp_path, tiny_data, match, **options)


def test_a_long_number_is_cut_in_messages():
    with pytest.raises(ValueError, match=r"steps must be a whole number of at most .*, got 1000.*…$"):
        whole_number("steps", 10**100)
    with pytest.raises(ValueError, match="got a number of thousands of digits"):
        whole_number("steps", 10**5000)


def test_a_config_with_absurd_numbers_is_not_loaded(tmp_path, tiny_data, monkeypatch):
    run = qlae.train("qlae", tiny_data, out=tmp_path / "run", size="small", steps=2, show=False, evaluate=False)
    for field, number, match in (
        (
            "num_latents",
            10**30,
            r"cannot be read \(num_latents must be a whole number of at most 1,048,576",
        ),
        ("num_values", 10**9, "num_values must be a whole number of at most 16,777,216"),
        ("num_values", 10**7, "batches of 1 images of 16×16 with 4 latents of 10,000,000 values need at least 1 GB"),
    ):
        monkeypatch.setattr("qlae.runs.load_model.total_memory", lambda device: 10**8)
        folder = tmp_path / f"{field}{number}"
        shutil.copytree(run.path, folder)
        config = read_sealed(run.config_path)
        config["latent"][field] = number
        (folder / "config.json").write_text(json.dumps(config))
        with pytest.raises(ValueError, match=match):
            qlae.load(folder)


def test_ordinary_numbers_pass(tiny_data):
    config = resolve("qlae", data_config(tiny_data), 2, num_values=512, num_latents=64, batch_size=1024)
    assert config.latent.num_values == 512
