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
from firth.nets.architecture import Architecture
from firth.nets.disentangled import DistanceProjection
from firth.nets.on_gpu import half_precision_dtype, kernels
from firth.nets.positions import PositionTerms, rotate, score_bias

SHORT, LONG = kernels("short_attention"), kernels("long_attention")
POSITIONED = kernels("positioned_attention")


class Steps(NamedTuple):
    """The results of the four steps of scaled dot-product attention."""

    scores: Tensor  # Q Kᵀ: the similarity of each query to each key
    scaled: Tensor  # · scale (1/√d, so that the softmax does not saturate in high dimensions), capped, plus the bias
    weights: Tensor  # softmax over the keys that the mask allows: each row sums to 1
    output: Tensor  # the weighted sum of the values


class AttentionRecord(NamedTuple):
    """Inputs and steps of one attention layer; tensors are (batch, heads, positions, head dim)."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    steps: Steps


class Scoring(NamedTuple):
    """How the products of queries and keys become scores."""

    scale: float = 0.0  # 0 = 1/√d
    cap: float = 0.0  # soft cap c · tanh(score / c) (Gemma 2); 0 = none


def attention_steps(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    scoring: Scoring = Scoring(),
    bias: Tensor | None = None,
) -> Steps:
    """Compute scaled dot-product attention over (…, positions, dim) step by step.

    `bias` is added to the scaled scores. A query whose keys are all masked gets zeros.
    """
    scores = query @ key.transpose(-2, -1)
    scaled = scores * (scoring.scale or query.shape[-1] ** -0.5)
    if scoring.cap:
        scaled = scoring.cap * torch.tanh(scaled / scoring.cap)
    if bias is not None:
        scaled = scaled + bias
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
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    scoring: Scoring = Scoring(),
    bias: Tensor | None = None,
) -> Tensor:
    """Return the output of `attention_steps`, computed by torch's fused kernel."""
    queries, keys = query.shape[-2], key.shape[-2]
    scale = scoring.scale or None
    plain = mask is None and bias is None and not scoring.cap
    if plain and (not causal or queries == keys):
        return functional.scaled_dot_product_attention(
            query, key, value, is_causal=causal, dropout_p=dropout, scale=scale
        )
    if causal and queries > 1:
        earlier = causal_mask(queries, keys, query.device)
        mask = earlier if mask is None else mask & earlier
    if scoring.cap:  # the fused kernel has none
        weights = attention_steps(query, key, value, mask, scoring, bias).weights
        return functional.dropout(weights, dropout) @ value
    if mask is None:
        added = None if bias is None else bias.to(query.dtype)
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=added, dropout_p=dropout, scale=scale
        )
    any_allowed = mask.any(-1, keepdim=True)  # a fully masked row is unmasked and then zeroed, to avoid NaN
    allowed = mask | ~any_allowed
    if bias is not None:
        allowed = torch.where(allowed, bias.to(query.dtype), -math.inf)
    output = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=allowed, dropout_p=dropout, scale=scale
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


def attend_packed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packed: Packed,
    scoring: Scoring = Scoring(),
    terms: PositionTerms = PositionTerms(),
) -> Tensor:
    """Return `attend` over (positions, heads, dim) within each sequence, without dropout.

    The fused kernel for packed sequences has no dropout and no bias, except a window.
    """
    windowed = terms.bias is None or (terms.window > 0 and len(terms.bias) == 1)
    windowed = windowed and terms.distances is None
    if query.is_cuda and query.dtype in (torch.float16, torch.bfloat16) and windowed and not scoring.cap:
        from torch.nn.attention.varlen import varlen_attn

        starts, longest, side = packed.starts, packed.longest, terms.window or -1
        return varlen_attn(  # type: ignore[return-value]
            query, key, value, starts, starts, longest, longest, scale=scoring.scale or None, window_size=(side, side)
        )
    if query.is_cuda:
        return attend_padded(query, key, value, packed, scoring, terms)
    outputs, begin = [], 0
    for length, group in groupby(packed.lengths or packed.starts.diff().tolist()):
        end = begin + length * len(list(group))
        if end == begin:  # empty sequences fill batches of a fixed shape
            continue
        shape = (-1, length, *query.shape[1:])
        q, k, v = (x[begin:end].reshape(shape).transpose(1, 2) for x in (query, key, value))
        bias = position_scores(q, k, scoring, terms)
        outputs.append(attend(q, k, v, scoring=scoring, bias=bias).transpose(1, 2).flatten(0, 1))
        begin = end
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


def position_scores(query: Tensor, key: Tensor, scoring: Scoring, terms: PositionTerms) -> Tensor | None:
    """Return what positions add to the scores of queries and keys (batch, heads, positions, head dim)."""
    if terms.distances is not None:
        return terms.distances.scores(query, key, scoring.scale or query.shape[-1] ** -0.5)
    queries, keys = query.shape[-2], key.shape[-2]
    return None if terms.bias is None else score_bias(middle(terms.bias, keys), queries, keys)


def attend_padded(
    query: Tensor, key: Tensor, value: Tensor, packed: Packed, scoring: Scoring, terms: PositionTerms
) -> Tensor:
    """Return `attend_packed`, computed with padding: one call for sequences of any lengths."""
    starts, total = packed.starts.long(), len(query)
    sequence = torch.repeat_interleave(
        torch.arange(len(starts) - 1, device=query.device), starts.diff(), output_size=total
    )
    position = torch.arange(total, device=query.device) - starts[sequence]
    padded = [x.new_zeros(len(starts) - 1, packed.longest, *x.shape[1:]) for x in (query, key, value)]
    for rows, x in zip(padded, (query, key, value), strict=True):
        rows[sequence, position] = x
    real = torch.arange(packed.longest, device=query.device) < starts.diff()[:, None]
    q, k, v = (rows.transpose(1, 2) for rows in padded)
    bias = position_scores(q, k, scoring, terms)
    mixed = attend(q, k, v, real[:, None, None, :], scoring=scoring, bias=bias)
    return mixed.transpose(1, 2)[sequence, position]


def middle(table: Tensor, keys: int) -> Tensor:
    """Return the part of a table by distance that `keys` positions need."""
    outside = (table.shape[1] + 1) // 2 - keys
    return table[:, outside : table.shape[1] - outside]


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

    Queries come from `x`; keys and values come from `x` (self-attention) or from `memory` (cross-attention). With fewer
    heads of keys and values than of queries, groups of queries share them (Ainslie et al. 2023).
    """

    def __init__(self, size: Architecture, cross: bool = False) -> None:
        super().__init__()
        self.heads, self.groups, self.head_dim = size.heads, size.key_value_heads or size.heads, size.width_of_head
        if self.heads % self.groups:
            raise FirthError(
                "invalid_value",
                "{option} must be a multiple of key_value_heads; got {got} and {groups}.",
                option="heads",
                got=self.heads,
                groups=self.groups,
            )
        self.dropout, self.cross, self.halves = size.dropout, cross, size.rotary_halves
        self.scoring = Scoring(size.score_scale, size.score_cap)
        dim, query_dim, key_dim = size.dim, self.heads * self.head_dim, self.groups * self.head_dim
        if cross:
            self.query = nn.Linear(dim, query_dim, bias=size.attention_biases)
            self.key_value = nn.Linear(dim, 2 * key_dim, bias=size.attention_biases)
        else:  # one matrix product instead of three
            self.query_key_value = nn.Linear(dim, query_dim + 2 * key_dim, bias=size.attention_biases)
        self.output = nn.Linear(query_dim, dim, bias=size.output_biases)
        self.query_norm, self.key_norm = (
            nn.RMSNorm(self.head_dim, size.epsilon) if size.qk_norm else None for _ in range(2)
        )
        is_disentangled = size.score_bias == "disentangled" and not cross
        self.distances = DistanceProjection(size) if is_disentangled else None
        self.record: AttentionRecord | None = None  # of the last call, in a `traced_copy`
        self.recording = False

    def split(self, x: Tensor, *heads: int) -> tuple[Tensor, ...]:
        """Split (…, heads · head dim) into tensors (…, n, head dim) for each n of `heads`."""
        return torch.split(x.view(*x.shape[:-1], -1, self.head_dim), list(heads), dim=-2)

    def queries_keys_values(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the queries, keys and values of self-attention, (…, positions, heads, head dim)."""
        return self.split(self.query_key_value(x), self.heads, self.groups, self.groups)

    def positioned(self, query: Tensor, key: Tensor, terms: PositionTerms) -> tuple[Tensor, Tensor]:
        """Normalize and rotate queries and keys (…, positions, heads, head dim)."""
        if self.query_norm is not None and self.key_norm is not None:
            query, key = self.query_norm(query), self.key_norm(key)
        if terms.rotation is not None:
            cos, sin = (part[:, None] for part in terms.rotation)  # the same for all heads
            query, key = rotate(query, (cos, sin), self.halves), rotate(key, (cos, sin), self.halves)
        return query, key

    def project(
        self, x: Tensor, memory: Tensor | None, cache: Cache | None, terms: PositionTerms
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values (batch, heads, positions, head dim), using the cache if given."""
        if self.cross:
            query = self.split(self.query(x), self.heads)[0].transpose(1, 2)
            if cache is not None and cache.length:  # the memory is constant, so it is projected once
                return query, cache.keys[:, :, : cache.length], cache.values[:, :, : cache.length]
            projected = self.split(self.key_value(memory), self.groups, self.groups)
            key, value = (part.transpose(1, 2) for part in projected)
        else:
            query, key, value = self.queries_keys_values(x)
            query, key, value = (part.transpose(1, 2) for part in (*self.positioned(query, key, terms), value))
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
        terms: PositionTerms = PositionTerms(),
    ) -> Tensor:
        """Attend from x (batch, positions, dim).

        `mask` is (batch, keys), True for real tokens, or broadcasts to (batch, heads, queries, keys). For packed
        sequences x is (positions, dim), and `rows` selects the positions to return.
        """
        if self.distances is not None and terms.distances is not None:
            terms = terms._replace(distances=self.distances(terms.distances, self.query_key_value))
        if isinstance(mask, Packed):
            return self.forward_packed(x, mask, rows, terms)
        if mask is not None and mask.dim() == 2:
            mask = mask[:, None, None, :]
        query, key, value = self.project(x, memory, cache, terms)
        key, value = self.repeated(key), self.repeated(value)
        bias = position_scores(query, key, self.scoring, terms)
        if self.recording:
            mixed = self.attend_recorded(query, key, value, mask, causal, bias)
        else:
            dropout = self.dropout if self.training else 0.0
            mixed = attend(query, key, value, mask, causal, dropout, self.scoring, bias)
        out: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return out

    def repeated(self, x: Tensor, heads: int = 1) -> Tensor:
        """Repeat the keys or values of a group for each of its queries; `heads` is the axis of the heads."""
        return x if self.groups == self.heads else x.repeat_interleave(self.heads // self.groups, dim=heads)

    def forward_packed(
        self, x: Tensor, packed: Packed, rows: Tensor | None = None, terms: PositionTerms = PositionTerms()
    ) -> Tensor:
        """Attend within each packed sequence, with a Triton kernel where one fits."""
        qkv = self.query_key_value(x)
        simple = self.groups == self.heads and not self.scoring.cap and half_precision_dtype(x) is not None
        simple = simple and terms.distances is None
        if simple and POSITIONED and self.has_kernel(terms, qkv):
            scale = self.scoring.scale or self.head_dim**-0.5
            bias = None if terms.bias is None or len(terms.bias) == 1 else terms.bias
            mixed: Tensor = POSITIONED.attend(
                qkv, packed.starts, self.heads, packed.longest, scale, terms.rotation, bias, terms.window
            )
            return self.output(select_rows(mixed, rows))  # type: ignore[no-any-return]
        query, key, value = self.split(qkv, self.heads, self.groups, self.groups)
        if self.query_norm is not None or terms.rotation is not None:
            query, key = self.positioned(query, key, terms)
            qkv = torch.cat([query, key, value], dim=-2).flatten(-2) if simple else qkv
        simple = simple and terms.bias is None and not self.scoring.scale
        if simple and SHORT and SHORT.fits(self.head_dim, packed.longest):
            mixed = SHORT.attend_short(qkv, packed.starts, self.heads, packed.longest)
        elif simple and LONG and LONG.fits(self.head_dim, packed.longest):
            mixed = LONG.attend_long(qkv, packed.starts, self.heads, packed.longest)[0]
        else:
            key, value = self.repeated(key), self.repeated(value)
            mixed = attend_packed(query, key, value, packed, self.scoring, terms).flatten(1)
        out: Tensor = self.output(select_rows(mixed, rows))
        return out

    def has_kernel(self, terms: PositionTerms, qkv: Tensor) -> bool:
        """Return whether the kernel for positions applies: it has no backward pass, and BERT's kernels are faster."""
        positioned = terms.rotation is not None or terms.bias is not None
        rotates = terms.rotation is None or self.halves
        fits: bool = POSITIONED.fits(self.head_dim, terms.rotation)
        return (
            positioned
            and rotates
            and fits
            and self.query_norm is None
            and not (torch.is_grad_enabled() and qkv.requires_grad)
        )

    def attend_recorded(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, bias: Tensor | None
    ) -> Tensor:
        """Attend step by step and store the steps in `record`."""
        if causal:
            earlier = causal_mask(query.shape[-2], key.shape[-2], query.device)
            mask = earlier if mask is None else mask & earlier
        steps = attention_steps(query, key, value, mask, self.scoring, bias)
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
