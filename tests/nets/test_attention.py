"""Attention against numbers worked by hand, torch's own module, and what must hold."""

from __future__ import annotations

import math

import pytest
import torch
from refusing import refuses
from torch import nn

from firth.nets.architecture import Architecture
from firth.nets.attention import (
    Bahdanau,
    Cache,
    MultiHead,
    Packed,
    Scoring,
    attend,
    attend_packed,
    attend_padded,
    attention_steps,
    causal_mask,
    traced_copy,
)
from firth.nets.positions import PositionTerms


def test_three_tokens_by_hand():
    """Two dimensions. Query (1, 0) against keys (2, 0), (0, 2), (0, 0): scores 2, 0, 0; scaled by √2 to √2, 0, 0."""
    query = torch.tensor([[1.0, 0.0]])
    key = torch.tensor([[2.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    value = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    steps = attention_steps(query, key, value)
    assert steps.scores.tolist() == [[2.0, 0.0, 0.0]]
    assert steps.scaled[0].tolist() == pytest.approx([math.sqrt(2), 0, 0])
    first = math.exp(math.sqrt(2))
    assert steps.weights[0].tolist() == pytest.approx([first / (first + 2), 1 / (first + 2), 1 / (first + 2)])
    assert steps.output[0].tolist() == pytest.approx([first / (first + 2), 1 / (first + 2)])


def test_bahdanau_by_hand():
    """One dimension, all weights 1, no bias: scores tanh(query + key)."""
    attention = Bahdanau(1, 1, 1)
    for part in (attention.query, attention.key, attention.score):
        nn.init.ones_(part.weight)
    nn.init.zeros_(attention.key.bias)
    keys = torch.tensor([[[0.0], [1.0], [5.0]]])
    mask = torch.tensor([[True, True, False]])
    mixed, weights = attention(torch.tensor([[1.0]]), keys, mask)
    scores = [math.exp(math.tanh(1.0)), math.exp(math.tanh(2.0))]
    assert weights[0].tolist() == pytest.approx([scores[0] / sum(scores), scores[1] / sum(scores), 0.0])
    assert mixed.item() == pytest.approx(scores[1] / sum(scores))


MASKS = {
    "none": None,
    "padding": torch.tensor([[True] * 5, [True, True, True, False, False]])[:, None, None, :],
    "nothing allowed": torch.tensor([[True] * 5, [False] * 5])[:, None, None, :],
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_both_ways_give_the_same_output_and_gradient(mask, causal):
    torch.manual_seed(0)
    results = []
    q, k, v = (torch.randn(2, 3, 5, 8, requires_grad=True) for _ in range(3))
    full_mask = mask
    if causal:
        full_mask = causal_mask(5, 5) if mask is None else mask & causal_mask(5, 5)
    for output in (attention_steps(q, k, v, full_mask).output, attend(q, k, v, mask, causal)):
        grads = torch.autograd.grad(output.square().sum(), (q, k, v))
        results.append((output, *grads))
    for slow, fast in zip(*results, strict=True):
        assert torch.isfinite(slow).all() and torch.isfinite(fast).all()
        torch.testing.assert_close(slow, fast, atol=1e-5, rtol=1e-4)


def test_gradients_of_the_reference():
    torch.manual_seed(1)
    tensors = [torch.randn(1, 3, 2, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    assert torch.autograd.gradcheck(lambda q, k, v: attention_steps(q, k, v, causal_mask(3, 3)).output, tensors)
    attention = Bahdanau(2, 3, 4).double()
    query, keys = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((2, 2), (2, 4, 3)))
    assert torch.autograd.gradcheck(lambda q, k: attention(q, k)[0], (query, keys))


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("cross", [False, True])
def test_multi_head_equals_torch(cross, record):
    torch.manual_seed(2)
    ours, theirs = (
        MultiHead(Architecture(dim=12, heads=3, dropout=0.0), cross=cross),
        nn.MultiheadAttention(12, 3, batch_first=True),
    )
    with torch.no_grad():
        if cross:
            theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key_value.weight]))
            theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key_value.bias]))
        else:
            theirs.in_proj_weight.copy_(ours.query_key_value.weight)
            theirs.in_proj_bias.copy_(ours.query_key_value.bias)
        theirs.out_proj.weight.copy_(ours.output.weight)
        theirs.out_proj.bias.copy_(ours.output.bias)
    x, memory = torch.randn(2, 4, 12), torch.randn(2, 6, 12)
    keys = memory if cross else x
    mask = torch.ones(2, keys.shape[1], dtype=torch.bool)
    mask[1, 3:] = False
    expected, weights = theirs(x, keys, keys, key_padding_mask=~mask, average_attn_weights=False)
    if not record:
        output = ours(x, memory if cross else None, mask)
    else:
        traced, parts = traced_copy(ours)
        output = traced(x, memory if cross else None, mask)
        record = parts[""].record
        assert record is not None
        torch.testing.assert_close(record.steps.weights, weights, atol=1e-6, rtol=1e-5)
        assert ours.record is None and not ours.recording and traced.output.weight is ours.output.weight
    torch.testing.assert_close(output, expected, atol=1e-6, rtol=1e-5)


def test_a_cache_gives_what_the_whole_gives():
    torch.manual_seed(3)
    attention = MultiHead(Architecture(dim=8, heads=2)).eval()
    x = torch.randn(2, 7, 8)
    whole = attention(x, causal=True)
    cache = Cache(2, 2, 7, 4, x)
    parts = [attention(part, causal=True, cache=cache) for part in x.split([3, 1, 2, 1], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-6, rtol=1e-5)
    with refuses("text_too_long", limit=7, tokens=8):
        attention(x[:, :1], causal=True, cache=cache)
    cache.select(torch.tensor([1, 1]))
    assert torch.equal(cache.keys[0], cache.keys[1])


def test_heads_must_divide_the_dimension():
    with refuses("invalid_value", option="dim", got=10, heads=3):
        MultiHead(Architecture(dim=10, heads=3))


@pytest.mark.parametrize("has_bias", [False, True])
def test_packed_sequences_with_and_without_padding_are_the_same(has_bias):
    torch.manual_seed(3)
    packed = Packed.of((4, 1, 7, 7, 2))
    query, key, value = torch.randn(3, 21, 2, 8).unbind()
    terms = PositionTerms(bias=torch.randn(2, 13) if has_bias else None)
    plain = attend_packed(query, key, value, packed, Scoring(0.4), terms)
    torch.testing.assert_close(attend_padded(query, key, value, packed, Scoring(0.4), terms), plain)
    shared = PositionTerms(bias=torch.where(torch.arange(-6, 7).abs() > 2, -torch.inf, 0.0)[None], window=2)
    local = attend_packed(query, key, value, packed, Scoring(), shared)
    q, k, v = (x[5:12].transpose(0, 1) for x in (query, key, value))
    alone = attention_steps(q, k, v)
    near = (torch.arange(7)[:, None] - torch.arange(7)).abs() <= 2
    expected = attention_steps(q, k, v, near).output.transpose(0, 1)
    torch.testing.assert_close(local[5:12], expected)
    assert not torch.allclose(local[5:12], alone.output.transpose(0, 1), atol=1e-2)
