"""Sentence similarity: correlation of cosines with human scores of sentence pairs (STS-B, SICK, …)."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.model import Embeds
from firth.core.notebook import html_table
from firth.core.remote import AnyPath, as_path
from firth.core.scores import correlation, ranks
from firth.core.vectors import Matrix, unit_rows
from firth.evaluate.layout import decimal, number_or_none, text_table
from firth.evaluate.similarity import SimilarityResult
from firth.evaluate.words import not_utf8


class SentencePair(NamedTuple):
    """Two texts and a human similarity score."""

    a: str
    b: str
    score: float


def read_sentence_pairs(path: str | os.PathLike[str]) -> list[SentencePair]:
    """Read the pairs of a .csv, .tsv or .jsonl file: in each row, the first two texts and the first number after them.

    Rows before the first such row are the header.
    """
    pairs: list[SentencePair] = []
    for number, fields in rows_of(as_path(path)):
        pair = pair_of(fields)
        if pair is not None:
            pairs.append(pair)
        elif pairs:
            raise FirthError(
                "malformed_data",
                "{path}, row {number}: expected two texts and a number; got {got}.",
                path=path,
                number=number,
                got=str(fields)[:80],
            )
    if not pairs:
        raise FirthError(
            "empty_data", "{path} has no pairs. Each row must have two texts and a number after them.", path=path
        )
    return pairs


def rows_of(path: AnyPath) -> Iterator[tuple[int, list[Any]]]:
    """Yield the number and the fields of each row."""
    if path.suffix not in (".csv", ".tsv", ".jsonl"):
        raise FirthError(
            "unknown_format", "A file of sentence pairs must be .csv, .tsv or .jsonl; got {got}.", got=path.name
        )
    try:
        with io.TextIOWrapper(path.open("rb"), encoding="utf-8-sig", newline="") as file:
            if path.suffix == ".jsonl":
                for number, line in enumerate(file, 1):
                    if line.strip():
                        row = json.loads(line)
                        yield number, list(row.values()) if isinstance(row, dict) else list(row)
                return
            yield from enumerate(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","), 1)
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except FirthError:  # from a store, which names the URL
        raise
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None
    except (ValueError, TypeError, csv.Error) as error:
        raise FirthError(
            "malformed_data",
            "{path} cannot be read as {suffix}: {reason}.",
            path=path,
            suffix=path.suffix[1:],
            reason=str(error),
        ) from None


def pair_of(fields: Sequence[Any]) -> SentencePair | None:
    """Return the pair of a row, skipping other fields before it (such as row numbers); None if there is none."""
    texts = [column for column, field in enumerate(fields) if isinstance(field, str) and as_number(field) is None]
    if len(texts) < 2:
        return None
    scores = [as_number(field) for field in fields[texts[1] + 1 :]]
    score = next((score for score in scores if score is not None), None)
    return None if score is None else SentencePair(fields[texts[0]], fields[texts[1]], score)


def as_number(field: Any) -> float | None:
    """Return the finite number in a field, else None."""
    try:
        value = float(field)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def sentence_similarity(model: Embeds, pairs: str | os.PathLike[str] | Sequence[SentencePair]) -> SimilarityResult:
    """Return the correlation of cosines and human scores over `pairs`, given as a file or a list."""
    pairs = read_sentence_pairs(pairs) if isinstance(pairs, (str, os.PathLike)) else pairs
    rows = model.embed([pair.a for pair in pairs] + [pair.b for pair in pairs])
    similarities, scores = cosines(rows), np.array([pair.score for pair in pairs])
    return SimilarityResult(
        spearman=correlation(ranks(similarities), ranks(scores)),
        pearson=correlation(similarities, scores),
        pairs=len(pairs),
        answered=len(pairs),
        missing=(),
    )


def cosines(rows: Matrix) -> NDArray[np.float64]:
    """Return the cosine of each row of the first half and its counterpart in the second."""
    unit = unit_rows(rows).astype(np.float64)
    products: NDArray[np.float64] = (unit[: len(unit) // 2] * unit[len(unit) // 2 :]).sum(axis=1)
    return products


# ---- choice of layers and pooling ----


@dataclass(frozen=True)
class Candidate:
    """A pooling with its correlation on the pairs for selection (`spearman`) and on the others (`held_out`)."""

    how: str
    layers: tuple[int, ...]
    spearman: float
    held_out: float

    def to_json(self) -> dict[str, Any]:
        """Return the candidate as JSON values."""
        metrics = {name: number_or_none(getattr(self, name)) for name in ("spearman", "held_out")}
        return {"how": self.how, "layers": list(self.layers), **metrics}


@dataclass(frozen=True)
class PoolingChoice:
    """All candidates, best first. The unbiased score of the best one is that on the `held_out` pairs."""

    tried: tuple[Candidate, ...]
    pairs: int
    held_out: int

    @property
    def best(self) -> Candidate:
        """The candidate with the highest correlation on the pairs for selection."""
        return self.tried[0]

    def to_json(self) -> dict[str, Any]:
        """Return the candidates as JSON values."""
        tried = [candidate.to_json() for candidate in self.tried]
        return {"best": tried[0], "pairs": self.pairs, "held_out": self.held_out, "tried": tried}

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [each.how, " ".join(map(str, each.layers)), decimal(each.spearman), decimal(each.held_out)]
            for each in self.tried[:8]
        ]
        header = ["pooling", "layers", f"spearman ({self.pairs:,} pairs)", f"held out ({self.held_out:,})"]
        return header, rows

    def __str__(self) -> str:
        return text_table(*self._table(), numbers=(2, 3))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self._table(), numbers=(2, 3))


def choose_pooling(
    layers_of: Callable[[str, Sequence[str]], NDArray[np.float32]], pairs: Sequence[SentencePair], seed: int = 1
) -> PoolingChoice:
    """Evaluate each layer, and means of some layers, with each pooling on a random half of the pairs.

    `layers_of(how, texts)` returns the texts' vectors of every layer, (texts, layers, dim), the input layer first.
    """
    if len(pairs) < 20:
        raise FirthError(
            "too_few",
            "At least {expected} pairs are needed to select on one half and evaluate on the other; got {got}.",
            expected=20,
            got=len(pairs),
        )
    order = np.random.default_rng(seed).permutation(len(pairs))
    halves = order[: len(pairs) // 2], order[len(pairs) // 2 :]
    texts = [pair.a for pair in pairs] + [pair.b for pair in pairs]
    scores = np.array([pair.score for pair in pairs])
    for half in halves:
        if len(set(scores[half])) == 1:
            raise FirthError(
                "no_variation",
                "The scores must differ to select a pooling; all scores of one half of the pairs are {score:g}.",
                score=scores[half[0]],
            )
    tried = []
    for how in ("mean", "cls", "max"):
        rows = layers_of(how, texts)
        last = rows.shape[1] - 1
        sets: list[tuple[int, ...]] = [(layer - last - 1,) for layer in range(last, -1, -1)]
        if how != "max":  # the maximum of a mean is not the mean of maxima
            sets += [(-2, -1), (-last, -1), (-last - 1, -1), tuple(range(-last, 0))]
        for layers in dict.fromkeys(sets):
            similarities = cosines(rows[:, list(layers)].mean(axis=1))
            correlations = (correlation(ranks(similarities[half]), ranks(scores[half])) for half in halves)
            tried.append(Candidate(how, layers, *correlations))
    tried.sort(key=lambda each: -each.spearman if each.spearman == each.spearman else math.inf)
    return PoolingChoice(tuple(tried), len(halves[0]), len(halves[1]))
