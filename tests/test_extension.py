"""Parts from outside the package: the examples' latent space and objective, through the whole life of a run."""

import json
import os
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import qlae
from qlae._imports import import_modules
from qlae._io import read_sealed
from qlae.cli import main
from qlae.config import DataConfig
from qlae.data import data_config
from qlae.explorer import open_run
from qlae.models import build_model
from qlae.models.latents import LatentConfig
from qlae.models.networks import NetworksConfig
from qlae.presets import MODELS, ModelSpec, register_model
from qlae.registry import LATENTS, NETWORKS, OBJECTIVES
from qlae.resolving import resolve
from qlae.runs import checkpoint
from qlae.runs.directory import Run

ROOT = Path(__file__).parents[1]
EXAMPLES = {
    "my-factor-vae": ROOT / "examples" / "own_objective.py",
    "stochastic-qlae": ROOT / "examples" / "own_latent.py",
}


@pytest.fixture(autouse=True)
def _alone():
    """Models that a test registers are gone after it."""
    known = dict(MODELS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)  # so short a training may leave no active latent
        yield
    MODELS.clear()
    MODELS.update(known)


@pytest.fixture(params=EXAMPLES)
def model(request) -> str:
    return imported(request.param)


def imported(name: str) -> str:
    """The name of an example's model, which is registered also if an earlier test has imported the module."""
    import_modules([str(EXAMPLES[name])])
    module = sys.modules[EXAMPLES[name].stem]
    register_model(module.FACTOR_VAE if name == "my-factor-vae" else module.STOCHASTIC_QLAE)
    return name


def train(model, data, out, **options):
    return qlae.train(model, data, out=out, **{"size": "small", "batch_size": 8, "steps": 130, "show": False} | options)


def tensors(run: Run) -> dict[str, torch.Tensor]:
    return {name: t for name, t in checkpoint.load(run.path).tensors.items() if not name.startswith("window")}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_the_whole_life_of_a_run(tmp_path, tiny_data, model):
    whole = train(model, tiny_data, tmp_path / "whole")
    train(model, tiny_data, tmp_path / "parts", steps=37, evaluate=False)
    parts = qlae.resume(tmp_path / "parts", steps=130, show=False)
    assert same(tensors(whole), tensors(parts))
    assert whole.results["averaged"] == parts.results["averaged"]
    assert 0 <= whole.results["averaged"]["infom"] <= 1
    content = read_sealed(whole.config_path)
    modules = {content["latent"].get("module"), content["objective"].get("module")} - {None}
    assert modules == {EXAMPLES[model].stem}

    loaded = qlae.load(whole.path)
    images = np.asarray(tiny_data.images)
    assert np.array_equal(loaded.decode(loaded.latents(images)), loaded.reconstruct(images))
    handed_on = qlae.load(loaded.save_pretrained(tmp_path / "export"))
    assert f"import {EXAMPLES[model].stem}  # registers" in (tmp_path / "export" / "README.md").read_text()
    assert np.array_equal(handed_on.latents(images), loaded.latents(images))
    assert open_run(whole.path, data=tiny_data, show=False).describe()["model"] == model


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_killed_run_resumes_bit_for_bit_from_the_command_line(tmp_path, name):
    options = ["--size", "small", "--resolution", "8", "--sources", "floor hue", "shape", "--batch-size", "8"]
    options += ["--steps", "150", "--threads", "1", "--import", str(EXAMPLES[name]), "--quiet", "--no-evaluate"]
    command = [sys.executable, "-m", "qlae", "train", name, *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    often = ["--checkpoint-seconds", "0"]
    killed = subprocess.Popen([*command, *often, "--out", str(tmp_path / "killed")], env=environment)
    until = time.monotonic() + 120
    while not (tmp_path / "killed" / "checkpoint.json").exists() and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.2)
    killed.kill()
    killed.wait()
    assert 0 < checkpoint.load(tmp_path / "killed").state["step"] < 150
    subprocess.run([*command, "--out", str(tmp_path / "whole")], env=environment, check=True)
    resumed = [sys.executable, "-m", "qlae", "train", "--resume", str(tmp_path / "killed"), "--threads", "1"]
    subprocess.run([*resumed, "--quiet", "--no-evaluate", "--import", str(EXAMPLES[name])], env=environment, check=True)
    assert same(tensors(Run(tmp_path / "killed")), tensors(Run(tmp_path / "whole")))


def test_loading_without_the_import_names_the_module(tmp_path, tiny_data, model):
    run = train(model, tiny_data, tmp_path / "run", steps=5, evaluate=False)
    code = f"import qlae; qlae.load({str(run.path)!r})"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    module = EXAMPLES[model].stem
    assert f"is not registered; it comes from {module}. Import that module first: `import {module}`" in done.stderr
    command = [sys.executable, "-m", "qlae", "evaluate", str(run.path), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert f"--import {module}" in done.stderr
    assert "Traceback" not in done.stderr
    assert "damaged" not in done.stderr  # the file is as it should be


def test_takes_part_in_a_study(tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'size = "small"\nsteps = 12\nbatch_size = 8\nrerun_seeds = 1\ntune = false\nmetrics = []\nnum_samples = 30\n'
        'models = ["my-factor-vae", "ae"]\n[data.shapes3d]\nresolution = 8\nsources = ["floor hue", "shape"]\n'
    )
    imported("my-factor-vae")
    arguments = ["study", str(plan), "--out", str(tmp_path / "study"), "--workers", "1", "--quiet"]
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--import", str(EXAMPLES["my-factor-vae"])])
    assert stop.value.code in (0, None), capsys.readouterr()
    results = Run(tmp_path / "study" / "runs" / "shapes3d" / "my-factor-vae" / "s2").results
    assert results["model"] == "my-factor-vae"
    assert "my-factor-vae" in (tmp_path / "study" / "report" / "tables.md").read_text()


def test_factor_vae_by_hand(tiny_data):
    """The total correlation is the mean difference of the discriminator's logits, in nats per image."""
    imported("my-factor-vae")
    config = resolve("my-factor-vae", data_config(tiny_data), 2, size="small", weights={"total_correlation": 35.0})
    trained = build_model(config)
    vae, discriminator = OBJECTIVES.build(config.objective).players(trained)
    images = torch.rand(6, 3, 16, 16)
    terms = vae.loss(images, torch.Generator().manual_seed(1), torch.tensor(1.0))
    z = trained(images, torch.Generator().manual_seed(1)).latent.z
    logits = trained.parts["discriminator"](z)
    assert torch.allclose(terms["total_correlation"] * 768, (logits[:, 0] - logits[:, 1]).mean(), atol=1e-5)
    total = terms["reconstruct"] + terms["kl"] + 35 * terms["total_correlation"]
    assert torch.allclose(terms["loss"], total, atol=1e-6)
    gradients = torch.autograd.grad(
        discriminator.loss(images, None, torch.tensor(1.0))["loss"],
        [*trained.encoder.parameters(), *trained.parts["discriminator"].parameters()],
        allow_unused=True,
    )
    num_encoder = len(list(trained.encoder.parameters()))
    assert all(gradient is None for gradient in gradients[:num_encoder])
    assert all(gradient is not None for gradient in gradients[num_encoder:])
    assert discriminator.optimizer.beta1 == 0.5


@dataclass(frozen=True)
class DenseConfig(NetworksConfig):
    width: int = 32


class DensePair:
    """An encoder of one's own before the paper's decoder."""

    @staticmethod
    def from_config(config, *, observations, latent):
        layers = (
            nn.Linear(observations.num_entries, config.width),
            nn.ReLU(),
            nn.Linear(config.width, latent.num_inputs),
        )
        return nn.Sequential(nn.Flatten(), *layers), None


@pytest.mark.usefixtures("own_registrations")
def test_a_registered_pair_of_networks(tmp_path, tiny_data):
    NETWORKS.register("dense", DenseConfig)(DensePair)
    run = train("qlae", tiny_data, tmp_path / "run", networks="dense", steps=20)
    assert type(run.config.networks) is DenseConfig
    loaded = qlae.load(run.path)
    assert isinstance(loaded.encoder, nn.Sequential)
    assert type(loaded.decoder).__name__ == "StyleDecoder"


def test_one_network_of_the_two(tmp_path, tiny_data):
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(768, 4))
    run = train("qlae", tiny_data, tmp_path / "run", networks=(encoder, None), steps=20)
    assert run.config.networks.own == ("encoder",)
    loaded = qlae.load(run.path, networks=(encoder, None))
    assert type(loaded.decoder).__name__ == "StyleDecoder"
    assert not torch.equal(loaded.encoder[1].weight, encoder[1].weight)
    with pytest.raises(ValueError, match=r"custom encoder; pass the same in Python: networks=\(encoder, None\)"):
        qlae.load(run.path)
    with pytest.raises(ValueError, match=r"networks takes two torch modules.*got \(NoneType, NoneType\)"):
        train("qlae", tiny_data, tmp_path / "other", networks=(None, None))


def test_a_specification_instead_of_a_name(tmp_path, tiny_data):
    spec = ModelSpec(
        "three-values",
        "quantized",
        {"reconstruct": 1.0, "quantize": 0.1, "commit": 0.1},
        latent_options={"num_values": 3},
        training={"learning_rate": 5e-4},
    )
    run = train(spec, tiny_data, tmp_path / "run", steps=5, evaluate=False)
    assert run.config.model == "three-values"
    assert run.config.latent.num_values == 3
    assert run.config.training.optimizer.learning_rate == 5e-4
    assert qlae.load(run.path).latent.num_values == (3, 3, 3, 3)  # which needs no specification
    faster = train(spec, tiny_data, tmp_path / "faster", steps=5, evaluate=False, learning_rate=1e-2)
    assert faster.config.training.optimizer.learning_rate == 1e-2


def test_presets_are_open(tmp_path, tiny_data, monkeypatch):
    monkeypatch.setitem(MODELS, "mine", ModelSpec("mine", "continuous", {"reconstruct": 1.0}))
    assert train("mine", tiny_data, tmp_path / "run", steps=5, evaluate=False).config.model == "mine"
    with pytest.raises(ValueError, match="there is a model 'qlae' already; give yours another name"):
        register_model(ModelSpec("qlae", "continuous", {}))


def test_what_tables_refuse():
    with pytest.raises(ValueError, match=r"the latent space 'quantized' is already registered by qlae"):
        LATENTS.register("quantized", LatentConfig)(DensePair)
    with pytest.raises(ValueError, match="must be a subclass of LatentConfig"):
        LATENTS.register("new", DenseConfig)

    class NotFrozen:
        pass

    with pytest.raises(ValueError, match="the config of the latent space 'new' must be a frozen dataclass"):
        LATENTS.register("new", NotFrozen)
    with pytest.raises(ValueError, match=r'unknown latent space .quantised.: did you mean "quantized"'):
        LATENTS["quantised"]
    spec = ModelSpec("mine", "quantized", {"reconstruct": 1.0}, latent_options={"num_value": 3})
    with pytest.raises(ValueError, match=r"unknown setting of the latent space quantized .num_value.: did you mean"):
        resolve(spec, DataConfig("shapes3d"), 6)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_run(tmp_path, tiny_data, monkeypatch, name):
    imported(name)
    monkeypatch.setattr(qlae, "load_data", lambda *_, **__: tiny_data, raising=False)
    run = sys.modules[EXAMPLES[name].stem].main(str(tmp_path / "run"), steps=20)
    assert run.results["model"] == name


def test_networks_of_one_s_own_in_a_study(tmp_path, monkeypatch, capsys):
    module = tmp_path / "my_networks.py"
    module.write_text(
        "from torch import nn\nimport qlae\nfrom qlae.models.networks import NetworksConfig\n"
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass FlatConfig(NetworksConfig):\n    pass\n"
        "@qlae.NETWORKS.register('flat', FlatConfig)\nclass Flat:\n    @staticmethod\n"
        "    def from_config(config, *, observations, latent):\n"
        "        return nn.Sequential(nn.Flatten(), nn.Linear(observations.num_entries, latent.num_inputs)), None\n"
    )
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'size = "small"\nsteps = 12\nbatch_size = 8\nrerun_seeds = 1\ntune = false\nmetrics = []\nnum_samples = 30\n'
        '[models.flat-ae]\nmodel = "ae"\nnetworks = "flat"\n'
        '[data.shapes3d]\nresolution = 8\nsources = ["floor hue", "shape"]\n'
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["study", str(plan), "--out", "study", "--workers", "1", "--quiet", "--import", "my_networks"])
    assert stop.value.code in (0, None), capsys.readouterr()
    run = Run(tmp_path / "study" / "runs" / "shapes3d" / "flat-ae" / "s2")
    assert json.loads(run.config_path.read_text())["networks"]["kind"] == "flat"
    assert "psnr" in run.results["averaged"]


def test_the_next_command_repeats_the_import_and_resume_names_what_to_leave_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = str(EXAMPLES["stochastic-qlae"])
    imported("stochastic-qlae")
    options = ["--size=small", "--resolution=8", "--sources=floor hue", "--steps=2", "--no-evaluate", "--quiet"]
    with pytest.raises(SystemExit) as stop:  # --import takes one module, so a model may follow it
        main(["train", "--import", file, "stochastic-qlae", *options, "--out", "run"])
    assert stop.value.code in (0, None)
    assert capsys.readouterr().out.endswith(f"Next: qlae evaluate run --import {file}\n")
    with pytest.raises(SystemExit) as stop:
        main(["train", "--resume", "run", "--seed", "3", "--resolution", "16"])
    assert stop.value.code == 2
    assert "leave out --resolution, --seed; only --steps" in capsys.readouterr().err
