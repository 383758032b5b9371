"""Writing token by token, natively, beside the net that reads the whole text at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from refusing import refuses
from tiny import tiny_gpt

from firth.nets.architecture import Architecture
from firth.nets.transformer import Decoder
from firth.transformers.generation import Engine, Sampling, TorchEngine, engine_of, generate_ids
from firth.transformers.native_decoder import native_decoder

VOCABULARY = 11


def make_net(positions: str, activation: str) -> Decoder:
    torch.manual_seed(1)
    size = Architecture(
        layers=2, dim=24, heads=3, max_positions=20, dropout=0.1, positions=positions, activation=activation
    )
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
    expected = net.logits(net(torch.tensor([ids])))[0, :, :VOCABULARY]
    native = native_decoder(net, VOCABULARY)
    assert native is not None
    engines: list[Engine] = [native, TorchEngine(net, VOCABULARY)]
    for engine in engines:
        state = engine.start()
        logits = [state.logits(ids[:4]), *(state.logits([token]) for token in ids[4:])]
        torch.testing.assert_close(torch.from_numpy(np.stack(logits)), expected[3:], atol=1e-4, rtol=1e-4)


def test_a_full_context_slides_with_the_writer() -> None:
    net = make_net("learned", "gelu")
    generated = list(generate_ids(engine_of(net, VOCABULARY), [1, 2], 60, Sampling(temperature=0), slide=True))
    assert len(generated) == 60
    history = [1, 2, *generated]
    again = next(generate_ids(engine_of(net, VOCABULARY), history[11:21], 1, Sampling(temperature=0), slide=False))
    assert history[21] == again  # the first that was written after the older half was forgotten


def test_writing_tells_the_candidates_of_each_step():
    model = tiny_gpt()
    text = "".join(model.generate("the king", 6, temperature=0))
    steps = model.generate_tokens("the king", tokens=6, k=4, temperature=0)
    assert model.tokenizer.decode([step.token.id for step in steps]) == text
    for step in steps:
        assert step.token == step.candidates[0] and len(step.candidates) == 4 and step.token.chance == 1
        assert [each.probability for each in step.candidates] == sorted(
            (each.probability for each in step.candidates), reverse=True
        )
    # Tokens that were taken are read as they are: the third step follows from the first two.
    generated = [step.token.id for step in steps[:2]]
    again = model.generate_tokens("the king", generated, tokens=1, k=4, temperature=0)[0]
    assert again.token.id == steps[2].token.id
    assert again.token.probability == pytest.approx(steps[2].token.probability, rel=1e-4)
    # And in one reading of the whole they have the probabilities that they had when they were written.
    probabilities = model.token_probabilities("the king", [step.token.id for step in steps])
    assert [each.text for each in probabilities] == [step.token.text for step in steps]
    expected = [step.token.probability for step in steps]
    assert [each.probability for each in probabilities] == pytest.approx(expected, rel=1e-3)


def test_what_stands_before_a_stop_is_told_whole():
    """Bytes that are no character too, which a net that has learned nothing writes in plenty."""
    model = tiny_gpt()
    whole = "".join(model.generate("the", 60, temperature=1.0))
    stops = [letter for letter, before in zip(whole[1:], whole, strict=False) if before == "\ufffd" != letter]
    assert stops
    for stop in stops:
        assert "".join(model.generate("the", 60, temperature=1.0, stop=stop)) == whole[: whole.index(stop)]


def test_chances_are_those_of_sampling():
    model, words = tiny_gpt(), len(tiny_gpt().tokenizer)
    step = model.generate_tokens("the king", k=words, temperature=0.5, top_k=7)[0]
    assert sum(each.probability for each in step.candidates) == pytest.approx(1, abs=1e-4)
    assert sum(each.chance for each in step.candidates) == pytest.approx(1, abs=1e-4)
    assert sum(each.chance > 0 for each in step.candidates) == 7 and step.token.chance > 0
    some = [each for each in step.candidates if each.chance > 0]
    sharper = [each.probability**2 for each in some]  # temperature ½
    assert [each.chance for each in some] == pytest.approx([value / sum(sharper) for value in sharper], rel=1e-3)


def test_what_writing_refuses():
    model = tiny_gpt(places=8)
    last = len(model.tokenizer) - 1
    for settings, code, values in (
        ({"generated": [99999]}, "unknown_token", {"limit": last, "got": 99999}),
        ({"tokens": 0}, "invalid_value", {"tokens": 0, "k": 10}),
        ({"k": 0}, "invalid_value", {"tokens": 1, "k": 0}),
        ({"tokens": 9}, "text_too_long", {"tokens": 9, "limit": 8}),
        ({"temperature": -1}, "invalid_value", {"option": "temperature", "got": -1}),
        ({"seed": 2**64}, "invalid_value", {"option": "seed", "got": 2**64}),
    ):
        with refuses(code, **values):
            model.generate_tokens("the", **settings)
    with refuses("unknown_token", limit=last, got=-1):
        model.token_probabilities("the", [-1])
    with refuses("text_too_long", limit=8):
        model.token_probabilities("the", [1] * 9)
    assert model.token_probabilities("the", []) == []
