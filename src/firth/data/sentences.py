"""Splits documents into sentences, and encodes them as ids for next-sentence prediction."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.run import Run
from firth.data.blocks import Tags
from firth.data.corpus import Corpus, Document
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.data.subword_tokens import encode_corpus

FORMAT = "sentences 1"  # version of the splitting rules, part of the names of cache entries
#: Where a sentence may end: at the end of a line, after CJK punctuation, after other punctuation before a space.
SENTENCE_END = re.compile(
    r"(?P<line>[\n\r\x0b\x0c\x85\u2028\u2029]+)"
    r"|(?P<wide>[。！？｡]+[\"'”’」』）】]*)"
    r"|(?<![.!?…؟۔।॥])(?P<mark>[.!?…؟۔।॥]+)[\"'”’»)\]]*(?=\s)"
)
LAST_WORD = re.compile(r"[^\s\"'“‘(\[]*\Z")  # the last word, without opening quotes and brackets
INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # J, U.S
#: Abbreviations, whose period usually does not end a sentence.
ABBREVIATION_LIST = (
    "mr mrs ms dr prof st sr jr rev gen col lt sgt capt gov sen rep hon messrs mme mlle mt ft fig figs no nos vol vols "
    "pp ed eds cf vs viz al approx ca inc ltd co corp dept univ est jan feb mar apr jun jul aug sep sept oct nov dec "
    "bzw ca dr hr fr nr str usw evtl ggf inkl exkl z.b d.h u.a etc"
)
ABBREVIATIONS = frozenset(ABBREVIATION_LIST.split())
VISIBLE = re.compile(r"\w|[!-/:-@[-`{-~]")  # characters that every tokenizer keeps


def split_sentences(text: str) -> Iterator[str]:
    """Split a text into sentences by punctuation, with rules for Latin-like and CJK scripts.

    Line ends and 。！？ always end a sentence. Punctuation such as . ! ? ends a sentence before a space, unless the
    next word begins in lower case (in a text that has capitals) or the period follows an abbreviation or initial.
    Punctuation between spaces, as in tokenized text, always ends a sentence.
    """
    cased = text != text.lower()
    begin = 0
    for match in SENTENCE_END.finditer(text):
        if match["mark"] and not ends_sentence(text, match, begin, cased):
            continue
        sentence = text[begin : match.end()].strip()
        begin = match.end()
        if is_visible(sentence):
            yield sentence
    sentence = text[begin:].strip()
    if is_visible(sentence):
        yield sentence


def ends_sentence(text: str, match: re.Match[str], begin: int, cased: bool) -> bool:
    """Whether the matched punctuation ends the sentence that begins at `begin`."""
    at = match.start()
    if at == begin or text[at - 1].isspace():
        return True
    after = match.end()
    while after < len(text) and text[after].isspace():
        after += 1
    if cased and text[after : after + 1].islower():
        return False
    if match["mark"] != ".":
        return True
    word = LAST_WORD.search(text, max(begin, at - 20), at)
    before = word[0] if word else ""
    return before.lower() not in ABBREVIATIONS and not INITIALS.fullmatch(before)


def is_visible(sentence: str) -> bool:
    """Whether a sentence has any character that a tokenizer keeps: not only spaces, control characters and accents."""
    return bool(VISIBLE.search(sentence)) or any(
        unicodedata.category(character)[0] in "LNPS" and character != "\ufffd" for character in sentence
    )


class SentenceCorpus(Corpus):
    """A corpus whose documents are split into sentences; an empty text marks the end of each document."""

    file_options = ()  # it is made from a corpus

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus, unit=corpus.unit, column=corpus.column, key=corpus.key, tags=corpus.tags)

    def walk(self) -> Iterator[tuple[Document, Tags, int]]:
        """Yield the sentences as documents, and an empty text after each original document."""
        for document, tags, done in super().walk():
            for sentence in split_sentences(document.text):
                yield Document(document.key, sentence), tags, done
            yield Document(document.key, ""), tags, done

    def stamp(self) -> str | None:
        """Return the stamp of the corpus with the version of the splitting rules."""
        stamp = super().stamp()
        return f"{FORMAT} {stamp}" if stamp else None


class Sentences(NamedTuple):
    """Sentence s is `ids[starts[s]:starts[s + 1]]`; document d has the sentences from documents[d] on."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    documents: NDArray[np.int64]
    fingerprint: str = ""

    @property
    def of(self) -> NDArray[np.int64]:
        """The document number of each sentence."""
        return np.repeat(np.arange(len(self.documents) - 1), np.diff(self.documents))

    def part(self, first: int, last: int) -> Sentences:
        """Return the sentences from `first` to before `last`; documents are cut at these limits."""
        inside = self.documents[(self.documents > first) & (self.documents < last)] - first
        documents = np.concatenate([[0], inside, [last - first]]) if last > first else np.zeros(1, np.int64)
        return Sentences(self.ids, self.starts[first : last + 1], documents, self.fingerprint)


def read_sentences(tokenizer: SubwordTokenizer, corpus: Any, run: Run = Run()) -> Sentences:
    """Encode all sentences as memory-mapped ids, kept in the cache. Documents without sentences are left out."""
    texts = corpus if isinstance(corpus, Corpus) else Corpus(corpus)
    tokens = encode_corpus(tokenizer, SentenceCorpus(texts), run)
    lengths = np.diff(tokens.starts)
    nonempty = np.flatnonzero(lengths)
    starts = np.append(np.asarray(tokens.starts)[nonempty], len(tokens.ids))
    # Each empty text ends a document; the number of nonempty texts before it is the end of its sentences.
    ends = np.searchsorted(nonempty, np.flatnonzero(lengths == 0))
    documents = np.unique(np.concatenate([[0], ends, [len(nonempty)]]))
    return Sentences(tokens.ids, starts, documents, tokens.fingerprint)
