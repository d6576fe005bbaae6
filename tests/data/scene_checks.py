"""What every rendered scene must hold, as functions over a scene: used by the tests of each scene."""

import numpy as np


def random_levels(scene, num, seed=0):
    """(num, n_s) random grid levels."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, num) for size in scene.source_sizes], axis=1)


def one_step_pairs(scene, num, seed=0, start=None):
    """Pairs of configurations (num, n_s) one step of one source apart, sources taken in turn."""
    rng = np.random.default_rng(seed)
    first = random_levels(scene, num, seed) if start is None else start[rng.integers(0, len(start), num)]
    second = first.copy()
    moved = np.arange(num) % len(scene.source_sizes)
    last = np.array(scene.source_sizes)[moved] - 1
    here = first[np.arange(num), moved]
    step = np.where(here == last, -1, np.where(here == 0, 1, rng.choice([-1, 1], num)))
    second[np.arange(num), moved] += step
    return first, second, moved


def weakest_step(scene, first, second, batch=500):
    """The largest pixel change of each pair; its minimum for every source."""
    change = []
    for at in range(0, len(first), batch):
        a = scene.render(first[at : at + batch]).numpy().astype(np.int16)
        b = scene.render(second[at : at + batch]).numpy().astype(np.int16)
        change.append(np.abs(a - b).max(axis=(1, 2, 3)))
    return np.concatenate(change)


def num_distinct(images):
    """The number of different images, by their bytes."""
    return len({image.tobytes() for image in images})
