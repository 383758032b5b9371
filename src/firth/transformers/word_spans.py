"""Words and their token spans, as a tokenizer splits text; matching of words; splitting of long texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from firth.core.errors import FirthError
from firth.data.corpus import Corpus
from firth.data.sentencepiece_files import SPACE
from firth.data.subword_tokenizer import SubwordTokenizer, checked_texts

CHUNK = 16384  # characters of a document that are tokenized at once
DOCUMENTS = 256  # tokenized at once

Span = tuple[int, int]  # of tokens: first, end


class Word(NamedTuple):
    """A word of a text with its character and token offsets."""

    text: str  # as in the text
    name: str  # normalized, such as lowercase
    begin: int
    end: int
    first: int
    last: int  # exclusive


class Reading(NamedTuple):
    """The tokens and words of a text."""

    ids: list[int]
    words: list[Word]


class WordMatcher:
    """Finds words, or phrases of several words, in texts."""

    def __init__(self, tokenizer: SubwordTokenizer, keys: Sequence[str]) -> None:
        self.by_first: dict[str, list[tuple[list[str], int]]] = {}
        for row, (key, reading) in enumerate(zip(keys, read(tokenizer, keys), strict=True)):
            parts = [word.name for word in reading.words]
            if not parts:
                raise FirthError("unknown_key", "The tokenizer of this model finds no word in {key!r}.", key=key)
            self.by_first.setdefault(parts[0], []).append((parts, row))

    def within(self, reading: Reading) -> Iterator[tuple[int, Span]]:
        """Yield the row and the token span of each matched word in a text."""
        for index, word in enumerate(reading.words):
            for parts, row in self.by_first.get(word.name, ()):
                run = reading.words[index : index + len(parts)]
                if [each.name for each in run] == parts:
                    yield row, (run[0].first, run[-1].last)


def read(tokenizer: SubwordTokenizer, texts: Sequence[str]) -> list[Reading]:
    """Return the tokens of each text, without special tokens, and the token span of each word."""
    engine = tokenizer.engine
    if engine.pre_tokenizer is None and tokenizer.space != SPACE:
        raise FirthError(
            "unsupported_model",
            "The tokenizer of this model ({kind}) does not split text into words.",
            kind=tokenizer.kind,
        )
    encodings = tokenizer._call(engine.encode_batch, checked_texts(texts), add_special_tokens=False)
    return [
        Reading(each.ids, list(words_of(tokenizer, text, each))) for text, each in zip(texts, encodings, strict=True)
    ]


def words_of(tokenizer: SubwordTokenizer, text: str, encoding: Any) -> Iterator[Word]:
    """Yield the words of an encoded text."""
    numbers, offsets = encoding.word_ids, encoding.offsets
    if tokenizer.space == SPACE:
        numbers = words_and_punctuation(text, encoding)
    first, total = 0, len(numbers)
    while first < total:
        last = first + 1
        while last < total and numbers[last] == numbers[first]:
            last += 1
        begin, end = offsets[first][0], offsets[last - 1][1]
        word = text[begin:end].strip()  # tokens of GPT-2 include the leading space
        if word:
            begin += len(text[begin:end]) - len(text[begin:end].lstrip())
            yield Word(word, tokenizer.normalize(word), begin, begin + len(word), first, last)
        first = last


def words_and_punctuation(text: str, encoding: Any) -> list[int]:
    """Return the word number of each token of a sentencepiece model.

    Its tokenizer splits at spaces at most, so a word is split here where letters and punctuation meet between tokens,
    as other tokenizers do. A token that is only a space belongs to the next one.
    """
    numbers, previous, word = list[int](), None, -1
    after_space, was_letters = True, False
    for token, number, (begin, end) in zip(encoding.tokens, encoding.word_ids, encoding.offsets, strict=True):
        letters = any(map(str.isalnum, text[begin:end]))
        starts = token.startswith(SPACE) or number != previous
        if starts or (letters != was_letters and not after_space):
            word += 1
        numbers.append(word)
        previous, was_letters, after_space = number, letters, token == SPACE
    return numbers


def inside(word: Word, spans: Iterable[Span]) -> bool:
    """Return whether a word lies in one of the token spans."""
    return any(first <= word.first < last for first, last in spans)


def characters(reading: Reading, span: Span) -> tuple[int, int]:
    """Return the character range of a token span."""
    words = [word for word in reading.words if inside(word, [span])]
    return words[0].begin, words[-1].end


def in_windows(reading: Reading, limit: int) -> Iterator[Reading]:
    """Yield parts of at most `limit` tokens, split between words; longer words are skipped."""
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
    """Yield lists of texts, with long documents split at spaces, and the bytes read so far."""
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
    """Yield parts of at most `CHUNK` characters, split at spaces where possible."""
    start = 0
    while start < len(text):
        end = start + CHUNK
        if end < len(text):
            space = text.rfind(" ", start + 1, end)
            end = space if space > 0 else end
        yield text[start:end]
        start = end
