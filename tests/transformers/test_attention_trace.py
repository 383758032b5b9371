"""The four steps of attention, for one token of one head: causal, both sides, and from a translation to its source."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refusing import refuses
from tiny import tiny_bert, tiny_gpt

import firth
from firth.data.world import World

PAIRS = list(World(seed=4).translations(60))


@pytest.fixture(scope="module")
def models():
    settings: dict[str, Any] = {
        "layers": 2,
        "dim": 8,
        "heads": 2,
        "epochs": 1,
        "vocabulary_size": 300,
        "context_length": 80,
    }
    pairs = firth.TranslationPairs(PAIRS)
    return {
        "bert": tiny_bert(lively=True),
        "gpt": tiny_gpt(),
        "seq2seq": firth.Seq2Seq(**settings).fit(pairs, firth.Run(threads=1)),
        "lstm": firth.Seq2Seq(**settings, architecture="lstm").fit(pairs, firth.Run(threads=1)),
    }


@pytest.mark.parametrize(
    ("name", "text", "other"),
    [
        ("bert", "the king sees the queen", None),
        ("bert", "the king sleeps", "a queen"),
        ("gpt", "the king sees the queen", None),
        ("seq2seq", PAIRS[0].source, None),
        ("seq2seq", PAIRS[0].source, PAIRS[1].target),
    ],
)
def test_steps_lead_to_the_weights(models, name, text, other):
    """softmax(q·k / √d) v by hand, from the query, the keys and the values that are told."""
    model = models[name]
    attention = model.attention(text, other)
    layers, heads, queries, keys = attention.weights.shape
    for layer, head, query in ((1, 1, 1), (layers, heads, queries), (2, 1, 3)):
        steps = model.attention_steps(text, other, layer=layer, head=head, query=query)
        scores = steps.keys.astype(float) @ steps.query.astype(float)
        np.testing.assert_allclose(steps.scores, scores, atol=1e-5)
        np.testing.assert_allclose(steps.scaled, scores / np.sqrt(len(steps.query)), atol=1e-5)
        exponentials = np.where(steps.allowed, np.exp(steps.scaled - steps.scaled[steps.allowed].max()), 0)
        np.testing.assert_allclose(steps.weights, exponentials / exponentials.sum(), atol=1e-6)
        np.testing.assert_allclose(steps.weights, attention.weights[layer - 1, head - 1, query - 1], atol=1e-6)
        np.testing.assert_allclose(steps.output, steps.weights @ steps.values, atol=1e-5)
        visible = query if name == "gpt" else keys  # a language model does not look ahead
        assert steps.allowed.tolist() == [True] * visible + [False] * (keys - visible)


def test_the_net_is_left_as_it_was(models):
    model = models["bert"]
    before = model.embed(["the king"])
    model.attention("the king")
    assert all(not part.recording and part.record is None for part in model.net.modules() if hasattr(part, "recording"))
    np.testing.assert_array_equal(model.embed(["the king"]), before)


def test_what_is_refused(models):
    for name, got, limit in (("layer", 3, 2), ("head", 0, 2), ("query", 9, 4)):
        with refuses("invalid_value", name=name, got=got, limit=limit):
            models["bert"].attention_steps("the king", **{"layer": 1, "head": 1, "query": 1} | {name: got})
    assert models["lstm"].attention(PAIRS[0].source).weights.sum() > 0
    with refuses("unsupported_model", architecture="lstm"):
        models["lstm"].attention_steps(PAIRS[0].source, layer=1, head=1, query=1)
    with refuses("unsupported_model", got=2):
        models["gpt"].attention_steps("a", "b", layer=1, head=1, query=1)
