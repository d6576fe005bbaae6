"""Frozen dataclasses that describe one run completely, to and from JSON.

A run is data · networks · latent · objective · training. Networks, latent space and objective are open: each kind owns
its config and is listed in a table of ``registry.py``. ``presets.py`` fills a config in from a few names.

A config is plain data: it executes nothing.
"""

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ._checks import MAX_LATENTS, MAX_SEED, require_known, require_not_negative, values_per_latent, whole_number
from ._parsing import parse
from .observations import Observations, square_images
from .registry import DATA, LATENTS, NETWORKS, OBJECTIVES
from .schedules import Curve, LearningRateSchedule, check_curve

#: Parts of a run of which there are several kinds.
PARTS = {"networks": NETWORKS, "latent": LATENTS, "objective": OBJECTIVES}
PRECISIONS = ("float32", "bfloat16")
MAX_RESOLUTION = 2**14  # pixels per side


@dataclass(frozen=True)
class HeldOut:
    """The rows of a run's data that took no part in its training.

    Attributes:
        share: of the rows, as the user chose it.
        num_rows: number of rows that are held out.
        num_training: number of rows that train.
        checksum: SHA-256 of the numbers of both, which depend on groups, too.
    """

    share: float
    num_rows: int
    num_training: int
    checksum: str


@dataclass(frozen=True)
class DataConfig:
    """The data of a run.

    Attributes:
        name: of the data set.
        observations: their kind, shape, type and statistics; by default the paper's images.
        origin: ``"rendered"``, ``"generated"`` or ``"real"``.
        num_images: size of the data set.
        source_names: names of the sources, in order.
        spec: the description from which the data are loaded again, of a kind in ``registry.DATA``; None for data in
            memory.
        checksum: of data from files or from arrays in memory; None if the spec determines the data.
        held_out: the rows that take no part in the training; None if all rows do.
    """

    name: str
    observations: Observations = field(default_factory=lambda: square_images(64))
    origin: str = "rendered"
    num_images: int = 0
    source_names: tuple[str, ...] = ()
    spec: Any = None
    checksum: str | None = None
    held_out: HeldOut | None = None

    @property
    def num_training(self) -> int:
        """The number of rows that train."""
        return self.num_images if self.held_out is None else self.held_out.num_training

    @property
    def resolution(self) -> int:
        """Pixels per side of the paper's images, square RGB images of bytes; 0 for other observations."""
        return self.observations.shape[0] if self.observations.is_standard else 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        spec = None if self.spec is None else DATA.to_dict(self.spec)
        names, observations = list(self.source_names), self.observations.to_dict()
        fields = {**vars(self), "source_names": names, "observations": observations, "spec": spec}
        del fields["held_out"]  # which only data of the user's have
        return fields if self.held_out is None else fields | {"held_out": dataclasses.asdict(self.held_out)}

    @staticmethod
    def from_dict(content: Any, where: str) -> "DataConfig":
        """Return the config from the result of ``to_dict``; ``where`` is its place in the file, for error messages."""
        config = parse(content, DataConfig, where)
        if config.spec is None:
            return config
        return dataclasses.replace(config, spec=DATA.from_dict(config.spec, f"{where}.spec"))

    def difference(self, other: "DataConfig") -> str | None:
        """Describe how two data sets differ; return None if they are the same.

        Files may have moved: their names and their checksum count, not their folders.
        """
        mine, theirs = self._facts(), other._facts()
        for fact in mine:
            if fact in theirs and mine[fact] != theirs[fact]:
                return f"{fact} {'are' if fact == 'the sources' else 'is'} {mine[fact]} and {theirs[fact]}"
        if self.checksum and other.checksum and self.checksum != other.checksum:
            return f"the {self.observations.traits.many} differ, although they have the same number and name"
        if self.held_out and other.held_out and self.held_out != other.held_out:
            return "other rows are held out, although as many: the groups differ"
        return None

    def _facts(self) -> dict[str, Any]:
        """Return what two equal data sets have in common, as far as it is known."""
        spec = {} if self.spec is None else DATA.to_dict(self.spec.without_folders())
        return {
            "the name": self.name,
            "the size": self.observations.size,
            "the origin": self.origin,
            f"the number of {self.observations.traits.many}": self.num_images,
            "the sources": self.source_names,
            "the number of held-out rows": 0 if self.held_out is None else self.held_out.num_rows,
            **{key: value for key, value in spec.items() if key != "registered_by"},
        }


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW for the networks. Codebooks take the same optimizer without weight decay.

    Attributes:
        learning_rate: step size.
        beta1, beta2: decay rates of the two moments.
        weight_decay: decoupled; each update multiplies a weight by ``1 − learning_rate · weight_decay``.
        decay_biases: whether biases are decayed too.
        clip: elementwise bound on the gradients of decayed parameters; None for no bound.
    """

    learning_rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float = 0.0
    decay_biases: bool = True
    clip: float | None = None

    def __post_init__(self) -> None:
        for name in ("learning_rate", "beta1", "beta2", "weight_decay"):
            require_not_negative(name, getattr(self, name))
        if not self.learning_rate:
            raise ValueError(f"learning_rate must be above 0, got {self.learning_rate}")


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained.

    Attributes:
        optimizer: of the players that do not bring their own.
        schedule: of the learning rate.
        weight_decay_schedule: factors on the weight decay by update; empty for a constant one.
        batch_size: images per update.
        steps: number of updates.
        seed: of the initial weights and the batches.
        precision: of the networks' weights and activations, ``"float32"`` or ``"bfloat16"``.
        average_decay: of the exponential average of the weights.
        log_every: updates between two rows of the log.
    """

    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: LearningRateSchedule = field(default_factory=LearningRateSchedule)
    weight_decay_schedule: Curve = ()
    batch_size: int = 128
    steps: int = 200_000
    seed: int = 0
    precision: str = "float32"
    average_decay: float = 0.9995
    log_every: int = 100

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "log_every"):
            whole_number(name, getattr(self, name))
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f"seed must be a whole number from 0 to {MAX_SEED:,}, got {self.seed!r}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}")
        if not 0 <= self.average_decay < 1:
            raise ValueError(f"average_decay must lie in [0, 1), got {self.average_decay}")
        if self.weight_decay_schedule:
            check_curve("weight_decay_schedule", self.weight_decay_schedule)
        if self.schedule.ends and not 1 <= self.schedule.decay_steps <= self.steps:
            raise ValueError(
                f"decay_steps must lie between 1 and the {self.steps:,} updates of the run, got "
                f"{self.schedule.decay_steps:,}"
            )


@dataclass(frozen=True)
class NetworksConfig:
    """The settings that every network pair has; the config of a custom pair subclasses this.

    Attributes:
        size: ``"full"`` or ``"small"``.
        form: ``"paper"`` or ``"official"``.
        patches: whether small networks may work on patches of several pixels; those of a GAN may not.
        own: which of ``"encoder"`` and ``"decoder"`` the caller brings as a module instead.
    """

    size: str = "full"
    form: str = "paper"
    patches: bool = True
    own: tuple[str, ...] = ()


@dataclass(frozen=True)
class LatentConfig:
    """The settings that every latent space has; a latent space's own config subclasses this.

    Attributes:
        num_latents: number of latents.
    """

    has_codes: ClassVar[bool] = False

    num_latents: int

    @property
    def description(self) -> str:
        """A description of each latent."""
        return "continuous"


@dataclass(frozen=True)
class DiscreteLatentConfig(LatentConfig):
    """The settings of a latent space of codes.

    Attributes:
        num_values: values per latent, one number for all latents or one per latent.
    """

    has_codes: ClassVar[bool] = True

    num_values: int | tuple[int, ...] = 10

    @property
    def values_each(self) -> tuple[int, ...]:
        """The number of values of each latent."""
        return values_per_latent(self.num_latents, self.num_values)

    @property
    def description(self) -> str:
        sizes = sorted(set(self.values_each))
        return f"each one of {sizes[0]}{f' to {sizes[-1]}' if len(sizes) > 1 else ''} values"


@dataclass(frozen=True)
class ObjectiveConfig:
    """The settings that every objective has; an objective's own config subclasses this.

    Attributes:
        weights: of the loss terms, those of the objective and those of the latent space.
        schedules: factors on single weights by update.
    """

    weights: dict[str, float]
    schedules: dict[str, Curve] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, weight in self.weights.items():
            require_not_negative(f"the weight of {name}", weight)
        for name, curve in self.schedules.items():
            require_known(name, self.weights, "loss term with a schedule")
            check_curve(f"the schedule of {name}", curve)


@dataclass(frozen=True)
class _Parts:
    """The fields of ``config.json``; the kinds of some of them say of which type they are."""

    model: str
    data: Any
    networks: Any
    latent: Any
    objective: Any
    training: TrainingConfig


@dataclass(frozen=True)
class RunConfig:
    """One run: a model on a data set, from a seed.

    Attributes:
        model: the name that results carry.
        data: the images.
        networks: the config of a network pair (``registry.NETWORKS``).
        latent: the config of a latent space (``registry.LATENTS``).
        objective: the config of an objective (``registry.OBJECTIVES``).
        training: optimizer, schedules, updates and seed.
    """

    model: str
    data: DataConfig
    networks: NetworksConfig
    latent: LatentConfig
    objective: ObjectiveConfig
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        whole_number("resolution", self.data.resolution or 1, at_most=MAX_RESOLUTION)
        whole_number("num_latents", self.latent.num_latents, at_most=MAX_LATENTS)

    def to_dict(self) -> dict[str, Any]:
        """Return nested plain dictionaries, ready for JSON."""
        parts = {name: table.to_dict(getattr(self, name)) for name, table in PARTS.items()}
        return {
            "model": self.model,
            "data": self.data.to_dict(),
            **parts,
            "training": dataclasses.asdict(self.training),
        }

    @staticmethod
    def from_dict(content: dict[str, Any]) -> "RunConfig":
        """Return the config from the result of ``to_dict``.

        Raises:
            ValueError: if a field is unknown, missing or of another type, or a part is not registered.
        """
        parts = dict(vars(parse(content, _Parts, "config")))
        parts |= {name: table.from_dict(parts[name], f"config.{name}") for name, table in PARTS.items()}
        return RunConfig(**parts | {"data": DataConfig.from_dict(parts["data"], "config.data")})

    def values(self) -> dict[str, Any]:
        """Return all values by dotted name, in the order in which they matter."""
        content = self.to_dict()
        order = ("model", "training", "objective", "latent", "networks", "data")
        return flatten({name: content[name] for name in order})

    def require_restorable(self) -> None:
        """Raise an error unless the config survives a round trip through JSON; a run cannot be loaded otherwise."""
        for name, value in self.values().items():
            try:
                json.dumps(value)
            except TypeError as error:
                raise ValueError(f"config.json cannot hold {name} = {value!r}: {error}") from None
        again = RunConfig.from_dict(json.loads(json.dumps(self.to_dict())))
        for name, (before, after) in self.difference(again).items():
            raise ValueError(
                f"{name} is {before!r} and would be restored from config.json as {after!r}; give the field a type that "
                "JSON has, such as a number, a string or a tuple"
            )

    def difference(self, other: "RunConfig") -> dict[str, tuple[Any, Any]]:
        """Return the dotted names of the fields in which two configs differ.

        The number of updates is left out, since a run may be trained for longer, unless the learning rate falls towards
        the end of the run. The checksum is left out if only one of the two has one, and the folders of files if both
        have one. So is the module that registered a part or a data set, because a file has different names as a script
        and as an imported module.
        """
        mine, theirs = self.values(), other.values()
        ignored = set()
        if not (self.training.schedule.ends or other.training.schedule.ends):
            ignored.add("training.steps")
        if self.data.checksum is None or other.data.checksum is None:
            ignored.add("data.checksum")
        elif self.data.spec is not None and other.data.spec is not None:
            for flat, spec in ((mine, self.data.spec), (theirs, other.data.spec)):
                flat |= flatten(DATA.to_dict(spec.without_folders()), "data.spec.")
        keys = [key for key in mine | theirs if key not in ignored and not key.endswith((".module", ".registered_by"))]
        return {key: (mine.get(key), theirs.get(key)) for key in keys if mine.get(key) != theirs.get(key)}


def flatten(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested dictionaries as one, with dotted keys.

    >>> flatten({"a": 1, "b": {"c": 2}})
    {'a': 1, 'b.c': 2}
    """
    flat: dict[str, Any] = {}
    for key, value in content.items():
        flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
