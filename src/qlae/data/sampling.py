"""Random samples of sources: continuous and correlated ones; and pixel noise.

A grid holds every combination once, so its sources are independent and take few values. Here, a number of rows is drawn
instead. Each source is uniform over its levels, or over the whole range from the first to the last; pairs of sources
may be correlated. One seed determines everything.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known
from .dataset import ImageArray, LazyImages


def draw_levels(
    sizes: Mapping[str, int],
    num_rows: int,
    *,
    smooth: Collection[str] = (),
    circular: Collection[str] = (),
    correlated: Mapping[tuple[str, str], float] | None = None,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Draw random levels (n, number of sources).

    Args:
        sizes: the sources that vary and the number of levels of each.
        num_rows: n.
        smooth: the sources that take any value in their range.
        circular: sources for which further values lie between the last and the first.
        correlated: the correlation of the levels for pairs of sources, from −1 to 1. Sources with few levels, or with
            different numbers of them, cannot reach −1 or 1.
        seed: the same seed gives the same levels.
    """
    steps = [None if source in smooth else size for source, size in sizes.items()]
    normal = np.random.default_rng(seed).standard_normal((num_rows, len(sizes)))
    levels = _normal_cdf(normal @ _mixing_matrix(list(sizes), steps, correlated or {}).T)  # shares
    for column, (source, size) in enumerate(sizes.items()):
        if source not in smooth:
            levels[:, column] = np.minimum(np.floor(levels[:, column] * size), size - 1)
        elif source in circular:
            levels[:, column] = np.minimum(levels[:, column] * size, math.nextafter(size, 0))
        else:
            levels[:, column] *= size - 1
    return levels


def smooth_sources(varying: Sequence[str], continuous: bool | Sequence[str], categories: Collection[str]) -> list[str]:
    """Return the sources that take values between their levels: those in `continuous`, but no categories."""
    if isinstance(continuous, bool):
        return [s for s in varying if continuous and s not in categories]
    for source in continuous:
        require_known(source, varying, "source that varies")
        if source in categories:
            raise ValueError(f"{source!r} is a category, with nothing between its values: remove it from continuous")
    return list(continuous)


def _mixing_matrix(
    varying: Sequence[str], steps: Sequence[int | None], correlated: Mapping[tuple[str, str], float]
) -> NDArray[np.float64]:
    """Return a matrix (n_s, n_s) that turns independent normal variables into ones with the correlations of the levels.

    `steps` has the number of levels of each source; None if it takes any value in its range.
    """
    correlation = np.eye(len(varying))
    for (first, second), value in correlated.items():
        i, j = (varying.index(require_known(s, varying, "source that varies")) for s in (first, second))
        if i == j:
            raise ValueError(f"correlated takes pairs of two different sources, got {first!r} twice")
        if not -1 <= value <= 1:
            raise ValueError(f"the correlation of {first!r} and {second!r} must be from -1 to 1, got {value!r}")
        try:
            correlation[i, j] = correlation[j, i] = _normal_correlation(value, steps[i], steps[j])
        except ValueError as error:
            raise ValueError(f"{first!r} and {second!r} {error}") from None
    values, vectors = np.linalg.eigh(correlation)
    if values.min() < -1e-9:
        raise ValueError(f"these correlations exclude each other: lower some of them; got {dict(correlated)!r}")
    mixing: NDArray[np.float64] = vectors * np.sqrt(values.clip(0))
    return mixing


def _normal_correlation(levels: float, first: int | None, second: int | None) -> float:
    """Return the correlation of two normal variables whose levels have the correlation `levels`.

    `first` and `second` are the numbers of levels; None for a continuous source.
    """
    if first is None and second is None:
        return 2 * math.sin(math.pi * levels / 6)  # the closed form for uniform variables
    from scipy.optimize import brentq

    largest = _level_correlation(1.0, first, second)  # the smallest is its negative
    if abs(levels) > largest + 5e-4:
        raise ValueError(
            f"can be correlated from {-largest:.2f} to {largest:.2f}, given their numbers of levels; got {levels}"
        )
    if abs(levels) >= largest:
        return math.copysign(1.0, levels)
    return float(brentq(lambda normal: _level_correlation(normal, first, second) - levels, -1, 1, xtol=1e-6))


def _level_correlation(normal: float, first: int | None, second: int | None) -> float:
    """Return the correlation of the levels of two normal variables that have the correlation `normal`."""
    from scipy.special import ndtri

    share = (np.arange(4096) + 0.5) / 4096  # equal parts of the first variable's distribution
    z = ndtri(share)
    levels = share if first is None else np.floor(share * first)
    if second is None:
        expected, spread = _normal_cdf(normal * z / math.sqrt(2 - normal**2)), math.sqrt(1 / 12)
    else:
        borders = ndtri(np.arange(1, second) / second)[:, None]  # where the second goes from one level to the next
        rest = max(math.sqrt(1 - normal**2), 1e-9)
        expected, spread = _normal_cdf((normal * z - borders) / rest).sum(axis=0), math.sqrt((second**2 - 1) / 12)
    return float(np.cov(levels, expected, bias=True)[0, 1] / (levels.std() * spread))


def _normal_cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import ndtr

    cdf: NDArray[np.float64] = ndtr(x)
    return cdf


class NoisyImages(LazyImages):
    """Images with Gaussian noise on every pixel and channel. A row has the same noise every time it is indexed.

    Args:
        images: (n, h, w, 3) uint8.
        noise: the standard deviation, where 1 is the whole range from black to white.
        seed: determines the noise, together with the row number.
    """

    def __init__(self, images: ImageArray, noise: float, seed: int = 0) -> None:
        self.images = images
        self.noise = noise
        self.seed = seed
        self.shape = tuple(images.shape)

    def compute(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        clean = np.asarray(self.images[rows])
        noisy = np.empty_like(clean)
        for out, image, row in zip(noisy, clean, rows.tolist(), strict=True):
            grain = np.random.default_rng([self.seed, row]).standard_normal(image.shape, dtype=np.float32)
            out[...] = np.clip(np.rint(image + np.float32(255 * self.noise) * grain), 0, 255)
        return noisy
