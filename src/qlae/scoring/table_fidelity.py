"""How faithful reconstructions of rows of tables are: R² of numbers, accuracy of categories, without missing values.

``r2`` is over all columns: of a category it compares the shares of levels, which the model gives, with zeros and ones.
``accuracy`` is that of the most probable level, and ``majority`` that of the most frequent one of each category.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..columns import CATEGORY, TableColumn, feature_places
from .shares import explained_share, interval_of

Arrays = dict[str, NDArray[Any]]


class TableFidelity:
    """R² and accuracy of the columns of a table.

    The arrays are ``column_errors`` and ``column_variances`` (n, columns), squared errors and squared deviations from
    the sample's mean, relative to the variance in the sample and 0 where a value is missing; for each column whether it
    is a category and how many values are observed; and for categories ``hits`` and ``majority_hits`` (n, columns).
    """

    key = "r2"  # of the score over all columns
    parts = ("column_errors", "column_variances", "is_category", "num_observed", "hits", "majority_hits")

    def __init__(self, form: Any, sample: NDArray[Any]):
        self.form = form
        self.columns = form.observations.columns
        self._rows: list[tuple[NDArray[Any], ...]] = []

    def add(self, outputs: Any, inputs: Any) -> None:
        decoded = self.form.to_mean(outputs).double().cpu().numpy()
        self._rows.append((decoded, inputs.double().cpu().numpy()))

    def arrays(self) -> Arrays:
        decoded, inputs = (np.concatenate(parts) for parts in zip(*self._rows, strict=True))
        return compare_rows(decoded, inputs, self.columns)

    @staticmethod
    def score(arrays: Arrays) -> dict[str, Any]:
        """Return R² over all columns, and R² of numbers and the accuracy of categories, if there are any."""
        errors, variances = arrays["column_errors"], arrays["column_variances"]
        is_category, counts = arrays["is_category"].astype(bool), np.maximum(1, arrays["num_observed"])
        accuracy, majority = arrays["hits"].sum(0) / counts, arrays["majority_hits"].sum(0) / counts
        scores: dict[str, Any] = {"r2": explained_share(_per_value(errors, counts), _per_value(variances, counts))}
        if not is_category.all():
            numbers = ~is_category
            parts = (_per_value(array, counts)[numbers] for array in (errors, variances))
            scores["r2_numbers"] = explained_share(*parts)
        if is_category.any():
            scores["accuracy"] = float(accuracy[is_category].mean())
            scores["majority"] = float(majority[is_category].mean())
        shares = 1 - errors.sum(0) / np.where(variances.sum(0) > 0, variances.sum(0), 1.0)
        scores["columns"] = [
            {"observed": int(arrays["num_observed"][i])}
            | ({"r2": round(float(shares[i]), 6)} if variances[:, i].any() else {})
            | (
                {"accuracy": round(float(accuracy[i]), 6), "majority": round(float(majority[i]), 6)}
                if is_category[i]
                else {}
            )
            for i in range(errors.shape[1])
        ]
        return scores

    @staticmethod
    def rows(arrays: Arrays) -> NDArray[np.float64]:
        """Return a number for each row, whose mean is R² over all columns."""
        errors, variances = arrays["column_errors"], arrays["column_variances"]
        counts = np.maximum(1, arrays["num_observed"])
        total = float(_per_value(variances, counts).sum())
        if total == 0:
            return np.zeros(len(errors))
        return np.asarray(1 - (errors / counts).sum(1) * len(errors) / total)

    @staticmethod
    def score_unseen(arrays: Arrays) -> float:
        """Return R² over all columns of data that the model was not fitted to."""
        return float(TableFidelity.score(arrays)["r2"])

    @staticmethod
    def intervals(arrays: Arrays, num_halves: int) -> dict[str, list[float]]:
        """Return the 95% interval of R²."""
        errors, variances = arrays["column_errors"], arrays["column_variances"]
        counts = np.maximum(1, arrays["num_observed"]) / len(errors)  # of the sample, also for its halves

        def score(rows: Any) -> float:
            return explained_share(errors[rows].sum(0) / counts, variances[rows].sum(0) / counts)

        return {"r2": interval_of(score, len(errors), num_halves)}


def compare_rows(decoded: NDArray[Any], inputs: NDArray[Any], columns: tuple[TableColumn, ...]) -> Arrays:
    """Return the arrays of `TableFidelity` for decoded rows and inputs (n, d), both in standardised features."""
    shape = (len(inputs), len(columns))
    errors, variances, hits, majority = (np.zeros(shape) for _ in range(4))
    is_observed = np.ones(shape, bool)
    for i, (column, places) in enumerate(zip(columns, feature_places(columns), strict=True)):
        features = slice(places.start, places.stop - column.indicates_missing)
        mine, true = decoded[:, features], inputs[:, features]
        here = is_observed[:, i] = find_observed(inputs, column, places)
        if column.kind == CATEGORY:
            levels = true.argmax(1)
            hits[:, i] = mine.argmax(1) == levels
            majority[:, i] = levels == np.bincount(levels[here], minlength=true.shape[1]).argmax()
        mean = true[here].mean(0) if here.any() else np.zeros(true.shape[1])
        deviations = np.square(true - mean).mean(1)
        varies = here.any() and (np.ptp(true[here], axis=0) > 0).any()
        variance = deviations[here].mean() if varies else 0.0
        if variance > 0:
            errors[:, i] = np.square(mine - true).mean(1) / variance
            variances[:, i] = deviations / variance
    for array in (errors, variances, hits, majority):
        array[~is_observed] = 0.0
    return {
        "column_errors": errors,
        "column_variances": variances,
        "is_category": np.array([column.kind == CATEGORY for column in columns], np.uint8),
        "num_observed": is_observed.sum(0),
        "hits": hits.astype(np.uint8),
        "majority_hits": majority.astype(np.uint8),
    }


def find_observed(inputs: NDArray[Any], column: TableColumn, places: range) -> NDArray[np.bool_]:
    """Return in which rows of features (n, d) the value of a column is observed, given the places of its features."""
    if column.kind == CATEGORY:
        return np.asarray(inputs[:, places.start : places.stop].max(1) > 0)
    if column.indicates_missing:
        return np.asarray(inputs[:, places.stop - 1] < 0.5)
    return np.ones(len(inputs), bool)


def _per_value(array: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean of each column over its observed values."""
    mean: NDArray[np.float64] = array.sum(0) / counts
    return mean
