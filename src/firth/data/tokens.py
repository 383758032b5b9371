"""`Tokens`: a corpus as int32 ids and document starts, memory-mapped: what the learners read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.run import Run
from firth.data import cache, encode
from firth.data.corpus import Corpus
from firth.data.tokenizer import NATIVE
from firth.data.tokenizer import tokenizer as tokenizer_named
from firth.data.vocabulary import Vocabulary
from firth.kernels import text as kernel

FORMAT = 1  # of cache entries
WORDS, COUNTS = "words.utf8", "counts.i64"


class Tokens:
    """`ids[starts[d]:starts[d + 1]]` is document d; words that the vocabulary lacks are left out.

    `raw_tokens` is how many tokens were met, those left out among them. `fingerprint` tells whether two are the same.
    """

    def __init__(
        self,
        ids: NDArray[np.int32],
        starts: NDArray[np.int64],
        vocabulary: Vocabulary,
        raw_tokens: int,
    ) -> None:
        self.ids, self.starts, self.vocabulary, self.raw_tokens = ids, starts, vocabulary, raw_tokens
        self.fingerprint = content_hash(ids, starts, vocabulary)

    def __len__(self) -> int:
        """How many documents."""
        return len(self.starts) - 1

    def __repr__(self) -> str:
        return f"Tokens({len(self.ids):,} ids in {len(self):,} documents, {len(self.vocabulary):,} words)"

    @classmethod
    def from_lists(
        cls,
        documents: Iterable[Sequence[str]],
        min_count: int = 1,
        max_size: int | None = None,
        run: Run = Run(),
    ) -> Tokens:
        """From documents that are lists of tokens already."""
        source = Source(encode.token_blocks(documents, encode.BLOCK), "separated", lowercase=False)
        return build(source, min_count, max_size, None, run, name=None)


class Source:
    """Blocks of text and how to split them."""

    def __init__(self, blocks: Iterable[Any], split: str, lowercase: bool, total: int = 0) -> None:
        self.blocks, self.split, self.lowercase, self.total = blocks, split, lowercase, total


def read_tokens(
    data: Corpus | Tokens | Any,
    *,
    tokenizer: str | Callable[[str], list[str]] = "words",
    lowercase: bool = True,
    min_count: int = 5,
    max_size: int | None = None,
    phrases: int = 0,
    known: Vocabulary | None = None,
    run: Run = Run(),
) -> Tokens:
    """Counts and encodes `data` on all cores, or opens what an earlier call left in the cache.

    Words below `min_count` vanish from the ids, as in word2vec; empty documents stay, as empty ranges. The words of
    `known` keep their ids however rare they are now (their counts are those of this text) and new words follow them.
    """
    if isinstance(data, Tokens):
        return data
    corpus = data if isinstance(data, Corpus) else Corpus(data)
    native = tokenizer in NATIVE
    split = str(tokenizer) if native else "separated"
    custom = None if native else tokenizer_named(tokenizer, lowercase) if isinstance(tokenizer, str) else tokenizer
    fingerprint = corpus.fingerprint() if native or isinstance(tokenizer, str) else None
    name = None
    if fingerprint:
        name = cache.entry_name(
            FORMAT, fingerprint, str(tokenizer), getattr(custom, "version", kernel.unicode_version()), lowercase,
            min_count, max_size, phrases, vocabulary_hash(known) if known else None,
            (run.memory, run.cores) if run.memory else None,
        )  # fmt: skip
        found = open_entry(name, run)
        if found:
            return found
    source = Source(encode.blocks_of(corpus, split, custom, run), split, lowercase and native, corpus.size)
    return build(source, min_count, max_size, known, run, name)


def build(
    source: Source, min_count: int, max_size: int | None, known: Vocabulary | None, run: Run, name: str | None
) -> Tokens:
    """Reads, merges, writes; the result is a cache entry when it has a name, else a file that disappears."""
    with cache.working_folder() as (folder, cached):
        if name and not cached:
            run.report.note(f"The cache folder {cache.cache_folder()} can't be written; encoded text is not kept.")
        scratch = folder / "scratch"
        scratch.mkdir()
        encoded = encode.Encoded(scratch, source.split, source.lowercase, known, run)
        encoded.read(source.blocks, source.total)
        merged = encoded.merge(min_count, max_size)
        if not merged.tokens or not merged.counts.any():
            raise encode.nothing_left(merged, min_count)
        encode.write_final(encoded.pieces(), folder, run.cores)
        for path in scratch.iterdir():
            path.unlink()
        scratch.rmdir()
        notes = encoded.notes(merged, source.split)
        for note in notes:
            run.report.note(note)
        return keep(folder, merged, min_count, notes, name if cached else None)


def keep(folder: Path, merged: kernel.Merged, min_count: int, notes: list[str], name: str | None) -> Tokens:
    vocabulary = Vocabulary(
        merged.words,
        merged.counts,
        min_count=min_count,
        dropped_types=merged.dropped_types,
        dropped_tokens=merged.dropped_tokens,
    )
    tokens = Tokens(*map_arrays(folder), vocabulary, merged.tokens)
    if name:
        (folder / WORDS).write_bytes("".join(word + "\0" for word in merged.words).encode())
        merged.counts.tofile(folder / COUNTS)
        facts = {
            "min_count": min_count,
            "dropped_types": merged.dropped_types,
            "dropped_tokens": merged.dropped_tokens,
            "raw_tokens": merged.tokens,
            "fingerprint": tokens.fingerprint,
            "notes": notes,
        }
        cache.write_entry(name, folder, facts)
    return tokens  # its maps stay valid when the files are removed


def open_entry(name: str, run: Run) -> Tokens | None:
    """The tokens of a cache entry; None when it isn't there or its content is not what was written."""
    found = cache.find_entry(name)
    if found is None:
        return None
    folder, facts = found
    try:
        words = (folder / WORDS).read_bytes().decode("utf-8").split("\0")[:-1]
        vocabulary = Vocabulary(
            words,
            np.fromfile(folder / COUNTS, dtype=np.int64),
            min_count=facts["min_count"],
            dropped_types=facts["dropped_types"],
            dropped_tokens=facts["dropped_tokens"],
        )
        tokens = Tokens(*map_arrays(folder), vocabulary, facts["raw_tokens"])
        if tokens.fingerprint != facts["fingerprint"]:
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    for note in facts["notes"]:
        run.report.note(note)
    return tokens


def map_arrays(folder: Path) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The ids and document starts of a folder, mapped read-only."""
    ids_path = folder / encode.IDS
    empty = ids_path.stat().st_size == 0  # nothing can be mapped
    ids = np.zeros(0, dtype=np.int32) if empty else np.memmap(ids_path, dtype=np.int32, mode="r")
    return ids, np.memmap(folder / encode.STARTS, dtype=np.int64, mode="r")


def vocabulary_hash(vocabulary: Vocabulary) -> str:
    digest = hashlib.sha256("".join(token + "\0" for token in vocabulary.tokens).encode("utf-8", "surrogatepass"))
    digest.update(vocabulary.counts.tobytes())
    return digest.hexdigest()


def content_hash(ids: NDArray[np.int32], starts: NDArray[np.int64], vocabulary: Vocabulary) -> str:
    """All words and counts, and pieces of the ids and starts spread evenly over them: cheap for any size."""
    digest = hashlib.sha256(vocabulary_hash(vocabulary).encode())
    for values in (ids, starts):
        digest.update(str(len(values)).encode())
        for place in np.linspace(0, max(len(values) - 1024, 0), 64).astype(np.int64) if len(values) > 65536 else [0]:
            digest.update(values[place : place + (1024 if len(values) > 65536 else 65536)].tobytes())
    return digest.hexdigest()
