"""Helpers that the kernels share: sums of many short rows, the division into tiles, and the memory format."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .launching import launch

PROGRAMS = 264  # two per multiprocessor of an H200


@triton.jit
def _sum_rows(parts_ptr, out_ptr, num_rows, num_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    rows = tl.arange(0, ROWS)
    here = (rows < num_rows)[:, None] & (columns < num_columns)[None, :]
    parts = tl.load(parts_ptr + rows[:, None] * num_columns + columns[None, :], mask=here, other=0.0).to(tl.float32)
    tl.store(out_ptr + columns, tl.sum(parts, 0).to(out_ptr.dtype.element_ty), mask=columns < num_columns)


def sum_rows(parts: Tensor, dtype: torch.dtype) -> Tensor:
    """Sum over the first dimension, in float32 and in a fixed order.

    Args:
        parts: (n, …), of any floating-point type.
        dtype: type of the result.

    Returns:
        The sums (…).
    """
    num_rows, num_columns = len(parts), parts[0].numel()
    out = torch.empty(parts.shape[1:], dtype=dtype, device=parts.device)
    grid = (triton.cdiv(num_columns, 16),)
    launch(
        _sum_rows,
        grid,
        parts,
        out,
        num_rows,
        num_columns,
        ROWS=triton.next_power_of_2(num_rows),
        COLUMNS=16,
        num_warps=4,
    )
    return out


def split_tiles(num_pixels: int, tile: int) -> tuple[int, int]:
    """Divide pixels among at most ``PROGRAMS`` programs, whose partial results are summed afterwards.

    Args:
        num_pixels: the number of pixels.
        tile: the number of pixels per tile.

    Returns:
        The number of programs and the number of tiles per program.
    """
    tiles = triton.cdiv(triton.cdiv(num_pixels, tile), PROGRAMS)
    return triton.cdiv(num_pixels, tile * tiles), tiles


def channels_last(x: Tensor) -> Tensor:
    """Return x (b, c, h, w) in channels-last memory, without a copy if it is already in this format."""
    return x.contiguous(memory_format=torch.channels_last)
