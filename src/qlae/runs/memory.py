"""Estimate the least memory that a run needs, so that absurd requests are refused before they exhaust a machine."""

import math
import os

import torch

from .._process import pick_device
from ..config import RunConfig

#: Bytes per entry of an image that a pass through even the smallest networks takes.
BYTES_PER_ENTRY = 16
#: Decoded images for each latent in the pictures of interventions: samples × steps.
TILES_PER_LATENT = 30
#: Bytes per code: the distance to every value, and its gradient.
BYTES_PER_DISTANCE = 8


def least_bytes(config: RunConfig, batch_size: int, *, draws_pictures: bool = False) -> int:
    """Return a lower bound of the memory that a batch takes, or the pictures after a training.

    The networks take far more; only the parts that depend on numbers that a user can mistype are counted.

    Args:
        config: of the run.
        batch_size: images that are processed at once.
        draws_pictures: whether interventions on every latent are decoded.
    """
    num_latents: int = config.latent.num_latents
    entries = config.data.observations.num_entries
    num_values = sum(_values_each(config))
    tiles = TILES_PER_LATENT * num_latents * (entries + 8 * num_latents) if draws_pictures else 0
    per_image = BYTES_PER_ENTRY * entries + BYTES_PER_DISTANCE * (num_latents + num_values)
    return max(batch_size * per_image, tiles)


def require_memory(
    config: RunConfig, batch_size: int, device: str | torch.device = "cpu", *, draws_pictures: bool = False
) -> None:
    """Raise a ``ValueError`` if a batch cannot fit into the memory of a device.

    Args:
        config: of the run.
        batch_size: images that are processed at once.
        device: where they are processed.
        draws_pictures: as for `least_bytes`.
    """
    place = pick_device(str(device))
    needed, available = least_bytes(config, batch_size, draws_pictures=draws_pictures), total_memory(place)
    if needed > available:
        raise ValueError(
            f"{_describe(config, batch_size)} need at least {_gigabytes(needed)} of memory, and {place} has "
            f"{_gigabytes(available)}; ask for less"
        )


def total_memory(device: torch.device) -> int:
    """Return the bytes of memory that a device has."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # as on Windows
        return 2**45


def _values_each(config: RunConfig) -> tuple[int, ...]:
    """Return the number of values of each latent; none where latents have no codes."""
    return tuple(getattr(config.latent, "values_each", ()))


def _describe(config: RunConfig, batch_size: int) -> str:
    latent, sizes = config.latent, _values_each(config)
    values = f" of {max(sizes):,} values" if sizes else ""
    observed = config.data.observations
    batches = f"batches of {batch_size:,} {observed.traits.many} of {observed.size}"
    return f"{batches} with {latent.num_latents:,} latents{values}"


def _gigabytes(num_bytes: int) -> str:
    """Return a number of bytes in gigabytes.

    >>> _gigabytes(3 * 10**9), _gigabytes(5 * 10**13)
    ('3 GB', '50,000 GB')
    """
    return f"{math.ceil(num_bytes / 1e9):,} GB"
