"""Random walks on a GPU, one lane per walk. The hashes are those of `kernels/walks.py`, so the walks are the same."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from firth.kernels.predict import alias_table
from firth.kernels.walks import MIN_TRIES, WALK_SALT, Links
from firth.nets.windows_cuda import GOLDEN, mix

TRIES = tl.constexpr(MIN_TRIES)
BLOCK = 128  # walks per program
FAR, BACK, HEIGHT, EXCESS, LOW = (tl.constexpr(index) for index in range(5))  # columns of the rule table

# Kernel constants are upper case, as is usual in Triton:
# ruff: noqa: N803


@triton.jit
def bits_of(state, lanes):
    """Draw random bits for the selected lanes; the states of the others do not change."""
    state = tl.where(lanes, state + GOLDEN, state)
    return mix(state), state


@triton.jit
def uniform(state, lanes):
    """Draw a number in [0, 1) for the selected lanes."""
    bits, state = bits_of(state, lanes)
    return (bits >> 11).to(tl.int64).to(tl.float64) * 1.1102230246251565e-16, state  # 2^-53


@triton.jit
def by_weight(state, lanes, row, degree, alias, WEIGHTED: tl.constexpr):
    """Draw a link in proportion to its weight."""
    bits, state = bits_of(state, lanes)
    slot = (((bits >> 32) * degree.to(tl.uint64)) >> 32).to(tl.int64)
    if WEIGHTED:
        cut = tl.load(alias + 2 * (row + slot), mask=lanes, other=0).to(tl.uint32, bitcast=True)
        other = tl.load(alias + 2 * (row + slot) + 1, mask=lanes, other=0).to(tl.int64)
        slot = tl.where((bits & 0xFFFFFFFF).to(tl.uint32) < cut, slot, other)
    return row + slot, state


@triton.jit
def find(lanes, begin, end, wanted, neighbors, steps):
    """Return the index of a node in its sorted row, or -1."""
    low, high = begin, end
    for _ in range(steps):
        middle = (low + high) >> 1
        searching = lanes & (low < high)
        less = tl.load(neighbors + middle, mask=searching, other=0) < wanted
        low = tl.where(searching & less, middle + 1, low)
        high = tl.where(searching & (less == 0), middle, high)
    inside = lanes & (low < end)
    present = inside & (tl.load(neighbors + low, mask=inside, other=-1) == wanted)
    return tl.where(present, low, -1)


@triton.jit
def bias(lanes, link, before, old_row, old_end, neighbors, rule, steps):
    """Return the search bias of a link after `before` (Grover & Leskovec 2016, section 3.2.2)."""
    node = tl.load(neighbors + link, mask=lanes, other=-1)
    linked = find(lanes & (node != before), old_row, old_end, node, neighbors, steps) >= 0
    return tl.where(node == before, tl.load(rule + BACK), tl.where(linked, 1.0, tl.load(rule + FAR)))


@triton.jit
def from_whole_row(
    state, lanes, row, degree, before, old_row, old_end, neighbors, weights, rule, steps, WEIGHTED: tl.constexpr
):
    """Draw a link in proportion to weight times bias, over the whole row."""
    threshold, state = uniform(state, lanes)
    total = threshold * 0.0
    longest = tl.max(tl.where(lanes, degree, 0), 0)
    for j in range(longest):
        here = lanes & (j < degree)
        share = bias(here, row + j, before, old_row, old_end, neighbors, rule, steps)
        if WEIGHTED:
            share *= tl.load(weights + row + j, mask=here, other=0).to(tl.float64)
        total += tl.where(here, share, 0.0)
    threshold *= total
    total *= 0.0
    rank = row * 0
    for j in range(longest):
        here = lanes & (j < degree)
        share = bias(here, row + j, before, old_row, old_end, neighbors, rule, steps)
        if WEIGHTED:
            share *= tl.load(weights + row + j, mask=here, other=0).to(tl.float64)
        total += tl.where(here, share, 0.0)
        rank += (here & (total <= threshold)).to(tl.int64)
    return row + tl.minimum(rank, degree - 1), state


@triton.jit
def biased(
    state, lanes, at_row, degree, before, link, starts, neighbors, weights, alias, sums, at, rule, steps,
    DIRECTED: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Draw a link in proportion to weight times bias by rejection sampling.

    Candidates are drawn by weight and accepted by bias. The return link is drawn separately where its bias exceeds the
    acceptance height. After too many rejections, the link is drawn from the whole row.
    """
    old_row = tl.load(starts + before, mask=lanes, other=0)
    old_end = tl.load(starts + before + 1, mask=lanes, other=0)
    height, low, stands_out = tl.load(rule + HEIGHT), tl.load(rule + LOW), tl.load(rule + EXCESS)
    returning = find(lanes, at_row, at_row + degree, before, neighbors, steps)
    back_weight = (returning >= 0).to(tl.float64)
    whole = degree.to(tl.float64)
    if WEIGHTED:
        came = returning if DIRECTED else link  # equal weights; reading the same one as the CPU gives the same last bit
        back_weight = tl.load(weights + came, mask=lanes & (came >= 0), other=0).to(tl.float64)
        whole = tl.load(sums + at, mask=lanes, other=1.0)
    area = stands_out * back_weight
    excess = area / (area + height * tl.where(lanes, whole, 1.0))
    link_found, tried, waiting = at_row * 0 - 1, degree * 0, lanes
    while tl.max(waiting.to(tl.int32), 0) > 0:
        drawing = waiting & (excess > 0)
        share, state = uniform(state, drawing)
        back = drawing & (share < excess)
        link_found = tl.where(back, returning, link_found)
        waiting = waiting & (back == 0)
        candidate, state = by_weight(state, waiting, at_row, degree, alias, WEIGHTED)
        share, state = uniform(state, waiting)
        share *= height
        unsure = waiting & (share >= low)
        favour = bias(unsure, candidate, before, old_row, old_end, neighbors, rule, steps)
        accepted = waiting & ((share < low) | (share < favour))
        link_found = tl.where(accepted, candidate, link_found)
        waiting = waiting & (accepted == 0)
        tried += 1
        stuck = waiting & (tried >= TRIES + degree // 8)
        if tl.max(stuck.to(tl.int32), 0) > 0:
            drawn, state = from_whole_row(
                state, stuck, at_row, degree, before, old_row, old_end, neighbors, weights, rule, steps, WEIGHTED
            )
            link_found = tl.where(stuck, drawn, link_found)
            waiting = waiting & (stuck == 0)
    return link_found, state


@triton.jit(do_not_specialize=["count", "walk_length", "steps"])
def walk_kernel(
    starts, neighbors, weights, alias, sums, rule, first, number, seed, out, count, walk_length, steps,
    SECOND: tl.constexpr, DIRECTED: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the nodes of each walk to its row of `out`; -1 after a dead end."""
    walk = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    alive = walk < count
    at = tl.load(first + walk, mask=alive, other=0).to(tl.int64)
    turn = tl.load(number + walk, mask=alive, other=0).to(tl.int64).to(tl.uint64, bitcast=True)
    state = mix(tl.load(seed).to(tl.uint64, bitcast=True) + at.to(tl.uint64) * GOLDEN)
    state = mix(state + turn * GOLDEN)
    tl.store(out + walk * walk_length, at.to(tl.int32), mask=alive)
    before, link = at * 0 - 1, at * 0 - 1
    for step in range(1, walk_length):
        row = tl.load(starts + at, mask=alive, other=0)
        degree = tl.load(starts + at + 1, mask=alive, other=0) - row
        alive = alive & (degree > 0)
        if SECOND:
            plain = alive & ((before < 0) | (degree == 1))
            link_by_weight, state = by_weight(state, plain, row, degree, alias, WEIGHTED)
            link_biased, state = biased(
                state, alive & (plain == 0), row, degree, before, link, starts, neighbors, weights, alias, sums, at,
                rule, steps, DIRECTED, WEIGHTED,
            )  # fmt: skip
            link = tl.where(plain, link_by_weight, link_biased)
        else:
            link, state = by_weight(state, alive, row, degree, alias, WEIGHTED)
        before = at
        at = tl.load(neighbors + link, mask=alive, other=0).to(tl.int64)
        tl.store(out + walk * walk_length + step, tl.where(alive, at, -1).to(tl.int32), mask=walk < count)


class CudaWalks:
    """Random walks over a graph on a GPU, equal to those of `NativeWalks`."""

    def __init__(self, links: Links, device: torch.device) -> None:
        self.device, self.directed, self.weighted = device, links.directed, links.weights is not None
        self.starts, self.neighbors = (torch.tensor(part, device=device) for part in (links.starts, links.neighbors))
        degrees = np.diff(links.starts)
        self.steps = int(degrees.max(initial=0)).bit_length()
        self.weights = torch.zeros(1, device=device)
        self.alias = torch.zeros(2, dtype=torch.int32, device=device)
        self.sums = torch.zeros(1, dtype=torch.float64, device=device)
        if links.weights is not None:
            weights = links.weights.astype(np.float64)
            rows = [alias_table(row) for row in np.split(weights, links.starts[1:-1])]
            sums = np.bincount(np.repeat(np.arange(len(degrees)), degrees), weights, len(degrees))
            self.weights, self.sums = torch.tensor(links.weights, device=device), torch.tensor(sums, device=device)
            self.alias = torch.tensor(np.concatenate(rows).view(np.int32), device=device)

    def walk(
        self, first: NDArray[np.int32], number: NDArray[np.int32], *, walk_length: int, p: float, q: float, seed: int
    ) -> tuple[Tensor, Tensor]:
        """Return the concatenated nodes of all walks, and the start of each walk with the final end."""
        far, back = 1 / q, 1 / p
        height = max(1.0, far)
        rule = [far, back, height, max(0.0, back - height), min(1.0, far, back)]
        walk_seed = (seed + WALK_SALT) % (1 << 64)
        out = torch.empty(len(first), walk_length, dtype=torch.int32, device=self.device)
        walk_kernel[(triton.cdiv(len(first), BLOCK),)](
            self.starts, self.neighbors, self.weights, self.alias, self.sums,
            torch.tensor(rule, dtype=torch.float64, device=self.device),
            torch.tensor(first, device=self.device), torch.tensor(number, device=self.device),
            torch.tensor([walk_seed - (1 << 64) if walk_seed >> 63 else walk_seed], device=self.device), out,
            len(first), walk_length, self.steps, SECOND=(p, q) != (1, 1), DIRECTED=self.directed,
            WEIGHTED=self.weighted, BLOCK=BLOCK,
        )  # fmt: skip
        valid = out >= 0
        starts = torch.nn.functional.pad(valid.sum(1).cumsum(0), (1, 0))
        return out[valid], starts
