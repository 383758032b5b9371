"""Writing token by token, natively, beside the net that reads the whole text at once."""

from __future__ import annotations

import pytest
import torch

from firth.learners.language import Reading, Sampling, continued, writer_of
from firth.nets.transformer import Decoder, Size

WORDS = 11


def make_net(positions: str, activation: str) -> Decoder:
    torch.manual_seed(1)
    size = Size(layers=2, dim=24, heads=3, places=20, dropout=0.1, positions=positions, activation=activation)
    net = Decoder(16, size).eval()
    for parameter in net.parameters():  # biases too: nothing may be left out unseen
        torch.nn.init.normal_(parameter, std=0.3)
    return net


@pytest.mark.parametrize(
    ("positions", "activation"),
    [("learned", "gelu_tanh"), ("rotary", "swiglu"), ("sinusoidal", "gelu"), ("rotary", "relu")],
)
@torch.inference_mode()
def test_each_token_has_the_logits_of_the_whole_text(positions: str, activation: str) -> None:
    net, ids = make_net(positions, activation), [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
    whole = net.logits(net(torch.tensor([ids])))[0, :, :WORDS]
    reading = Reading(net, WORDS, writer_of(net, WORDS))
    found = [reading.logits(ids[:4]), *(reading.logits([token]) for token in ids[4:])]
    torch.testing.assert_close(torch.stack(found), whole[3:], atol=1e-4, rtol=1e-4)


def test_a_full_context_slides_with_the_writer() -> None:
    net = make_net("learned", "gelu")
    found = list(continued(net, WORDS, [1, 2], 60, Sampling(temperature=0), slide=True))
    assert len(found) == 60
    known = [1, 2, *found]
    again = next(continued(net, WORDS, known[11:21], 1, Sampling(temperature=0), slide=False))
    assert known[21] == again  # the first that was written after the older half was forgotten
