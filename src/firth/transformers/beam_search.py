"""Beam search: the most probable prefixes of each translation are extended token by token.

The best finished hypothesis has the highest log p(y | x), divided by a length penalty (`decoding.py`), without which
short hypotheses would always win. A beam of 1 is greedy search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from firth.nets.recurrent import RecurrentTranslator
from firth.nets.transformer import EncoderDecoder
from firth.transformers.decoding import Decoding


class StepDecoder(Protocol):
    """Decodes one token at a time for several rows."""

    def step(self, ids: Tensor) -> Tensor:
        """Return logits (rows, vocabulary) of the token after `ids` (rows,)."""

    def select(self, rows: Tensor) -> None:
        """Continue with these rows. Rows may repeat or be missing, but each stays with its source."""

    def drop_sources(self, rows: Tensor) -> None:
        """Continue with these rows; finished sources are dropped."""


class TransformerDecoder:
    """Step decoder of a Transformer, with a key-value cache."""

    def __init__(self, net: EncoderDecoder, source: Tensor, mask: Tensor, beam: int, tokens: int) -> None:
        memory = net.encode(source, mask).repeat_interleave(beam, dim=0)
        self.net, self.memory, self.mask = net, memory, mask.repeat_interleave(beam, dim=0)
        self.caches = net.decoder.caches(len(memory), memory, memory.shape[1], tokens)
        self.position = 0

    def step(self, ids: Tensor) -> Tensor:
        """Return the logits of the next token."""
        hidden = self.net.decode(ids[:, None], self.memory, self.mask, self.position, self.caches)
        self.position += 1
        return self.net.logits(hidden[:, 0])

    def select(self, rows: Tensor) -> None:
        """Continue with these rows of the self-attention cache."""
        for own, _ in self.caches:  # beams of one source share the keys and values of its memory
            own.select(rows)

    def drop_sources(self, rows: Tensor) -> None:
        """Continue with these rows of all caches and the memory."""
        self.memory, self.mask = self.memory[rows], self.mask[rows]
        for caches in self.caches:
            for cache in caches:
                cache.select(rows)


class RecurrentDecoder:
    """Step decoder of the recurrent network, with its LSTM state."""

    def __init__(self, net: RecurrentTranslator, source: Tensor, mask: Tensor, beam: int, tokens: int) -> None:
        memory, state = net.encode(source, mask)
        self.net = net
        self.memory = type(memory)(*(part.repeat_interleave(beam, dim=0) for part in memory))
        self.state = type(state)(*(part.repeat_interleave(beam, dim=1) for part in state))

    def step(self, ids: Tensor) -> Tensor:
        """Return the logits of the next token."""
        hidden, self.state, _ = self.net.step(ids, self.memory, self.state)
        return self.net.logits(hidden)

    def select(self, rows: Tensor) -> None:
        """Continue with these rows of the state."""
        self.state = type(self.state)(*(part[:, rows] for part in self.state))

    def drop_sources(self, rows: Tensor) -> None:
        """Continue with these rows of the state and the memory."""
        self.memory = type(self.memory)(*(part[rows] for part in self.memory))
        self.select(rows)


@dataclass(frozen=True)
class Hypothesis:
    """A translation as token ids, without the end token."""

    ids: list[int]
    score: float  # log-probability, divided by the length penalty
    ended: bool  # False if it was cut at the token limit


@dataclass
class Finished:
    """The best finished hypotheses of one source."""

    beam: int
    limit: int  # maximum number of tokens, including the end token
    best: list[Hypothesis] = field(default_factory=list)  # at most `beam`, the best first
    last: Hypothesis = field(default_factory=lambda: Hypothesis([], -math.inf, False))

    def add(self, hypothesis: Hypothesis) -> None:
        """Add a finished hypothesis."""
        self.best = sorted([*self.best, hypothesis], key=lambda each: -each.score)[: self.beam]

    def done(self, how: Decoding, score: float, length: int) -> bool:
        """Return whether the search ends, when the best unfinished hypothesis has this log-probability."""
        if len(self.best) < self.beam or how.stop == "full":
            return len(self.best) == self.beam
        longest = self.limit if how.stop == "never" and how.length_penalty > 0 else length
        rival = self.best[0 if how.stop == "best" else -1]
        return rival.score >= score / how.divisor(longest)


@torch.inference_mode()
def beam_search(decoder: StepDecoder, limits: list[int], how: Decoding, device: torch.device) -> list[Hypothesis]:
    """Return the best translation of each source.

    `decoder` has `how.beam` consecutive rows per source. `limits` are the maximum numbers of tokens per source.
    """
    beam = how.beam
    finished = [Finished(beam, limit) for limit in limits]
    active = list(range(len(limits)))  # unfinished sources
    scores = torch.full((len(active), beam), -math.inf, device=device)
    scores[:, 0] = 0.0  # all beams of a source start equal, so only the first counts
    prefixes = torch.zeros(len(active), beam, 0, dtype=torch.long, device=device)
    ids = torch.full((len(active) * beam,), how.begin, device=device)
    for length in range(1, max(limits, default=0) + 1):
        at_limit = torch.tensor([finished[source].limit == length for source in active], device=device)
        logits = decoder.step(ids).float()
        vocabulary_size = logits.shape[-1]
        log_p = how.log_probabilities(logits, prefixes.flatten(0, 1), at_limit.repeat_interleave(beam))
        total = scores[..., None] + log_p.view(len(active), beam, vocabulary_size)
        # Twice the beam: if the best half ends, the other half can continue.
        top, flat_ids = total.flatten(1).topk(min(2 * beam, beam * vocabulary_size), dim=-1)
        rows, tokens = flat_ids // vocabulary_size, flat_ids % vocabulary_size
        ends = tokens == how.end
        if how.like_transformers:  # hypotheses at the limit are finished
            ends = ends | at_limit[:, None]
        for source, rank in ends[:, :beam].nonzero().tolist():
            score, token = float(top[source, rank]), int(tokens[source, rank])
            if score > -math.inf:
                ids_so_far = prefixes[source, rows[source, rank]].tolist()
                ended = token == how.end
                hypothesis = Hypothesis(
                    ids_so_far if ended else [*ids_so_far, token], score / how.divisor(length), ended
                )
                finished[active[source]].add(hypothesis)
        survivors = top.masked_fill(ends, -math.inf).topk(beam, dim=-1)
        scores = survivors.values
        rows, tokens = rows.gather(1, survivors.indices), tokens.gather(1, survivors.indices)
        prefixes = torch.cat(
            [prefixes.gather(1, rows[..., None].expand(-1, -1, prefixes.shape[2])), tokens[..., None]], -1
        )
        continuing = []
        for row, (source, score) in enumerate(zip(active, scores[:, 0].tolist(), strict=True)):
            state = finished[source]
            if state.limit == length and not state.best:
                state.last = Hypothesis(prefixes[row, 0].tolist(), score / how.divisor(length), False)
            if not state.done(how, score, length) and length < state.limit and score > -math.inf:
                continuing.append(row)
        if not continuing:
            break
        flat_rows = (torch.arange(len(active), device=device)[:, None] * beam + rows).flatten()
        if len(continuing) < len(active):
            selected_rows = torch.tensor(continuing, device=device)
            decoder.drop_sources(flat_rows.view(-1, beam)[selected_rows].flatten())
            scores, tokens, prefixes = scores[selected_rows], tokens[selected_rows], prefixes[selected_rows]
            active = [active[row] for row in continuing]
        else:
            decoder.select(flat_rows)
        ids = tokens.flatten()
    return [state.best[0] if state.best else state.last for state in finished]
