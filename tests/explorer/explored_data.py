"""Small data of each kind for the explorer tests."""

import numpy as np

#: Files of a folder of photographs and their sizes, width × height.
PHOTOS = {
    "beach/IMG 1.jpg": (90, 60),
    "beach/IMG 2.jpg": (60, 90),
    "forest/01.png": (40, 40),
    "forest/02.png": (33, 21),
}


def flowers() -> np.ndarray:
    """Vectors (60, 4) in different units: three follow from two sources, the last is constant."""
    rng = np.random.default_rng(0)
    sources = rng.integers(0, 3, (60, 2))
    width, height = 2 + sources[:, 0] + 0.01 * rng.normal(size=60), 1000.0 + 50 * sources[:, 1]
    return np.stack([width, height, width * height, np.full(60, 7.0)], axis=1)


def waves() -> np.ndarray:
    """Series (50, 24, 2): a wave of some amplitude, and a level."""
    rng = np.random.default_rng(0)
    time = np.arange(24)
    wave = rng.uniform(1, 3, (50, 1)) * np.sin(time / 3)
    level = rng.uniform(-1, 1, (50, 1)) * np.ones(24)
    return np.stack([wave, 100 + level], axis=-1).astype(np.float32)
