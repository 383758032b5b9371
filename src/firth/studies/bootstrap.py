"""Confidence intervals by the bootstrap (Efron 1979), paired: all models are evaluated on the same resampled items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from firth.core.scores import correlation, ranks

Floats = NDArray[np.float64]
DRAWS = 1000
OUTSIDE = 2.5  # percent at each end: intervals of 95 %


def statistic(values: Floats, truth: Floats | None = None) -> float:
    """Return the mean of the values, one per item; with `truth`, Spearman's ρ of the two."""
    return float(values.mean()) if truth is None else correlation(ranks(values), ranks(truth))


def resampled(values: Floats, truth: Floats | None = None, *, draws: int = DRAWS, seed: int = 1) -> Floats:
    """Return the statistic of each model on items drawn with replacement, (models, draws).

    `values` is (models, items). The items of a draw are the same for all models.
    """
    random = np.random.default_rng(seed)
    items = values.shape[1]
    statistics = np.empty((len(values), draws))
    for draw in range(draws):
        rows = random.integers(items, size=items)
        if truth is None:
            statistics[:, draw] = values[:, rows].mean(axis=1)
        else:
            statistics[:, draw] = [statistic(row[rows], truth[rows]) for row in values]
    return statistics


def interval(draws: Floats) -> tuple[float, float]:
    """Return the interval of 95 % of the draws; undefined draws (correlations of constant items) are left out."""
    defined = draws[np.isfinite(draws)]
    if not len(defined):
        return np.nan, np.nan
    low, high = np.percentile(defined, (OUTSIDE, 100 - OUTSIDE))
    return float(low), float(high)


def distinguishable(a: Floats, b: Floats) -> bool:
    """Return whether the 95 % interval of the difference of two models excludes 0."""
    low, high = interval(a - b)
    return low > 0 or high < 0
