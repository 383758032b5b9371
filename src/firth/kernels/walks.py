"""Random walks over a graph in compressed rows: the native kernel (cpp/walks.cpp), and the same in plain Python.

By weight alone (Perozzi et al. 2014) a walk at v goes on to x with probability w(v, x) / Σ w(v, ·). With p and q
(Grover & Leskovec 2016, section 3.2.2) it remembers where it came from, t, and goes on with probability proportional to
w(v, x) · b(t, x), where

    b(t, x) = 1/p  if x = t,   1  if t is linked to x,   1/q  otherwise.

Node2vec's own program keeps a table for every pair of neighbouring edges. Here a candidate is drawn by weight and
accepted with probability b / max b: nothing is kept beyond the graph and one alias table a row.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native
from firth.kernels.predict import alias_table
from firth.kernels.predict_twin import GOLDEN, MASK, mix

WALKS = 0xD1B54A32D192ED03  # so that no walk repeats the draws of a trained token
FEWEST_TRIES = 16


class Links(NamedTuple):
    """Who is linked to whom: node v's neighbors are `neighbors[starts[v] : starts[v + 1]]`, in growing order."""

    starts: NDArray[np.int64]
    neighbors: NDArray[np.int32]
    weights: NDArray[np.float32] | None  # None: all the same
    directed: bool  # else each link has its counterpart of the same weight


class Walked(NamedTuple):
    """Walks one after the other."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]  # walks + 1
    draws: int  # candidates drawn; more than steps were taken where candidates were refused


class NativeWalks:
    """Walks over a graph, on several threads. The same walks whatever their number, and whichever are made together."""

    def __init__(self, links: Links, threads: int = 1) -> None:
        weights = np.zeros(0, np.float32) if links.weights is None else links.weights
        self._native = _native.Walks(links.starts, links.neighbors, weights, links.directed, threads)

    def walk(
        self,
        first: NDArray[np.int32],
        number: NDArray[np.int32],
        *,
        walk_length: int,
        p: float = 1.0,
        q: float = 1.0,
        seed: int = 0,
        threads: int = 1,
    ) -> Walked:
        """Walk i starts at node `first[i]` and is that node's walk `number[i]`; it ends after `walk_length` nodes, or
        at a node without outgoing edges."""
        return Walked(*self._native.walk(first, number, walk_length, p, q, seed, threads))


class TwinWalks:
    """`NativeWalks`, one step after the other."""

    def __init__(self, links: Links, threads: int = 1) -> None:
        self.links = links
        self.state = self.draws = 0
        self.tables = [alias_table(self.weights(node)) for node in range(len(links.starts) - 1)]

    def row(self, node: int) -> NDArray[np.int32]:
        return self.links.neighbors[self.links.starts[node] : self.links.starts[node + 1]]

    def weights(self, node: int) -> NDArray[np.float64]:
        if self.links.weights is None:
            return np.ones(len(self.row(node)))
        return self.links.weights[self.links.starts[node] : self.links.starts[node + 1]].astype(np.float64)

    def walk(
        self,
        first: NDArray[np.int32],
        number: NDArray[np.int32],
        *,
        walk_length: int,
        p: float = 1.0,
        q: float = 1.0,
        seed: int = 0,
        threads: int = 1,
    ) -> Walked:
        self.draws = 0
        walks = [self.one(int(f), int(n), walk_length, p, q, seed) for f, n in zip(first, number, strict=True)]
        starts = np.cumsum([0, *map(len, walks)]).astype(np.int64)
        return Walked(np.array(list(chain(*walks)), np.int32), starts, self.draws)

    def one(self, first: int, number: int, walk_length: int, p: float, q: float, seed: int) -> list[int]:
        self.state = mix((mix((seed + WALKS + first * GOLDEN) & MASK) + number * GOLDEN) & MASK)
        walk = [first]
        while len(walk) < walk_length and len(self.row(walk[-1])):
            plain = (p == 1 and q == 1) or len(walk) == 1 or len(self.row(walk[-1])) == 1
            place = self.by_weight(walk[-1]) if plain else self.biased(walk[-2], walk[-1], p, q)
            walk.append(int(self.row(walk[-1])[place]))
        return walk

    # ---- random numbers ----

    def bits(self) -> int:
        self.state = (self.state + GOLDEN) & MASK
        return mix(self.state)

    def uniform(self) -> float:
        return float((self.bits() >> 11) * 2.0**-53)

    # ---- one step: the place of the next node in the row of `at` ----

    def by_weight(self, at: int) -> int:
        self.draws += 1
        bits, degree = self.bits(), len(self.row(at))
        slot = (bits >> 32) * degree >> 32
        if self.links.weights is None:
            return slot
        cut, other = self.tables[at][slot]
        return slot if bits & 0xFFFFFFFF < int(cut) else int(other)

    def bias(self, before: int, to: int, p: float, q: float) -> float:
        if to == before:
            return 1 / p
        return 1.0 if to in self.row(before) else 1 / q

    def biased(self, before: int, at: int, p: float, q: float) -> int:
        """Candidates lie evenly in an area of height max(1, 1/q) over the weights; the part of going back that stands
        out above it is an area of its own (Yang et al. 2019)."""
        row, weights = self.row(at), self.weights(at)
        height = max(1.0, 1 / q)
        back = np.flatnonzero(row == before)
        area = max(0.0, 1 / p - height) * (weights[back[0]] if len(back) else 0.0)
        excess = area / (area + height * weights.sum())
        for _ in range(FEWEST_TRIES + len(row) // 8):
            if excess > 0 and self.uniform() < excess:
                return int(back[0])
            candidate = self.by_weight(at)
            if self.uniform() * height < self.bias(before, int(row[candidate]), p, q):
                return candidate
        # Refused too often: drawn from all at once, which changes no probability.
        self.draws += len(row)
        shares = np.cumsum(weights * [self.bias(before, int(to), p, q) for to in row])
        return min(int(np.searchsorted(shares, self.uniform() * shares[-1], side="right")), len(row) - 1)
