"""Token classification: a word's tag is predicted at its first subword (Devlin et al. 2019, section 5.3)."""

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
from firth.data.special_tokens import Template
from firth.data.subword_tokenizer import BYTE_SPACE, SubwordTokenizer
from firth.data.tagged_sentences import Sentence, TaggedSentences, entity_spans
from firth.finetuning.finetuned_model import (
    BATCH_TOKENS,
    TunedModel,
    bert_of,
    label_config,
    max_length_of,
    named_labels,
)
from firth.finetuning.finetuning_loop import FineTuning, Sequences, concatenate_ids, predict_batches
from firth.finetuning.heads import new_net
from firth.finetuning.token_classifier import TokenClassifier
from firth.nets.attention import Packed
from firth.nets.tuned import Tuned
from firth.training.baselines import HINT, BaselineComparison, clearly_better, tag_guesses
from firth.transformers.families.family import TOKEN

IGNORED = -100  # target of tokens other than a word's first subword
WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")  # words of plain text; punctuation marks are words of their own


class Parts(NamedTuple):
    """Sentences as subwords; long ones in several parts, each between special tokens."""

    texts: Sequences
    sentence_ids: NDArray[np.int64]  # (parts,): the sentence of each part
    words: NDArray[np.int64]  # (tokens,): number of the word in its sentence at its first subword, −1 elsewhere


def parts_of(tokenizer: SubwordTokenizer, sentences: Sequence[Sequence[str]], max_length: int) -> Parts:
    """Encode sentences; those of more than `max_length` tokens are split between words."""
    template = tokenizer.template
    split = [list(words) for words in sentences]
    encodings = encode_words(tokenizer, split)
    missing = [
        (words, set(range(len(words))) - set(encoding.word_ids))
        for words, encoding in zip(split, encodings, strict=True)
    ]
    for words, positions in missing:
        for position in positions:  # the tokenizer drops, for example, the variation selector of an emoji
            words[position] = tokenizer.special.require("unk").token
    if any(positions for _, positions in missing):
        encodings = encode_words(tokenizer, split)
    part_ids, sentence_ids, part_words = list[list[int]](), list[int](), list[list[int]]()
    for number, encoding in enumerate(encodings):
        word_starts = [
            position
            for position, word in enumerate(encoding.word_ids)
            if not position or word != encoding.word_ids[position - 1]
        ]
        first = 0
        for begin, end in pairwise([*word_starts, len(encoding.ids)]):
            if end - first > max_length - template.added and begin > first:
                add_part(encoding, first, begin, max_length, template, part_ids, part_words)
                sentence_ids.append(number)
                first = begin
        add_part(encoding, first, len(encoding.ids), max_length, template, part_ids, part_words)
        sentence_ids.append(number)
    return Parts(
        concatenate_ids(part_ids, [len(part) for part in part_ids]),
        np.array(sentence_ids),
        np.array([word for words in part_words for word in words]),
    )


def encode_words(tokenizer: SubwordTokenizer, sentences: list[list[str]]) -> list[Any]:
    """Encode sentences that are split into words already; the encodings have `ids` and `word_ids`."""
    if tokenizer.space == BYTE_SPACE:  # a word's tokens depend on the space before it
        sentences = [[f" {word}" for word in words] for words in sentences]
    encodings: list[Any] = tokenizer._call(
        tokenizer.engine.encode_batch, sentences, is_pretokenized=True, add_special_tokens=False
    )
    return encodings


def add_part(
    encoding: Any,
    first: int,
    last: int,
    max_length: int,
    template: Template,
    part_ids: list[Any],
    part_words: list[Any],
) -> None:
    """Append the tokens `first` to `last` of a sentence, between special tokens, to the two lists."""
    last = min(
        last, first + max_length - template.added
    )  # a single word of more subwords is cut: only its first one is tagged
    words = encoding.word_ids[first:last]
    part_ids.append(template.text(encoding.ids[first:last]))
    firsts = [word if not n or word != words[n - 1] else -1 for n, word in enumerate(words)]
    part_words.append([*[-1] * len(template.before), *firsts, *[-1] * len(template.after)])


class TagFineTuning(FineTuning):
    """Trains a token classifier."""

    method: TokenClassifier

    def __init__(
        self, method: TokenClassifier, net: Tuned, train: Parts, tags: Sequence[Sequence[int]], dev: Any,
        labels: Sequence[str], fingerprint: str, run: Run,
    ) -> None:  # fmt: skip
        """`tags` are the tag ids of each training sentence; `dev` is the pair (parts, tags) of dev data, or None."""
        super().__init__(method, net, train.texts, dev[0].texts if dev else None, fingerprint, run)
        self.tagged, self.labels = ((train, tags), dev), list(labels)

    def targets(self, rows: Sequence[int], dev: bool) -> list[Tensor]:
        parts, tags = self.tagged[dev]
        return [torch.tensor([tag for row in rows for tag in part_targets(parts, tags, row)])]

    def error(self, logits: Tensor, packed: Packed, targets: Sequence[Tensor]) -> Tensor:
        """Return the loss summed over sentences; a sentence's loss is the mean over its words."""
        lengths = packed.starts.diff().long()
        text = torch.repeat_interleave(
            torch.arange(len(lengths), device=logits.device), lengths, output_size=len(logits)
        )
        token_losses = functional.cross_entropy(logits, targets[0], ignore_index=IGNORED, reduction="none")
        words = torch.zeros(len(lengths), device=logits.device).index_add(0, text, (targets[0] != IGNORED).float())
        return (token_losses / words.clamp(min=1)[text]).sum()

    def scores(self, logits: Iterator[tuple[list[int], Tensor, Packed]], count: int) -> dict[str, float]:
        parts, tags = self.tagged[True]
        predicted = [np.zeros(len(sentence), np.int64) for sentence in tags]
        for rows, batch, packed in logits:
            fill_tags(predicted, parts, rows, batch.argmax(dim=-1).cpu().numpy(), packed)
        complete = int(parts.sentence_ids[count - 1]) + (count == len(parts.sentence_ids))  # sentences read in full
        self.predicted = predicted[: max(1, complete)]
        return self.tag_metrics(self.predicted, [np.array(sentence) for sentence in tags[: max(1, complete)]])

    def baseline_comparison(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> BaselineComparison:
        """Compare the dev score with that of two baselines, after `go`."""
        metric, targets = self.method.metric, [np.array(tags) for tags in self.tagged[True][1]]
        tagged_words = [(row.words, tags) for row, tags in zip(train, self.tagged[False][1], strict=True)]
        guesses = tag_guesses(tagged_words, [row.words for row in dev])
        values = {name: self.tag_metrics(guess, targets)[metric] for name, guess in guesses.items()}
        accuracies = [
            [scores.accuracy(truth, tags) for truth, tags in zip(targets, guess, strict=True)]
            for guess in (self.predicted, *guesses.values())
        ]
        model, majority, by_word = map(np.array, accuracies)
        differences = clearly_better(model, majority), clearly_better(by_word, model)
        return BaselineComparison(
            metric, len(dev), self.tag_metrics(self.predicted, targets)[metric], values, *differences
        )

    def tag_metrics(self, predicted: list[Any], targets: list[Any]) -> dict[str, float]:
        """Return accuracy over words and F1 over spans (as conlleval computes it)."""
        metrics = {"accuracy": scores.accuracy(np.concatenate(targets), np.concatenate(predicted))}
        names = [*self.labels, "O"]  # the id −1, of tags unseen in training, is read as O
        spans = [[entity_spans([names[tag] for tag in tags]) for tags in side] for side in (predicted, targets)]
        correct = sum(len(a & b) for a, b in zip(*spans, strict=True))
        total = sum(len(each) for side in spans for each in side)
        metrics["f1"] = 2 * correct / total if total else 0.0
        return {"score": metrics[self.method.metric], **metrics}


def part_targets(parts: Parts, tags: Sequence[Sequence[int]], row: int) -> list[int]:
    """Return the target of each token of a part: a tag id at first subwords, else `IGNORED`."""
    sentence_tags = tags[parts.sentence_ids[row]]
    words = parts.words[parts.texts.starts[row] : parts.texts.starts[row + 1]].tolist()
    return [sentence_tags[word] if word >= 0 and sentence_tags[word] >= 0 else IGNORED for word in words]


def fill_tags(
    by_sentence: Sequence[Any], parts: Parts, rows: Sequence[int], values: NDArray[Any], packed: Packed
) -> None:
    """Write the values at first subwords into `by_sentence`, one array per sentence with one entry per word."""
    starts = packed.starts.tolist()
    for number, row in enumerate(rows):
        words = parts.words[parts.texts.starts[row] : parts.texts.starts[row + 1]]
        first = words >= 0
        by_sentence[parts.sentence_ids[row]][words[first]] = values[starts[number] : starts[number + 1]][first]


class TagModel(TunedModel):
    """A fine-tuned model that predicts one tag per word."""

    kind: ClassVar[str] = TOKEN
    has_labels: ClassVar[bool] = True

    @property
    def labels(self) -> list[str]:
        """The tags in the order of the head's outputs."""
        return list(self.task["labels"])

    def tag(self, texts: Sequence[str | Sequence[str]]) -> list[list[TaggedWord]]:
        """Return the words of each text with their most probable tags.

        A text is a list of words or a str, which is split into words and punctuation marks. Long texts are read in
        parts.
        """
        if isinstance(texts, str):
            raise FirthError("invalid_type", "tag takes a list of texts or of lists of words; got a single str.")
        sentences = [WORD.findall(text) if isinstance(text, str) else list(text) for text in texts]
        parts = parts_of(self.tokenizer, sentences, self.max_length)
        tag_ids = [np.zeros(len(words), np.int64) for words in sentences]
        probabilities = [np.zeros(len(words), np.float32) for words in sentences]
        for rows, logits, packed in predict_batches(self.net, parts.texts, BATCH_TOKENS):
            best = torch.softmax(logits, dim=-1).max(dim=-1)
            fill_tags(tag_ids, parts, rows, best.indices.cpu().numpy(), packed)
            fill_tags(probabilities, parts, rows, best.values.cpu().numpy(), packed)
        return [
            [TaggedWord(word, self.labels[id], value) for word, id, value in zip(words, ids, values, strict=True)]
            for words, ids, values in zip(
                sentences, map(list, tag_ids), (each.tolist() for each in probabilities), strict=True
            )
        ]

    def foreign_config(self) -> dict[str, Any]:
        return label_config(self.labels)

    @classmethod
    def foreign_task(cls, config: Mapping[str, Any], outputs: int) -> dict[str, Any]:
        return {"labels": named_labels(config, outputs)}

    def __repr__(self) -> str:
        return f"Tagger with {len(self.labels)} tags: {self.base!r}"


def train_token_classifier(method: TokenClassifier, data: Any, run: Run, start: Model | None) -> TagModel:
    """Train a token classifier."""
    began = time.monotonic()
    base = bert_of(start, method)
    tagged = data if isinstance(data, TaggedSentences) else TaggedSentences(data)
    train, dev = tagged.rows, tagged.dev.rows if tagged.dev is not None else []
    counts = Counter(tag for row in train for tag in row.tags)
    if len(counts) < 2:
        if not counts:
            raise FirthError("empty_data", "There are no words to learn from.")
        raise FirthError(
            "no_variation", "All words have the tag {tag!r}, so there is nothing to learn.", tag=next(iter(counts))
        )
    if not dev and method.held_out:
        train_rows, dev_rows = split_rows(len(train), method.held_out, run.seed)
        train, dev = [tagged.rows[row] for row in train_rows], [tagged.rows[row] for row in dev_rows]
    labels = sorted(counts, key=lambda tag: (tag != "O", label_order(tag)))
    ids = {label: id for id, label in enumerate(labels)}
    unknown = sorted({tag for row in dev for tag in row.tags} - set(labels))
    if unknown:
        run.report.note(
            f"Tags of dev data that no training sentence has count as wrong: {', '.join(unknown[:5])}.",
            code="unknown_dev_labels",
        )
    max_length = max_length_of(method, base)
    method = method.resolved(max_length=max_length)

    def encode(rows: Sequence[Sentence]) -> tuple[Parts, list[list[int]]]:
        return parts_of(base.tokenizer, [row.words for row in rows], max_length), [
            [ids.get(tag, -1) for tag in row.tags] for row in rows
        ]

    parts, tags = encode(train)
    net = new_net(base, len(labels), TOKEN, "each", method, run)
    fingerprint, reading_seconds = tagged.fingerprint(), time.monotonic() - began
    training = TagFineTuning(method, net, parts, tags, encode(dev) if dev else None, labels, fingerprint, run)
    metadata = training.go() | {
        "texts": len(train),
        "dev_texts": len(dev),
        "words": sum(len(row.words) for row in train),
        "labels": len(labels),
        "reading_seconds": reading_seconds,
        "data": fingerprint,
        "seed": run.seed,
        **recorded_rows(" ".join(row.words) for row in [*train, *dev]),
    }
    if dev:
        comparison = training.baseline_comparison(train, dev)
        comparison.add_notes(run.report, HINT)
        metadata |= comparison.metrics()
    return TagModel.trained(training.method, base, net, {"labels": labels}, metadata)
