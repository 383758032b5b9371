"""Firth's methods as scikit-learn transformers, for Pipeline, ColumnTransformer, GridSearchCV and other tools.

    from firth.sklearn import LSA, OneHot
    make_pipeline(OneHot(unseen="missing"), LogisticRegression())   # a table's columns
    make_pipeline(LSA(dim=100), LogisticRegression())               # a list of texts
    make_pipeline(Features(model="minilm"), LogisticRegression())   # a list of texts, by a saved model

`Features` takes the folder of any model that embeds texts. Each other class has the options of its method as parameters
and is created from the method's fields at first use; the fitted Firth model is `model_`. Needs scikit-learn, the extra
`sklearn`.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core import registry
from firth.core.data import Data
from firth.core.embedding import EmbedsTexts, is_token_list
from firth.core.errors import FirthError
from firth.core.extras import how_to_install
from firth.core.method import Method
from firth.core.options import build_settings, options_of
from firth.core.run import Run
from firth.core.text_embedder import checked_embedder
from firth.data.corpus import Corpus
from firth.data.table import CellError, Table
from firth.documents.document_matrix import SparseModel

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(f"firth.sklearn needs scikit-learn 1.6 or newer; {how_to_install('sklearn')}.") from error


class Transformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the transformers of methods."""

    method: ClassVar[type[Method]]
    reads: ClassVar[type[Data]]  # the data of the methods that it adapts
    model_: Any

    def _settings(self) -> Method:
        """Return the parameters as a method; NumPy scalars, as from a search over np.arange, become Python numbers."""
        params = self.get_params(deep=False)
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}
        settings: Method = build_settings(self.method, plain)
        return settings


class TextTransformer(Transformer):
    """Transforms a list, array or series of texts (or of lists of tokens) into one row per text.

    Training is deterministic, so that a search compares options and not random runs.
    """

    reads = Corpus

    def fit(self, X: Any, y: Any = None) -> TextTransformer:  # noqa: N803
        """Train on texts; `y` is ignored."""
        self.model_ = self._settings().fit(texts_of(X), Run(deterministic=True))
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return one row per text; sparse for models of word counts."""
        check_is_fitted(self)
        texts = texts_of(X)
        return self.model_.transform(texts) if isinstance(self.model_, SparseModel) else self.model_.embed(texts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the words if each column is a word, else the method's name with a number."""
        check_is_fitted(self)
        if isinstance(self.model_, SparseModel):
            return np.array(self.model_.matrix_keys[1], dtype=object)
        name = self.method.method_name()
        return np.array([f"{name}{column}" for column in range(self.model_.embed([]).shape[1])], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


class Features(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Embeds texts with a saved model, which `fit` does not change.

    model: the folder of a model that embeds texts (of Firth, Hugging Face or sentence-transformers) or a fastText file
    normalize: scale each vector to length 1 (default False)
    tokenizer: the function that the model was trained with, if its tokenizer is a function

    A search computes the vectors again for each fit; `Pipeline(…, memory=FOLDER)` caches them.
    """

    def __init__(self, *, model: Any = "", normalize: bool = False, tokenizer: Any = None) -> None:
        self.model, self.normalize, self.tokenizer = model, normalize, tokenizer

    def fit(self, X: Any, y: Any = None) -> Features:  # noqa: N803
        """Load the model; `X` and `y` do not change it."""
        texts_of(X)
        self.n_features_out_ = int(load_embedder(str(self.model), self.tokenizer).embed([]).shape[1])
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """Return one row per text."""
        check_is_fitted(self)
        return load_embedder(str(self.model), self.tokenizer).embed(texts_of(X), normalize=self.normalize)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the method's name with a number for each column."""
        check_is_fitted(self)
        name = type(load_embedder(str(self.model), self.tokenizer).method).method_name()
        return np.array([f"{name}{column}" for column in range(self.n_features_out_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def load_embedder(path: str, tokenizer: Any = None) -> EmbedsTexts:
    """Load a saved model that embeds texts, from the cache if its files have not changed."""
    if not path:
        raise FirthError("missing_option", "Features needs the folder of a model: Features(model=FOLDER).")
    file = Path(path, "config.json") if Path(path).is_dir() else Path(path)
    return cached_model(path, (file.stat().st_ino, file.stat().st_mtime_ns) if file.exists() else None, tokenizer)


@lru_cache(maxsize=4)
def cached_model(path: str, stamp: tuple[int, int] | None, tokenizer: Any) -> EmbedsTexts:
    """Load a model once although a search clones its transformers; `stamp` changes if the folder is replaced."""
    from firth.core.saved import load

    model = load(path, tokenizer=tokenizer)
    return checked_embedder(model, path)


def texts_of(X: Any) -> list[Any]:  # noqa: N803
    """Return texts (or lists of tokens) of a list, array or series, or of a table with one column, as a
    ColumnTransformer passes it."""
    if isinstance(X, str):
        raise ValueError("Texts must be a list, array or series; got a single str. Put it in a list.")
    if getattr(X, "ndim", 1) == 2 or hasattr(X, "columns"):
        shape = np.shape(X)
        if shape[1] != 1:
            raise ValueError(f"Texts must be one column; got {shape[1]}. Name the column, as in (LSA(), 'text').")
        X = np.asarray(X)[:, 0]  # noqa: N806
    texts = list(X)
    for number, text in enumerate(texts):
        if not isinstance(text, str) and not is_token_list(text):
            raise ValueError(f"Texts must be strings or lists of tokens; number {number} is {text!r}.")
    return texts


class TableTransformer(Transformer):
    """Transforms a table. Columns of a data frame keep their types; those of an object array are detected."""

    reads = Table

    def fit(self, X: Any, y: Any = None) -> TableTransformer:  # noqa: N803
        """Fit the encoding of a table's columns; `y` is ignored."""
        table = self._table(X, reset=True)
        self.model_ = self._settings().fit(table, Run(deterministic=True))
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return the table as numbers."""
        check_is_fitted(self)
        return self.model_.transform(self._table(X, reset=False))

    def inverse_transform(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the table with these numbers as an array of floats, or of objects if there are categories."""
        check_is_fitted(self)
        columns = self.model_.inverse(X).to_dict()
        types = {type(value) for values in columns.values() for value in values}
        numeric = types <= {int, float, type(None)}
        table = np.empty((len(next(iter(columns.values()), [])), len(columns)), np.float64 if numeric else object)
        for column, values in enumerate(columns.values()):
            table[:, column] = values
        return table

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of `transform`."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array(self.model_.features([str(name) for name in names]), dtype=object)

    def _table(self, X: Any, *, reset: bool) -> Table:  # noqa: N803
        allow_missing = bool(self.__sklearn_tags__().input_tags.allow_nan)
        finite = "allow-nan" if allow_missing else True
        if hasattr(X, "columns") and hasattr(X, "shape"):  # a data frame: an array would lose the column types
            validate_data(self, X, reset=reset, skip_check_array=True)
        else:
            min_rows = self.method.min_rows if reset else 1
            X = validate_data(  # noqa: N806
                self, X, reset=reset, dtype=None, ensure_all_finite=finite, ensure_min_samples=min_rows
            )
        names = getattr(self, "feature_names_in_", None)
        try:
            return Table(X).renamed([f"x{column}" for column in range(X.shape[1])] if names is None else list(names))
        except CellError as error:  # scikit-learn's estimators raise this text, which its checks require
            raise TypeError(f"{error} A cell of the argument must be a string or a number.") from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        options = {item.name for item in options_of(self.method)}
        accepts_missing = self.method.accepts_missing
        tags.input_tags.allow_nan = accepts_missing or ("missing" in options and self.missing != "error")
        tags.input_tags.categorical = accepts_missing or "unseen" in options
        return tags


def base_of(method: type[Method]) -> type[Transformer] | None:
    """Return the base class of a method's transformer: the one that reads the method's data, or None."""
    return next((base for base in (TableTransformer, TextTransformer) if issubclass(method.data, base.reads)), None)


def transformer(method: type[Method], base: type[Transformer]) -> Any:
    """Create the transformer class of a method."""
    fields = [(item.name, item.kind, dataclasses.field(default=item.default)) for item in options_of(method)]
    parameters = "\n".join(f"{item.name}: {item.help} (default {item.default!r})" for item in options_of(method))
    doc = f"{method.__doc__}\n\nParameters:\n\n{parameters}\n"
    namespace = {"__module__": __name__, "__doc__": doc, "method": method}
    return dataclasses.make_dataclass(
        method.__name__, fields, bases=(base,), namespace=namespace, eq=False, repr=False, kw_only=True
    )


def __getattr__(name: str) -> Any:
    method = registry.class_named(name)
    base = None if method is None else base_of(method)
    if method is None or base is None:
        raise AttributeError(f"firth.sklearn has no {name}; it has {', '.join(__dir__())}.")
    globals()[name] = transformer(method, base)
    return globals()[name]


def __dir__() -> list[str]:
    methods = [registry.method(name) for name in registry.method_classes()]
    return sorted(["Features", *(method.__name__ for method in methods if base_of(method))])
