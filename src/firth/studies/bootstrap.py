"""How sure a figure is: the bootstrap (Efron 1979), paired so that models are judged on the same drawn items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from firth.core.scores import correlation, ranks

Floats = NDArray[np.float64]
DRAWS = 1000
OUTSIDE = 2.5  # percent at each end: intervals of 95 %


def figure(values: Floats, truth: Floats | None = None) -> float:
    """The mean of values, one an item; with `truth`, Spearman's ρ of the two."""
    return float(values.mean()) if truth is None else correlation(ranks(values), ranks(truth))


def resampled(values: Floats, truth: Floats | None = None, *, draws: int = DRAWS, seed: int = 1) -> Floats:
    """models × draws: the figure of each model on items drawn with replacement, in each draw the same for all of them.

    `values` are models × items.
    """
    random = np.random.default_rng(seed)
    items = values.shape[1]
    found = np.empty((len(values), draws))
    for draw in range(draws):
        rows = random.integers(items, size=items)
        if truth is None:
            found[:, draw] = values[:, rows].mean(axis=1)
        else:
            found[:, draw] = [figure(row[rows], truth[rows]) for row in values]
    return found


def interval(draws: Floats) -> tuple[float, float]:
    """Where 95 % of the draws lie; draws of items that are all alike have no correlation and are left out."""
    known = draws[np.isfinite(draws)]
    if not len(known):
        return np.nan, np.nan
    low, high = np.percentile(known, (OUTSIDE, 100 - OUTSIDE))
    return float(low), float(high)


def distinguishable(a: Floats, b: Floats) -> bool:
    """Whether the difference of two models has one sign in 95 % of the draws: its interval leaves 0 out."""
    low, high = interval(a - b)
    return low > 0 or high < 0
