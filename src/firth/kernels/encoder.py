"""A transformer encoder on the CPU, from token ids to one vector per text, in float32 or int8.

One kernel computes BERT and its relatives: norms before or after the sublayers; learned, rotary or relative positions;
gated feed-forward layers; local attention. `Shape` selects these, and the names of the weights say what is present.

In int8, each output of a weight matrix has its own scale (the largest weight becomes 127), and each input row has its
own scale and zero point (the smallest value becomes 0, the largest 255), computed on the fly. Products are summed as
integers; everything else stays in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "silu")
NORMS = ("layer", "rms")
POOLS = ("mean", "cls", "max", "sum")
CHUNK = 256  # tokens that a thread takes through all layers at once, so that activations stay in its cache

FloatArray = NDArray[np.float32]
Weights = Mapping[str, FloatArray]


@dataclass(frozen=True)
class Shape:
    """The shape of an encoder; the defaults are BERT's."""

    layers: int
    dim: int
    heads: int
    hidden: int  # width of the feed-forward layer
    positions: int  # tokens of the longest text
    activation: str = "gelu"
    epsilon: float = 1e-12
    gated: bool = False  # the feed-forward is down(activation(gate(x)) * up(x)), not down(activation(up(x)))
    norm: str = "layer"
    pre_norm: bool = False  # sublayers read the normalized x; otherwise their sum with x is normalized
    first_norm: bool = True  # False: block 0 has no attention norm
    embedding_norm: bool = True
    final_norm: bool = False  # the output of the last layer is normalized
    window: int = 0  # in local layers, a query sees keys at most this far away
    local_layers: tuple[int, ...] = ()
    embedding_dim: int = 0  # width of the embedding tables if they are projected to dim, otherwise 0
    score_scale: float | None = None  # of the products of queries and keys; by default 1 / sqrt(dim / heads)

    def __post_init__(self) -> None:
        for name, choices in (("activation", ACTIVATIONS), ("norm", NORMS)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}; got {getattr(self, name)!r}.")

    @property
    def scale(self) -> float:
        """The factor of the scores."""
        return 1 / math.sqrt(self.dim // self.heads) if self.score_scale is None else self.score_scale


class Encoder:
    """The native encoder.

    `weights` maps names to arrays; those in brackets may be missing, and so may every bias:

    - `tokens` (vocabulary, embedding_dim), [`positions`] (positions, embedding_dim), [`segment`] (embedding_dim,);
      `norm.weight`, `norm.bias` with `embedding_norm`; `embedding_projection.weight` (dim, embedding_dim) and `.bias`
      with `embedding_dim`; `final_norm.weight`, `.bias` with `final_norm`
    - for each layer N, `layers.N.` followed by `query_key_value` (3 dim, dim; queries, keys and values stacked, each
      head by head), `attention_output` (dim, dim), `gate` (hidden, dim; if gated), `up` (hidden, dim),
      `down` (dim, hidden), `attention_norm` and `feed_forward_norm` (dim,); each with `.weight` and `.bias`
    - [`rotary.cos`, `rotary.sin`] (positions, rotated / 2): dimensions i and i + rotated / 2 of a head's queries and
      keys are rotated by these angles; [`local_rotary.cos`, `local_rotary.sin`]: the same for local layers
    - [`distance_bias`] (heads, 2 positions - 1): added to the scores; column positions - 1 + j - i is for the key at j
      and the query at i

    A missing, misshapen or unknown array raises a ValueError that names it.
    """

    def __init__(self, weights: Weights, shape: Shape, quantized: bool = False) -> None:
        self.shape = shape
        self._native = _native.Encoder(
            [(name, np.ascontiguousarray(array, dtype=np.float32)) for name, array in weights.items()],
            layers=shape.layers,
            dim=shape.dim,
            heads=shape.heads,
            hidden=shape.hidden,
            positions=shape.positions,
            embedding_dim=shape.embedding_dim,
            activation=ACTIVATIONS.index(shape.activation),
            gated=shape.gated,
            rms_norm=shape.norm == "rms",
            pre_norm=shape.pre_norm,
            first_norm=shape.first_norm,
            embedding_norm=shape.embedding_norm,
            final_norm=shape.final_norm,
            epsilon=shape.epsilon,
            score_scale=shape.scale,
            window=shape.window,
            local_layers=list(shape.local_layers),
            quantized=quantized,
        )

    def encode(
        self,
        ids: NDArray[np.int32],
        starts: NDArray[np.int64],
        weights: NDArray[np.float32],
        concat: bool = False,
        pool: str = "mean",
        threads: int = 1,
    ) -> FloatArray:
        """Return one row per text; text t has the ids from starts[t] to starts[t + 1].

        `weights` has one entry per layer, the embeddings first. The pooled vector is the weighted sum of the layers;
        with `concat`, the layers with a nonzero weight are concatenated unweighted. A final norm belongs to the last
        layer.
        """
        width = self.shape.dim * (int((weights != 0).sum()) if concat else 1)
        out = np.empty((len(starts) - 1, width), dtype=np.float32)
        if len(out):
            self._native.encode(ids, starts, weights, concat, POOLS.index(pool), CHUNK, out, threads)
        return out


# ---- NumPy reference implementation ----


class Twin:
    """The encoder in NumPy, for one text at a time."""

    def __init__(self, weights: Weights, shape: Shape, quantized: bool = False) -> None:
        self.weights, self.shape, self.quantized = weights, shape, quantized

    def __call__(self, ids: NDArray[np.int32], pool: str = "mean") -> FloatArray:
        """Return the pooled vectors of all layers, (layers + 1, dim)."""
        shape, states = self.shape, [self.embed(ids)]
        for layer in range(shape.layers):
            states.append(self.block(states[-1], layer))
        if shape.final_norm:
            states[-1] = self.normalize(states[-1], "final_norm")
        pools: dict[str, Callable[[FloatArray], FloatArray]] = {
            "mean": lambda x: x.mean(axis=0),
            "cls": lambda x: x[0],
            "max": lambda x: x.max(axis=0),
            "sum": lambda x: x.sum(axis=0),
        }
        return np.stack([pools[pool](x) for x in states]).astype(np.float32)

    def embed(self, ids: NDArray[np.int32]) -> FloatArray:
        """Return the input of the first block, one row per token."""
        x = self.weights["tokens"][ids]
        if "positions" in self.weights:
            x = x + self.weights["positions"][: len(ids)]
        x = x + self.weights.get("segment", np.float32(0))
        if self.shape.embedding_norm:
            x = self.normalize(x, "norm")
        return self.linear(x, "embedding_projection") if self.shape.embedding_dim else x

    def block(self, x: FloatArray, layer: int) -> FloatArray:
        """Return x after attention and feed-forward."""
        for sublayer, norm in ((self.attention, "attention_norm"), (self.feed_forward, "feed_forward_norm")):
            if layer == 0 and norm == "attention_norm" and not self.shape.first_norm:
                x = x + sublayer(x, layer)
            elif self.shape.pre_norm:
                x = x + sublayer(self.normalize(x, f"layers.{layer}.{norm}"), layer)
            else:
                x = self.normalize(x + sublayer(x, layer), f"layers.{layer}.{norm}")
        return x

    def attention(self, x: FloatArray, layer: int) -> FloatArray:
        """Return multi-head attention of x to itself."""
        shape, weights, length = self.shape, self.weights, len(x)
        scale = np.ones((3 * shape.dim, 1), np.float32)
        scale[: shape.dim] = shape.scale  # applied to the weights, not to the scores
        query, key, value = (
            part.reshape(length, shape.heads, -1).transpose(1, 0, 2)
            for part in np.split(self.linear(x, f"layers.{layer}.query_key_value", scale), 3, axis=1)
        )
        local = layer in shape.local_layers
        name = "local_rotary" if local and "local_rotary.cos" in weights else "rotary"
        if f"{name}.cos" in weights:
            cos, sin = weights[f"{name}.cos"][:length], weights[f"{name}.sin"][:length]
            query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        scores = query @ key.transpose(0, 2, 1)
        distances = np.arange(length) - np.arange(length)[:, None]  # key minus query
        if "distance_bias" in weights:
            scores = scores + weights["distance_bias"][:, shape.positions - 1 + distances]
        if local:
            scores = np.where(np.abs(distances) <= shape.window, scores, -np.inf)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        return self.linear(mixed.transpose(1, 0, 2).reshape(length, -1), f"layers.{layer}.attention_output")

    def feed_forward(self, x: FloatArray, layer: int) -> FloatArray:
        """Return the feed-forward of each row."""
        up = self.linear(x, f"layers.{layer}.up")
        if self.shape.gated:
            hidden = activate(self.linear(x, f"layers.{layer}.gate"), self.shape.activation) * up
        else:
            hidden = activate(up, self.shape.activation)
        return self.linear(hidden, f"layers.{layer}.down")

    def linear(self, x: FloatArray, name: str, scale: FloatArray | None = None) -> FloatArray:
        """Return a linear layer of each row; `scale` multiplies its outputs."""
        weight = self.weights[f"{name}.weight"]
        bias = self.weights.get(f"{name}.bias", np.zeros(len(weight), np.float32))
        if scale is not None:
            weight, bias = weight * scale, bias * scale[:, 0]
        return (int8_linear if self.quantized else float_linear)(x, weight, bias)

    def normalize(self, x: FloatArray, name: str) -> FloatArray:
        """Return the layer norm or RMS norm of each row."""
        if self.shape.norm == "layer":
            x = x - x.mean(axis=1, keepdims=True)
        deviation = np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(self.shape.epsilon))
        bias = self.weights.get(f"{name}.bias", np.float32(0))
        return np.asarray(x / deviation * self.weights[f"{name}.weight"] + bias, np.float32)


def rotate(x: FloatArray, cos: FloatArray, sin: FloatArray) -> FloatArray:
    """Rotate dimensions i and i + half of (heads, positions, dim) by the angles of their position."""
    half = cos.shape[1]
    low, high, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return np.concatenate([low * cos - high * sin, high * cos + low * sin, rest], axis=-1)


def float_linear(x: FloatArray, weight: FloatArray, bias: FloatArray) -> FloatArray:
    """Return x · weightᵀ + bias in float32."""
    return np.asarray(x @ weight.T + bias, np.float32)


def int8_linear(x: FloatArray, weight: FloatArray, bias: FloatArray) -> FloatArray:
    """Return x · weightᵀ + bias with 8-bit weights and inputs."""
    scales = np.abs(weight).max(axis=1, keepdims=True) / 127
    scales[scales == 0] = 1
    weight_codes = np.trunc(weight / scales + np.copysign(0.5, weight)).astype(np.int32)
    low, high = (np.minimum(x.min(axis=1), 0), np.maximum(x.max(axis=1), 0))
    steps = np.where(high > low, (high - low) / 255, 1).astype(np.float32)[:, None]
    zeros = np.floor(0.5 - low[:, None] / steps)
    codes = np.clip(np.floor(x / steps + zeros + 0.5), 0, 255).astype(np.int32)
    sums = codes @ weight_codes.T - zeros * weight_codes.sum(axis=1)
    return np.asarray(sums * (steps * scales.T) + bias, np.float32)


def activate(x: FloatArray, activation: str) -> FloatArray:
    """Return the activation of each element."""
    if activation == "relu":
        return np.maximum(x, 0)
    if activation == "silu":
        return np.asarray(x / (1 + np.exp(-x)), np.float32)
    if activation == "gelu":
        erf = np.vectorize(math.erf, otypes=[np.float32])
        return np.asarray(0.5 * x * (1 + erf(x / math.sqrt(2))), np.float32)
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), np.float32)
