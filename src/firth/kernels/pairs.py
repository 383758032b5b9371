"""Neighbouring words, counted and joined: the native classes of cpp/pairs.cpp, and the same in plain Python.

Streams of ids have DOCUMENT_END (−1) after each document; a word whose map is −1 was dropped, and nothing is joined
over its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from firth.kernels._native import PairCounter, PairJoiner

__all__ = ["PairCounter", "PairJoiner", "count_pairs_twin", "join_pairs_twin"]


def count_pairs_twin(ids: Sequence[int], keep: Sequence[bool]) -> Counter[tuple[int, int]]:
    """How often each pair of kept words stands side by side in a document."""
    return Counter((a, b) for a, b in pairwise(ids) if a >= 0 and b >= 0 and keep[a] and keep[b])


def join_pairs_twin(ids: Sequence[int], joined: Mapping[tuple[int, int], int]) -> list[int]:
    """Pairs become one id, greedily from the left."""
    out: list[int] = []
    place = 0
    while place < len(ids):
        pair = tuple(ids[place : place + 2])
        found = joined.get(pair) if len(pair) == 2 else None
        out.append(ids[place] if found is None else found)
        place += 1 if found is None else 2
    return out
