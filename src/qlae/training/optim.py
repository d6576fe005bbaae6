"""The optimizer of a player: AdamW over flat parameters, without decay for codebooks, with scheduled rates."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..config import OptimizerConfig, TrainingConfig
from ..objectives import Player
from ..ops import dispatch
from ..ops.adamw import AdamWBuffers, AdamWSettings, adamw_step
from ..schedules import curve_factor
from .flat import FlatGradients, FlatParameters


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
    """Factors on the learning rate and the weight decay, on the device.

    Args:
        config: whose schedules the factors follow; None for factors that stay 1.
        device: of the factors.

    Attributes:
        factors: (2,), the learning rate's and the weight decay's.
        is_scheduled: whether they can differ from 1.
    """

    def __init__(self, config: TrainingConfig | None, device: torch.device):
        self.factors = torch.ones(2, device=device)
        self.is_scheduled = config is not None and not (
            config.schedule.is_constant and not config.weight_decay_schedule
        )
        self._config = config

    @torch.no_grad()
    def update(self, number: Tensor) -> None:
        """Compute the factors of update ``number`` (from 1; a scalar tensor)."""
        if not self.is_scheduled or self._config is None:
            return
        config = self._config
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
        self.config = config
        self.flat = flat
        self.rates = rates or Rates(None, flat.values.device)
        self.gradients = FlatGradients(flat)
        self.first, self.second = flat.zeros(), flat.zeros()
        self.moves = torch.zeros((), device=flat.values.device)
        decayed, undecayed = flat.spans
        groups = (
            (self._buffers(decayed, self.gradients.rounded), self._settings(config.weight_decay, config.clip)),
            (self._buffers(undecayed, None), self._settings(0.0, None)),
        )
        self._groups = [(buffers, settings) for buffers, settings in groups if len(buffers.values)]

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

    def _settings(self, weight_decay: float, clip: float | None) -> AdamWSettings:
        config = self.config
        return AdamWSettings(
            learning_rate=config.learning_rate,
            beta1=config.beta1,
            beta2=config.beta2,
            weight_decay=weight_decay,
            clip=clip,
            scheduled=self.rates.is_scheduled,
        )

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Descend gradients, one per parameter; those of decayed parameters are clipped elementwise, if at all."""
        self.moves += 1
        kernels = dispatch.uses_kernels(self.flat.values)
        self.gradients.gather(gradients, convert=self.flat.spans[1] if kernels else slice(None))
        for buffers, settings in self._groups:
            adamw_step(buffers, self.moves, self.rates.factors, settings)
        if not kernels:  # which write the copies themselves
            self.flat.refresh()
