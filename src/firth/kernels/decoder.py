"""A causal Transformer on the CPU, from token ids to logits, with a key-value cache.

The prompt is processed in batches, generated tokens one at a time. Then every weight is read once per token, so speed
is bound by memory bandwidth: weights may be quantized (`kernels/blocks.py`), and one kernel avoids the overhead of many
small calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native
from firth.kernels.blocks import STORAGES, dequantize

FloatArray = NDArray[np.float32]
NOTHING = np.zeros(0, np.float32)
CHUNK = 256  # tokens of a prompt processed together, so that their activations stay in the cache
PANEL = 16  # positions whose keys are stored together
LEAST_CAPACITY = 256  # positions of a new cache


@dataclass(frozen=True)
class Linear:
    """A matrix, one row per output, and a bias. Rows are float32, float16, or bytes of blocks in the given storage."""

    rows: NDArray[Any]
    storage: str = "F32"
    bias: FloatArray | None = None

    @property
    def columns(self) -> int:
        """The number of inputs."""
        if self.rows.dtype != np.uint8:
            return int(self.rows.shape[1])
        storage = STORAGES[self.storage]
        return int(self.rows.shape[1]) // storage.size * storage.width

    @property
    def stored(self) -> NDArray[np.uint8]:
        """The rows as bytes."""
        return np.ascontiguousarray(self.rows).view(np.uint8)

    def floats(self) -> FloatArray:
        """Return the rows as float32."""
        return dequantize(self.stored, self.storage)


@dataclass(frozen=True)
class Norm:
    """The weight and bias of a norm."""

    weight: FloatArray
    bias: FloatArray | None = None


@dataclass(frozen=True)
class Layer:
    """A layer: x + post_norm(attention(norm(x))), then the same with the feed-forward layer. Norms may be absent.

    The feed-forward layer is down(activation(up(x))), or with a gate down(activation(gate(x)) · up(x)).
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    up: Linear
    down: Linear
    gate: Linear | None = None
    attention_norm: Norm | None = None
    attention_post_norm: Norm | None = None
    feed_norm: Norm | None = None
    feed_post_norm: Norm | None = None
    query_norm: Norm | None = None  # root-mean-square norms of each head
    key_norm: Norm | None = None
    window: int = 0  # positions attended to, with the token's own; 0 = all
    rotary: int = -1  # number of the rotary table; -1 = none

    @property
    def norms(self) -> tuple[Norm | None, ...]:
        """The norms in the order of the kernel."""
        return (
            self.attention_norm, self.attention_post_norm, self.feed_norm, self.feed_post_norm, self.query_norm,
            self.key_norm,
        )  # fmt: skip

    @property
    def linears(self) -> tuple[Linear | None, ...]:
        """The matrices in the order of the kernel."""
        return (self.query, self.key, self.value, self.output, self.gate, self.up, self.down)


@dataclass(frozen=True)
class Net:
    """The shape and weights of a network."""

    embedding: Linear
    layers: Sequence[Layer]
    norm: Norm
    heads: int
    kv_heads: int
    head_dim: int
    max_positions: int
    activation: str  # gelu, gelu_tanh, relu, silu
    epsilon: float
    outputs: Linear | None = None  # None: the embedding
    rms: bool = False  # root-mean-square norms instead of layer norms
    rotary: FloatArray = field(default_factory=lambda: NOTHING.reshape(0, 0))  # angle per position: tables × pairs
    interleaved: bool = False  # rotated pairs are adjacent dimensions, or else d and d + pairs
    attention_scale: float | None = None  # None: 1/√head_dim
    score_cap: float = 0.0  # scores become cap · tanh(score / cap); 0 = none
    logit_cap: float = 0.0
    embedding_scale: float = 1.0
    position_vectors: FloatArray | None = None  # added to the embeddings
    half_cache: bool = False  # keys and values in float16

    @property
    def dim(self) -> int:
        """The width of the model."""
        return self.embedding.columns

    @property
    def hidden(self) -> int:
        """The width of the feed-forward layer."""
        return self.layers[0].down.columns

    @property
    def scale(self) -> float:
        """The factor of the scores."""
        return self.head_dim**-0.5 if self.attention_scale is None else self.attention_scale

    @property
    def output_layer(self) -> Linear:
        """The matrix that gives the logits."""
        return self.embedding if self.outputs is None else self.outputs


class PackedWeights:
    """Matrices in the layout of the kernel. Floats stay where they are; blocks are copied into one piece of memory."""

    def __init__(self, linears: Iterable[Linear]) -> None:
        self.arrays: list[Any] = []  # the kernel has pointers to these arrays
        self.native: dict[int, _native.Weights] = {}
        for linear in linears:
            if id(linear) in self.native:
                continue
            rows, bias = linear.stored, NOTHING if linear.bias is None else flat(linear.bias)
            self.arrays += [linear, rows, bias]
            self.native[id(linear)] = _native.Weights(linear.storage, rows, linear.columns, bias)
        sizes = {key: -(-weights.packed_size() // 64) * 64 for key, weights in self.native.items()}
        # One array: NumPy asks the system for large pages for it, which makes reading faster.
        self.memory = np.empty(sum(sizes.values()) + 64, np.uint8)
        at = -self.memory.ctypes.data % 64
        for key, weights in self.native.items():
            if sizes[key]:
                weights.pack(self.memory[at : at + sizes[key]])
            at += sizes[key]

    def __getitem__(self, linear: Linear) -> _native.Weights:
        return self.native[id(linear)]


class Decoder:
    """The native kernel of a network. It may serve several caches."""

    def __init__(self, net: Net, threads: int) -> None:
        self.net, self.threads = net, threads
        used = [linear for layer in net.layers for linear in layer.linears if linear is not None]
        self.weights = weights = PackedWeights([*used, net.output_layer])
        # Rows of the embedding are read one by one, so it is not packed unless it gives the logits too.
        rows = net.embedding.stored
        embedding = _native.Weights(net.embedding.storage, rows, net.dim, NOTHING)
        positions = NOTHING if net.position_vectors is None else flat(net.position_vectors)
        last = norm_arrays([net.norm])
        self.arrays: list[Any] = [rows, embedding, positions, last]  # the kernel has pointers to them
        self.kernel = _native.Decoder(
            heads=net.heads,
            kv_heads=net.kv_heads,
            head_dim=net.head_dim,
            hidden=net.hidden,
            positions=net.max_positions,
            rms=net.rms,
            epsilon=net.epsilon,
            activation=net.activation,
            rotary_pairs=net.rotary.shape[1],
            interleaved=net.interleaved,
            rotary_tables=len(net.rotary),
            attention_scale=net.scale,
            score_cap=net.score_cap,
            logit_cap=net.logit_cap,
            embedding_scale=net.embedding_scale,
            half_cache=net.half_cache,
            embedding=embedding,
            position_vectors=positions,
            norm=last,
            outputs=weights[net.output_layer],
        )
        for layer in net.layers:
            norms = norm_arrays(layer.norms)
            self.arrays.append(norms)
            linears = [None if linear is None else weights[linear] for linear in layer.linears]
            query, key, value, output, gate, up, down = linears
            self.kernel.add_layer(norms, query, key, value, output, gate, up, down, layer.window, layer.rotary)

    @property
    def max_positions(self) -> int:
        """The length of the longest sequence."""
        return self.net.max_positions

    def start(self) -> DecoderState:
        """Return an empty cache."""
        return DecoderState(self)


class DecoderState:
    """The keys and values of the tokens processed so far. Their memory grows with them."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder, self.length, self.capacity = decoder, 0, 0
        self.keys = self.values = np.zeros(0, np.uint8)
        self.rotary = NOTHING

    def reserve(self, positions: int) -> None:
        """Make room for this number of positions."""
        net = self.decoder.net
        if positions > net.max_positions:
            raise ValueError(f"positions must be inside the context of {net.max_positions:,}; got {positions:,}.")
        if positions <= self.capacity:
            return
        most = -(-net.max_positions // PANEL) * PANEL
        capacity = min(most, max(2 * self.capacity, -(-positions // PANEL) * PANEL, LEAST_CAPACITY))
        self.keys, self.values = (self.moved(cache, capacity) for cache in (self.keys, self.values))
        self.rotary, self.capacity = flat(rotations(net.rotary, np.arange(capacity))), capacity

    def moved(self, cache: NDArray[np.uint8], capacity: int) -> NDArray[np.uint8]:
        """Return a larger cache with the same content."""
        larger = np.zeros(self.decoder.kernel.cache_bytes(capacity), np.uint8)
        heads = len(self.decoder.net.layers) * self.decoder.net.kv_heads
        if self.capacity:
            larger.reshape(heads, -1)[:, : cache.size // heads] = cache.reshape(heads, -1)
        return larger

    def logits(self, ids: Sequence[int] | NDArray[np.int32]) -> FloatArray:
        """Process tokens and return the logits of the next one."""
        logits = np.empty(len(self.decoder.net.output_layer.rows), np.float32)
        self._forward(ids, logits, None)
        return logits

    def states(self, ids: Sequence[int] | NDArray[np.int32]) -> FloatArray:
        """Process tokens and return the normalized output of the last layer for each."""
        states = np.empty((len(ids), self.decoder.net.dim), np.float32)
        self._forward(ids, NOTHING, states)
        return states

    def _forward(self, ids: Sequence[int] | NDArray[np.int32], logits: FloatArray, states: FloatArray | None) -> None:
        tokens, kernel, threads = np.ascontiguousarray(ids, np.int32), self.decoder.kernel, self.decoder.threads
        self.reserve(self.length + len(tokens))
        for first in range(0, len(tokens), CHUNK):
            chunk = tokens[first : first + CHUNK]
            rows = NOTHING if states is None else states[first : first + CHUNK].ravel()
            last = logits if first + CHUNK >= len(tokens) else NOTHING
            kernel.forward(chunk, self.length, self.capacity, self.rotary, self.keys, self.values, rows, last, threads)
            self.length += len(chunk)


def rotations(frequencies: FloatArray, positions: NDArray[np.int64]) -> FloatArray:
    """Return cosines and sines of each table, position and pair of dimensions: (tables, positions, 2, pairs)."""
    angles = positions.astype(np.float32)[:, None] * frequencies[:, None]
    return np.stack([np.cos(angles), np.sin(angles)], axis=2)


def flat(array: FloatArray) -> FloatArray:
    """Return the values in one dimension."""
    return np.ascontiguousarray(array, np.float32).ravel()


def norm_arrays(norms: Iterable[Norm | None]) -> list[FloatArray]:
    """Return weight and bias of each norm, empty where there is none."""
    parts = [part for norm in norms for part in ((None, None) if norm is None else (norm.weight, norm.bias))]
    return [NOTHING if part is None else flat(part) for part in parts]
