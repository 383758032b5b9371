"""Evaluation of compressed rows: lost variance, overlap of nearest neighbors, accuracy of a linear probe on the codes,
and a two-sample test of generated rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.notebook import html_table
from firth.core.report import human
from firth.core.vectors import Vectors
from firth.evaluate.layout import decimal, markdown_table, number_or_none, percent, text_table
from firth.evaluate.nodes import node_classification

Array = NDArray[np.float64]
MAX_ROWS = 2000  # rows whose neighbors are compared


class Compressed(NamedTuple):
    """The output of a compression method for some rows."""

    codes: ArrayLike  # (rows, dim)
    rebuilt: ArrayLike | None = None  # (rows, columns): the reconstruction
    made_up: ArrayLike | None = None  # (n, columns): generated rows
    seconds: float = math.nan  # training time
    size: int = 0  # number of stored parameters


class CompressionScore(NamedTuple):
    """Metrics of one method; NaN if the method cannot do it or it was not evaluated."""

    dim: int
    lost: float
    neighbors: float
    probe: float
    two_sample_auc: float
    seconds: float
    size: int


@dataclass(frozen=True)
class CompressionResult:
    """Compression metrics by method."""

    scores: Mapping[str, CompressionScore]
    rows: int
    k: int

    def __getitem__(self, name: str) -> CompressionScore:
        return self.scores[name]

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as JSON values; NaN becomes null."""
        return {
            name: {metric: number_or_none(value) for metric, value in score._asdict().items()}
            for name, score in self.scores.items()
        }

    def _table(self) -> tuple[list[str], list[list[str]], range]:
        header = ["", "dim", "lost", f"neighbor overlap ({self.k})", "probe", "two-sample AUC", "seconds", "size"]
        body = [
            [
                name,
                str(score.dim),
                percent(score.lost),
                percent(score.neighbors),
                percent(score.probe),
                decimal(score.two_sample_auc),
                brief(score.seconds),
                human(score.size) if score.size else "–",
            ]
            for name, score in self.scores.items()
        ]
        return header, body, range(1, len(header))

    def to_markdown(self) -> str:
        """Return the metrics as a Markdown table."""
        return markdown_table(*self._table())

    def __str__(self) -> str:
        return text_table(*self._table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self._table())


def brief(seconds: float) -> str:
    """Format seconds with two or three digits, without an exponent."""
    if math.isnan(seconds):
        return "–"
    return f"{seconds:.1f}" if seconds >= 1 else f"{seconds:.2g}" if seconds >= 0.001 else "<0.001"


def compression(
    rows: ArrayLike,
    compressed: Mapping[str, Compressed],
    labels: Sequence[str] | None = None,
    *,
    k: int = 10,
    seed: int = 0,
) -> CompressionResult:
    """Compare methods on the same rows, which need not be their training rows.

    `labels`, one per row, are predicted from the codes by a linear probe.
    """
    real = matrix_of(rows, "rows")
    scores = {}
    for name, part in compressed.items():
        codes = matrix_of(part.codes, f"codes of {name}")
        scores[name] = CompressionScore(
            dim=codes.shape[1],
            lost=math.nan if part.rebuilt is None else lost_variance(real, part.rebuilt),
            neighbors=neighbor_overlap(real, codes, k, seed=seed),
            probe=math.nan if labels is None else probe(codes, labels, seed=seed),
            two_sample_auc=math.nan if part.made_up is None else two_sample(real, part.made_up, seed=seed),
            seconds=part.seconds,
            size=part.size,
        )
    return CompressionResult(scores, len(real), k)


def lost_variance(rows: ArrayLike, rebuilt: ArrayLike) -> float:
    """Return Σ |x − x̂|² / Σ |x − mean|²: 0 if nothing is lost, 1 if each row became the mean."""
    real, reconstructed = matrix_of(rows, "rows"), matrix_of(rebuilt, "rebuilt rows")
    if real.shape != reconstructed.shape:
        raise FirthError(
            "shape_mismatch",
            "The rebuilt rows must have the shape of the rows, {expected}; got {got}.",
            expected=real.shape,
            got=reconstructed.shape,
        )
    total = float(((real - real.mean(axis=0)) ** 2).sum())
    return float(((real - reconstructed) ** 2).sum()) / total if total else 0.0


def neighbor_overlap(rows: ArrayLike, codes: ArrayLike, k: int = 10, *, seed: int = 0) -> float:
    """Return the share of a row's `k` nearest rows that are also among its `k` nearest by their codes.

    Distances are Euclidean. The result is the mean over all rows, or over 2,000 random ones if there are more.
    """
    real, coded = matrix_of(rows, "rows"), matrix_of(codes, "codes")
    if len(real) != len(coded) or not 1 <= k < len(real):
        raise FirthError(
            "invalid_value",
            "{option} must be from 1 to {limit}, one less than the {n_rows:,} rows, and there must be as many codes; "
            "got {got} and {n_codes:,} codes.",
            option="k",
            limit=len(real) - 1,
            n_rows=len(real),
            got=k,
            n_codes=len(coded),
        )
    sample = np.sort(np.random.default_rng(seed).permutation(len(real))[:MAX_ROWS])
    near, near_codes = (nearest(matrix, sample, k) for matrix in (real, coded))
    shared = [len(np.intersect1d(a, b)) for a, b in zip(near, near_codes, strict=True)]
    return float(np.mean(shared)) / k


def nearest(matrix: Array, rows: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return the k nearest other rows of `rows`, (rows, k)."""
    squares = (matrix**2).sum(axis=1)
    neighbor_rows = np.empty((len(rows), k), np.int64)
    for first in range(0, len(rows), 256):
        batch = rows[first : first + 256]
        distances = squares - 2 * matrix[batch] @ matrix.T  # squared, up to a constant per row
        distances[np.arange(len(batch)), batch] = np.inf
        neighbor_rows[first : first + 256] = np.argpartition(distances, k - 1, axis=1)[:, :k]
    return neighbor_rows


def probe(codes: ArrayLike, labels: Sequence[str], *, splits: int = 5, seed: int = 0) -> float:
    """Return the accuracy of a logistic regression trained on half of the codes, on the other half."""
    points = matrix_of(codes, "codes")
    if len(points) != len(labels):
        raise FirthError(
            "shape_mismatch",
            "There must be one label per row; got {got:,} labels for {n_rows:,} rows.",
            got=len(labels),
            n_rows=len(points),
        )
    scaled = (points - points.mean(axis=0)) / np.maximum(points.std(axis=0), 1e-12)
    keys = [str(row) for row in range(len(scaled))]
    labels_of = {key: [str(label)] for key, label in zip(keys, labels, strict=True)}
    return node_classification(Vectors(keys, scaled), labels_of, splits=splits, seed=seed).micro_f1


def two_sample(real: ArrayLike, made_up: ArrayLike, *, folds: int = 3, seed: int = 0) -> float:
    """Return how well gradient-boosted trees distinguish generated from real rows, cross-validated.

    The result is the area under the ROC curve: 0.5 if they cannot, 1 if they always do (the classifier two-sample test
    of Lopez-Paz & Oquab 2017).
    """
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
            "Real and generated rows must have the same columns and at least {folds} rows; got the shapes {real} and "
            "{generated}.",
            folds=folds,
            real=a.shape,
            generated=b.shape,
        )
    size = min(len(a), len(b))
    random = np.random.default_rng(seed)
    both = np.vstack([a[random.permutation(len(a))[:size]], b[random.permutation(len(b))[:size]]])
    is_generated = np.repeat([0, 1], size)
    classifier = HistGradientBoostingClassifier(
        max_iter=100, min_samples_leaf=max(1, min(20, size // 10)), random_state=seed
    )
    probabilities = cross_val_predict(classifier, both, is_generated, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(is_generated, probabilities))


def independent_rows(columns: Mapping[str, Sequence[Any] | Array], n: int, *, seed: int = 0) -> dict[str, list[Any]]:
    """Generate rows by the trivial baseline: each cell is drawn from its column, independently of the others."""
    random = np.random.default_rng(seed)
    return {name: [values[i] for i in random.integers(len(values), size=n)] for name, values in columns.items()}


def matrix_of(values: ArrayLike, what: str) -> Array:
    """Return the values as a float64 matrix; refuse other shapes, NaN and infinity."""
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
        raise FirthError(
            "non_finite",
            "The {what} must be a non-empty matrix of finite numbers; got one of shape {got}.",
            what=what,
            got=matrix.shape,
        )
    return matrix
