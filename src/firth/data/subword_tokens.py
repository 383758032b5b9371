"""Encodes a corpus with a subword tokenizer, for training networks; the ids are on disk, in the cache."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.run import Run
from firth.core.storage import saying_where
from firth.data import cache
from firth.data.corpus import Corpus, Note, invalid_utf8_note
from firth.data.streams import IDS, STARTS
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.data.tokens import Tokens, encoding_folder, map_arrays, open_entry, save_entry
from firth.data.vocabulary import Vocabulary

FORMAT = "subwords 1"  # of cache entries
BATCH = 1 << 20  # characters encoded at a time
PART = 1 << 16  # characters of a long document that are encoded at a time
# Cutting before a space that follows text does not change the tokens of Firth's tokenizers; see cpp/text.h, safe_cut.
CUT = re.compile(r"(?<=\S)[ \n\r\t]")


def encode_corpus(tokenizer: SubwordTokenizer, corpus: Any, run: Run = Run(), end: str = "") -> Tokens:
    """Encode every document as ids on all cores; the memory needed does not depend on the corpus.

    `end` is a special token that is appended to each document. The vocabulary of the result has the tokenizer's tokens
    by id, with their counts. If the result is in the cache, it is opened from there.
    """
    texts = corpus if isinstance(corpus, Corpus) else Corpus(corpus)
    end_id = tokenizer.special_id(end) if end else -1
    stamp, name = texts.stamp(), None
    if stamp:
        name = cache.entry_name(FORMAT, stamp, tokenizer.fingerprint, end)
        cached_tokens = open_entry(name, run)
        if cached_tokens is not None:
            return cached_tokens
    with encoding_folder(name, run) as (folder, cached):
        if name and not cached:
            run.report.note(*cache.unwritable_note())
        if run.cluster:
            from firth.data import shard_subwords

            counts = shard_subwords.write_ids(tokenizer, texts, folder, end_id, run)
        else:
            run.report.begin("encoding", texts.size, "B")
            try:
                counts = write_ids(tokenizer, texts, folder, end_id, run)
            finally:
                run.report.end()
        ids, starts = map_arrays(folder)
        if not len(ids):
            raise FirthError("empty_data", "The corpus has no text to encode: it is empty.")
        names = [tokenizer.tokens.get(id, f"<no token {id}>") for id in range(tokenizer.size)]
        tokens = Tokens(ids, starts, Vocabulary(names, counts), len(ids))
        notes = [Note(invalid_utf8_note(texts.replaced, texts), "invalid_utf8")] if texts.replaced else []
        for note in notes:
            run.report.note(*note)
        if name and cached:
            save_entry(name, folder, tokens, notes)
        return tokens  # the mappings stay valid after the files are removed


def write_ids(tokenizer: SubwordTokenizer, texts: Corpus, folder: Path, end_id: int, run: Run) -> NDArray[np.int64]:
    """Write the ids and document starts; return the count of each id."""
    counts = np.zeros(tokenizer.size, dtype=np.int64)
    closing = [end_id] if end_id >= 0 else []
    written = 0
    with saying_where(folder), (folder / IDS).open("wb") as ids, (folder / STARTS).open("wb") as starts:
        starts.write(np.zeros(1, dtype=np.int64).tobytes())
        for parts, lasts, done in batches(tokenizer, texts):
            batch_ids, ends = list[int](), list[int]()
            for part, last in zip(tokenizer.ids_batch(parts, special=False), lasts, strict=True):
                batch_ids += part
                if last:
                    batch_ids += closing
                    ends.append(written + len(batch_ids))
            numbers = np.array(batch_ids, dtype=np.int32)
            ids.write(numbers.tobytes())
            starts.write(np.array(ends, dtype=np.int64).tobytes())
            counts += np.bincount(numbers, minlength=len(counts))
            written += len(numbers)
            run.report.step(done)
    return counts


def batches(tokenizer: SubwordTokenizer, texts: Corpus) -> Iterator[tuple[list[str], list[bool], int]]:
    """Yield (parts of documents, whether each part is the last of its document, bytes read so far)."""
    uncuttable = not can_encode_parts(tokenizer)
    parts, lasts, filled, done = list[str](), list[bool](), 0, 0
    for document, _, done in texts.walk():
        for part, last in [(document.text, True)] if uncuttable else split_document(document.text):
            parts.append(part)
            lasts.append(last)
            filled += len(part)
            if filled >= BATCH:
                yield parts, lasts, done
                parts, lasts, filled = [], [], 0
    if parts:
        yield parts, lasts, done


def split_document(text: str) -> Iterable[tuple[str, bool]]:
    """Yield the parts of a document, and whether each is the last one."""
    begin = 0
    while len(text) - begin > PART:
        match = CUT.search(text, begin + PART)
        if match is None:
            break
        yield text[begin : match.start()], False
        begin = match.start()
    yield text[begin:], True


def can_encode_parts(tokenizer: SubwordTokenizer) -> bool:
    """Whether a text may be encoded in parts without changing its ids, as with Firth's own tokenizers."""
    document = tokenizer._document
    normalizer, pre_tokenizer = (document.get(name) or {} for name in ("normalizer", "pre_tokenizer"))
    if any(re.search(r"\s", token) for token in tokenizer.special_tokens):
        return False
    pre_tokenizers = {
        "characters": (None,),
        "bpe": ("ByteLevel", "BertPreTokenizer"),
        "wordpiece": ("BertPreTokenizer",),
    }
    has_special_rules = any(
        not token["special"] or token["lstrip"] or token["rstrip"] for token in document["added_tokens"]
    )
    is_plain = (
        normalizer.get("type") in (None, "BertNormalizer")
        and not pre_tokenizer.get("add_prefix_space")
        and not has_special_rules
    )
    return is_plain and pre_tokenizer.get("type") in pre_tokenizers.get(tokenizer.kind, ())
