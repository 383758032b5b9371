"""Random walks over a graph in compressed rows: the native kernel (cpp/walks.cpp), and the same in plain Python.

First-order walks (DeepWalk, Perozzi et al. 2014) step from v to x with probability w(v, x) / Σ w(v, ·). Second-order
walks (node2vec, Grover & Leskovec 2016, section 3.2.2) also depend on the previous node t: the probability is
proportional to w(v, x) · b(t, x), where

    b(t, x) = 1/p  if x = t,   1  if t is linked to x,   1/q  otherwise.

The reference implementation of node2vec stores a table for every pair of adjacent edges. Here a candidate is sampled by
weight and accepted with probability b / max b (rejection sampling): memory is the graph plus one alias table per row.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native
from firth.kernels.hashing import GOLDEN, MASK, mix
from firth.kernels.predict import alias_table

WALK_SALT = 0xD1B54A32D192ED03  # keeps the random bits of walks apart from those of trained tokens
MIN_TRIES = 16  # candidates before falling back to the full row


class Links(NamedTuple):
    """A graph in compressed rows: node v has `neighbors[starts[v] : starts[v + 1]]`, ascending."""

    starts: NDArray[np.int64]
    neighbors: NDArray[np.int32]
    weights: NDArray[np.float32] | None  # None: unweighted
    directed: bool  # if not, each edge is stored in both directions with the same weight


class Walked(NamedTuple):
    """Walks, concatenated."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]  # walks + 1
    draws: int  # candidates sampled, including rejected ones


class NativeWalks:
    """The native walker. A walk depends only on seed, start node and walk number, not on threads or on other walks."""

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
        """Return walks; walk i starts at node `first[i]` and is that node's walk number `number[i]`.

        A walk ends after `walk_length` nodes, or at a node without outgoing edges.
        """
        return Walked(*self._native.walk(first, number, walk_length, p, q, seed, threads))


class TwinWalks:
    """The plain Python twin of `NativeWalks`."""

    def __init__(self, links: Links, threads: int = 1) -> None:
        self.links = links
        self.state = self.draws = 0
        self.tables = [alias_table(self.weights(node)) for node in range(len(links.starts) - 1)]

    def row(self, node: int) -> NDArray[np.int32]:
        """Return the neighbors of a node."""
        return self.links.neighbors[self.links.starts[node] : self.links.starts[node + 1]]

    def weights(self, node: int) -> NDArray[np.float64]:
        """Return the weights of a node's edges."""
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
        """Return walks, as `NativeWalks.walk`."""
        self.draws = 0
        walks = [self.single_walk(int(f), int(n), walk_length, p, q, seed) for f, n in zip(first, number, strict=True)]
        starts = np.cumsum([0, *map(len, walks)]).astype(np.int64)
        return Walked(np.array(list(chain(*walks)), np.int32), starts, self.draws)

    def single_walk(self, first: int, number: int, walk_length: int, p: float, q: float, seed: int) -> list[int]:
        """Return the nodes of one walk."""
        self.state = mix((mix((seed + WALK_SALT + first * GOLDEN) & MASK) + number * GOLDEN) & MASK)
        walk = [first]
        while len(walk) < walk_length and len(self.row(walk[-1])):
            first_order = (p == 1 and q == 1) or len(walk) == 1 or len(self.row(walk[-1])) == 1
            index = self.by_weight(walk[-1]) if first_order else self.biased(walk[-2], walk[-1], p, q)
            walk.append(int(self.row(walk[-1])[index]))
        return walk

    # ---- random numbers ----

    def bits(self) -> int:
        """Return the next 64 random bits."""
        self.state = (self.state + GOLDEN) & MASK
        return mix(self.state)

    def uniform(self) -> float:
        """Return a random number in [0, 1)."""
        return float((self.bits() >> 11) * 2.0**-53)

    # ---- one step: the index of the next node in the row of `at` ----

    def by_weight(self, at: int) -> int:
        """Sample a neighbor by edge weight."""
        self.draws += 1
        bits, degree = self.bits(), len(self.row(at))
        slot = (bits >> 32) * degree >> 32
        if self.links.weights is None:
            return slot
        cut, other = self.tables[at][slot]
        return slot if bits & 0xFFFFFFFF < int(cut) else int(other)

    def bias(self, before: int, to: int, p: float, q: float) -> float:
        """Return b(before, to)."""
        if to == before:
            return 1 / p
        return 1.0 if to in self.row(before) else 1 / q

    def biased(self, before: int, at: int, p: float, q: float) -> int:
        """Sample a neighbor by weight and bias.

        Candidates are uniform in an area of height max(1, 1/q) over the weights. The part of the return edge that
        exceeds this height is sampled separately (Yang et al. 2019).
        """
        row, weights = self.row(at), self.weights(at)
        height = max(1.0, 1 / q)
        back = np.flatnonzero(row == before)
        area = max(0.0, 1 / p - height) * (weights[back[0]] if len(back) else 0.0)
        excess = area / (area + height * weights.sum())
        for _ in range(MIN_TRIES + len(row) // 8):
            if excess > 0 and self.uniform() < excess:
                return int(back[0])
            candidate = self.by_weight(at)
            if self.uniform() * height < self.bias(before, int(row[candidate]), p, q):
                return candidate
        # Too many rejections: sample from the exact distribution, which is the same one.
        self.draws += len(row)
        cumulative = np.cumsum(weights * [self.bias(before, int(to), p, q) for to in row])
        return min(int(np.searchsorted(cumulative, self.uniform() * cumulative[-1], side="right")), len(row) - 1)
