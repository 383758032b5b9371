"""`Tokens`: a corpus as memory-mapped int32 ids and document starts, the input of training."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.notebook import ShowsRows
from firth.core.report import human
from firth.core.run import Run
from firth.core.storage import saying_where
from firth.data import cache, corpus_encoding, readers
from firth.data import phrases as phrases_of
from firth.data.blocks import Block, Tags
from firth.data.corpus import Corpus, Note
from firth.data.phrases import Passes, Phrase, PhrasePasses
from firth.data.shard_encoding import ShardEncoder
from firth.data.shard_jobs import same_workers
from firth.data.shard_phrases import ShardPasses
from firth.data.streams import IDS, STARTS, Piece, Stream, flat_pieces, remapped_pieces, select_vocabulary, write_final
from firth.data.token_lists import TokenLists, corpus_or_token_lists
from firth.data.tokenizer import NATIVE, Splitting
from firth.data.vocabulary import Vocabulary, automatic_min_count
from firth.kernels import text as kernel

FORMAT = 3  # version of cache entries
WORDS, COUNTS = "words.utf8", "counts.i64"


class Tokens(ShowsRows):
    """An encoded corpus: document d is `ids[starts[d]:starts[d + 1]]`. Words outside the vocabulary are left out.

    `raw_tokens` is the number of tokens in the text, including those left out. `phrases` has the joined phrases of each
    pass. `keys` are the document keys if `read_tokens` was called with keys=True, else numbers from 1. `tags` are the
    tags of the documents, empty if there are none. `splitting` has the tokenizer settings, None if the documents were
    lists of tokens. `fingerprint` is a hash of the content without keys and tags.

    Immutable, so threads can share it.
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
        """Return the number of documents."""
        return len(self.starts) - 1

    @property
    def keys(self) -> Sequence[str]:
        """The keys of the documents."""
        return self._keys or [str(number + 1) for number in range(len(self))]

    def _rows_shown(self) -> tuple[list[str], Iterator[list[str]]]:
        def row(document: int) -> list[str]:
            ids = self.ids[self.starts[document] : self.starts[document + 1]]
            return [self.keys[document], f"{len(ids):,}", " ".join(self.vocabulary.tokens[id] for id in ids[:20])]

        return ["document", "tokens", "text"], map(row, range(len(self)))

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
        """Encode documents that are lists of tokens; `keys` and `tags` have one entry per document.

        The tokens are used unchanged; the tokenizer and lowercase options of a method do not apply.
        """
        tokens = read_tokens(TokenLists(documents), min_count=min_count, max_size=max_size, run=run)
        for name, values in (("keys", keys), ("tags", tags)):
            if values and len(values) != len(tokens):
                raise FirthError(
                    "shape_mismatch",
                    "{option} must have one entry per document; got {got:,} for {documents:,} documents.",
                    option=name,
                    got=len(values),
                    documents=len(tokens),
                )
        tagged = [readers.tags_of([these], "tags") for these in tags]
        return cls(tokens.ids, tokens.starts, tokens.vocabulary, tokens.raw_tokens, (), keys, tagged)


Encoder = corpus_encoding.CorpusEncoder | ShardEncoder


class VocabularySettings(NamedTuple):
    """How the vocabulary is built; see `read_tokens`."""

    min_count: int | None  # None: chosen by the size of the text
    max_size: int | None = None
    phrases: int = 0
    start_vocabulary: Vocabulary | None = None
    start_phrases: Sequence[Sequence[Phrase]] = ()


class Text(NamedTuple):
    """Blocks of text and the tokenizer settings."""

    blocks: Iterable[Block]
    split: str
    lowercase: bool
    corpus: Corpus | None = None  # the source of the blocks
    splitting: Splitting | None = None  # the settings as a method has them
    keys: bool = False  # whether keys and tags are stored


def read_tokens(
    data: Corpus | Tokens | TokenLists | Any,
    *,
    tokenizer: str | Callable[[str], list[str]] = "words",
    lowercase: bool = True,
    min_count: int | None = 5,
    max_size: int | None = None,
    phrases: int = 0,
    start_vocabulary: Vocabulary | None = None,
    start_phrases: Sequence[Sequence[Phrase]] = (),
    keys: bool = False,
    run: Run = Run(),
) -> Tokens:
    """Count and encode `data` on all cores, or open the result from the cache.

    Words that occur less than `min_count` times are dropped, as in word2vec; None selects `automatic_min_count`. Empty
    documents are kept. `phrases` is the number of passes that join phrases: 1 for two words, 2 for up to four.

    The words of `start_vocabulary` keep their ids, however rare they are in `data`, and new words follow them; their
    counts are those of `data`. `start_phrases` are the phrases of each pass that belong to this vocabulary; they are
    joined before new phrases are searched for. `keys` stores the keys and tags of the documents, which needs memory.
    Documents that are lists of tokens are used unchanged.
    """
    settings = VocabularySettings(min_count, max_size, phrases, start_vocabulary, start_phrases)
    if isinstance(data, Tokens):
        return with_vocabulary(data, settings, run)
    corpus = corpus_or_token_lists(data)
    if isinstance(corpus, TokenLists):
        if run.cluster:
            raise FirthError(
                "unsupported_cluster",
                "Workers of a cluster read files, but {source} is in the memory of this process. Write it to a file, "
                "or leave out cluster.",
                source="a list of tokens",
            )
        blocks = corpus_encoding.token_blocks(corpus.documents(keys), corpus_encoding.block_size(run))
        return encode_text(Text(blocks, "separated", lowercase=False), settings, run, name=None)
    splitting = Splitting(tokenizer, lowercase)
    native = isinstance(tokenizer, str) and tokenizer in NATIVE
    split = str(tokenizer) if native else "separated"
    custom = None if native else splitting.split()
    name = None
    stamp = corpus.stamp() if isinstance(tokenizer, str) else None
    if stamp:
        version = getattr(custom, "version", kernel.unicode_version())
        bound = run.memory_bytes or None
        start_identity = [vocabulary_hash(start_vocabulary), start_phrases] if start_vocabulary else None
        name = cache.entry_name(FORMAT, stamp, tokenizer, version, lowercase, settings[:3], start_identity, bound, keys)
        cached_tokens = open_entry(name, run, splitting)
        if cached_tokens is not None:
            return cached_tokens
    blocks = corpus_encoding.blocks_of(corpus, split, custom, run, keys)
    text = Text(blocks, split, lowercase and native, corpus, splitting, keys)
    return encode_text(text, settings, run, name)


def encode_text(text: Text, settings: VocabularySettings, run: Run, name: str | None) -> Tokens:
    """Encode text in two passes; the result becomes the cache entry `name`, or temporary files if it is None."""
    with encoding_folder(name, run) as (folder, cached), same_workers(run):
        if name and not cached:
            run.report.note(*cache.unwritable_note())
        scratch = folder / "scratch"
        with saying_where(folder):
            scratch.mkdir(exist_ok=True)
        joining = settings.phrases or settings.start_phrases
        encoder = first_pass(text, settings, (scratch if joining else folder) / IDS, scratch, run)
        min_count = automatic_min_count(encoder.length) if settings.min_count is None else settings.min_count
        if joining:  # with all words, because dropping rare words first would make their neighbors adjacent
            all_words = encoder.merge(1, None)
            stream = Stream(all_words.words, all_words.counts, encoder.pieces, len(settings.start_vocabulary or ()))
            passes = passes_of(encoder, scratch, run)
            merged, pieces, joined_phrases = join_and_select(stream, settings, min_count, passes, run)
        else:
            all_words = merged = encoder.merge(min_count, settings.max_size)
            pieces, joined_phrases = encoder.pieces(), []
        if not merged.counts.any():
            raise corpus_encoding.no_words_error(merged, min_count)
        write_final(pieces, folder, run.cores)
        shutil.rmtree(scratch)
        notes = encoder.notes(all_words, text.split, text.corpus)
        for note in notes:
            run.report.note(*note)
        vocabulary = vocabulary_of(merged, min_count)
        arrays, splitting = map_arrays(folder), text.splitting
        tokens = Tokens(*arrays, vocabulary, all_words.tokens, joined_phrases, encoder.keys, encoder.tags, splitting)
        if name and cached:
            save_entry(name, folder, tokens, notes)
            with contextlib.suppress(OSError):  # by the name that workers of a cluster see
                tokens.ids, tokens.starts = map_arrays(cache.cache_folder() / name)
        return tokens  # the mappings stay valid after the files are removed


@contextlib.contextmanager
def encoding_folder(name: str | None, run: Run) -> Iterator[tuple[Path, bool]]:
    """Yield a working folder, and whether it is inside the cache."""
    if not run.cluster:
        with cache.working_folder() as working:
            yield working
        return
    with cache.job_folder(name or "") as folder:
        yield folder, True


def first_pass(text: Text, settings: VocabularySettings, path: Path, scratch: Path, run: Run) -> Encoder:
    """Run the first pass over a text, in this process or on a cluster."""
    start_vocabulary = settings.start_vocabulary
    if run.cluster:
        assert text.corpus is not None and text.splitting is not None
        shards = ShardEncoder(text.corpus, text.splitting, text.split, start_vocabulary, text.keys, scratch, run)
        shards.read()
        return shards
    encoder = corpus_encoding.CorpusEncoder(path, scratch, text.split, text.lowercase, start_vocabulary, run)
    encoder.read(text.blocks, text.corpus.size if text.corpus else 0)
    return encoder


def passes_of(encoder: Encoder, scratch: Path, run: Run) -> Passes:
    """Return how phrases are searched and joined in the text of an encoder."""
    if isinstance(encoder, ShardEncoder):
        return ShardPasses(encoder.files, scratch, run)
    return PhrasePasses(run.memory_bytes or phrases_of.MEMORY, scratch)


def with_vocabulary(tokens: Tokens, settings: VocabularySettings, run: Run) -> Tokens:
    """Return the tokens with another vocabulary: fewer words, joined phrases, or the start vocabulary first."""
    old, start_vocabulary = tokens.vocabulary, settings.start_vocabulary
    min_count = automatic_min_count(tokens.raw_tokens) if settings.min_count is None else settings.min_count
    enough = len(old) == 0 or int(old.counts.min()) >= min_count
    if enough and len(old) <= (settings.max_size or len(old)) and not settings.phrases and start_vocabulary is None:
        return tokens
    words = list(start_vocabulary.tokens) if start_vocabulary else []
    words += [token for token in old.tokens if start_vocabulary is None or token not in start_vocabulary]
    ids = {word: id for id, word in enumerate(words)}
    id_map = np.array([ids[token] for token in old.tokens], dtype=np.int32)
    counts = np.zeros(len(words), dtype=np.int64)
    counts[id_map] = old.counts
    stream = Stream(words, counts, flat_pieces(tokens.ids, tokens.starts, id_map), len(start_vocabulary or ()))
    with cache.working_folder() as (folder, _):
        passes = PhrasePasses(run.memory_bytes or phrases_of.MEMORY, folder)
        merged, pieces, new_phrases = join_and_select(stream, settings, min_count, passes, run)
        if not merged.counts.any():
            raise corpus_encoding.no_words_error(merged, min_count)
        write_final(pieces, folder, run.cores)
        vocabulary = vocabulary_of(merged, max(min_count, old.min_count))
        vocabulary.dropped_types += old.dropped_types
        vocabulary.dropped_tokens += old.dropped_tokens
        arrays, phrases, raw = map_arrays(folder), [*tokens.phrases, *new_phrases], tokens.raw_tokens
        return Tokens(*arrays, vocabulary, raw, phrases, tokens._keys, tokens.tags, tokens.splitting)


def join_and_select(
    stream: Stream, settings: VocabularySettings, min_count: int, passes: Passes, run: Run
) -> tuple[kernel.Merged, Iterator[Piece], list[list[Phrase]]]:
    """Join phrases, then select the vocabulary."""
    joined_phrases = [list(phrases) for phrases in settings.start_phrases]
    for number, phrases in enumerate(joined_phrases):
        stream = passes.join(stream, phrases, f"joined-{number}")
    run.report.begin("joining phrases", settings.phrases, "passes")
    for number in range(settings.phrases):
        min_pair_count = max(min_count, phrases_of.MIN_COUNT)
        phrases = phrases_of.stream_phrases(stream, "npmi", None, min_pair_count, passes)
        if passes.pruned:
            memory = run.memory_bytes or phrases_of.MEMORY
            text = f"Counting word pairs exceeded {human(memory)}B: rare pairs were dropped, phrases may be missing."
            run.report.note(text, "memory_limit")
        if not phrases:
            break
        joined_phrases.append(phrases)
        stream = passes.join(stream, phrases, f"phrases-{number}")
        run.report.step(number + 1)
    run.report.end()
    merged = select_vocabulary(stream, min_count, settings.max_size)
    return merged, remapped_pieces(stream, merged.maps[0]), joined_phrases


def vocabulary_of(merged: kernel.Merged, min_count: int) -> Vocabulary:
    """Return the vocabulary of merged word tables."""
    return Vocabulary(
        merged.words,
        merged.counts,
        min_count=min_count,
        dropped_types=merged.dropped_types,
        dropped_tokens=merged.dropped_tokens,
    )


def save_entry(name: str, folder: Path, tokens: Tokens, notes: list[Note]) -> None:
    """Turn the working folder into a cache entry."""
    vocabulary = tokens.vocabulary
    with saying_where(folder):
        (folder / WORDS).write_bytes(encoded_words(vocabulary))
        (folder / COUNTS).write_bytes(vocabulary.counts.tobytes())  # `tofile` gives no reason when it fails
    metadata = {
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
        cache.write_entry(name, folder, metadata)


def open_entry(name: str, run: Run, splitting: Splitting | None = None) -> Tokens | None:
    """Return the tokens of a cache entry; None if it does not exist or is damaged."""
    entry = cache.find_entry(name)
    if entry is None:
        return None
    folder, metadata = entry
    try:
        words = (folder / WORDS).read_bytes().decode("utf-8").split("\0")[:-1]
        names = ("min_count", "dropped_types", "dropped_tokens")
        counts = np.fromfile(folder / COUNTS, dtype=np.int64)
        vocabulary = Vocabulary(words, counts, **{name: metadata[name] for name in names})
        phrases = [[Phrase(*phrase) for phrase in entry] for entry in metadata["phrases"]]
        arrays, raw = map_arrays(folder), metadata["raw_tokens"]
        tokens = Tokens(*arrays, vocabulary, raw, phrases, metadata["keys"], metadata["tags"], splitting)
        is_valid = tokens.fingerprint == metadata["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError):
        is_valid = False
    if not is_valid:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    for note in metadata["notes"]:  # (text, code); entries of earlier versions have the text only
        run.report.note(*([note] if isinstance(note, str) else note))
    return tokens


def map_arrays(folder: Path) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Memory-map the ids and document starts in a folder, read-only."""
    ids_path = folder / IDS
    empty = ids_path.stat().st_size == 0  # an empty file cannot be mapped
    ids = np.zeros(0, dtype=np.int32) if empty else np.memmap(ids_path, dtype=np.int32, mode="r")
    return ids, np.memmap(folder / STARTS, dtype=np.int64, mode="r")


def encoded_words(vocabulary: Vocabulary) -> bytes:
    """Return the words as NUL-terminated UTF-8."""
    return "\0".join([*vocabulary.tokens, ""]).encode("utf-8", "surrogatepass")


def vocabulary_hash(vocabulary: Vocabulary) -> str:
    """Return a hash of the words and counts."""
    digest = hashlib.sha256(encoded_words(vocabulary))
    digest.update(vocabulary.counts.tobytes())
    return digest.hexdigest()


def content_hash(ids: NDArray[np.int32], starts: NDArray[np.int64], vocabulary: Vocabulary) -> str:
    """Return a hash of all words and counts and of samples spread evenly over ids and starts, fast for any size."""
    digest = hashlib.sha256(vocabulary_hash(vocabulary).encode())
    for values in (ids, starts):
        digest.update(str(len(values)).encode())
        size = min(len(values), 1024)
        for position in np.linspace(0, len(values) - size, 64).astype(np.int64):  # everything, up to 64 × 1024
            digest.update(values[position : position + size].tobytes())
    return digest.hexdigest()
