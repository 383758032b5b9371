"""Attention: softmax(Q Kᵀ / √d) V (Vaswani et al. 2017), and additive attention (Bahdanau et al. 2015).

Two implementations give the same numbers. `attend_recorded` computes the four steps one by one and records the weights;
torch's fused kernel is used when the weights are not needed. Masks are True where attention is allowed. `Packed`
replaces the mask for concatenated sequences.
"""

from __future__ import annotations

import copy
import math
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from firth.core.errors import FirthError
from firth.nets.on_gpu import half_precision_dtype, kernels
from firth.nets.positions import Rotary

SHORT, LONG = kernels("short_attention"), kernels("long_attention")


class Steps(NamedTuple):
    """The results of the four steps of scaled dot-product attention."""

    scores: Tensor  # Q Kᵀ: the similarity of each query to each key
    scaled: Tensor  # / √d, so that the softmax does not saturate in high dimensions
    weights: Tensor  # softmax over the keys that the mask allows: each row sums to 1
    output: Tensor  # the weighted sum of the values


class AttentionRecord(NamedTuple):
    """Inputs and steps of one attention layer; tensors are (batch, heads, positions, head dim)."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    steps: Steps


def attention_steps(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Steps:
    """Compute scaled dot-product attention over (…, positions, dim) step by step.

    A query whose keys are all masked gets zeros.
    """
    scores = query @ key.transpose(-2, -1)
    scaled = scores / math.sqrt(query.shape[-1])
    weights = masked_softmax(scaled, mask)
    return Steps(scores, scaled, weights, weights @ value)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Return the softmax over the unmasked part of the last axis; fully masked rows are zeros instead of NaN."""
    if mask is None:
        return torch.softmax(scores, dim=-1)
    any_allowed = mask.any(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(~(mask | ~any_allowed), -math.inf), dim=-1)
    return weights.masked_fill(~any_allowed, 0.0)


def causal_mask(queries: int, keys: int, device: Any = None) -> Tensor:
    """Return a mask (queries, keys) in which each position attends to itself and to earlier positions.

    With more keys than queries, the queries are the last positions.
    """
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, causal: bool = False, dropout: float = 0.0
) -> Tensor:
    """Return the output of `attention_steps`, computed by torch's fused kernel."""
    queries, keys = query.shape[-2], key.shape[-2]
    if causal and mask is None and queries == keys:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True, dropout_p=dropout)
    if causal and queries > 1:
        earlier = causal_mask(queries, keys, query.device)
        mask = earlier if mask is None else mask & earlier
    if mask is None:
        return functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
    any_allowed = mask.any(-1, keepdim=True)  # a fully masked row is unmasked and then zeroed, to avoid NaN
    output = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask | ~any_allowed, dropout_p=dropout
    )
    return output.masked_fill(~any_allowed, 0.0)


class Packed(NamedTuple):
    """Concatenated sequences of different lengths without padding; attention stays within each sequence."""

    starts: Tensor  # int32: the start of each sequence, and the end of the last
    longest: int  # no sequence is longer
    lengths: tuple[int, ...] = ()  # for the CPU, which batches neighbors of equal length

    @classmethod
    def of(cls, lengths: tuple[int, ...], longest: int = 0, device: Any = None) -> Packed:
        """Return packed boundaries from sequence lengths."""
        starts = torch.tensor([0, *lengths]).cumsum(0).to(device, torch.int32)
        return cls(starts, longest or max(lengths, default=1), lengths)


def attend_packed(query: Tensor, key: Tensor, value: Tensor, packed: Packed) -> Tensor:
    """Return `attend` over (positions, heads, dim) within each sequence, without dropout.

    The fused kernel for packed sequences has no dropout.
    """
    if query.is_cuda and query.dtype in (torch.float16, torch.bfloat16):
        from torch.nn.attention.varlen import varlen_attn

        starts, longest = packed.starts, packed.longest
        return varlen_attn(query, key, value, starts, starts, longest, longest)  # type: ignore[return-value]
    outputs, begin = [], 0
    for length, group in groupby(packed.lengths or packed.starts.diff().tolist()):
        end = begin + length * len(list(group))
        if end == begin:  # empty sequences fill batches of a fixed shape
            continue
        shape = (-1, length, *query.shape[1:])
        q, k, v = (x[begin:end].reshape(shape).transpose(1, 2) for x in (query, key, value))
        outputs.append(attend(q, k, v).transpose(1, 2).flatten(0, 1))
        begin = end
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


class Cache:
    """Keys and values of earlier positions, so that generating a token computes one position only."""

    def __init__(self, batch: int, heads: int, positions: int, dim: int, like: Tensor) -> None:
        self.keys, self.values = (like.new_zeros(batch, heads, positions, dim) for _ in range(2))
        self.length = 0

    def add(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append positions and return all keys and values so far."""
        end = self.length + key.shape[2]
        if end > self.keys.shape[2]:
            raise FirthError(
                "text_too_long",
                "The key-value cache holds {limit} positions; got {tokens}.",
                limit=self.keys.shape[2],
                tokens=end,
            )
        self.keys[:, :, self.length : end], self.values[:, :, self.length : end] = key, value
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def select(self, rows: Tensor) -> None:
        """Keep only these rows of the batch, such as the surviving beams."""
        self.keys, self.values = self.keys[rows], self.values[rows]


class MultiHead(nn.Module):
    """Multi-head attention: each head works on its own slice of the dimensions.

    Queries come from `x`; keys and values come from `x` (self-attention) or from `memory` (cross-attention).
    """

    def __init__(self, dim: int, heads: int, dropout: float = 0.0, cross: bool = False, rotary: Rotary | None = None):
        super().__init__()
        if dim % heads:
            raise FirthError(
                "invalid_value",
                "{option} must be a multiple of heads; got {got} and {heads}.",
                option="dim",
                got=dim,
                heads=heads,
            )
        self.heads, self.dropout, self.cross, self.rotary = heads, dropout, cross, rotary
        if cross:
            self.query, self.key_value = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim)
        else:
            self.query_key_value = nn.Linear(dim, 3 * dim)  # one matrix product instead of three
        self.output = nn.Linear(dim, dim)
        self.record: AttentionRecord | None = None  # of the last call, in a `traced_copy`
        self.recording = False

    def split(self, x: Tensor, parts: int) -> tuple[Tensor, ...]:
        """Split (batch, positions, parts · dim) into `parts` tensors (batch, heads, positions, head dim)."""
        batch, positions, _ = x.shape
        return x.view(batch, positions, parts, self.heads, -1).permute(2, 0, 3, 1, 4).unbind()

    def project(self, x: Tensor, memory: Tensor | None, cache: Cache | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, using the cache if given."""
        if self.cross:
            (query,) = self.split(self.query(x), 1)
            if cache is not None and cache.length:  # the memory is constant, so it is projected once
                return query, cache.keys[:, :, : cache.length], cache.values[:, :, : cache.length]
            key, value = self.split(self.key_value(memory), 2)
        else:
            query, key, value = self.split(self.query_key_value(x), 3)
            if self.rotary is not None:
                first = cache.length if cache is not None else 0
                query, key = self.rotary(query, first), self.rotary(key, first)
        if cache is not None:
            key, value = cache.add(key, value)
        return query, key, value

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | Packed | None = None,
        causal: bool = False,
        cache: Cache | None = None,
        rows: Tensor | None = None,
    ) -> Tensor:
        """Attend from x (batch, positions, dim).

        `mask` is (batch, keys), True for real tokens, or broadcasts to (batch, heads, queries, keys). For packed
        sequences x is (positions, dim), and `rows` selects the positions to return.
        """
        if isinstance(mask, Packed):
            return self.forward_packed(x, mask, rows)
        if mask is not None and mask.dim() == 2:
            mask = mask[:, None, None, :]
        query, key, value = self.project(x, memory, cache)
        if self.recording:
            mixed = self.attend_recorded(query, key, value, mask, causal)
        else:
            mixed = attend(query, key, value, mask, causal, self.dropout if self.training else 0.0)
        batch, positions, dim = x.shape
        out: Tensor = self.output(mixed.transpose(1, 2).reshape(batch, positions, dim))
        return out

    def forward_packed(self, x: Tensor, packed: Packed, rows: Tensor | None = None) -> Tensor:
        """Attend within each packed sequence, with a Triton kernel where one fits."""
        qkv = self.query_key_value(x)
        if SHORT and half_precision_dtype(x) and SHORT.fits(x.shape[1] // self.heads, packed.longest):
            mixed: Tensor = SHORT.attend_short(qkv, packed.starts, self.heads, packed.longest)
        elif LONG and half_precision_dtype(x) and LONG.fits(x.shape[1] // self.heads, packed.longest):
            mixed = LONG.attend_long(qkv, packed.starts, self.heads, packed.longest)[0]
        else:
            query, key, value = qkv.view(len(x), 3, self.heads, -1).unbind(1)
            mixed = attend_packed(query, key, value, packed).flatten(1)
        out: Tensor = self.output(select_rows(mixed, rows))
        return out

    def attend_recorded(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """Attend step by step and store the steps in `record`."""
        if causal:
            earlier = causal_mask(query.shape[-2], key.shape[-2], query.device)
            mask = earlier if mask is None else mask & earlier
        steps = attention_steps(query, key, value, mask)
        self.record = AttentionRecord(query, key, value, mask, steps)
        weights = functional.dropout(steps.weights, self.dropout, self.training)
        return weights @ value


def select_rows(x: Tensor, rows: Tensor | None) -> Tensor:
    """Return these rows of x, or x where `rows` is None."""
    return x if rows is None else x.index_select(0, rows)


Network = TypeVar("Network", bound=nn.Module)


def traced_copy(net: Network) -> tuple[Network, dict[str, MultiHead]]:
    """Return a copy of `net` that shares its weights and records attention, and its attention layers by name.

    Each layer stores its last call in `record`. `net` itself is unchanged, because other threads may be using it.
    """
    shared = {id(tensor): tensor for tensor in (*net.parameters(), *net.buffers())}
    clone = copy.deepcopy(net, shared)
    attentions = {name: part for name, part in clone.named_modules() if isinstance(part, MultiHead)}
    for part in attentions.values():
        part.recording = True
    return clone, attentions


class Bahdanau(nn.Module):
    """Additive attention, in which the score of a key is vᵀ tanh(W query + U key) (Bahdanau et al. 2015, A.1.2)."""

    def __init__(self, query_dim: int, key_dim: int, dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_dim, dim, bias=False)
        self.key = nn.Linear(key_dim, dim)
        self.score = nn.Linear(dim, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor, mask: Tensor | None = None, projected: Tensor | None = None) -> Any:
        """Return the weighted sum of the keys and the weights.

        query (batch, query_dim), keys (batch, positions, key_dim), mask (batch, positions). `projected` is
        `self.key(keys)`, computed once when several queries share it.
        """
        inside = torch.tanh(self.query(query)[:, None] + (self.key(keys) if projected is None else projected))
        weights = masked_softmax(self.score(inside).squeeze(-1), mask)
        return (weights[:, None] @ keys).squeeze(1), weights
