"""`SimilarPairs`: texts to train sentence vectors with: alone, in pairs, in triplets, or in pairs with scores."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.report import Report
from firth.data.corpus import UNITS, Corpus
from firth.data.sentences import split_sentences
from firth.data.table import Table

SENTENCE = "sentence"


class Rows(NamedTuple):
    """Rows that have text. sides[0] are the texts, sides[1] those that are like them, sides[2] those that are not, as
    far as there are any; scores where they are given."""

    sides: tuple[list[str], ...]
    scores: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.sides[0])


class SimilarPairs:
    """Texts to learn from.

        Alike("notes.txt", unit="sentence")                                   # each text is like itself
        Alike("asked.csv", text="question", other="duplicate")                # pairs
        Alike("found.jsonl", text="query", other="answer", negative="wrong")  # triplets
        Alike("sts.tsv", text="first", other="second", score="score")         # how alike, the more the higher

    Without `other`, the sources are a corpus: text files, tables of which `text` names the column, lists of texts;
    `unit` is a line, block, file or sentence of theirs. With it, one source of a `Table`: csv, tsv, jsonl, Parquet, a
    data frame, a dictionary of columns. `dev` is an `SimilarPairs` with scores, to measure and choose by.
    Threads can share it, unless it reads an iterator or standard input.
    """

    def __init__(
        self,
        *sources: Any,
        text: str | None = None,
        other: str | None = None,
        negative: str | None = None,
        score: str | None = None,
        unit: str = "line",
        dev: SimilarPairs | None = None,
    ) -> None:
        if other is None and (negative or score):
            raise FirthError(
                "conflicting_options",
                "negative and score are columns of pairs: name the second texts' column too (other).",
            )
        if negative and score:
            raise FirthError("conflicting_options", "Pairs have a score, or a negative text beside them; not both.")
        if unit not in (*UNITS, SENTENCE):
            raise FirthError(
                "invalid_value",
                "{option} must be one of {choices}; got {got!r}.",
                option="SimilarPairs.unit",
                choices=", ".join((*UNITS, SENTENCE)),
                got=unit,
            )
        if dev is not None and dev.score is None:
            raise FirthError("invalid_value", "The dev data must be pairs with scores: name their column (score).")
        self.score: str | None = score
        self.unit, self.dev = unit, dev
        self.names = [text or "text", other, *([negative] if negative else [])] if other else []
        if not other:
            self.corpus: Corpus | None = Corpus(*sources, unit="line" if unit == SENTENCE else unit, column=text)
            return
        if len(sources) != 1:
            raise FirthError("wrong_input", "Pairs are one table; got {got} sources.", got=len(sources))
        self.corpus = None
        self.table = Table(sources[0], columns=[*self.names, *([score] if score else [])], categories=self.names)

    def rows(self, report: Report) -> Rows:
        """The texts. Those that are empty are left out, and of single texts those that stand there again."""
        rows = self._texts(report) if self.corpus is not None else self._table_rows(report)
        if len(rows) < 2:
            raise FirthError(
                "too_few",
                "Texts are told apart from each other, so at least 2 different ones are needed; got {got}.",
                got=len(rows),
            )
        return rows

    def _texts(self, report: Report) -> Rows:
        texts = list(self._read())
        nonempty = [text for text in texts if text.strip()]
        distinct = list(dict.fromkeys(nonempty))
        if len(nonempty) < len(texts):
            report.note(f"{len(texts) - len(nonempty):,} of {len(texts):,} texts are empty and left out.")
        if len(distinct) < len(nonempty):
            report.note(
                f"{len(nonempty) - len(distinct):,} of {len(nonempty):,} texts stand there again, and count once."
            )
        return Rows((distinct,))

    def _read(self) -> Iterator[str]:
        assert self.corpus is not None
        for _, text in self.corpus:
            if self.unit == SENTENCE:
                yield from split_sentences(text)
            else:
                yield text

    def _table_rows(self, report: Report) -> Rows:
        sides = [[text or "" for text in self.table.categories(name)] for name in self.names]
        scores = self.table.numbers(self.score) if self.score else np.zeros(len(self.table))
        empty_rows = [
            row for row, texts in enumerate(zip(*sides, strict=True)) if not all(text.strip() for text in texts)
        ]
        unscored = np.flatnonzero(np.isnan(scores)).tolist()
        for rows, what in ((empty_rows, "a text that is empty"), (unscored, f"no {self.score}")):
            if rows:
                first = self.table.row_number(rows[0])
                report.note(
                    f"{len(rows):,} of {len(scores):,} rows have {what} and are left out; the first is row {first}."
                )
        if any(map(math.isinf, scores)):
            raise FirthError(
                "non_finite", "Column {score!r} must hold finite numbers; it has an infinite one.", score=self.score
            )
        selected_rows = sorted(set(range(len(scores))) - set(empty_rows) - set(unscored))
        sides_left = tuple([side[row] for row in selected_rows] for side in sides)
        return Rows(sides_left, scores[selected_rows] if self.score else None)

    def fingerprint(self) -> str | None:
        own = self.table.fingerprint() if self.corpus is None else self.corpus.fingerprint()
        dev = "" if self.dev is None else self.dev.fingerprint()
        if own is None or dev is None:
            return None
        return hashlib.sha256(repr((own, dev, self.unit, self.names, self.score)).encode()).hexdigest()
