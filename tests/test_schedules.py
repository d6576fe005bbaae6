"""Schedules of the learning rate, the weight decay and single loss weights: closed forms, exact resume, refusals."""

import math

import numpy as np
import pytest
import torch

import qlae
from qlae.config import DataConfig, OptimizerConfig, TrainingConfig
from qlae.observations import square_images
from qlae.ops.dispatch import Implementation, implementation
from qlae.resolving import resolve
from qlae.runs import checkpoint
from qlae.schedules import LearningRateSchedule, curve_factor, step_curve, warm_up_curve
from qlae.training.optimizer import AdamW, FlatParameters, Rates

DATA = DataConfig("shapes3d", square_images(16))


def factors(schedule: LearningRateSchedule, steps: int) -> np.ndarray:
    return np.array([float(schedule.factor(torch.tensor(float(t)), steps)) for t in range(1, steps + 1)])


def test_constant_is_one():
    assert (factors(LearningRateSchedule(), 10) == 1).all()
    assert LearningRateSchedule().is_constant


def test_linear_falls_over_the_last_part_to_its_floor():
    values = factors(LearningRateSchedule("linear", decay_steps=4, floor=0.2), 10)
    assert values == pytest.approx([1] * 6 + [1.0, 0.8, 0.6, 0.4])  # the eleventh would have the floor
    assert LearningRateSchedule("linear", 4).ends


def test_cosine_by_hand():
    values = factors(LearningRateSchedule("cosine", decay_steps=10), 10)
    assert values == pytest.approx([(1 + math.cos(math.pi * i / 10)) / 2 for i in range(10)], abs=1e-6)


def test_warm_up_of_the_learning_rate():
    assert factors(LearningRateSchedule(warm_up=4), 6) == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])
    both = factors(LearningRateSchedule("linear", decay_steps=2, warm_up=2), 4)
    assert both == pytest.approx([0.5, 1, 1, 0.5])


@pytest.mark.parametrize(
    ("curve", "number", "factor"),
    [
        (warm_up_curve(10), 4, 0.4),
        (warm_up_curve(10), 25, 1.0),
        (step_curve(100), 50, 0.0),
        (step_curve(100), 51, 1.0),
        (((10, 2.0), (20, 1.0), (40, 0.0)), 5, 2.0),
        (((10, 2.0), (20, 1.0), (40, 0.0)), 15, 1.5),
        (((10, 2.0), (20, 1.0), (40, 0.0)), 30, 0.5),
        (((10, 2.0), (20, 1.0), (40, 0.0)), 99, 0.0),
    ],
)
def test_curves_by_hand(curve, number, factor):
    assert float(curve_factor(curve, torch.tensor(float(number)))) == pytest.approx(factor, abs=1e-6)


OPTIONS = [
    {"schedule": "linear"},
    {"schedule": "cosine", "decay_steps": 30, "floor": 0.1, "learning_rate_warm_up": 5},
    {"weight_decay_schedule": "step"},
    {"weight_schedules": {"quantize": [[0, 0.0], [20, 1.0]]}},
]


def train(data, out, **options):
    options = {"size": "small", "batch_size": 8, "steps": 60, "show": False, "evaluate": False} | options
    return qlae.train("qlae", data, out=out, **options)


def tensors(run):
    return {name: t for name, t in checkpoint.load(run.path).tensors.items() if not name.startswith("window")}


class Stop(qlae.Callback):
    """Interrupts a training at its first row of the log, as Ctrl-C would."""

    def on_checkpoint(self, step, path):
        if step >= 10:
            import signal

            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options)))
def test_an_interrupted_run_with_a_schedule_resumes_exactly(tmp_path, tiny_data, options):
    whole = train(tiny_data, tmp_path / "whole", **options)
    with pytest.raises(KeyboardInterrupt):
        train(tiny_data, tmp_path / "parts", callbacks=[Stop()], checkpoint_seconds=0.0, **options)
    assert checkpoint.load(tmp_path / "parts").state["step"] < 60
    parts = qlae.resume(tmp_path / "parts", show=False, evaluate=False)
    first, second = tensors(whole), tensors(parts)
    assert all(torch.equal(first[name], second[name]) for name in first)
    plain = tensors(train(tiny_data, tmp_path / "plain"))
    assert not torch.equal(first["weights.encoder.head.weight"], plain["weights.encoder.head.weight"])


@pytest.mark.parametrize("choice", [Implementation.FUSED, Implementation.PLAIN])
def test_factors_scale_the_learning_rate_and_the_weight_decay(choice):
    """A step with factors is a step with the scaled constants, for decayed parameters and for others."""
    training = TrainingConfig(schedule=LearningRateSchedule(warm_up=4), weight_decay_schedule=((0, 0.25),), steps=10)
    ends = []
    for scheduled in (True, False):
        config = OptimizerConfig(learning_rate=0.01, weight_decay=0.5)
        if not scheduled:  # the factors at update 2 of 4 are a half and a quarter
            config = OptimizerConfig(learning_rate=0.005, weight_decay=0.125)
        parameters = [torch.nn.Parameter(torch.linspace(-1, 1, 9)), torch.nn.Parameter(torch.linspace(0, 3, 5))]
        rates = Rates(training if scheduled else None, torch.device("cpu"))
        optimizer = AdamW(FlatParameters([parameters[:1], parameters[1:]]), config, rates)
        rates.update(torch.tensor(2.0))
        with implementation(choice):
            for _ in range(3):
                optimizer.step([torch.sin(parameter.detach()) for parameter in parameters])
        ends.append([parameter.detach().clone() for parameter in parameters])
    assert all(torch.allclose(a, b, atol=1e-7) for a, b in zip(*ends, strict=True))


def test_a_decaying_run_cannot_be_lengthened(tmp_path, tiny_data):
    train(tiny_data, tmp_path / "run", schedule="linear")
    with pytest.raises(ValueError, match=r"falls towards update 60, so a run of 90 updates is another run"):
        qlae.resume(tmp_path / "run", steps=90, show=False)
    with pytest.raises(ValueError, match=r"training\.steps is 60, asked for 90.*qlae train --resume"):
        train(tiny_data, tmp_path / "run", schedule="linear", steps=90)


def test_each_weight_has_a_schedule_of_its_own():
    config = resolve("qlae", DATA, 2, weight_schedules={"commit": [[0, 0], [100, 1]]})
    assert config.objective.schedules == {"commit": ((0, 0.0), (100, 1.0))}
    both = resolve("qlae", DATA, 2, warm_up=50, weight_schedules={"commit": [[0, 0], [100, 1]]})
    assert both.objective.schedules == {"commit": ((0, 0.0), (100, 1.0)), "quantize": warm_up_curve(50)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "cosin"}, r'unknown schedule .cosin.: did you mean "cosine"'),
        (
            {"schedule": "linear", "decay_steps": 300, "steps": 200},
            r"decay_steps must lie between 1 and the 200 updates",
        ),
        ({"schedule": "linear", "floor": 2.0}, r"floor must lie in \[0, 1\]"),
        ({"weight_schedules": {"kl": [[0, 1]]}}, r"unknown loss term of qlae .kl."),
        ({"weight_schedules": {"commit": "soon"}}, "the schedule of commit must list pairs"),
        (
            {"weight_schedules": {"commit": [[5, 1], [2, 0]]}},
            r"the schedule of commit must list its updates in ascending",
        ),
        ({"weight_schedules": ["commit"]}, r"weight_schedules must map loss terms to their values"),
        ({"weight_decay_schedule": [[0, -1]]}, r"weight_decay_schedule must list pairs"),
        ({"learning_rate_warm_up": -3}, r"learning_rate_warm_up must be a whole number of at least 0"),
    ],
)
def test_bad_schedules_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        resolve("qlae", DATA, 2, **options)


def test_options_without_effect_cause_a_warning():
    with pytest.warns(UserWarning, match="the learning rate is constant, so decay_steps and floor change nothing"):
        resolve("qlae", DATA, 2, decay_steps=100)
