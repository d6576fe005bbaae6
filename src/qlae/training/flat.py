"""All parameters of a model in one buffer, so that one operation updates all of them.

Each parameter becomes a view of its stretch of the buffer, in the memory format that it had; whatever has one number a
parameter (gradients, moments, averages) is a buffer of the same layout. What would be a loop over dozens of small
tensors (optimizer, average, clipping) is then a few operations on large ones.
"""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn

ALIGNMENT = 64  # entries; a stretch starts at a multiple, as vector instructions and matrix kernels like it


class FlatParameters:
    """Parameters in groups, each group one stretch of a buffer.

    Args:
        groups: lists of parameters, none twice; all on one device and of one type.
        reduced: those among them that become copies in ``precision`` of their stretch, instead of views of it.

    Attributes:
        values: the buffer (num_entries,); writing to it is writing to the parameters, once ``refresh`` is called where
            some are copies.
        copies: the same in ``precision``, of which those that are ``reduced`` are views; None if there are none.
        starts: where each parameter begins.
        are_copies: which parameters are copies.
        stretches: the slice of each group.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[nn.Parameter]],
        *,
        reduced: Collection[nn.Parameter] = (),
        precision: torch.dtype = torch.bfloat16,
    ):
        self.parameters = [parameter for group in groups for parameter in group]
        self.starts: list[int] = []
        self.stretches: list[slice] = []
        end = 0
        for group in groups:
            start = end
            for parameter in group:
                self.starts.append(end)
                end += -(-parameter.numel() // ALIGNMENT) * ALIGNMENT
            self.stretches.append(slice(start, end))
        first = self.parameters[0]
        self.values = torch.zeros(end, dtype=first.dtype, device=first.device)
        for parameter, view in zip(self.parameters, self.views(self.values), strict=True):
            view.copy_(parameter.detach())
        chosen = set(reduced)
        self.copies = self.values.to(precision) if chosen else None
        self.are_copies = [parameter in chosen for parameter in self.parameters]
        exact = self.views(self.values)
        copied = exact if self.copies is None else self.views(self.copies)
        for i, parameter in enumerate(self.parameters):
            parameter.data = (copied if self.are_copies[i] else exact)[i]

    @torch.no_grad()
    def refresh(self) -> None:
        """Bring the copies up to date with the buffer."""
        if self.copies is not None:
            self.copies.copy_(self.values)

    def zeros(self) -> Tensor:
        """Another buffer of the same layout."""
        return torch.zeros_like(self.values)

    def views(self, buffer: Tensor) -> list[Tensor]:
        """The stretch of every parameter in a buffer of this layout, in the parameter's shape and memory format."""
        return [
            _view(buffer[start : start + parameter.numel()], parameter)
            for start, parameter in zip(self.starts, self.parameters, strict=True)
        ]


class FlatGradients:
    """Where the gradients of flat parameters are gathered.

    Attributes:
        values: all of them, flat.
        rounded: the same of parameters that are copies, as they came; None where there are no copies.
    """

    def __init__(self, flat: FlatParameters):
        self.values = flat.zeros()
        self.rounded = None if flat.copies is None else torch.zeros_like(flat.copies)
        self._flat = flat
        self._exact = [view for view, copy in zip(flat.views(self.values), flat.are_copies, strict=True) if not copy]
        self._nothing = torch.zeros(0) if self.rounded is None else torch.zeros_like(self.rounded)

    def gather(self, gradients: Sequence[Tensor], *, convert: slice) -> None:
        """Take in a gradient for each parameter; the rounded ones of a stretch go into ``values`` as well."""
        if self.rounded is not None:
            torch.cat(self._pieces(gradients), out=self.rounded)
            self.values[convert].copy_(self.rounded[convert])
        exact = [gradient for gradient, copy in zip(gradients, self._flat.are_copies, strict=True) if not copy]
        if exact:
            torch._foreach_copy_(self._exact, exact)

    def _pieces(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """The gradients of copies one after the other, as they lie in memory, with nothing in between."""
        pieces, end = [], 0
        for start, gradient, parameter, copy in zip(
            self._flat.starts, gradients, self._flat.parameters, self._flat.are_copies, strict=True
        ):
            if copy:
                pieces += [self._nothing[end:start], _entries(gradient, parameter)]
                end = start + gradient.numel()
        return [piece for piece in (*pieces, self._nothing[end:]) if len(piece)]


def _is_channels_last(x: Tensor) -> bool:
    return x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()


def _entries(x: Tensor, like: Tensor) -> Tensor:
    """All entries, in the order in which those of another tensor of this shape lie in memory."""
    return (x.permute(0, 2, 3, 1) if _is_channels_last(like) else x).reshape(-1)


def _view(entries: Tensor, like: Tensor) -> Tensor:
    if _is_channels_last(like):
        outer, inner, height, width = like.shape
        return entries.view(outer, height, width, inner).permute(0, 3, 1, 2)
    return entries.view(like.shape)
