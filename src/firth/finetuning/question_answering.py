"""Answers as stretches of a passage: a score for each token to be the first and one to be the last of it (Devlin et al.
2019, 4.2). Long passages are read in windows that overlap; "no answer" is the stretch [CLS] (4.3)."""

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
from firth.core.model import Model, Span
from firth.core.report import Report, Silence
from firth.core.run import Run
from firth.core.sketch import recorded_rows
from firth.data.questions import Question, Questions, find_answers, tell_found
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.finetuning.finetuned_model import BATCH_TOKENS, TunedModel, base_of, most_tokens, new_net
from firth.finetuning.finetuning_loop import Sequences, Tuning, joined, read_all
from firth.nets.attention import Packed
from firth.nets.bert import position_ids
from firth.training.baselines import HINT, Verdict, answer_guesses, clearly_better
from firth.transformers.bert_model import BertModel

NONE = (-1, -1)
WINDOW = 384  # tokens of question and passage, as the paper has it
Offsets = list[tuple[int, int]]


class Windows(NamedTuple):
    """[CLS] question [SEP] some of the passage [SEP]; of a long passage, several that overlap."""

    texts: Sequences
    owners: NDArray[np.int64]  # the question of each window
    firsts: NDArray[np.int64]  # the number in its passage of the window's first token
    offsets: list[Offsets]  # of each question: where in the passage each token stands
    spans: NDArray[np.int64]  # windows × 2: the places of the answer's first and last token, −1 where it is not in it


def windows(
    tokenizer: SubwordTokenizer, asked: Sequence[Question], spans: Sequence[tuple[int, int]], method: Any, most: int
) -> tuple[Windows, int]:
    """All windows, and how many questions were cut to `question_length`."""
    cls, sep = tokenizer.ids["[CLS]"], tokenizer.ids["[SEP]"]
    questions = tokenizer.ids_batch([row.question for row in asked], special=False)
    distinct = list(dict.fromkeys(row.passage for row in asked))
    passages = dict(zip(distinct, tokenizer.encode_batch(distinct, special=False), strict=True))
    parts, seconds, owners, firsts, targets = [], [], list[int](), list[int](), []
    cut = 0
    for owner, (row, question, span) in enumerate(zip(asked, questions, spans, strict=True)):
        cut += len(question) > method.question_length
        head = [cls, *question[: method.question_length], sep]
        passage = passages[row.passage]
        answer = token_span(passage.offsets, span)
        room = most - len(head) - 1
        if room < 2:
            raise FirthError(
                "text_too_long",
                "With questions of {n_head} tokens, {limit} leave no room for a passage.",
                n_head=len(head) - 2,
                limit=most,
            )
        step = room - min(method.overlap, room // 2)
        first = 0
        while first == 0 or first + room - step < len(passage.ids):
            some = passage.ids[first : first + room]
            parts.append([*head, *some, sep])
            seconds.append(len(head))
            owners.append(owner)
            firsts.append(first)
            inside = answer[0] >= first and answer[1] < first + len(some)
            targets.append([len(head) + place - first for place in answer] if inside else NONE)
            first += step
    offsets = [passages[row.passage].offsets for row in asked]
    found = Windows(
        joined(parts, seconds), np.array(owners), np.array(firsts), offsets, np.array(targets, np.int64).reshape(-1, 2)
    )
    return found, cut


def token_span(offsets: Offsets, span: tuple[int, int]) -> tuple[int, int]:
    """The first and the last token of a stretch of characters."""
    begin, end = span
    touched = [number for number, (first, last) in enumerate(offsets) if first < end and last > begin]
    return (touched[0], touched[-1]) if touched and begin >= 0 else NONE


def laid_out(logits: Tensor, packed: Packed, seconds: Tensor, null: bool) -> Tensor:
    """(windows, places, 2): the logits of the passage's tokens, with `null` of [CLS] too; −∞ elsewhere."""
    lengths = packed.starts.diff().long()
    window = torch.repeat_interleave(torch.arange(len(lengths), device=logits.device), lengths, output_size=len(logits))
    place = position_ids(packed, len(logits))
    allowed = (place >= seconds[window]) & (place < lengths[window] - 1)
    if null:
        allowed |= place == 0
    found = logits.new_full((len(lengths), packed.longest, 2), -torch.inf)
    found[window, place] = logits.masked_fill(~allowed[:, None], -torch.inf)
    return found


class Best(NamedTuple):
    """The best stretch of each window."""

    score: NDArray[np.float32]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    null: NDArray[np.float32]  # of "no answer"


def best_spans(table: Tensor, longest: int, null: bool) -> Best:
    """The greatest start + end with start ≤ end < start + longest."""
    starts, ends = table[..., 0].clone(), table[..., 1].clone()
    nothing = starts[:, 0] + ends[:, 0]
    if null:
        starts[:, 0] = ends[:, 0] = -torch.inf
    apart = [
        (starts[:, : starts.shape[1] - length] + ends[:, length:]).max(dim=1)
        for length in range(min(longest, starts.shape[1]))
    ]
    score, length = torch.stack([found.values for found in apart], dim=1).max(dim=1)
    first = torch.stack([found.indices for found in apart], dim=1).gather(1, length[:, None])[:, 0]
    tensors = (score.float(), first, first + length, nothing.float())
    return Best(*(tensor.cpu().numpy() for tensor in tensors))


def chosen_answers(
    asked: Sequence[Question], read: Windows, found: Sequence[tuple[list[int], Best]], unanswerable: bool, margin: float
) -> list[Span]:
    """The best window's stretch of each question; the least sure window says how likely there is no answer."""
    best: list[tuple[float, int, int]] = [(-np.inf, 0, 0)] * len(asked)
    nulls = np.full(len(asked), np.inf)
    for rows, some in found:
        for row, score, first, last, null in zip(rows, *(part.tolist() for part in some), strict=True):
            owner, shift = int(read.owners[row]), int(read.firsts[row] - read.texts.seconds[row])
            nulls[owner] = min(nulls[owner], null)
            if score > best[owner][0]:
                best[owner] = score, first + shift, last + shift
    answers = []
    for row, offsets, (score, first, last), null in zip(asked, read.offsets, best, nulls, strict=True):
        worth = score - null if unanswerable else score
        if score == -np.inf or (unanswerable and worth < margin):
            answers.append(Span("", 0, 0, worth if np.isfinite(worth) else 0.0))
        else:
            begin, end = offsets[first][0], offsets[last][1]
            answers.append(Span(row.passage[begin:end], begin, end, worth))
    return answers


class SpanTuning(Tuning):
    method: Any

    def __init__(self, method: Any, net: Any, train: Windows, dev: Any, fingerprint: str, run: Run) -> None:
        """`dev`: windows and the questions that they are of, or None."""
        super().__init__(method, net, train.texts, dev[0].texts if dev else None, fingerprint, run)
        self.windows, self.judged = (train, dev[0] if dev else None), dev

    def targets(self, rows: Sequence[int], dev: bool) -> list[Tensor]:
        part = self.windows[dev]
        assert part is not None
        spans = part.spans[rows]
        if self.method.unanswerable:
            spans = np.maximum(spans, 0)  # [CLS]
        return [torch.from_numpy(spans), torch.from_numpy(part.texts.seconds[rows])]

    def error(self, logits: Tensor, packed: Packed, targets: Sequence[Tensor]) -> Tensor:
        spans, seconds = targets
        table = laid_out(logits, packed, seconds, self.method.unanswerable)
        ends = [functional.cross_entropy(table[..., n], spans[:, n], ignore_index=-1, reduction="sum") for n in (0, 1)]
        return (ends[0] + ends[1]) / 2

    def scores(self, logits: Iterator[tuple[list[int], Tensor, Packed]], most: int) -> dict[str, float]:
        read, asked = self.judged
        whole = int(read.owners[most - 1]) + (most == len(read.owners))  # questions all of whose windows were read
        found = []
        for rows, some, packed in logits:
            seconds = torch.from_numpy(read.texts.seconds[rows]).to(some.device)
            table = laid_out(some, packed, seconds, self.method.unanswerable)
            found.append((rows, best_spans(table, self.method.answer_length, self.method.unanswerable)))
        answers = chosen_answers(asked, read, found, self.method.unanswerable, self.method.margin)
        pairs = list(zip(answers, asked, strict=True))[: max(1, whole)]
        self.found = [answer.text for answer, _ in pairs]
        exact = float(np.mean([scores.exact_match(answer.text, row.answers) for answer, row in pairs]))
        overlap = float(np.mean([scores.answer_f1(answer.text, row.answers) for answer, row in pairs]))
        return {"score": overlap, "f1": overlap, "exact_match": exact}

    def verdict(self, train: Sequence[Question]) -> Verdict:
        """After `go`: the F1 of the answers to the dev questions."""
        asked = self.judged[1]
        guesses = {"model": self.found, **answer_guesses(train, asked)}
        each = {
            name: np.array([scores.answer_f1(text, row.answers) for text, row in zip(texts, asked, strict=True)])
            for name, texts in guesses.items()
        }
        model, first, nearest = each.values()
        verdicts = clearly_better(model, first), clearly_better(nearest, model)
        values = {name: float(found.mean()) for name, found in each.items()}
        return Verdict("f1", len(asked), values.pop("model"), values, *verdicts)


class SpanModel(TunedModel):
    """Finds answers in passages."""

    architecture: ClassVar[str] = "BertForQuestionAnswering"
    head: ClassVar[str] = "qa_outputs"
    outputs: ClassVar[int] = 2  # where an answer begins and ends
    method: Any

    def answer(self, questions: Sequence[str], passages: Sequence[str], report: Report = Silence()) -> list[Span]:
        """For each question, the stretch of the passage beside it that answers it best; an empty one where the passage
        is empty, or where the model may say that it does not tell."""
        if isinstance(questions, str) or isinstance(passages, str) or len(questions) != len(passages):
            raise FirthError("shape_mismatch", "answer takes a list of questions and a list of as many passages.")
        asked = [Question("", *pair, (), ()) for pair in zip(questions, passages, strict=True)]
        if not asked:
            return []
        most = window_length(self.method, self.base)
        read, cut = windows(self.tokenizer, asked, [NONE] * len(asked), self.method, most)
        tell_cut(cut, self.method, report)
        null, found = self.method.unanswerable, []
        for rows, logits, packed in read_all(self.net, read.texts, BATCH_TOKENS):
            seconds = torch.from_numpy(read.texts.seconds[rows]).to(logits.device)
            found.append((rows, best_spans(laid_out(logits, packed, seconds, null), self.method.answer_length, null)))
        return chosen_answers(asked, read, found, null, self.method.margin)

    def __repr__(self) -> str:
        return f"Answers from passages: {self.base!r}"


def window_length(method: Any, base: Any) -> int:
    return min(WINDOW, base.size.max_positions) if not method.max_length else most_tokens(method, base)


def tell_cut(cut: int, method: Any, report: Report) -> None:
    if cut and method.overlong == "refuse":
        raise FirthError(
            "text_too_long",
            "{cut:,} questions have more than {question_length} tokens; overlong=cut cuts them.",
            cut=cut,
            question_length=method.question_length,
        )
    if cut:
        report.note(f"{cut:,} questions have more than {method.question_length} tokens: cut behind them.")


def learn(method: Any, data: Any, run: Run, start: Model | None) -> SpanModel:
    began = time.monotonic()
    base = base_of(start, method, pooled=False)
    if not isinstance(base, BertModel):
        raise FirthError(
            "incompatible_start",
            "QuestionAnswerer begins with a BERT: a GPT's first tokens have not seen the passage; got {got!r}.",
            got=start,
        )
    questions = data if isinstance(data, Questions) else Questions(data)
    train, dev = questions.rows, questions.dev.rows if questions.dev is not None else []
    if not dev and method.held_out:
        train, dev = by_passages(train, method.held_out, run.seed)
    found = find_answers(train)
    tell_found(train, found, run.report)
    check_answers(train, method)
    most = window_length(method, base)
    read, cut = windows(base.tokenizer, train, found.spans, method, most)
    tell_cut(cut, method, run.report)
    teaching = read.spans[:, 0] >= 0
    if method.unanswerable:
        lost = set(found.lost)
        teaching |= np.array([train[owner].id not in lost for owner in read.owners])
    rows = np.flatnonzero(teaching)
    if not len(rows):
        raise FirthError(
            "empty_data",
            "There is nothing to learn from: none of {n_train:,} questions has an answer to be found.",
            n_train=len(train),
        )
    learned = Windows(read.texts.take(rows), read.owners[rows], read.firsts[rows], read.offsets, read.spans[rows])
    judged = None
    if dev:
        judged = windows(base.tokenizer, dev, find_answers(dev).spans, method, most)[0], dev
    net = new_net(base, 2, "each", method, run)
    fingerprint = questions.fingerprint()
    reading = time.monotonic() - began
    training = SpanTuning(method, net, learned, judged, fingerprint, run)
    figures: dict[str, Any] = training.go() | {
        "questions": len(train),
        "dev_questions": len(dev),
        "windows": len(rows),
        "answers_not_found": found.lost,
        "answers_moved": found.moved,
        "reading_seconds": reading,
        "data": fingerprint,
        "seed": run.seed,
        **recorded_rows((row.question, row.passage) for row in [*train, *dev]),
    }
    if dev:
        verdict = training.verdict(train)
        verdict.tell(run.report, HINT)
        figures |= verdict.figures()
    return SpanModel(method, base, net.cpu(), {}, figures)


def check_answers(rows: Sequence[Question], method: Any) -> None:
    without = [row.id for row in rows if not row.answers]
    if without and not method.unanswerable:
        raise FirthError(
            "malformed_data",
            "{n_without:,} of {n_rows:,} questions have no answer (the first is {without}); unanswerable=True "
            "learns to say so, else give them one or leave them out.",
            n_without=len(without),
            n_rows=len(rows),
            without=without[0],
        )


def by_passages(rows: list[Question], share: float, seed: int) -> tuple[list[Question], list[Question]]:
    """Questions to learn from and questions held out, which are asked of other passages."""
    passages = list(dict.fromkeys(row.passage for row in rows))
    order = np.random.default_rng(seed).permutation(len(passages))
    held = {passages[number] for number in order[: min(len(passages) - 1, round(share * len(passages)))]}
    return [row for row in rows if row.passage not in held], [row for row in rows if row.passage in held]
