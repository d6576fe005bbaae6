"""The generated data sets: functions from the values of sources to vectors or series. NumPy only, no download.

Sources are either on a grid, of which all combinations occur once, or continuous and drawn at random; `load_data` takes
the same arguments for both as for rendered scenes. On a grid, ``data.sources`` holds levels (0, 1, …); a continuous
source has its value in its unit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..registry import DATA
from .dataset import Progress, SourceDataset
from .sources import GENERATED_SETS, grid_levels
from .spec import SampledData

Values = NDArray[np.float64]

#: The default number of rows, if any source is continuous.
SAMPLE_SIZE = 20_000
#: Observations are rounded to this many decimals of their spread, below which sines and exponentials of different
#: machines may differ. Rounded values are the same everywhere.
DECIMALS = 6

# Mixtures.
NUM_SOURCES, NUM_FEATURES, NUM_LAYERS = 5, 12, 3
NETWORK_SEED = 20_230_528
LEAK = 0.2  # the slope of the increasing function below zero; above, it is 1

# The pendulum.
GRAVITY = 9.81  # m/s²
NUM_STEPS, STEP = 32, 1 / 8  # samples, and seconds between them
SUBSTEPS = 8  # of the integration, per sample

# The pump, in the modes economy, normal, boost and bypass.
SPEEDS = np.array([0.55, 0.75, 1.0, 0.75])  # of the nominal speed
RETURNED = np.array([0.0, 0.0, 0.0, 0.35])  # of the flow


@dataclass(frozen=True)
class Quantity:
    """A source: a physical quantity with `num_levels` values, evenly spaced from `low` to `high`, or a category."""

    name: str
    low: float
    high: float
    num_levels: int = 10
    is_category: bool = False

    def value(self, level: Any) -> Any:
        """Return the value at a level, which may lie between those of the grid."""
        return self.low + (self.high - self.low) * level / (self.num_levels - 1)


@dataclass(frozen=True)
class GeneratedSet:
    """A generated data set: its sources, slowest first, and the function from their values (n, n_s) to rows (n, …).

    Sources in `continuous` always are; the others are on a grid by default. `noise` is the standard deviation of
    Gaussian noise on each feature, relative to the feature's own.
    """

    name: str
    kind: str
    quantities: tuple[Quantity, ...]
    feature_names: tuple[str, ...]
    simulate: Callable[[Values], Values]
    continuous: tuple[str, ...] = ()
    noise: float = 0.0

    @property
    def sizes(self) -> dict[str, int]:
        """The number of grid levels of each source."""
        return {quantity.name: quantity.num_levels for quantity in self.quantities}

    @property
    def categories(self) -> tuple[str, ...]:
        """The names of categorical sources."""
        return tuple(quantity.name for quantity in self.quantities if quantity.is_category)


def mixing_matrices() -> list[NDArray[np.float64]]:
    """Return the matrices of the network: rotations (5, 5), and one with orthonormal rows (5, 12)."""
    rng = np.random.default_rng(NETWORK_SEED)
    shapes = [(NUM_SOURCES, NUM_SOURCES)] * NUM_LAYERS + [(NUM_SOURCES, NUM_FEATURES)]
    return [_orthonormal(rng.standard_normal(shape[::-1])).T for shape in shapes]


def _orthonormal(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return orthonormal columns that span those of a matrix; their signs are the same on every machine."""
    columns, triangle = np.linalg.qr(matrix)
    return np.asarray(columns * np.sign(np.diag(triangle)))


def increase(x: Values) -> Values:
    """Apply the increasing function to every entry."""
    return np.where(x > 0, x, LEAK * x)


def simulate_mixtures(sources: Values) -> Values:
    """Return the features (n, 12) of sources (n, 5).

    The sources are independent and uniform from −1 to 1, and seen through an invertible random network.

    This is the setting of nonlinear independent component analysis. Three layers, each a rotation followed by a leaky
    rectifier, mix the sources; a last layer spreads them over twelve features. Each step can be undone, so every source
    can be computed from the features. A linear regression explains 71 to 89% of the variance of a source.

    The network is the same for every seed, which draws the sources only. Theory does not guarantee that independent
    sources can be recovered from such mixtures (Hyvärinen and Pajunen, 1999): a method that does so has the right bias.
    """
    *rotations, spread = mixing_matrices()
    hidden = sources
    for rotation in rotations:
        hidden = increase(hidden @ rotation)
    return increase(hidden @ spread)


MIXTURES = GeneratedSet(
    name="mixtures",
    kind="vectors",
    quantities=tuple(Quantity(f"source {i + 1}", -1.0, 1.0, num_levels=11) for i in range(NUM_SOURCES)),
    continuous=tuple(f"source {i + 1}" for i in range(NUM_SOURCES)),
    feature_names=tuple(f"mixture {i + 1}" for i in range(NUM_FEATURES)),
    simulate=simulate_mixtures,
)


def accelerate(angle: Values, velocity: Values, length: Values, damping: Values) -> Values:
    """Return the angular acceleration in rad/s²."""
    return -GRAVITY / length * np.sin(angle) - 2 * damping * velocity


def simulate_pendulum(values: Values) -> Values:
    """Return series (n, 32, 2) of angle and angular velocity, for length, damping, angle and velocity (n, 4).

    The angle θ follows θ″ = −(g / length) · sin θ − 2 · damping · θ′ from an initial angle and velocity. It is
    integrated by the classical Runge–Kutta method and recorded 8 times a second for 4 seconds. The swings are so large
    (up to 120°) that the period depends on the amplitude.
    """
    length, damping, degrees, velocity = values.T
    angle = np.deg2rad(degrees)
    series = np.empty((len(values), NUM_STEPS, 2))
    step = STEP / SUBSTEPS
    for sample in range(NUM_STEPS):
        series[:, sample, 0], series[:, sample, 1] = angle, velocity
        for _ in range(SUBSTEPS):
            v1, a1 = velocity, accelerate(angle, velocity, length, damping)
            v2 = velocity + step / 2 * a1
            a2 = accelerate(angle + step / 2 * v1, v2, length, damping)
            v3 = velocity + step / 2 * a2
            a3 = accelerate(angle + step / 2 * v2, v3, length, damping)
            v4 = velocity + step * a3
            a4 = accelerate(angle + step * v3, v4, length, damping)
            angle = angle + step / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
            velocity = velocity + step / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    return series


PENDULUM = GeneratedSet(
    name="pendulum",
    kind="series",
    quantities=(
        Quantity("length", 0.25, 1.0),  # m
        Quantity("damping", 0.05, 0.95),  # 1/s
        Quantity("angle", 15.0, 105.0),  # °
        Quantity("velocity", -2.25, 2.25),  # rad/s
    ),
    feature_names=("angle (rad)", "angular velocity (rad/s)"),
    simulate=simulate_pendulum,
)


def simulate_sensors(values: Values) -> Values:
    """Return the channels (n, 16) for mode, valve, ambient temperature, leak and wear (n, 5).

    A table of sensors: sixteen channels of a pump in four modes of operation.

    The mode sets the speed and, in the mode "bypass", leads part of the flow back. Within a mode, the opening of the
    valve, the ambient temperature, a leak and the wear of the bearings act on the channels by the usual laws: flow
    grows with the speed, pressure with its square, power with their product; heat follows the losses. Every channel has
    noise of 2% of its standard deviation. The constants are plausible, not those of a real pump.
    """
    mode, valve, ambient, leak, wear = values.T
    speed, returned = SPEEDS[mode.astype(int)], RETURNED[mode.astype(int)]
    valve, leak, wear = valve / 100, leak / 100, wear / 100
    through = speed * valve**0.7  # of the nominal flow
    delivered = through * (1 - leak) * (1 - returned)
    outlet = 6.0 * speed**2 * (1 - 0.35 * through**2) * (1 - 0.5 * leak)  # bar
    inlet = 1.2 - 0.4 * through**2
    efficiency = (0.78 - 0.5 * (valve - 0.7) ** 2) * (1 - 0.25 * wear)
    power = 4.0 + 11.0 * outlet / 6.0 * through / efficiency + 2.5 * wear * speed  # kW
    losses = power * (1 - efficiency)
    rotation = 2950 * speed * (1 - 0.004 * power)
    torque = power * 9549 / rotation  # Nm
    current = power * 1.9 + 4.0 * speed
    winding = ambient + 5.5 * losses + 8 * speed
    bearing = ambient + 28 * wear * speed + 14 * speed**2
    oil = ambient + 0.4 * (winding - ambient) + 0.3 * (bearing - ambient)
    medium = 0.6 * ambient + 8 + 0.9 * losses * (0.3 + returned)
    low = 0.4 * speed**2 + 2.2 * wear * speed**2 + 0.5 * (valve - 0.7) ** 2  # vibration at the rotation, mm/s
    high = 0.15 + 1.6 * wear**2 * speed + 0.8 * leak * outlet  # vibration above 1 kHz, mm/s
    sound = 62 + 18 * speed + 6 * np.log10(1 + 4 * high) + 5 * returned
    sump = 0.2 + 9.0 * leak * outlet / 6.0  # litres per minute
    cabinet = 0.85 * ambient + 4 + 0.25 * power
    channels = [rotation, 62 * delivered, 62 * returned * through, inlet, outlet, power, torque, current]
    channels += [winding, bearing, oil, medium, cabinet, low, high, sound + 0.6 * sump]
    return np.stack(channels, axis=1)


SENSORS = GeneratedSet(
    name="sensors",
    kind="vectors",
    quantities=(
        Quantity("mode", 0, 3, num_levels=4, is_category=True),  # economy, normal, boost, bypass
        Quantity("valve", 20.0, 100.0, num_levels=11),  # %
        Quantity("ambient", -10.0, 40.0, num_levels=11),  # °C
        Quantity("leak", 0.0, 20.0, num_levels=11),  # %
        Quantity("wear", 0.0, 100.0, num_levels=11),  # %
    ),
    continuous=("valve", "ambient", "leak", "wear"),
    feature_names=(
        "speed (1/min)",
        "flow (m³/h)",
        "return flow (m³/h)",
        "inlet pressure (bar)",
        "outlet pressure (bar)",
        "power (kW)",
        "torque (Nm)",
        "current (A)",
        "winding (°C)",
        "bearing (°C)",
        "oil (°C)",
        "medium (°C)",
        "cabinet (°C)",
        "vibration (mm/s)",
        "vibration > 1 kHz (mm/s)",
        "sound (dB)",
    ),
    simulate=simulate_sensors,
    noise=0.02,
)

#: name → data set
GENERATED = {generated.name: generated for generated in (MIXTURES, PENDULUM, SENSORS)}


@DATA.register("generated")
@dataclass(frozen=True, kw_only=True)
class GeneratedData(SampledData):
    """A generated data set, such as pendulum; ``num_images`` is the number of rows."""

    title: ClassVar[str] = "the generated data set"
    known_names: ClassVar[Collection[str]] = GENERATED_SETS

    @property
    def source_sizes(self) -> Mapping[str, int]:
        return GENERATED[self.name].sizes

    @property
    def is_random(self) -> bool:
        generated = GENERATED[self.name]
        return super().is_random or bool(generated.noise or generated.continuous)

    def read(self, progress: Progress | None = None) -> SourceDataset:
        generated = GENERATED[self.name]
        varying = self.varying
        smooth: list[str] = []
        facts: dict[str, Any] = {}
        if self.num_images or self.continuous or self.correlated or set(generated.continuous) & {*varying}:
            drawn, smooth, facts = self.draw(SAMPLE_SIZE, categories=generated.categories, smooth=generated.continuous)
        else:
            drawn = grid_levels(list(varying.values())).astype(np.float64)
        levels = dict(zip(varying, drawn.T, strict=True))
        levels |= {name: np.full(len(drawn), float(level)) for name, level in self.fixed.items()}
        values = {quantity.name: quantity.value(levels[quantity.name]) for quantity in generated.quantities}
        known = np.stack([values[name] if name in smooth else levels[name] for name in varying], axis=1)
        return SourceDataset(
            _observations(generated, np.stack(list(values.values()), axis=1), self.seed),
            known if smooth else known.astype(np.int64),
            name=self.name,
            origin="generated",
            source_names=list(varying),
            source_sizes=() if smooth else list(varying.values()),
            fixed=self.fixed,
            details=facts,
            layout=generated.kind,
            feature_names=generated.feature_names,
        )


def _observations(generated: GeneratedSet, values: Values, seed: int) -> NDArray[np.float32]:
    """Simulate rows, add noise and round."""
    rows = generated.simulate(values)
    spread = rows.reshape(-1, rows.shape[-1]).std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    if generated.noise:
        rng = np.random.default_rng([seed, 1])  # another stream than that of the sources
        rows = rows + generated.noise * spread * rng.standard_normal(rows.shape)
    step = 10.0 ** (np.ceil(np.log10(spread)) - DECIMALS)
    return (np.rint(rows / step) * step).astype(np.float32)
