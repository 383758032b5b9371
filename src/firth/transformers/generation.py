"""Text generation: sampling the next token, and the engines that compute its logits."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from firth.core.errors import FirthError
from firth.core.model import Candidate, GeneratedToken
from firth.core.stored import finite_rows
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.kernels.decoder import FloatArray
from firth.nets.transformer import Decoder
from firth.transformers.native_decoder import native_decoder


@dataclass(frozen=True)
class Sampling:
    """Settings for sampling the next token."""

    temperature: float = 0.8  # 0 = greedy
    top_k: int = 0  # sample from the k most probable tokens; 0 = all
    top_p: float = 1.0  # sample from the most probable tokens with this total probability
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise FirthError(
                "invalid_value", "{option} must be at least 0; got {got}.", option="temperature", got=self.temperature
            )
        if self.top_k < 0:
            raise FirthError("invalid_value", "{option} must be at least 0; got {got}.", option="top_k", got=self.top_k)
        if not 0 < self.top_p <= 1:
            raise FirthError(
                "invalid_value", "{option} must be above 0 and at most 1; got {got}.", option="top_p", got=self.top_p
            )
        if not -(2**63) <= self.seed < 2**63:
            raise FirthError(
                "invalid_value", "{option} must be a 64-bit integer; got {got}.", option="seed", got=self.seed
            )

    def choose(self, logits: Tensor, generator: torch.Generator) -> int:
        """Sample a token from logits (vocabulary,)."""
        if self.temperature == 0:
            return int(logits.argmax())
        return int(torch.multinomial(self.probabilities(logits), 1, generator=generator))

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the sampling probability of each token."""
        if self.temperature == 0:
            return functional.one_hot(logits.argmax(), len(logits)).float().cpu()
        logits = logits.float().cpu() / self.temperature
        if self.top_k:
            least = logits.topk(min(self.top_k, len(logits))).values[-1]
            logits = logits.masked_fill(logits < least, -math.inf)
        probabilities = torch.softmax(logits, dim=-1)
        if self.top_p < 1:
            ordered, order = probabilities.sort(descending=True)
            beyond = ordered.cumsum(0) - ordered >= self.top_p  # keeps at least the most probable
            probabilities[order[beyond]] = 0.0
            probabilities /= probabilities.sum()
        return probabilities


class DecodingState(Protocol):
    """The tokens processed so far, as a key-value cache."""

    length: int

    def logits(self, ids: Sequence[int]) -> FloatArray:
        """Process new tokens and return the logits of the next one."""


class Engine(Protocol):
    """Computes a network for generation: torch, or the native engine (`kernels/decoder.py`)."""

    @property
    def max_positions(self) -> int:
        """The length of the longest sequence."""

    def start(self) -> DecodingState:
        """Return an empty state."""


class TorchEngine:
    """A network on any device."""

    def __init__(self, net: Decoder, vocabulary_size: int) -> None:
        self.net, self.vocabulary_size = net, vocabulary_size

    @property
    def max_positions(self) -> int:
        """The length of the longest sequence."""
        return self.net.size.max_positions

    def start(self) -> TorchState:
        """Return an empty state."""
        return TorchState(self.net, self.vocabulary_size)


class TorchState:
    """The key-value cache of a network."""

    def __init__(self, net: Decoder, vocabulary_size: int) -> None:
        self.net, self.vocabulary_size, self.length = net, vocabulary_size, 0
        self.caches = net.stack.caches(1, next(net.parameters()))

    def logits(self, ids: Sequence[int]) -> FloatArray:
        """Process new tokens and return the logits of the next one."""
        inputs = torch.tensor([list(ids)], device=next(self.net.parameters()).device)
        hidden = self.net(inputs, self.length, self.caches)
        self.length += len(ids)
        return self.net.logits(hidden[:, -1])[0, : self.vocabulary_size].float().cpu().numpy()


def engine_of(net: Decoder, vocabulary_size: int) -> Engine:
    """Return the native engine where it computes the network, otherwise torch."""
    return native_decoder(net, vocabulary_size) or TorchEngine(net, vocabulary_size)


def generate_ids(engine: Engine, ids: Sequence[int], tokens: int, sampling: Sampling, slide: bool) -> Iterator[int]:
    """Yield generated tokens after `ids`. With `slide`, a full context drops its older half and continues."""
    for token, _ in generate_with_logits(engine, ids, tokens, sampling, slide):
        yield token


@torch.inference_mode()
def generate_with_logits(
    engine: Engine, ids: Sequence[int], tokens: int, sampling: Sampling, slide: bool
) -> Iterator[tuple[int, Tensor]]:
    """Yield generated tokens with their logits."""
    generator, max_positions = torch.Generator().manual_seed(sampling.seed), engine.max_positions
    history, fresh = list(ids), list(ids)
    state = engine.start()
    for _ in range(tokens):
        if state.length + len(fresh) > max_positions:
            assert slide  # the caller has checked the length
            history = history[-(max_positions // 2) :]
            fresh, state = history, engine.start()
        logits = finite_rows(np.asarray(state.logits(fresh))[None], "Token")[0]
        scores = torch.from_numpy(logits)
        token = sampling.choose(scores, generator)
        yield token, scores
        history.append(token)
        fresh = [token]


def stream_text(
    tokenizer: SubwordTokenizer, tokens: Iterator[int], ends: Collection[int], stop: Sequence[str]
) -> Iterator[str]:
    """Yield generated text as soon as it is final: a token may hold part of a character or of a stop text."""
    generated, emitted = list[int](), 0
    longest = max(map(len, stop), default=1) - 1
    for token in tokens:
        if token in ends:
            break
        generated.append(token)
        text = tokenizer.decode(generated)
        stops = [index for index in (text.find(word) for word in stop if word) if index >= 0]
        if stops:
            text, longest = text[: min(stops)], 0
        certain = len(text) - longest if stops or not text.endswith("\ufffd") else emitted
        if certain > emitted:
            yield text[emitted:certain]
            emitted = certain
        if stops:
            return
    rest = tokenizer.decode(generated)[emitted:]
    if rest:
        yield rest


def checked_token_ids(tokens: Sequence[int], vocabulary_size: int) -> Sequence[int]:
    """Return the token ids, or raise unknown_token."""
    invalid = [id for id in tokens if not 0 <= id < vocabulary_size]
    if invalid:
        raise FirthError(
            "unknown_token",
            "Token ids must be from 0 to {limit:,}; got {got}.",
            limit=vocabulary_size - 1,
            got=invalid[0],
        )
    return tokens


def generated_token(
    tokenizer: SubwordTokenizer, token: int, logits: Tensor, sampling: Sampling, k: int
) -> GeneratedToken:
    """Return a sampled token and the `k` most probable ones, with their probabilities."""
    probabilities, sampled = torch.softmax(logits.float().cpu(), dim=-1), sampling.probabilities(logits)
    best = probabilities.topk(min(k, len(tokenizer))).indices.tolist()
    candidates = {
        id: Candidate(id, tokenizer.decode([id], special=True), float(probabilities[id]), float(sampled[id]))
        for id in (*best, token)
    }
    return GeneratedToken(candidates[token], [candidates[id] for id in best])
