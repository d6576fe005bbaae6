"""Recipes: how long a model is trained, how its learning rate falls, and how large its codebooks are.

A recipe replaces defaults of the training; options that are set by name stay as they are. ``paper`` is the paper's:
200,000 updates at a constant learning rate, 10 values per codebook. ``fast`` is ours: 60,000 updates, in the second
half of which the learning rate falls to 0, and 4 values per codebook. ``docs/recipe.md`` lists what was tried and what
it gave.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ._checks import require_known


@dataclass(frozen=True)
class Recipe:
    """Defaults of the training instead of those of the preset.

    Attributes:
        steps: number of updates by size of the networks; sizes that are missing keep the preset's.
        schedule: of the learning rate.
        num_values: values per codebook of scalars; None keeps the preset's.
        for_gans: whether the recipe is for GANs as well.
    """

    steps: Mapping[str, int] = field(default_factory=dict)
    schedule: str = "constant"
    num_values: int | None = None
    for_gans: bool = False


RECIPES: dict[str, Recipe] = {
    "paper": Recipe(for_gans=True),
    "fast": Recipe(steps={"full": 60_000}, schedule="linear", num_values=4),
}


def find_recipe(name: str, *, model: str, is_gan: bool) -> Recipe:
    """Return a recipe by its name; raise ``ValueError`` if it is unknown or not meant for a model."""
    recipe = RECIPES[require_known(name, RECIPES, "recipe")]
    if is_gan and not recipe.for_gans:
        raise ValueError(f"the recipe {name!r} is for autoencoders, and {model} is a GAN; use the recipe 'paper'")
    return recipe
