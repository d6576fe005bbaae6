"""All parameters of a player in one buffer, so that one operation updates all of them.

Each parameter becomes a view of its span of the buffer, in the memory format that it had. Gradients, moments and
averages are buffers of the same layout. What would be a loop over dozens of small tensors (optimizer, average,
clipping) is then a few operations on large ones.
"""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn

ALIGNMENT = 64  # entries; a span starts at a multiple, which vector instructions and matrix kernels need


class FlatParameters:
    """Parameters in groups, each group one span of a buffer.

    Args:
        groups: lists of parameters, all different, on one device and of one type.
        reduced: those among them that become copies of their span in ``precision``, instead of views of it.
        precision: of the copies.

    Attributes:
        values: the buffer (num_entries,). Writing to it changes the parameters; copies change with ``refresh``.
        copies: the buffer in ``precision``; None if no parameter is reduced.
        spans: the slice of each group.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[nn.Parameter]],
        *,
        reduced: Collection[nn.Parameter] = (),
        precision: torch.dtype = torch.bfloat16,
    ):
        self.parameters = [parameter for group in groups for parameter in group]
        self._starts: list[int] = []
        self.spans: list[slice] = []
        end = 0
        for group in groups:
            start = end
            for parameter in group:
                self._starts.append(end)
                end += -(-parameter.numel() // ALIGNMENT) * ALIGNMENT
            self.spans.append(slice(start, end))
        first = self.parameters[0]
        self.values = torch.zeros(end, dtype=first.dtype, device=first.device)
        for parameter, view in zip(self.parameters, self.views(self.values), strict=True):
            view.copy_(parameter.detach())
        reduced_set = set(reduced)
        self.copies = self.values.to(precision) if reduced_set else None
        self.are_copies = [parameter in reduced_set for parameter in self.parameters]
        exact = self.views(self.values)
        copy_views = exact if self.copies is None else self.views(self.copies)
        for i, parameter in enumerate(self.parameters):
            parameter.data = (copy_views if self.are_copies[i] else exact)[i]

    @torch.no_grad()
    def refresh(self) -> None:
        """Bring the copies up to date with the buffer."""
        if self.copies is not None:
            self.copies.copy_(self.values)

    def zeros(self) -> Tensor:
        """Return another buffer of the same layout."""
        return torch.zeros_like(self.values)

    def views(self, buffer: Tensor) -> list[Tensor]:
        """Return the span of every parameter in a buffer of this layout, in the parameter's shape and memory format."""
        return [
            _view(buffer[start : start + parameter.numel()], parameter)
            for start, parameter in zip(self._starts, self.parameters, strict=True)
        ]


class FlatGradients:
    """A buffer that gathers the gradients of flat parameters.

    Attributes:
        values: all gradients, flat, in float32.
        rounded: the gradients of parameters that are copies, in their precision; None if there are no copies.
    """

    def __init__(self, flat: FlatParameters):
        self.values = flat.zeros()
        self.rounded = None if flat.copies is None else torch.zeros_like(flat.copies)
        sizes = [parameter.numel() for parameter in flat.parameters]
        # Torch copies dozens of tensors per launch, which takes as long as the largest: so the large ones come first.
        order = sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)
        self._rows = [[i for i in order if flat.are_copies[i] == rounded] for rounded in (True, False)]
        rounded = [] if self.rounded is None else flat.views(self.rounded)
        exact = flat.views(self.values)
        self._rounded_views = [rounded[i] for i in self._rows[0]]
        self._exact_views = [exact[i] for i in self._rows[1]]

    def gather(self, gradients: Sequence[Tensor], *, convert: slice) -> None:
        """Copy one gradient per parameter into the buffers.

        Args:
            gradients: in the order of the parameters.
            convert: the span whose rounded gradients are needed in ``values`` as well.
        """
        rounded, exact = ([gradients[i] for i in rows] for rows in self._rows)
        if self.rounded is not None:
            torch._foreach_copy_(self._rounded_views, rounded)
            self.values[convert].copy_(self.rounded[convert])
        if exact:
            torch._foreach_copy_(self._exact_views, exact)


def _view(entries: Tensor, like: Tensor) -> Tensor:
    if like.dim() == 4 and like.is_contiguous(memory_format=torch.channels_last) and not like.is_contiguous():
        outer, inner, height, width = like.shape
        return entries.view(outer, height, width, inner).permute(0, 3, 1, 2)
    return entries.view(like.shape)
