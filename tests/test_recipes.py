"""Recipes: they change defaults and nothing else, and what they change ends up in the config."""

import dataclasses
import re
from pathlib import Path

import pytest

from qlae.config import DataConfig
from qlae.presets import MODELS, RECIPES, ModelSpec
from qlae.resolving import resolve
from qlae.study.plan import Plan

SHAPES = DataConfig("shapes3d")


def test_the_paper_s_is_the_default():
    for model in MODELS:
        assert resolve(model, SHAPES, 6) == resolve(model, SHAPES, 6, recipe="paper")
    config = resolve("qlae", SHAPES, 6)
    assert (config.training.steps, config.training.schedule.kind, config.latent.num_values) == (200_000, "constant", 10)


def test_the_fast_one_changes_three_things():
    paper, fast = (resolve("qlae", SHAPES, 6, recipe=recipe) for recipe in ("paper", "fast"))
    assert fast.training.steps == 60_000
    assert dataclasses.asdict(fast.training.schedule) == {
        **{"kind": "linear", "decay_steps": 30_000, "floor": 0.0, "warm_up": 0}
    }
    assert fast.objective.weights == paper.objective.weights | {"entropy": 0.02}
    assert set(fast.objective.schedules) == {"entropy"}
    back = dataclasses.replace(fast.training, steps=paper.training.steps, schedule=paper.training.schedule)
    assert dataclasses.replace(fast, training=back, objective=paper.objective) == paper


def test_what_is_asked_for_stays():
    config = resolve("qlae", SHAPES, 6, recipe="fast", steps=500, schedule="constant", weights={"entropy": 0.1})
    assert (config.training.steps, config.training.schedule.kind) == (500, "constant")
    assert config.objective.weights["entropy"] == 0.1
    assert config.objective.schedules["entropy"] == ((0, 0.0), (30, 0.0), (150, 1.0), (300, 1.0), (450, 0.25))
    spec = dataclasses.replace(MODELS["qlae"], name="own", weights=MODELS["qlae"].weights | {"entropy": 0.3})
    assert resolve(spec, SHAPES, 6, recipe="fast").objective.weights["entropy"] == 0.3
    assert not resolve(spec, SHAPES, 6, recipe="fast").objective.schedules  # its own weight is constant


def test_what_a_model_is_stays():
    assert resolve("vq-vae", SHAPES, 6, recipe="fast").latent.num_values == 512
    assert resolve("tripod", SHAPES, 6, recipe="fast").latent.num_values == 12
    for model in ("ae", "vq-vae", "beta-tcvae", "tripod"):
        assert resolve(model, SHAPES, 6, recipe="fast").objective == resolve(model, SHAPES, 6).objective
    small = resolve("qlae", SHAPES, 6, recipe="fast", size="small")
    assert small.training.steps == resolve("qlae", SHAPES, 6, size="small").training.steps
    assert small.training.schedule.kind == "linear"
    assert small.latent == resolve("qlae", SHAPES, 6, size="small").latent


def test_the_page_says_which_models_get_what():
    page = (Path(__file__).parents[1] / "docs" / "recipe.md").read_text()
    table = page.partition("| model | learning rate with `fast` |")[2].partition("\n\n")[0]
    listed = []
    for _, models, rate, penalty, _ in (line.split("|") for line in table.splitlines()[2:]):
        for model in re.findall("`(.*?)`", models):
            config = resolve(model, SHAPES, 6, recipe="fast")
            kind = "linear" if "falls linearly in the second half" in rate else "cosine"
            share = 2 if kind == "linear" else 1
            assert config.training.steps == 60_000
            assert (config.training.schedule.kind, config.training.schedule.decay_steps) == (kind, 60_000 / share)
            assert ("entropy" in config.objective.weights) == (penalty.strip() == "yes"), model
            listed.append(model)
            if penalty.strip() != "yes":
                with pytest.raises(ValueError, match="unknown loss term"):
                    resolve(model, SHAPES, 6, weights={"entropy": 0.01})
    assert sorted(listed) == sorted(name for name in MODELS if "gan" not in name)


def test_steps_that_are_no_number_are_refused():
    for recipe in RECIPES:
        for wrong in ("many", -3, 0, 2.5):
            with pytest.raises(ValueError, match="steps must be a whole number of at least 1"):
                resolve("qlae", SHAPES, 6, recipe=recipe, steps=wrong)


def test_not_for_gans():
    with pytest.raises(ValueError, match="the recipe 'fast' is for autoencoders, and qlinfowgan-gp is a GAN"):
        resolve("qlinfowgan-gp", SHAPES, 6, recipe="fast")
    with pytest.raises(ValueError, match=r'unknown recipe .fats.: did you mean "fast"'):
        resolve("qlae", SHAPES, 6, recipe="fats")


def test_plans_name_them():
    plan = Plan.from_content({"recipe": "fast", "data": ["shapes3d"], "models": ["qlae"]})
    assert plan.models[0].options["recipe"] == "fast"
    assert set(RECIPES) == {"paper", "fast"}


def test_a_model_s_own_number_can_be_set_back_to_0():
    spec = ModelSpec("own", "quantized", {"reconstruct": 1.0, "quantize": 1.0, "commit": 1.0}, training={"warm_up": 50})
    assert resolve(spec, SHAPES, 6).objective.schedules
    assert not resolve(spec, SHAPES, 6, warm_up=0).objective.schedules
    spec = dataclasses.replace(spec, training={"schedule": "linear", "floor": 0.5, "learning_rate_warm_up": 9})
    config = resolve(spec, SHAPES, 6, floor=0.0, learning_rate_warm_up=0)
    assert (config.training.schedule.floor, config.training.schedule.warm_up) == (0.0, 0)
