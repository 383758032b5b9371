"""Table encoders and PCA: Firth against scikit-learn, same results, in one interleaved run.

    python benchmarks/encoders.py [--rows 1000000] [--rounds 5] [--write docs/results/encoders.md]

A data frame of one category column (1,000 categories, Zipf's law) and ten columns of numbers is fitted and transformed;
the best round counts. "equal" is the largest difference between the two matrices.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import sklearn
from sklearn import decomposition, preprocessing

import firth
from firth.evaluate.layout import markdown_table

Fit = Callable[[Any], Any]


def peers() -> dict[str, tuple[str, Fit, Fit]]:
    """Return for each method: the columns, Firth's call, scikit-learn's call."""
    return {
        "onehot": (
            "words",
            lambda data: firth.OneHot(order="sorted", sparse=True).fit(data).transform(data),
            lambda data: preprocessing.OneHotEncoder().fit_transform(data),
        ),
        "label": (
            "words",
            lambda data: firth.Ordinal(order="sorted").fit(data).transform(data),
            lambda data: preprocessing.OrdinalEncoder().fit_transform(data),
        ),
        "standardize": (
            "numbers",
            lambda data: firth.Standardize().fit(data).transform(data),
            lambda data: preprocessing.StandardScaler().fit_transform(data),
        ),
        "normalize": (
            "numbers",
            lambda data: firth.MinMax().fit(data).transform(data),
            lambda data: preprocessing.MinMaxScaler().fit_transform(data),
        ),
        "pca": (
            "numbers",
            lambda data: firth.PCA(dim=5).fit(data).transform(data),
            lambda data: decomposition.PCA(5, svd_solver="full").fit_transform(data),
        ),
    }


def frames(rows: int) -> dict[str, pandas.DataFrame]:
    rng = np.random.default_rng(1)
    words = np.array([f"category {number}" for number in range(1000)], dtype=object)
    shares = 1 / np.arange(1, 1001)
    categories = words[rng.choice(1000, size=rows, p=shares / shares.sum())]
    numbers = rng.normal(5, 3, (rows, 10)) * np.geomspace(1, 0.1, 10)
    return {"words": pandas.DataFrame({"word": categories}), "numbers": pandas.DataFrame(numbers).rename(columns=str)}


def timed(fit: Fit, data: Any) -> tuple[float, Any]:
    begin = time.perf_counter()
    results = fit(data)
    return time.perf_counter() - begin, results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    data = frames(arguments.rows)
    lines = []
    for name, (columns, ours, theirs) in peers().items():
        rounds = [[timed(fit, data[columns]) for fit in (ours, theirs)] for _ in range(arguments.rounds)]
        best = [min(seconds) for seconds in zip(*([seconds for seconds, _ in pair] for pair in rounds), strict=True)]
        first, second = (results for _, results in rounds[-1])
        apart = abs(first - second).max()
        lines.append([name, f"{best[0]:.3f} s", f"{best[1]:.3f} s", f"{best[1] / best[0]:.1f}×", f"{apart:.0e}"])
    peer = f"scikit-learn {sklearn.__version__}"
    table = markdown_table(("method", "Firth", peer, "ratio", "largest difference"), lines)
    text = (
        f"{table}\n\nfit and transform of {arguments.rows:,} rows ({platform.machine()}); `benchmarks/encoders.py`.\n"
    )
    print(text)
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
