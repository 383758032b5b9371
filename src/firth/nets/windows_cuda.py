"""Skip-gram and CBOW with noise words on a GPU: what `kernels/predict_twin.py` says, one program a stretch of text.

A slice of the text is laid out first: which tokens are kept, how far each reaches and which noise words it meets are
the hashes that the CPU takes, so one program trains the windows that one thread would. Then a thousand or two programs
walk through stretches of their own, window after window: the contexts' rows and the targets' are two tiles, the scores
their product, and what changes is added to the tables atomically. (A program for each window would be no slower and
learn little: neighbouring windows share words and would all move from the same old rows.)
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

GOLDEN = tl.constexpr(0x9E3779B97F4A7C15)
FIRST_MIX = tl.constexpr(0xBF58476D1CE4E5B9)
SECOND_MIX = tl.constexpr(0x94D049BB133111EB)
LEAST = tl.constexpr(1e-9)  # a probability below it counts as this in the loss
BLOCK = 1024  # tokens laid out by one program
SMALLEST_TILE = 16  # of a tensor core
MOST_NEGATIVES = 127  # the targets of a window stand in one tile
MOST_CONTEXTS = 32  # of a tile; wider windows are trained in parts
KINDS = {"float16": tl.float16, "bfloat16": tl.bfloat16, "float32": tl.float32}
PLAIN = ["origin", "count", "words", "window", "negatives"]  # arguments that are no constants even where they are 1


# Constants of a kernel are written in capitals, as Triton's users do:
# ruff: noqa: N803

# ---- laying out a slice ----


@triton.jit
def mix(x):
    """The finalizer of splitmix64."""
    x = (x ^ (x >> 30)) * FIRST_MIX
    x = (x ^ (x >> 27)) * SECOND_MIX
    return x ^ (x >> 31)


@triton.jit
def token_hash(seed, position):
    return mix(tl.load(seed).to(tl.uint64, bitcast=True) + position.to(tl.uint64) * GOLDEN)


@triton.jit(do_not_specialize=PLAIN)
def keep_kernel(raw, keep, seed, flags, origin, count, BLOCK: tl.constexpr):
    """Which tokens of a slice are kept."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = place < count
    word = tl.load(raw + place, mask=there, other=0)
    most = tl.load(keep + word, mask=there, other=0).to(tl.uint32, bitcast=True)
    bits = (token_hash(seed, place + origin) >> 32).to(tl.uint32)
    tl.store(flags + place, bits <= most, mask=there)


@triton.jit(do_not_specialize=PLAIN)
def lay_kernel(
    raw, places, alias, seed, ids, reaches, noise, origin, count, words, window, negatives,
    SHRINK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Word, reach and noise words of each kept token; -1 for a noise word that is the centre or was drawn before."""
    token = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = token < count
    place = tl.load(places + token, mask=there, other=0)
    centre = tl.load(raw + place, mask=there, other=0)
    state = token_hash(seed, place + origin)
    tl.store(ids + token, centre, mask=there)
    reach = tl.full([BLOCK], 0, tl.int32) + window
    if SHRINK:
        reach -= (((state & 0xFFFFFFFF) * window.to(tl.uint64)) >> 32).to(tl.int32)
    tl.store(reaches + token, reach, mask=there)
    for k in range(negatives):
        state += GOLDEN
        bits = mix(state)
        slot = (((bits >> 32) * words.to(tl.uint64)) >> 32).to(tl.int64)
        cut = tl.load(alias + 2 * slot, mask=there, other=0).to(tl.uint32, bitcast=True)
        other = tl.load(alias + 2 * slot + 1, mask=there, other=0)
        word = tl.where((bits & 0xFFFFFFFF).to(tl.uint32) < cut, slot.to(tl.int32), other)
        for j in range(k):
            word = tl.where(word == tl.load(noise + token * negatives + j, mask=there, other=-1), -1, word)
        tl.store(noise + token * negatives + k, tl.where(word == centre, -1, word), mask=there)


# ---- one window ----


@triton.jit
def targets_of(i, ids, noise, negatives, TARGETS: tl.constexpr):
    """The centre, then noise words; -1 where there is none."""
    turn = tl.arange(0, TARGETS)
    word = tl.load(noise + i * negatives + turn - 1, mask=(turn > 0) & (turn <= negatives), other=-1)
    return tl.where(turn == 0, tl.load(ids + i), word)


@triton.jit
def contexts_of(i, ids, documents, document, reach, total, window, part, CONTEXTS: tl.constexpr):
    """A part of the words within reach of a centre; -1 where there is none."""
    offset = part * CONTEXTS + tl.arange(0, CONTEXTS) - window
    offset = tl.where(offset < 0, offset, offset + 1)  # the centre is none of its contexts
    at = i + offset
    inside = (at >= 0) & (at < total)
    word, other = tl.load(ids + at, mask=inside, other=-1), tl.load(documents + at, mask=inside, other=-1)
    return tl.where((offset >= -reach) & (offset <= reach) & (other == document), word, -1)


@triton.jit
def tile_of(table, rows, chunk, stride, COLUMNS: tl.constexpr):
    """Where some columns of some rows stand, and which are there. (Padding is there: it is zero and stays it.)"""
    column = chunk * COLUMNS + tl.arange(0, COLUMNS)
    return table + rows.to(tl.int64)[:, None] * stride + column[None, :], (rows >= 0)[:, None] & (column < stride)[None]


@triton.jit
def read(table, rows, chunk, stride, COLUMNS: tl.constexpr):
    """From the cache that all programs share: another program's changes are seen."""
    cells, there = tile_of(table, rows, chunk, stride, COLUMNS)
    return tl.load(cells, mask=there, other=0.0, cache_modifier=".cg")


@triton.jit
def add(table, rows, chunk, change, stride, COLUMNS: tl.constexpr):
    cells, there = tile_of(table, rows, chunk, stride, COLUMNS)
    tl.atomic_add(cells, change, mask=there, sem="relaxed")


@triton.jit
def stretch(first, last):
    """The windows of this program."""
    program, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    return first + program * (last - first) // programs, first + (program + 1) * (last - first) // programs


@triton.jit(do_not_specialize=["first", "last", "total", "window", "negatives"])
def skipgram_kernel(
    inputs, outputs, ids, documents, reaches, noise, losses, pairs, first, last, total, window, negatives, stride,
    rate, rate_end, CONTEXTS: tl.constexpr, PARTS: tl.constexpr, TARGETS: tl.constexpr, COLUMNS: tl.constexpr,
    CHUNKS: tl.constexpr, KIND: tl.constexpr, MOVE: tl.constexpr,
):  # fmt: skip
    """Every context predicts the centre, told from the noise words of its window."""
    begin, end = stretch(first, last)
    slope = (rate_end - rate) / tl.maximum(end - begin, 1).to(tl.float32)
    sign = tl.where(tl.arange(0, TARGETS) == 0, 1.0, -1.0)[None, :]
    loss = tl.zeros([CONTEXTS, TARGETS], tl.float32)
    found = tl.zeros([CONTEXTS], tl.int32)
    for i in range(begin, end):
        target = targets_of(i, ids, noise, negatives, TARGETS)
        document, reach = tl.load(documents + i), tl.load(reaches + i)
        for part in tl.static_range(PARTS):
            context = contexts_of(i, ids, documents, document, reach, total, window, part, CONTEXTS)
            x = read(inputs, context, 0, stride, COLUMNS).to(KIND)
            y = read(outputs, target, 0, stride, COLUMNS).to(KIND)
            scores = tl.dot(x, tl.trans(y))
            for chunk in range(1, CHUNKS):
                more = read(outputs, target, chunk, stride, COLUMNS).to(KIND)
                scores = tl.dot(read(inputs, context, chunk, stride, COLUMNS).to(KIND), tl.trans(more), scores)
            both = (context >= 0)[:, None] & (target >= 0)[None, :]
            right = 1 / (1 + tl.exp(-sign * scores))
            loss -= tl.where(both, tl.log(tl.maximum(right, LEAST)), 0.0)
            found += (context >= 0).to(tl.int32)
            if MOVE:
                now = rate + slope * (i - begin).to(tl.float32)
                miss = tl.where(both, sign * (1 - right), 0.0).to(KIND)
                for chunk in range(CHUNKS):
                    if CHUNKS > 1:  # else it is still here
                        x = read(inputs, context, chunk, stride, COLUMNS).to(KIND)
                        y = read(outputs, target, chunk, stride, COLUMNS).to(KIND)
                    add(inputs, context, chunk, now * tl.dot(miss, y), stride, COLUMNS)
                    add(outputs, target, chunk, now * tl.dot(tl.trans(miss), x), stride, COLUMNS)
                tl.debug_barrier()  # the next window reads what this one wrote
    tl.store(losses + tl.program_id(0), tl.sum(tl.sum(loss, 1), 0))
    tl.store(pairs + tl.program_id(0), tl.sum(found.to(tl.int64), 0))


@triton.jit
def hidden_of(
    i, inputs, ids, documents, document, reach, total, window, chunk, stride,
    CONTEXTS: tl.constexpr, PARTS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The sum of the contexts' rows, and how many there are."""
    hidden, count = tl.zeros([COLUMNS], tl.float32), 0
    for part in tl.static_range(PARTS):
        context = contexts_of(i, ids, documents, document, reach, total, window, part, CONTEXTS)
        hidden += tl.sum(read(inputs, context, chunk, stride, COLUMNS), 0)
        count += tl.sum((context >= 0).to(tl.int32), 0)
    return hidden, count


@triton.jit(do_not_specialize=["first", "last", "total", "window", "negatives"])
def cbow_kernel(
    inputs, outputs, ids, documents, reaches, noise, losses, pairs, first, last, total, window, negatives, stride,
    rate, rate_end, CONTEXTS: tl.constexpr, PARTS: tl.constexpr, TARGETS: tl.constexpr, COLUMNS: tl.constexpr,
    CHUNKS: tl.constexpr, MEAN: tl.constexpr, EXACT: tl.constexpr, MOVE: tl.constexpr,
):  # fmt: skip
    """The contexts together, as a mean or a sum, predict the centre."""
    begin, end = stretch(first, last)
    slope = (rate_end - rate) / tl.maximum(end - begin, 1).to(tl.float32)
    sign = tl.where(tl.arange(0, TARGETS) == 0, 1.0, -1.0)
    loss = tl.zeros([TARGETS], tl.float32)
    found = tl.zeros([], tl.int64)
    for i in range(begin, end):
        target = targets_of(i, ids, noise, negatives, TARGETS)
        document, reach = tl.load(documents + i), tl.load(reaches + i)
        scores = tl.zeros([TARGETS], tl.float32)
        for chunk in tl.static_range(CHUNKS):
            hidden, count = hidden_of(
                i, inputs, ids, documents, document, reach, total, window, chunk, stride, CONTEXTS, PARTS, COLUMNS
            )
            share = 1.0 / tl.maximum(count, 1).to(tl.float32) if MEAN else 1.0
            y = read(outputs, target, chunk, stride, COLUMNS)
            scores += tl.sum(y * (hidden * share)[None, :], 1)
        wanted = (target >= 0) & (count > 0)
        right = 1 / (1 + tl.exp(-sign * scores))
        loss -= tl.where(wanted, tl.log(tl.maximum(right, LEAST)), 0.0)
        found += (count > 0).to(tl.int64)
        if MOVE:
            now = rate + slope * (i - begin).to(tl.float32)
            steps = tl.where(wanted, now * sign * (1 - right), 0.0)
            for chunk in tl.static_range(CHUNKS):
                if CHUNKS > 1:  # else it is still here
                    hidden, count = hidden_of(
                        i, inputs, ids, documents, document, reach, total, window, chunk, stride,
                        CONTEXTS, PARTS, COLUMNS,
                    )  # fmt: skip
                    y = read(outputs, target, chunk, stride, COLUMNS)
                change = tl.sum(y * steps[:, None], 0) * (share if EXACT else 1.0)
                for part in tl.static_range(PARTS):
                    context = contexts_of(i, ids, documents, document, reach, total, window, part, CONTEXTS)
                    each = tl.broadcast_to(change[None, :], [CONTEXTS, COLUMNS])
                    add(inputs, context, chunk, each, stride, COLUMNS)
                add(outputs, target, chunk, steps[:, None] * (hidden * share)[None, :], stride, COLUMNS)
            tl.debug_barrier()  # the next window reads what this one wrote
    tl.store(losses + tl.program_id(0), tl.sum(loss, 0))
    tl.store(pairs + tl.program_id(0), found)


# ---- from the host ----


class Rules(NamedTuple):
    """What a window is, and what it learns by."""

    architecture: str = "skipgram"
    window: int = 5
    negatives: int = 5
    shrink: bool = True
    mean: bool = True
    exact: bool = True


class Laid(NamedTuple):
    """A slice of text ready to be trained on: its kept tokens, and between `first` and `last` its centres."""

    ids: Tensor
    documents: Tensor  # of each token, a number
    reaches: Tensor
    noise: Tensor  # (tokens, negatives)
    first: int
    last: int


class Tiles(NamedTuple):
    """How much of a window a program has in its hands at once."""

    contexts: int
    targets: int
    columns: int
    warps: int
    kind: str = "float16"  # of the products' factors; tables and sums are float32
    stages: int = 1

    @classmethod
    def fitting(cls, rules: Rules, stride: int) -> Tiles:
        contexts = min(MOST_CONTEXTS, power_of_two(2 * rules.window))
        targets = power_of_two(1 + rules.negatives)
        columns = min(128, power_of_two(stride))
        return cls(contexts, targets, columns, max(1, min(8, (contexts + targets) * columns // 4096)))


def power_of_two(number: int) -> int:
    """The next one, for a side of a tile."""
    return max(SMALLEST_TILE, 1 << (number - 1).bit_length())


class Windows:
    """Tables of a device and the rules that windows move them by; `keep` and `alias` as in `kernels.predict.Task`."""

    def __init__(
        self, rules: Rules, inputs: Tensor, outputs: Tensor, keep: Tensor, alias: Tensor, tiles: Tiles | None = None
    ) -> None:
        self.rules, self.inputs, self.outputs, self.keep, self.alias = rules, inputs, outputs, keep, alias
        self.stride = inputs.stride(0)
        self.tiles = tiles or Tiles.fitting(rules, self.stride)

    def lay(self, raw: Tensor, starts: Tensor, origin: int, first: int, last: int, seed: int) -> Laid:
        """`raw` are the words at positions from `origin` on, `starts` the positions where documents begin within them;
        centres are those from `first` to `last`, the others can be contexts."""
        rules, device, count = self.rules, raw.device, len(raw)
        drawn = torch.tensor([seed - (1 << 64) if seed >> 63 else seed], device=device)
        flags = torch.empty(count, dtype=torch.bool, device=device)
        keep_kernel[(max(1, triton.cdiv(count, BLOCK)),)](raw, self.keep, drawn, flags, origin, count, BLOCK=BLOCK)
        places = torch.nonzero(flags).squeeze(1)
        kept = len(places)
        ids, reaches = (torch.empty(kept, dtype=torch.int32, device=device) for _ in range(2))
        noise = torch.empty(kept, rules.negatives, dtype=torch.int32, device=device)
        lay_kernel[(max(1, triton.cdiv(kept, BLOCK)),)](
            raw, places, self.alias, drawn, ids, reaches, noise, origin, kept, len(self.alias), rules.window,
            rules.negatives, SHRINK=rules.shrink, BLOCK=BLOCK,
        )  # fmt: skip
        documents = torch.searchsorted(starts, places + origin, right=True, out_int32=True)
        ends = torch.searchsorted(places, torch.tensor([first - origin, last - origin], device=device)).tolist()
        return Laid(ids, documents, reaches, noise, *ends)

    def train(
        self, laid: Laid, rate: float, rate_end: float, programs: int, move: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Every window of a slice, the rate falling from its first to its last; loss and pairs of each program."""
        rules, tiles, device = self.rules, self.tiles, self.inputs.device
        losses = torch.zeros(programs, device=device)
        pairs = torch.zeros(programs, dtype=torch.int64, device=device)
        kind, settings = cbow_kernel, {"MEAN": rules.mean, "EXACT": rules.mean and rules.exact}
        if rules.architecture == "skipgram":
            kind, settings = skipgram_kernel, {"KIND": KINDS[tiles.kind]}
        kind[(programs,)](
            self.inputs, self.outputs, *laid[:4], losses, pairs, laid.first, laid.last, len(laid.ids), rules.window,
            rules.negatives, self.stride, rate, rate_end, CONTEXTS=tiles.contexts,
            PARTS=triton.cdiv(2 * rules.window, tiles.contexts), TARGETS=tiles.targets, COLUMNS=tiles.columns,
            CHUNKS=triton.cdiv(self.stride, tiles.columns), MOVE=move, num_warps=tiles.warps,
            num_stages=tiles.stages, **settings,
        )  # fmt: skip
        return losses, pairs

    def bytes_moved(self, contexts: int, windows: int) -> int:
        """Rows read and added to by so many windows with so many contexts in all, from memory or a cache."""
        return 2 * 4 * self.stride * (contexts + windows * (1 + self.rules.negatives))
