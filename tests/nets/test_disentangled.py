"""Disentangled attention: buckets as in transformers, scores as in the paper's formula, padded and packed alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers.models.deberta_v2.modeling_deberta_v2 import build_relative_position

from firth.nets.architecture import Architecture
from firth.nets.attention import MultiHead, Packed, Scoring, attend_packed, attend_padded
from firth.nets.disentangled import DistanceEmbeddings
from firth.nets.positions import PositionTerms

SIZE = Architecture(
    dim=12,
    heads=3,
    score_bias="disentangled",
    relative_buckets=8,
    relative_far=32,
    relative_scores=("c2p", "p2c"),
    score_scale=12**-0.5,
)


@pytest.mark.parametrize(("buckets", "far"), [(256, 512), (8, 32), (16, 90), (2, 7), (32, 512)])
def test_buckets_are_those_of_transformers(buckets, far):
    """Also of distances beyond `far`, and where rounding decides."""
    length = 700
    embeddings = DistanceEmbeddings(replace(SIZE, relative_buckets=buckets, relative_far=far))
    token = torch.zeros(1, length, 1)
    expected = build_relative_position(token, token, buckets, far)[0]
    ours = embeddings.bucket(torch.arange(1 - length, length))
    assert torch.equal(ours[length - 1 :], expected[:, 0]) and torch.equal(ours[:length].flip(0), expected[0])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("scores", [("c2p",), ("p2c",), ("c2p", "p2c")])
def test_scores_are_the_formula(scores, shared):
    torch.manual_seed(0)
    size = replace(SIZE, relative_scores=scores, relative_shared=shared)
    attention, embeddings, x = MultiHead(size), DistanceEmbeddings(size), torch.randn(1, 20, 12)
    attention.recording = True
    terms = PositionTerms(distances=embeddings(20))
    attention(x, terms=terms)
    assert attention.record is not None
    steps = attention.record.steps
    query, key = (part[0] for part in (attention.record.query, attention.record.key))
    table = embeddings.table.weight
    weight, bias = attention.query_key_value.weight, attention.query_key_value.bias
    position_key: Any = table @ weight[12:24].T + bias[12:24] if shared or "c2p" not in scores else None
    position_query: Any = table @ weight[:12].T + bias[:12] if shared or "p2c" not in scores else None
    if not shared:
        assert attention.distances is not None
        key_layer, query_layer = attention.distances.key, attention.distances.query
        position_key = key_layer(table) if key_layer is not None else None
        position_query = query_layer(table) if query_layer is not None else None
    for head in range(3):
        columns = slice(4 * head, 4 * head + 4)
        for i, j in ((0, 0), (0, 19), (19, 0), (7, 3), (3, 16)):
            row = int(embeddings.bucket(torch.tensor(i - j))) + 8
            row = min(max(row, 0), 15)
            total = query[head, i] @ key[head, j]
            if "c2p" in scores:
                total = total + query[head, i] @ position_key[row, columns]
            if "p2c" in scores:
                total = total + key[head, j] @ position_query[row, columns]
            torch.testing.assert_close(steps.scaled[0, head, i, j], total * size.score_scale)


def test_padded_is_packed():
    """Batches on a GPU are padded, on a CPU grouped by length."""
    torch.manual_seed(1)
    attention, embeddings = MultiHead(SIZE), DistanceEmbeddings(SIZE)
    packed = Packed.of((5, 1, 9, 9))
    query, key, value = (torch.randn(24, 3, 4) for _ in range(3))
    assert attention.distances is not None
    distances = attention.distances(embeddings(9), attention.query_key_value)
    terms, scoring = PositionTerms(distances=distances), Scoring(SIZE.score_scale)
    grouped = attend_packed(query, key, value, packed, scoring, terms)
    torch.testing.assert_close(attend_padded(query, key, value, packed, scoring, terms), grouped)
    without = attend_padded(query, key, value, packed, scoring, PositionTerms())
    assert not torch.allclose(without, grouped, atol=0.01)
