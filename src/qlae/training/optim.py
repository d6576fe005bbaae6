"""AdamW with decoupled decay over flat parameters, and who is decayed: codebooks never are."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..config import OptimizerConfig
from ..objectives import Player
from ..ops import kernels
from .flat import FlatGradients, FlatParameters

EPSILON = 1e-8


def decay_groups(player: Player, config: OptimizerConfig) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """A player's parameters, those that are decayed and those that are not.

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


class AdamW:
    """AdamW over a player's parameters, flat: the first stretch decayed, the second not, which is then plain Adam.

    Args:
        flat: the parameters, as ``decay_groups`` gives them.
        config: learning rate, betas, decay and clipping.

    Attributes:
        gradients: of the last step.
        first, second: the moments, flat.
        moves: the number of steps so far, a scalar on the device, so that nothing has to be read or sent.
    """

    def __init__(self, flat: FlatParameters, config: OptimizerConfig):
        self.config = config
        self.flat = flat
        self.gradients = FlatGradients(flat)
        self.first, self.second = flat.zeros(), flat.zeros()
        self.moves = torch.zeros((), device=flat.values.device)
        decayed, undecayed = flat.stretches
        stretches = (
            self._stretch(decayed, config.weight_decay, config.clip, self.gradients.rounded),
            self._stretch(undecayed, 0.0, None, None),
        )
        self._stretches = [stretch for stretch in stretches if len(stretch.values)]

    def _stretch(self, at: slice, decay: float, clip: float | None, rounded: Tensor | None) -> "_Stretch":
        gradients, copies = self.gradients.values[at], self.flat.copies
        return _Stretch(
            values=self.flat.values[at],
            gradients=gradients,
            rounded=gradients if rounded is None else rounded[at],
            first=self.first[at],
            second=self.second[at],
            copies=None if copies is None else copies[at],
            weight_decay=decay,
            clip=clip,
        )

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Descend gradients, one a parameter; those of decayed parameters are clipped entry by entry, if at all."""
        self.moves += 1
        if kernels.usable(self.flat.values):
            self.gradients.gather(gradients, convert=self.flat.stretches[1])
            for stretch in self._stretches:
                self._step_by_kernel(stretch)
        else:
            self.gradients.gather(gradients, convert=slice(None))
            for stretch in self._stretches:
                self._step_by_torch(stretch)
            self.flat.refresh()

    def _step_by_kernel(self, stretch: "_Stretch") -> None:
        from ..ops.kernels import adamw

        adamw.step(
            stretch.values,
            stretch.rounded,
            stretch.first,
            stretch.second,
            stretch.copies,
            self.moves,
            learning_rate=self.config.learning_rate,
            beta1=self.config.beta1,
            beta2=self.config.beta2,
            weight_decay=stretch.weight_decay,
            epsilon=EPSILON,
            clip=stretch.clip,
        )

    def _step_by_torch(self, stretch: "_Stretch") -> None:
        if stretch.clip is not None:
            stretch.gradients.clamp_(-stretch.clip, stretch.clip)
        torch._fused_adamw_(
            [stretch.values],
            [stretch.gradients],
            [stretch.first],
            [stretch.second],
            [],
            [self.moves],
            lr=self.config.learning_rate,
            beta1=self.config.beta1,
            beta2=self.config.beta2,
            weight_decay=stretch.weight_decay,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )


class _Stretch(NamedTuple):
    """A part of the buffers that is stepped alike."""

    values: Tensor
    gradients: Tensor
    rounded: Tensor  # the gradients as they came, which is what a kernel reads
    first: Tensor
    second: Tensor
    copies: Tensor | None
    weight_decay: float
    clip: float | None
