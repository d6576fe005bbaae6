"""The interface of objectives: loss terms and their weights, the players that descend them, the objective itself.

An objective adds modules to a model, such as a critic, and supplies the players that train it: autoencoders have one,
GANs two. Each player descends a weighted sum of loss terms, of which some weights may follow a schedule. To add an
objective, subclass ``Objective`` and register it with a config (``registry.OBJECTIVES``); see ``docs/extending.md``.

The term ``l1``, which every objective offers, is one of the paper's negative results (Appendix "Negative Results"): the
ℓ1 norm of a player's parameter vector, the sum of the absolute values of all weights and biases of its networks.
Codebooks are left out, as they are of weight decay. It is part of the loss, so Adam rescales its gradient together with
those of the other terms; weight decay is decoupled and is not rescaled.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .._checks import whole_number
from ..config import OptimizerConfig, RunConfig
from ..models.model import Model
from ..registry import OBJECTIVES
from ..schedules import Curve, curve_factor

Terms = dict[str, Tensor]  # scalars by their config name
#: Of inputs, a generator of random numbers and the number of the update; and of targets, if a player takes them.
LossFunction = Callable[..., Terms]

L1 = "l1"  # name of the term as config weight, log key and column


class Weighting:
    """Weighs loss terms by name.

    Args:
        weights: of the terms; terms without a weight are left out.
        schedules: factors on single weights by update.
    """

    def __init__(self, weights: Mapping[str, float], schedules: Mapping[str, Curve] | None = None):
        if not weights:
            raise ValueError('a loss needs at least one term; give weights, such as {"reconstruct": 1.0}')
        self.weights = dict(weights)
        self.schedules = {name: curve for name, curve in (schedules or {}).items() if name in self.weights}
        self._vector: Tensor | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the terms that a call returns."""
        return ("loss", *self.weights)

    def __call__(self, terms: Terms, number: Tensor) -> Terms:
        """Return the weighted sum ``loss`` and the terms, unweighted.

        Args:
            terms: by name.
            number: of the update, from 1, a scalar tensor.
        """
        _require_scalars(terms, self.weights, "the objective and the latent space")
        # A few operations on all terms at once instead of a few on each.
        term_values = torch.stack([terms[name] for name in self.weights])
        if self._vector is None or (self._vector.device, self._vector.dtype) != (term_values.device, term_values.dtype):
            self._vector = term_values.new_tensor(list(self.weights.values()))  # kept, since it travels to the device
        weights = self._vector
        if self.schedules:
            one = torch.ones_like(number)
            factors = [
                curve_factor(self.schedules[name], number) if name in self.schedules else one for name in self.weights
            ]
            weights = weights * torch.stack(factors).to(weights.dtype)
        return {"loss": (weights * term_values).sum(), **{name: terms[name] for name in self.weights}}

    def loss(self, terms_of: LossFunction, networks: Iterable[nn.Module] = ()) -> LossFunction:
        """Return the loss function of a player.

        Args:
            terms_of: computes the unweighted terms.
            networks: whose trained parameters ``l1`` regularizes, if it has a weight.
        """
        regularized = [p for module in networks for p in module.parameters() if p.requires_grad]

        def loss(images: Tensor, generator: torch.Generator | None, number: Tensor, *targets: Tensor) -> Terms:
            terms = terms_of(images, generator, number, *targets)
            return self(terms | {L1: l1_norm(regularized)} if L1 in self.weights else terms, number)

        return loss


def l1_norm(parameters: Sequence[Tensor]) -> Tensor:
    """Return the sum of the absolute values of all entries, in float32 at least.

    >>> l1_norm([torch.tensor([1.0, -2.0]), torch.tensor([[0.5]])]).item()
    3.5
    """
    sums = [p.abs().sum(dtype=torch.promote_types(p.dtype, torch.float32)) for p in parameters]
    return torch.stack(sums).sum()


def _require_scalars(terms: Any, names: Iterable[str], what: str) -> None:
    """Raise an error unless terms of these names were computed, as scalars."""
    if not isinstance(terms, dict):
        raise ValueError(f'{what} must return a dictionary of terms, such as {{"loss": …}}, got {type(terms).__name__}')
    for name in names:
        if name not in terms:
            raise ValueError(f"{what} computed {', '.join(terms) or 'nothing'}, and not the loss term {name!r}")
        if not isinstance(terms[name], Tensor) or terms[name].dim():
            shape = f"of shape {tuple(terms[name].shape)}" if isinstance(terms[name], Tensor) else repr(terms[name])
            raise ValueError(f"{what} must return scalar tensors, and {name!r} is {shape}; take its mean")


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
        optimizer: settings of this player; None for those of the run, with the run's schedules.
        uses_weights_once: whether ``loss`` uses every weight exactly once and is differentiated once. Then a GPU
            computes weight gradients on a second stream. The claim is checked at the first update.
        takes_targets: whether ``loss`` takes the targets (b, num_targets) of the batch as a fourth argument.
    """

    name: str
    decayed: tuple[nn.Module, ...]
    undecayed: tuple[nn.Module, ...]
    loss: LossFunction
    terms: tuple[str, ...]
    period: int = 1
    optimizer: OptimizerConfig | None = None
    uses_weights_once: bool = False
    takes_targets: bool = False

    def __post_init__(self) -> None:
        if "loss" not in self.terms:
            raise ValueError(
                f"terms of the player {self.name!r} must name entries that its loss returns, including 'loss', which "
                f"it descends; got {self.terms!r}"
            )
        whole_number(f"period of the player {self.name!r}", self.period)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The parameters that the player moves."""
        return [parameter for module in (*self.decayed, *self.undecayed) for parameter in module.parameters()]

    def require_terms(self, terms: Any) -> None:
        """Raise an error unless the loss returned what ``terms`` names, as scalars that have a gradient."""
        _require_scalars(terms, self.terms, f"the loss of the player {self.name!r}")
        if self.parameters and not terms["loss"].requires_grad:
            raise ValueError(
                f"the loss of the player {self.name!r} depends on none of the parameters that it moves, so there is "
                "nothing to descend"
            )


def players_of(config: RunConfig, model: Model) -> list[Player]:
    """Return the players of the objective that a config names.

    Raises:
        ValueError: unless they have different names and move disjoint sets of the model's parameters.
    """
    players: list[Player] = OBJECTIVES.build(config.objective).players(model)
    known = set(model.parameters())
    owners: dict[nn.Parameter, str] = {}
    for player in players:
        if [one.name for one in players].count(player.name) > 1:
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
    return players


class Objective(ABC):
    """What a model is trained to do.

    Attributes:
        terms: names of the loss terms that the objective computes itself; all others come from the latent space.
        optional_terms: names of terms that it computes as well if they have a weight, which no model gives them.
        code_terms: those of them that need a latent space of scalar codes.
        reconstructs: whether the model learns to reconstruct images, as an autoencoder does and a GAN does not.
        networks_in_patches: whether small networks may work on patches of several pixels.
        trains_in_bfloat16: whether networks run in bfloat16 on a GPU unless float32 is asked for.
    """

    terms: ClassVar[tuple[str, ...]] = ()
    optional_terms: ClassVar[tuple[str, ...]] = ()
    code_terms: ClassVar[tuple[str, ...]] = ()
    reconstructs: ClassVar[bool] = True
    networks_in_patches: ClassVar[bool] = True
    trains_in_bfloat16: ClassVar[bool] = True

    def __init__(self, config: Any):
        self.config = config

    @classmethod
    def from_config(cls, config: Any) -> "Objective":
        """Build the objective that a config describes."""
        return cls(config)

    def build_parts(self, model: Model) -> dict[str, nn.Module]:
        """Return the modules that the objective adds to a model, such as a critic; they become ``model.parts``."""
        return {}

    @property
    def num_targets(self) -> int:
        """Whole numbers per observation that the loss needs; they are read from the run directory."""
        return 0

    def unconfirmed_latents(self, num_latents: int) -> list[int]:
        """Return the latents that nothing but this run speaks for, if other ones do have the support of other runs."""
        return []

    def describe_support(self, num_latents: int) -> list[str]:
        """Describe how many other runs have each latent; empty if the objective does not know of other runs."""
        return []

    @abstractmethod
    def players(self, model: Model) -> list[Player]:
        """Return the players: which modules are updated, with which loss, how often, and with which optimizer."""

    def weighting(self, *, without: Collection[str] = ()) -> Weighting:
        """Return the weighted sum of the config's terms, possibly without some of them."""
        weights = {name: weight for name, weight in self.config.weights.items() if name not in without}
        return Weighting(weights, self.config.schedules)


def latent_losses(model: Model, losses: dict[str, Any], num_entries: int) -> dict[str, Any]:
    """Return the losses of a latent space, those in nats per image divided by the number of image entries.

    The reconstruction is averaged over pixels and channels. Dividing the others by their number gives β the meaning
    that it has with a summed likelihood.
    """
    return {name: loss / num_entries if name in model.latent.nats else loss for name, loss in losses.items()}
