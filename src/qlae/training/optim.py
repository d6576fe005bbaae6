"""AdamW with decoupled decay over flat parameters, and who is decayed: codebooks never are."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .. import kernels
from ..config import OptimizerConfig
from ..objectives import Player
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
        gradients: to be filled before each step.
        first, second: the moments, flat.
        moves: the number of steps so far, a scalar on the device, so that nothing has to be read or sent.
    """

    def __init__(self, flat: FlatParameters, config: OptimizerConfig):
        self.config = config
        self.flat = flat
        self.gradients = FlatGradients(flat)
        self.first, self.second = flat.zeros(), flat.zeros()
        self.moves = torch.zeros((), device=flat.values.device)

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Descend gradients, one a parameter; those of decayed parameters are clipped entry by entry, if at all."""
        self.moves += 1
        decayed, undecayed = self.flat.stretches
        if kernels.usable(self.flat.values):
            self.gradients.gather(gradients, convert=undecayed)
            self._step_by_kernel(decayed, self.config.weight_decay, self.config.clip, self.gradients.rounded)
            self._step_by_kernel(undecayed, 0.0, None, None)
        else:
            self.gradients.gather(gradients, convert=slice(None))
            if self.config.clip is not None:
                self.gradients.values[decayed].clamp_(-self.config.clip, self.config.clip)
            self._step_by_torch(decayed, self.config.weight_decay)
            self._step_by_torch(undecayed, 0.0)
            self.flat.refresh()

    def _step_by_kernel(self, stretch: slice, weight_decay: float, clip: float | None, rounded: Tensor | None) -> None:
        from ..kernels import adamw

        if stretch.stop == stretch.start:
            return
        gradients = self.gradients.values if rounded is None else rounded
        adamw.step(
            self.flat.values[stretch],
            gradients[stretch],
            self.first[stretch],
            self.second[stretch],
            None if self.flat.copies is None else self.flat.copies[stretch],
            self.moves,
            learning_rate=self.config.learning_rate,
            beta1=self.config.beta1,
            beta2=self.config.beta2,
            weight_decay=weight_decay,
            epsilon=EPSILON,
            clip=clip,
        )

    def _step_by_torch(self, stretch: slice, weight_decay: float) -> None:
        if stretch.stop == stretch.start:
            return
        torch._fused_adamw_(
            [self.flat.values[stretch]],
            [self.gradients.values[stretch]],
            [self.first[stretch]],
            [self.second[stretch]],
            [],
            [self.moves],
            lr=self.config.learning_rate,
            beta1=self.config.beta1,
            beta2=self.config.beta2,
            weight_decay=weight_decay,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )
