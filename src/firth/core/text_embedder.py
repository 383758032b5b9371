"""`TextEmbedder`: a model as a function from batches of texts to vectors, for Ray Data, Spark and Dask."""

from __future__ import annotations

import importlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from firth.core.embedding import EmbedsTexts
from firth.core.errors import FirthError
from firth.core.functions import check_tokenizer
from firth.core.model import Model
from firth.core.report import Silence
from firth.core.saved import load
from firth.core.vectors import Matrix

MODELS = 2  # that a process keeps

Tokenize = Callable[[str], list[str]]
_models: OrderedDict[tuple[str, Any], Model] = OrderedDict()
_lock = threading.Lock()


class TextEmbedder:
    """Embeds batches of texts with a saved model. Other processes get only the path and the settings.

    Each process loads the model at the first batch and keeps it. `settings` are those of the model's `embed`, such as
    `pooling`, `device` or `normalize`.

    A batch of texts (a list, a NumPy array, a pandas Series, an Arrow array) becomes a float32 matrix, a Series of
    arrays or an Arrow array of lists; a missing text is an empty text. A batch of rows (a dict of arrays, a data frame,
    an Arrow table) comes back with the vectors of the texts in `column` as the column `output`.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        column: str = "text",
        output: str = "vector",
        tokenizer: Tokenize | None = None,
        **settings: Any,
    ) -> None:
        self.path, self.column, self.output = str(Path(model).absolute()), column, output
        if not Path(self.path).exists():
            raise FirthError("not_found", "There is no model at {path}.", path=model)
        if tokenizer is not None:
            check_importable(tokenizer)
        self.tokenizer, self.settings = tokenizer, settings

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"TextEmbedder({self.path!r}{settings})"

    def __call__(self, batch: Any) -> Any:
        """Return the vectors of a batch of texts, or a batch of rows with their vectors."""
        if isinstance(batch, Mapping):
            return {**batch, self.output: self._vectors(self._texts_of(batch, list(batch)))}
        if hasattr(batch, "column_names"):
            vectors = arrow_lists(self._vectors(self._texts_of(batch, batch.column_names)))
            return batch.append_column(self.output, vectors)
        if hasattr(batch, "columns"):
            rows = self._vectors(self._texts_of(batch, list(batch.columns)))
            return batch.assign(**{self.output: list(rows)})
        package = type(batch).__module__.partition(".")[0]
        if package == "pandas":
            return type(batch)(list(self._vectors(batch)), index=batch.index, name=self.output, dtype=object)
        if package == "pyarrow":
            return arrow_lists(self._vectors(batch))
        return self._vectors(batch)

    def _texts_of(self, batch: Any, names: list[str]) -> Any:
        """Return the column of the texts."""
        if self.column not in names:
            raise FirthError(
                "unknown_column",
                "The batch has no column {name!r}; its columns are {available}. Pass TextEmbedder(…, column=…).",
                name=self.column,
                available=", ".join(map(str, names)) or "none",
            )
        return batch[self.column]

    def _vectors(self, batch: Any) -> Matrix:
        """Return one row per text."""
        values = batch.to_pylist() if hasattr(batch, "to_pylist") else list(batch)
        path = Path(self.path)
        status = (path / "config.json" if path.is_dir() and (path / "config.json").exists() else path).stat()
        model = loaded_model(self.path, (status.st_ino, status.st_mtime_ns, self.tokenizer), self.tokenizer)
        rows: Matrix = model.embed(
            ["" if is_missing(value) else value for value in values], report=Silence(), **self.settings
        )
        return rows


def is_missing(value: Any) -> bool:
    """Whether a cell has no text: None, NaN, or the NA of pandas."""
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)


def arrow_lists(matrix: Matrix) -> Any:
    """Return the rows of a matrix as an Arrow array of lists of fixed length."""
    import pyarrow

    return pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(matrix.ravel()), matrix.shape[1])


def check_importable(function: Any) -> None:
    """Refuse a function that other processes cannot import by its name."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    named = importlib.import_module(module) if module and module != "__main__" else None
    for part in name.split(".") if named else ():
        named = getattr(named, part, None)
    if named is not function:
        raise FirthError(
            "invalid_tokenizer",
            "Other processes cannot import the tokenizer {name!r}. Define it at the top level of a module that they "
            "have too, not in a script or notebook, inside a function or as a lambda.",
            name=name or repr(function),
        )


def loaded_model(path: str, version: Any, tokenizer: Tokenize | None = None) -> EmbedsTexts:
    """Return a model that embeds texts; a process loads it once. `version` changes when the files change."""
    key = (path, version)
    with _lock:
        model = _models.get(key) or load(path, tokenizer=tokenizer)
        check_tokenizer(model.method)
        keep_model(path, version, model)
    return checked_embedder(model, path)


def checked_embedder(model: Model, path: str) -> EmbedsTexts:
    """Return the model; raise unsupported_model unless it embeds texts."""
    if not isinstance(model, EmbedsTexts):
        raise FirthError(
            "unsupported_model",
            "{path} ({method}) does not embed texts.",
            path=path,
            method=type(model.method).method_name(),
        )
    return model


def keep_model(path: str, version: Any, model: Model) -> None:
    """Keep a model for `loaded_model`, and let go of the one that was used the longest time ago."""
    _models[path, version] = model
    _models.move_to_end((path, version))
    while len(_models) > MODELS:
        _models.popitem(last=False)
