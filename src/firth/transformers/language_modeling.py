"""Causal language modeling: training on a token stream."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.errors import FirthError
from firth.core.run import Run
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
        passes = self.passes(MOST_TOKENS)
        rows = math.ceil(self.method.batch_units / self.context_length)
        if self.compiled is not None:  # for one shape of batches
            rows = math.ceil(rows / passes) * passes
        steps = [starts[first : first + rows] for first in range(0, n_sequences, rows)]
        parts = [(part, n) for n, step in enumerate(steps) for part in np.array_split(step, passes) if len(part)]
        return [Batch(part, len(part) * self.context_length, n) for part, n in parts]

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
