"""`TranslationPairs`: source and target texts (translations, summaries) from parallel files, tables and iterables."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from firth.core.data import Data, FileOption
from firth.core.errors import FirthError
from firth.core.remote import as_path
from firth.data.corpus import Corpus, is_table_like
from firth.data.readers import format_and_compression
from firth.data.shared_options import TRANSLATION_OPTIONS


class Pair(NamedTuple):
    """A source text and its target text."""

    source: str
    target: str


class TranslationPairs(Data):
    """Pairs of texts, streamed and re-iterable.

        TranslationPairs("train.de", "train.en")                        # parallel files, aligned line by line
        TranslationPairs("pairs.tsv", source="german", target="english")
        TranslationPairs([("ein hund", "a dog"), ("eine katze", "a cat")])

    A table is a csv, tsv, jsonl or Parquet file, optionally compressed, or a data frame. Its columns are "source" and
    "target" by default. `dev` are pairs for evaluation during training: a `TranslationPairs`, a table, or a list of two
    parallel files.

    Threads can share it unless it reads an iterator or standard input.
    """

    noun = "set of pairs"
    file_options = (
        *TRANSLATION_OPTIONS,
        FileOption(
            "dev",
            "Development pairs, as in val.de,val.en or val.tsv.",
            "source",
            several=True,
            empty="hold out a part",
        ),
    )
    has_texts = True

    def __init__(self, *data: Any, source: str = "source", target: str = "target", dev: Any = None) -> None:
        if not 1 <= len(data) <= 2:
            raise FirthError(
                "invalid_type",
                "TranslationPairs takes two parallel files, one table or one iterable of pairs; got {got} arguments.",
                got=len(data),
            )
        if dev is not None and not isinstance(dev, TranslationPairs):
            is_files = isinstance(dev, (list, tuple)) and all(isinstance(part, (str, os.PathLike)) for part in dev)
            dev = TranslationPairs(*(dev if is_files else [dev]), source=source, target=target)
        self.dev: TranslationPairs | None = dev
        self._items: Iterable[Any] | None = None
        self._sides: tuple[Corpus, Corpus] | None = None
        if len(data) == 2:
            self._sides = (Corpus(data[0]), Corpus(data[1]))
            self.names = tuple(str(part) if isinstance(part, (str, os.PathLike)) else "the list" for part in data)
        elif isinstance(data[0], (str, os.PathLike)) or is_table_like(data[0]):
            if isinstance(data[0], (str, os.PathLike)) and not format_and_compression(as_path(data[0]))[0]:
                raise FirthError(
                    "wrong_input",
                    "{path} is a single text file. Pass two parallel files (source and target), or one csv, tsv, jsonl "
                    "or Parquet file.",
                    path=data[0],
                )
            self._sides = (Corpus(data[0], column=source), Corpus(data[0], column=target))
            self.names = (source, target)
        elif isinstance(data[0], Iterable):
            self._items = list(data[0]) if isinstance(data[0], Iterator) else data[0]
        else:
            raise FirthError(
                "invalid_type",
                "TranslationPairs reads files, data frames and iterables of pairs; got {got}.",
                got=type(data[0]).__name__,
            )

    def __repr__(self) -> str:
        if self._sides is not None:
            return f"TranslationPairs({self.names[0]} → {self.names[1]})"
        count = f"{len(self._items):,} pairs" if isinstance(self._items, Sequence) else "pairs of an iterable"
        return f"TranslationPairs({count})"

    def _rows_shown(self) -> tuple[list[str], Iterable[Pair]]:
        rereadable = self._sides is None or all(side.rereadable for side in self._sides)
        return ["source", "target"], self if rereadable else ()

    def __iter__(self) -> Iterator[Pair]:
        """Yield all pairs, including those with an empty text."""
        if self._sides is None:
            for number, item in enumerate(self._items or (), 1):
                yield check_pair(item, number)
            return
        for number, (source, target) in enumerate(zip_longest(*self._sides)):
            if source is None or target is None:
                longer, shorter = self.names if target is None else reversed(self.names)
                raise FirthError(
                    "wrong_input",
                    "{longer} has more lines than {shorter}, which has {lines:,}. Parallel files must have the same "
                    "number of lines.",
                    longer=longer,
                    shorter=shorter,
                    lines=number,
                )
            yield Pair(source.text, target.text)

    def fingerprint(self) -> str | None:
        """Return a hash of the content; None if a source is not a file."""
        if self._sides is None:
            return None
        fingerprints = [side.fingerprint() for side in self._sides]
        if self.dev is not None:
            fingerprints.append(self.dev.fingerprint())
        return None if None in fingerprints else hashlib.sha256(repr(fingerprints).encode()).hexdigest()


def check_pair(item: Any, number: int) -> Pair:
    """Return an item as a Pair, and refuse anything but two texts."""
    if isinstance(item, (tuple, list)) and len(item) == 2 and all(isinstance(side, str) for side in item):
        return Pair(*item)
    raise FirthError(
        "malformed_data",
        "Pair {number:,} must be two texts (source, target); got {got!r:.60}.",
        number=number,
        got=item,
    )


def as_pairs(data: Any) -> TranslationPairs:
    """Return `data` if it is a TranslationPairs, or build one from it."""
    return data if isinstance(data, TranslationPairs) else TranslationPairs(data)
