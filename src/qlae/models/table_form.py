"""How rows of tables with categories, dates and missing values enter and leave a model.

The error of a row is the mean over its columns, and every column counts the same:

    number    (x − x̂)² / 2                  of standardised values: 1/2 for a guess of the mean
    category  −log p(level) / (2 H)          H is the entropy of the levels: 1/2 for a guess of their shares
    date      (x − x̂)² / 2, averaged over its seconds and, with half the weight each, the sine and cosine of its parts
    missing   0

A missing value is 0 in the inputs, the mean of a number, and its error is 0 whatever the decoder returns.
"""

import torch
from torch import Tensor

from ..columns import CATEGORY, DATE, feature_places
from ..observations import Observations
from .forms import VectorForm


class TableForm(VectorForm):
    """Rows (b, d) of tables: standardised numbers, levels as zeros and ones, and what is missing.

    Args:
        observations: the description of the columns.
    """

    weights: Tensor
    owners: Tensor
    indicators: Tensor
    groups: Tensor
    is_level: Tensor
    level_places: Tensor
    level_entries: Tensor
    rates: Tensor

    def __init__(self, observations: Observations):
        super().__init__(observations)
        width = observations.num_features
        weights, owners = torch.zeros(width), torch.full((width,), -1, dtype=torch.int64)
        groups: list[list[int]] = []
        rates: list[float] = []
        indicators: list[int] = []
        for column, places in zip(observations.columns, feature_places(observations.columns), strict=True):
            if column.kind == CATEGORY:
                groups.append(list(places))
                rates.append(0.5 / column.entropy)
                continue
            values = list(places)
            if column.indicates_missing:
                indicators.append(values.pop())
                owners[values] = indicators[-1]
            each = torch.full((len(values),), 0.5)
            each[0] = 1.0
            weights[values] = 0.5 * (each / each.sum() if column.kind == DATE else each)
        most = max(map(len, groups), default=0)
        padded = [group + [-1] * (most - len(group)) for group in groups]
        places_of_levels = torch.tensor(padded, dtype=torch.int64).reshape(len(groups), most)
        buffers = {
            "weights": weights,
            "owners": owners,
            "indicators": torch.tensor(indicators, dtype=torch.int64),
            "groups": places_of_levels.clamp(min=0),
            "is_level": places_of_levels >= 0,
            "level_places": places_of_levels[places_of_levels >= 0],
            "level_entries": torch.nonzero(places_of_levels.flatten() >= 0).flatten(),
            "rates": torch.tensor(rates),
        }
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer, persistent=False)

    @property
    def num_terms(self) -> int:
        return len(self.observations.columns)

    def observed(self, inputs: Tensor) -> Tensor:
        """Return 1 where a number is observed and 0 where it is missing, (b, d)."""
        if not len(self.indicators):
            return torch.ones_like(inputs)
        is_missing = inputs[:, self.owners.clamp(min=0)]
        return torch.where(self.owners >= 0, 1 - is_missing, 1.0)

    def log_shares(self, outputs: Tensor) -> Tensor:
        """Return the logarithms of the predicted shares of levels, (b, categories, levels); 0 where there is none."""
        logits = outputs.float()[:, self.groups].masked_fill(~self.is_level, -torch.inf)
        return logits.log_softmax(-1).masked_fill(~self.is_level, 0.0)

    def to_mean(self, outputs: Tensor) -> Tensor:
        """Return the means of numbers, the shares of levels, and 0 for what says that a value is missing."""
        mean = outputs.clone()
        if len(self.groups):
            shares = self.log_shares(outputs).exp().flatten(1)[:, self.level_entries]
            mean[:, self.level_places] = shares.to(mean.dtype)
        if len(self.indicators):
            mean[:, self.indicators] = 0.0
        return mean

    def error(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        return self.nats(outputs, inputs).mean() / self.num_terms

    def nats(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        squares = (outputs.float() - inputs).square() * self.weights * self.observed(inputs)
        errors = squares.sum(1)
        if len(self.groups):
            levels = inputs[:, self.groups] * self.is_level
            errors = errors - ((levels * self.log_shares(outputs)).sum(-1) * self.rates).sum(1)
        return errors
