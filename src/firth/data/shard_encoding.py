"""Encodes a corpus on a cluster, with the result of `corpus_encoding` to the byte.

A worker writes the words of its shard, their counts, and its text as ids of these words. Merging the tables gives the
vocabulary, whose order (count, then bytes) does not depend on the shards, and a map from the ids of each shard to it.
"""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from firth.core.errors import FirthError
from firth.core.remote import AnyPath
from firth.core.report import Nothing
from firth.core.run import Run
from firth.data import cache, corpus_encoding
from firth.data.blocks import Tags
from firth.data.corpus import Corpus, FileSource, Note
from firth.data.corpus_shards import FilePart, corpus_settings, document_keys, numbered, shard_corpus, shards_of
from firth.data.shard_jobs import read_array, refuse_memory, run_shards, write_array
from firth.data.streams import PIECE, Ids, Piece
from firth.data.tokenizer import TOKENIZERS, Splitting
from firth.data.vocabulary import Vocabulary
from firth.kernels import text as kernel
from firth.work.job import Function, Job
from firth.work.worker import Counts

ONE_THREAD = Run(threads=1, report=Nothing())


# ---- in a worker ----


def encode_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> Counts:
    """Write a shard as ids of its own words; a job's function."""
    corpus, name = shard_corpus(common["corpus"], parameters["parts"]), parameters["name"]
    split, keys = common["split"], common["keys"]
    custom = Splitting(imported(common["tokenizer"]), common["lowercase"]).split() if split == "separated" else None
    lowercase = common["lowercase"] and custom is None
    encoder = corpus_encoding.CorpusEncoder(folder / f"{name}.ids", folder, split, lowercase, None, ONE_THREAD)
    encoder.read(corpus_encoding.blocks_of(corpus, split, custom, ONE_THREAD, keys), 0)
    write_words(encoder.encoder, name, folder)
    if keys:
        write_keys(corpus, parameters["parts"], encoder, folder / f"{name}.keys")
    invalid, unsegmented = encoder.encoder.statistics()
    return {"ids": encoder.length, "invalid": invalid + corpus.replaced, "unsegmented": unsegmented}


def write_words(encoder: kernel.TextEncoder, name: str, folder: Path) -> None:
    """Write the words of an encoder with one slot in the order of its ids, and their counts."""
    words, counts = encoder.words(0)
    (folder / f"{name}.words").write_bytes(words)
    (folder / f"{name}.counts").write_bytes(counts.tobytes())


def write_keys(
    corpus: Corpus, parts: Sequence[Sequence[Any]], encoder: corpus_encoding.CorpusEncoder, path: Path
) -> None:
    """Write the number of documents of each file, their keys if they have a key column, and their tags."""
    documents: Counter[int] = Counter()
    keys: dict[int, list[str]] = {}
    begin = 0
    for (number, *_), source in zip(parts, corpus.sources, strict=True):
        assert isinstance(source, FilePart)
        end = begin + source.documents
        documents[number] += source.documents
        if not numbered(source, corpus):
            keys.setdefault(number, []).extend(encoder.keys[begin:end])
        begin = end
    tags = encoder.tags if any(encoder.tags) else []
    path.write_text(json.dumps([list(documents.items()), list(keys.items()), len(encoder.keys), tags]))


def imported(name: str) -> str | Callable[[str], list[str]]:
    """Return the tokenizer that `tokenizer_name` names."""
    module, _, path = name.partition(":")
    if not path:
        return name
    named = importlib.import_module(module)
    for part in path.split("."):
        named = getattr(named, part)
    return named  # type: ignore[return-value]


# ---- in the driver ----


class ShardFile(NamedTuple):
    """The ids of a shard, with document ends, and the file of their map to words."""

    name: str
    ids: Path
    map: Path | None  # None: they are ids of words already

    def pieces(self, words: int) -> Iterator[Piece]:
        """Yield the ids in chunks."""
        map = np.arange(words, dtype=np.int32) if self.map is None else read_array(self.map, np.int32)
        ids = read_array(self.ids, np.int32)
        for begin in range(0, len(ids), PIECE):
            yield Piece(ids[begin : begin + PIECE], map)


class ShardEncoder:
    """The first pass over a corpus on a cluster; used like `corpus_encoding.CorpusEncoder`."""

    def __init__(
        self,
        corpus: Corpus,
        splitting: Splitting,
        split: str,
        start_vocabulary: Vocabulary | None,
        keys: bool,
        folder: Path,
        run: Run,
    ) -> None:
        refuse_memory(run)
        self.corpus, self.folder, self.run = corpus, folder, run
        self.common = {
            "corpus": corpus_settings(corpus),
            "stamp": corpus.stamp(),
            "tokenizer": tokenizer_name(splitting.tokenizer) if split == "separated" else "",
            "lowercase": splitting.lowercase,
            "split": split,
            "keys": keys,
        }
        self.function: Function = encode_shard
        self.shards = shards_of(corpus)
        self.tables = ShardTables(split, start_vocabulary, run)
        self.statistics: Counter[str] = Counter()
        self.files: list[ShardFile] = []
        self.keys: list[str] = []
        self.tags: list[Tags] = []

    @property
    def length(self) -> int:
        """Number of tokens and document ends."""
        return self.statistics["ids"]

    def read(self) -> None:
        """Run the first pass, and merge the words of the shards."""
        job = Job("reading", "B", self.function, self.common, self.shards, self.folder, paths_of(self.corpus))
        for counts in run_shards(job, self.run):
            self.statistics.update(counts)
        self.tables.read(self.folder, [shard.name for shard in self.shards])
        if self.common["keys"]:
            self.read_keys()

    def merge(self, min_count: int, max_size: int | None) -> kernel.Merged:
        """Merge the words into the vocabulary, and write the map of each shard to it."""
        merged = kernel.merge(self.tables.encoder, min_count, max_size)
        for number, shard in enumerate(self.shards):
            ids = read_array(self.folder / f"{shard.name}.merged", np.int32)
            map = merged.maps[number % self.tables.slots][ids]
            path = write_array(self.folder / f"{shard.name}.final", map)
            self.files.append(ShardFile(shard.name, self.folder / f"{shard.name}.ids", path))
        return merged

    def pieces(self) -> Iterator[Piece]:
        """Yield the ids in text order with their maps to the vocabulary. Call `merge` first."""
        for file in self.files:
            yield from file.pieces(0)

    def read_keys(self) -> None:
        """Read the keys and tags of all documents."""
        documents: Counter[int] = Counter()
        keys: dict[int, list[str]] = {}
        any_tags = False
        for shard in self.shards:
            of_files, with_keys, total, tags = json.loads((self.folder / f"{shard.name}.keys").read_bytes())
            documents.update(dict(of_files))
            for number, file_keys in with_keys:
                keys.setdefault(number, []).extend(file_keys)
            any_tags = any_tags or bool(tags)
            self.tags += [tuple(each) for each in tags] or [()] * total
        self.keys = document_keys(self.corpus, [documents[number] for number in range(len(self.corpus.sources))], keys)

    def notes(self, merged: kernel.Merged, split: str, corpus: Corpus | None) -> list[Note]:
        """Return notes about invalid bytes and unsegmented scripts."""
        invalid, unsegmented = self.statistics["invalid"], self.statistics["unsegmented"]
        return corpus_encoding.encoding_notes(invalid, unsegmented, merged.tokens, split, corpus)


class ShardTables:
    """Merges the words of shards on all cores; the shards are distributed over the slots of an encoder."""

    def __init__(self, split: str, start_vocabulary: Vocabulary | None, run: Run) -> None:
        self.slots = run.cores
        self.encoder = kernel.TextEncoder(split, False, self.slots)
        if start_vocabulary:
            self.encoder.seed(corpus_encoding.seed_words(start_vocabulary))

    def read(self, folder: Path, names: Sequence[str]) -> None:
        """Add the words of all shards; write the ids that they get."""

        def add(slot: int) -> None:
            for name in names[slot :: self.slots]:
                words = (folder / f"{name}.words").read_bytes()
                ids: Ids = self.encoder.add(slot, words, np.fromfile(folder / f"{name}.counts", dtype=np.int64))
                write_array(folder / f"{name}.merged", ids)

        with ThreadPoolExecutor(self.slots) as pool:
            list(pool.map(add, range(self.slots)))


def count_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> Counts:
    """Count the pre-tokens of a shard; a job's function."""
    corpus = shard_corpus(common["corpus"], parameters["parts"])
    encoder = kernel.TextEncoder(common["split"], common["lowercase"], 1, corpus.unit)
    for block in corpus_encoding.blocks_of(corpus, common["split"], None, ONE_THREAD, keys=False):
        encoder.encode(kernel.as_bytes(block.data), block.ends)
    write_words(encoder, parameters["name"], folder)
    return {"invalid": encoder.statistics()[0]}


def count_shards(corpus: Corpus, split: str, lowercase: bool, run: Run) -> tuple[kernel.TextEncoder, int]:
    """Count the pre-tokens of a corpus on a cluster; return an encoder with them, and the number of invalid bytes."""
    refuse_memory(run)
    settings = {"corpus": corpus_settings(corpus), "split": split, "lowercase": lowercase}
    name = cache.entry_name("pretokens", corpus.stamp(), settings)
    shards, tables = shards_of(corpus), ShardTables(split, None, run)
    with cache.job_folder(name) as folder:
        counts = run_shards(Job("reading", "B", count_shard, settings, shards, folder, paths_of(corpus)), run)
        tables.read(folder, [shard.name for shard in shards])
    return tables.encoder, sum(each["invalid"] for each in counts)


def paths_of(corpus: Corpus) -> list[AnyPath]:
    """Return the files of a corpus."""
    return [source.path.absolute() for source in corpus.sources if isinstance(source, FileSource)]


def tokenizer_name(tokenizer: str | Callable[[str], list[str]]) -> str:
    """Return the name by which workers import a tokenizer."""
    if isinstance(tokenizer, str) and tokenizer in TOKENIZERS:
        return tokenizer
    name = f"{getattr(tokenizer, '__module__', '')}:{getattr(tokenizer, '__qualname__', '')}"
    try:
        named = None if name.startswith("__main__:") else imported(name)
    except (ImportError, AttributeError, ValueError):
        named = None
    if named is not tokenizer:
        raise FirthError(
            "unsupported_cluster",
            "Workers of a cluster import the tokenizer by its name, but {name} cannot be imported. Use a function of a "
            "module that workers have, not of a script or notebook, or leave out cluster.",
            name=name.replace(":", "."),
        )
    return name
