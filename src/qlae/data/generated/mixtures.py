"""Nonlinear mixtures: five independent sources, uniform from −1 to 1, seen through an invertible random network.

The setting of nonlinear independent component analysis. Three layers, each a rotation followed by a leaky rectifier,
mix the sources; a last layer spreads them over twelve features. Each step can be undone, so every source can be
computed from the features. A linear regression explains 71 to 89% of the variance of a source.

The network is the same for every seed, which draws the sources only. Theory does not guarantee that independent sources
can be recovered from such mixtures (Hyvärinen and Pajunen, 1999): a method that does so has the right bias.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .simulation import GeneratedSet, Quantity, Values

NUM_SOURCES, NUM_FEATURES, NUM_LAYERS = 5, 12, 3
NETWORK_SEED = 20_230_528
LEAK = 0.2  # the slope of the increasing function below zero; above, it is 1


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


def simulate(sources: Values) -> Values:
    """Return the features (n, 12) of sources (n, 5)."""
    *rotations, spread = mixing_matrices()
    hidden = sources
    for rotation in rotations:
        hidden = increase(hidden @ rotation)
    return increase(hidden @ spread)


SET = GeneratedSet(
    name="mixtures",
    kind="vectors",
    summary="12 features that an invertible random network computes from 5 independent sources",
    quantities=tuple(Quantity(f"source {i + 1}", -1.0, 1.0, num_levels=11) for i in range(NUM_SOURCES)),
    continuous=tuple(f"source {i + 1}" for i in range(NUM_SOURCES)),
    feature_names=tuple(f"mixture {i + 1}" for i in range(NUM_FEATURES)),
    simulate=simulate,
)
