"""Random samples of a scene: continuous and correlated sources, and pixel noise.

A grid holds every combination once, so its sources are independent and take few values. Here, a number of images is
drawn instead. Each source is uniform over its levels, or over the whole range from the first to the last; pairs of
sources may be correlated; pixels may be noisy. One seed determines everything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known
from .dataset import ImageArray, Progress, row_indices
from .sources import CATEGORIES, CIRCULAR, SOURCES


def draw_levels(
    name: str,
    varying: Sequence[str],
    num_images: int,
    *,
    continuous: bool | Sequence[str] = False,
    correlated: Mapping[tuple[str, str], float] | None = None,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Draw random levels of a scene's sources.

    Args:
        name: the scene.
        varying: the sources that vary.
        num_images: n.
        continuous: ``True``, or the names of sources, that take any value in their range. Categorical sources cannot.
        correlated: the correlation of the levels for pairs of sources, from −1 to 1. Sources with few levels, or with
            different numbers of them, cannot reach −1 or 1.
        seed: the same seed gives the same levels.

    Returns:
        (n, number of varying sources).
    """
    smooth = smooth_sources(varying, continuous, CATEGORIES.get(name, ()))
    steps = [None if source in smooth else SOURCES[name][source] for source in varying]
    uniform = draw_shares(varying, steps, num_images, correlated=correlated, seed=seed)
    levels = np.empty_like(uniform)
    for column, source in enumerate(varying):
        size = SOURCES[name][source]
        if source not in smooth:
            levels[:, column] = np.minimum(np.floor(uniform[:, column] * size), size - 1)
        elif source in CIRCULAR.get(name, ()):
            levels[:, column] = np.minimum(uniform[:, column] * size, math.nextafter(size, 0))
        else:
            levels[:, column] = uniform[:, column] * (size - 1)
    return levels


def draw_shares(
    varying: Sequence[str],
    steps: Sequence[int | None],
    num_rows: int,
    *,
    correlated: Mapping[tuple[str, str], float] | None = None,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Draw a place in the range of each source, uniform from 0 to 1.

    Args:
        varying: the names of the sources.
        steps: the number of levels of each source; ``None`` if it takes any value in its range.
        num_rows: n.
        correlated, seed: as for `draw_levels`.

    Returns:
        (n, number of sources).
    """
    if isinstance(num_rows, bool) or not isinstance(num_rows, int) or num_rows < 1:
        raise ValueError(f"num_images must be a positive integer, got {num_rows!r}")
    normal = np.random.default_rng(seed).standard_normal((num_rows, len(varying)))
    return _normal_cdf(normal @ _mixing_matrix(varying, steps, correlated or {}).T)


def smooth_sources(varying: Sequence[str], continuous: bool | Sequence[str], categories: Sequence[str]) -> list[str]:
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
    """Return a matrix that turns independent normal variables into ones whose levels have the given correlations.

    Args:
        varying: the names of the sources.
        steps: the number of levels of each source; ``None`` if it takes any value in its range.
        correlated: the correlation for pairs of names.

    Returns:
        (number of sources, number of sources).
    """
    correlation = np.eye(len(varying))
    for pair, value in correlated.items():
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"correlated must map pairs of two different sources to numbers, got {pair!r}")
        if (pair[1], pair[0]) in correlated:
            raise ValueError(f"correlated names {pair[0]!r} and {pair[1]!r} twice; give each pair once")
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not -1 <= value <= 1:
            raise ValueError(f"the correlation of {pair[0]!r} and {pair[1]!r} must be from -1 to 1, got {value!r}")
        i, j = (list(varying).index(require_known(s, varying, "source that varies")) for s in pair)
        try:
            correlation[i, j] = correlation[j, i] = _normal_correlation(float(value), steps[i], steps[j])
        except ValueError as error:
            raise ValueError(f"{pair[0]!r} and {pair[1]!r} {error}") from None
    values, vectors = np.linalg.eigh(correlation)
    if values.min() < -1e-9:
        raise ValueError(f"these correlations exclude each other: lower some of them; got {dict(correlated)!r}")
    mixing: NDArray[np.float64] = vectors * np.sqrt(values.clip(0))
    return mixing


def _normal_correlation(levels: float, first: int | None, second: int | None) -> float:
    """Return the correlation of two normal variables whose levels have the correlation `levels`.

    Args:
        levels: the correlation of the levels.
        first, second: the number of levels of each source; ``None`` if it is continuous.
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


def require_noise(noise: Any) -> None:
    """Raise a ``ValueError`` unless `noise` is a standard deviation."""
    if isinstance(noise, bool) or not isinstance(noise, int | float | np.number) or not 0 <= noise < math.inf:
        raise ValueError(f"noise must be a standard deviation of 0 or more, got {noise!r}")


class NoisyImages:
    """Images with Gaussian noise on every pixel and channel. A row has the same noise every time it is indexed.

    Args:
        images: (n, h, w, 3) uint8.
        noise: the standard deviation, where 1 is the whole range from black to white.
        seed: determines the noise, together with the row number.
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(self, images: ImageArray, noise: float, seed: int = 0) -> None:
        require_noise(noise)
        self.images = images
        self.noise = noise
        self.seed = seed

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, h, w, 3)."""
        return tuple(self.images.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any, /) -> NDArray[np.uint8]:
        indices = row_indices(rows, len(self))
        clean = np.asarray(self.images[indices.reshape(-1)])
        noisy = np.empty_like(clean)
        for out, image, row in zip(noisy, clean, indices.reshape(-1).tolist(), strict=True):
            rng = np.random.default_rng([self.seed, row])
            grain = rng.standard_normal(image.shape, dtype=np.float32)
            out[...] = np.clip(np.rint(image + np.float32(255 * self.noise) * grain), 0, 255)
        return noisy[0] if indices.ndim == 0 else noisy

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("noisy images cannot become an array without a copy: leave out copy=False")
        images = self.render_all()
        return images if dtype is None else images.astype(dtype)

    def render_all(self, *, progress: Progress | None = None) -> NDArray[np.uint8]:
        """Return all images."""
        out = np.empty(self.shape, dtype=np.uint8)
        for first in range(0, len(self), 1000):
            rows = slice(first, min(first + 1000, len(self)))
            out[rows] = self[rows]
            if progress is not None:
                progress(rows.stop, len(self))
        return out
