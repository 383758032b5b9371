"""Evaluation of vectors as features: a simple model predicts a label or a number from them, cross-validated. Needs
scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.linear_heads import new_head
from firth.core.notebook import html_lines, html_table

CLEAR = 1.64  # standard errors
NOTHING_LEARNED = "nothing was learned: this is not clearly better than the baseline"


@dataclass(frozen=True)
class FeatureResult:
    """Mean and standard deviation of each metric over the folds.

    `baseline` has the metrics of always predicting the most frequent label or the mean, `tfidf` those of a linear model
    on tf-idf, if the texts were given.
    """

    head: str
    rows: int
    features: int
    folds: int
    metrics: Mapping[str, tuple[float, float]]
    baseline: Mapping[str, float]
    tfidf: Mapping[str, float] | None = None

    @property
    def learned(self) -> bool:
        """Whether the first metric exceeds the baseline by more than 1.64 standard errors."""
        name, (mean, deviation) = next(iter(self.metrics.items()))
        return bool(mean - self.baseline[name] > CLEAR * deviation / self.folds**0.5)

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "head": self.head,
            "rows": self.rows,
            "features": self.features,
            "folds": self.folds,
            "metrics": {name: {"mean": mean, "deviation": std} for name, (mean, std) in self.metrics.items()},
            "baseline": dict(self.baseline),
            "tfidf": None if self.tfidf is None else dict(self.tfidf),
            "learned": self.learned,
        }

    def __str__(self) -> str:
        linear = {name: "" if self.tfidf is None else f", tf-idf {self.tfidf[name]:.3f}" for name in self.metrics}
        listed = ", ".join(
            f"{name} {mean:.3f} ± {deviation:.3f} (baseline {self.baseline[name]:.3f}{linear[name]})"
            for name, (mean, deviation) in self.metrics.items()
        )
        nothing = "" if self.learned else f"; {NOTHING_LEARNED}"
        return f"{self._data()}: {listed}{nothing}"

    __repr__ = __str__

    def _data(self) -> str:
        return f"{self.rows:,} rows × {self.features:,} features, {self.head}, {self.folds} folds"

    def _repr_html_(self) -> str:
        others = {"baseline": self.baseline, **({} if self.tfidf is None else {"tf-idf": self.tfidf})}
        rows = [
            [name, f"{mean:.3f} ± {deviation:.3f}", *(f"{other[name]:.3f}" for other in others.values())]
            for name, (mean, deviation) in self.metrics.items()
        ]
        lines = html_lines(self._data(), "" if self.learned else f"{NOTHING_LEARNED}.".capitalize())
        return html_table(["metric", "mean", *others], rows, numbers=range(1, 4)) + lines


def features(
    matrix: NDArray[Any],
    labels: NDArray[Any],
    head: str = "logistic",
    folds: int = 5,
    texts: Sequence[str] | None = None,
) -> FeatureResult:
    """Cross-validate a simple model that predicts labels from a feature matrix (rows, features).

    `head` is logistic (labels), ridge (numbers) or mlp, a network with one hidden layer (labels). Columns are
    standardized in each fold by its training rows. With the `texts` of the rows, a logistic or ridge regression on
    their tf-idf is evaluated on the same folds.
    """
    try:
        from sklearn.dummy import DummyClassifier, DummyRegressor
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.model_selection import cross_validate
    except ImportError:
        raise missing_package("Features need", "scikit-learn", "sklearn") from None
    model = new_head(head)
    numbers = head == "ridge"
    check_folds(labels, folds, numbers)
    scoring = (
        {"R²": "r2", "mean absolute error": "neg_mean_absolute_error"}
        if numbers
        else {"accuracy": "accuracy", "macro F1": "f1_macro"}
    )
    dummy = DummyRegressor() if numbers else DummyClassifier()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is harmless here
        scores, dummy_scores = (
            cross_validate(model, matrix, labels, cv=splits(folds, numbers), scoring=scoring)
            for model in (model, dummy)
        )
    metrics = {
        name: (mean_metric(name, scores[f"test_{name}"]), float(np.std(scores[f"test_{name}"]))) for name in scoring
    }
    baseline = {name: mean_metric(name, dummy_scores[f"test_{name}"]) for name in scoring}
    tfidf = None if texts is None else tfidf_metrics(texts, labels, folds, scoring)
    return FeatureResult(head, len(matrix), matrix.shape[1], folds, metrics, baseline, tfidf)


def tfidf_metrics(
    texts: Sequence[str], labels: NDArray[Any], folds: int, scoring: Mapping[str, str]
) -> dict[str, float]:
    """Return the metrics of a logistic or, for numbers, a ridge regression on tf-idf, on the same folds."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import cross_validate
    from sklearn.pipeline import make_pipeline

    numbers = "R²" in scoring
    linear = Ridge() if numbers else LogisticRegression(C=10.0, max_iter=2000)
    model = make_pipeline(TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+|[^\w\s]"), linear)
    scores = cross_validate(model, list(texts), labels, cv=splits(folds, numbers), scoring=dict(scoring))
    return {name: mean_metric(name, scores[f"test_{name}"]) for name in scoring}


def mean_metric(name: str, values: NDArray[np.float64]) -> float:
    """Return the mean over folds; scikit-learn negates errors, which is undone."""
    return float(-np.mean(values) if name.endswith("error") else np.mean(values))


def splits(folds: int, numbers: bool) -> Any:
    """Return the shuffled folds, stratified by label unless the targets are numbers."""
    from sklearn.model_selection import KFold, StratifiedKFold

    return (KFold if numbers else StratifiedKFold)(folds, shuffle=True, random_state=1)


def check_folds(labels: NDArray[Any], folds: int, numbers: bool) -> None:
    """Refuse a number of folds that does not fit the rows or the rarest label."""
    if folds < 2 or folds > len(labels):
        raise FirthError(
            "invalid_value",
            "{option} must be from 2 to {limit:,}, the number of rows; got {got}.",
            option="folds",
            limit=len(labels),
            got=folds,
        )
    if numbers:
        return
    names, counts = np.unique(labels, return_counts=True)
    if len(names) < 2:
        raise FirthError(
            "no_variation",
            "All {n_rows:,} rows have the label {label!r}, so there is nothing to learn.",
            n_rows=len(labels),
            label=str(names[0]),
        )
    if counts.min() < folds:
        rarest, least = str(names[counts.argmin()]), int(counts.min())
        if least == 1:
            raise FirthError(
                "too_few",
                "{n_once:,} of {n_labels:,} labels have one row only, such as {label!r}, and cannot be "
                "cross-validated. Remove these rows or merge their labels with others.",
                n_once=int(np.count_nonzero(counts == 1)),
                n_labels=len(names),
                label=rarest,
            )
        raise FirthError(
            "too_few",
            "The label {label!r} has {got:,} rows, too few for {folds} folds. Use at most {got:,} folds.",
            label=rarest,
            got=least,
            folds=folds,
        )
