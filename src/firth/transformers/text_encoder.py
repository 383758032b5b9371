"""Fast text encoding: tokenization ahead of time, no padding, and an engine for each device.

On a CPU, Firth's own kernel computes in float32 or int8, a few hundred tokens per core at a time. On a GPU, torch
computes many thousand tokens at a time. Neither pads, so a text's vector does not depend on its batch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.long_texts import REFUSE, TRUNCATE, TooLongError, note_truncated
from firth.core.report import Silence
from firth.core.run import available_cores
from firth.core.vectors import Matrix
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.kernels.encoder import Encoder, Shape
from firth.nets.attention import Packed
from firth.nets.bert import Bert, position_ids
from firth.transformers.pooling import Pooling, layer_numbers

WINDOW = 2048  # texts tokenized ahead
BATCH_TOKENS = 32768  # per batch on a GPU
PRECISIONS = {"cpu": ("float32", "int8"), "cuda": ("bf16", "float32")}  # the first is the default

Item = TypeVar("Item")


class Ids(NamedTuple):
    """Concatenated token ids; text t has the ids from starts[t] to starts[t + 1]."""

    flat: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]]) -> Ids:
        """Concatenate the ids of texts."""
        starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(ids) for ids in texts], out=starts[1:])
        return cls(np.fromiter(chain.from_iterable(texts), np.int32, starts[-1]), starts)


class Engine(Protocol):
    """Computes text vectors on a device."""

    def __call__(self, ids: Ids, pooling: Pooling) -> Callable[[], Matrix]:
        """Start the computation; the returned function waits for it and returns one unnormalized row per text."""


# ---- tokenization ----


class Read(NamedTuple):
    """Tokenized texts; a long text may have several chunks."""

    ids: Ids  # of the chunks
    firsts: NDArray[np.int64]  # first chunk of each text
    known: NDArray[np.int64]  # known tokens per text, without special tokens
    unknown: NDArray[np.int64]

    def joined(self, rows: Matrix, how: str) -> Matrix:
        """Pool rows of chunks to rows of texts; a mean is weighted by chunk length."""
        if len(rows) == len(self.firsts):
            return rows
        if how in ("max", "sum"):
            reduced: Matrix = (np.maximum if how == "max" else np.add).reduceat(rows, self.firsts)
            return reduced
        sizes = np.diff(self.ids.starts).astype(np.float32)
        totals = np.add.reduceat(rows * sizes[:, None], self.firsts)
        return np.asarray(totals / np.add.reduceat(sizes, self.firsts)[:, None], np.float32)


class Reader:
    """Tokenizes texts with [CLS] and [SEP]. Longer texts are truncated, split into chunks or refused, as `pooling`
    sets."""

    def __init__(self, tokenizer: SubwordTokenizer, pooling: Pooling, max_positions: int) -> None:
        self.tokenizer, self.long = tokenizer, pooling.long
        self.first, self.last, self.unknown = (tokenizer.ids[token] for token in ("[CLS]", "[SEP]", "[UNK]"))
        self.limit = pooling.max_tokens or max_positions
        self.read = self.truncated = 0
        if tokenizer.ids_batch([""]) != [[self.first, self.last]]:
            raise FirthError(
                "invalid_tokenizer",
                "The tokenizer of a BERT must add {special} to a text; this one does not.",
                special="[CLS] and [SEP]",
            )

    def __call__(self, texts: Sequence[str]) -> Read:
        return self.take(self.tokenizer.ids_batch(texts))

    def take(self, texts_ids: Sequence[list[int]]) -> Read:
        """Return tokenized texts from token ids."""
        lengths = np.fromiter(map(len, texts_ids), np.int64, len(texts_ids))
        unknown = np.fromiter((ids.count(self.unknown) for ids in texts_ids), np.int64, len(texts_ids))
        chunks, counts = list[Sequence[int]](), np.ones(len(texts_ids), np.int64)
        for number, ids in enumerate(texts_ids):
            parts = [ids] if len(ids) <= self.limit else self.parts(ids, self.read + number)
            chunks += parts
            counts[number] = len(parts)
        self.read += len(texts_ids)
        firsts = np.concatenate([[0], np.cumsum(counts)[:-1]]) if len(counts) else counts
        return Read(Ids.of(chunks), firsts, lengths - 2 - unknown, unknown)

    def parts(self, ids: list[int], number: int) -> list[list[int]]:
        """Truncate, split or refuse a long text."""
        if self.long == REFUSE:
            raise TooLongError(number, len(ids), self.limit, "Use long=truncate, or long=chunk to process it in parts.")
        if self.long == TRUNCATE:
            self.truncated += 1
            return [[*ids[: self.limit - 1], self.last]]
        inner, chunk_tokens = ids[1:-1], self.limit - 2
        return [[self.first, *inner[at : at + chunk_tokens], self.last] for at in range(0, len(inner), chunk_tokens)]

    def report_truncation(self) -> None:
        """Issue a note if texts were truncated."""
        note_truncated(Silence(), self.truncated, self.read, self.limit, "Use long=chunk to process them in full.")


def prefetched(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items; the next one is computed on another thread meanwhile."""
    with ThreadPoolExecutor(1) as worker:
        pending = worker.submit(next, items, None)
        while (item := pending.result()) is not None:
            pending = worker.submit(next, items, None)
            yield item


# ---- engines ----


def resolve_engine(device: str, precision: str) -> tuple[str, str]:
    """Return the device and precision, with "auto" resolved."""
    if device not in ("auto", *PRECISIONS):
        raise FirthError(
            "invalid_value",
            "{option} must be auto, {choices}; got {got!r}.",
            option="device",
            choices=" or ".join(PRECISIONS),
            got=device,
        )
    has_gpu = torch.cuda.is_available()
    if device == "cuda" and not has_gpu:
        raise FirthError("no_gpu", "device=cuda, but torch finds no GPU. Use device=cpu.")
    if device == "auto":
        device = "cuda" if has_gpu and precision != "int8" else "cpu"
    choices = PRECISIONS[device]
    if precision not in ("auto", *choices):
        raise FirthError(
            "invalid_value",
            "On {device}, {option} must be auto, {choices}; got {got!r}.",
            device=device,
            option="precision",
            choices=" or ".join(choices),
            got=precision,
        )
    return device, choices[0] if precision == "auto" else precision


def new_engine(net: Bert, device: str, precision: str) -> Engine:
    """Return an engine for a resolved device and precision."""
    return Native(net, precision == "int8") if device == "cpu" else Torch(net, device, precision)


class Native:
    """Engine with Firth's CPU kernel."""

    def __init__(self, net: Bert, bytes: bool) -> None:
        size = net.size
        shape = Shape(
            size.layers,
            size.dim,
            size.heads,
            size.feedforward_dim or 4 * size.dim,
            size.max_positions,
            size.activation,
            size.epsilon,
        )
        self.encoder = Encoder(arrays_of(net), shape, bytes)
        self.threads = available_cores()

    def __call__(self, ids: Ids, pooling: Pooling) -> Callable[[], Matrix]:
        rows = self.rows(ids, pooling)
        return lambda: rows

    def rows(self, ids: Ids, pooling: Pooling) -> Matrix:
        """Return one row per text."""
        layers = self.encoder.shape.layers
        layers_used = layer_numbers(pooling.layers, layers)
        weights = np.zeros(layers + 1, np.float32)
        np.add.at(weights, layers_used, 1 / len(layers_used) if pooling.combine == "mean" else 1)
        concat = pooling.combine == "concat"
        rows = self.encoder.encode(ids.flat, ids.starts, weights, concat, pooling.how, self.threads)
        blocks = np.flatnonzero(weights)
        if not concat or layers_used == blocks.tolist():
            return rows
        reordered = rows.reshape(len(rows), len(blocks), -1)[
            :, np.searchsorted(blocks, layers_used)
        ]  # in the given order
        return reordered.reshape(len(rows), -1)


def arrays_of(net: Bert) -> list[NDArray[np.float32]]:
    """Return the weights of a network in the order of the kernel."""
    embedding = net.input
    parts = [embedding.tokens.weight, embedding.positions.weight, embedding.segments.weight[0]]
    parts += [embedding.norm.weight, embedding.norm.bias]
    for number in range(net.size.layers):
        block: Any = net.stack.blocks[number]
        attention, feed = block.attention, block.feed
        layers = (attention.query_key_value, attention.output, block.attention_norm, feed.wide, feed.back)
        parts += [part for layer in (*layers, block.feed_norm) for part in (layer.weight, layer.bias)]
    return [part.detach().cpu().float().numpy() for part in parts]


class Torch:
    """Engine with torch on a GPU; it holds a copy of the network in its precision."""

    def __init__(self, net: Bert, device: str, precision: str) -> None:
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        self.net = copy.deepcopy(net).to(device, dtype).eval()
        self.device = torch.device(device)

    @torch.inference_mode()
    def __call__(self, ids: Ids, pooling: Pooling) -> Callable[[], Matrix]:
        lengths = np.diff(ids.starts)
        order = np.argsort(lengths, kind="stable")
        parts, first = list[torch.Tensor](), 0
        ends = np.cumsum(lengths[order])
        while first < len(order):
            before = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + BATCH_TOKENS, side="right")))
            parts.append(self.rows(ids, order[first:last], lengths, pooling))
            first = last

        def rows() -> Matrix:
            joined = np.empty((len(order), pooling.dim(self.net.size.dim)), np.float32)
            if parts:
                joined[order] = torch.cat(parts).cpu().numpy()  # the only synchronization
            return joined

        return rows

    def rows(self, ids: Ids, texts: NDArray[np.int64], lengths: NDArray[np.int64], pooling: Pooling) -> torch.Tensor:
        """Return one row per selected text, on the device."""
        sizes = lengths[texts]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        positions = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
        flat = ids.flat[np.repeat(ids.starts[texts], sizes) + positions]
        tokens, begin = self.moved(flat.astype(np.int64)), self.moved(starts.astype(np.int32))
        packed = Packed(begin, int(sizes.max()), tuple(sizes.tolist()))
        states = self.net.states(tokens, position_ids(packed, len(flat)), torch.zeros_like(tokens), packed)
        return pooling(states, packed, self.net.size.layers)

    def moved(self, array: NDArray[Any]) -> torch.Tensor:
        """Return an array as a tensor on the device."""
        tensor = torch.from_numpy(array)
        return tensor.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else tensor
