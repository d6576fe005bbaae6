"""Recipes: how long a model is trained, how its learning rate falls, and how its codes are kept short.

A recipe replaces defaults of the training; options that are set by name stay as they are. ``paper`` is the paper's:
200,000 updates at a constant learning rate. ``fast`` is ours: 60,000 updates, in the second half of which the learning
rate falls to 0, and a penalty on the entropy of codes (``objectives/code_penalties.py``), which rises at the start of
the run and falls to a quarter at its end. Models that cannot compute the penalty, or have a schedule of their own, go
without. ``docs/recipe.md`` lists which models get what, what was tried and what it gave.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ._checks import require_known
from .schedules import Curve

ShareCurve = tuple[tuple[float, float], ...]  # (share of the run, factor)


@dataclass(frozen=True)
class Recipe:
    """Defaults of the training instead of those of the preset.

    Attributes:
        steps: number of updates by size of the networks; sizes that are missing keep the preset's.
        schedule: of the learning rate.
        weights: of optional loss terms, for models that can compute them.
        weight_schedules: factors on these weights over the run.
        for_gans: whether the recipe is for GANs as well.
    """

    steps: Mapping[str, int] = field(default_factory=dict)
    schedule: str = "constant"
    weights: Mapping[str, float] = field(default_factory=dict)
    weight_schedules: Mapping[str, ShareCurve] = field(default_factory=dict)
    for_gans: bool = False

    def curve(self, term: str, steps: int) -> Curve:
        """Return the factors on the weight of a term in a run of ``steps`` updates; empty if it is constant."""
        return tuple((round(share * steps), factor) for share, factor in self.weight_schedules.get(term, ()))


RECIPES: dict[str, Recipe] = {
    "paper": Recipe(for_gans=True),
    "fast": Recipe(
        steps={"full": 60_000},
        schedule="linear",
        weights={"entropy": 0.02},
        weight_schedules={"entropy": ((0.0, 0.0), (0.06, 0.0), (0.3, 1.0), (0.6, 1.0), (0.9, 0.25))},
    ),
}


def find_recipe(name: str, *, model: str, is_gan: bool) -> Recipe:
    """Return a recipe by its name; raise ``ValueError`` if it is unknown or not meant for a model."""
    recipe = RECIPES[require_known(name, RECIPES, "recipe")]
    if is_gan and not recipe.for_gans:
        raise ValueError(f"the recipe {name!r} is for autoencoders, and {model} is a GAN; use the recipe 'paper'")
    return recipe
