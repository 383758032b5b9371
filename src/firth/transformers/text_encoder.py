"""Fast text encoding: tokenization ahead of time, no padding, and an engine for each device.

On a CPU, Firth's own kernel computes in float32 or int8, a few hundred tokens per core at a time. On a GPU, torch
computes many thousand tokens at a time. Neither pads, so a text's vector does not depend on its batch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from firth.core.errors import FirthError
from firth.core.long_texts import REFUSE, TRUNCATE, TooLongError, note_truncated
from firth.core.report import Silence
from firth.core.run import available_cores
from firth.core.vectors import Matrix
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.kernels.encoder import Encoder as NativeEncoder
from firth.kernels.encoder import Shape
from firth.nets.architecture import GATED_ACTIVATIONS, Architecture
from firth.nets.attention import Packed
from firth.nets.encoder import Encoder, position_ids
from firth.transformers.pooling import Pooling, layer_numbers

WINDOW = 2048  # texts tokenized ahead
BATCH_TOKENS = 32768  # per batch of torch
KERNEL_MODES = {"mean", "cls", "max", "sum", "mean_sqrt_len_tokens"}  # of the native engine
PRECISIONS = {"cpu": ("float32", "int8"), "cuda": ("bf16", "float32")}  # the first is the default

Item = TypeVar("Item")


class Ids(NamedTuple):
    """Concatenated token ids; text t has the ids from starts[t] to starts[t + 1]."""

    flat: NDArray[np.int32]
    starts: NDArray[np.int64]
    skipped: NDArray[np.int64] | None = None  # tokens at the beginning of each text that are not pooled

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]], skipped: NDArray[np.int64] | None = None) -> Ids:
        """Concatenate the ids of texts."""
        starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(ids) for ids in texts], out=starts[1:])
        return cls(np.fromiter(chain.from_iterable(texts), np.int32, starts[-1]), starts, skipped)


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

    def joined(self, rows: Matrix, modes: Sequence[str]) -> Matrix:
        """Pool rows of chunks to rows of texts; a mean is weighted by chunk length."""
        if len(rows) == len(self.firsts):
            return rows
        parts = np.split(rows, len(modes), axis=1)
        return np.concatenate([self.pooled(part, mode) for part, mode in zip(parts, modes, strict=True)], axis=1)

    def pooled(self, rows: Matrix, mode: str) -> Matrix:
        """Pool rows of chunks for one mode."""
        if mode in ("max", "sum"):
            reduced: Matrix = (np.maximum if mode == "max" else np.add).reduceat(rows, self.firsts)
            return reduced
        if mode == "lasttoken":
            return np.asarray(rows[np.append(self.firsts[1:], len(rows)) - 1])
        sizes = np.diff(self.ids.starts).astype(np.float32)
        root = 0.5 if mode == "mean_sqrt_len_tokens" else 1.0  # its sum is divided by the root of the length
        totals = np.add.reduceat(rows * (sizes**root)[:, None], self.firsts)
        return np.asarray(totals / (np.add.reduceat(sizes, self.firsts) ** root)[:, None], np.float32)


class Reader:
    """Tokenizes texts with special tokens. Longer texts are truncated, split into chunks or refused, as `pooling`
    sets."""

    def __init__(self, tokenizer: SubwordTokenizer, pooling: Pooling, max_positions: int, prompt: str = "") -> None:
        self.tokenizer, self.template, self.long, self.prompt = tokenizer, tokenizer.template, pooling.long, prompt
        self.skipped = 0 if pooling.include_prompt else prompt_tokens(tokenizer, prompt)
        self.unknown = -1 if tokenizer.special.unk is None else tokenizer.special.unk.id
        self.limit = pooling.max_tokens or max_positions
        self.read = self.truncated = 0

    def __call__(self, texts: Sequence[str]) -> Read:
        texts = [self.prompt + text for text in texts] if self.prompt else texts
        return self.take(self.tokenizer.ids_batch(texts), [self.skipped] * len(texts) if self.skipped else None)

    def take(self, texts_ids: Sequence[list[int]], skipped: Sequence[int] | None = None) -> Read:
        """Return tokenized texts from token ids; the first `skipped` tokens of each are not pooled."""
        lengths = np.fromiter(map(len, texts_ids), np.int64, len(texts_ids))
        unknown = np.fromiter((ids.count(self.unknown) for ids in texts_ids), np.int64, len(texts_ids))
        chunks, counts = list[Sequence[int]](), np.ones(len(texts_ids), np.int64)
        for number, ids in enumerate(texts_ids):
            parts = [ids] if len(ids) <= self.limit else self.parts(ids, self.read + number)
            chunks += parts
            counts[number] = len(parts)
        self.read += len(texts_ids)
        firsts = np.concatenate([[0], np.cumsum(counts)[:-1]]) if len(counts) else counts
        skips = None
        if skipped is not None and any(skipped):
            skips = np.zeros(len(chunks), np.int64)
            skips[firsts] = skipped  # the prompt is in the first chunk
        return Read(Ids.of(chunks, skips), firsts, lengths - self.template.added - unknown, unknown)

    def parts(self, ids: list[int], number: int) -> list[list[int]]:
        """Truncate, split or refuse a long text."""
        template = self.template
        if self.long == REFUSE:
            raise TooLongError(number, len(ids), self.limit, "Use long=truncate, or long=chunk to process it in parts.")
        if self.long == TRUNCATE:
            self.truncated += 1
            return [template.truncated(ids, self.limit)]
        inner, chunk_tokens = ids[len(template.before) : len(ids) - len(template.after)], self.limit - template.added
        return [template.text(inner[at : at + chunk_tokens]) for at in range(0, len(inner), chunk_tokens)]

    def report_truncation(self) -> None:
        """Issue a note if texts were truncated."""
        note_truncated(Silence(), self.truncated, self.read, self.limit, "Use long=chunk to process them in full.")


def prompt_tokens(tokenizer: SubwordTokenizer, prompt: str) -> int:
    """Return the number of tokens of a prompt at the beginning of a text, with the special tokens before it."""
    return len(tokenizer.encode(prompt).ids) - len(tokenizer.template.after) if prompt else 0


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


def new_engine(net: Encoder, device: str, precision: str) -> Engine:
    """Return an engine for a resolved device and precision."""
    reason = needs_torch(net.size)
    if device == "cpu" and not reason:
        return Native(net, precision == "int8")
    if precision == "int8":
        raise FirthError(
            "unsupported_model",
            "int8 needs Firth's own engine, which does not support {reason}. Use precision=float32.",
            reason=reason,
        )
    return Torch(net, device, precision)


class Native:
    """Engine with Firth's CPU kernel."""

    def __init__(self, net: Encoder, quantized: bool) -> None:
        self.encoder = NativeEncoder(arrays_of(net), native_shape(net.size), quantized)
        self.threads, self.net, self.quantized = available_cores(), net, quantized

    def __call__(self, ids: Ids, pooling: Pooling) -> Callable[[], Matrix]:
        rows = self.rows(ids, pooling)
        return lambda: rows

    @cached_property
    def torch(self) -> Torch:
        """An engine for pooling modes that the kernel does not support."""
        return Torch(self.net, "cpu", "float32")

    def rows(self, ids: Ids, pooling: Pooling) -> Matrix:
        """Return one row per text."""
        if ids.skipped is None and set(pooling.modes) <= KERNEL_MODES:
            parts = [self.mode_rows(ids, pooling, mode) for mode in pooling.modes]
            return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        if self.quantized:
            raise FirthError(
                "unsupported_model",
                "precision=int8 supports the poolings {choices} with include_prompt; this one is {got}. Use float32.",
                choices=", ".join(sorted(KERNEL_MODES)),
                got=pooling.how,
            )
        return self.torch(ids, pooling)()

    def mode_rows(self, ids: Ids, pooling: Pooling, mode: str) -> Matrix:
        """Return one row per text for one pooling mode."""
        layers = self.encoder.shape.layers
        layers_used = layer_numbers(pooling.layers, layers)
        weights = np.zeros(layers + 1, np.float32)
        np.add.at(weights, layers_used, 1 / len(layers_used) if pooling.combine == "mean" else 1)
        concat = pooling.combine == "concat"
        kernel_mode = "mean" if mode == "mean_sqrt_len_tokens" else mode
        rows = self.encoder.encode(ids.flat, ids.starts, weights, concat, kernel_mode, self.threads)
        if mode == "mean_sqrt_len_tokens":  # the sum divided by the root of the length
            rows *= np.sqrt(np.diff(ids.starts).astype(np.float32))[:, None]
        blocks = np.flatnonzero(weights)
        if not concat or layers_used == blocks.tolist():
            return rows
        reordered = rows.reshape(len(rows), len(blocks), -1)[
            :, np.searchsorted(blocks, layers_used)
        ]  # in the given order
        return reordered.reshape(len(rows), -1)


def needs_torch(size: Architecture) -> str:
    """Return why the native engine cannot compute a network; empty if it can."""
    reasons = {
        "grouped-query attention": (size.key_value_heads or size.heads) != size.heads,
        "heads of another width": size.width_of_head * size.heads != size.dim,
        "normalized queries and keys": size.qk_norm,
        "capped scores": size.score_cap > 0,
        "norms after the sublayers": size.sublayer_norms,
        "disentangled attention": size.score_bias == "disentangled",
        "interleaved rotary positions": size.positions == "rotary" and not size.rotary_halves,
    }
    return ", ".join(reason for reason, applies in reasons.items() if applies)


def engine_description(size: Architecture, pooling: Pooling, prompts: bool) -> str:
    """Return which engine computes text vectors, and why; `prompts` if the model has prompts."""
    others = [mode for mode in pooling.modes if mode not in KERNEL_MODES]
    problem = needs_torch(size) or (f"the pooling {', '.join(others)}" if others else "")
    if problem:
        return f"torch, because the native engine does not support {problem}"
    skipped = prompts and not pooling.include_prompt
    more = "; torch for texts with a prompt, which the pooling leaves out" if skipped else ""
    return f"native on a CPU, torch on a GPU{more}"


def native_shape(size: Architecture) -> Shape:
    """Return the shape of a network for the native engine."""
    return Shape(
        layers=size.layers,
        dim=size.dim,
        heads=size.heads,
        hidden=size.width_of_feedforward,
        positions=size.max_positions,
        activation=GATED_ACTIVATIONS.get(size.activation, size.activation),
        epsilon=size.epsilon,
        gated=size.activation in GATED_ACTIVATIONS,
        norm=size.norm,
        pre_norm=size.pre_norm,
        first_norm=size.first_norm,
        embedding_norm=size.embedding_norm,
        final_norm=size.pre_norm,
        window=size.window,
        local_layers=size.local_layers,
        embedding_dim=size.embedding_dim,
        score_scale=size.score_scale or None,
    )


def arrays_of(net: Encoder) -> dict[str, NDArray[np.float32]]:
    """Return the weights of a network by the native engine's names."""
    parts = {"tokens": net.input.tokens.weight * net.input.scale, **position_arrays(net)}
    if net.input.segments is not None:
        parts["segment"] = net.input.segments.weight[0]
    modules: dict[str, nn.Module | None] = {
        "norm": net.input.norm,
        "embedding_projection": net.input.projection,
        "final_norm": net.stack.norm,
    }
    for number, block in enumerate(net.stack.in_order()):
        layers = {
            "query_key_value": block.attention.query_key_value,
            "attention_output": block.attention.output,
            "attention_norm": block.attention_norm,
            "up": block.feed.wide,
            "down": block.feed.back,
            "feed_forward_norm": block.feed_norm,
        }
        modules |= {f"layers.{number}.{name}": layer for name, layer in layers.items()}
    for name, module in modules.items():
        parts |= {f"{name}.{part}": tensor for part, tensor in (module.named_parameters() if module else ())}
    if net.size.activation in GATED_ACTIVATIONS:  # the rows of the gate come first
        for name in [name for name in parts if ".up." in name]:
            parts[name.replace(".up.", ".gate.")], parts[name] = parts[name].chunk(2)
    return {name: part.detach().cpu().float().numpy() for name, part in parts.items()}


@torch.inference_mode()
def position_arrays(net: Encoder) -> dict[str, Tensor]:
    """Return the tables of a network's position schemes by the native engine's names."""
    size, stack, arrays = net.size, net.stack, dict[str, Tensor]()
    device = net.input.tokens.weight.device
    positions = torch.arange(size.max_positions, device=device)
    if net.input.positions is not None:
        arrays["positions"] = net.input.positions(positions)
    for name, rotary in (("rotary", stack.rotary), ("local_rotary", stack.local_rotary)):
        if rotary is not None:
            arrays[f"{name}.cos"], arrays[f"{name}.sin"] = rotary(positions)
    if stack.bias is not None:
        arrays["distance_bias"] = stack.bias(torch.arange(1 - size.max_positions, size.max_positions, device=device))
    return arrays


class Torch:
    """Engine with torch, on a GPU or for what the native engine lacks; it holds a copy of the network."""

    def __init__(self, net: Encoder, device: str, precision: str) -> None:
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
        skipped = None if ids.skipped is None else self.moved(ids.skipped[texts])
        return pooling(states, packed, self.net.size.layers, skipped)

    def moved(self, array: NDArray[Any]) -> torch.Tensor:
        """Return an array as a tensor on the device."""
        tensor = torch.from_numpy(array)
        return tensor.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else tensor
