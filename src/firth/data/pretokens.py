"""Counts the pre-tokens of a corpus, from which subword vocabularies are trained, in one pass on all cores."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from firth.core.errors import FirthError
from firth.core.run import Run
from firth.data.blocks import Block
from firth.data.corpus import Corpus, Note, invalid_utf8_note
from firth.data.corpus_encoding import blocks_of
from firth.data.shard_encoding import count_shards
from firth.kernels import text as kernel
from firth.kernels.bpe import Words


class PretokenCounts(NamedTuple):
    """Distinct pre-tokens with their counts, most frequent first; the total count; and notes for the user."""

    words: Words
    total: int
    notes: list[Note]


def count_pretokens(corpus: Corpus, split: str, lowercase: bool, run: Run) -> PretokenCounts:
    """Count the pre-tokens of a corpus; `split` is "gpt2" or "bert" (see cpp/pieces.h).

    If Run.memory is set, the rarest pre-tokens are dropped to stay within it.
    """
    pruned = 0
    if run.cluster:
        encoder, invalid = count_shards(corpus, split, lowercase, run)
    else:
        # With a memory limit there is a single table, as in data/corpus_encoding.py.
        slots = 1 if run.memory_bytes else run.cores
        encoder = kernel.TextEncoder(split, lowercase, slots, corpus.unit)
        pruned = read_blocks(encoder, slots, blocks_of(corpus, split, None, run, keys=False), corpus.size, run)
        invalid, _ = encoder.statistics()
    parts = encoder.merge(1, 0)
    if not parts["tokens"]:
        raise FirthError(
            "empty_data", "The corpus has no text to train a tokenizer on: it is empty or has only white space."
        )
    notes = []
    if invalid:
        notes.append(Note(invalid_utf8_note(invalid, corpus), "invalid_utf8"))
    if pruned:
        text = (
            f"Counting exceeded memory={run.memory} {pruned} times. The rarest words were dropped each time "
            f"({parts['dropped_tokens']:,} of {parts['tokens']:,} are left out), and counts may be too low."
        )
        notes.append(Note(text, "memory_limit"))
    return PretokenCounts(Words(parts["words"], parts["counts"]), parts["tokens"], notes)


def read_blocks(encoder: kernel.TextEncoder, slots: int, blocks: Iterable[Block], total: int, run: Run) -> int:
    """Count the pre-tokens block by block; return the number of times rare ones were dropped.

    The next block is read while the current one is counted.
    """
    most_bytes = max(run.memory_bytes // 4, 1 << 19)  # merging needs as much again, and training as much as both
    pruned = 0
    run.report.begin("reading", total, "B")
    try:
        with ThreadPoolExecutor(1) as worker:
            pending: Future[None] | None = None
            for block in blocks:
                if pending is not None:
                    pending.result()
                if run.memory_bytes and sum(map(encoder.bytes, range(slots))) > most_bytes:
                    for slot in range(slots):
                        encoder.prune(slot)
                    pruned += 1
                pending = worker.submit(encoder.encode, kernel.as_bytes(block.data), block.ends)
                run.report.step(block.done)
            if pending is not None:
                pending.result()
    finally:
        run.report.end()
    return pruned
