"""Functions that check properties of a rendered scene."""

import numpy as np


def random_levels(scene, num, seed=0):
    """Return random grid levels (num, n_s)."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, num) for size in scene.source_sizes], axis=1)


def neighbours(scene, levels, seed=0):
    """Return for levels (k, n_s) and each source the levels one step of that source away: (k, n_s, n_s)."""
    rng = np.random.default_rng(seed)
    last = np.array(scene.source_sizes) - 1
    step = np.where(levels == last, -1, np.where(levels == 0, 1, rng.choice([-1, 1], levels.shape)))
    return levels[:, None, :] + step[:, :, None] * np.eye(levels.shape[1], dtype=int)


def step_changes(scene, levels, seed=0, batch=100):
    """Return for levels (k, n_s) the largest pixel change that a step of each source causes: (k, n_s)."""
    changes = []
    for at in range(0, len(levels), batch):
        some = levels[at : at + batch]
        around = neighbours(scene, some, seed + at)
        everything = np.concatenate([some[:, None], around], axis=1)  # (k, 1 + n_s, n_s)
        images = scene.render(everything.reshape(-1, some.shape[1])).numpy()
        images = images.reshape(*everything.shape[:2], -1).astype(np.int16)
        changes.append(np.abs(images[:, 1:] - images[:, :1]).max(axis=-1))
    return np.concatenate(changes)


def num_distinct(images):
    """Return the number of distinct images."""
    return len({image.tobytes() for image in images})
