"""One parser for everything from a file: errors name the field, its value and what is allowed."""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from qlae._parsing import decode_json, decode_toml, parse


@dataclass(frozen=True)
class Rate:
    steps: int = 3
    factor: float = 0.5
    form: Literal["flat", "round"] = "flat"
    curve: tuple[tuple[int, float], ...] = ()
    size: int | tuple[int, int] | None = None
    weights: dict[str, float] = field(default_factory=dict)

    def __post_init__(self):
        if self.steps < 0:
            raise ValueError("steps must not be negative")


@dataclass(frozen=True)
class Plan:
    name: str
    rate: Rate = field(default_factory=Rate)
    rates: dict[str, Rate] = field(default_factory=dict)
    notes: Any = None


def nested(depth):
    content: Any = []
    for _ in range(depth):
        content = [content]
    return content


def test_plain_data_become_objects():
    content = {"name": "x", "rate": {"factor": 1, "curve": [[0, 1]], "size": [2, 3], "weights": {"a": 1}}}
    plan = parse(content, Plan, "plan")
    assert plan == Plan("x", Rate(factor=1.0, curve=((0, 1.0),), size=(2, 3), weights={"a": 1.0}))
    assert type(plan.rate.factor) is float
    assert vars(plan) == vars(dataclasses.replace(plan))  # defaults are attributes of the object too
    assert vars(plan.rate) == vars(dataclasses.replace(plan.rate))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": {"steps": "3"}}, "plan.rate.steps must be int, got '3'"),
        ({"rate": {"steps": True}}, "plan.rate.steps must be int, got True"),
        ({"rate": {"steps": 1.0}}, "plan.rate.steps must be int, got 1.0"),
        ({"rate": {"steps": -1}}, "plan.rate: steps must not be negative"),
        ({"rate": {"factor": math.nan}}, "plan.rate.factor must be a finite number, got nan"),
        ({"rate": {"factor": 10**400}}, "plan.rate.factor must be a finite number, got 1000"),
        ({"rate": {"form": "square"}}, "plan.rate.form must be one of 'flat', 'round', got 'square'"),
        ({"rate": {"curve": [[0, 1], [5, "x"]]}}, r"plan.rate.curve\[1\]\[1\] must be float, got 'x'"),
        ({"rate": {"curve": [[0]]}}, r"plan.rate.curve\[0\] is wrong \(Expected a list of length 2.*got \[0\]"),
        ({"rate": {"size": "large"}}, "plan.rate.size must be int or a list or null, got 'large'"),
        ({"rate": {"size": [1, None]}}, r"plan.rate.size\[1\] must be int, got None"),
        ({"rate": {"weights": {"a": 1, "b": []}}}, r"plan.rate.weights.b must be float, got \[\]"),
        ({"rates": {"x": {"steps": None}}}, "plan.rates.x.steps must be int, got None"),
        ({"rates": {"x": {"stpes": 1}}}, 'plan.rates.x has unknown fields: stpes .did you mean "steps"'),
        ({"name": None}, "plan.name must be str, got None"),
        ({"rate": 5}, "plan.rate must be an object, got 5"),
        ({"colour": "red"}, "plan has unknown fields: colour"),
        ({"notes": nested(100_000)}, "plan is nested too deeply"),
        ({"notes": [1, {"a": math.inf}]}, r"plan.notes\[1\].a must be a finite number, got inf"),
    ],
)
def test_errors_name_the_field_and_the_value(change, message):
    with pytest.raises(ValueError, match=message):
        parse({"name": "x"} | change, Plan, "plan")


def test_what_is_missing_or_no_object_is_an_error():
    with pytest.raises(ValueError, match="plan is incomplete: it has no 'name'"):
        parse({}, Plan, "plan")
    with pytest.raises(ValueError, match=r"plan must be an object, got \[1\]"):
        parse([1], Plan, "plan")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"NaN", b"[Infinity]", b'"\xff"', b'"\\ud800"', b"[" * 100_000, b"1e999", b"9" * 5000]
)
def test_what_is_no_json_is_one_error(content):
    with pytest.raises(ValueError, match="it is not JSON: "):
        decode_json(content)


@pytest.mark.parametrize("content", [b"=", b"a = 1\na = 2", b"a = '\xff'", b"a = " + b"[" * 100_000])
def test_what_is_no_toml_is_one_error(content):
    with pytest.raises(ValueError, match="it is not TOML: "):
        decode_toml(content)
