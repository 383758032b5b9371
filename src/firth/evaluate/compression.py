"""What is left of rows that are squeezed to fewer numbers: how much is lost, who stays whose neighbour, what a probe
still reads, and whether made-up rows can be told from real ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.report import human
from firth.core.vectors import Vectors
from firth.evaluate.layout import decimal, html_table, markdown_table, number_or_none, percent, text_table
from firth.evaluate.nodes import node_classification

Array = NDArray[np.float64]
MOST_ROWS = 2000  # whose neighbours are looked at


class Squeezed(NamedTuple):
    """What a method makes of some rows."""

    codes: ArrayLike  # (rows, dim)
    rebuilt: ArrayLike | None = None  # (rows, columns)
    made_up: ArrayLike | None = None  # new rows
    seconds: float = math.nan  # of learning
    size: int = 0  # numbers that are stored


class CompressionScore(NamedTuple):
    """Figures of one method; NaN = it can't do that, or was not asked."""

    dim: int
    lost: float
    neighbors: float
    probe: float
    told_apart: float
    seconds: float
    size: int


@dataclass(frozen=True)
class CompressionResult:
    """Scores by method."""

    scores: Mapping[str, CompressionScore]
    rows: int
    k: int

    def __getitem__(self, name: str) -> CompressionScore:
        return self.scores[name]

    def to_json(self) -> dict[str, Any]:
        return {
            name: {figure: number_or_none(value) for figure, value in score._asdict().items()}
            for name, score in self.scores.items()
        }

    def _table(self) -> tuple[list[str], list[list[str]], range]:
        header = ["", "numbers", "lost", f"neighbours kept ({self.k})", "probe", "told apart (AUC)", "seconds", "size"]
        body = [
            [
                name,
                str(score.dim),
                percent(score.lost),
                percent(score.neighbors),
                percent(score.probe),
                decimal(score.told_apart),
                brief(score.seconds),
                human(score.size) if score.size else "–",
            ]
            for name, score in self.scores.items()
        ]
        return header, body, range(1, len(header))

    def to_markdown(self) -> str:
        return markdown_table(*self._table())

    def __str__(self) -> str:
        return text_table(*self._table())

    def _repr_html_(self) -> str:
        return html_table(*self._table())


def brief(seconds: float) -> str:
    if math.isnan(seconds):
        return "–"
    return f"{seconds:.1f}" if seconds >= 1 else f"{seconds:.2g}" if seconds >= 0.001 else "<0.001"


def compression(
    rows: ArrayLike,
    squeezed: Mapping[str, Squeezed],
    labels: Sequence[str] | None = None,
    *,
    k: int = 10,
    seed: int = 0,
) -> CompressionResult:
    """Methods side by side on the same rows, which they need not have learned from. `labels`, one a row, are what a
    linear probe is asked for."""
    real = matrix_of(rows, "rows")
    scores = {}
    for name, part in squeezed.items():
        codes = matrix_of(part.codes, f"codes of {name}")
        scores[name] = CompressionScore(
            dim=codes.shape[1],
            lost=math.nan if part.rebuilt is None else lost_variance(real, part.rebuilt),
            neighbors=neighbors_kept(real, codes, k, seed=seed),
            probe=math.nan if labels is None else probe(codes, labels, seed=seed),
            told_apart=math.nan if part.made_up is None else two_sample(real, part.made_up, seed=seed),
            seconds=part.seconds,
            size=part.size,
        )
    return CompressionResult(scores, len(real), k)


def lost_variance(rows: ArrayLike, rebuilt: ArrayLike) -> float:
    """Σ |x − x̂|² / Σ |x − mean|²: 0 where nothing is lost, 1 where each row became the mean."""
    real, again = matrix_of(rows, "rows"), matrix_of(rebuilt, "rebuilt rows")
    if real.shape != again.shape:
        raise FirthError(
            "shape_mismatch",
            "As many must be rebuilt as there are; got {got} for {shape}.",
            got=again.shape,
            shape=real.shape,
        )
    whole = float(((real - real.mean(axis=0)) ** 2).sum())
    return float(((real - again) ** 2).sum()) / whole if whole else 0.0


def neighbors_kept(rows: ArrayLike, codes: ArrayLike, k: int = 10, *, seed: int = 0) -> float:
    """The share of a row's `k` nearest (by distance) that are among its `k` nearest by their codes, the mean over rows
    (over 2,000 drawn ones where there are more)."""
    real, coded = matrix_of(rows, "rows"), matrix_of(codes, "codes")
    if len(real) != len(coded) or not 1 <= k < len(real):
        raise FirthError(
            "invalid_value",
            "{option} must be from 1 to {n_real} for {n_real_2:,} rows and codes; got {got}.",
            option="k",
            n_real=len(real) - 1,
            n_real_2=len(real),
            got=k,
        )
    asked = np.sort(np.random.default_rng(seed).permutation(len(real))[:MOST_ROWS])
    near, near_codes = (nearest(matrix, asked, k) for matrix in (real, coded))
    kept = [len(np.intersect1d(a, b)) for a, b in zip(near, near_codes, strict=True)]
    return float(np.mean(kept)) / k


def nearest(matrix: Array, asked: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The k nearest others of these rows."""
    squares = (matrix**2).sum(axis=1)
    found = np.empty((len(asked), k), np.int64)
    for first in range(0, len(asked), 256):
        some = asked[first : first + 256]
        apart = squares - 2 * matrix[some] @ matrix.T
        apart[np.arange(len(some)), some] = np.inf
        found[first : first + 256] = np.argpartition(apart, k - 1, axis=1)[:, :k]
    return found


def probe(codes: ArrayLike, labels: Sequence[str], *, splits: int = 5, seed: int = 0) -> float:
    """How often logistic regression, trained on half of the codes, tells the label of the others."""
    points = matrix_of(codes, "codes")
    if len(points) != len(labels):
        raise FirthError(
            "shape_mismatch",
            "There must be a label for each code; got {got:,} for {n_points:,}.",
            got=len(labels),
            n_points=len(points),
        )
    scaled = (points - points.mean(axis=0)) / np.maximum(points.std(axis=0), 1e-12)
    keys = [str(row) for row in range(len(scaled))]
    known = {key: [str(label)] for key, label in zip(keys, labels, strict=True)}
    return node_classification(Vectors(keys, scaled), known, splits=splits, seed=seed).micro_f1


def two_sample(real: ArrayLike, made_up: ArrayLike, *, folds: int = 3, seed: int = 0) -> float:
    """How well boosted trees tell made-up rows from real ones they were not trained on: the area under the ROC curve,
    0.5 where they can't, 1 where they always do (the classifier two-sample test of Lopez-Paz & Oquab 2017)."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.metrics import roc_auc_score
        from sklearn.model_selection import cross_val_predict
    except ImportError:
        raise missing_package("A two-sample test needs", "scikit-learn", "sklearn") from None
    a, b = matrix_of(real, "rows"), matrix_of(made_up, "made-up rows")
    if a.shape[1] != b.shape[1] or min(len(a), len(b)) < folds:
        raise FirthError(
            "shape_mismatch",
            "Both sides need the same columns and {folds} rows; got {got} and {shape}.",
            folds=folds,
            got=a.shape,
            shape=b.shape,
        )
    size = min(len(a), len(b))
    random = np.random.default_rng(seed)
    both = np.vstack([a[random.permutation(len(a))[:size]], b[random.permutation(len(b))[:size]]])
    truth = np.repeat([0, 1], size)
    judge = HistGradientBoostingClassifier(
        max_iter=100, min_samples_leaf=max(1, min(20, size // 10)), random_state=seed
    )
    guessed = cross_val_predict(judge, both, truth, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(truth, guessed))


def independent_rows(columns: Mapping[str, Sequence[Any]], n: int, *, seed: int = 0) -> dict[str, list[Any]]:
    """The trivial way to make up rows: each cell drawn from its column, whatever stands in the others."""
    random = np.random.default_rng(seed)
    return {name: [values[i] for i in random.integers(len(values), size=n)] for name, values in columns.items()}


def matrix_of(values: ArrayLike, what: str) -> Array:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 2 or not found.size or not np.isfinite(found).all():
        raise FirthError(
            "non_finite",
            "The {detail} must be a matrix of finite numbers; got the shape {got}.",
            detail=what,
            got=found.shape,
        )
    return found
