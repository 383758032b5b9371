"""Vectors of sentences by contrast: a text's vector shall be nearer to that of what is like it than to those of all
other texts of the step.

Texts alone are read twice in each step, other values being left out each time: that is all that differs (Gao et al.
2021). Pairs with a score are put in order (CoSENT, Su 2022).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.report import Report
from firth.core.run import Run
from firth.core.scores import correlation, ranks
from firth.core.sketch import recorded_rows
from firth.data.similar_pairs import Rows, SimilarPairs
from firth.finetuning.finetuned_model import base_of
from firth.finetuning.finetuning_loop import Sequences, batches_of, sequences
from firth.nets.attention import Packed
from firth.nets.bert import Bert, position_ids
from firth.nets.transformer import Dropout
from firth.training.baselines import ENOUGH, Verdict, Weights, bags_of, clearly_correlated, number_score
from firth.training.gradient_loop import Batch, Gradient
from firth.transformers.bert_model import BertModel
from firth.transformers.packing import batch_ends

EVALUATIONS = 10  # times in a run that dev data are measured

Loss = Callable[[Sequence[Tensor]], Tensor]


# ---- losses: sums over the rows of a step ----


def in_batch(sides: Sequence[Tensor], texts: Sequence[Tensor], temperature: float) -> Tensor:
    """−Σ log softmax(cos(a, b) / temperature) of the right b among the b, and the negatives, of all rows.

    `texts` are numbers of the texts: a candidate that is the same text as a row's own, or as the right one, is not
    taken for a wrong one.
    """
    first, candidates = unit(sides[0]), unit(torch.cat(list(sides[1:])))
    scores = first @ candidates.T / temperature
    given, right, wrong = texts[0][:, None], texts[1][:, None], torch.cat(list(texts[1:]))[None]
    same = (wrong == given) | (wrong == right)
    same.fill_diagonal_(False)
    targets = torch.arange(len(first), device=scores.device)
    return functional.cross_entropy(scores.masked_fill(same, -torch.inf), targets, reduction="sum")


def in_order(sides: Sequence[Tensor], scores: Tensor, temperature: float) -> Tensor:
    """Rows × log(1 + Σ e^((cos of a pair − cos of one with a higher score) / temperature))."""
    cosines = (unit(sides[0]) * unit(sides[1])).sum(-1) / temperature
    apart = (cosines[:, None] - cosines[None])[scores[:, None] < scores[None]]
    return len(cosines) * torch.logsumexp(functional.pad(apart, (1, 0)), 0)


def nested(loss: Loss, sides: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """The loss, and those of the vectors' first numbers (Kusupati et al. 2022)."""
    found = loss(sides)
    for length in lengths:
        found = found + loss([side[:, :length] for side in sides])
    return found


def unit(x: Tensor) -> Tensor:
    return functional.normalize(x.float(), dim=-1)


# ---- learning ----


class Texts(NamedTuple):
    """Rows of texts as ids, side by side; the numbers of their texts, and scores."""

    sides: tuple[Sequences, ...]
    numbers: tuple[NDArray[np.int64], ...]
    scores: NDArray[np.float64] | None

    def __len__(self) -> int:
        return len(self.sides[0])


class Contrast(Gradient):
    """Teaches a base to tell texts apart."""

    unit: ClassVar[str] = "texts"
    method: Any  # the options of finetuning/sentence_encoder.py
    net: Bert

    def __init__(self, method: Any, base: BertModel, train: Texts, dev: Texts | None, mark: str, run: Run) -> None:
        for part in base.net.modules():
            if isinstance(part, Dropout):
                part.p = method.dropout
        super().__init__(method, base.net, mark, run, len(train))
        self.pooling, self.texts, self.dev = base.pooling, train, dev
        self.read = train.sides if len(train.sides) > 1 else train.sides * 2  # a text alone is read twice
        kept = base.projection
        self.projection = None if kept is None else [torch.from_numpy(part).to(self.device) for part in kept]
        everything = [*train.sides, *(dev.sides if dev else ())]
        self.longest = int(max(side.lengths.max() for side in everything))
        self.shorter = method.lengths()

    def plan(self, epoch: int) -> Sequence[Batch]:
        order = np.random.default_rng((self.run.seed, epoch)).permutation(len(self.texts))
        tokens = np.sum([side.lengths for side in self.texts.sides], axis=0)[order]
        ends = batch_ends(tokens, max(self.method.batch_tokens, int(tokens.max())), self.method.batch_size)
        return [Batch(rows, len(rows)) for rows in np.split(order, ends[:-1])]

    def next_group(self, batches: Sequence[Batch]) -> Sequence[Batch]:
        """One step: each process has a batch, with negatives of its own."""
        return batches[self.progress.batch : self.progress.batch + self.world]

    def load(self, what: Any) -> Any:
        """Ids and starts of all texts, by length (a CPU takes those of one length together); where each then stands;
        what the loss has to know."""
        numbers = self.texts.numbers if len(self.texts.sides) > 1 else self.texts.numbers * 2
        tensors = packed_tensors([side.take(what) for side in self.read])
        scores = torch.zeros(0) if self.texts.scores is None else torch.from_numpy(self.texts.scores[what])
        return [*tensors, torch.from_numpy(np.stack([side[what] for side in numbers])), scores]

    def vectors(self, ids: Tensor, starts: Tensor, places: Tensor) -> Tensor:
        """One row a text, in the order they were given."""
        packed = Packed(starts, self.longest)
        states = self.net.states(ids, position_ids(packed, len(ids)), torch.zeros_like(ids), packed)
        rows = self.pooling(states, packed, self.net.size.layers)
        if self.projection is not None:
            rows = functional.linear(rows, *self.projection)
        return rows[places]

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        ids, starts, places, numbers, scores = tensors
        rows = self.vectors(ids, starts, places)
        temperature = self.method.temperature
        with torch.autocast(rows.device.type, enabled=False):  # cosines of 3 digits would not do
            if len(scores):
                return nested(lambda sides: in_order(sides, scores, temperature), rows.chunk(2), self.shorter)
            sides = rows.chunk(len(numbers))
            return nested(lambda sides: in_batch(sides, list(numbers), temperature), sides, self.shorter)

    def evaluate(self, most: int) -> dict[str, float]:
        """Spearman's ρ of cosines and scores of the dev pairs."""
        if self.dev is None or self.dev.scores is None:
            return {}
        both = joined_rows(self.dev.sides)
        rows = torch.empty(len(both), self.width(), device=self.device)
        for some in batches_of(both.lengths, self.method.batch_tokens):
            tensors = packed_tensors([both.take(np.asarray(some))])
            rows[some] = self.vectors(*(tensor.to(self.device) for tensor in tensors)).float()
        first, second = (unit(side) for side in rows.chunk(2))
        cosines = (first * second).sum(-1).double().cpu().numpy()
        found = correlation(ranks(cosines), ranks(self.dev.scores))
        return {"score": found, "spearman": found}

    def width(self) -> int:
        return self.pooling.dim(self.net.size.dim) if self.projection is None else len(self.projection[0])

    def due(self, batches: int, spent: float) -> bool:
        """At the end of each epoch, and some times within; not so often that it takes longer than learning."""
        judged = 0 if self.dev is None else 2 * len(self.dev)
        apart = max(1 / EVALUATIONS, judged / (self.method.epochs * self.size))
        return self.progress.batch >= batches or self.share(spent) - self.progress.evaluated >= apart

    def operations(self) -> float:
        return super().operations() * float(sum(side.lengths.mean() for side in self.read))

    def trouble(self) -> str:
        return f"learning_rate={self.method.learning_rate:g} is too high."


def packed_tensors(sides: Sequence[Sequences]) -> list[Tensor]:
    """Ids and starts of all texts by length, and where each of them stands then."""
    rows = joined_rows(sides)
    order = np.argsort(rows.lengths, kind="stable")
    by_length = rows.take(order)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    ids, starts = by_length.ids.astype(np.int64), by_length.starts.astype(np.int32)
    return [torch.from_numpy(ids), torch.from_numpy(starts), torch.from_numpy(places)]


def joined_rows(sides: Sequence[Sequences]) -> Sequences:
    """One behind the other."""
    lengths = np.concatenate([side.lengths for side in sides])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Sequences(np.concatenate([side.ids for side in sides]), starts, np.concatenate([s.seconds for s in sides]))


# ---- from data to a model ----


def learn(method: Any, data: Any, run: Run, start: Model | None) -> BertModel:
    base = base_of(start, method, pooled=True)
    if not isinstance(base, BertModel):
        raise FirthError("incompatible_start", "SentenceEncoder begins with a BERT model; got {got!r}.", got=start)
    alike = data if isinstance(data, SimilarPairs) else SimilarPairs(data)
    base = prepared(base, method)
    rows = alike.rows(run.report)
    dev = None if alike.dev is None else alike.dev.rows(run.report)
    if dev is not None and dev.scores is not None and np.ptp(dev.scores) == 0:
        raise FirthError(
            "no_variation", "All {n_dev:,} dev pairs have the same score: there is no order to measure.", n_dev=len(dev)
        )
    if rows.scores is not None and np.ptp(rows.scores) == 0:
        raise FirthError(
            "no_variation", "All {n_rows:,} pairs have the same score: there is no order to learn.", n_rows=len(rows)
        )
    if method.dropout == 0 and len(rows.sides) == 1:
        raise FirthError(
            "conflicting_options",
            "Texts alone are told apart by what dropout leaves out; SentenceEncoder.dropout must be above 0.",
        )
    train, judged = texts_of(rows, base, run.report), None if dev is None else texts_of(dev, base, run.report)
    training = Contrast(method, base, train, judged, fingerprint(rows, dev), run)
    before = training.judge(len(train))
    figures = training.go() | {"texts": len(train), "seed": run.seed}
    if pairs := [pair for part in (rows, dev) if part is not None for pair in pairs_of(part)]:
        figures |= recorded_rows(pairs)
    figures |= {f"{name}_before": value for name, value in before.items() if name != "score"}
    if dev is not None and dev.scores is not None and "spearman" in before:
        verdict = verdict_of(dev, dev.scores, before["spearman"], figures["spearman"])
        verdict.tell(run.report, "Try more pairs, another learning_rate or fewer epochs.")
        figures |= verdict.figures()
    base.net.cpu()
    return BertModel(method, base.net, base.tokenizer, base.pooling, figures, base.projection)


def verdict_of(dev: Rows, scores: NDArray[np.float64], before: float, after: float) -> Verdict:
    """Spearman's ρ on the dev pairs beside that before training and that of tf-idf rows' cosines."""
    known: dict[str, int] = {}
    sides, rows = [bags_of(side, known) for side in dev.sides[:2]], np.arange(len(dev))
    counts = [side.counts(rows, len(known)) for side in sides]
    weigh = Weights(counts[0] + counts[1], len(known))
    cosines = np.asarray(weigh(counts[0]).multiply(weigh(counts[1])).sum(axis=1)).ravel()
    values = {"before training": before, "tf-idf cosine": number_score("spearman", scores, cosines)}
    learned = None if len(dev) < ENOUGH else after > before
    weaker = clearly_correlated(values["tf-idf cosine"] - after, len(dev))
    return Verdict("spearman", len(dev), after, values, learned, weaker)


def pairs_of(rows: Rows) -> list[tuple[str, ...]]:
    """What was said to be alike or not; of texts alone nothing was."""
    return list(zip(*rows.sides[:2], strict=True)) if len(rows.sides) > 1 else []


def prepared(base: BertModel, method: Any) -> BertModel:
    """The base with the pooling that is asked for."""
    places = base.size.max_positions
    if method.max_length > places:
        raise FirthError(
            "invalid_value",
            "{option} must be at most {places}, the base's places; got {got}.",
            option="SentenceEncoder.max_length",
            places=places,
            got=method.max_length,
        )
    how = base.pooling.how if method.pooling == "base" else method.pooling
    base = base.with_pooling(how=how, max_tokens=method.max_length or base.pooling.max_tokens)
    width = base.dim_of(base.pooling)
    longest = max(method.lengths(), default=0)
    if longest >= width:
        raise FirthError(
            "invalid_value",
            "{option} must be shorter than {width}, the length of the vectors; got {got}.",
            option="SentenceEncoder.matryoshka_dims",
            width=width,
            got=longest,
        )
    return base


def texts_of(rows: Rows, base: BertModel, report: Report) -> Texts:
    most = base.pooling.max_tokens or base.size.max_positions
    numbers: dict[str, int] = {}
    sides = tuple(sequences(base.tokenizer, side, most, "cut", report) for side in rows.sides)
    counted = tuple(
        np.array([numbers.setdefault(text, len(numbers)) for text in side], np.int64) for side in rows.sides
    )
    return Texts(sides, counted, rows.scores)


def fingerprint(rows: Rows, dev: Rows | None) -> str:
    digest = hashlib.sha256()
    for part in (rows, dev):
        if part is not None:
            digest.update(repr(part.sides).encode() + (b"" if part.scores is None else part.scores.tobytes()))
    return digest.hexdigest()
