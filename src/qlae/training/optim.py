"""The optimizer of one player: AdamW with decoupled decay, and codebooks in a group without any."""

from torch import nn, optim

from ..config import OptimizerConfig
from ..objectives import Player


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


def build_optimizer(player: Player, config: OptimizerConfig) -> optim.AdamW:
    """AdamW over a player's parameters. A group without decay is plain Adam, which is what codebooks take."""
    decayed, undecayed = decay_groups(player, config)
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": undecayed, "weight_decay": 0.0}]
    return optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        fused=True,
    )
