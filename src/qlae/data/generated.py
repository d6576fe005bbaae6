"""How rows of generated data sets are drawn.

Sources are either on a grid, of which all combinations occur once, or continuous and drawn at random; `load_data` takes
the same arguments for both as for rendered scenes. On a grid, ``data.sources`` holds levels (0, 1, …); a continuous
source has its value in its unit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._checks import require_known
from ..registry import DATA
from .dataset import Progress, SourceDataset
from .generated_sets import GENERATED, GeneratedSet, Values
from .sampling import draw_shares, smooth_sources
from .sources import GENERATED_SETS, grid_levels, split_sources
from .spec import SampledData

#: Observations are rounded to this many decimals of their spread, below which sines and exponentials of different
#: machines may differ. Rounded values are the same everywhere.
DECIMALS = 6


@DATA.register("generated")
@dataclass(frozen=True, kw_only=True)
class GeneratedData(SampledData):
    """A generated data set, such as pendulum; ``num_images`` is the number of rows."""

    title: ClassVar[str] = "the generated data set"

    def __post_init__(self) -> None:
        require_known(self.name, GENERATED_SETS, "generated data set")
        super().__post_init__()

    @property
    def source_sizes(self) -> Mapping[str, int]:
        return GENERATED[self.name].sizes

    @property
    def is_random(self) -> bool:
        generated = GENERATED[self.name]
        return super().is_random or bool(generated.noise or generated.continuous)

    def read(self, progress: Progress | None = None) -> SourceDataset:
        generated = GENERATED[self.name]
        varying, constant = split_sources(generated.sizes, self.sources or None, self.fixed)
        smooth = {*smooth_sources(varying, self.continuous, generated.categories), *generated.continuous} & {*varying}
        details: dict[str, Any] = {}
        if smooth or self.num_images or self.correlated:
            levels = _drawn_levels(generated, varying, smooth, self.num_images, self.correlations, self.seed)
            pairs = [list(entry) for entry in self.correlated]
            continuous = [name for name in varying if name in smooth]
            details = {"drawn": {"continuous": continuous, "correlated": pairs, "seed": self.seed}}
        else:
            levels = grid_levels([generated.sizes[name] for name in varying]).astype(np.float64)
        values = _all_values(generated, varying, constant, levels)
        known = _known_sources(generated, varying, smooth, values, levels)
        return SourceDataset(
            _observations(generated, values, self.seed),
            known if smooth else known.astype(np.int64),
            name=self.name,
            origin="generated",
            source_names=varying,
            source_sizes=() if smooth else [generated.sizes[name] for name in varying],
            fixed=constant,
            details=details,
            layout=generated.kind,
            feature_names=generated.feature_names,
        )


def _known_sources(
    generated: GeneratedSet, varying: Sequence[str], smooth: Collection[str], values: Values, levels: Values
) -> Values:
    """Return the values of continuous sources and the levels of all others that vary, (n, number of these)."""
    columns = [
        values[:, i] if quantity.name in smooth else levels[:, varying.index(quantity.name)]
        for i, quantity in enumerate(generated.quantities)
        if quantity.name in varying
    ]
    return np.stack(columns, axis=1)


def _drawn_levels(
    generated: GeneratedSet,
    varying: Sequence[str],
    smooth: set[str],
    num_rows: int | None,
    correlated: Mapping[tuple[str, str], float] | None,
    seed: int,
) -> Values:
    """Draw levels (n, number of varying sources); those of continuous sources lie anywhere in their range."""
    steps = [None if name in smooth else generated.sizes[name] for name in varying]
    num_rows = generated.num_rows if num_rows is None else num_rows
    shares = draw_shares(varying, steps, num_rows, correlated=correlated, seed=seed)
    for column, (name, count) in enumerate(zip(varying, steps, strict=True)):
        if count is None:
            shares[:, column] *= generated.sizes[name] - 1
        else:
            shares[:, column] = np.minimum(np.floor(shares[:, column] * count), count - 1)
    return shares


def _all_values(generated: GeneratedSet, varying: Sequence[str], constant: Mapping[str, int], levels: Values) -> Values:
    """Return the values (n, n_s) of all sources from levels of those that vary; a category's value is its level."""
    columns = []
    for quantity in generated.quantities:
        is_fixed = quantity.name in constant
        level = (
            np.full(len(levels), float(constant[quantity.name]))
            if is_fixed
            else levels[:, varying.index(quantity.name)]
        )
        columns.append(quantity.value(level))
    return np.stack(columns, axis=1)


def _observations(generated: GeneratedSet, values: Values, seed: int) -> NDArray[np.float32]:
    """Simulate rows, add noise and round."""
    rows = generated.simulate(values)
    spread = rows.reshape(-1, rows.shape[-1]).std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    if generated.noise:
        rng = np.random.default_rng([seed, 1])  # another stream than that of the sources
        rows = rows + generated.noise * spread * rng.standard_normal(rows.shape)
    step = 10.0 ** (np.ceil(np.log10(spread)) - DECIMALS)
    return (np.rint(rows / step) * step).astype(np.float32)
