"""One token through a causal Transformer with norms before its parts, on a CPU: what writing text costs.

Every weight is used once for a token, so the pace is that of memory; a net of many small calls stays far behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

Numbers = NDArray[np.float32]
NOTHING = np.zeros(0, np.float32)


@dataclass(frozen=True)
class Net:
    """The arrays of a net. A layer has 12: weights and biases of the norm before attention, of queries, keys and values
    (3 · dim × dim), of the attention's output, of the norm before the feed-forward, of its way up (of a gate first, for
    swiglu) and back."""

    layers: Sequence[Sequence[Numbers]]
    norm: tuple[Numbers, Numbers]
    outputs: Numbers  # words × dim
    heads: int
    places: int
    activation: str  # gelu, gelu_tanh, relu, swiglu
    epsilon: float

    @property
    def dim(self) -> int:
        return int(self.outputs.shape[1])

    @property
    def hidden(self) -> int:
        return int(self.layers[0][10].shape[1])


class Writer:
    """Keeps the keys and values of the places before."""

    def __init__(self, net: Net, threads: int) -> None:
        self.net, self.threads = net, threads
        arrays = [*(array for layer in net.layers for array in layer), *net.norm, net.outputs]
        self.arrays = [np.ascontiguousarray(array).ravel() for array in arrays]  # the kernel points into them
        self.keys, self.values = (
            np.zeros((len(net.layers), net.heads, net.places, net.dim // net.heads), np.float32) for _ in range(2)
        )
        words, shape = len(net.outputs), (len(net.layers), net.dim, net.heads, net.hidden, net.places)
        self.kernel = _native.Writer(self.arrays, *shape, words, net.activation, net.epsilon)

    def write(self, x: Numbers, place: int, turns: Numbers = NOTHING) -> Numbers:
        """Logits of the token after the one with the vector `x` at `place`. `turns`: the cosines, then the sines, of
        rotary positions at this place."""
        logits = np.empty(len(self.net.outputs), np.float32)
        x = x.astype(np.float32)
        self.kernel.write(x, place, turns, self.keys.ravel(), self.values.ravel(), logits, self.threads)
        return logits


class TwinWriter(Writer):
    """The same in NumPy, to be read."""

    def write(self, x: Numbers, place: int, turns: Numbers = NOTHING) -> Numbers:
        net = self.net
        for layer, arrays in enumerate(net.layers):
            norm, norm_bias, qkv, qkv_bias, output, output_bias, feed, feed_bias, wide, wide_bias, back, back_bias = (
                arrays
            )
            parts = (qkv @ normed(x, norm, norm_bias, net.epsilon) + qkv_bias).reshape(3, net.heads, -1)
            query, key, value = (turned(parts[0], turns), turned(parts[1], turns), parts[2])
            self.keys[layer, :, place], self.values[layer, :, place] = key, value
            keys, values = self.keys[layer, :, : place + 1], self.values[layer, :, : place + 1]
            scores = np.einsum("hd,hpd->hp", query, keys) / np.sqrt(query.shape[1])
            weights = np.exp(scores - scores.max(1, keepdims=True))
            weights /= weights.sum(1, keepdims=True)
            x = x + output @ np.einsum("hp,hpd->hd", weights, values).ravel() + output_bias
            inner = wide @ normed(x, feed, feed_bias, net.epsilon) + wide_bias
            x = x + back @ bent(inner, net.activation) + back_bias
        found: Numbers = net.outputs @ normed(x, *net.norm, net.epsilon)
        return found


def normed(x: Numbers, weight: Numbers, bias: Numbers, epsilon: float) -> Numbers:
    found: Numbers = (x - x.mean()) / np.sqrt(x.var() + epsilon) * weight + bias
    return found


def turned(x: Numbers, turns: Numbers) -> Numbers:
    if not len(turns):
        return x
    (cos, sin), found = np.split(turns, 2), np.empty_like(x)
    found[:, 0::2] = x[:, 0::2] * cos - x[:, 1::2] * sin
    found[:, 1::2] = x[:, 0::2] * sin + x[:, 1::2] * cos
    return found


def bent(x: Numbers, activation: str) -> Numbers:
    found: Numbers
    if activation == "relu":
        found = np.maximum(x, 0)
    elif activation == "gelu":
        found = (0.5 * x * (1 + np.array([erf(value / 2**0.5) for value in x]))).astype(np.float32)
    elif activation == "gelu_tanh":
        found = 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))
    else:
        gate, inner = np.split(x, 2)
        found = gate / (1 + np.exp(-gate)) * inner
    return found
