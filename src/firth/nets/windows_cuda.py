"""Skip-gram and CBOW with negative sampling on a GPU, as defined by `kernels/predict_twin.py`.

A slice of the text is prepared first: subsampling, window sizes and negative samples are the hashes that the CPU uses,
so one program trains the same windows as one CPU thread. Then one or two thousand programs each process a section of
the slice, window by window. The rows of contexts and targets are two tiles, the scores are their product, and updates
are added to the tables atomically. (One program per window would be as fast but learn little: neighboring windows share
words, and all would start from the same old rows.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

GOLDEN = tl.constexpr(0x9E3779B97F4A7C15)
FIRST_MIX = tl.constexpr(0xBF58476D1CE4E5B9)
SECOND_MIX = tl.constexpr(0x94D049BB133111EB)
MIN_PROBABILITY = tl.constexpr(1e-9)  # smaller probabilities count as this in the loss
SIDE, SIDE_MASK = tl.constexpr(16), tl.constexpr(0xFFFF)  # bits for one side of a window span
BLOCK = 1024  # tokens prepared by one program
SMALLEST_TILE = 16  # of a tensor core
MOST_NEGATIVES = 127  # the targets of a window fit one tile
MOST_TARGETS = 32  # of windows trained together
GROUP = 2  # windows trained together
MOST_CONTEXTS = 32  # per tile; wider windows are trained in parts
DTYPES = {"float16": tl.float16, "bfloat16": tl.bfloat16, "float32": tl.float32}
RUNTIME_ARGUMENTS = [
    "origin",
    "count",
    "words",
    "window",
    "negatives",
]  # arguments that Triton must not specialize, even if they are 1


# Kernel constants are upper case, as is usual in Triton:
# ruff: noqa: N803

# ---- preparing a slice ----


@triton.jit
def mix(x):
    """The finalizer of splitmix64."""
    x = (x ^ (x >> 30)) * FIRST_MIX
    x = (x ^ (x >> 27)) * SECOND_MIX
    return x ^ (x >> 31)


@triton.jit
def token_hash(seed, position):
    """Return the hash of a token position."""
    return mix(tl.load(seed).to(tl.uint64, bitcast=True) + position.to(tl.uint64) * GOLDEN)


@triton.jit(do_not_specialize=RUNTIME_ARGUMENTS)
def keep_kernel(raw, keep, seed, flags, origin, count, BLOCK: tl.constexpr):
    """Flag the tokens of a slice that subsampling keeps."""
    position = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = position < count
    word = tl.load(raw + position, mask=inside, other=0)
    most = tl.load(keep + word, mask=inside, other=0).to(tl.uint32, bitcast=True)
    bits = (token_hash(seed, position + origin) >> 32).to(tl.uint32)
    tl.store(flags + position, bits <= most, mask=inside)


@triton.jit(do_not_specialize=RUNTIME_ARGUMENTS)
def prepare_kernel(
    raw, positions, documents, bounds, alias, seed, ids, spans, targets, origin, count, words, window, negatives,
    SHRINK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write, for each kept token, its word, the reach of its window within its document, and its targets.

    The targets are the center word and the negative samples; -1 replaces a sample that equals an earlier target.
    """
    token = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = token < count
    position = tl.load(positions + token, mask=inside, other=0)
    center = tl.load(raw + position, mask=inside, other=0)
    state = token_hash(seed, position + origin)
    tl.store(ids + token, center, mask=inside)
    reach = tl.full([BLOCK], 0, tl.int32) + window
    if SHRINK:
        reach -= (((state & 0xFFFFFFFF) * window.to(tl.uint64)) >> 32).to(tl.int32)
    document = tl.load(documents + token, mask=inside, other=0)
    left = tl.minimum(reach, token - tl.load(bounds + document, mask=inside, other=0)).to(tl.int32)
    right = tl.minimum(reach, tl.load(bounds + document + 1, mask=inside, other=0) - 1 - token).to(tl.int32)
    tl.store(spans + token, left | (right << SIDE), mask=inside)
    targets += token * (1 + negatives)
    tl.store(targets, center, mask=inside)
    for k in range(1, 1 + negatives):
        state += GOLDEN
        bits = mix(state)
        slot = (((bits >> 32) * words.to(tl.uint64)) >> 32).to(tl.int64)
        cut = tl.load(alias + 2 * slot, mask=inside, other=0).to(tl.uint32, bitcast=True)
        other = tl.load(alias + 2 * slot + 1, mask=inside, other=0)
        word = tl.where((bits & 0xFFFFFFFF).to(tl.uint32) < cut, slot.to(tl.int32), other)
        for j in range(k):
            word = tl.where(word == tl.load(targets + j, mask=inside, other=-1), -1, word)
        tl.store(targets + k, word, mask=inside)


# ---- one window ----


@triton.jit
def within(offset, span):
    """Return whether an offset from a center lies in its window."""
    return (offset != 0) & (offset >= -(span & SIDE_MASK)) & (offset <= (span >> SIDE))


@triton.jit
def contexts_of(i, ids, span, window, part, CONTEXTS: tl.constexpr):
    """Return one part of a center's context words; -1 where there is none."""
    offset = part * CONTEXTS + tl.arange(0, CONTEXTS) - window
    offset = tl.where(offset < 0, offset, offset + 1)  # skips the center
    return tl.load(ids + i + offset, mask=within(offset, span), other=-1)


@triton.jit
def tile_of(table, rows, chunk, STRIDE: tl.constexpr, COLUMNS: tl.constexpr):
    """Return pointers to some columns of some rows, and their mask. (Padding is included: it is and stays zero.)"""
    column = chunk * COLUMNS + tl.arange(0, COLUMNS)
    return table + rows.to(tl.int64)[:, None] * STRIDE + column[None, :], (rows >= 0)[:, None] & (column < STRIDE)[None]


@triton.jit
def read(table, rows, chunk, STRIDE: tl.constexpr, COLUMNS: tl.constexpr):
    """Load through the shared L2 cache, so that updates of other programs are seen."""
    cells, inside = tile_of(table, rows, chunk, STRIDE, COLUMNS)
    return tl.load(cells, mask=inside, other=0.0, cache_modifier=".cg")


@triton.jit
def add(table, rows, chunk, change, STRIDE: tl.constexpr, COLUMNS: tl.constexpr):
    """Add to some columns of some rows atomically."""
    cells, inside = tile_of(table, rows, chunk, STRIDE, COLUMNS)
    tl.atomic_add(cells, change, mask=inside, sem="relaxed")


@triton.jit
def log_of(right):
    """Return the logarithm of a probability; NaN stays NaN, so that divergence is detected."""
    return tl.log(tl.where(right < MIN_PROBABILITY, MIN_PROBABILITY, right))


@triton.jit
def stretch(first, last):
    """Return the range of windows of this program."""
    program, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    return first + program * (last - first) // programs, first + (program + 1) * (last - first) // programs


@triton.jit
def group_targets(i, left, targets, width, GROUP: tl.constexpr, TARGETS: tl.constexpr):
    """Return, for the targets of `left` windows from i on, the window, whether it is the center, and the word (-1 for
    none)."""
    turn = tl.arange(0, TARGETS)
    window = turn // width
    inside = turn < width * tl.minimum(left, GROUP)
    return window, turn == window * width, tl.load(targets + i * width + turn, mask=inside, other=-1)


@triton.jit
def group_span(i, left, spans, GROUP: tl.constexpr):
    """Return the first and last offset from i that the windows from i on reach."""
    low, high = 0, 0
    for g in tl.static_range(GROUP):
        if g < left:
            span = tl.load(spans + i + g)
            low, high = tl.minimum(low, g - (span & SIDE_MASK)), tl.maximum(high, g + (span >> SIDE))
    return low, high


@triton.jit(do_not_specialize=["first", "last", "window", "negatives"])
def skipgram_kernel(
    inputs, outputs, ids, spans, targets, losses, pairs, first, last, window, negatives, rate, rate_end,
    STRIDE: tl.constexpr, CONTEXTS: tl.constexpr, PARTS: tl.constexpr, TARGETS: tl.constexpr, COLUMNS: tl.constexpr,
    CHUNKS: tl.constexpr, GROUP: tl.constexpr, DTYPE: tl.constexpr, MOVE: tl.constexpr,
):  # fmt: skip
    """Train skip-gram: each context predicts the center against the negative samples.

    Neighboring windows are trained together, because they share most contexts; each row is read and updated once.
    """
    begin, end = stretch(first, last)
    slope = (rate_end - rate) / tl.maximum(end - begin, 1).to(tl.float32)
    loss = tl.zeros([CONTEXTS, TARGETS], tl.float32)
    pair_count = tl.zeros([CONTEXTS, TARGETS], tl.float32)
    for i in range(begin, end, GROUP):
        left = (end - i).to(tl.int32)
        turn, center, target = group_targets(i, left, targets, 1 + negatives, GROUP, TARGETS)
        span = tl.load(spans + i + turn, mask=target >= 0, other=0)
        low, high = group_span(i, left, spans, GROUP)
        sign = tl.where(center, 1.0, -1.0)[None, :]
        for part in tl.static_range(PARTS):
            offset = part * CONTEXTS + tl.arange(0, CONTEXTS) - window
            near = within(offset[:, None] - turn[None, :], span[None, :])
            active = (near & (target >= 0)[None, :]).to(tl.float32)
            needed = (offset >= low) & (offset <= high) & ((GROUP > 1) | (offset != 0))
            context = tl.load(ids + i + offset, mask=needed, other=-1)
            x = read(inputs, context, 0, STRIDE, COLUMNS).to(DTYPE)
            y = read(outputs, target, 0, STRIDE, COLUMNS).to(DTYPE)
            scores = tl.dot(x, tl.trans(y))
            for chunk in range(1, CHUNKS):
                more = read(outputs, target, chunk, STRIDE, COLUMNS).to(DTYPE)
                scores = tl.dot(read(inputs, context, chunk, STRIDE, COLUMNS).to(DTYPE), tl.trans(more), scores)
            right = 1 / (1 + tl.exp(-sign * scores))
            loss -= active * log_of(right)
            pair_count += tl.where(center[None, :], active, 0.0)
            if MOVE:
                now = rate + slope * (i - begin).to(tl.float32)
                miss = (active * sign * (1 - right)).to(DTYPE)
                for chunk in range(CHUNKS):
                    if CHUNKS > 1:  # otherwise it is still in registers
                        x = read(inputs, context, chunk, STRIDE, COLUMNS).to(DTYPE)
                        y = read(outputs, target, chunk, STRIDE, COLUMNS).to(DTYPE)
                    add(inputs, context, chunk, now * tl.dot(miss, y), STRIDE, COLUMNS)
                    add(outputs, target, chunk, now * tl.dot(tl.trans(miss), x), STRIDE, COLUMNS)
                tl.debug_barrier()  # the next windows must read these updates
    tl.store(losses + tl.program_id(0), tl.sum(tl.sum(loss, 1), 0))
    tl.store(pairs + tl.program_id(0), tl.sum(tl.sum(pair_count.to(tl.int64), 1), 0))


@triton.jit
def hidden_of(
    i, inputs, ids, span, window, chunk,
    STRIDE: tl.constexpr, CONTEXTS: tl.constexpr, PARTS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Return the sum of the context rows, and their number."""
    hidden, count = tl.zeros([COLUMNS], tl.float32), 0
    for part in tl.static_range(PARTS):
        context = contexts_of(i, ids, span, window, part, CONTEXTS)
        hidden += tl.sum(read(inputs, context, chunk, STRIDE, COLUMNS), 0)
        count += tl.sum((context >= 0).to(tl.int32), 0)
    return hidden, count


@triton.jit(do_not_specialize=["first", "last", "window", "negatives"])
def cbow_kernel(
    inputs, outputs, ids, spans, targets, losses, pairs, first, last, window, negatives, rate, rate_end,
    STRIDE: tl.constexpr, CONTEXTS: tl.constexpr, PARTS: tl.constexpr, TARGETS: tl.constexpr, COLUMNS: tl.constexpr,
    CHUNKS: tl.constexpr, MEAN: tl.constexpr, EXACT: tl.constexpr, MOVE: tl.constexpr,
):  # fmt: skip
    """Train CBOW: the mean or sum of the contexts predicts the center."""
    begin, end = stretch(first, last)
    slope = (rate_end - rate) / tl.maximum(end - begin, 1).to(tl.float32)
    sign = tl.where(tl.arange(0, TARGETS) == 0, 1.0, -1.0)
    loss = tl.zeros([TARGETS], tl.float32)
    window_count = tl.zeros([], tl.int64)
    for i in range(begin, end):
        turn = tl.arange(0, TARGETS)
        target = tl.load(targets + i * (1 + negatives) + turn, mask=turn <= negatives, other=-1)
        span = tl.load(spans + i)
        scores = tl.zeros([TARGETS], tl.float32)
        for chunk in tl.static_range(CHUNKS):
            hidden, count = hidden_of(i, inputs, ids, span, window, chunk, STRIDE, CONTEXTS, PARTS, COLUMNS)
            share = 1.0 / tl.maximum(count, 1).to(tl.float32) if MEAN else 1.0
            y = read(outputs, target, chunk, STRIDE, COLUMNS)
            scores += tl.sum(y * (hidden * share)[None, :], 1)
        active = (target >= 0) & (count > 0)
        right = 1 / (1 + tl.exp(-sign * scores))
        loss -= tl.where(active, log_of(right), 0.0)
        window_count += (count > 0).to(tl.int64)
        if MOVE:
            now = rate + slope * (i - begin).to(tl.float32)
            steps = tl.where(active, now * sign * (1 - right), 0.0)
            for chunk in tl.static_range(CHUNKS):
                if CHUNKS > 1:  # otherwise it is still in registers
                    hidden, count = hidden_of(i, inputs, ids, span, window, chunk, STRIDE, CONTEXTS, PARTS, COLUMNS)
                    y = read(outputs, target, chunk, STRIDE, COLUMNS)
                change = tl.sum(y * steps[:, None], 0) * (share if EXACT else 1.0)
                for part in tl.static_range(PARTS):
                    context = contexts_of(i, ids, span, window, part, CONTEXTS)
                    each = tl.broadcast_to(change[None, :], [CONTEXTS, COLUMNS])
                    add(inputs, context, chunk, each, STRIDE, COLUMNS)
                add(outputs, target, chunk, steps[:, None] * (hidden * share)[None, :], STRIDE, COLUMNS)
            tl.debug_barrier()  # the next window must read these updates
    tl.store(losses + tl.program_id(0), tl.sum(loss, 0))
    tl.store(pairs + tl.program_id(0), window_count)


# ---- host ----


class Rules(NamedTuple):
    """The settings that define windows and their objective."""

    architecture: str = "skipgram"
    window: int = 5
    negatives: int = 5
    shrink: bool = True
    mean: bool = True
    exact: bool = True


class PreparedSlice(NamedTuple):
    """A slice of text ready for training: its kept tokens, with centers from `first` to `last`."""

    ids: Tensor
    spans: Tensor  # left and right reach of each window, packed in one number
    targets: Tensor  # (tokens, 1 + negatives): center word, negative samples; -1 for a repeated one
    first: int
    last: int


class Tiles(NamedTuple):
    """Tile sizes of a program."""

    contexts: int
    targets: int
    columns: int
    warps: int
    dtype: str = "float16"  # of the factors of products; tables and sums are float32
    group: int = 1  # windows trained together (skip-gram)

    @classmethod
    def fitting(cls, rules: Rules, stride: int, group: int = GROUP) -> Tiles:
        """Return the tile sizes for these settings."""
        if rules.architecture == "cbow":
            contexts, group, targets = 2 * rules.window, 1, 1 + rules.negatives
        else:
            group = max(1, min(group, MOST_TARGETS // (1 + rules.negatives)))
            contexts, targets = 2 * rules.window + group, group * (1 + rules.negatives)
        tile = min(MOST_CONTEXTS, power_of_two(contexts)), power_of_two(targets)
        # Wider tiles would not fit the registers:
        columns = min(128 if stride <= 128 and sum(tile) <= 32 else 64, power_of_two(stride))
        warps = max(
            1 << ((sum(tile) // 32).bit_length() - 1), 2 if columns > 64 and rules.architecture != "cbow" else 1
        )
        return cls(*tile, columns, warps, group=group)


def power_of_two(number: int) -> int:
    """Return the next power of two that is at least the smallest tile."""
    return max(SMALLEST_TILE, 1 << (number - 1).bit_length())


class Windows:
    """Embedding tables on a GPU and their training rules; `keep` and `alias` as in `kernels.predict.Task`."""

    def __init__(
        self, rules: Rules, inputs: Tensor, outputs: Tensor, keep: Tensor, alias: Tensor, tiles: Tiles | None = None
    ) -> None:
        self.rules, self.inputs, self.outputs, self.keep, self.alias = rules, inputs, outputs, keep, alias
        self.stride = inputs.stride(0)
        self.tiles = tiles or Tiles.fitting(rules, self.stride)

    def prepare(self, raw: Tensor, starts: Tensor, origin: int, first: int, last: int, seed: int) -> PreparedSlice:
        """Prepare a slice of text.

        `raw` are the words from position `origin` on, and `starts` the positions where documents begin. Positions from
        `first` to `last` are centers; the others can only be contexts.
        """
        rules, device, count = self.rules, raw.device, len(raw)
        slice_seed = torch.tensor([seed - (1 << 64) if seed >> 63 else seed], device=device)
        flags = torch.empty(count, dtype=torch.bool, device=device)
        keep_kernel[(max(1, triton.cdiv(count, BLOCK)),)](raw, self.keep, slice_seed, flags, origin, count, BLOCK=BLOCK)
        positions = torch.nonzero(flags).squeeze(1)
        n_kept = len(positions)
        ids, spans = (torch.empty(n_kept, dtype=torch.int32, device=device) for _ in range(2))
        targets = torch.empty(n_kept, 1 + rules.negatives, dtype=torch.int32, device=device)
        documents = torch.searchsorted(starts, positions + origin, right=True, out_int32=True)
        center_range = torch.tensor([first - origin, last - origin], device=device)
        bounds = torch.searchsorted(positions, torch.cat([center_range, starts - origin]))
        ends, bounds = bounds[:2].tolist(), torch.nn.functional.pad(bounds[2:], (1, 1))
        bounds[-1] = n_kept
        prepare_kernel[(max(1, triton.cdiv(n_kept, BLOCK)),)](
            raw, positions, documents, bounds, self.alias, slice_seed, ids, spans, targets, origin, n_kept,
            len(self.alias), rules.window, rules.negatives, SHRINK=rules.shrink, BLOCK=BLOCK,
        )  # fmt: skip
        return PreparedSlice(ids, spans, targets, *ends)

    def train(
        self, prepared: PreparedSlice, rate: float, rate_end: float, programs: int, move: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Train every window of a slice while the learning rate falls from `rate` to `rate_end`.

        Returns the loss and the number of pairs of each program.
        """
        rules, tiles, device = self.rules, self.tiles, self.inputs.device
        losses = torch.zeros(programs, device=device)
        pairs = torch.zeros(programs, dtype=torch.int64, device=device)
        settings: dict[str, Any] = {"MEAN": rules.mean, "EXACT": rules.mean and rules.exact}
        kernel, slots = cbow_kernel, 2 * rules.window
        if rules.architecture == "skipgram":
            kernel, slots = skipgram_kernel, slots + tiles.group
            settings = {"DTYPE": DTYPES[tiles.dtype], "GROUP": tiles.group}
        kernel[(programs,)](
            self.inputs, self.outputs, *prepared[:3], losses, pairs, prepared.first, prepared.last,
            rules.window, rules.negatives, rate, rate_end,
            STRIDE=self.stride, CONTEXTS=tiles.contexts, PARTS=triton.cdiv(slots, tiles.contexts),
            TARGETS=tiles.targets, COLUMNS=tiles.columns, CHUNKS=triton.cdiv(self.stride, tiles.columns), MOVE=move,
            num_warps=tiles.warps, num_stages=1, **settings,
        )  # fmt: skip
        return losses, pairs

    def bytes_moved(self, prepared: PreparedSlice) -> Tensor:
        """Return the bytes of rows that training a slice reads and writes, from memory or cache."""
        group, negatives = self.tiles.group, self.rules.negatives
        spans = prepared.spans[prepared.first : prepared.last]
        whole = spans[: len(spans) // group * group].view(-1, group)
        turn = torch.arange(group, device=spans.device)
        ends = (turn + (whole >> SIDE.value)).amax(1) - (turn - (whole & SIDE_MASK.value)).amin(1)
        contexts = ends.sum() + (len(ends) if group > 1 else 0)  # the center of a window is a context of the next
        targets = group * (1 + negatives) * len(ends)
        moved: Tensor = 2 * 4 * self.stride * (contexts + targets)
        return moved
