"""The pieces of a corpus that subwords are learned from, counted on all cores in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from firth.core.errors import FirthError
from firth.core.run import Run
from firth.data.blocks import Block
from firth.data.corpus import Corpus, not_utf8
from firth.data.encode import blocks_of
from firth.kernels import text as kernel
from firth.kernels.bpe import Words


class Pieces(NamedTuple):
    """Different pieces with counts, the most frequent first; how many were met in all; what the user should know."""

    words: Words
    total: int
    notes: list[str]


def count_pieces(corpus: Corpus, split: str, lowercase: bool, run: Run) -> Pieces:
    """`split` is "gpt2" or "bert" (see cpp/pieces.h); Run.memory is kept by dropping the rarest pieces."""
    # Under a bound, one table: see data/encode.py.
    slots = 1 if run.memory_bytes else run.cores
    encoder = kernel.TextEncoder(split, lowercase, slots, corpus.unit)
    pruned = read_blocks(encoder, slots, blocks_of(corpus, split, None, run, keys=False), corpus.size, run)
    parts = encoder.merge(1, 0)
    if not parts["tokens"]:
        raise FirthError(
            "empty_data", "The corpus has no text to learn a tokenizer from: it is empty or has only whitespace."
        )
    notes = []
    invalid, _ = encoder.statistics()
    if invalid:
        notes.append(not_utf8(invalid, corpus))
    if pruned:
        notes.append(
            f"Counting outgrew memory={run.memory} {pruned} times: the rarest words were dropped on the way "
            f"({parts['dropped_tokens']:,} of {parts['tokens']:,} are left out), and counts may be low."
        )
    return Pieces(Words(parts["words"], parts["counts"]), parts["tokens"], notes)


def read_blocks(encoder: kernel.TextEncoder, slots: int, blocks: Iterable[Block], total: int, run: Run) -> int:
    """Counts block after block, the next one being read meanwhile; how often rare pieces were dropped."""
    most_bytes = max(run.memory_bytes // 4, 1 << 19)  # merging needs as much again, and learning as both
    pruned = 0
    run.report.begin("reading", total, "B")
    try:
        with ThreadPoolExecutor(1) as worker:
            under_way: Future[None] | None = None
            for block in blocks:
                if under_way is not None:
                    under_way.result()
                if run.memory_bytes and sum(map(encoder.bytes, range(slots))) > most_bytes:
                    for slot in range(slots):
                        encoder.prune(slot)
                    pruned += 1
                under_way = worker.submit(encoder.encode, kernel.as_bytes(block.data), block.ends)
                run.report.step(block.done)
            if under_way is not None:
                under_way.result()
    finally:
        run.report.end()
    return pruned
