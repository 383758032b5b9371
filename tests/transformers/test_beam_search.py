"""Beam search against the same thing written slowly: one source at a time, nothing cached, lists instead of tensors."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from firth.nets.architecture import Architecture
from firth.nets.recurrent import RecurrentTranslator
from firth.nets.transformer import EncoderDecoder
from firth.transformers.beam_search import RecurrentDecoder, TransformerDecoder, beam_search
from firth.transformers.decoding import Decoding

PAD, BEGIN, END, VOCABULARY, LIMIT = 0, 1, 2, 11, 9
SOURCES = [[3, 4, 5, 6, END], [7, END], [8, 9, 10, END], [3, 3, 3, 3, 3, 3, END]]
torch.set_num_threads(1)  # nets this small only wait for a second thread


def new_net(kind: str, seed: int = 0):
    torch.manual_seed(seed)
    net: RecurrentTranslator | EncoderDecoder
    if kind == "lstm":
        net = RecurrentTranslator(VOCABULARY, VOCABULARY, 16, layers=2, tied=True)
        gain = 3.0
    else:
        net = EncoderDecoder(
            VOCABULARY,
            VOCABULARY,
            Architecture(layers=2, dim=16, heads=2, max_positions=16, positions="sinusoidal"),
            tied=True,
        )
        gain = 2.0
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.dim() > 1:
                parameter.mul_(gain)  # untrained nets find all tokens equally likely: make them opinionated
    return net.eval()


@torch.inference_mode()
def next_scores(net, source: list[int], prefix: list[int]) -> list[float]:
    ids = torch.tensor([source])
    hidden = net(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([[BEGIN, *prefix]]))
    logits = net.logits(hidden)[0, -1]
    logits[[PAD, BEGIN]] = -math.inf
    return torch.log_softmax(logits, -1).tolist()


def slow_search(net, source: list[int], beam: int, alpha: float) -> tuple[list[int], float, bool]:
    active: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[Any] = []
    for length in range(1, LIMIT + 1):
        divisor = ((5 + length) / 6) ** alpha
        extended = [
            (score + score_of_token, [*prefix, token])
            for score, prefix in active
            for token, score_of_token in enumerate(next_scores(net, source, prefix))
            if score_of_token > -math.inf
        ]
        extended.sort(key=lambda item: -item[0])
        finished += [(score / divisor, prefix[:-1]) for score, prefix in extended[:beam] if prefix[-1] == END]
        active = [item for item in extended[: 2 * beam] if item[1][-1] != END][:beam]
        if len(finished) >= beam and max(finished)[0] >= active[0][0] / divisor:
            break
    if finished:
        score, prefix = max(finished)
        return prefix, score, True
    return active[0][1], active[0][0] / divisor, False


def search(net, sources: list[list[int]], beam: int, alpha: float):
    longest = max(map(len, sources))
    ids = torch.tensor([[*source, *[PAD] * (longest - len(source))] for source in sources])
    decoder_class = RecurrentDecoder if isinstance(net, RecurrentTranslator) else TransformerDecoder
    with torch.inference_mode():
        decoder = decoder_class(net, ids, ids != PAD, beam, LIMIT)
    how = Decoding(BEGIN, END, PAD, beam, alpha, never=(PAD, BEGIN))
    return beam_search(decoder, [LIMIT] * len(sources), how, ids.device)


@pytest.mark.parametrize("alpha", [0.0, 0.8])
@pytest.mark.parametrize("beam", [1, 3, VOCABULARY])
@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_it_is_the_slow_search(kind, beam, alpha):
    net = new_net(kind)
    hypotheses = search(net, SOURCES, beam, alpha)
    for source, hypothesis in zip(SOURCES, hypotheses, strict=True):
        ids, score, ended = slow_search(net, source, beam, alpha)
        assert (hypothesis.ids, hypothesis.ended) == (ids, ended)
        assert hypothesis.score == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_a_beam_of_one_is_greedy(kind):
    net = new_net(kind, seed=1)
    for source, hypothesis in zip(SOURCES, search(net, SOURCES, 1, 0.6), strict=True):
        greedy: list[int] = []
        while len(greedy) < LIMIT and END not in greedy:
            scores = next_scores(net, source, greedy)
            greedy.append(scores.index(max(scores)))
        assert hypothesis.ids == [token for token in greedy if token != END] and hypothesis.ended == (END in greedy)


def test_the_nets_of_these_tests_end_some_and_break_off_others():
    """Else the comparisons above would not see both ways out."""
    hypotheses = [
        hypothesis for kind in ("transformer", "lstm") for hypothesis in search(new_net(kind), SOURCES, 3, 0.8)
    ]
    assert {hypothesis.ended for hypothesis in hypotheses} == {True, False}
    assert len({len(hypothesis.ids) for hypothesis in hypotheses}) > 1
