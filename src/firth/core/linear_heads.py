"""Simple models on vectors: standardized columns, then logistic regression, ridge regression or a network with one
hidden layer. Needs scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.arguments import check_choice
from firth.core.extras import missing_package

HEADS = ("logistic", "ridge", "mlp")
STEPS = 2000  # of the logistic regression
PENALTIES = np.logspace(-2, 4, 7)  # of ridge regression, selected by leave-one-out cross-validation


class LinearMap(NamedTuple):
    """x @ weights + bias."""

    weights: NDArray[np.float64]  # features × outputs
    bias: NDArray[np.float64]  # (outputs,)


def new_head(head: str, regularization: float = 1.0) -> Any:
    """Return an untrained scikit-learn pipeline; `regularization` is the L2 penalty of the logistic regression."""
    try:
        from sklearn.linear_model import LogisticRegression, RidgeCV
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        raise missing_package("Features need", "scikit-learn", "sklearn") from None
    check_choice("head", head, HEADS)
    if head == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(C=1 / regularization, max_iter=STEPS))
    if head == "ridge":
        return make_pipeline(StandardScaler(), RidgeCV(alphas=PENALTIES))
    network = MLPClassifier((64,), solver="lbfgs", alpha=1.0, max_iter=200, random_state=1)
    return make_pipeline(StandardScaler(), network)


def fit_linear(matrix: NDArray[Any], targets: NDArray[Any], head: str, regularization: float = 1.0) -> LinearMap:
    """Fit a logistic regression to label ids, or a ridge regression to numbers; return it without the scaling.

    Softmax of the outputs of a logistic regression are the probabilities of the labels 0, 1, 2, …
    """
    pipeline = new_head(head, regularization)  # refuses where scikit-learn is missing
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is harmless here
        pipeline.fit(np.asarray(matrix, np.float64), targets)
    scaler, linear = pipeline[0], pipeline[1]
    weights, bias = np.atleast_2d(linear.coef_), np.atleast_1d(linear.intercept_)
    if head == "logistic" and len(weights) == 1:  # of two labels, scikit-learn has the logit of the second
        weights, bias = np.vstack([np.zeros_like(weights), weights]), np.concatenate([[0.0], bias])
    weights = weights.T / scaler.scale_[:, None]
    return LinearMap(weights, bias - scaler.mean_ @ weights)
