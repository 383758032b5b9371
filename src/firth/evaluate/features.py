"""How much vectors tell: a simple layer learns a label or a number from them, cross-validated. Needs scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError

CLEAR = 1.64  # standard errors
HEADS = ("logistic", "ridge", "mlp")


@dataclass(frozen=True)
class FeatureResult:
    """Mean and deviation of each figure over the folds; `baseline` is what the most frequent label has, or the mean;
    `tfidf` what a linear model over tf-idf has, where the texts are known."""

    head: str
    rows: int
    features: int
    folds: int
    figures: Mapping[str, tuple[float, float]]
    baseline: Mapping[str, float]
    tfidf: Mapping[str, float] | None = None

    @property
    def learned(self) -> bool:
        """Whether the first figure is clearly better than the baseline: by more than 1.64 standard errors."""
        name, (mean, around) = next(iter(self.figures.items()))
        return bool(mean - self.baseline[name] > CLEAR * around / self.folds**0.5)

    def to_json(self) -> dict[str, Any]:
        return {
            "head": self.head,
            "rows": self.rows,
            "features": self.features,
            "folds": self.folds,
            "figures": {name: {"mean": mean, "deviation": around} for name, (mean, around) in self.figures.items()},
            "baseline": dict(self.baseline),
            "tfidf": None if self.tfidf is None else dict(self.tfidf),
            "learned": self.learned,
        }

    def __str__(self) -> str:
        linear = {name: "" if self.tfidf is None else f", tf-idf {self.tfidf[name]:.3f}" for name in self.figures}
        told = ", ".join(
            f"{name} {mean:.3f} ± {around:.3f} (baseline {self.baseline[name]:.3f}{linear[name]})"
            for name, (mean, around) in self.figures.items()
        )
        nothing = "" if self.learned else "; nothing was learned: this is not clearly better than the baseline"
        return f"{self.rows:,} rows × {self.features:,} features, {self.head}, {self.folds} folds: {told}{nothing}"


def features(
    matrix: NDArray[Any],
    labels: NDArray[Any],
    head: str = "logistic",
    folds: int = 5,
    texts: Sequence[str] | None = None,
) -> FeatureResult:
    """`head`: logistic (labels), ridge (numbers), or mlp, a net with one hidden layer (labels). Columns are scaled to
    mean 0 and deviation 1, in each fold by its own training rows. Given the `texts` of the rows, a logistic or ridge
    regression over their tf-idf in the same folds is reported too."""
    try:
        from sklearn.dummy import DummyClassifier, DummyRegressor
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression, RidgeCV
        from sklearn.model_selection import cross_validate
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        raise FirthError("missing_package", 'Features need scikit-learn: pip install "firth[sklearn]".') from None
    if head not in HEADS:
        raise FirthError(
            "invalid_value",
            "{option} must be one of {choices}; got {got!r}.",
            option="head",
            choices=", ".join(HEADS),
            got=head,
        )
    numbers = head == "ridge"
    check_folds(labels, folds, numbers)
    heads = {
        "logistic": lambda: LogisticRegression(max_iter=2000),
        "ridge": lambda: RidgeCV(alphas=np.logspace(-2, 4, 7)),
        "mlp": lambda: MLPClassifier((64,), solver="lbfgs", alpha=1.0, max_iter=200, random_state=1),
    }
    judged = (
        {"R²": "r2", "mean absolute error": "neg_mean_absolute_error"}
        if numbers
        else {"accuracy": "accuracy", "macro F1": "f1_macro"}
    )
    dull = DummyRegressor() if numbers else DummyClassifier()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # to stop early is no harm here
        found, plain = (
            cross_validate(model, matrix, labels, cv=splits(folds, numbers), scoring=judged)
            for model in (make_pipeline(StandardScaler(), heads[head]()), dull)
        )
    means = {name: (abs_error(name, found[f"test_{name}"]), float(np.std(found[f"test_{name}"]))) for name in judged}
    baseline = {name: abs_error(name, plain[f"test_{name}"]) for name in judged}
    tfidf = None if texts is None else tfidf_figures(texts, labels, folds, judged)
    return FeatureResult(head, len(matrix), matrix.shape[1], folds, means, baseline, tfidf)


def tfidf_figures(
    texts: Sequence[str], labels: NDArray[Any], folds: int, judged: Mapping[str, str]
) -> dict[str, float]:
    """A logistic or, for numbers, a ridge regression over tf-idf, in the same folds."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import cross_validate
    from sklearn.pipeline import make_pipeline

    numbers = "R²" in judged
    linear = Ridge() if numbers else LogisticRegression(C=10.0, max_iter=2000)
    model = make_pipeline(TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+|[^\w\s]"), linear)
    found = cross_validate(model, list(texts), labels, cv=splits(folds, numbers), scoring=dict(judged))
    return {name: abs_error(name, found[f"test_{name}"]) for name in judged}


def abs_error(name: str, values: NDArray[np.float64]) -> float:
    """scikit-learn's errors are below 0, so that more is better."""
    return float(-np.mean(values) if name.endswith("error") else np.mean(values))


def splits(folds: int, numbers: bool) -> Any:
    from sklearn.model_selection import KFold, StratifiedKFold

    return (KFold if numbers else StratifiedKFold)(folds, shuffle=True, random_state=1)


def check_folds(labels: NDArray[Any], folds: int, numbers: bool) -> None:
    if folds < 2 or folds > len(labels):
        raise FirthError(
            "invalid_value",
            "{option} must be from 2 to the {n_labels:,} rows; got {got}.",
            option="folds",
            n_labels=len(labels),
            got=folds,
        )
    if numbers:
        return
    names, counts = np.unique(labels, return_counts=True)
    if len(names) < 2:
        raise FirthError(
            "no_variation",
            "All {n_labels:,} texts have the label {available!r}: there is nothing to tell apart.",
            n_labels=len(labels),
            available=str(names[0]),
        )
    if counts.min() < folds:
        rare, least = str(names[counts.argmin()]), int(counts.min())
        if least == 1:
            once = f"{np.count_nonzero(counts == 1):,} of {len(names):,} labels stand once, such as {rare!r}"
            raise FirthError(
                "too_few",
                "{once}: what is learned can't be judged. Drop such rows, or merge their labels with others.",
                once=once,
            )
        raise FirthError(
            "too_few",
            "{rare!r} stands {minimum:,} times, too few for {folds} folds; take at most {minimum:,} folds.",
            rare=rare,
            minimum=least,
            folds=folds,
        )
