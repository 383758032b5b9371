"""One of the models that are compared: its words' vectors, how it embeds texts, what it weighs."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firth.core.errors import FirthError
from firth.core.model import HasVectors, Model
from firth.core.saved import load
from firth.core.vectors import Matrix, Vectors
from firth.data.tokenizer import tokenizer
from firth.formats import read_vectors
from firth.formats.fasttext import is_fasttext

OTHER_KINDS = ("table", "graph", "ratings")  # what models learn from that is no text
WARM_UP = 32  # texts embedded before the clock starts

Embed = Callable[[Sequence[str]], tuple[Matrix, int, int]]  # rows; words with a vector, words without


@dataclass(frozen=True)
class Contender:
    """`vectors` are those of its words, None where it has no table; `embed` is None where it embeds no texts."""

    name: str
    vectors: Vectors | None
    embed: Embed | None
    bytes: int  # on disk; of what was given in memory, there
    model: Model | None = None  # None of a file of vectors
    memory: int = 0  # bytes of its arrays

    @property
    def training_seconds(self) -> float:
        """NaN where that is not known."""
        seconds = None if self.model is None else self.model.training.get("seconds")
        return float(seconds) if isinstance(seconds, int | float) else math.nan

    def rows(self, texts: Sequence[str]) -> Matrix:
        return self.embedded(texts)[0]

    def embedded(self, texts: Sequence[str]) -> tuple[Matrix, int, int]:
        assert self.embed is not None
        rows, known, unknown = self.embed(texts)
        if not np.isfinite(rows).all():
            raise FirthError(
                "non_finite", "{name} gives a text NaN or infinity; such a model can't be compared.", name=self.name
            )
        return rows, known, unknown

    def timed(self, texts: Sequence[str]) -> tuple[Matrix, float, float]:
        """Rows, the share of words that have a vector, and texts a second."""
        self.rows(texts[:WARM_UP])
        started = time.perf_counter()
        rows, known, unknown = self.embedded(texts)
        seconds = time.perf_counter() - started
        return rows, known / (known + unknown) if known + unknown else np.nan, len(texts) / max(seconds, 1e-9)


def contenders(models: Sequence[Any] | Mapping[str, Any]) -> list[Contender]:
    """Models, vectors, or paths to either; in a list, paths give the names, or NAME=PATH does."""
    if isinstance(models, (str, os.PathLike, Model, Vectors)):
        raise FirthError(
            "invalid_type", "compare takes a list of models, or names with models; got one. Put it in a list."
        )
    named = dict(models) if isinstance(models, Mapping) else named_models(models)
    if not named:
        raise FirthError("too_few", "compare needs at least one model.")
    return [contender(name, model) for name, model in named.items()]


def named_models(models: Sequence[Any]) -> dict[str, Any]:
    cut = [model.partition("=") if has_name(model) else ("", "", model) for model in models]
    others = iter(names_of([model for name, _, model in cut if not name]))
    named: dict[str, Any] = {}
    for given, _, model in cut:
        name = given or next(others)
        if name in named:
            raise FirthError(
                "duplicate_name",
                "Two are called {name!r}: give one another name, as in other={model}.",
                name=name,
                model=model,
            )
        named[name] = model
    return named


def has_name(model: Any) -> bool:
    """Whether it is NAME=PATH, and no path with such a sign in it."""
    if not isinstance(model, str) or "=" not in model or Path(model).exists():
        return False
    return os.sep not in model.partition("=")[0]


def names_of(models: Sequence[Any]) -> list[str]:
    """The last part of each path where that tells them apart, else the whole; others by kind and place."""
    paths = [os.fspath(model) if isinstance(model, (str, os.PathLike)) else None for model in models]
    given = [path for path in paths if path is not None]
    if len(set(given)) < len(given):
        twice = next(path for path in given if given.count(path) > 1)
        raise FirthError(
            "duplicate_name", "{twice} is given twice; a model needs no comparing with itself.", twice=twice
        )
    short = [Path(path).name or path for path in given]
    shown = dict(zip(given, short if len(set(short)) == len(short) else given, strict=True))
    return [
        shown[path] if path is not None else f"{type(model).__name__} {place}"
        for place, (path, model) in enumerate(zip(paths, models, strict=True), 1)
    ]


def contender(name: str, source: Any) -> Contender:
    size = None
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if not path.exists():
            raise FirthError("not_found", "{path}: no such model or vector file.", path=path)
        size = disk_size(path)
        source = load(path) if path.is_dir() or is_fasttext(path) else read_vectors(path)
    if isinstance(source, Vectors):
        memory = source.matrix.nbytes
        return Contender(name, source, averaging(source), size or memory, memory=memory)
    if not isinstance(source, Model):
        raise FirthError(
            "invalid_type",
            "{name} is no model, vectors, or path to one; got {got}.",
            name=name,
            got=type(source).__name__,
        )
    memory = sum(array.nbytes for array in source.parts().arrays.values())
    return Contender(name, word_table(source), embedding(source), size or memory, source, memory)


def word_table(model: Model) -> Vectors | None:
    """The main table may be of documents; those of nodes and items are compared as words are."""
    if not isinstance(model, HasVectors):
        return None
    return model.vectors if model.method.kind in OTHER_KINDS else model.tables.get("words")


def disk_size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def embedding(model: Any) -> Embed | None:
    pool, plain = getattr(model, "pool", None), getattr(model, "embed", None)
    if model.method.kind in OTHER_KINDS or (pool is None and plain is None):
        return None

    def embed(texts: Sequence[str]) -> tuple[Matrix, int, int]:
        if pool is None:
            return np.asarray(plain(texts)), 0, 0  # type: ignore[misc]
        pooled = pool(texts)
        return pooled.matrix, int(pooled.known.sum()), int(pooled.unknown.sum())

    return embed


def averaging(vectors: Vectors) -> Embed:
    """A file of vectors has no way of its own to read texts: the mean over a text's words, as written or in lower
    case."""
    split = tokenizer("words", lowercase=False)

    def embed(texts: Sequence[str]) -> tuple[Matrix, int, int]:
        matrix = np.zeros((len(texts), vectors.dim), dtype=np.float32)
        known = unknown = 0
        rows = vectors.rows
        for place, text in enumerate(texts):
            words = split(text)
            found = [row for word in words if (row := rows.get(word, rows.get(word.lower()))) is not None]
            known, unknown = known + len(found), unknown + len(words) - len(found)
            if found:
                matrix[place] = vectors.matrix[found].mean(axis=0)
        return matrix, known, unknown

    return embed
