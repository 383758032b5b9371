"""Labels and numbers of texts, and of pairs of texts, by a net that was trained before."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from firth.core import registry, scores, sketch
from firth.core.errors import FirthError
from firth.core.model import Model, Parts
from firth.core.options import build_settings
from firth.core.report import Report, Silence
from firth.core.run import Run
from firth.data.examples import Examples, labeled_rows, report_duplicates, report_label_balance, split_rows
from firth.data.table import Table
from firth.finetuning.finetuned_model import (
    BATCH_TOKENS,
    TunedModel,
    base_of,
    label_config,
    most_tokens,
    named_labels,
    new_net,
    pool_of,
)
from firth.finetuning.finetuning_loop import Sequences, Tuning, read_all, sequences
from firth.nets.attention import Packed
from firth.tables.encoder_model import EncoderModel
from firth.training.baselines import HINT, Raw, compare_texts

UNKNOWN = -1  # the id of a label that the examples to learn from don't have
Label = tuple[str, float]
COLUMNS = {"numeric": "standardize", "missing": "mean", "unseen": "missing"}  # OneHot's options for other columns


class Part(NamedTuple):
    """Examples to learn from, or to judge by."""

    texts: Sequences
    right: NDArray[Any]  # ids of labels, or numbers
    extra: NDArray[np.float32]  # texts × numbers beside them
    raw: Sequence[Any]  # the texts, or pairs, themselves


class TextTuning(Tuning):
    """`classes` 0: a number is learned, by its squared error."""

    method: Any

    def __init__(
        self,
        method: Any,
        net: Any,
        train: Part,
        dev: Part | None,
        classes: int,
        fingerprint: str,
        run: Run,
    ) -> None:
        super().__init__(method, net, train.texts, dev.texts if dev else None, fingerprint, run)
        self.parts, self.classes = (train, dev), classes
        self.weights: Tensor | None = None
        if classes and method.class_weights == "balanced":
            counts = np.bincount(train.right, minlength=classes)
            self.weights = torch.tensor(len(train.right) / (classes * counts), dtype=torch.float32, device=self.device)

    def targets(self, rows: Sequence[int], dev: bool) -> list[Tensor]:
        part = self.parts[dev]
        assert part is not None
        kind = np.int64 if self.classes else np.float32
        return [torch.from_numpy(part.right[rows].astype(kind)), torch.from_numpy(part.extra[rows])]

    def extra(self, targets: Sequence[Tensor]) -> Tensor | None:
        return targets[1] if targets[1].shape[1] else None

    def error(self, logits: Tensor, packed: Packed, targets: Sequence[Tensor]) -> Tensor:
        if not self.classes:
            return functional.mse_loss(logits[:, 0], targets[0], reduction="sum")
        return functional.cross_entropy(logits, targets[0], self.weights, ignore_index=UNKNOWN, reduction="sum")

    def scores(self, logits: Iterator[tuple[list[int], Tensor, Packed]], most: int) -> dict[str, float]:
        dev = self.parts[True]
        assert dev is not None
        found = np.zeros((most, self.classes or 1), np.float32)
        for rows, some, _ in logits:
            found[rows] = some.cpu().numpy()
        right = dev.right[:most]
        self.found = found
        figures = text_figures(right, found, self.classes)
        return {"score": figures[self.method.metric], **figures}

    def go(self) -> dict[str, Any]:
        figures, (train, dev) = super().go(), self.parts
        if dev is None:
            return figures
        given = [Raw(part.raw, part.right, part.extra) for part in (train, dev)]
        found = self.found.argmax(axis=1) if self.classes else self.found[:, 0]
        verdict = compare_texts(given[0], given[1], found, self.classes, self.method.metric, self.run.seed)
        verdict.add_notes(self.run.report, HINT)
        return figures | verdict.metrics()


def text_figures(right: NDArray[Any], logits: NDArray[np.float32], classes: int) -> dict[str, float]:
    """All figures that a metric may be chosen from."""
    if classes:
        found = logits.argmax(axis=1)
        return {
            "accuracy": scores.accuracy(right, found),
            "f1": scores.f1(right, found, classes),
            "matthews": scores.matthews(right, found),
        }
    x, y = right.astype(np.float64), logits[:, 0].astype(np.float64)
    figures = {"spearman": scores.correlation(scores.ranks(x), scores.ranks(y)), "pearson": scores.correlation(x, y)}
    return {name: 0.0 if np.isnan(value) else value for name, value in figures.items()}


class TextHead(TunedModel):
    """What models of labels and of numbers share: texts or pairs in, with the columns that were learned beside them."""

    architecture: ClassVar[str] = "BertForSequenceClassification"
    head: ClassVar[str] = "classifier"
    given: ClassVar[str] = "cls"
    encoder: EncoderModel | None = None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What must be told beside each text."""
        return tuple(self.encoder.names) if self.encoder else ()

    def logits(self, texts: Sequence[Any], columns: Any, report: Report) -> NDArray[np.float32]:
        if texts and self.task.get("pairs") == isinstance(texts[0], str):
            wanted = "pairs of texts" if self.task["pairs"] else "single texts"
            raise FirthError("wrong_input", "This model was taught with {expected}; give it such.", expected=wanted)
        rows = sequences(self.tokenizer, texts, self.most, self.method.overlong, report)
        extra = self.beside(columns, len(texts))
        found = np.zeros((len(texts), self.net.head.out_features), np.float32)

        def made(chosen: list[int]) -> Tensor | None:
            return torch.from_numpy(extra[chosen]) if extra.shape[1] else None

        for chosen, some, _ in read_all(self.net, rows, BATCH_TOKENS, made):
            found[chosen] = some.cpu().numpy()
        return found

    def beside(self, columns: Any, count: int) -> NDArray[np.float32]:
        """Other columns as numbers."""
        if self.encoder is None:
            return np.zeros((count, 0), np.float32)
        if columns is None:
            raise FirthError(
                "missing_option",
                "This model reads {choices} beside each text: give a table with them.",
                choices=", ".join(self.columns),
            )
        table = Table(columns)
        if len(table) != count:
            raise FirthError(
                "shape_mismatch",
                "There are {count:,} texts and {n_table:,} rows of columns; there must be as many.",
                count=count,
                n_table=len(table),
            )
        return self.encoder.embed(table)

    def is_foreign(self) -> bool:
        return super().is_foreign() and self.encoder is None

    def parts(self) -> Parts:
        parts = super().parts()
        if self.encoder is None:
            return parts
        own = self.encoder.parts()
        arrays = {**parts.arrays, **{f"columns.{name}": array for name, array in own.arrays.items()}}
        documents = {**parts.documents, "columns": own.documents["columns"]}
        return replace(parts, arrays=arrays, documents=documents)

    @classmethod
    def from_parts(cls, method: Any, parts: Parts, training: Mapping[str, Any]) -> Any:
        model = super().from_parts(method, parts, training)
        if "columns" in parts.documents:
            numbers = {"numbers": parts.arrays["columns.numbers"]}
            onehot = build_settings(registry.method("onehot"), COLUMNS)
            model.encoder = EncoderModel.from_parts(onehot, Parts(numbers, {"columns": parts.documents["columns"]}), {})
        return model


class TextClassifier(TextHead):
    """Labels texts, or pairs of texts."""

    has_labels: ClassVar[bool] = True

    @property
    def labels(self) -> list[str]:
        return list(self.task["labels"])

    def predict(
        self, texts: Sequence[Any], k: int = 1, threshold: float = 0.0, columns: Any = None, report: Report = Silence()
    ) -> list[list[Label]]:
        """The k most probable labels of each text (or pair) that have at least `threshold` probability, best first.

        `columns`: a table with a row a text, where the model was taught with other columns.
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise FirthError(
                "invalid_value", "{option} must be a whole number of at least 1; got {got!r}.", option="k", got=k
            )
        if not 0 <= threshold <= 1:
            raise FirthError(
                "invalid_value", "{option} must be from 0 to 1; got {got}.", option="threshold", got=threshold
            )
        chances = torch.softmax(torch.from_numpy(self.logits(texts, columns, report)), dim=-1)
        best = chances.topk(min(k, len(self.labels)))
        return [
            [(self.labels[id], value) for id, value in zip(ids, values, strict=True) if value >= threshold]
            for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    def foreign_config(self) -> dict[str, Any]:
        return {**label_config(self.labels), "problem_type": "single_label_classification"}

    @classmethod
    def foreign_task(cls, config: Mapping[str, Any], outputs: int) -> dict[str, Any]:
        return {"labels": named_labels(config, outputs)}

    def __repr__(self) -> str:
        return (
            f"Classifier of {'pairs' if self.task.get('pairs') else 'texts'}, {len(self.labels)} labels: {self.base!r}"
        )


class TextRegressor(TextHead):
    """Gives texts, or pairs of texts, a number."""

    def estimate(self, texts: Sequence[Any], columns: Any = None, report: Report = Silence()) -> NDArray[np.float32]:
        """One number a text (or pair)."""
        return self.logits(texts, columns, report)[:, 0]

    def foreign_config(self) -> dict[str, Any]:
        return {**label_config(["LABEL_0"]), "problem_type": "regression"}

    def __repr__(self) -> str:
        return f"Regressor of {'pairs' if self.task.get('pairs') else 'texts'}: {self.base!r}"


def learn(method: Any, data: Any, run: Run, start: Model | None, numbers: bool) -> Any:
    """A classifier, or with `numbers` a regressor."""
    began = time.monotonic()
    pool = pool_of(start, method.pooling)
    base = base_of(start, method, pooled=pool == "cls")
    examples = data if isinstance(data, Examples) else Examples(data)
    texts, right, rows = labeled_rows(examples, run.report, numbers)
    report_duplicates(texts, right, run.report)
    dev = None if examples.dev is None else labeled_rows(examples.dev, run.report, numbers)
    task: dict[str, Any] = {"pairs": examples.other is not None}
    scale = 1.0, 0.0
    if numbers:
        scale = scale_of(np.array(right))
    else:
        task["labels"] = report_label_balance(right, method.class_weights == "balanced", run.report)
    encoder = None
    if examples.columns:
        beside = registry.method("onehot")(**COLUMNS).fit(Table(examples.table, columns=examples.columns))
        assert isinstance(beside, EncoderModel)
        encoder = beside
    most = most_tokens(method, base)

    def part(source: Examples, texts: list[Any], right: list[Any], rows: list[int]) -> Part:
        extra = np.zeros((len(rows), 0), np.float32)
        if encoder is not None:
            extra = encoder.embed(Table(source.table, columns=source.columns))[rows]
        read = sequences(base.tokenizer, texts, most, method.overlong, run.report)
        return Part(read, truths(right, task, scale, run.report), extra, texts)

    train = part(examples, texts, right, rows)
    judged = part(examples.dev, *dev) if examples.dev is not None and dev is not None else None
    if judged is None and method.held_out:
        train, judged = held_out(train, method.held_out, run.seed)
    net = new_net(base, len(task.get("labels", [0])), pool, method, run, train.extra.shape[1], numbers)
    fingerprint = examples.fingerprint()
    reading = time.monotonic() - began
    training = TextTuning(method, net, train, judged, len(task.get("labels", ())), fingerprint, run)
    figures = training.go() | {
        "pool": net.pool,
        "texts": len(train.texts),
        "dev_texts": len(judged.texts) if judged else 0,
        "labels": len(task.get("labels", ())) or None,
        "reading_seconds": reading,
        "data": fingerprint,
        "seed": run.seed,
        **sketch.recorded_rows([*texts, *(dev[0] if dev else ())]),
    }
    if numbers:  # the layer gives the numbers themselves
        with torch.no_grad():
            net.head.weight *= scale[0]
            net.head.bias.copy_(net.head.bias * scale[0] + scale[1])
    kind = TextRegressor if numbers else TextClassifier
    model = kind(method, base, net.cpu(), task, figures)
    model.encoder = encoder
    return model


def scale_of(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Their deviation and their mean: what is learned lies around 0 and is of about length 1."""
    if np.ptp(numbers) == 0:
        raise FirthError(
            "no_variation",
            "All {n_numbers:,} texts have the number {number:g}: there is nothing to tell apart.",
            n_numbers=len(numbers),
            number=numbers[0],
        )
    return float(numbers.std()), float(numbers.mean())


def truths(right: list[Any], task: Mapping[str, Any], scale: tuple[float, float], report: Report) -> NDArray[Any]:
    """Ids of labels, or scaled numbers."""
    if "labels" not in task:
        return ((np.array(right) - scale[1]) / scale[0]).astype(np.float32)
    ids = {label: id for id, label in enumerate(task["labels"])}
    unknown = sorted({label for label in right if label not in ids})
    if unknown:
        count = sum(label not in ids for label in right)
        some = ", ".join(map(repr, unknown[:3]))
        report.note(f"{count:,} dev texts have labels that the examples don't ({some}); they count as wrong.")
    return np.array([ids.get(label, UNKNOWN) for label in right], np.int64)


def held_out(part: Part, share: float, seed: int) -> tuple[Part, Part | None]:
    """Drawn, but each label that there is stays among the examples to learn from."""
    learned, judged = split_rows(len(part.right), share, seed)
    if part.right.dtype == np.int64:
        rare = np.setdiff1d(part.right[judged], part.right[learned])
        back = np.isin(part.right[judged], rare)
        learned, judged = np.sort(np.concatenate([learned, judged[back]])), judged[~back]
    taken = [
        Part(part.texts.take(rows), part.right[rows], part.extra[rows], [part.raw[row] for row in rows])
        for rows in (learned, judged)
    ]
    return taken[0], taken[1] if len(judged) else None
