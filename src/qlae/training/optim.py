"""AdamW with decoupled decay over flat parameters, and who is decayed: codebooks never are."""

import torch
from torch import nn

from ..config import OptimizerConfig
from ..objectives import Player
from .flat import FlatParameters

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
        gradients: to be filled before each step, flat.
        first, second: the moments, flat.
        moves: the number of steps so far, a scalar on the device, so that nothing has to be read or sent.
    """

    def __init__(self, flat: FlatParameters, config: OptimizerConfig):
        self.config = config
        self.flat = flat
        self.gradients, self.first, self.second = flat.zeros(), flat.zeros(), flat.zeros()
        self.moves = torch.zeros((), device=flat.values.device)
        decayed, undecayed = flat.stretches
        self._clipped = self.gradients[decayed]
        self._stretches = [
            (decay, [buffer[stretch] for buffer in (flat.values, self.gradients, self.first, self.second)])
            for stretch, decay in ((decayed, config.weight_decay), (undecayed, 0.0))
            if stretch.stop > stretch.start
        ]

    @torch.no_grad()
    def step(self) -> None:
        """Descend the gradients by one step; those of decayed parameters are clipped entry by entry, if at all."""
        config = self.config
        if config.clip is not None:
            self._clipped.clamp_(-config.clip, config.clip)
        self.moves += 1
        for decay, (values, gradients, first, second) in self._stretches:
            torch._fused_adamw_(
                [values],
                [gradients],
                [first],
                [second],
                [],
                [self.moves],
                lr=config.learning_rate,
                beta1=config.beta1,
                beta2=config.beta2,
                weight_decay=decay,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )
        self.flat.refresh()
