"""`LabeledTexts`: texts with labels, from fastText files, records, iterables and data frames."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.data import Data, FileOption
from firth.core.embedding import is_token_list
from firth.core.errors import FirthError
from firth.core.run import Run
from firth.data import corpus_encoding, readers
from firth.data.blocks import Block, Tags
from firth.data.corpus import Corpus, FileSource, StreamSource, is_table_like
from firth.data.token_lists import is_tokenized, peek_first
from firth.data.tokenizer import NATIVE, Splitting
from firth.data.tokenizer import tokenizer as tokenizer_named
from firth.data.tokens import Text, Tokens, VocabularySettings, encode_text, vocabulary_of
from firth.data.vocabulary import Vocabulary
from firth.kernels import classify as kernel
from firth.kernels import text as text_kernel

FASTTEXT = "fasttext"  # the tokenizer that splits at ASCII white space and appends </s> to each text


class Example(NamedTuple):
    """A text or a list of tokens, and its labels."""

    text: str | list[str]
    labels: tuple[str, ...]


class LabeledTexts(Data):
    """Texts with labels, streamed and re-iterable.

    `sources` may be:

    - text files (or "-", standard input) with one text per line, in which words that begin with `__label__` are labels,
      as in fastText;
    - records (jsonl, csv, tsv, Parquet) and data frames: `column` is the column of the text, and `label` the column of
      the label or list of labels;
    - iterables of (text, label) or (text, labels). A single iterable may have lists of tokens instead of texts.

    Threads can share it unless it reads an iterator or standard input.
    """

    noun = "set of labeled texts"
    file_options = (
        FileOption("column", "The text column (jsonl, csv, tsv, Parquet)."),
        FileOption("label", "The label column, by default label. Text files have __label__ words."),
    )
    has_texts = has_labels = True

    def __init__(self, *sources: Any, column: str | None = None, label: str | None = None) -> None:
        if not sources:
            raise FirthError(
                "missing_option",
                "LabeledTexts needs at least one {option}: a path, a glob, - or an iterable of (text, label).",
                option="source",
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
                "LabeledTexts reads {options}, not both.",
                options="text files with __label__ words or records",
            )
        self.in_text = in_text.pop()  # whether labels are words of the text
        if self.in_text:
            self.corpus = Corpus(self.corpus)  # without columns

    def __iter__(self) -> Iterator[Example]:
        for example, _ in self.walk():
            yield example

    def __repr__(self) -> str:
        return f"LabeledTexts({'lists of tokens' if self.lists is not None else self.corpus})"

    def _rows_shown(self) -> tuple[list[str], Iterator[tuple[str | list[str], str]]]:
        rereadable = isinstance(self.lists, Sequence) if self.lists is not None else self.corpus.rereadable
        return ["text", "labels"], ((text, ", ".join(labels)) for text, labels in (self if rereadable else ()))

    def walk(self) -> Iterator[tuple[Example, int]]:
        """Yield (example, bytes of the sources read so far)."""
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
        """Return a hash of the content; None if a source is not a file."""
        return None if self.lists is not None else self.corpus.fingerprint()


def decode_bytes(data: NDArray[np.uint8]) -> str:
    """Decode UTF-8; invalid bytes become U+FFFD."""
    return data.tobytes().decode("utf-8", "replace")


def has_inline_labels(source: Any) -> bool:
    """Whether a source is plain text, with labels among its words."""
    if isinstance(source, FileSource):
        return not readers.format_and_compression(source.path)[0]
    return isinstance(source, StreamSource)


def pairs_as_documents(source: Any) -> Any:
    """Convert an iterable of (text, labels) to documents with the labels as tags, for a Corpus."""
    if isinstance(source, (str, os.PathLike)) or is_table_like(source) or not isinstance(source, Iterable):
        return source
    return with_label_tags(source) if isinstance(source, Iterator) else LabeledPairs(source)


@dataclass(frozen=True)
class LabeledPairs:
    """A re-iterable version of `with_label_tags`."""

    items: Iterable[Any]

    def __iter__(self) -> Iterator[tuple[None, str, list[str]]]:
        return with_label_tags(self.items)


def with_label_tags(items: Iterable[Any]) -> Iterator[tuple[None, str, list[str]]]:
    """Yield (text, labels) pairs as documents (None, text, labels)."""
    for item in items:
        text, names = named_labels(item, lambda candidate: isinstance(candidate, str))
        yield None, str(text), names


def named_labels(item: Any, is_valid_text: Callable[[Any], bool]) -> tuple[Any, list[Any]]:
    """Return the text and the list of labels of a pair; `is_valid_text` checks the text."""
    text, labels = item if isinstance(item, (tuple, list)) and len(item) == 2 else (None, None)
    several = [labels] if isinstance(labels, (str, Real)) else labels
    valid = isinstance(several, Iterable) and is_valid_text(text)
    names = list(several) if valid and several is not None else []
    if not valid or not all(isinstance(name, Real) or is_label_name(name) for name in names):
        is_pair = isinstance(item, (tuple, list)) and len(item) == 2
        got = f"{text!r:.40} with {labels!r:.40}" if is_pair else f"{item!r:.60}"
        raise FirthError(
            "invalid_type",
            "Labeled texts must be pairs (text, label) or (text, [label, …]), with str for all texts or lists of "
            "tokens for all; got {got}.",
            got=got,
        )
    return text, names


def split_token_lists(sources: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any] | None]:
    """Return the sources, and the examples if there is one source whose texts are lists of tokens."""
    source = sources[0] if len(sources) == 1 else None
    if not isinstance(source, Iterable) or isinstance(source, (str, os.PathLike, Mapping)) or is_table_like(source):
        return sources, None
    first, items = peek_first(source)
    pair = isinstance(first, (tuple, list)) and len(first) == 2
    return [items], list(items) if pair and is_tokenized(first[0]) else None


def is_label_name(label: Any) -> bool:
    """Whether a label is a string without NUL."""
    return isinstance(label, str) and "\0" not in label


class EncodedExamples(NamedTuple):
    """Labeled texts as ids. All words are kept, however rare; labels are stored as in `kernels.classify.Texts`."""

    tokens: Tokens
    labels: Vocabulary
    label_ids: NDArray[np.int32]
    label_starts: NDArray[np.int64]

    @property
    def texts(self) -> kernel.Texts:
        """The arrays for the kernel."""
        return kernel.Texts(self.tokens.ids, self.tokens.starts, self.label_ids, self.label_starts)

    @property
    def fingerprint(self) -> str:
        """A hash of the tokens and labels."""
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
    """Read and encode labeled texts on all cores.

    The tokenizer "fasttext" splits at ASCII white space and appends the word </s> to each text. Lists of tokens are
    used unchanged.
    """
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
    """Yield the blocks of text without the labels, which are added to `labels`."""
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
    """Yield tokenized documents for `corpus_encoding.token_blocks`; the labels are added to `labels`."""
    for example, done in data.walk():
        labels.add_lists([example.labels])
        yield split(example.text), done, [], []


class LabelIds:
    """Encodes labels as ids, with 4 bytes per label."""

    def __init__(self) -> None:
        self.encoder = text_kernel.TextEncoder("separated", False, 1)
        self.parts: list[NDArray[np.int32]] = []

    def add(self, labels: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        """Add NUL-terminated labels; `ends` are the offsets where the labels of each text end."""
        self.encoder.encode(labels, ends)
        self.parts += [np.array(ids) for _, ids in self.encoder.stretches()]

    def add_lists(self, lists: Sequence[Tags]) -> None:
        """Add the list of labels of each text."""
        if any("\0" in label for labels in lists for label in labels):
            wrong = next(label for labels in lists for label in labels if "\0" in label)
            raise FirthError(
                "invalid_value",
                "A {what} must not contain the character NUL; got {got!r:.60}.",
                what="label",
                got=wrong,
            )
        parts = [readers.to_bytes("".join(label + "\0" for label in labels)) for labels in lists]
        ends = np.cumsum([0, *map(len, parts)])[1:].astype(np.int64)
        self.add(text_kernel.as_bytes(b"".join(parts)), ends)

    def finish(self) -> tuple[Vocabulary, NDArray[np.int32], NDArray[np.int64]]:
        """Return the label vocabulary (most frequent first), the label ids and where each text's labels begin."""
        merged = text_kernel.merge(self.encoder, 1, None)
        stream = np.concatenate([np.zeros(0, np.int32), *self.parts])
        ids, ends = np.empty(len(stream), dtype=np.int32), np.empty(len(stream), dtype=np.int64)
        count, texts = text_kernel.translate(stream, merged.maps[0], ids, ends)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:texts]])
        return vocabulary_of(merged, 1), ids[:count].copy(), starts
