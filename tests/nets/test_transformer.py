"""Blocks and stacks: order, time, and the equality with Hugging Face's GPT-2."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from refusing import refuses

from firth.nets.architecture import GATED_ACTIVATIONS, PLAIN_ACTIVATIONS, POSITIONS, Architecture
from firth.nets.attention import traced_copy
from firth.nets.positions import sinusoids
from firth.nets.recurrent import RecurrentTranslator
from firth.nets.transformer import Decoder, Embedding, EncoderDecoder, Stack

SMALL = Architecture(layers=2, dim=16, heads=2, max_positions=12, dropout=0.0)


def test_sinusoids_are_the_formula():
    table = sinusoids(5, 4)
    assert table[0].tolist() == [0, 1, 0, 1]
    assert table[3].tolist() == pytest.approx(
        [
            torch.tensor(a).sin().item() if even else torch.tensor(a).cos().item()
            for a, even in ((3.0, 1), (3.0, 0), (0.03, 1), (0.03, 0))
        ]
    )


@pytest.mark.parametrize("positions", POSITIONS)
def test_only_positions_tell_the_order(positions):
    """Without them, shuffled tokens give shuffled outputs: the encoder sees a set."""
    torch.manual_seed(0)
    size = replace(SMALL, positions=positions)
    embedding, stack = Embedding(20, size).eval(), Stack(size).eval()
    ids, order = torch.tensor([[3, 7, 1, 9, 4]]), torch.tensor([4, 2, 0, 1, 3])
    straight, shuffled = stack(*embedding.at(ids)), stack(*embedding.at(ids[:, order]))
    same = torch.allclose(straight[:, order], shuffled, atol=1e-5)
    assert same == (positions == "none")


@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.parametrize("activation", [*PLAIN_ACTIVATIONS, *GATED_ACTIVATIONS])
def test_the_future_cannot_change_the_past(activation, pre_norm):
    torch.manual_seed(1)
    net = Decoder(20, replace(SMALL, activation=activation, pre_norm=pre_norm)).eval()
    ids = torch.randint(20, (1, 8))
    other = ids.clone()
    other[0, 5] = (ids[0, 5] + 1) % 20
    one, two = net(ids), net(other)
    assert torch.equal(one[:, :5], two[:, :5]) and not torch.allclose(one[:, 5:], two[:, 5:], atol=1e-3)


@pytest.mark.parametrize("positions", POSITIONS)
def test_generating_with_a_cache_equals_reading_the_whole(positions):
    torch.manual_seed(2)
    net = Decoder(20, replace(SMALL, positions=positions)).eval()
    ids = torch.randint(20, (2, 9))
    caches = net.stack.caches(2, next(net.parameters()))
    parts, first = [], 0
    for part in ids.split([4, 1, 1, 3], dim=1):
        parts.append(net(part, first, caches))
        first += part.shape[1]
    torch.testing.assert_close(torch.cat(parts, 1), net(ids), atol=1e-5, rtol=1e-4)


def test_padding_does_not_change_what_is_real():
    torch.manual_seed(3)
    net = EncoderDecoder(20, 20, replace(SMALL, positions="sinusoidal")).eval()
    source, target = torch.randint(20, (1, 5)), torch.randint(20, (1, 4))
    mask = torch.ones(1, 5, dtype=torch.bool)
    padded = torch.cat([source, torch.zeros(1, 3, dtype=torch.long)], 1)
    longer = torch.cat([mask, torch.zeros(1, 3, dtype=torch.bool)], 1)
    torch.testing.assert_close(net(source, mask, target), net(padded, longer, target), atol=1e-5, rtol=1e-4)
    recurrent = RecurrentTranslator(20, 20, 8).eval()
    torch.testing.assert_close(recurrent(source, mask, target), recurrent(padded, longer, target), atol=1e-5, rtol=1e-4)


def test_all_padding_gives_numbers():
    net = EncoderDecoder(20, 20, SMALL)
    ids, mask = torch.randint(20, (2, 5)), torch.tensor([[True] * 5, [False] * 5])
    loss = net(ids, mask, ids).square().mean()
    loss.backward()
    assert torch.isfinite(loss) and all(torch.isfinite(p.grad).all() for p in net.parameters() if p.grad is not None)


def test_weights_can_be_had_from_a_net_that_runs_the_fast_path():
    torch.manual_seed(4)
    net = EncoderDecoder(20, 20, SMALL).eval()
    source, target = torch.randint(20, (1, 5)), torch.randint(20, (1, 3))
    mask = torch.ones(1, 5, dtype=torch.bool)
    fast = net(source, mask, target)
    twin, parts = traced_copy(net)
    slow = twin(source, mask, target)
    weights = {name: part.record.steps.weights for name, part in parts.items() if part.record is not None}
    assert weights.keys() == parts.keys()
    shapes = {name: tuple(each.shape) for name, each in weights.items()}
    rows = torch.cat([each.sum(-1).flatten() for each in weights.values()])
    before = weights["decoder.blocks.0.attention"]
    torch.testing.assert_close(fast, slow, atol=1e-5, rtol=1e-4)
    assert shapes["encoder.blocks.1.attention"] == (1, 2, 5, 5) and shapes["decoder.blocks.1.cross"] == (1, 2, 3, 5)
    torch.testing.assert_close(rows, torch.ones_like(rows))
    assert before.triu(1).abs().max() == 0


def test_too_long_is_named():
    with refuses("text_too_long", tokens=13, limit=12):
        Decoder(20, SMALL)(torch.zeros(1, 13, dtype=torch.long))


def test_states_begin_with_the_embedding_and_end_with_the_output():
    net = Decoder(20, SMALL).eval()
    ids = torch.randint(20, (1, 6))
    states = net.stack.states(*net.embedding.at(ids))
    assert len(states) == 3
    torch.testing.assert_close(states[0], net.embedding.at(ids)[0])
    torch.testing.assert_close(states[-1], net(ids))
