"""The runs committed under results/ are read and describe what the same options give today."""

import json
from pathlib import Path

import pytest

from qlae.config import RunConfig
from qlae.objectives.code_penalties import PENALTIES
from qlae.presets import MODELS
from qlae.resolving import resolve
from qlae.runs.directory import Run

RESULTS = Path(__file__).parents[1] / "results"
MODIFIED = (RESULTS / "known-sources", RESULTS / "negative-small")  # with other weights than their models have
FOLDERS = sorted(path.parent for path in RESULTS.rglob("config.json"))


@pytest.fixture(scope="module")
def configs():
    return {folder: RunConfig.from_dict(json.loads((folder / "config.json").read_text())) for folder in FOLDERS}


def test_committed_configs_are_those_of_today(configs):
    for folder, config in configs.items():
        assert json.loads((folder / "config.json").read_text()) == json.loads(json.dumps(config.to_dict())), folder
        if not any(folder.is_relative_to(modified) for modified in MODIFIED):
            assert config.difference(resolved_again(config)) == {}, folder


def resolved_again(config):
    """Return the config that the same model, data and options give now."""
    training, objective = config.training, config.objective
    chosen = {*PENALTIES, MODELS[config.model].tuned}  # terms whose weights are not the preset's
    return resolve(
        config.model,
        config.data,
        len(config.data.source_names),
        size=config.networks.size,
        form=config.networks.form,
        steps=training.steps,
        batch_size=training.batch_size,
        schedule=training.schedule.kind,
        num_latents=config.latent.num_latents,
        num_values=getattr(config.latent, "num_values", None),
        weight_decay=training.optimizer.weight_decay,
        weights={name: objective.weights[name] for name in chosen if name in objective.weights},
        weight_schedules={name: objective.schedules[name] for name in PENALTIES if name in objective.schedules},
        precision=training.precision,
        seed=training.seed,
    )


def test_there_are_committed_configs_of_every_kind(configs):
    assert {type(config.latent).__name__ for config in configs.values()} >= {
        *("QuantizedConfig", "VectorQuantizedConfig", "GaussianConfig", "ContinuousConfig", "UniformConfig")
    }
    assert {type(config.objective).__name__ for config in configs.values()} == {
        *("AutoencodingConfig", "AdversarialConfig", "TripodConfig", "TotalCorrelationConfig")
    }


def test_committed_results_are_read():
    runs = [Run(folder) for folder in FOLDERS if (folder / "results.json").exists()]
    assert all(0 <= run.results["averaged"]["infom"] <= 1 for run in runs)
