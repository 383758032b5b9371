"""`Tokens`: a corpus as int32 ids and document starts, memory-mapped; the input of training."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.report import human
from firth.core.run import Run
from firth.core.storage import saying_where
from firth.data import cache, encode, readers
from firth.data import phrases as phrases_of
from firth.data.blocks import Block, Tags
from firth.data.corpus import Corpus
from firth.data.phrases import Phrase
from firth.data.streams import IDS, STARTS, Piece, Stream, choose, flat_pieces, renamed, write_final
from firth.data.token_lists import TokenLists, opened
from firth.data.tokenizer import NATIVE, Splitting
from firth.data.vocabulary import Vocabulary, automatic_min_count
from firth.kernels import text as kernel

FORMAT = 3  # of cache entries
WORDS, COUNTS = "words.utf8", "counts.i64"


class Tokens:
    """`ids[starts[d]:starts[d + 1]]` is document d; words that the vocabulary lacks are left out.

    `raw_tokens` is how many tokens were met, those left out among them. `phrases` are those that were joined, a list
    for each pass. `keys` names the documents: as the corpus does where `read_tokens` was asked for keys, else
    from 1 on; `tags` are theirs, empty where no document has any. `splitting` says how the texts were split, None where
    the documents were lists of tokens. `fingerprint` tells whether two are the same, apart from keys and tags.
    Immutable: threads can share it.
    """

    def __init__(
        self,
        ids: NDArray[np.int32],
        starts: NDArray[np.int64],
        vocabulary: Vocabulary,
        raw_tokens: int,
        phrases: Sequence[Sequence[Phrase]] = (),
        keys: Sequence[str] = (),
        tags: Sequence[Tags] = (),
        splitting: Splitting | None = None,
    ) -> None:
        self.ids, self.starts, self.vocabulary, self.raw_tokens = ids, starts, vocabulary, raw_tokens
        self.phrases, self.splitting = phrases, splitting
        self._keys = keys
        self.tags: Sequence[Tags] = [tuple(tagged) for tagged in tags] if any(tags) else ()
        self.fingerprint = content_hash(ids, starts, vocabulary)

    def __len__(self) -> int:
        """How many documents."""
        return len(self.starts) - 1

    @property
    def keys(self) -> Sequence[str]:
        return self._keys or [str(number + 1) for number in range(len(self))]

    def __repr__(self) -> str:
        return f"Tokens({len(self.ids):,} ids in {len(self):,} documents, {len(self.vocabulary):,} words)"

    @classmethod
    def from_lists(
        cls,
        documents: Iterable[Sequence[str]],
        min_count: int = 1,
        max_size: int | None = None,
        run: Run = Run(),
        keys: Sequence[str] = (),
        tags: Sequence[Sequence[str]] = (),
    ) -> Tokens:
        """From documents that are lists of tokens already; `keys` and `tags` as `Tokens` has them, one entry each.
        Tokens are taken as they are, whatever a method's tokenizer and lowercase say."""
        tokens = read_tokens(TokenLists(documents), min_count=min_count, max_size=max_size, run=run)
        for name, given in (("keys", keys), ("tags", tags)):
            if given and len(given) != len(tokens):
                raise FirthError(
                    "shape_mismatch",
                    "{name} must be one entry a document; got {got:,} for {n_tokens:,}.",
                    name=name,
                    got=len(given),
                    n_tokens=len(tokens),
                )
        tagged = [readers.tags_of([these], "tags") for these in tags]
        return cls(tokens.ids, tokens.starts, tokens.vocabulary, tokens.raw_tokens, (), keys, tagged)


class Wanted(NamedTuple):
    """What the vocabulary is to be."""

    min_count: int | None  # None: by the size of the text
    max_size: int | None = None
    phrases: int = 0
    known: Vocabulary | None = None
    joined: Sequence[Sequence[Phrase]] = ()


class Text(NamedTuple):
    """Blocks of text and how to split them."""

    blocks: Iterable[Block]
    split: str
    lowercase: bool
    corpus: Corpus | None = None  # where it comes from
    splitting: Splitting | None = None  # as a method says it


def read_tokens(
    data: Corpus | Tokens | TokenLists | Any,
    *,
    tokenizer: str | Callable[[str], list[str]] = "words",
    lowercase: bool = True,
    min_count: int | None = 5,
    max_size: int | None = None,
    phrases: int = 0,
    known: Vocabulary | None = None,
    joined: Sequence[Sequence[Phrase]] = (),
    keys: bool = False,
    run: Run = Run(),
) -> Tokens:
    """Counts and encodes `data` on all cores, or opens what an earlier call left in the cache. Documents that are lists
    of tokens are taken as they are.

    Words below `min_count` vanish from the ids, as in word2vec (None: `automatic_min_count` of the text); empty
    documents stay, as empty ranges. `phrases` is
    how often neighbours are joined: 1 for phrases of two words, 2 for up to four. The words of `known` keep their
    ids however rare they are now (their counts are those of this text) and new words follow them; `joined` are the
    phrases that go with them, a list for each pass, joined before others are looked for. `keys` keeps the documents'
    keys and tags, which take memory.
    """
    wanted = Wanted(min_count, max_size, phrases, known, joined)
    if isinstance(data, Tokens):
        return fit_to(data, wanted, run)
    corpus = opened(data)
    if isinstance(corpus, TokenLists):
        blocks = encode.token_blocks(corpus.documents(keys), encode.block_size(run))
        return encode_text(Text(blocks, "separated", lowercase=False), wanted, run, name=None)
    splitting = Splitting(tokenizer, lowercase)
    native = isinstance(tokenizer, str) and tokenizer in NATIVE
    split = str(tokenizer) if native else "separated"
    custom = None if native else splitting.split()
    name = None
    stamp = corpus.stamp() if isinstance(tokenizer, str) else None
    if stamp:
        version = getattr(custom, "version", kernel.unicode_version())
        bound = run.memory_bytes or None
        known_words = [vocabulary_hash(known), joined] if known else None
        name = cache.entry_name(FORMAT, stamp, tokenizer, version, lowercase, wanted[:3], known_words, bound, keys)
        found = open_entry(name, run, splitting)
        if found is not None:
            return found
    text = Text(encode.blocks_of(corpus, split, custom, run, keys), split, lowercase and native, corpus, splitting)
    return encode_text(text, wanted, run, name)


def encode_text(text: Text, wanted: Wanted, run: Run, name: str | None) -> Tokens:
    """Reads, merges, writes; the result is a cache entry when it has a name, else files that disappear."""
    with cache.working_folder() as (folder, cached):
        if name and not cached:
            run.report.note(f"The cache folder {cache.cache_folder()} can't be written; encoded text is not kept.")
        scratch = folder / "scratch"
        with saying_where(folder):
            scratch.mkdir()
        joining = wanted.phrases or wanted.joined
        provisional = (scratch if joining else folder) / IDS
        encoded = encode.Encoded(provisional, scratch, text.split, text.lowercase, wanted.known, run)
        encoded.read(text.blocks, text.corpus.size if text.corpus else 0)
        least = automatic_min_count(encoded.length) if wanted.min_count is None else wanted.min_count
        if joining:  # over every word: dropping some first would make strangers neighbours
            met = encoded.merge(1, None)
            stream = Stream(met.words, met.counts, encoded.pieces, len(wanted.known or ()))
            merged, pieces, found = choose_words(stream, wanted, least, scratch, run)
        else:
            met = merged = encoded.merge(least, wanted.max_size)
            pieces, found = encoded.pieces(), []
        if not merged.counts.any():
            raise encode.nothing_left(merged, least)
        write_final(pieces, folder, run.cores)
        shutil.rmtree(scratch)
        notes = encoded.notes(met, text.split, text.corpus)
        for note in notes:
            run.report.note(note)
        vocabulary = vocabulary_of(merged, least)
        arrays, splitting = map_arrays(folder), text.splitting
        tokens = Tokens(*arrays, vocabulary, met.tokens, found, encoded.keys, encoded.tags, splitting)
        if name and cached:
            keep_entry(name, folder, tokens, notes)
        return tokens  # its maps stay valid when the files are removed


def fit_to(tokens: Tokens, wanted: Wanted, run: Run) -> Tokens:
    """Tokens with another vocabulary: fewer words, phrases joined, or the words of `known` first."""
    old, known = tokens.vocabulary, wanted.known
    least = automatic_min_count(tokens.raw_tokens) if wanted.min_count is None else wanted.min_count
    enough = len(old) == 0 or int(old.counts.min()) >= least
    if enough and len(old) <= (wanted.max_size or len(old)) and not wanted.phrases and known is None:
        return tokens
    words = list(known.tokens) if known else []
    words += [token for token in old.tokens if known is None or token not in known]
    ids = {word: id for id, word in enumerate(words)}
    map = np.array([ids[token] for token in old.tokens], dtype=np.int32)
    counts = np.zeros(len(words), dtype=np.int64)
    counts[map] = old.counts
    stream = Stream(words, counts, flat_pieces(tokens.ids, tokens.starts, map), len(known or ()))
    with cache.working_folder() as (folder, _):
        merged, pieces, found = choose_words(stream, wanted, least, folder, run)
        if not merged.counts.any():
            raise encode.nothing_left(merged, least)
        write_final(pieces, folder, run.cores)
        vocabulary = vocabulary_of(merged, max(least, old.min_count))
        vocabulary.dropped_types += old.dropped_types
        vocabulary.dropped_tokens += old.dropped_tokens
        arrays, phrases, raw = map_arrays(folder), [*tokens.phrases, *found], tokens.raw_tokens
        return Tokens(*arrays, vocabulary, raw, phrases, tokens._keys, tokens.tags, tokens.splitting)


def choose_words(
    stream: Stream, wanted: Wanted, min_count: int, scratch: Path, run: Run
) -> tuple[kernel.Merged, Iterator[Piece], list[list[Phrase]]]:
    """Joins phrases where asked, then keeps the words that are wanted."""
    found = [list(phrases) for phrases in wanted.joined]
    for number, phrases in enumerate(found):
        stream = phrases_of.join_stream(stream, phrases, scratch / f"joined-{number}.i32")
    run.report.begin("joining phrases", wanted.phrases, "passes")
    for number in range(wanted.phrases):
        memory = run.memory_bytes or phrases_of.MEMORY
        least = max(min_count, phrases_of.MIN_COUNT)
        phrases, cut = phrases_of.stream_phrases(stream, "npmi", None, least, memory)
        if cut:
            run.report.note(f"Pairs of words outgrew {human(memory)}B: rare ones were dropped, phrases may be missing.")
        if not phrases:
            break
        found.append(phrases)
        stream = phrases_of.join_stream(stream, phrases, scratch / f"phrases-{number}.i32")
        run.report.step(number + 1)
    run.report.end()
    merged = choose(stream, min_count, wanted.max_size)
    return merged, renamed(stream, merged.maps[0]), found


def vocabulary_of(merged: kernel.Merged, min_count: int) -> Vocabulary:
    return Vocabulary(
        merged.words,
        merged.counts,
        min_count=min_count,
        dropped_types=merged.dropped_types,
        dropped_tokens=merged.dropped_tokens,
    )


def keep_entry(name: str, folder: Path, tokens: Tokens, notes: list[str]) -> None:
    """Makes the working folder a cache entry."""
    vocabulary = tokens.vocabulary
    with saying_where(folder):
        (folder / WORDS).write_bytes(joined_words(vocabulary))
        (folder / COUNTS).write_bytes(vocabulary.counts.tobytes())  # (`tofile` does not say why it fails)
    facts = {
        "min_count": vocabulary.min_count,
        "dropped_types": vocabulary.dropped_types,
        "dropped_tokens": vocabulary.dropped_tokens,
        "raw_tokens": tokens.raw_tokens,
        "fingerprint": tokens.fingerprint,
        "phrases": tokens.phrases,
        "keys": tokens._keys,
        "tags": tokens.tags,
        "notes": notes,
    }
    with saying_where(cache.cache_folder()):
        cache.write_entry(name, folder, facts)


def open_entry(name: str, run: Run, splitting: Splitting | None = None) -> Tokens | None:
    """The tokens of a cache entry; None when it isn't there or its content is not what was written."""
    found = cache.find_entry(name)
    if found is None:
        return None
    folder, facts = found
    try:
        words = (folder / WORDS).read_bytes().decode("utf-8").split("\0")[:-1]
        names = ("min_count", "dropped_types", "dropped_tokens")
        counts = np.fromfile(folder / COUNTS, dtype=np.int64)
        vocabulary = Vocabulary(words, counts, **{fact: facts[fact] for fact in names})
        phrases = [[Phrase(*phrase) for phrase in found] for found in facts["phrases"]]
        arrays, raw = map_arrays(folder), facts["raw_tokens"]
        tokens = Tokens(*arrays, vocabulary, raw, phrases, facts["keys"], facts["tags"], splitting)
        whole = tokens.fingerprint == facts["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    for note in facts["notes"]:
        run.report.note(note)
    return tokens


def map_arrays(folder: Path) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The ids and document starts of a folder, mapped read-only."""
    ids_path = folder / IDS
    empty = ids_path.stat().st_size == 0  # nothing can be mapped
    ids = np.zeros(0, dtype=np.int32) if empty else np.memmap(ids_path, dtype=np.int32, mode="r")
    return ids, np.memmap(folder / STARTS, dtype=np.int64, mode="r")


def joined_words(vocabulary: Vocabulary) -> bytes:
    return "\0".join([*vocabulary.tokens, ""]).encode("utf-8", "surrogatepass")


def vocabulary_hash(vocabulary: Vocabulary) -> str:
    digest = hashlib.sha256(joined_words(vocabulary))
    digest.update(vocabulary.counts.tobytes())
    return digest.hexdigest()


def content_hash(ids: NDArray[np.int32], starts: NDArray[np.int64], vocabulary: Vocabulary) -> str:
    """All words and counts, and pieces of the ids and starts spread evenly over them: cheap for any size."""
    digest = hashlib.sha256(vocabulary_hash(vocabulary).encode())
    for values in (ids, starts):
        digest.update(str(len(values)).encode())
        size = min(len(values), 1024)
        for place in np.linspace(0, len(values) - size, 64).astype(np.int64):  # all of it, up to 64 × 1024
            digest.update(values[place : place + size].tobytes())
    return digest.hexdigest()
