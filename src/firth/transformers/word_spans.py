"""Text cut into words and tokens, as a network's tokenizer does it; where words stand; a corpus in parts that fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from firth.core.errors import FirthError
from firth.data.corpus import Corpus
from firth.data.subword_tokenizer import SubwordTokenizer, checked_texts

CHUNK = 16384  # characters of a document that are cut into tokens at once
DOCUMENTS = 256  # that are cut into tokens at once

Span = tuple[int, int]  # of tokens: the first, and one behind the last


class Word(NamedTuple):
    """A word of a text: its characters, and its tokens among the text's."""

    text: str  # as it stands there
    name: str  # as the model sees it: without capitals, where it folds case
    begin: int
    end: int
    first: int
    last: int  # one behind


class Reading(NamedTuple):
    """A text cut into tokens and words."""

    ids: list[int]
    words: list[Word]


class WordMatcher:
    """Words, or phrases of several, to be found in texts."""

    def __init__(self, tokenizer: SubwordTokenizer, keys: Sequence[str]) -> None:
        self.by_first: dict[str, list[tuple[list[str], int]]] = {}
        for row, (key, reading) in enumerate(zip(keys, read(tokenizer, keys), strict=True)):
            parts = [word.name for word in reading.words]
            if not parts:
                raise FirthError("unknown_key", "{key!r} is no word to this model's tokenizer.", key=key)
            self.by_first.setdefault(parts[0], []).append((parts, row))

    def within(self, reading: Reading) -> Iterator[tuple[int, Span]]:
        """The row of each wanted word in a text, and its tokens."""
        for index, word in enumerate(reading.words):
            for parts, row in self.by_first.get(word.name, ()):
                run = reading.words[index : index + len(parts)]
                if [each.name for each in run] == parts:
                    yield row, (run[0].first, run[-1].last)


def read(tokenizer: SubwordTokenizer, texts: Sequence[str]) -> list[Reading]:
    """Each text's tokens, without what the model puts around them, and which of them make up each word."""
    engine = tokenizer.engine
    if engine.pre_tokenizer is None:
        raise FirthError(
            "unsupported_model", "This model's tokenizer ({kind}) does not cut text into words.", kind=tokenizer.kind
        )
    encodings = tokenizer._call(engine.encode_batch, checked_texts(texts), add_special_tokens=False)
    return [
        Reading(each.ids, list(words_of(tokenizer, text, each))) for text, each in zip(texts, encodings, strict=True)
    ]


def words_of(tokenizer: SubwordTokenizer, text: str, encoding: Any) -> Iterator[Word]:
    numbers, offsets = encoding.word_ids, encoding.offsets
    first, total = 0, len(numbers)
    while first < total:
        last = first + 1
        while last < total and numbers[last] == numbers[first]:
            last += 1
        begin, end = offsets[first][0], offsets[last - 1][1]
        word = text[begin:end].strip()  # pieces of GPT-2 begin with the space before them
        if word:
            begin += len(text[begin:end]) - len(text[begin:end].lstrip())
            yield Word(word, tokenizer.normalize(word), begin, begin + len(word), first, last)
        first = last


def inside(word: Word, spans: Iterable[Span]) -> bool:
    return any(first <= word.first < last for first, last in spans)


def characters(reading: Reading, span: Span) -> tuple[int, int]:
    """Where the words of these tokens begin and end."""
    words = [word for word in reading.words if inside(word, [span])]
    return words[0].begin, words[-1].end


def in_windows(reading: Reading, limit: int) -> Iterator[Reading]:
    """A text in parts of at most so many tokens, cut between words; a word that is longer itself is in none."""
    if len(reading.ids) <= limit:
        yield reading
        return
    part = list[Word]()
    for word in [*reading.words, None]:
        if part and (word is None or word.last - part[0].first > limit):
            start = part[0].first
            moved = [each._replace(first=each.first - start, last=each.last - start) for each in part]
            yield Reading(reading.ids[start : part[-1].last], moved)
            part = []
        if word is not None and word.last - word.first <= limit:
            part.append(word)


def chunks(corpus: Corpus) -> Iterator[tuple[list[str], int]]:
    """Documents in lists, long ones cut at spaces, and the bytes read so far."""
    texts, length = list[str](), 0
    for document, _, done in corpus.walk():
        for text in cut(document.text):
            texts.append(text)
            length += len(text)
            if len(texts) == DOCUMENTS or length > 16 * CHUNK:
                yield texts, done
                texts, length = [], 0
    if texts:
        yield texts, corpus.size


def cut(text: str) -> Iterator[str]:
    """Parts of at most `CHUNK` characters, each ended by a space as long as there is one."""
    start = 0
    while start < len(text):
        end = start + CHUNK
        if end < len(text):
            space = text.rfind(" ", start + 1, end)
            end = space if space > 0 else end
        yield text[start:end]
        start = end
