"""A tag for each word, told by its first piece (Devlin et al. 2019, 5.3)."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from firth.core import scores
from firth.core.errors import FirthError
from firth.core.model import Model, TaggedWord
from firth.core.run import Run
from firth.core.sketch import recorded_rows
from firth.data.examples import label_order, split_rows
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.data.tagged_sentences import Sentence, TaggedSentences, entity_spans
from firth.finetuning.finetuned_model import (
    BATCH_TOKENS,
    TunedModel,
    base_of,
    label_config,
    most_tokens,
    named_labels,
    new_net,
)
from firth.finetuning.finetuning_loop import Sequences, Tuning, joined, read_all
from firth.nets.attention import Packed
from firth.training.baselines import HINT, BaselineComparison, clearly_better, tag_guesses
from firth.transformers.bert_model import BertModel

IGNORED = -100  # the target of pieces that tell no word's tag
WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")  # of plain texts: words, and signs one by one


class Parts(NamedTuple):
    """Sentences as pieces; long ones in several parts, each with [CLS] and [SEP]."""

    texts: Sequences
    owners: NDArray[np.int64]  # the sentence of each part
    words: NDArray[np.int64]  # for each piece: which word of its sentence it begins; −1 for none


def parts_of(tokenizer: SubwordTokenizer, sentences: Sequence[Sequence[str]], most: int) -> Parts:
    """Nothing is left out: what is too long is cut between words."""
    cls, sep = tokenizer.ids["[CLS]"], tokenizer.ids["[SEP]"]
    known = [list(words) for words in sentences]
    read = encoded(tokenizer, known)
    lost = [(words, set(range(len(words))) - set(found.word_ids)) for words, found in zip(known, read, strict=True)]
    for words, places in lost:
        for place in places:  # nothing is left of the second half of an emoji; it keeps its place
            words[place] = "[UNK]"
    if any(places for _, places in lost):
        read = encoded(tokenizer, known)
    pieces, owners, marks = list[list[int]](), list[int](), list[list[int]]()
    for owner, encoding in enumerate(read):
        begins = [
            place for place, word in enumerate(encoding.word_ids) if not place or word != encoding.word_ids[place - 1]
        ]
        first = 0
        for begin, end in pairwise([*begins, len(encoding.ids)]):
            if end - first > most - 2 and begin > first:
                add_part(encoding, first, begin, most, (cls, sep), pieces, marks)
                owners.append(owner)
                first = begin
        add_part(encoding, first, len(encoding.ids), most, (cls, sep), pieces, marks)
        owners.append(owner)
    return Parts(
        joined(pieces, [len(part) for part in pieces]), np.array(owners), np.array([m for part in marks for m in part])
    )


def encoded(tokenizer: SubwordTokenizer, sentences: list[list[str]]) -> list[Any]:
    read: list[Any] = tokenizer._call(
        tokenizer.engine.encode_batch, sentences, is_pretokenized=True, add_special_tokens=False
    )
    return read


def add_part(
    encoding: Any, first: int, last: int, most: int, ends: tuple[int, int], pieces: list[Any], marks: list[Any]
) -> None:
    last = min(last, first + most - 2)  # a single word of more pieces: its first ones tell the tag
    words = encoding.word_ids[first:last]
    pieces.append([ends[0], *encoding.ids[first:last], ends[1]])
    marks.append([-1, *(word if not n or word != words[n - 1] else -1 for n, word in enumerate(words)), -1])


class TagTuning(Tuning):
    method: Any

    def __init__(
        self, method: Any, net: Any, train: Parts, right: Sequence[Sequence[int]], dev: Any, labels: Sequence[str],
        fingerprint: str, run: Run,
    ) -> None:  # fmt: skip
        """`right`: the ids of the tags of each sentence; `dev`: parts and the same of what is judged by, or None."""
        super().__init__(method, net, train.texts, dev[0].texts if dev else None, fingerprint, run)
        self.known, self.labels = ((train, right), dev), list(labels)

    def targets(self, rows: Sequence[int], dev: bool) -> list[Tensor]:
        parts, right = self.known[dev]
        return [torch.tensor([tag for row in rows for tag in part_targets(parts, right, row)])]

    def error(self, logits: Tensor, packed: Packed, targets: Sequence[Tensor]) -> Tensor:
        """A sentence's loss is the mean over its words, so that batches add up over sentences."""
        lengths = packed.starts.diff().long()
        text = torch.repeat_interleave(
            torch.arange(len(lengths), device=logits.device), lengths, output_size=len(logits)
        )
        each = functional.cross_entropy(logits, targets[0], ignore_index=IGNORED, reduction="none")
        words = torch.zeros(len(lengths), device=logits.device).index_add(0, text, (targets[0] != IGNORED).float())
        return (each / words.clamp(min=1)[text]).sum()

    def scores(self, logits: Iterator[tuple[list[int], Tensor, Packed]], most: int) -> dict[str, float]:
        parts, right = self.known[True]
        found = [np.zeros(len(tags), np.int64) for tags in right]
        for rows, some, packed in logits:
            fill_tags(found, parts, rows, some.argmax(dim=-1).cpu().numpy(), packed)
        whole = int(parts.owners[most - 1]) + (most == len(parts.owners))
        self.found = found[: max(1, whole)]
        return self.figures_of(self.found, [np.array(tags) for tags in right[: max(1, whole)]])

    def verdict(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> BaselineComparison:
        """After `go`: of the tags of the dev sentences, by the method's metric."""
        metric, right = self.method.metric, [np.array(tags) for tags in self.known[True][1]]
        known = [(row.words, tags) for row, tags in zip(train, self.known[False][1], strict=True)]
        guesses = tag_guesses(known, [row.words for row in dev])
        values = {name: self.figures_of(guess, right)[metric] for name, guess in guesses.items()}
        shares = [
            [scores.accuracy(truth, tags) for truth, tags in zip(right, guess, strict=True)]
            for guess in (self.found, *guesses.values())
        ]
        model, majority, by_word = map(np.array, shares)
        verdicts = clearly_better(model, majority), clearly_better(by_word, model)
        return BaselineComparison(metric, len(dev), self.figures_of(self.found, right)[metric], values, *verdicts)

    def figures_of(self, found: list[Any], right: list[Any]) -> dict[str, float]:
        figures = {"accuracy": scores.accuracy(np.concatenate(right), np.concatenate(found))}
        names = [*self.labels, "O"]  # a tag that was not learned is −1
        spans = [[entity_spans([names[tag] for tag in tags]) for tags in side] for side in (found, right)]
        same = sum(len(a & b) for a, b in zip(*spans, strict=True))
        total = sum(len(each) for side in spans for each in side)
        figures["f1"] = 2 * same / total if total else 0.0
        return {"score": figures[self.method.metric], **figures}


def part_targets(parts: Parts, right: Sequence[Sequence[int]], row: int) -> list[int]:
    tags = right[parts.owners[row]]
    words = parts.words[parts.texts.starts[row] : parts.texts.starts[row + 1]].tolist()
    return [tags[word] if word >= 0 and tags[word] >= 0 else IGNORED for word in words]


def fill_tags(found: Sequence[Any], parts: Parts, rows: Sequence[int], values: NDArray[Any], packed: Packed) -> None:
    """Puts what was said at the words' first pieces in the words' places."""
    starts = packed.starts.tolist()
    for number, row in enumerate(rows):
        words = parts.words[parts.texts.starts[row] : parts.texts.starts[row + 1]]
        first = words >= 0
        found[parts.owners[row]][words[first]] = values[starts[number] : starts[number + 1]][first]


class TagModel(TunedModel):
    """Tags the words of texts."""

    architecture: ClassVar[str] = "BertForTokenClassification"
    head: ClassVar[str] = "classifier"
    has_labels: ClassVar[bool] = True

    @property
    def labels(self) -> list[str]:
        return list(self.task["labels"])

    def tag(self, texts: Sequence[str | Sequence[str]]) -> list[list[TaggedWord]]:
        """Each word with its most probable tag. A text is a list of words, or plain text, which is cut into words and
        signs. Long texts are read in parts."""
        if isinstance(texts, str):
            raise FirthError("invalid_type", "tag takes a list of texts, or of lists of words; got one text.")
        sentences = [WORD.findall(text) if isinstance(text, str) else list(text) for text in texts]
        parts = parts_of(self.tokenizer, sentences, self.most)
        best = [np.zeros(len(words), np.int64) for words in sentences]
        sure = [np.zeros(len(words), np.float32) for words in sentences]
        for rows, logits, packed in read_all(self.net, parts.texts, BATCH_TOKENS):
            chances = torch.softmax(logits, dim=-1).max(dim=-1)
            fill_tags(best, parts, rows, chances.indices.cpu().numpy(), packed)
            fill_tags(sure, parts, rows, chances.values.cpu().numpy(), packed)
        return [
            [TaggedWord(word, self.labels[id], chance) for word, id, chance in zip(words, ids, chances, strict=True)]
            for words, ids, chances in zip(sentences, map(list, best), (each.tolist() for each in sure), strict=True)
        ]

    def foreign_config(self) -> dict[str, Any]:
        return label_config(self.labels)

    @classmethod
    def foreign_task(cls, config: Mapping[str, Any], outputs: int) -> dict[str, Any]:
        return {"labels": named_labels(config, outputs)}

    def __repr__(self) -> str:
        return f"Tagger with {len(self.labels)} tags: {self.base!r}"


def learn(method: Any, data: Any, run: Run, start: Model | None) -> TagModel:
    began = time.monotonic()
    base = base_of(start, method, pooled=False)
    if not isinstance(base, BertModel):
        raise FirthError(
            "incompatible_start",
            "TokenClassifier begins with a BERT: a GPT has not seen what follows a word; got {got!r}.",
            got=start,
        )
    tagged = data if isinstance(data, TaggedSentences) else TaggedSentences(data)
    train, dev = tagged.rows, tagged.dev.rows if tagged.dev is not None else []
    counts = Counter(tag for row in train for tag in row.tags)
    if len(counts) < 2:
        some = f"all words have the tag {next(iter(counts))!r}" if counts else "there are no words"
        raise FirthError("empty_data", "There is nothing to learn from: {examples}.", examples=some)
    if not dev and method.held_out:
        learned, held = split_rows(len(train), method.held_out, run.seed)
        train, dev = [tagged.rows[row] for row in learned], [tagged.rows[row] for row in held]
    labels = sorted(counts, key=lambda tag: (tag != "O", label_order(tag)))
    ids = {label: id for id, label in enumerate(labels)}
    unknown = sorted({tag for row in dev for tag in row.tags} - set(labels))
    if unknown:
        run.report.note(f"Tags of the dev data that the examples don't have count as wrong: {', '.join(unknown[:5])}.")
    most = most_tokens(method, base)

    def read(rows: Sequence[Sentence]) -> tuple[Parts, list[list[int]]]:
        return parts_of(base.tokenizer, [row.words for row in rows], most), [
            [ids.get(tag, -1) for tag in row.tags] for row in rows
        ]

    parts, right = read(train)
    net = new_net(base, len(labels), "each", method, run)
    fingerprint, reading = tagged.fingerprint(), time.monotonic() - began
    training = TagTuning(method, net, parts, right, read(dev) if dev else None, labels, fingerprint, run)
    figures = training.go() | {
        "texts": len(train),
        "dev_texts": len(dev),
        "words": sum(len(row.words) for row in train),
        "labels": len(labels),
        "reading_seconds": reading,
        "data": fingerprint,
        "seed": run.seed,
        **recorded_rows(" ".join(row.words) for row in [*train, *dev]),
    }
    if dev:
        verdict = training.verdict(train, dev)
        verdict.add_notes(run.report, HINT)
        figures |= verdict.metrics()
    return TagModel(method, base, net.cpu(), {"labels": labels}, figures)
