"""Extractive question answering: each token gets a score as the first and one as the last of the answer (Devlin et al.
2019, section 4.2). Long passages are read in overlapping windows. "No answer" is the span [CLS] (section 4.3)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from firth.core import scores
from firth.core.errors import FirthError
from firth.core.long_texts import REFUSE, TooLongError, note_truncated
from firth.core.model import Model, Span
from firth.core.report import Report, Silence
from firth.core.run import Run
from firth.core.sketch import recorded_rows
from firth.data.questions import Question, Questions, find_answer_spans, report_answer_problems
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.finetuning.finetuned_model import BATCH_TOKENS, TunedModel, bert_of, max_length_of
from firth.finetuning.finetuning_loop import FineTuning, Sequences, concatenate_ids, predict_batches
from firth.finetuning.heads import Base, new_net
from firth.finetuning.question_answerer import QuestionAnswerer
from firth.nets.attention import Packed
from firth.nets.encoder import position_ids
from firth.nets.tuned import Tuned
from firth.training.baselines import HINT, BaselineComparison, answer_guesses, clearly_better
from firth.transformers.families.family import SPAN

NONE = (-1, -1)
WINDOW = 384  # tokens of question and passage, as in the paper
Offsets = list[tuple[int, int]]


class Windows(NamedTuple):
    """Pairs of a question and a part of its passage; a long passage has several parts that overlap."""

    texts: Sequences
    question_ids: NDArray[np.int64]  # (windows,): the question of each window
    firsts: NDArray[np.int64]  # (windows,): position in the passage of the window's first passage token
    offsets: list[Offsets]  # per question: character offsets of the passage's tokens
    spans: NDArray[np.int64]  # (windows, 2): positions of the answer's first and last token, −1 if it is not inside


def windows(
    tokenizer: SubwordTokenizer,
    questions: Sequence[Question],
    spans: Sequence[tuple[int, int]],
    method: QuestionAnswerer,
    max_length: int,
) -> tuple[Windows, int]:
    """Return all windows, and how many questions were truncated to `question_length`.

    `spans` are the character spans of the answers in their passages.
    """
    template = tokenizer.template
    encoded_questions = tokenizer.ids_batch([row.question for row in questions], special=False)
    distinct = list(dict.fromkeys(row.passage for row in questions))
    passages = dict(zip(distinct, tokenizer.encode_batch(distinct, special=False), strict=True))
    parts, seconds, question_ids, firsts, targets = [], [], list[int](), list[int](), []
    n_truncated = 0
    for number, (row, question, span) in enumerate(zip(questions, encoded_questions, spans, strict=True)):
        if len(question) > method.question_length and method.overlong == REFUSE:
            name = f"Question {number + 1:,}"
            raise TooLongError(number, len(question), method.question_length, "Use overlong=truncate.", name)
        n_truncated += len(question) > method.question_length
        prefix = [*template.pair_before, *question[: method.question_length], *template.between]
        passage = passages[row.passage]
        answer = token_span(passage.offsets, span)
        room = max_length - len(prefix) - len(template.pair_after)
        if room < 2:
            raise FirthError(
                "text_too_long",
                "A question of {n_tokens} tokens leaves no room for a passage in {limit} tokens. Raise max_length or "
                "lower question_length.",
                n_tokens=len(question[: method.question_length]),
                limit=max_length,
            )
        step = room - min(method.overlap, room // 2)
        first = 0
        while first == 0 or first + room - step < len(passage.ids):
            window_ids = passage.ids[first : first + room]
            parts.append([*prefix, *window_ids, *template.pair_after])
            seconds.append(len(prefix))
            question_ids.append(number)
            firsts.append(first)
            inside = answer[0] >= first and answer[1] < first + len(window_ids)
            targets.append([len(prefix) + position - first for position in answer] if inside else NONE)
            first += step
    offsets = [passages[row.passage].offsets for row in questions]
    answer_positions = np.array(targets, np.int64).reshape(-1, 2)
    all_windows = Windows(
        concatenate_ids(parts, seconds, template.segments),
        np.array(question_ids),
        np.array(firsts),
        offsets,
        answer_positions,
    )
    return all_windows, n_truncated


def token_span(offsets: Offsets, span: tuple[int, int]) -> tuple[int, int]:
    """Return the first and the last token that overlap a span of characters."""
    begin, end = span
    overlapping = [number for number, (first, last) in enumerate(offsets) if first < end and last > begin]
    return (overlapping[0], overlapping[-1]) if overlapping and begin >= 0 else NONE


def padded_logits(logits: Tensor, packed: Packed, seconds: Tensor, null: bool) -> Tensor:
    """Return the logits as (windows, positions, 2), −∞ outside the passage; with `null`, [CLS] keeps its logits."""
    lengths = packed.starts.diff().long()
    window = torch.repeat_interleave(torch.arange(len(lengths), device=logits.device), lengths, output_size=len(logits))
    position = position_ids(packed, len(logits))
    allowed = (position >= seconds[window]) & (position < lengths[window] - 1)
    if null:
        allowed |= position == 0
    table = logits.new_full((len(lengths), packed.longest, 2), -torch.inf)
    table[window, position] = logits.masked_fill(~allowed[:, None], -torch.inf)
    return table


class Best(NamedTuple):
    """The best span of each window."""

    score: NDArray[np.float32]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    null: NDArray[np.float32]  # score of "no answer"


def best_spans(table: Tensor, max_tokens: int, null: bool) -> Best:
    """Return the spans with the highest start + end score, where start ≤ end < start + max_tokens."""
    starts, ends = table[..., 0].clone(), table[..., 1].clone()
    null_score = starts[:, 0] + ends[:, 0]
    if null:
        starts[:, 0] = ends[:, 0] = -torch.inf
    best_by_length = [
        (starts[:, : starts.shape[1] - length] + ends[:, length:]).max(dim=1)
        for length in range(min(max_tokens, starts.shape[1]))
    ]
    score, length = torch.stack([best.values for best in best_by_length], dim=1).max(dim=1)
    first = torch.stack([best.indices for best in best_by_length], dim=1).gather(1, length[:, None])[:, 0]
    tensors = (score.float(), first, first + length, null_score.float())
    return Best(*(tensor.cpu().numpy() for tensor in tensors))


def best_answers(
    questions: Sequence[Question],
    encoded: Windows,
    spans: Sequence[tuple[list[int], Best]],
    unanswerable: bool,
    margin: float,
) -> list[Span]:
    """Return the best span of all windows of each question.

    The score of "no answer" is the lowest one of the question's windows; with `unanswerable`, an answer must exceed it
    by `margin`.
    """
    best: list[tuple[float, int, int]] = [(-np.inf, 0, 0)] * len(questions)
    nulls = np.full(len(questions), np.inf)
    for rows, batch in spans:
        for row, score, first, last, null in zip(rows, *(part.tolist() for part in batch), strict=True):
            number, shift = int(encoded.question_ids[row]), int(encoded.firsts[row] - encoded.texts.seconds[row])
            nulls[number] = min(nulls[number], null)
            if score > best[number][0]:
                best[number] = score, first + shift, last + shift
    answers = []
    for question, offsets, (score, first, last), null in zip(questions, encoded.offsets, best, nulls, strict=True):
        answer_score = score - null if unanswerable else score
        if score == -np.inf or (unanswerable and answer_score < margin):
            answers.append(Span("", 0, 0, answer_score if np.isfinite(answer_score) else 0.0))
        else:
            begin, end = offsets[first][0], offsets[last][1]
            answers.append(Span(question.passage[begin:end], begin, end, answer_score))
    return answers


class SpanFineTuning(FineTuning):
    """Trains a question answerer."""

    method: QuestionAnswerer

    def __init__(
        self, method: QuestionAnswerer, net: Tuned, train: Windows, dev: Any, fingerprint: str, run: Run
    ) -> None:
        """`dev` is the pair of dev windows and their questions, or None."""
        super().__init__(method, net, train.texts, dev[0].texts if dev else None, fingerprint, run)
        self.windows, self.dev_questions = (train, dev[0] if dev else None), dev

    def targets(self, rows: Sequence[int], dev: bool) -> list[Tensor]:
        part = self.windows[dev]
        assert part is not None
        spans = part.spans[rows]
        if self.method.unanswerable:
            spans = np.maximum(spans, 0)  # [CLS]
        return [torch.from_numpy(spans), torch.from_numpy(part.texts.seconds[rows])]

    def error(self, logits: Tensor, packed: Packed, targets: Sequence[Tensor]) -> Tensor:
        spans, seconds = targets
        table = padded_logits(logits, packed, seconds, self.method.unanswerable)
        first, last = (
            functional.cross_entropy(table[..., n], spans[:, n], ignore_index=-1, reduction="sum") for n in (0, 1)
        )
        return (first + last) / 2

    def scores(self, logits: Iterator[tuple[list[int], Tensor, Packed]], count: int) -> dict[str, float]:
        encoded, questions = self.dev_questions
        # questions whose windows have all been read
        complete = int(encoded.question_ids[count - 1]) + (count == len(encoded.question_ids))
        spans = []
        for rows, batch, packed in logits:
            seconds = torch.from_numpy(encoded.texts.seconds[rows]).to(batch.device)
            table = padded_logits(batch, packed, seconds, self.method.unanswerable)
            spans.append((rows, best_spans(table, self.method.answer_length, self.method.unanswerable)))
        answers = best_answers(questions, encoded, spans, self.method.unanswerable, self.method.margin)
        pairs = list(zip(answers, questions, strict=True))[: max(1, complete)]
        self.dev_answers = [answer.text for answer, _ in pairs]
        exact_match = float(np.mean([scores.exact_match(answer.text, row.answers) for answer, row in pairs]))
        f1 = float(np.mean([scores.answer_f1(answer.text, row.answers) for answer, row in pairs]))
        return {"score": f1, "f1": f1, "exact_match": exact_match}

    def baseline_comparison(self, train: Sequence[Question]) -> BaselineComparison:
        """Compare the F1 of the dev answers with that of two baselines, after `go`."""
        questions = self.dev_questions[1]
        guesses = {"model": self.dev_answers, **answer_guesses(train, questions)}
        f1 = {
            name: np.array([scores.answer_f1(text, row.answers) for text, row in zip(texts, questions, strict=True)])
            for name, texts in guesses.items()
        }
        model, first, nearest = f1.values()
        differences = clearly_better(model, first), clearly_better(nearest, model)
        values = {name: float(each.mean()) for name, each in f1.items()}
        return BaselineComparison("f1", len(questions), values.pop("model"), values, *differences)


class SpanModel(TunedModel):
    """A fine-tuned model that extracts answers from passages."""

    kind: ClassVar[str] = SPAN
    outputs: ClassVar[int] = 2  # start and end logits
    method: QuestionAnswerer

    def answer(self, questions: Sequence[str], passages: Sequence[str], report: Report = Silence()) -> list[Span]:
        """Return, for each question, the span of its passage that answers it best.

        The span is empty if the passage is empty, or if the model was trained with `unanswerable` and finds no answer.
        """
        if isinstance(questions, str) or isinstance(passages, str):
            raise FirthError(
                "invalid_type", "answer takes a list of questions and a list of passages; got a single str."
            )
        if len(questions) != len(passages):
            raise FirthError(
                "shape_mismatch",
                "answer needs one passage per question; got {n_questions:,} questions and {n_passages:,} passages.",
                n_questions=len(questions),
                n_passages=len(passages),
            )
        rows_to_answer = [Question("", *pair, (), ()) for pair in zip(questions, passages, strict=True)]
        if not rows_to_answer:
            return []
        max_length = window_length(self.method, self.base)
        spans_to_find = [NONE] * len(rows_to_answer)
        encoded, n_truncated = windows(self.tokenizer, rows_to_answer, spans_to_find, self.method, max_length)
        note_truncated(report, n_truncated, len(rows_to_answer), self.method.question_length)
        null, spans = self.method.unanswerable, []
        for rows, logits, packed in predict_batches(self.net, encoded.texts, BATCH_TOKENS):
            seconds = torch.from_numpy(encoded.texts.seconds[rows]).to(logits.device)
            table = padded_logits(logits, packed, seconds, null)
            spans.append((rows, best_spans(table, self.method.answer_length, null)))
        return best_answers(rows_to_answer, encoded, spans, null, self.method.margin)

    def __repr__(self) -> str:
        return f"Answers from passages: {self.base!r}"


def window_length(method: QuestionAnswerer, base: Base) -> int:
    """Return the most tokens of a window: `max_length`, or 384, or the positions of the base if there are fewer."""
    return min(WINDOW, base.size.max_positions) if method.max_length is None else max_length_of(method, base)


def train_question_answerer(method: QuestionAnswerer, data: Any, run: Run, start: Model | None) -> SpanModel:
    """Train a question answerer."""
    began = time.monotonic()
    base = bert_of(start, method)
    questions = data if isinstance(data, Questions) else Questions(data)
    train, dev = questions.rows, questions.dev.rows if questions.dev is not None else []
    if not dev and method.held_out:
        train, dev = split_by_passage(train, method.held_out, run.seed)
    answers = find_answer_spans(train)
    report_answer_problems(train, answers, run.report)
    check_answers(train, method)
    max_length = window_length(method, base)
    method = method.resolved(max_length=max_length)
    encoded, n_truncated = windows(base.tokenizer, train, answers.spans, method, max_length)
    note_truncated(run.report, n_truncated, len(train), method.question_length)
    usable = encoded.spans[:, 0] >= 0
    if method.unanswerable:
        missing = set(answers.lost)
        usable |= np.array([train[number].id not in missing for number in encoded.question_ids])
    rows = np.flatnonzero(usable)
    if not len(rows):
        raise FirthError(
            "empty_data",
            "None of the {n_train:,} questions has an answer that occurs in its passage, so there is nothing to learn.",
            n_train=len(train),
        )
    train_windows = Windows(
        encoded.texts.take(rows), encoded.question_ids[rows], encoded.firsts[rows], encoded.offsets, encoded.spans[rows]
    )
    dev_windows = None
    if dev:
        dev_windows = windows(base.tokenizer, dev, find_answer_spans(dev).spans, method, max_length)[0], dev
    net = new_net(base, 2, SPAN, "each", method, run)
    fingerprint = questions.fingerprint()
    reading_seconds = time.monotonic() - began
    training = SpanFineTuning(method, net, train_windows, dev_windows, fingerprint, run)
    metadata: dict[str, Any] = training.go() | {
        "questions": len(train),
        "dev_questions": len(dev),
        "windows": len(rows),
        "answers_not_found": answers.lost,
        "answers_moved": answers.moved,
        "reading_seconds": reading_seconds,
        "data": fingerprint,
        "seed": run.seed,
        **recorded_rows((row.question, row.passage) for row in [*train, *dev]),
    }
    if dev:
        comparison = training.baseline_comparison(train)
        comparison.add_notes(run.report, HINT)
        metadata |= comparison.metrics()
    return SpanModel.trained(training.method, base, net, {}, metadata)


def check_answers(rows: Sequence[Question], method: QuestionAnswerer) -> None:
    """Refuse questions without an answer unless the method has `unanswerable`."""
    without_answer = [row.id for row in rows if not row.answers]
    if without_answer and not method.unanswerable:
        raise FirthError(
            "malformed_data",
            "{n_without:,} of {n_rows:,} questions have no answer (the first is {first}). Set unanswerable=True to "
            "learn that passages may have no answer, or remove these questions.",
            n_without=len(without_answer),
            n_rows=len(rows),
            first=without_answer[0],
        )


def split_by_passage(rows: list[Question], share: float, seed: int) -> tuple[list[Question], list[Question]]:
    """Split questions into training and dev so that no passage is in both."""
    passages = list(dict.fromkeys(row.passage for row in rows))
    order = np.random.default_rng(seed).permutation(len(passages))
    held_out = {passages[number] for number in order[: min(len(passages) - 1, round(share * len(passages)))]}
    return [row for row in rows if row.passage not in held_out], [row for row in rows if row.passage in held_out]
