"""The optimizer of a player: AdamW over flat parameters, without decay for codebooks, with scheduled rates.

All parameters of a player lie in one buffer, so that one operation updates all of them. Each parameter becomes a view
of its span of the buffer, in the memory format that it had. Gradients, moments and averages are buffers of the same
layout. Instead of a loop over dozens of small tensors, optimizer, average and clipping are then a few operations on
large ones.
"""

import dataclasses
from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn

from ..config import OptimizerConfig, TrainingConfig
from ..objectives import Player
from ..ops import dispatch
from ..ops.adamw import AdamWBuffers, adamw_step
from ..schedules import curve_factor

ALIGNMENT = 64  # entries; a span starts at a multiple, which vector instructions and matrix kernels need


class FlatParameters:
    """Parameters in groups, each group one span of a buffer.

    Args:
        groups: lists of parameters, all different, on one device and of one type.
        reduced: those among them that become copies of their span in bfloat16, instead of views of it.

    Attributes:
        values: the buffer (num_entries,). Writing to it changes the parameters; copies change with ``refresh``.
        copies: the buffer in bfloat16; None if no parameter is reduced.
        are_copies: whether each parameter is a copy.
        spans: the slice of each group.
    """

    def __init__(self, groups: Sequence[Sequence[nn.Parameter]], *, reduced: Collection[nn.Parameter] = ()):
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
        self.values = self.parameters[0].new_zeros(end, requires_grad=False)
        views = self.views(self.values)
        for parameter, view in zip(self.parameters, views, strict=True):
            view.copy_(parameter.detach())
        reduced_set = set(reduced)
        self.are_copies = [parameter in reduced_set for parameter in self.parameters]
        self.copies = self.values.to(torch.bfloat16) if reduced_set else None
        copy_views = views if self.copies is None else self.views(self.copies)
        for parameter, is_copy, view, copy in zip(self.parameters, self.are_copies, views, copy_views, strict=True):
            parameter.data = copy if is_copy else view

    @torch.no_grad()
    def refresh(self) -> None:
        """Bring the copies up to date with the buffer."""
        if self.copies is not None:
            self.copies.copy_(self.values)

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
        self.values = torch.zeros_like(flat.values)
        self.rounded = None if flat.copies is None else torch.zeros_like(flat.copies)
        # Torch copies dozens of tensors per launch, which takes as long as the largest: so the large ones come first.
        order = sorted(range(len(flat.parameters)), key=lambda i: flat.parameters[i].numel(), reverse=True)
        self._rows = [[i for i in order if flat.are_copies[i] == rounded] for rounded in (True, False)]
        buffers = (self.values if self.rounded is None else self.rounded), self.values
        self._views = [
            [views[i] for i in rows] for rows, views in zip(self._rows, map(flat.views, buffers), strict=True)
        ]

    def gather(self, gradients: Sequence[Tensor], *, convert: slice) -> None:
        """Copy one gradient per parameter into the buffers.

        Args:
            gradients: in the order of the parameters.
            convert: the span whose rounded gradients are needed in ``values`` as well.
        """
        rounded, exact = ([gradients[i] for i in rows] for rows in self._rows)
        if self.rounded is not None:
            torch._foreach_copy_(self._views[0], rounded)
            self.values[convert].copy_(self.rounded[convert])
        if exact:
            torch._foreach_copy_(self._views[1], exact)


def _view(entries: Tensor, like: Tensor) -> Tensor:
    if like.dim() == 4 and like.is_contiguous(memory_format=torch.channels_last) and not like.is_contiguous():
        outer, inner, height, width = like.shape
        return entries.view(outer, height, width, inner).permute(0, 3, 1, 2)
    return entries.view(like.shape)


def decay_groups(player: Player, config: OptimizerConfig) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return a player's parameters, those that are decayed and those that are not.

    The paper decays everything in the encoder and the decoder; ``official`` leaves their biases out.
    """
    decayed: list[nn.Parameter] = []
    undecayed = [p for module in player.undecayed for p in module.parameters() if p.requires_grad]
    for module in player.decayed:
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                is_bias = name.rsplit(".", 1)[-1] == "bias"
                (undecayed if is_bias and not config.decay_biases else decayed).append(parameter)
    return decayed, undecayed


class Rates:
    """Factors (2,) on the learning rate and the weight decay, on the device.

    They follow the schedules of a config; with None they stay 1. ``is_scheduled`` says whether they can differ from 1.
    """

    def __init__(self, config: TrainingConfig | None, device: torch.device):
        self.factors = torch.ones(2, device=device)
        self._config = config
        self.is_scheduled = config is not None and (
            not config.schedule.is_constant or bool(config.weight_decay_schedule)
        )

    @torch.no_grad()
    def update(self, number: Tensor) -> None:
        """Compute the factors of update ``number`` (from 1; a scalar tensor)."""
        config = self._config
        if config is not None and self.is_scheduled:
            self.factors[0].copy_(config.schedule.factor(number, config.steps))
            if config.weight_decay_schedule:
                self.factors[1].copy_(curve_factor(config.weight_decay_schedule, number))


class AdamW:
    """AdamW over a player's flat parameters: the first span is decayed, the second is not.

    Args:
        flat: the parameters, in the groups of ``decay_groups``.
        config: learning rate, betas, decay and clipping.
        rates: factors on the learning rate and the weight decay; constant by default.

    Attributes:
        gradients: of the last step.
        first, second: the moments, flat.
        moves: the number of steps so far, a scalar on the device, so that nothing has to be read or sent.
    """

    def __init__(self, flat: FlatParameters, config: OptimizerConfig, rates: Rates | None = None):
        self.flat = flat
        self.rates = rates or Rates(None, flat.values.device)
        self.gradients = FlatGradients(flat)
        self.first, self.second = torch.zeros_like(flat.values), torch.zeros_like(flat.values)
        self.moves = torch.zeros((), device=flat.values.device)
        decayed, undecayed = flat.spans
        groups = (
            (self._buffers(decayed, self.gradients.rounded), config),
            (self._buffers(undecayed, None), dataclasses.replace(config, weight_decay=0.0, clip=None)),
        )
        self._groups = [(buffers, constants) for buffers, constants in groups if len(buffers.values)]

    def _buffers(self, span: slice, rounded: Tensor | None) -> AdamWBuffers:
        gradients, copies = self.gradients.values[span], self.flat.copies
        return AdamWBuffers(
            values=self.flat.values[span],
            gradients=gradients,
            raw_gradients=gradients if rounded is None else rounded[span],
            first=self.first[span],
            second=self.second[span],
            copies=None if copies is None else copies[span],
        )

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Descend gradients, one per parameter; those of decayed parameters are clipped elementwise, if at all."""
        self.moves += 1
        kernels = dispatch.uses_kernels(self.flat.values)
        self.gradients.gather(gradients, convert=self.flat.spans[1] if kernels else slice(None))
        for buffers, constants in self._groups:
            adamw_step(buffers, self.moves, self.rates.factors, constants, scheduled=self.rates.is_scheduled)
        if not kernels:  # which write the copies themselves
            self.flat.refresh()
