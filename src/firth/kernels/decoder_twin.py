"""The NumPy twin of `kernels/decoder.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erf

import numpy as np

from firth.kernels.blocks import WIDTH
from firth.kernels.decoder import FloatArray, Layer, Linear, Net, Norm


class TwinDecoder:
    """Processes tokens like `DecoderState`."""

    def __init__(self, net: Net) -> None:
        self.net, self.length = net, 0
        shape = (len(net.layers), net.kv_heads, net.max_positions, net.head_dim)
        dtype = np.float16 if net.half_cache else np.float32
        self.keys, self.values = np.zeros(shape, dtype), np.zeros(shape, dtype)

    def logits(self, ids: Sequence[int]) -> FloatArray:
        """Process tokens and return the logits of the next one."""
        return capped(product(self.net.output_layer, self.states(ids)[-1:])[0], self.net.logit_cap)

    def states(self, ids: Sequence[int]) -> FloatArray:
        """Process tokens and return the normalized output of the last layer for each."""
        net, positions = self.net, np.arange(self.length, self.length + len(ids))
        x = net.embedding.floats()[list(ids)] * np.float32(net.embedding_scale)
        if net.position_vectors is not None:
            x = x + net.position_vectors[positions]
        for number, layer in enumerate(net.layers):
            x = x + self.normed(self.attention(layer, number, self.normed(x, layer.attention_norm), positions),
                                layer.attention_post_norm)  # fmt: skip
            x = x + self.normed(self.feed(layer, self.normed(x, layer.feed_norm)), layer.feed_post_norm)
        self.length += len(ids)
        return self.normed(x, net.norm)

    def normed(self, x: FloatArray, norm: Norm | None) -> FloatArray:
        """Return the norm of rows."""
        return x if norm is None else normalize(x, norm, self.net.rms, self.net.epsilon)

    def attention(self, layer: Layer, number: int, x: FloatArray, positions: np.ndarray) -> FloatArray:
        """Return the output of a layer's attention; tokens are rows of x."""
        net = self.net
        query, key, value = (
            product(linear, x).reshape(len(x), -1, net.head_dim) for linear in (layer.query, layer.key, layer.value)
        )  # tokens × heads × head_dim
        query, key = (
            self.rotated(part if norm is None else normalize(part, norm, True, net.epsilon), layer, positions)
            for part, norm in ((query, layer.query_norm), (key, layer.key_norm))
        )
        self.keys[number][:, positions] = key.swapaxes(0, 1)
        self.values[number][:, positions] = value.swapaxes(0, 1)
        end = int(positions[-1]) + 1
        repeat = net.heads // net.kv_heads
        keys = self.keys[number][:, :end].astype(np.float32).repeat(repeat, 0)  # heads × positions × head_dim
        values = self.values[number][:, :end].astype(np.float32).repeat(repeat, 0)
        scores = capped(np.einsum("thd,hpd->htp", query, keys) * net.scale, net.score_cap)
        distance = positions[:, None] - np.arange(end)
        visible = (distance >= 0) & (distance < (layer.window or end))
        scores = np.where(visible, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = np.einsum("htp,hpd->thd", weights, values).reshape(len(x), -1)
        return product(layer.output, mixed.astype(np.float32))

    def rotated(self, x: FloatArray, layer: Layer, positions: np.ndarray) -> FloatArray:
        """Return the heads of x (tokens, heads, head_dim) with rotary positions."""
        if layer.rotary < 0:
            return x
        pairs, rotated = self.net.rotary.shape[1], x.copy()
        angles = positions.astype(np.float32)[:, None, None] * self.net.rotary[layer.rotary]  # tokens × 1 × pairs
        cos, sin = np.cos(angles), np.sin(angles)
        interleaved = self.net.interleaved
        first = slice(0, 2 * pairs, 2) if interleaved else slice(0, pairs)
        second = slice(1, 2 * pairs, 2) if interleaved else slice(pairs, 2 * pairs)
        rotated[..., first] = x[..., first] * cos - x[..., second] * sin
        rotated[..., second] = x[..., first] * sin + x[..., second] * cos
        return rotated

    def feed(self, layer: Layer, x: FloatArray) -> FloatArray:
        """Return the output of a feed-forward layer."""
        activate = ACTIVATIONS[self.net.activation]
        inner = product(layer.up, x)
        inner = activate(inner) if layer.gate is None else activate(product(layer.gate, x)) * inner
        return product(layer.down, inner.astype(np.float32))


def normalize(x: FloatArray, norm: Norm, rms: bool, epsilon: float) -> FloatArray:
    """Return the layer norm or the root-mean-square norm of rows."""
    x = x if rms else x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * norm.weight
    return np.asarray(x if norm.bias is None else x + norm.bias, np.float32)


def product(linear: Linear, x: FloatArray) -> FloatArray:
    """Return x · weightsᵀ + bias; for quantized weights x is rounded to bytes with a scale per block of 32."""
    rounded = in_bytes(x) if linear.storage.startswith("Q") else x
    out = rounded @ linear.floats().T
    return np.asarray(out if linear.bias is None else out + linear.bias, np.float32)


def in_bytes(x: FloatArray) -> FloatArray:
    """Round x to integers times a scale per block, which makes the largest value of the block 127."""
    blocks = x.reshape(len(x), -1, WIDTH)
    extent = np.abs(blocks).max(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        inverse = np.where(extent > 1e-30, np.float32(127) / extent, np.float32(0))
    return np.asarray(np.rint(blocks * inverse) * (extent / np.float32(127)), np.float32).reshape(x.shape)


def capped(x: FloatArray, limit: float) -> FloatArray:
    """Return limit · tanh(x / limit)."""
    return np.asarray(limit * np.tanh(x / limit), np.float32) if limit else x


ACTIVATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: np.asarray(x / (1 + np.exp(-x))),
    "gelu": lambda x: np.asarray(0.5 * x * (1 + np.vectorize(erf)(x / 2**0.5)), np.float32),
    "gelu_tanh": lambda x: np.asarray(0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))),
}
