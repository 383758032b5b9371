"""Contrastive learning of sentence vectors: a text's vector moves closer to that of its partner than to those of all
other texts of the step.

Single texts are encoded twice with different dropout masks and form a pair with themselves (SimCSE, Gao et al. 2021).
Pairs with scores are ranked by them (CoSENT, Su 2022).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from firth.core.errors import FirthError
from firth.core.long_texts import TRUNCATE
from firth.core.model import Model
from firth.core.report import Report
from firth.core.run import Run
from firth.core.scores import correlation, ranks
from firth.core.sketch import recorded_rows
from firth.data.examples import split_rows
from firth.data.similar_pairs import AlignedTexts, SimilarPairs
from firth.finetuning.finetuned_model import base_of
from firth.finetuning.finetuning_loop import Sequences, batches_of, encode_texts
from firth.finetuning.sentence_encoder import SentenceEncoder
from firth.nets.attention import Packed
from firth.nets.encoder import Encoder, position_ids
from firth.nets.transformer import Dropout
from firth.training.baselines import (
    MIN_HELD_OUT_ROWS,
    BaselineComparison,
    TfIdf,
    bags_of,
    clearly_better,
    clearly_correlated,
    number_score,
)
from firth.training.gradient_loop import Batch, GradientLoop
from firth.transformers.adapters import merged_adapter, new_adapters
from firth.transformers.bert_model import BertModel
from firth.transformers.packing import batch_ends

EVALUATIONS = 10  # evaluations on dev data per run
MAX_HELD_OUT_ROWS = 1000  # pairs held out if no dev data is given

Loss = Callable[[Sequence[Tensor]], Tensor]


# ---- losses, summed over the rows of a step ----


def in_batch_negatives_loss(sides: Sequence[Tensor], texts: Sequence[Tensor], temperature: float) -> Tensor:
    """Return −Σ log softmax(cos(a, b) / temperature) of the matching b among the b and the negatives of all rows.

    `texts` are ids of the distinct texts of each side. A candidate with the same text as the row's anchor or positive
    is not used as a negative.
    """
    scores = unit(sides[0]) @ unit(torch.cat(list(sides[1:]))).T / temperature
    targets = torch.arange(len(scores), device=scores.device)
    return functional.cross_entropy(without_false_negatives(scores, texts), targets, reduction="sum")


def without_false_negatives(scores: Tensor, texts: Sequence[Tensor]) -> Tensor:
    """Return the scores of anchors and candidates, with −∞ for further candidates equal to the anchor or its match."""
    anchor_texts, positive_texts = texts[0][:, None], texts[1][:, None]
    candidate_texts = torch.cat(list(texts[1:]))[None]
    false_negatives = (candidate_texts == anchor_texts) | (candidate_texts == positive_texts)
    false_negatives.fill_diagonal_(False)
    return scores.masked_fill(false_negatives, -torch.inf)


def nearest_is_match(scores: Tensor) -> NDArray[np.bool_]:
    """Return for each anchor whether its own candidate, on the diagonal, has the highest score."""
    return np.asarray(scores.argmax(1) == torch.arange(len(scores)))


def cosent_loss(sides: Sequence[Tensor], scores: Tensor, temperature: float) -> Tensor:
    """Return rows × log(1 + Σ e^((cos of a pair − cos of a pair with a higher score) / temperature)) (CoSENT)."""
    cosines = (unit(sides[0]) * unit(sides[1])).sum(-1) / temperature
    differences = (cosines[:, None] - cosines[None])[scores[:, None] < scores[None]]
    return len(cosines) * torch.logsumexp(functional.pad(differences, (1, 0)), 0)


def matryoshka_loss(loss: Loss, sides: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """Return the loss of the full vectors plus those of the vectors cut to `lengths` (Kusupati et al. 2022)."""
    total = loss(sides)
    for length in lengths:
        total = total + loss([side[:, :length] for side in sides])
    return total


def unit(x: Tensor) -> Tensor:
    """Return the rows scaled to length 1, in float32."""
    return functional.normalize(x.float(), dim=-1)


# ---- training ----


class Texts(NamedTuple):
    """Token ids of single texts, pairs or triplets."""

    sides: tuple[Sequences, ...]  # anchors, positives, negatives
    text_ids: tuple[NDArray[np.int64], ...]  # per side: ids of the distinct texts
    scores: NDArray[np.float64] | None

    def __len__(self) -> int:
        return len(self.sides[0])

    def id_tensors(self) -> list[Tensor]:
        """Return the ids of the distinct texts as tensors."""
        return [torch.from_numpy(ids) for ids in self.text_ids]


class Evaluation(NamedTuple):
    """Metrics of the dev pairs; without scores also the loss of each, and whether its second text was the nearest."""

    metrics: Mapping[str, float]
    losses: NDArray[Any]
    nearest: NDArray[Any]


class ContrastiveTraining(GradientLoop):
    """Trains the base with a contrastive loss."""

    unit: ClassVar[str] = "texts"
    method: SentenceEncoder
    net: Encoder

    def __init__(
        self, method: SentenceEncoder, base: BertModel, train: Texts, dev: Texts | None, fingerprint: str, run: Run
    ) -> None:
        for part in base.net.modules():
            if isinstance(part, Dropout):
                part.p = method.dropout
        super().__init__(method, base.net, fingerprint, run, len(train))
        self.pooling, self.texts, self.dev = base.pooling, train, dev
        self.sides = train.sides if len(train.sides) > 1 else train.sides * 2  # single texts are encoded twice
        self.projection = base.projection
        self.longest = int(max(side.lengths.max() for side in [*train.sides, *(dev.sides if dev else ())]))
        self.shorter_dims = method.shorter_dims()
        self.held_out_losses: NDArray[Any] = np.zeros(0)  # of each dev pair, at the last evaluation
        self.nearest: NDArray[Any] = np.zeros(0, bool)

    def plan(self, epoch: int) -> Sequence[Batch]:
        order = np.random.default_rng((self.run.seed, epoch)).permutation(len(self.texts))
        tokens = np.sum([side.lengths for side in self.texts.sides], axis=0)[order]
        ends = batch_ends(tokens, max(self.method.batch_tokens, int(tokens.max())), self.method.batch_size)
        # A step has one batch per process, each with its own negatives.
        return [Batch(rows, len(rows), n // self.world) for n, rows in enumerate(np.split(order, ends[:-1]))]

    def load(self, what: Any) -> Any:
        """Return ids and starts of the texts sorted by length, the rows to restore their order, and the inputs of the
        loss. Texts of equal length are computed together on a CPU."""
        text_ids = self.texts.text_ids if len(self.texts.sides) > 1 else self.texts.text_ids * 2
        tensors = packed_tensors([side.take(what) for side in self.sides])
        scores = torch.zeros(0) if self.texts.scores is None else torch.from_numpy(self.texts.scores[what])
        return [*tensors, torch.from_numpy(np.stack([side[what] for side in text_ids])), scores]

    def vectors(self, ids: Tensor, starts: Tensor, original_order: Tensor) -> Tensor:
        """Return one vector per text, in the original order."""
        packed = Packed(starts, self.longest)
        states = self.net.states(ids, position_ids(packed, len(ids)), torch.zeros_like(ids), packed)
        rows = self.pooling(states, packed, self.net.size.layers)
        if self.projection is not None:
            rows = self.projection.tensor(rows)
        return rows[original_order]

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        ids, starts, original_order, text_ids, scores = tensors
        rows = self.vectors(ids, starts, original_order)
        temperature = self.method.temperature

        def loss(sides: Sequence[Tensor]) -> Tensor:
            if len(scores):
                return cosent_loss(sides, scores, temperature)
            return in_batch_negatives_loss(sides, list(text_ids), temperature)

        with torch.autocast(rows.device.type, enabled=False):  # the 3 digits of bfloat16 are too few for cosines
            return matryoshka_loss(loss, rows.chunk(2 if len(scores) else len(text_ids)), self.shorter_dims)

    def evaluate(self, most: int) -> dict[str, float]:
        """Return Spearman's ρ between cosines and scores of the dev pairs; for pairs without scores, the loss and the
        share of texts whose match is the nearest of all matches."""
        if self.dev is None:
            return {}
        both = concatenate_sides(self.dev.sides)
        vectors = torch.empty(len(both), self.width(), device=self.device)
        for batch in batches_of(both.lengths, self.method.batch_tokens):
            tensors = packed_tensors([both.take(np.asarray(batch))])
            vectors[batch] = self.vectors(*(tensor.to(self.device) for tensor in tensors)).float()
        first, second = (unit(side) for side in vectors.chunk(2))
        if self.dev.scores is None:
            scores = without_false_negatives((first @ second.T).cpu(), self.dev.id_tensors()) / self.method.temperature
            losses = functional.cross_entropy(scores, torch.arange(len(scores)), reduction="none")
            self.held_out_losses, self.nearest = losses.numpy(), nearest_is_match(scores)
            return {"held_out_loss": float(self.held_out_losses.mean()), "accuracy": float(self.nearest.mean())}
        cosines = (first * second).sum(-1).double().cpu().numpy()
        spearman = correlation(ranks(cosines), ranks(self.dev.scores))
        return {"score": spearman, "spearman": spearman}

    def evaluation(self, metrics: Mapping[str, float]) -> Evaluation:
        """Return the results of the last evaluation."""
        return Evaluation(metrics, self.held_out_losses, self.nearest)

    def width(self) -> int:
        """Return the length of the vectors."""
        return self.pooling.dim(self.net.size.dim) if self.projection is None else self.projection.dim

    def due(self, batches: int, spent: float) -> bool:
        """Return whether to evaluate now: after each epoch and several times within it, but never so often that
        evaluation takes longer than training."""
        evaluated = 0 if self.dev is None else 2 * len(self.dev)
        interval = max(1 / EVALUATIONS, evaluated / (self.method.epochs * self.size))
        return self.progress.batch >= batches or self.share(spent) - self.progress.evaluated >= interval

    def operations(self) -> float:
        return super().operations() * float(sum(side.lengths.mean() for side in self.sides))

    def divergence_cause(self) -> str:
        return f"learning_rate={self.method.learning_rate:g} is too high."


def packed_tensors(sides: Sequence[Sequences]) -> list[Tensor]:
    """Return ids and starts of all texts sorted by length, and the row of each text in that order."""
    rows = concatenate_sides(sides)
    order = np.argsort(rows.lengths, kind="stable")
    by_length = rows.take(order)
    sorted_rows = np.empty(len(order), np.int64)
    sorted_rows[order] = np.arange(len(order))
    ids, starts = by_length.ids.astype(np.int64), by_length.starts.astype(np.int32)
    return [torch.from_numpy(ids), torch.from_numpy(starts), torch.from_numpy(sorted_rows)]


def concatenate_sides(sides: Sequence[Sequences]) -> Sequences:
    """Return the texts of all sides as one set of sequences."""
    lengths = np.concatenate([side.lengths for side in sides])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ids, seconds = np.concatenate([side.ids for side in sides]), np.concatenate([side.seconds for side in sides])
    return Sequences(ids, starts, seconds, sides[0].segments)


# ---- from data to a model ----


def train_sentence_encoder(method: SentenceEncoder, data: Any, run: Run, start: Model | None) -> BertModel:
    """Train a sentence encoder."""
    base = base_of(start, method)
    folder = str(base.folder)  # of adapters
    if not isinstance(base, BertModel):
        raise FirthError(
            "incompatible_start",
            "{method} fine-tunes a BERT model; start is {got!r}.",
            method="SentenceEncoder",
            got=start,
        )
    base.net.masked = None
    similar = data if isinstance(data, SimilarPairs) else SimilarPairs(data)
    base = with_pooling_options(base, method)
    method = method.with_learning_rate().resolved(max_length=base.pooling.max_tokens or base.size.max_positions)
    rows = similar.rows(run.report)
    dev = None if similar.dev is None else similar.dev.rows(run.report)
    if dev is not None and dev.scores is not None and np.ptp(dev.scores) == 0:
        raise FirthError(
            "no_variation",
            "All {n_dev:,} dev pairs have the same score, so the order of their cosines cannot be evaluated.",
            n_dev=len(dev),
        )
    if rows.scores is not None and np.ptp(rows.scores) == 0:
        raise FirthError(
            "no_variation",
            "All {n_rows:,} pairs have the same score, so there is no order to learn.",
            n_rows=len(rows),
        )
    if method.dropout == 0 and len(rows.sides) == 1:
        raise FirthError(
            "conflicting_options",
            "Training on single texts needs dropout, which makes their two encodings differ; {option} must be above 0.",
            option="SentenceEncoder.dropout",
        )
    if dev is None:
        rows, dev = hold_out(rows, method.held_out, run.seed)
    train = encode_rows(rows, base, run.report)
    dev_texts = None if dev is None else encode_rows(dev, base, run.report)
    if method.lora:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(run.seed)
            new_adapters(base.net, base.size, method.lora, method.lora_alpha, method.lora_layers)
    training = ContrastiveTraining(method, base, train, dev_texts, fingerprint(rows, dev), run)
    before = training.evaluation(training.evaluate_held_out(len(train)))
    metadata = training.go() | {"texts": len(train), "seed": run.seed}
    if pairs := [pair for part in (rows, dev) if part is not None for pair in labeled_pairs(part)]:
        metadata |= recorded_rows(pairs)
    metadata |= {f"{name}_before": value for name, value in before.metrics.items() if name != "score"}
    if dev is not None and dev_texts is not None:
        comparison = baseline_comparison(dev, dev_texts, before, training.evaluation(metadata))
        comparison.add_notes(run.report, "Try more pairs, another learning_rate or fewer epochs.")
        metadata |= comparison.metrics()
    adapter = merged_adapter(base.net.cpu(), folder) if method.lora else None
    model = BertModel(method, base.net, base.tokenizer, base.pooling, metadata, base.projection, base.sentence)
    model.adapter = adapter
    return model


def hold_out(rows: AlignedTexts, share: float, seed: int) -> tuple[AlignedTexts, AlignedTexts | None]:
    """Split pairs into training rows and held-out pairs; none are held out if they would be too few to compare."""
    share = min(share, MAX_HELD_OUT_ROWS / len(rows))
    if len(rows.sides) == 1 or round(share * len(rows)) < MIN_HELD_OUT_ROWS:
        return rows, None
    train, held_out = (rows.take(numbers) for numbers in split_rows(len(rows), share, seed))
    if any(part.scores is not None and np.ptp(part.scores) == 0 for part in (train, held_out)):
        return rows, None
    return train, AlignedTexts(held_out.sides[:2], held_out.scores)


def baseline_comparison(dev: AlignedTexts, texts: Texts, before: Evaluation, after: Evaluation) -> BaselineComparison:
    """Compare the score of the dev pairs with that before training and that of tf-idf."""
    word_ids: dict[str, int] = {}
    sides, rows = [bags_of(side, word_ids) for side in dev.sides[:2]], np.arange(len(dev))
    counts = [side.counts(rows, len(word_ids)) for side in sides]
    weights = TfIdf(counts[0] + counts[1], len(word_ids))
    first, second = (weights(each) for each in counts)
    metric = "accuracy" if dev.scores is None else "spearman"
    score, score_before = after.metrics[metric], before.metrics[metric]
    learned: bool | None
    if dev.scores is not None:
        cosines = np.asarray(first.multiply(second).sum(axis=1)).ravel()
        tfidf = number_score(metric, dev.scores, cosines)
        learned = None if len(dev) < MIN_HELD_OUT_ROWS else score > score_before
        weaker = clearly_correlated(tfidf - score, len(dev))
    else:
        similar = torch.from_numpy((first @ second.T).toarray())
        nearest = nearest_is_match(without_false_negatives(similar, texts.id_tensors()))
        tfidf = float(nearest.mean())
        chance = np.full(len(dev), 1 / len(dev))  # the loss alone also falls when all vectors only move apart
        learned = clearly_better(before.losses, after.losses) and clearly_better(after.nearest, chance)
        weaker = clearly_better(nearest, after.nearest)
    values = {"before training": score_before, "tf-idf cosine": tfidf}
    return BaselineComparison(metric, len(dev), score, values, learned, weaker)


def labeled_pairs(rows: AlignedTexts) -> list[tuple[str, ...]]:
    """Return the pairs that the data declares similar or scores; single texts declare none."""
    return list(zip(*rows.sides[:2], strict=True)) if len(rows.sides) > 1 else []


def with_pooling_options(base: BertModel, method: SentenceEncoder) -> BertModel:
    """Return the base with the pooling and the maximum length of the method's options."""
    positions = base.size.max_positions
    if method.max_length is not None and method.max_length > positions:
        raise FirthError(
            "invalid_value",
            "{option} must be at most {limit}, the number of positions of the base; got {got}.",
            option="SentenceEncoder.max_length",
            limit=positions,
            got=method.max_length,
        )
    how = base.pooling.how if method.pooling == "base" else method.pooling
    base = base.with_pooling(how=how, max_tokens=method.max_length or base.pooling.max_tokens)
    width = base.dim_of(base.pooling)
    longest = max(method.shorter_dims(), default=0)
    if longest >= width:
        raise FirthError(
            "invalid_value",
            "{option} must be shorter than the vectors, which have length {width}; got {got}.",
            option="SentenceEncoder.matryoshka_dims",
            width=width,
            got=longest,
        )
    return base


def encode_rows(rows: AlignedTexts, base: BertModel, report: Report) -> Texts:
    """Encode all sides of the rows and number their distinct texts."""
    max_length = base.pooling.max_tokens or base.size.max_positions
    ids: dict[str, int] = {}
    sides = tuple(encode_texts(base.tokenizer, side, max_length, TRUNCATE, report) for side in rows.sides)
    text_ids = tuple(np.array([ids.setdefault(text, len(ids)) for text in side], np.int64) for side in rows.sides)
    return Texts(sides, text_ids, rows.scores)


def fingerprint(rows: AlignedTexts, dev: AlignedTexts | None) -> str:
    """Return a hash of the training and dev rows."""
    digest = hashlib.sha256()
    for part in (rows, dev):
        if part is not None:
            digest.update(repr(part.sides).encode() + (b"" if part.scores is None else part.scores.tobytes()))
    return digest.hexdigest()
