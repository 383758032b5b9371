"""The models of a comparison: their word vectors, how they embed texts, and their size."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from firth.core.embedding import EmbedsTexts
from firth.core.errors import FirthError
from firth.core.model import HasVectors, Model, merged
from firth.core.remote import as_path
from firth.core.remote_folders import local_path
from firth.core.saved import load
from firth.core.vectors import Matrix, Vectors
from firth.data.tokenizer import tokenizer
from firth.formats import read_vectors
from firth.formats.fasttext import is_fasttext

WARM_UP = 32  # texts embedded before the clock starts

ModelOrPath = Model | Vectors | str | os.PathLike[str]
Embed = Callable[[Sequence[str]], tuple[Matrix, int, int]]  # rows; words with a vector, words without


@dataclass(frozen=True)
class ComparedModel:
    """A model with its word vectors (None if it has none) and its function that embeds texts (None if it cannot)."""

    name: str
    vectors: Vectors | None
    embed: Embed | None
    bytes: int  # size on disk, or in memory for a model that was passed as an object
    model: Model | None = None  # None for a file of vectors
    memory: int = 0  # bytes of its arrays
    source: str = ""  # the path from which it was loaded

    @property
    def training_seconds(self) -> float:
        """The training time; NaN if unknown."""
        seconds = None if self.model is None else self.model.training.get("seconds")
        return float(seconds) if isinstance(seconds, int | float) else math.nan

    def rows(self, texts: Sequence[str]) -> Matrix:
        """Return one vector per text."""
        return self.embedded(texts)[0]

    def embedded(self, texts: Sequence[str]) -> tuple[Matrix, int, int]:
        """Return one vector per text, and the numbers of words with and without a vector."""
        assert self.embed is not None
        rows, known, unknown = self.embed(texts)
        if not np.isfinite(rows).all():
            raise FirthError(
                "non_finite", "{name} cannot be compared: it embeds a text with NaN or infinity.", name=self.name
            )
        return rows, known, unknown

    def timed(self, texts: Sequence[str]) -> tuple[Matrix, float, float]:
        """Return the vectors, the share of words that have a vector, and texts per second."""
        self.rows(texts[:WARM_UP])
        started = time.perf_counter()
        rows, known, unknown = self.embedded(texts)
        seconds = time.perf_counter() - started
        return rows, known / (known + unknown) if known + unknown else np.nan, len(texts) / max(seconds, 1e-9)


def compared_models(models: Sequence[ModelOrPath] | Mapping[str, ModelOrPath]) -> list[ComparedModel]:
    """Load models, vectors, or paths to either; in a list, they are named by their paths or as NAME=PATH."""
    if isinstance(models, (str, os.PathLike, Model, Vectors)):
        raise FirthError(
            "invalid_type",
            "compare takes a list of models or a mapping of names to models; got a single {got}.",
            got=type(models).__name__,
        )
    named = dict(models) if isinstance(models, Mapping) else named_models(models)
    if not named:
        raise FirthError("too_few", "compare needs at least one model.")
    return [compared_model(name, model) for name, model in named.items()]


def named_models(models: Sequence[ModelOrPath]) -> dict[str, ModelOrPath]:
    """Return the models by name."""
    split = [split_name(model) for model in models]
    default_names = iter(names_of([model for name, model in split if not name]))
    named: dict[str, ModelOrPath] = {}
    for explicit_name, model in split:
        name = explicit_name or next(default_names)
        if name in named:
            raise FirthError(
                "duplicate_name",
                "Two models are called {name!r}. Give one another name, as in other={model}.",
                name=name,
                model=model,
            )
        named[name] = model
    return named


def split_name(model: ModelOrPath) -> tuple[str, ModelOrPath]:
    """Return the name and the path of NAME=PATH; no name for a model or a path, which may contain = itself."""
    if not isinstance(model, str) or "=" not in model or as_path(model).exists():
        return "", model
    name, _, path = model.partition("=")
    return ("", model) if os.sep in name else (name, path)


def names_of(models: Sequence[ModelOrPath]) -> list[str]:
    """Return the last part of each path if these are unique, else the full paths; objects are named by their class."""
    paths = [os.fspath(model) if isinstance(model, (str, os.PathLike)) else None for model in models]
    used_paths = [path for path in paths if path is not None]
    if len(set(used_paths)) < len(used_paths):
        twice = next(path for path in used_paths if used_paths.count(path) > 1)
        raise FirthError("duplicate_name", "{path} is given twice. Pass each model once.", path=twice)
    short = [Path(path).name or path for path in used_paths]
    names = dict(zip(used_paths, short if len(set(short)) == len(short) else used_paths, strict=True))
    return [
        names[path] if path is not None else f"{type(model).__name__} {number}"
        for number, (path, model) in enumerate(zip(paths, models, strict=True), 1)
    ]


def compared_model(name: str, source: ModelOrPath) -> ComparedModel:
    """Load one model, or wrap a model or vectors that are loaded already."""
    size, opened = None, ""
    if isinstance(source, (str, os.PathLike)):
        opened = os.fspath(source)
        path = local_path(source)
        if not path.exists():
            raise FirthError("not_found", "There is no model or file of vectors at {path}.", path=path)
        size = disk_size(path)
        source = load(path) if path.is_dir() or is_fasttext(path) else read_vectors(path)
    if isinstance(source, Vectors):
        memory = source.matrix.nbytes
        return ComparedModel(name, source, averaging(source), size or memory, memory=memory, source=opened)
    if not isinstance(source, Model):
        raise FirthError(
            "invalid_type",
            "{name} must be a model, vectors, or a path to either; got {got}.",
            name=name,
            got=type(source).__name__,
        )
    memory = sum(array.nbytes for array in merged(source).parts().arrays.values())
    return ComparedModel(name, word_table(source), embedding(source), size or memory, source, memory, opened)


def word_table(model: Model) -> Vectors | None:
    """Return the table of words; nodes and items are compared like words, documents are not."""
    if not isinstance(model, HasVectors):
        return None
    return model.tables.get("words") if model.method.data.has_texts else model.vectors


def disk_size(path: Path) -> int:
    """Return the size of a file or folder in bytes."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def embedding(model: Model) -> Embed | None:
    """Return the function that embeds texts with this model; None if it does not embed texts."""
    if not isinstance(model, EmbedsTexts):
        return None

    def embed(texts: Sequence[str]) -> tuple[Matrix, int, int]:
        embedded = model.embed_with_counts(texts)
        return embedded.matrix, int(embedded.known.sum()), int(embedded.unknown.sum())

    return embed


def averaging(vectors: Vectors) -> Embed:
    """Return a function that embeds texts with a file of vectors, as the mean over a text's words.

    A word is looked up as written, then in lower case.
    """
    split = tokenizer("words", lowercase=False)

    def embed(texts: Sequence[str]) -> tuple[Matrix, int, int]:
        matrix = np.zeros((len(texts), vectors.dim), dtype=np.float32)
        known = unknown = 0
        rows = vectors.rows
        for number, text in enumerate(texts):
            words = split(text)
            word_rows = [row for word in words if (row := rows.get(word, rows.get(word.lower()))) is not None]
            known, unknown = known + len(word_rows), unknown + len(words) - len(word_rows)
            if word_rows:
                matrix[number] = vectors.matrix[word_rows].mean(axis=0)
        return matrix, known, unknown

    return embed
