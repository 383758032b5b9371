"""`TaggedSentences`: sentences with one tag per word, from CoNLL files, tables and lists."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from firth.core.data import Data, FileOption
from firth.core.errors import FirthError
from firth.core.remote import AnyPath
from firth.data.readers import column_hint, find_files, format_and_compression, open_decompressed, text_lines
from firth.data.shared_options import DEV_OPTION
from firth.data.table_files import read_table


class Sentence(NamedTuple):
    """Words and their tags."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


class TaggedSentences(Data):
    """Sentences with one tag per word.

        TaggedSentences("train.conll")                             # one word per line, tag last; blank lines between
        TaggedSentences("train.jsonl", text="tokens", tags="ner")  # lists, or words and tags separated by blanks
        TaggedSentences([(["Ada", "writes"], ["B-PER", "O"])])

    csv, tsv, jsonl and Parquet files have one sentence per record; other files are in CoNLL format. `dev` is another
    source, used for model selection and early stopping. Immutable, so threads can share it.
    """

    noun = "set of tagged sentences"
    file_options = (
        FileOption("text", "The column of words.", flag="column"),
        FileOption("tags", "The column of tags."),
        DEV_OPTION,
    )
    has_texts = has_labels = True

    def __init__(self, source: Any, *, text: str = "text", tags: str = "tags", dev: Any = None) -> None:
        if isinstance(source, TaggedSentences):
            self.rows: list[Sentence] = source.rows
        else:
            self.rows = [row for row in sentences(source, text, tags) if row.words]
        self.dev = (
            dev if dev is None or isinstance(dev, TaggedSentences) else TaggedSentences(dev, text=text, tags=tags)
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Sentence]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"TaggedSentences({len(self):,} sentences)"

    def _rows_shown(self) -> tuple[list[str], Iterator[list[str]]]:
        rows = ([" ".join(row.words), " ".join(row.tags)] for row in self.rows)
        return ["words", "tags"], rows

    def fingerprint(self) -> str:
        """Return a hash of the sentences and the dev data."""
        digest = hashlib.sha256(json.dumps(self.rows).encode())
        if self.dev is not None:
            digest.update(self.dev.fingerprint().encode())
        return digest.hexdigest()


def sentences(source: Any, text: str, tags: str) -> Iterator[Sentence]:
    """Yield the sentences of any supported source."""
    if isinstance(source, (str, os.PathLike)):
        (path, *_) = find_files(source)
        if not format_and_compression(path)[0]:
            yield from conll_sentences(path)
            return
        source = read_table(str(path), ())
    if hasattr(source, "to_pylist"):  # an Arrow table
        source = source.to_pylist()
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):  # a data frame
        source = {str(name): list(source[name]) for name in source.columns}
    if isinstance(source, Mapping):
        source = [dict(zip(source, values, strict=True)) for values in zip(*source.values(), strict=True)]
    for number, row in enumerate(source, 1):
        yield sentence_of(row, f"Row {number:,}", text, tags)


def sentence_of(row: Any, where: str, text: str, tags: str) -> Sentence:
    """Return the sentence of a dictionary or of a pair (words, tags)."""
    if isinstance(row, Mapping):
        missing = [name for name in (text, tags) if name not in row]
        if missing:
            available = ", ".join(map(str, row)) or "none"
            raise FirthError(
                "malformed_data",
                "{where} has no column {name!r}; it has {available}.{hint}",
                where=where,
                name=missing[0],
                available=available,
                hint=column_hint(missing[0]),
            )
        row = row[text], row[tags]
    if not isinstance(row, (tuple, list)) or len(row) != 2:
        raise FirthError(
            "malformed_data", "{where} must be a pair of words and tags; got {got!r:.60}.", where=where, got=row
        )
    words, word_tags = (as_words(part, where) for part in row)
    if len(words) != len(word_tags):
        raise FirthError(
            "malformed_data",
            "{where} has {words} words and {tags} tags; each word must have one tag.",
            where=where,
            words=len(words),
            tags=len(word_tags),
        )
    return Sentence(words, word_tags)


def as_words(part: Any, where: str) -> tuple[str, ...]:
    """Return the words of a list, or of a text separated by blanks."""
    if part is None:
        return ()
    words = part.split() if isinstance(part, str) else list(part) if isinstance(part, Iterable) else [None]
    if not all(isinstance(word, str) for word in words):
        raise FirthError(
            "malformed_data", "{where}: words and tags must be text; got {got!r:.60}.", where=where, got=part
        )
    return tuple(words)


def conll_sentences(path: AnyPath) -> Iterator[Sentence]:
    """Yield the sentences of a CoNLL file: one word per line, with the tag in the last column.

    Lines that begin with "# " or -DOCSTART- are not words.
    """
    words: list[tuple[str, str]] = []
    with open_decompressed(path) as (_, stream):
        for number, line in enumerate(text_lines(stream, path), 1):
            parts = line.split()
            if not parts or parts[0] == "-DOCSTART-":
                yield Sentence(*zip(*words, strict=True)) if words else Sentence((), ())
                words = []
            elif not line.startswith("# "):
                if len(parts) < 2:
                    raise FirthError(
                        "malformed_data",
                        "{path}, line {number}: expected a word and its tag; got {got!r:.40}.",
                        path=path,
                        number=number,
                        got=line.strip(),
                    )
                words.append((parts[0], parts[-1]))
    yield Sentence(*zip(*words, strict=True)) if words else Sentence((), ())


def entity_spans(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """Return the spans marked by B- and I- tags, as conlleval reads them: (type, first, last position)."""
    spans, entity_type, first = set(), "", 0
    for position, tag in enumerate([*tags, "O"]):
        mark, _, name = tag.partition("-")
        continues = mark == "I" and name == entity_type and bool(entity_type)
        if entity_type and not continues:
            spans.add((entity_type, first, position - 1))
            entity_type = ""
        if mark in ("B", "I") and name and not continues:
            entity_type, first = name, position
    return spans
