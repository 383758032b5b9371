"""Adjacent words, counted and merged into phrases: the native classes (cpp/pairs.cpp), and the same in plain Python.

Streams of ids have DOCUMENT_END (−1) after each document. A word whose map is −1 was dropped from the vocabulary; words
on either side of it are not merged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from firth.kernels._native import PairCounter, PairJoiner

__all__ = ["PairCounter", "PairJoiner", "count_pairs_twin", "join_pairs_twin"]


def count_pairs_twin(ids: Sequence[int], keep: Sequence[bool]) -> Counter[tuple[int, int]]:
    """Count the adjacent pairs of words marked in `keep`, within documents."""
    return Counter((a, b) for a, b in pairwise(ids) if a >= 0 and b >= 0 and keep[a] and keep[b])


def join_pairs_twin(ids: Sequence[int], joined: Mapping[tuple[int, int], int]) -> list[int]:
    """Replace pairs by their merged id, greedily from the left."""
    out: list[int] = []
    i = 0
    while i < len(ids):
        pair = tuple(ids[i : i + 2])
        phrase = joined.get(pair) if len(pair) == 2 else None
        out.append(ids[i] if phrase is None else phrase)
        i += 1 if phrase is None else 2
    return out
