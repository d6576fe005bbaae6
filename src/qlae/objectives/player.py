"""A player: one party of an objective, which updates parameters of its own. Autoencoders have one, GANs two."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from .._checks import whole_number
from ..config import OptimizerConfig, RunConfig
from ..models.model import Model
from ..registry import OBJECTIVES
from .weighting import LossFunction


@dataclass(frozen=True)
class Player:
    """Which modules are updated, with which loss, how often, and with which optimizer.

    Attributes:
        name: of the player, in checkpoints and, for players after the first, before its terms in the log.
        decayed: modules whose parameters take weight decay. In reduced precision, these run in bfloat16.
        undecayed: modules whose parameters take none (codebooks). These always run in float32.
        loss: a function of images (b, 3, r, r), a generator for random numbers, and the number of the update (from 1; a
            scalar tensor), which returns scalar terms by name; ``"loss"`` is the one to descend.
        terms: the names that ``loss`` returns, in order.
        period: the player moves at every update whose number is a multiple of this.
        optimizer: settings of its own; None for those of the run, with the run's schedules.
        uses_weights_once: whether ``loss`` uses every weight exactly once and is differentiated once. Then a GPU
            computes weight gradients on a second stream. The claim is checked at the first update.
    """

    name: str
    decayed: tuple[nn.Module, ...]
    undecayed: tuple[nn.Module, ...]
    loss: LossFunction
    terms: tuple[str, ...]
    period: int = 1
    optimizer: OptimizerConfig | None = None
    uses_weights_once: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"the name of a player must be a non-empty string, got {self.name!r}")
        for field in ("decayed", "undecayed"):
            modules: Any = getattr(self, field)
            if not isinstance(modules, tuple | list) or not all(isinstance(module, nn.Module) for module in modules):
                raise ValueError(
                    f"{field} of the player {self.name!r} must be a tuple of modules, such as (model.encoder, "
                    f"model.decoder), got {type(modules).__name__}"
                )
        if not callable(self.loss):
            raise ValueError(f"loss of the player {self.name!r} must be a function, got {self.loss!r}")
        terms: Any = self.terms
        if isinstance(terms, str) or "loss" not in terms:
            raise ValueError(
                f"terms of the player {self.name!r} must name what its loss returns, including 'loss', which it "
                f"descends; got {self.terms!r}"
            )
        whole_number(f"period of the player {self.name!r}", self.period)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The parameters that the player moves."""
        return [parameter for module in (*self.decayed, *self.undecayed) for parameter in module.parameters()]


def players_of(config: RunConfig, model: Model) -> list[Player]:
    """Return the players of the objective that a config names."""
    return require_players(OBJECTIVES.build(config.objective).players(model), model)


def require_players(players: Sequence[Player], model: Model) -> list[Player]:
    """Return the players of an objective; raise an error unless each moves parameters of the model of its own.

    Args:
        players: what ``Objective.players`` returned.
        model: the model.
    """
    if not isinstance(players, tuple | list) or not players or not all(isinstance(one, Player) for one in players):
        raise ValueError(
            f"players must return a list of at least one Player, got {type(players).__name__}"
            f"{f' of {len(players)}' if isinstance(players, tuple | list) else ''}"
        )
    known = set(model.parameters())
    owners: dict[nn.Parameter, str] = {}
    for player in players:
        if player.name in [one.name for one in players if one is not player]:
            raise ValueError(f"two players are called {player.name!r}; checkpoints need different names")
        for parameter in player.parameters:
            if parameter not in known:
                raise ValueError(
                    f"the player {player.name!r} moves a parameter of shape {tuple(parameter.shape)} that the model "
                    "does not have; return its module from build_parts, and take it from model.parts"
                )
            if owners.setdefault(parameter, player.name) != player.name:
                raise ValueError(
                    f"the players {owners[parameter]!r} and {player.name!r} both move a parameter of shape "
                    f"{tuple(parameter.shape)}; a module belongs to one player"
                )
    return list(players)


def require_terms(player: Player, terms: Any) -> None:
    """Raise an error unless a player's loss returned what its ``terms`` name, as scalars that have a gradient."""
    what = f"the loss of the player {player.name!r}"
    if not isinstance(terms, dict):
        raise ValueError(f'{what} must return a dictionary of terms, such as {{"loss": …}}, got {type(terms).__name__}')
    for name in player.terms:
        if name not in terms:
            raise ValueError(f"{what} returned {', '.join(terms) or 'nothing'} without {name!r}, which terms names")
        if not isinstance(terms[name], Tensor) or terms[name].dim():
            shape = f"of shape {tuple(terms[name].shape)}" if isinstance(terms[name], Tensor) else repr(terms[name])
            raise ValueError(f"{what} must return scalar tensors, and {name!r} is {shape}; take its mean")
    if player.parameters and not terms["loss"].requires_grad:
        raise ValueError(f"{what} depends on none of the parameters that it moves, so there is nothing to descend")
