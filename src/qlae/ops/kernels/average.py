"""The weight average of ``ops/average.py`` in one pass, which also computes the decay of this update."""

import triton
import triton.language as tl
from torch import Tensor

from .launching import launch

ENTRIES = 1024  # per program


@triton.jit
def _average_update(values_ptr, weights_ptr, number_ptr, num_entries, decay, ENTRIES: tl.constexpr):
    places = tl.program_id(0) * ENTRIES + tl.arange(0, ENTRIES)
    here = places < num_entries
    number = tl.load(number_ptr)
    share = 1 - tl.minimum((1 + number) / (10 + number), decay)
    values = tl.load(values_ptr + places, mask=here, other=0.0)
    weights = tl.load(weights_ptr + places, mask=here, other=0.0)
    tl.store(values_ptr + places, values + share * (weights - values), mask=here)


def update(values: Tensor, weights: Tensor, number: Tensor, decay: float) -> None:
    """Update the average with the weights after an update.

    Args:
        values: (entries,) the average, updated in place.
        weights: (entries,) the current weights.
        number: scalar tensor, the number of the update (from 1).
        decay: upper bound of the decay; it is lower for the first updates.
    """
    launch(
        _average_update,
        (triton.cdiv(len(values), ENTRIES),),
        values,
        weights,
        number,
        len(values),
        decay,
        ENTRIES=ENTRIES,
    )
