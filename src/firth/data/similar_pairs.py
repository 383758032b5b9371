"""`SimilarPairs`: training data for sentence embeddings: single texts, pairs, triplets, or pairs with scores."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.arguments import check_choice
from firth.core.data import Data, FileOption
from firth.core.errors import FirthError
from firth.core.report import Report
from firth.data.corpus import Corpus
from firth.data.examples import check_numbers
from firth.data.sentences import split_sentences
from firth.data.shared_options import UNITS
from firth.data.table import Table

SENTENCE = "sentence"


class AlignedTexts(NamedTuple):
    """Rows without missing texts: sides[0] are the anchors, sides[1] the positives and sides[2] the negatives, if any.

    `scores` are the similarity scores of the pairs, if given.
    """

    sides: tuple[list[str], ...]
    scores: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.sides[0])

    def take(self, rows: NDArray[np.int64]) -> AlignedTexts:
        """Return these rows."""
        sides = tuple([side[row] for row in rows.tolist()] for side in self.sides)
        return AlignedTexts(sides, None if self.scores is None else self.scores[rows])


class SimilarPairs(Data):
    """Training data for sentence embeddings.

        SimilarPairs("notes.txt", unit="sentence")                                    # single texts (SimCSE)
        SimilarPairs("asked.csv", text="question", other="duplicate")                 # positive pairs
        SimilarPairs("found.jsonl", text="query", other="answer", negative="wrong")   # triplets
        SimilarPairs("sts.tsv", text="first", other="second", score="score")          # higher: more similar

    Without `other`, the sources form a corpus: text files, tables with the text in the column `text`, lists of texts;
    `unit` is a line, block, file or sentence. With `other`, the source is one table: csv, tsv, jsonl, Parquet, a data
    frame or a dictionary of columns. `dev` are pairs with scores, used for evaluation and model selection: a
    `SimilarPairs`, or a table whose columns `dev_columns` are the two texts and the score.

    Threads can share it unless it reads an iterator or standard input.
    """

    noun = "set of pairs"
    file_options = (
        FileOption("unit", "What one text of a text file is.", "choice", (*UNITS, SENTENCE)),
        FileOption("text", "The text column (csv, tsv, jsonl, Parquet).", flag="column"),
        FileOption("other", "Pairs: the column of similar texts."),
        FileOption("negative", "Pairs: the column of dissimilar texts (hard negatives)."),
        FileOption("score", "Pairs: the column of similarity scores; higher is more similar."),
        FileOption("dev", "Scored pairs to evaluate on; the best weights are kept.", "source"),
        FileOption("dev_columns", "Their two text columns and the score column.", "columns"),
    )
    has_texts = True

    def __init__(
        self,
        *sources: Any,
        text: str | None = None,
        other: str | None = None,
        negative: str | None = None,
        score: str | None = None,
        unit: str = "line",
        dev: Any = None,
        dev_columns: Sequence[str] = ("text", "other", "score"),
    ) -> None:
        if other is None and (negative or score):
            raise FirthError(
                "conflicting_options",
                "{options} need pairs: name the column of the second texts (other).",
                options="negative and score",
            )
        if negative and score:
            raise FirthError(
                "conflicting_options", "Pairs can have {options}, not both.", options="a score or a negative text"
            )
        check_choice("SimilarPairs.unit", unit, (*UNITS, SENTENCE))
        if dev is not None and not isinstance(dev, SimilarPairs):
            dev = scored_pairs(dev, dev_columns)
        if dev is not None and dev.score is None:
            raise FirthError(
                "invalid_value", "{option} must be pairs with scores: name the score column (score).", option="dev"
            )
        self.score: str | None = score
        self.dev: SimilarPairs | None = dev
        self.unit = unit
        self.names = [text or "text", other, *([negative] if negative else [])] if other else []
        if not other:
            self.corpus: Corpus | None = Corpus(*sources, unit="line" if unit == SENTENCE else unit, column=text)
            return
        if len(sources) != 1:
            raise FirthError("wrong_input", "Pairs are read from one table; got {got} sources.", got=len(sources))
        self.corpus = None
        self.table = Table(sources[0], columns=[*self.names, *([score] if score else [])], categories=self.names)

    def __repr__(self) -> str:
        if self.corpus is not None:
            return f"SimilarPairs(single texts of {self.corpus!r})"
        score = f", score {self.score!r}" if self.score else ""
        return f"SimilarPairs({len(self.table):,} {'triplets' if len(self.names) == 3 else 'pairs'}{score})"

    def _rows_shown(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        return self.table._rows_shown() if self.corpus is None else self.corpus._rows_shown()

    def rows(self, report: Report) -> AlignedTexts:
        """Return the rows without empty texts and, for single texts, without duplicates."""
        rows = self._texts(report) if self.corpus is not None else self._table_rows(report)
        if len(rows) < 2:
            raise FirthError(
                "too_few",
                "Contrastive training needs at least 2 different texts; got {got}.",
                got=len(rows),
            )
        return rows

    def _texts(self, report: Report) -> AlignedTexts:
        texts = list(self._read())
        nonempty = [text for text in texts if text.strip()]
        distinct = list(dict.fromkeys(nonempty))
        if len(nonempty) < len(texts):
            text = f"{len(texts) - len(nonempty):,} of {len(texts):,} texts are empty and left out."
            report.note(text, "empty_texts")
        if len(distinct) < len(nonempty):
            text = f"{len(nonempty) - len(distinct):,} of {len(nonempty):,} texts are duplicates and left out."
            report.note(text, "duplicate_texts")
        return AlignedTexts((distinct,))

    def _read(self) -> Iterator[str]:
        assert self.corpus is not None
        for _, text in self.corpus:
            if self.unit == SENTENCE:
                yield from split_sentences(text)
            else:
                yield text

    def _table_rows(self, report: Report) -> AlignedTexts:
        sides = [[text or "" for text in self.table.categories(name)] for name in self.names]
        scores = self.table.numbers(self.score) if self.score else np.zeros(len(self.table))
        empty_rows = [
            row for row, texts in enumerate(zip(*sides, strict=True)) if not all(text.strip() for text in texts)
        ]
        unscored = np.flatnonzero(np.isnan(scores)).tolist()
        for rows, what in ((empty_rows, "an empty text"), (unscored, f"no {self.score}")):
            if rows:
                first = self.table.row_number(rows[0])
                text = f"{len(rows):,} of {len(scores):,} rows have {what} and are left out; the first is row {first}."
                report.note(text, "rows_left_out")
        if self.score:
            check_numbers(scores.tolist(), self.score)
        selected_rows = sorted(set(range(len(scores))) - set(empty_rows) - set(unscored))
        sides_left = tuple([side[row] for row in selected_rows] for side in sides)
        return AlignedTexts(sides_left, scores[selected_rows] if self.score else None)

    def fingerprint(self) -> str | None:
        """Return a hash of the data; None if a source is not a file."""
        own = self.table.fingerprint() if self.corpus is None else self.corpus.fingerprint()
        dev = "" if self.dev is None else self.dev.fingerprint()
        if own is None or dev is None:
            return None
        return hashlib.sha256(repr((own, dev, self.unit, self.names, self.score)).encode()).hexdigest()


def scored_pairs(source: Any, columns: Sequence[str]) -> SimilarPairs:
    """Read pairs with scores from a table with these columns: the two texts and the score."""
    if isinstance(columns, str) or len(columns) != 3:
        raise FirthError(
            "invalid_value",
            "{option} must be three column names, as in text,other,score; got {got}.",
            option="dev_columns",
            got=columns if isinstance(columns, str) else ",".join(columns),
        )
    text, other, score = columns
    return SimilarPairs(source, text=text, other=other, score=score)
