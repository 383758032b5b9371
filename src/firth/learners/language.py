"""Language models: a stream of tokens, each predicted from those before it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from firth.core.errors import FirthError
from firth.core.run import Run
from firth.learners.gradient import Batch, Gradient
from firth.learners.network import GradientOptions
from firth.nets.transformer import Decoder

MOST_TOKENS = 32_768  # of a batch that is held in memory at once; larger steps add up several


class LanguageTraining(Gradient):
    """Stretches of `context` tokens from a stream, cut at another place in each epoch and shuffled."""

    compiles: ClassVar[bool] = True

    def __init__(
        self,
        method: GradientOptions,
        net: Decoder,
        ids: NDArray[np.int32],
        context: int,
        held_out: float,
        fingerprint: str,
        run: Run,
    ) -> None:
        self.context = min(context, len(ids) - 1)
        if self.context < 1:
            raise FirthError(f"A language model needs at least two tokens to learn from; got {len(ids)}.")
        kept = int(len(ids) * held_out)
        self.ids, self.held_out = ids[: len(ids) - kept], ids[len(ids) - kept :]
        if len(self.ids) <= self.context:
            self.context = max(1, len(self.ids) - 1)
        super().__init__(method, net, fingerprint, run, (len(self.ids) - 1) // self.context * self.context)

    def plan(self, epoch: int) -> Sequence[Batch]:
        random = np.random.default_rng([self.run.seed, epoch])
        stretches = self.size // self.context
        room = len(self.ids) - 1 - stretches * self.context  # how far the cuts can move
        starts = int(random.integers(room + 1)) + self.context * random.permutation(stretches)
        rows = max(1, min(MOST_TOKENS, self.method.batch_units // self.world) // self.context)
        parts = [starts[first : first + rows] for first in range(0, stretches, rows)]
        return [Batch(part, len(part) * self.context) for part in parts]

    def load(self, what: Any) -> Any:
        return [torch.from_numpy(stretches(self.ids, what, self.context + 1))]

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        (ids,) = tensors
        logits = self.net.logits(self.net(ids[:, :-1]))  # type: ignore[operator]
        return functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten().long(), reduction="sum")

    def evaluate(self, most: int) -> dict[str, float]:
        if len(self.held_out) < 2:
            return {}
        total = tokens = 0.0
        part = self.held_out[: max(most, 2 * self.context)]
        for ids in windows(part, self.context, rows=max(1, 8192 // self.context)):
            total += float(self.batch_loss(torch.from_numpy(ids).to(self.device)))
            tokens += ids[:, 1:].size
        return {"held_out_loss": total / tokens, "perplexity": math.exp(min(700.0, total / tokens))}

    def operations(self) -> float:
        """With the products of attention, 12 · layers · dim · context a token, as the field counts them, whole although
        causal kernels leave half of them out (Chowdhery et al. 2022, appendix B)."""
        assert isinstance(self.net, Decoder)
        size = self.net.size
        return super().operations() + 12.0 * size.layers * size.dim * self.context


def stretches(ids: NDArray[np.int32], starts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Rows of `length` tokens from each start."""
    return np.stack([ids[start : start + length] for start in starts]).astype(np.int64)


def windows(ids: NDArray[np.int32], context: int, rows: int) -> Iterator[NDArray[np.int64]]:
    """The whole stream once: each token but the first is predicted from at most `context` before it."""
    whole = (len(ids) - 1) // context
    for first in range(0, whole, rows):
        yield stretches(ids, context * np.arange(first, min(whole, first + rows)), context + 1)
    rest = ids[whole * context :]
    if len(rest) > 1:
        yield rest[None].astype(np.int64)


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen."""

    temperature: float = 0.8  # 0: always the likeliest
    top_k: int = 0  # among this many likeliest; 0 = all
    top_p: float = 1.0  # among the likeliest that together have this probability
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise FirthError(f"temperature must be at least 0; got {self.temperature}.")
        if self.top_k < 0:
            raise FirthError(f"top_k must be at least 0; got {self.top_k}.")
        if not 0 < self.top_p <= 1:
            raise FirthError(f"top_p must be above 0 and at most 1; got {self.top_p}.")

    def choose(self, logits: Tensor, generator: torch.Generator) -> int:
        """One of the tokens by its logits (words,)."""
        if self.temperature == 0:
            return int(logits.argmax())
        logits = logits.float().cpu() / self.temperature
        if self.top_k:
            least = logits.topk(min(self.top_k, len(logits))).values[-1]
            logits = logits.masked_fill(logits < least, -math.inf)
        probabilities = torch.softmax(logits, dim=-1)
        if self.top_p < 1:
            ordered, order = probabilities.sort(descending=True)
            beyond = ordered.cumsum(0) - ordered >= self.top_p  # the likeliest always stays
            probabilities[order[beyond]] = 0.0
        return int(torch.multinomial(probabilities, 1, generator=generator))


def lay_out_for_writing(net: nn.Module) -> None:
    """Matrices with more outputs than inputs, column by column: so a CPU multiplies one row by them faster. Values
    and shapes stay as they are."""
    for part in net.modules():
        if isinstance(part, nn.Linear) and part.out_features > part.in_features:
            part.weight.data = part.weight.data.t().contiguous().t()


@torch.inference_mode()
def continued(
    net: Decoder, words: int, ids: Sequence[int], tokens: int, sampling: Sampling, slide: bool
) -> Iterator[int]:
    """Tokens after `ids`, one by one. With `slide`, a full context forgets its older half and goes on."""
    places = net.size.places
    device = next(net.parameters()).device
    generator = torch.Generator().manual_seed(sampling.seed)
    known, fresh = list(ids), list(ids)
    caches = net.stack.caches(1, next(net.parameters()))
    outputs = net.embedding.tokens.weight[:words].t().contiguous()  # as in `lay_out_for_writing`
    first = 0
    for _ in range(tokens):
        if first + len(fresh) > places:
            assert slide  # the caller has refused what doesn't fit
            known = known[-(places // 2) :]
            fresh, first, caches = known, 0, net.stack.caches(1, next(net.parameters()))
        hidden = net(torch.tensor([fresh], device=device), first, caches)
        first += len(fresh)
        token = sampling.choose((hidden[:, -1] @ outputs)[0], generator)
        yield token
        known.append(token)
        fresh = [token]
