"""Sums of many short rows, and the memory format that all kernels work in."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .launching import launch

PROGRAMS = 264  # two on every multiprocessor of an H200


@triton.jit
def _sum_rows(parts_ptr, out_ptr, num_rows, num_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    rows = tl.arange(0, ROWS)
    here = (rows < num_rows)[:, None] & (columns < num_columns)[None, :]
    parts = tl.load(parts_ptr + rows[:, None] * num_columns + columns[None, :], mask=here, other=0.0).to(tl.float32)
    tl.store(out_ptr + columns, tl.sum(parts, 0).to(out_ptr.dtype.element_ty), mask=columns < num_columns)


def sum_rows(parts: Tensor, dtype: torch.dtype) -> Tensor:
    """(n, …) of any type → (…) of another, summed in float32 and in a fixed order."""
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


def shared_out(num_pixels: int, tile: int) -> tuple[int, int]:
    """How many programs share pixels by tiles of so many, for parts that are then summed, and the tiles of each."""
    tiles = triton.cdiv(triton.cdiv(num_pixels, tile), PROGRAMS)
    return triton.cdiv(num_pixels, tile * tiles), tiles


def channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)
