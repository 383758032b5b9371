"""Firth's methods as scikit-learn transformers: for Pipeline, ColumnTransformer, GridSearchCV and the rest.

    from firth.sklearn import LSA, OneHot
    make_pipeline(OneHot(unseen="missing"), LogisticRegression())   # a table's columns
    make_pipeline(LSA(dim=100), LogisticRegression())               # a list of texts
    make_pipeline(Features(model="minilm"), LogisticRegression())   # the same, by a model that is there already

`Features` takes the folder of any model that embeds texts. Each other class has the options of its method as
parameters, made from the method's fields at the first use; the fitted model of Firth is `model_`. Needs scikit-learn,
the extra `sklearn`.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.extras import how_to_install
from firth.core.method import Method
from firth.core.options import build_settings, options_of
from firth.core.run import Run
from firth.core.vectors import unit_rows
from firth.data.table import CellError, Table
from firth.data.tokenizer import is_token_list

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(f"firth.sklearn needs scikit-learn 1.6 or newer; {how_to_install('sklearn')}.") from error


class Transformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What all classes share."""

    method: ClassVar[type[Method]]
    model_: Any

    def _settings(self) -> Method:
        """The parameters as a method; a search over np.arange gives NumPy's numbers, made plain here."""
        given = self.get_params(deep=False)
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
        settings: Method = build_settings(self.method, plain)
        return settings


class TextTransformer(Transformer):
    """A list, array or series of texts (or of lists of their tokens) in; a row a text out. Learned with
    `deterministic`, so that a search tells options apart, not runs."""

    def fit(self, X: Any, y: Any = None) -> TextTransformer:  # noqa: N803
        """Learns from texts; `y` is not looked at."""
        self.model_ = self._settings().fit(texts_of(X), Run(deterministic=True))
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """The texts as vectors: sparse rows where the model keeps a matrix of documents by words."""
        check_is_fitted(self)
        given = texts_of(X)
        return self.model_.transform(given) if hasattr(self.model_, "transform") else self.model_.embed(given)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Words where each column is one, else the method's name with a number."""
        check_is_fitted(self)
        if hasattr(self.model_, "transform"):
            return np.array(self.model_.matrix_keys[1], dtype=object)
        name = self.method.method_name()
        return np.array([f"{name}{place}" for place in range(self.model_.embed([]).shape[1])], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


class Features(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Texts as the vectors of a saved model, which `fit` leaves as it is: any that embeds texts.

    model: its folder (or a fastText file), Firth's, Hugging Face's or sentence-transformers'
    normalize: each vector gets length 1 (default False)
    tokenizer: the function that the model was trained with, where its tokenizer is one

    A search computes them anew for each fit: `Pipeline(…, memory=FOLDER)` keeps them.
    """

    def __init__(self, *, model: Any = "", normalize: bool = False, tokenizer: Any = None) -> None:
        self.model, self.normalize, self.tokenizer = model, normalize, tokenizer

    def fit(self, X: Any, y: Any = None) -> Features:  # noqa: N803
        """Opens the model; neither `X` nor `y` changes it."""
        texts_of(X)
        self.n_features_out_ = int(opened(str(self.model), self.tokenizer).embed([]).shape[1])
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """One row a text."""
        check_is_fitted(self)
        rows: NDArray[np.float32] = opened(str(self.model), self.tokenizer).embed(texts_of(X))
        return unit_rows(rows) if self.normalize else rows

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The method's name with a number."""
        check_is_fitted(self)
        name = type(opened(str(self.model), self.tokenizer).method).method_name()
        return np.array([f"{name}{place}" for place in range(self.n_features_out_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def opened(path: str, tokenizer: Any = None) -> Any:
    """A saved model that embeds."""
    if not path:
        raise FirthError("missing_option", "Features needs the folder of a model: Features(model=FOLDER).")
    place = Path(path, "config.json") if Path(path).is_dir() else Path(path)
    return kept(path, (place.stat().st_ino, place.stat().st_mtime_ns) if place.exists() else None, tokenizer)


@lru_cache(maxsize=4)
def kept(path: str, stamp: tuple[int, int] | None, tokenizer: Any) -> Any:
    """For a search clones its transformers many times; `stamp` tells a folder that was replaced."""
    from firth.core.model import Embeds
    from firth.core.saved import load

    model = load(path, tokenizer=tokenizer)
    if not isinstance(model, Embeds):
        raise FirthError(
            "unsupported_model",
            "{path} embeds no texts ({method}).",
            path=path,
            method=type(model.method).method_name(),
        )
    return model


def texts_of(X: Any) -> list[Any]:  # noqa: N803
    """Texts (or lists of their tokens) in a list, an array or a series; or in the one column of a table, as a
    ColumnTransformer may give it."""
    if isinstance(X, str):
        raise ValueError("Texts must be a list, array or series; got one text. Put it in a list.")
    if getattr(X, "ndim", 1) == 2 or hasattr(X, "columns"):
        shape = np.shape(X)
        if shape[1] != 1:
            raise ValueError(f"Texts must be one column; got {shape[1]}. Name the column, as in (LSA(), 'text').")
        X = np.asarray(X)[:, 0]  # noqa: N806
    found = list(X)
    for place, text in enumerate(found):
        if not isinstance(text, str) and not is_token_list(text):
            raise ValueError(f"Texts must be strings, or lists of tokens; number {place} is {text!r}.")
    return found


class TableTransformer(Transformer):
    """Columns of a data frame keep their kinds; those of an array of objects go by what they hold."""

    def fit(self, X: Any, y: Any = None) -> TableTransformer:  # noqa: N803
        """Learns the codes of a table's columns; `y` is not looked at."""
        table = self._table(X, reset=True)
        self.model_ = self._settings().fit(table, Run(deterministic=True))
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """The table as numbers."""
        check_is_fitted(self)
        return self.model_.transform(self._table(X, reset=False))

    def inverse_transform(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The table that has these numbers, as an array: of floats, or of objects where there are categories."""
        check_is_fitted(self)
        columns = self.model_.inverse(X).to_dict()
        kinds = {type(value) for values in columns.values() for value in values}
        numeric = kinds <= {int, float, type(None)}
        found = np.empty((len(next(iter(columns.values()), [])), len(columns)), np.float64 if numeric else object)
        for place, values in enumerate(columns.values()):
            found[:, place] = values
        return found

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that `transform` gives."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array(self.model_.features([str(name) for name in names]), dtype=object)

    def _table(self, X: Any, *, reset: bool) -> Table:  # noqa: N803
        gaps = bool(self.__sklearn_tags__().input_tags.allow_nan)
        finite = "allow-nan" if gaps else True
        if hasattr(X, "columns") and hasattr(X, "shape"):  # a data frame: an array of it would lose the kinds
            validate_data(self, X, reset=reset, skip_check_array=True)
        else:
            least = getattr(self.method, "min_rows", 1) if reset else 1
            X = validate_data(  # noqa: N806
                self, X, reset=reset, dtype=None, ensure_all_finite=finite, ensure_min_samples=least
            )
        names = getattr(self, "feature_names_in_", None)
        try:
            return Table(X).renamed([f"x{place}" for place in range(X.shape[1])] if names is None else list(names))
        except CellError as error:  # what scikit-learn's estimators say
            raise TypeError(f"{error} A cell of the argument must be a string or a number.") from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        options = {item.name for item in options_of(self.method)}
        gaps = getattr(self.method, "accepts_missing", False)
        tags.input_tags.allow_nan = gaps or ("missing" in options and self.missing != "error")
        tags.input_tags.categorical = gaps or "unseen" in options
        return tags


BASES = {"table": TableTransformer, "text": TextTransformer, "tagged": TextTransformer}


def transformer(method: type[Method]) -> Any:
    """The class of a method."""
    fields = [(item.name, item.kind, dataclasses.field(default=item.default)) for item in options_of(method)]
    about = "\n".join(f"{item.name}: {item.help} (default {item.default!r})" for item in options_of(method))
    space = {"__module__": __name__, "__doc__": f"{method.__doc__}\n\nParameters:\n\n{about}\n", "method": method}
    return dataclasses.make_dataclass(
        method.__name__, fields, bases=(BASES[method.kind],), namespace=space, eq=False, repr=False, kw_only=True
    )


def __getattr__(name: str) -> Any:
    method = registry.class_named(name)
    if method is None or method.kind not in BASES:
        raise AttributeError(f"firth.sklearn has no {name}; it has {', '.join(__dir__())}.")
    globals()[name] = transformer(method)
    return globals()[name]


def __dir__() -> list[str]:
    found = [registry.method(name) for name in registry.method_classes()]
    return sorted(["Features", *(method.__name__ for method in found if method.kind in BASES)])
