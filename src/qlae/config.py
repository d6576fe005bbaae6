"""Frozen dataclasses that say everything about one run, to and from JSON.

A config is plain data: it imports no torch and executes nothing. ``presets.py`` fills one in from names.
"""

import dataclasses
import math
import types
import typing
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeVar

from ._checks import values_per_latent, whole_number

PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class DataConfig:
    """Which images."""

    name: str
    resolution: int = 64
    origin: str = "rendered"  # rendered, real
    num_images: int = 0
    source_names: tuple[str, ...] = ()
    recipe: dict[str, Any] | None = None  # what `load_data` took to make them; None: only the caller has them
    checksum: str | None = None  # of images from files


@dataclass(frozen=True)
class NetworkConfig:
    """Which encoder and decoder."""

    size: str = "full"  # full, small
    form: str = "paper"  # paper, official
    own: bool = False  # the caller's modules instead of ours; only the caller has them


@dataclass(frozen=True)
class LatentConfig:
    """Which latent space."""

    kind: str  # continuous, gaussian, uniform, quantized, vector-quantized, finite-scalar
    num_latents: int
    num_values: int | tuple[int, ...] = 10  # one number for all latents, or one each
    vector_size: int = 64  # of vector-quantized
    shared: bool = False
    learned: bool = True  # whether the values of the codebooks move
    reduction: str = "sum"
    decomposed: bool = False  # the KL term in its three parts

    @property
    def has_codes(self) -> bool:
        """Whether latents take one of a few values, or vectors, each."""
        return self.kind in ("quantized", "vector-quantized", "finite-scalar")

    @property
    def values_each(self) -> tuple[int, ...]:
        """The numbers of values, one a latent."""
        return values_per_latent(self.num_latents, self.num_values)


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW for the networks; codebooks take the same without decay."""

    learning_rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float = 0.0
    decay_biases: bool = True
    clip: float | None = None  # elementwise bound on the gradients of decayed parameters


@dataclass(frozen=True)
class RunConfig:
    """One run: a model on a data set, from a seed."""

    model: str
    data: DataConfig
    network: NetworkConfig
    latent: LatentConfig
    objective: str = "autoencoding"  # autoencoding, adversarial
    weights: dict[str, float] = field(default_factory=dict)  # of the loss terms, by their names
    warm_up: int = 0  # updates over which the weights of the latent space's own terms rise from 0
    generator_period: int = 5  # adversarial: encoder and critic updates to one of the generator
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    batch_size: int = 128
    steps: int = 200_000
    seed: int = 0
    precision: str = "float32"  # of the networks' weights and activations: float32, bfloat16
    average_decay: float = 0.9995  # of the exponential average of the weights
    log_every: int = 100

    def __post_init__(self) -> None:
        counts = {
            "steps": self.steps,
            "batch_size": self.batch_size,
            "log_every": self.log_every,
            "resolution": self.data.resolution,
            "num_latents": self.latent.num_latents,
            "vector_size": self.latent.vector_size,
            "generator_period": self.generator_period,
        }
        for name, value in counts.items():
            whole_number(name, value)
        values_per_latent(self.latent.num_latents, self.latent.num_values)
        whole_number("warm_up", self.warm_up, at_least=0)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**62:
            raise ValueError(f"seed must be a whole number from 0 to 2^62, got {self.seed!r}")
        sizes = {
            "weight_decay": self.optimizer.weight_decay,
            **{f"the weight of {name}": weight for name, weight in self.weights.items()},
        }
        for name, size in (sizes | {"learning_rate": self.optimizer.learning_rate}).items():
            _require_number(name, size)
        for name, size in sizes.items():
            if not 0 <= size < math.inf:
                raise ValueError(f"{name} must not be negative, got {size}")
        if not 0 < self.optimizer.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be above 0, got {self.optimizer.learning_rate}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}")
        if not 0 <= self.average_decay < 1:
            raise ValueError(f"average_decay must lie in [0, 1), got {self.average_decay}")

    def to_dict(self) -> dict[str, Any]:
        """Nested plain dictionaries, ready for JSON."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_dict(content: dict[str, Any]) -> "RunConfig":
        """The config behind ``to_dict``; unknown or missing fields are errors."""
        return _build(RunConfig, content, "config")

    def difference(self, other: "RunConfig") -> dict[str, tuple[Any, Any]]:
        """Fields, dotted, in which two configs disagree.

        ``steps`` is left out, since a run may go on for longer, and the checksum where one of them knows none.
        """
        mine, theirs = _flatten(self.to_dict()), _flatten(other.to_dict())
        known = self.data.checksum is not None and other.data.checksum is not None
        keys = [key for key in mine | theirs if key != "steps" and (known or key != "data.checksum")]
        return {key: (mine.get(key), theirs.get(key)) for key in keys if mine.get(key) != theirs.get(key)}


def require_resolution(resolution: int) -> None:
    """An error for images that the paper's networks cannot take."""
    if resolution < 8 or resolution.bit_count() != 1:
        raise ValueError(
            f"the networks take square images of 8, 16, 32, 64, 128, … pixels a side (4·2^k), got {resolution}; "
            "resize the images or render them at one of these"
        )


def _require_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {value!r}")


T = TypeVar("T")


def _build(cls: type[T], content: Any, where: str) -> T:
    """A dataclass from nested dictionaries."""
    if not isinstance(content, dict):
        raise ValueError(f"{where} must be an object, got {type(content).__name__}")
    types_of = typing.get_type_hints(cls)
    unknown = sorted(set(content) - set(types_of))
    if unknown:
        raise ValueError(f"{where} has unknown fields: {', '.join(unknown)}; was it written by another version?")
    try:
        return cls(**{name: _value(types_of[name], value, f"{where}.{name}") for name, value in content.items()})
    except TypeError as error:
        raise ValueError(f"{where} is incomplete: {error}") from None


def _value(kind: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _build(typing.cast(type, kind), value, where)
    if isinstance(kind, types.UnionType):
        if value is None:
            return None
        options = [option for option in typing.get_args(kind) if option is not type(None)]
        listed = [option for option in options if typing.get_origin(option) is tuple]
        kind = listed[0] if listed and isinstance(value, list) else options[0]
    if typing.get_origin(kind) is tuple:
        return tuple(value)
    if typing.get_origin(kind) is dict:
        if not isinstance(value, dict):
            raise ValueError(f"{where} must be an object, got {value!r}")
        entry_kind = typing.get_args(kind)[1]
        return {key: _value(entry_kind, entry, f"{where}.{key}") for key, entry in value.items()}
    if kind is Any:
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise ValueError(f"{where} must be {kind.__name__}, got {value!r}")
    return value


def _flatten(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in content.items():
        flat |= _flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
