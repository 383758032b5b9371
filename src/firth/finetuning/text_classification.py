"""Training and models of text classification and text regression."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from firth.core import registry, scores, sketch
from firth.core.arguments import check_count, check_share
from firth.core.errors import FirthError
from firth.core.method import Method
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
    max_length_of,
    named_labels,
    pool_of,
)
from firth.finetuning.finetuning_loop import FineTuning, Sequences, encode_texts, predict_batches
from firth.finetuning.finetuning_options import TextHeadOptions
from firth.finetuning.heads import new_net
from firth.nets.attention import Packed
from firth.nets.tuned import Tuned
from firth.tables.encoder_model import EncoderModel
from firth.training.baselines import HINT, Raw, compare_texts
from firth.transformers.families.family import SEQUENCE, Config

UNKNOWN = -1  # id of a label that does not occur in the training examples
Label = tuple[str, float]
Head = TypeVar("Head", bound="TextHead")
COLUMNS = {"numeric": "standardize", "missing": "mean", "unseen": "missing"}  # OneHot's options for other columns


class Part(NamedTuple):
    """Training or dev examples."""

    texts: Sequences
    targets: NDArray[Any]  # (texts,): label ids, or numbers
    extra: NDArray[np.float32]  # (texts, features): the other columns
    raw: Sequence[Any]  # the texts or pairs as strings


class TextFineTuning(FineTuning):
    """Trains a classifier, or with `classes=0` a regressor by its squared error."""

    method: TextHeadOptions

    def __init__(
        self,
        method: TextHeadOptions,
        net: Tuned,
        train: Part,
        dev: Part | None,
        classes: int,
        fingerprint: str,
        run: Run,
    ) -> None:
        super().__init__(method, net, train.texts, dev.texts if dev else None, fingerprint, run)
        self.parts, self.classes = (train, dev), classes
        self.weights: Tensor | None = None
        if classes and method.balanced:
            counts = np.bincount(train.targets, minlength=classes)
            weights = len(train.targets) / (classes * counts)
            self.weights = torch.tensor(weights, dtype=torch.float32, device=self.device)

    def targets(self, rows: Sequence[int], dev: bool) -> list[Tensor]:
        part = self.parts[dev]
        assert part is not None
        dtype = np.int64 if self.classes else np.float32
        return [torch.from_numpy(part.targets[rows].astype(dtype)), torch.from_numpy(part.extra[rows])]

    def extra(self, targets: Sequence[Tensor]) -> Tensor | None:
        return targets[1] if targets[1].shape[1] else None

    def error(self, logits: Tensor, packed: Packed, targets: Sequence[Tensor]) -> Tensor:
        if not self.classes:
            return functional.mse_loss(logits[:, 0], targets[0], reduction="sum")
        return functional.cross_entropy(logits, targets[0], self.weights, ignore_index=UNKNOWN, reduction="sum")

    def scores(self, logits: Iterator[tuple[list[int], Tensor, Packed]], count: int) -> dict[str, float]:
        dev = self.parts[True]
        assert dev is not None
        outputs = np.zeros((count, self.classes or 1), np.float32)
        for rows, batch, _ in logits:
            outputs[rows] = batch.cpu().numpy()
        self.dev_outputs = outputs
        metrics = text_metrics(dev.targets[:count], outputs, self.classes)
        return {"score": metrics[self.method.metric], **metrics}

    def go(self) -> dict[str, Any]:
        metadata, (train, dev) = super().go(), self.parts
        if dev is None:
            return metadata
        raw = [Raw(part.raw, part.targets, part.extra) for part in (train, dev)]
        predicted = self.dev_outputs.argmax(axis=1) if self.classes else self.dev_outputs[:, 0]
        comparison = compare_texts(raw[0], raw[1], predicted, self.classes, self.method.metric, self.run.seed)
        comparison.add_notes(self.run.report, HINT)
        return metadata | comparison.metrics()


def text_metrics(targets: NDArray[Any], logits: NDArray[np.float32], classes: int) -> dict[str, float]:
    """Return every metric that the option `metric` can name."""
    if classes:
        predicted = logits.argmax(axis=1)
        return {
            "accuracy": scores.accuracy(targets, predicted),
            "f1": scores.f1(targets, predicted, classes),
            "matthews": scores.matthews(targets, predicted),
        }
    x, y = targets.astype(np.float64), logits[:, 0].astype(np.float64)
    metrics = {"spearman": scores.correlation(scores.ranks(x), scores.ranks(y)), "pearson": scores.correlation(x, y)}
    return {name: 0.0 if np.isnan(value) else value for name, value in metrics.items()}


class TextHead(TunedModel):
    """Base class of text classifiers and regressors, which read texts or pairs and, optionally, other columns."""

    kind: ClassVar[str] = SEQUENCE
    pools: ClassVar[tuple[str, ...]] = ("cls", "mean")
    encoder: EncoderModel | None = None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that predictions need besides the texts."""
        return tuple(self.encoder.names) if self.encoder else ()

    def logits(self, texts: Sequence[Any], columns: Any, report: Report) -> NDArray[np.float32]:
        """Return the head's outputs, one row per text or pair."""
        if texts and self.task.get("pairs") == isinstance(texts[0], str):
            expected, got = ("pairs of texts", "single texts") if self.task["pairs"] else ("single texts", "pairs")
            raise FirthError(
                "wrong_input", "This model was trained on {expected}; got {got}.", expected=expected, got=got
            )
        encoded = encode_texts(self.tokenizer, texts, self.max_length, self.method.overlong, report)
        extra = self.encode_columns(columns, len(texts))
        outputs = np.zeros((len(texts), self.net.head.out_features), np.float32)

        def extra_of(rows: list[int]) -> Tensor | None:
            return torch.from_numpy(extra[rows]) if extra.shape[1] else None

        for rows, batch, _ in predict_batches(self.net, encoded, BATCH_TOKENS, extra_of):
            outputs[rows] = batch.cpu().numpy()
        return outputs

    def encode_columns(self, columns: Any, n_texts: int) -> NDArray[np.float32]:
        """Return the other columns as numeric features, one row per text."""
        if self.encoder is None:
            return np.zeros((n_texts, 0), np.float32)
        if columns is None:
            raise FirthError(
                "missing_option",
                "This model also reads the columns {expected}. Pass a table with them as columns=.",
                expected=", ".join(self.columns),
            )
        table = Table(columns)
        if len(table) != n_texts:
            raise FirthError(
                "shape_mismatch",
                "columns must have one row per text: {n_texts:,} rows; got {n_rows:,}.",
                n_texts=n_texts,
                n_rows=len(table),
            )
        return self.encoder.embed(table)

    def is_foreign(self) -> bool:
        return super().is_foreign() and self.encoder is None

    def parts(self) -> Parts:
        parts = super().parts()
        if self.encoder is None:
            return parts
        encoder = self.encoder.parts()
        arrays = {**parts.arrays, **{f"columns.{name}": array for name, array in encoder.arrays.items()}}
        documents = {**parts.documents, "columns": encoder.documents["columns"]}
        return replace(parts, arrays=arrays, documents=documents)

    @classmethod
    def from_parts(cls: type[Head], method: Method, parts: Parts, training: Mapping[str, Any]) -> Head:
        model = super().from_parts(method, parts, training)
        if "columns" in parts.documents:
            numbers = {"numbers": parts.arrays["columns.numbers"]}
            onehot = build_settings(registry.method("onehot"), COLUMNS)
            model.encoder = EncoderModel.from_parts(onehot, Parts(numbers, {"columns": parts.documents["columns"]}), {})
        return model


class TextClassifierModel(TextHead):
    """A fine-tuned model that predicts labels of texts or pairs of texts."""

    has_labels: ClassVar[bool] = True

    @property
    def labels(self) -> list[str]:
        """The labels in the order of the head's outputs."""
        return list(self.task["labels"])

    def predict(
        self, texts: Sequence[Any], k: int = 1, threshold: float = 0.0, columns: Any = None, report: Report = Silence()
    ) -> list[list[Label]]:
        """Return the k most probable labels of each text or pair, most probable first.

        Labels with a probability below `threshold` are left out. `columns` is a table with one row per text, for a
        model that was trained with other columns.
        """
        check_count("k", k)
        check_share("threshold", threshold)
        probabilities = torch.softmax(torch.from_numpy(self.logits(texts, columns, report)), dim=-1)
        best = probabilities.topk(min(k, len(self.labels)))
        return [
            [(self.labels[id], value) for id, value in zip(ids, values, strict=True) if value >= threshold]
            for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    def foreign_config(self) -> dict[str, Any]:
        return {**label_config(self.labels), "problem_type": "single_label_classification"}

    @classmethod
    def foreign_task(cls, config: Mapping[str, Any], outputs: int) -> dict[str, Any]:
        Config(config).require("problem_type", "single_label_classification")
        return {"labels": named_labels(config, outputs)}

    def __repr__(self) -> str:
        return (
            f"Classifier of {'pairs' if self.task.get('pairs') else 'texts'}, {len(self.labels)} labels: {self.base!r}"
        )


class TextRegressorModel(TextHead):
    """A fine-tuned model that predicts one number per text or pair of texts."""

    def estimate(self, texts: Sequence[Any], columns: Any = None, report: Report = Silence()) -> NDArray[np.float32]:
        """Return one predicted number per text or pair."""
        return self.logits(texts, columns, report)[:, 0]

    def foreign_config(self) -> dict[str, Any]:
        return {**label_config(["LABEL_0"]), "problem_type": "regression"}

    def __repr__(self) -> str:
        return f"Regressor of {'pairs' if self.task.get('pairs') else 'texts'}: {self.base!r}"


def train_text_head(model_class: type[Head], method: TextHeadOptions, data: Any, run: Run, start: Model | None) -> Head:
    """Train a text classifier or a text regressor."""
    began, numbers = time.monotonic(), not model_class.has_labels
    pool = pool_of(start, method.pooling)
    base = base_of(start, method)
    max_length = max_length_of(method, base)
    method = method.resolved(max_length=max_length)
    examples = data if isinstance(data, Examples) else Examples(data)
    texts, labels, rows = labeled_rows(examples, run.report, numbers)
    report_duplicates(texts, labels, run.report)
    dev = None if examples.dev is None else labeled_rows(examples.dev, run.report, numbers)
    task: dict[str, Any] = {"pairs": examples.other is not None}
    scale = 1.0, 0.0
    if numbers:
        scale = scale_of(np.array(labels))
    else:
        task["labels"] = report_label_balance(labels, method.balanced, run.report)
    encoder = None
    if examples.columns:
        fitted_encoder = registry.method("onehot")(**COLUMNS).fit(Table(examples.table, columns=examples.columns))
        assert isinstance(fitted_encoder, EncoderModel)
        encoder = fitted_encoder

    def part(source: Examples, texts: list[Any], labels: list[Any], rows: list[int]) -> Part:
        extra = np.zeros((len(rows), 0), np.float32)
        if encoder is not None:
            extra = encoder.embed(Table(source.table, columns=source.columns))[rows]
        encoded = encode_texts(base.tokenizer, texts, max_length, method.overlong, run.report)
        return Part(encoded, encode_targets(labels, task, scale, run.report), extra, texts)

    train = part(examples, texts, labels, rows)
    evaluated = part(examples.dev, *dev) if examples.dev is not None and dev is not None else None
    if evaluated is None and method.held_out:
        train, evaluated = hold_out(train, method.held_out, run.seed)
    outputs = len(task.get("labels", [0]))
    net = new_net(base, outputs, SEQUENCE, pool, method, run, train.extra.shape[1], numbers)
    fingerprint = examples.fingerprint()
    reading_seconds = time.monotonic() - began
    training = TextFineTuning(method, net, train, evaluated, len(task.get("labels", ())), fingerprint, run)
    metadata = training.go() | {
        "pool": net.pool,
        "texts": len(train.texts),
        "dev_texts": len(evaluated.texts) if evaluated else 0,
        "labels": len(task.get("labels", ())) or None,
        "reading_seconds": reading_seconds,
        "data": fingerprint,
        "seed": run.seed,
        **sketch.recorded_rows([*texts, *(dev[0] if dev else ())]),
    }
    if numbers:  # undo the scaling of the targets
        with torch.no_grad():
            net.head.weight *= scale[0]
            net.head.bias.copy_(net.head.bias * scale[0] + scale[1])
    model = model_class.trained(training.method, base, net, task, metadata)
    model.encoder = encoder
    return model


def scale_of(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Return standard deviation and mean of the numbers; training targets are standardized with them."""
    if np.ptp(numbers) == 0:
        raise FirthError(
            "no_variation",
            "All {n_numbers:,} texts have the number {number:g}, so there is nothing to learn.",
            n_numbers=len(numbers),
            number=numbers[0],
        )
    return float(numbers.std()), float(numbers.mean())


def encode_targets(
    labels: list[Any], task: Mapping[str, Any], scale: tuple[float, float], report: Report
) -> NDArray[Any]:
    """Return the label ids, or the standardized numbers, of texts."""
    if "labels" not in task:
        return ((np.array(labels) - scale[1]) / scale[0]).astype(np.float32)
    ids = {label: id for id, label in enumerate(task["labels"])}
    unknown = sorted({label for label in labels if label not in ids})
    if unknown:
        count = sum(label not in ids for label in labels)
        first = ", ".join(map(repr, unknown[:3]))
        report.note(
            f"{count:,} dev texts have labels that no training example has ({first}); they count as wrong.",
            code="unknown_dev_labels",
        )
    return np.array([ids.get(label, UNKNOWN) for label in labels], np.int64)


def hold_out(part: Part, share: float, seed: int) -> tuple[Part, Part | None]:
    """Split examples at random into training and dev; a label's last examples stay in training."""
    train_rows, dev_rows = split_rows(len(part.targets), share, seed)
    if part.targets.dtype == np.int64:
        only_in_dev = np.setdiff1d(part.targets[dev_rows], part.targets[train_rows])
        moved = np.isin(part.targets[dev_rows], only_in_dev)
        train_rows, dev_rows = np.sort(np.concatenate([train_rows, dev_rows[moved]])), dev_rows[~moved]
    train, dev = (
        Part(part.texts.take(rows), part.targets[rows], part.extra[rows], [part.raw[row] for row in rows])
        for rows in (train_rows, dev_rows)
    )
    return train, dev if len(dev_rows) else None
