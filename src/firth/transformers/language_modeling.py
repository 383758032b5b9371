"""Causal language modeling: training on a token stream, sampling and generation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from firth.core.errors import FirthError
from firth.core.run import Run
from firth.core.stored import finite_rows
from firth.kernels.write import NO_ROTARY, Net, Writer
from firth.nets.transformer import Decoder
from firth.training.gradient_loop import Batch, GradientLoop, token_shares
from firth.training.network_options import GradientOptions

MOST_TOKENS = 32_768  # per batch in memory; larger steps accumulate gradients over several


class LanguageTraining(GradientLoop):
    """Trains on shuffled sequences of `context_length` tokens; each epoch splits the stream at another offset."""

    compiles: ClassVar[bool] = True

    def __init__(
        self,
        method: GradientOptions,
        net: Decoder,
        ids: NDArray[np.int32],
        context_length: int,
        held_out: float,
        fingerprint: str,
        run: Run,
    ) -> None:
        self.context_length = min(context_length, len(ids) - 1)
        if self.context_length < 1:
            raise FirthError(
                "too_few", "A language model needs at least 2 tokens for training; got {got}.", got=len(ids)
            )
        n_held_out = int(len(ids) * held_out)
        self.ids, self.held_out = ids[: len(ids) - n_held_out], ids[len(ids) - n_held_out :]
        if len(self.ids) <= self.context_length:
            self.context_length = max(1, len(self.ids) - 1)
        super().__init__(
            method, net, fingerprint, run, (len(self.ids) - 1) // self.context_length * self.context_length
        )

    def plan(self, epoch: int) -> Sequence[Batch]:
        """Return the batches of an epoch."""
        random = np.random.default_rng([self.run.seed, epoch])
        n_sequences = self.size // self.context_length
        slack = len(self.ids) - 1 - n_sequences * self.context_length  # how far the offset can move
        starts = int(random.integers(slack + 1)) + self.context_length * random.permutation(n_sequences)
        # Rounded up: with slightly too few sequences, a step would take a second batch.
        rows = math.ceil(min(MOST_TOKENS, self.method.batch_units / self.world) / self.context_length)
        parts = [starts[first : first + rows] for first in range(0, n_sequences, rows)]
        return [Batch(part, len(part) * self.context_length) for part in parts]

    def load(self, what: Any) -> Any:
        """Return the tensor of a batch."""
        return [torch.from_numpy(sequences(self.ids, what, self.context_length + 1))]

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        """Return the summed loss of a batch."""
        (ids,) = tensors
        loss: Tensor = self.net.losses(ids.long()).sum()  # type: ignore[operator]
        return loss

    def evaluate(self, most: int) -> dict[str, float]:
        """Return loss and perplexity on at most about `most` held-out tokens."""
        if len(self.held_out) < 2:
            return {}
        total = tokens = 0.0
        part = self.held_out[: max(most, 2 * self.context_length)]
        for ids in windows(part, self.context_length, rows=max(1, 8192 // self.context_length)):
            total += float(self.batch_loss(torch.from_numpy(ids).to(self.device)))
            tokens += ids[:, 1:].size
        return {"held_out_loss": total / tokens, "perplexity": math.exp(min(700.0, total / tokens))}

    def baseline_loss(self) -> float | None:
        """Return the held-out loss of predicting tokens by their frequency."""
        if len(self.held_out) < 2:
            return None
        vocabulary_size = 1 + int(max(self.ids.max(), self.held_out.max()))
        return float(-np.log(token_shares(self.ids, vocabulary_size))[self.held_out[1:]].mean())

    def operations(self) -> float:
        """Return the floating-point operations per token, with 12 · layers · dim · context_length for attention.

        By convention attention counts in full, although causal kernels skip half of it (Chowdhery et al. 2022, appendix
        B).
        """
        assert isinstance(self.net, Decoder)
        size = self.net.size
        return super().operations() + 12.0 * size.layers * size.dim * self.context_length


def sequences(ids: NDArray[np.int32], starts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Return one row of `length` tokens from each start."""
    return np.stack([ids[start : start + length] for start in starts]).astype(np.int64)


def windows(ids: NDArray[np.int32], context_length: int, rows: int) -> Iterator[NDArray[np.int64]]:
    """Yield the stream in rows that predict each token but the first from at most `context_length` tokens."""
    n_full = (len(ids) - 1) // context_length
    for first in range(0, n_full, rows):
        yield sequences(ids, context_length * np.arange(first, min(n_full, first + rows)), context_length + 1)
    rest = ids[n_full * context_length :]
    if len(rest) > 1:
        yield rest[None].astype(np.int64)


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


#: Parts of a block, in the order of the native generation kernel.
LAYER = ("attention_norm", "attention.query_key_value", "attention.output", "feed_norm", "feed.wide", "feed.back")


def native_decoder(net: Decoder, vocabulary_size: int) -> Writer | None:
    """Return the native generation kernel for a float32 network on a CPU; None in other cases."""
    if next(net.parameters()).device.type != "cpu" or next(net.parameters()).dtype != torch.float32:
        return None

    state, size = {name: tensor.detach().numpy() for name, tensor in net.state_dict().items()}, net.size
    layers = [
        [state[f"stack.blocks.{layer}.{part}.{end}"] for part in LAYER for end in ("weight", "bias")]
        for layer in range(size.layers)
    ]
    norm, outputs = (
        (state["stack.norm.weight"], state["stack.norm.bias"]),
        state["embedding.tokens.weight"][:vocabulary_size],
    )
    shape = (size.heads, size.max_positions, size.activation, size.epsilon)
    return Writer(Net(layers, norm, outputs, *shape), torch.get_num_threads())


class DecodingState:
    """The tokens processed so far, as a key-value cache, and the logits of the next token."""

    def __init__(self, net: Decoder, vocabulary_size: int, native: Writer | None) -> None:
        self.net, self.vocabulary_size, self.native, self.length = net, vocabulary_size, native, 0
        self.caches = net.stack.caches(1, next(net.parameters()))

    def logits(self, fresh: Sequence[int]) -> Tensor:
        """Process new tokens and return the logits of the next one."""
        first, device = self.length, next(self.net.parameters()).device
        self.length += len(fresh)
        if self.native is not None and first and len(fresh) == 1:
            return torch.from_numpy(self.native_logits(fresh[0], first))
        hidden = self.net(torch.tensor([fresh], device=device), first, self.caches)
        if self.native is not None:
            for layer, (cache, *_) in enumerate(self.caches):
                self.native.keys[layer, :, : self.length] = cache.keys[0, :, : self.length].numpy()
                self.native.values[layer, :, : self.length] = cache.values[0, :, : self.length].numpy()
        return self.net.logits(hidden[:, -1])[0, : self.vocabulary_size]

    def native_logits(self, token: int, position: int) -> NDArray[np.float32]:
        """Process one token with the native kernel."""
        assert self.native is not None
        x = self.net.embedding(torch.tensor([[token]]), position)[0, 0].numpy()
        block: Any = self.net.stack.blocks[0]
        rotary = block.attention.rotary
        turns = NO_ROTARY if rotary is None else torch.cat([rotary.cos[position], rotary.sin[position]]).numpy()
        return self.native.write(x, position, turns)


def generate_ids(
    net: Decoder, vocabulary_size: int, ids: Sequence[int], tokens: int, sampling: Sampling, slide: bool
) -> Iterator[int]:
    """Yield generated tokens after `ids`. With `slide`, a full context drops its older half and continues."""
    for token, _ in generate_with_logits(net, vocabulary_size, ids, tokens, sampling, slide):
        yield token


@torch.inference_mode()
def generate_with_logits(
    net: Decoder, vocabulary_size: int, ids: Sequence[int], tokens: int, sampling: Sampling, slide: bool
) -> Iterator[tuple[int, Tensor]]:
    """Yield generated tokens with their logits."""
    max_positions = net.size.max_positions
    generator = torch.Generator().manual_seed(sampling.seed)
    history, fresh = list(ids), list(ids)
    native = native_decoder(net, vocabulary_size)
    state = DecodingState(net, vocabulary_size, native)
    for _ in range(tokens):
        if state.length + len(fresh) > max_positions:
            assert slide  # the caller has checked the length
            history = history[-(max_positions // 2) :]
            fresh, state = history, DecodingState(net, vocabulary_size, native)
        logits = state.logits(fresh)
        finite_rows(logits.float().cpu().numpy()[None], "Token")
        token = sampling.choose(logits, generator)
        yield token, logits
        history.append(token)
        fresh = [token]
