"""Training of an encoder-decoder: encoded pairs, batches of similar length and label smoothing."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.report import Report
from firth.core.run import Run
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.data.translation_pairs import Pair, TranslationPairs
from firth.nets.transformer import EncoderDecoder
from firth.training.gradient_loop import Batch, GradientLoop, token_shares
from firth.training.network_options import TranslatorOptions
from firth.training.weight_files import copy_weights
from firth.transformers.translation_model import (
    BEGIN,
    END,
    MULTIPLE,
    PAD,
    Net,
    Translator,
    new_net,
    new_tokenizer,
    shared,
    token_ids,
)

#: Options that the model given as `start` must share.
SIZES = ("architecture", "layers", "dim", "heads", "feedforward_dim")
BLOCK_PAIRS = 4096  # pairs encoded at a time


# ---- pairs as ids ----


class Encoded(NamedTuple):
    """Concatenated pairs of id sequences: source tokens </s>, and <s> target tokens </s>."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]  # (pairs, 2): begin of source and target
    lengths: NDArray[np.int64]  # (pairs, 2)

    def __len__(self) -> int:
        return len(self.starts)

    def part(self, which: NDArray[np.int64]) -> Encoded:
        """Return some of the pairs."""
        return Encoded(self.ids, self.starts[which], self.lengths[which])

    def fingerprint(self) -> str:
        """Return a hash of the pairs."""
        digest = hashlib.sha256()
        for numbers in self:
            digest.update(numbers.tobytes())
        return digest.hexdigest()

    def padded_lengths(self) -> NDArray[np.int64]:
        """Return the length of the longer side of each pair, rounded up."""
        return -(-np.maximum(self.lengths[:, 0], self.lengths[:, 1] - 1) // MULTIPLE) * MULTIPLE

    def padded(self, which: NDArray[np.int64], side: int) -> Tensor:
        """Return padded ids (rows, longest); a target has one more token, its begin token."""
        starts, lengths = self.starts[which, side], self.lengths[which, side]
        positions = np.arange(self.part(which).padded_lengths().max(initial=1) + side)
        inside = positions < lengths[:, None]
        return torch.from_numpy(
            np.where(inside, self.ids[np.where(inside, starts[:, None] + positions, 0)], PAD)
        ).long()


def encode(
    pairs: Iterable[Pair], tokenizer: SubwordTokenizer, context_length: int, report: Report, what: str
) -> Encoded:
    """Encode all pairs; those with an empty side or beyond the context length are skipped and reported."""
    ids, lengths = array("i"), array("q")
    empty = too_long = total = 0
    stream = iter(pairs)
    while block := list(islice(stream, BLOCK_PAIRS)):
        complete = [pair for pair in block if pair.source.strip() and pair.target.strip()]
        total += len(block)
        empty += len(block) - len(complete)
        sources, targets = (token_ids(tokenizer, [pair[side] for pair in complete]) for side in (0, 1))
        for source, target in zip(sources, targets, strict=True):
            if max(len(source), len(target)) + 1 > context_length:  # with the end token
                too_long += 1
                continue
            ids.extend([*source, END, BEGIN, *target, END])
            lengths.extend([len(source) + 1, len(target) + 2])
    if empty:
        report.note(f"{empty:,} of {total:,} {what} have an empty side and were skipped.", "empty_pairs")
    if too_long:
        report.note(
            f"{too_long:,} of {total:,} {what} are longer than context_length={context_length} and were skipped.",
            "long_pairs",
        )
    sizes = np.array(lengths, np.int64)
    starts = np.cumsum(sizes) - sizes
    return Encoded(np.array(ids, np.int32), starts.reshape(-1, 2), sizes.reshape(-1, 2))


# ---- training ----


def smoothed_loss(logits: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """Return the summed cross-entropy with label smoothing (Szegedy et al. 2016).

    The target distribution q gives the correct token 1 − ε + ε/K and each of the K − 1 others ε/K. The loss is
    Σ KL(q ‖ p) + H(q); H(q) does not depend on the weights, so both have the same gradient.
    """
    return functional.cross_entropy(
        logits.flatten(0, 1).float(), target.flatten(), ignore_index=PAD, label_smoothing=smoothing, reduction="sum"
    )


class Translating(GradientLoop):
    """Training with teacher forcing: the decoder sees the correct tokens so far and predicts the next."""

    method: TranslatorOptions
    net: Net

    def __init__(self, method: TranslatorOptions, net: Net, pairs: Encoded, held_out: Encoded, run: Run) -> None:
        self.pairs, self.held_out = pairs, held_out
        fingerprint = pairs.fingerprint() + held_out.fingerprint()
        super().__init__(method, net, fingerprint, run, int((pairs.lengths[:, 1] - 1).sum()))
        # Under autocast, cuDNN's LSTM supports float16 only, which needs loss scaling; it stays in float32.
        self.mixed = self.mixed and isinstance(net, EncoderDecoder)

    def plan(self, epoch: int) -> Sequence[Batch]:
        """Return steps of pairs of similar length with about `batch_tokens` target tokens."""
        random = np.random.default_rng([self.run.seed, epoch])
        steps = bucketed(self.pairs, random, self.method.batch_units)
        parts = [(part, n) for n, step in enumerate(steps) for part in np.array_split(step, self.passes())]
        lengths = self.pairs.lengths[:, 1] - 1
        return [Batch(part, int(lengths[part].sum()), step) for part, step in parts if len(part)]

    def load(self, what: Any) -> Any:
        """Return the padded sources and targets of a batch."""
        return [self.pairs.padded(what, side) for side in (0, 1)]

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        """Return the summed loss of a batch."""
        return smoothed_loss(*self.predicted(*tensors), self.method.label_smoothing)

    def predicted(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits and their target tokens."""
        hidden = self.net(source, source != PAD, target[:, :-1])
        return self.net.logits(hidden), target[:, 1:]

    def baseline_loss(self) -> float | None:
        """Return the held-out loss of predicting target tokens by their smoothed frequency."""
        if not len(self.held_out):
            return None
        smoothing = self.method.label_smoothing
        trained, held_out = (self.targets(pairs) for pairs in (self.pairs, self.held_out))
        vocabulary_size = int(self.net.logits(torch.zeros(1, 1, self.method.dim, device=self.device)).shape[-1])
        shares = (1 - smoothing) * token_shares(trained, vocabulary_size) + smoothing / vocabulary_size
        log_losses = -np.log(shares)
        return float((1 - smoothing) * log_losses[held_out].mean() + smoothing * log_losses.mean())

    def targets(self, pairs: Encoded) -> NDArray[np.int32]:
        """Return the predicted tokens: those of the targets without the begin tokens."""
        spans = zip(pairs.starts[:, 1].tolist(), pairs.lengths[:, 1].tolist(), strict=True)
        return np.concatenate([pairs.ids[start + 1 : start + length] for start, length in spans])

    def evaluate(self, most: int = 2**62) -> dict[str, float]:
        """Return the smoothed loss and the perplexity on about `most` held-out tokens."""
        smoothed = plain = tokens = 0.0
        for which in bucketed(self.held_out, np.random.default_rng(0), self.method.batch_units):
            if tokens >= most:
                break
            logits, truth = self.predicted(*(self.held_out.padded(which, side).to(self.device) for side in (0, 1)))
            smoothed += float(smoothed_loss(logits, truth, self.method.label_smoothing))
            plain += float(smoothed_loss(logits, truth, 0.0))
            tokens += float((truth != PAD).sum())
        if not tokens:
            return {}
        return {"held_out_loss": smoothed / tokens, "perplexity": math.exp(min(700.0, plain / tokens))}


def bucketed(pairs: Encoded, random: np.random.Generator, tokens: int) -> list[NDArray[np.int64]]:
    """Return groups of pairs of equal padded length with about `tokens` target tokens, in random order."""
    groups: list[NDArray[np.int64]] = []
    order, lengths = random.permutation(len(pairs)), pairs.padded_lengths()
    for length in np.unique(lengths):
        here = order[lengths[order] == length]
        rows = max(1, round(tokens / float((pairs.lengths[here, 1] - 1).mean())))
        groups += [here[first : first + rows] for first in range(0, len(here), rows)]
    return [groups[group] for group in random.permutation(len(groups))]


def train_translator(method: TranslatorOptions, data: TranslationPairs, run: Run, start: Model | None) -> Translator:
    """Train a tokenizer and an encoder-decoder on pairs, or continue from `start`."""
    if start is not None and not isinstance(start, Translator):
        raise FirthError("incompatible_start", "start must be a Seq2Seq model; got {got!r}.", got=start)
    if start is not None and start.family is not None:
        raise FirthError(
            "incompatible_start",
            "start must be a model that Firth trained; it is {existing}.",
            existing=f"a loaded {start.family.title}",
        )
    if start is not None and (different := [name for name in SIZES if not same(method, start, name)]):
        existing = ", ".join(f"{name}={getattr(start.method, name)}" for name in different)
        raise FirthError(
            "incompatible_start",
            "start must be a Seq2Seq model of the same size; it has {existing}.",
            existing=existing,
        )
    if not any(all(side.strip() for side in pair) for pair in data):
        raise FirthError("empty_data", "There are no training pairs: each pair needs a source and a target.")
    report = run.report
    texts = (text for pair in data if all(side.strip() for side in pair) for text in pair)
    tokenizer = start.tokenizer if start else new_tokenizer(method, texts, run)
    pairs = encode(data, tokenizer, method.context_length, report, "pairs")
    if data.dev is not None:
        held_out = encode(data.dev, tokenizer, method.context_length, report, "development pairs")
    else:
        order = np.random.default_rng(run.seed).permutation(len(pairs))
        n_held_out = int(len(pairs) * method.held_out)
        pairs, held_out = pairs.part(np.sort(order[n_held_out:])), pairs.part(np.sort(order[:n_held_out]))
    if not len(pairs):
        raise FirthError(
            "text_too_long",
            "There are no training pairs: all are longer than context_length={limit}.",
            limit=method.context_length,
        )
    net = new_net(method, len(tokenizer), run.seed)
    if start is not None:
        copy_weights(net, start.parts().arrays, shared)
    method = method.sized(int((pairs.lengths[:, 1] - 1).sum()))
    task = Translating(method, net, pairs, held_out, run)
    metrics = {"pairs": len(pairs), "held_out_pairs": len(held_out), "vocabulary": len(tokenizer)}
    return Translator(method, tokenizer, net, metrics | task.go())


def same(method: TranslatorOptions, start: Translator, name: str) -> bool:
    """Return whether an option has the same value in both."""
    return bool(getattr(method, name) == getattr(start.method, name))
