"""`LabeledTexts`: texts with their labels, from fastText's files, records, iterables and data frames."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.run import Run
from firth.data import corpus_encoding, readers
from firth.data.blocks import Block, Tags
from firth.data.corpus import Corpus, FileSource, StreamSource, is_table_like
from firth.data.token_lists import is_tokenized, peek_first
from firth.data.tokenizer import NATIVE, Splitting, is_token_list
from firth.data.tokenizer import tokenizer as tokenizer_named
from firth.data.tokens import Text, Tokens, VocabularySettings, encode_text, vocabulary_of
from firth.data.vocabulary import Vocabulary
from firth.kernels import classify as kernel
from firth.kernels import text as text_kernel

FASTTEXT = "fasttext"  # a way to split: at ASCII white space, with </s> behind each text


class Example(NamedTuple):
    """A text, or a list of its tokens, and its labels."""

    text: str | list[str]
    labels: tuple[str, ...]


class LabeledTexts:
    """Texts with labels, streamed and re-iterable.

    `sources`: text files (or "-", standard input) with a text a line, where words that begin with `__label__` are
    labels, as fastText has it; files of records (jsonl, csv, tsv, Parquet) and data frames, whose `column` holds the
    text and whose `label` the label (or a list of them); iterables of (text, label) or (text, labels). In one iterable
    texts may also be lists of tokens. Threads can share it, unless it reads an iterator or standard input.
    """

    def __init__(self, *sources: Any, column: str | None = None, label: str | None = None) -> None:
        if not sources:
            raise FirthError(
                "missing_option",
                "Labelled needs at least one source: a path, a glob, - or an iterable of (text, label).",
            )
        all_sources, self.lists = split_token_lists(sources)
        if self.lists is not None:
            self.in_text = False
            return
        corpus_sources = [pairs_as_documents(source) for source in all_sources]
        self.corpus = Corpus(*corpus_sources, column=column, tags=label or "label")
        in_text = {has_inline_labels(source) for source in self.corpus.sources}
        if len(in_text) > 1:
            raise FirthError(
                "conflicting_options",
                "Labelled reads either text files with __label__ words or records; got both at once.",
            )
        self.in_text = in_text.pop()  # labels stand in the text
        if self.in_text:
            self.corpus = Corpus(self.corpus)  # without columns

    def __iter__(self) -> Iterator[Example]:
        for example, _ in self.walk():
            yield example

    def walk(self) -> Iterator[tuple[Example, int]]:
        """The examples, each with the bytes of the sources read so far."""
        if self.lists is not None:
            for number, item in enumerate(self.lists):
                tokens, names = named_labels(item, is_token_list)
                yield Example(list(tokens), readers.tags_of(names, f"example {number}")), 0
            return
        for (_, text), labels, done in self.corpus.walk():
            if self.in_text:
                data = np.frombuffer(readers.to_bytes(text), dtype=np.uint8)
                (rest, _), (label_bytes, _) = kernel.take_labels(data, np.array([len(data)]), take=True, separate=False)
                text, labels = decode_bytes(rest).strip(), tuple(decode_bytes(label_bytes).split("\0")[:-1])
            yield Example(text, labels), done

    def fingerprint(self) -> str | None:
        """Says whether the content is the same as another time; None when that can't be told without reading it all."""
        return None if self.lists is not None else self.corpus.fingerprint()


def decode_bytes(data: NDArray[np.uint8]) -> str:
    return data.tobytes().decode("utf-8", "replace")


def has_inline_labels(source: Any) -> bool:
    if isinstance(source, FileSource):
        return not readers.format_and_compression(source.path)[0]
    return isinstance(source, StreamSource)


def pairs_as_documents(source: Any) -> Any:
    """What a Corpus reads: iterables of (text, labels) become iterables of documents whose tags are the labels."""
    if isinstance(source, (str, os.PathLike)) or is_table_like(source) or not isinstance(source, Iterable):
        return source
    return with_label_tags(source) if isinstance(source, Iterator) else LabeledPairs(source)


@dataclass(frozen=True)
class LabeledPairs:
    """`tagged`, as often as asked."""

    items: Iterable[Any]

    def __iter__(self) -> Iterator[tuple[None, str, list[str]]]:
        return with_label_tags(self.items)


def with_label_tags(items: Iterable[Any]) -> Iterator[tuple[None, str, list[str]]]:
    for item in items:
        text, names = named_labels(item, lambda candidate: isinstance(candidate, str))
        yield None, str(text), names


def named_labels(item: Any, is_valid_text: Callable[[Any], bool]) -> tuple[Any, list[Any]]:
    """What a pair labels, and its labels; `is_right` says whether the first is what it must be."""
    text, labels = item if isinstance(item, (tuple, list)) and len(item) == 2 else (None, None)
    several = [labels] if isinstance(labels, (str, Real)) else labels
    valid = isinstance(several, Iterable) and is_valid_text(text)
    names = list(several) if valid and several is not None else []
    if not valid or not all(isinstance(name, Real) or is_label_name(name) for name in names):
        got = f"{text!r:.40} with {labels!r:.40}" if isinstance(item, (tuple, list)) else f"{item!r:.60}"
        raise FirthError(
            "invalid_type",
            "Labelled data are pairs: (text, label) or (text, [label, …]), all texts str or all lists of tokens; got "
            "{got}.",
            got=got,
        )
    return text, names


def split_token_lists(sources: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any] | None]:
    """The sources; and where there is one whose first text is a list of tokens, its examples."""
    source = sources[0] if len(sources) == 1 else None
    if not isinstance(source, Iterable) or isinstance(source, (str, os.PathLike, Mapping)) or is_table_like(source):
        return sources, None
    first, items = peek_first(source)
    pair = isinstance(first, (tuple, list)) and len(first) == 2
    return [items], list(items) if pair and is_tokenized(first[0]) else None


def is_label_name(label: Any) -> bool:
    return isinstance(label, str) and "\0" not in label


class EncodedExamples(NamedTuple):
    """Labelled texts as ids. The tokens have every word, however rare; labels as in `kernels.classify.Texts`."""

    tokens: Tokens
    labels: Vocabulary
    label_ids: NDArray[np.int32]
    label_starts: NDArray[np.int64]

    @property
    def texts(self) -> kernel.Texts:
        return kernel.Texts(self.tokens.ids, self.tokens.starts, self.label_ids, self.label_starts)

    @property
    def fingerprint(self) -> str:
        identity = self.tokens.fingerprint, list(self.labels.tokens)
        digest = hashlib.sha256(repr(identity).encode("utf-8", "surrogatepass"))
        digest.update(self.label_ids.data)
        digest.update(self.label_starts.data)
        return digest.hexdigest()


def read_labeled_texts(
    data: Any,
    *,
    tokenizer: str | Callable[[str], list[str]] = "words",
    lowercase: bool = True,
    phrases: int = 0,
    run: Run = Run(),
) -> EncodedExamples:
    """Reads and encodes labelled texts on all cores. The tokenizer "fasttext" splits at ASCII white space and ends each
    text with the word </s>. Lists of tokens are taken as they are."""
    labeled_texts = data if isinstance(data, LabeledTexts) else LabeledTexts(data)
    labels = LabelIds()
    splitting: Splitting | None = Splitting(tokenizer, lowercase)
    if labeled_texts.lists is not None:
        blocks = corpus_encoding.token_blocks(
            split_documents(labeled_texts, list, labels), corpus_encoding.block_size(run)
        )
        split, lowercase, splitting = "separated", False, None
    elif tokenizer == FASTTEXT or tokenizer in NATIVE:
        split = "separated" if tokenizer == FASTTEXT else str(tokenizer)
        blocks = native_blocks(labeled_texts, str(tokenizer), labels, run)
    else:
        split = "separated"
        documents = split_documents(labeled_texts, tokenizer_named(tokenizer, lowercase), labels)
        blocks = corpus_encoding.token_blocks(documents, corpus_encoding.BLOCK)
        lowercase = False
    text = Text(blocks, split, lowercase, None if labeled_texts.lists is not None else labeled_texts.corpus, splitting)
    tokens = encode_text(text, VocabularySettings(1, None, phrases), run, name=None)
    return EncodedExamples(tokens, *labels.finish())


def native_blocks(data: LabeledTexts, tokenizer: str, labels: LabelIds, run: Run) -> Iterator[Block]:
    """The texts' blocks without their labels, which go to `labels`."""
    separate = tokenizer == FASTTEXT
    split = "whitespace" if separate else tokenizer
    for block in corpus_encoding.blocks_of(data.corpus, split, None, run, keys=not data.in_text):
        raw = text_kernel.as_bytes(block.data)
        text, ends = raw, block.ends
        if data.in_text or separate:
            (text, ends), extracted_labels = kernel.take_labels(raw, block.ends, take=data.in_text, separate=separate)
        if data.in_text:
            labels.add(*extracted_labels)
        else:
            labels.add_lists(block.tags)
        yield Block(memoryview(text), ends, [], [], block.done)  # type: ignore[arg-type]


def split_documents(
    data: LabeledTexts, split: Callable[[Any], list[str]], labels: LabelIds
) -> Iterator[tuple[list[str], int, list[str], list[Tags]]]:
    for example, done in data.walk():
        labels.add_lists([example.labels])
        yield split(example.text), done, [], []


class LabelIds:
    """Labels as ids: 4 bytes each while they are read, whatever their length."""

    def __init__(self) -> None:
        self.encoder = text_kernel.TextEncoder("separated", False, 1)
        self.parts: list[NDArray[np.int32]] = []

    def add(self, labels: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        """Labels with a NUL after each, and where each text's end."""
        self.encoder.encode(labels, ends)
        self.parts += [np.array(ids) for _, ids in self.encoder.stretches()]

    def add_lists(self, lists: Sequence[Tags]) -> None:
        """The labels of each text."""
        if any("\0" in label for labels in lists for label in labels):
            raise FirthError("invalid_value", "A label must not contain the character NUL; there is one that does.")
        parts = [readers.to_bytes("".join(label + "\0" for label in labels)) for labels in lists]
        ends = np.cumsum([0, *map(len, parts)])[1:].astype(np.int64)
        self.add(text_kernel.as_bytes(b"".join(parts)), ends)

    def finish(self) -> tuple[Vocabulary, NDArray[np.int32], NDArray[np.int64]]:
        """The labels, most frequent first; their ids and where each text's begin."""
        merged = text_kernel.merge(self.encoder, 1, None)
        stream = np.concatenate([np.zeros(0, np.int32), *self.parts])
        ids, ends = np.empty(len(stream), dtype=np.int32), np.empty(len(stream), dtype=np.int64)
        count, texts = text_kernel.translate(stream, merged.maps[0], ids, ends)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:texts]])
        return vocabulary_of(merged, 1), ids[:count].copy(), starts
