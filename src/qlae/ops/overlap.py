"""Weight gradients on a second stream, in parallel with the gradients of the inputs.

A layer's backward pass has two parts: the gradient of its input, on which all earlier layers wait, and the gradient of
its weights, on which nothing waits before the optimizer. Many layers are too small to fill a GPU, so inside
``overlapped()`` the second part runs in parallel with the first, on a second stream.

That is right only if nothing touches a weight's gradient before the streams are joined. A weight that is used twice
breaks this: automatic differentiation adds its two gradients at once, on the first stream. ``Overlap.verify`` looks at
the recorded graph, and where a weight is used more than once everything runs on one stream.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


class Overlap:
    """A second stream for one forward and backward pass.

    Attributes:
        is_safe: whether weight gradients run on the second stream; ``verify`` decides it before the backward pass.
    """

    def __init__(self, stream: torch.cuda.Stream):
        self.is_safe = True
        self._stream = stream
        self._noted: list[Tensor] = []  # weights and biases whose gradients would come from the second stream
        self._tensors_in_use: list[Tensor] = []  # tensors that work on the second stream still reads
        self._sums: list[tuple[Tensor, Tensor]] = []  # rows, and where their sum goes

    def note(self, *weights: Tensor | None) -> None:
        """Record weights whose gradients the second stream will compute; a weight that is used twice rules that out."""
        for weight in weights:
            if weight is not None and weight.requires_grad:
                self.is_safe = self.is_safe and all(weight is not other for other in self._noted)
                self._noted.append(weight)

    def verify(self, loss: Tensor) -> bool:
        """Return whether every noted weight is used once in the graph of a loss; if not, run on one stream."""
        self.is_safe = self.is_safe and uses_once(loss, self._noted)
        return self.is_safe

    def run(self, work: Callable[[], T], *tensors: Tensor) -> T:
        """Start work on tensors that are ready on the current stream; they are kept until it is done."""
        if not self.is_safe:
            return work()
        self._stream.wait_stream(torch.cuda.current_stream())
        self._tensors_in_use += tensors
        with torch.cuda.stream(self._stream):
            return work()

    def sum_rows(self, rows: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the sum (m,) of rows (n, m), which is valid only after ``join``.

        The sums of all layers are taken together, since launching one takes about as long as computing it.
        """
        if not self.is_safe:
            return rows.sum(0).to(dtype)
        out = torch.empty(rows.shape[1:], dtype=dtype, device=rows.device)
        self._sums.append((rows, out))
        return out

    def join(self) -> None:
        """Compute the sums, and let the current stream wait for the second one."""
        from .kernels.sums import sum_rows

        sums, self._sums = self._sums, []
        groups: dict[tuple[torch.dtype, int], list[tuple[Tensor, Tensor]]] = {}
        for rows, out in sums:  # networks that run on batches of different sizes have different numbers of rows
            groups.setdefault((rows.dtype, len(rows)), []).append((rows, out))
        for pairs in groups.values():
            parts, outs = zip(*pairs, strict=True)
            totals = sum_rows(torch.cat(parts, 1), torch.float32)
            torch._foreach_copy_(outs, totals.split([len(out) for out in outs]))
        torch.cuda.current_stream().wait_stream(self._stream)
        self._tensors_in_use.clear()
        self._noted.clear()


_second_stream = cache(torch.cuda.Stream)  # by device
_current: ContextVar[Overlap | None] = ContextVar("overlap", default=None)


def current_overlap() -> Overlap | None:
    """Return the second stream of the block that this is called in; None outside of ``overlapped``."""
    return _current.get()


@contextlib.contextmanager
def overlapped(device: torch.device, *, safe: bool = True) -> Iterator[Overlap]:
    """Run a forward and a backward pass with weight gradients on a second stream of a GPU.

    Gradients may be used after the block, not within it.

    Args:
        device: a GPU on which kernels run.
        safe: False if a weight is known to be used more than once; then everything runs on one stream.
    """
    overlap = Overlap(_second_stream(device))
    overlap.is_safe = safe
    token = _current.set(overlap)
    try:
        yield overlap
    finally:
        _current.reset(token)
        overlap.join()


def uses_once(loss: Tensor, weights: Sequence[Tensor]) -> bool:
    """Return whether each weight enters the graph of a loss once, as a leaf or as a part of a concatenation of leaves.

    The gradient of such a weight is passed on unchanged; any other is read or modified on its way.
    """
    edges = _count_edges(loss.grad_fn)
    nodes = [node for weight in weights for node in _path(torch.autograd.graph.get_gradient_edge(weight).node)]
    return all(edges[node] == 1 for node in nodes) and not any(_is_computed(weight) for weight in weights)


def _count_edges(root: Any) -> Counter[Any]:
    """Return how many edges lead to each node of an autograd graph."""
    counts: Counter[Any] = Counter()
    stack, nodes = [root], {root}
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is not None:
                counts[node] += 1
                if node not in nodes:
                    nodes.add(node)
                    stack.append(node)
    return counts


def _path(node: Any) -> list[Any]:
    """Return a weight's node and, if the weight is a concatenation, those of its parts."""
    return [node, *(part for part, _ in node.next_functions if part is not None)]


def _is_computed(weight: Tensor) -> bool:
    """Return whether a weight is neither a leaf nor a concatenation of leaves."""
    if weight.grad_fn is None:
        return False
    parts = [part for part, _ in weight.grad_fn.next_functions if part is not None]
    return not weight.grad_fn.name().startswith("CatBackward") or any(part.next_functions for part in parts)
