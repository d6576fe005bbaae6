"""A damped pendulum: series of its angle and angular velocity.

The angle θ follows θ″ = −(g / length) · sin θ − 2 · damping · θ′ from an initial angle and velocity. It is integrated
by the classical Runge–Kutta method and recorded 8 times a second for 4 seconds. The swings are so large (up to 120°)
that the period depends on the amplitude.
"""

from __future__ import annotations

import numpy as np

from .simulation import GeneratedSet, Quantity, Values

GRAVITY = 9.81  # m/s²
NUM_STEPS, STEP = 32, 1 / 8  # samples, and seconds between them
SUBSTEPS = 8  # of the integration, per sample


def accelerate(angle: Values, velocity: Values, length: Values, damping: Values) -> Values:
    """Return the angular acceleration in rad/s²."""
    return -GRAVITY / length * np.sin(angle) - 2 * damping * velocity


def simulate(values: Values) -> Values:
    """Return series (n, 32, 2) of angle and angular velocity, for length, damping, angle and velocity (n, 4)."""
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


SET = GeneratedSet(
    name="pendulum",
    kind="series",
    summary="angle and angular velocity of a damped pendulum over 4 seconds",
    quantities=(
        Quantity("length", 0.25, 1.0, "m"),
        Quantity("damping", 0.05, 0.95, "1/s"),
        Quantity("angle", 15.0, 105.0, "°"),
        Quantity("velocity", -2.25, 2.25, "rad/s"),
    ),
    feature_names=("angle (rad)", "angular velocity (rad/s)"),
    simulate=simulate,
)
