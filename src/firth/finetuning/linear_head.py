"""Linear classifiers and regressors on the vectors of another model, which does not change and is saved with them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from firth.core import registry, sketch
from firth.core.arguments import check_count, check_share
from firth.core.embedding import EmbeddedTexts, EmbedsTexts, Text
from firth.core.errors import FirthError
from firth.core.linear_heads import LinearMap, fit_linear
from firth.core.method import Method
from firth.core.model import Model, Parts, merged
from firth.core.options import build_settings
from firth.core.run import Run
from firth.core.stored import check_arrays, check_texts_of
from firth.core.vectors import Matrix
from firth.data.examples import Examples, labeled_rows, report_label_balance, split_rows
from firth.data.table import Table
from firth.finetuning.linear_options import LinearOptions
from firth.tables.encoder_model import EncoderModel
from firth.training.baselines import Raw, compare_texts
from firth.words.word_model import WordOptions

COLUMNS = {"numeric": "standardize", "missing": "mean", "unseen": "missing"}  # OneHot's options for other columns
BASE, ARRAYS = "base", "base/arrays"
HINT = "Try vectors of another model."
Head = TypeVar("Head", bound="LinearHead")


class BaseDocuments(Mapping[str, Any]):
    """The documents of the base among those of the model, read at the first use."""

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self._documents = documents

    def __getitem__(self, name: str) -> Any:
        return self._documents[f"{BASE}/{name}"]

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(f"{BASE}/") for name in self._documents if name.startswith(f"{BASE}/"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class LinearHead(EmbedsTexts):
    """A linear map of the base's text vectors, followed by encoded columns if it was trained with any."""

    head: ClassVar[str]

    def __init__(
        self,
        method: Method,
        base: EmbedsTexts,
        linear: LinearMap,
        labels: Sequence[str],
        encoder: EncoderModel | None,
        training: Mapping[str, Any],
    ) -> None:
        self.method, self.base, self.linear, self.training = method, base, linear, training
        #: The labels in the order of the outputs; none if numbers are predicted.
        self.labels, self.encoder = list(labels), encoder

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that predictions need besides the texts."""
        return tuple(self.encoder.names) if self.encoder else ()

    @property
    def embedding_settings(self) -> list[str]:
        """The further settings of `embed`: those of the base."""
        return self.base.embedding_settings

    def embed_with_counts(self, texts: Any, *args: Any, **settings: Any) -> EmbeddedTexts:
        """Return the base's vectors of texts, with the numbers of known and unknown words or tokens."""
        return self.base.embed_with_counts(texts, *args, **settings)

    def _embed_batches(self, batches: Iterable[Sequence[Text]], *args: Any, **settings: Any) -> Iterator[Matrix]:
        return self.base._embed_batches(batches, *args, **settings)

    def outputs(self, texts: Sequence[Any], columns: Any) -> NDArray[np.float64]:
        """Return the outputs of the linear map, one row per text."""
        if self.encoder is not None and columns is None:
            raise FirthError(
                "missing_option",
                "This model also reads the columns {expected}. Pass a table with them as columns=.",
                expected=", ".join(self.columns),
            )
        matrix = features_of(self.base, texts, self.encoder, columns)
        return np.asarray(matrix @ self.linear.weights + self.linear.bias)

    def parts(self) -> Parts:
        """Return the arrays and documents to store; those of the base are in the folder base."""
        base = merged(self.base).parts()
        description = {
            "method": self.base.method.method_name(),
            "options": self.base.method.options(),
            "training": dict(self.base.training),
        }
        documents = {f"{BASE}/{name}": document for name, document in base.documents.items()}
        documents |= {BASE: description, "head": {"labels": self.labels}}
        arrays: dict[str, NDArray[Any]] = {"weights": self.linear.weights, "bias": self.linear.bias}
        if self.encoder is not None:
            encoder = self.encoder.parts()
            arrays["columns.numbers"] = encoder.arrays["numbers"]
            documents["columns"] = encoder.documents["columns"]
        more = {ARRAYS: base.arrays, **{f"{BASE}/{name}": each for name, each in base.more.items()}}
        return Parts(arrays, documents, more=more)

    @classmethod
    def from_parts(cls: type[Head], method: Method, parts: Parts, training: Mapping[str, Any]) -> Head:
        """Return the model from stored parts, after checking their shapes."""
        description, head = parts.documents[BASE], parts.documents["head"]
        check_arrays(parts.arrays, weights="float64 features outputs", bias="float64 outputs")
        labels = check_texts_of(head["labels"], "labels")
        if len(labels) != (len(parts.arrays["bias"]) if cls.head == "logistic" else 0) or ARRAYS not in parts.more:
            raise FirthError("damaged_model", "{name} does not match the arrays.", name="head.json")
        base_method = registry.stored_method(description["method"], description["options"])
        more = {name.removeprefix(f"{BASE}/"): each for name, each in parts.more.items() if name != ARRAYS}
        base_parts = Parts(parts.more[ARRAYS], BaseDocuments(parts.documents), more=more, folder=parts.folder)
        base = base_method.model_class().from_parts(base_method, base_parts, description["training"])
        if not isinstance(base, EmbedsTexts):
            raise FirthError(
                "damaged_model",
                "{name}: {method} does not embed texts.",
                name=f"{BASE}.json",
                method=description["method"],
            )
        encoder = None
        if "columns" in parts.documents:
            numbers = {"numbers": parts.arrays["columns.numbers"]}
            onehot: Any = build_settings(registry.method("onehot"), COLUMNS)
            encoder = EncoderModel.from_parts(onehot, Parts(numbers, {"columns": parts.documents["columns"]}), {})
        features = features_of(base, [], encoder, []).shape[1]
        check_arrays(parts.arrays, weights=f"float64 {features} outputs")
        return cls(method, base, LinearMap(parts.arrays["weights"], parts.arrays["bias"]), labels, encoder, training)


class LinearClassifierModel(LinearHead):
    """Predicts labels of texts by multinomial logistic regression on their vectors."""

    head = "logistic"

    def predict(
        self, texts: Sequence[Any], k: int = 1, threshold: float = 0.0, columns: Any = None
    ) -> list[list[tuple[str, float]]]:
        """Return the k most probable labels of each text, most probable first.

        Labels with a probability below `threshold` are left out. `columns` is a table with one row per text, for a
        model that was trained with other columns.
        """
        check_count("k", k)
        check_share("threshold", threshold)
        probabilities = softmax(self.outputs(texts, columns))
        best = np.argsort(-probabilities, axis=1, kind="stable")[:, :k]
        return [
            [(self.labels[id], float(row[id])) for id in ids if row[id] >= threshold]
            for ids, row in zip(best.tolist(), probabilities, strict=True)
        ]

    def __repr__(self) -> str:
        return f"Linear classifier, {len(self.labels)} labels: {self.base!r}"


class LinearRegressorModel(LinearHead):
    """Predicts one number per text by ridge regression on its vector."""

    head = "ridge"

    def estimate(self, texts: Sequence[Any], columns: Any = None) -> NDArray[np.float32]:
        """Return one predicted number per text."""
        return self.outputs(texts, columns)[:, 0].astype(np.float32)

    def __repr__(self) -> str:
        return f"Linear regressor: {self.base!r}"


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities of labels, one row per text."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def features_of(
    base: EmbedsTexts, texts: Sequence[Any], encoder: EncoderModel | None, columns: Any
) -> NDArray[np.float64]:
    """Return the vectors of texts, followed by their encoded columns: texts × features."""
    rows = base.embed(texts).astype(np.float64)
    if encoder is None:
        return np.asarray(rows)
    extra = encoder.embed(Table(columns))
    if len(extra) != len(rows):
        raise FirthError(
            "shape_mismatch",
            "columns must have one row per text: {n_texts:,} rows; got {n_rows:,}.",
            n_texts=len(rows),
            n_rows=len(extra),
        )
    return np.hstack([rows, extra])


def base_of(start: Model | None, method: Method) -> EmbedsTexts:
    """Return the model whose vectors are used, after checking that it embeds texts and can be saved."""
    if start is None:
        raise FirthError(
            "missing_start",
            "{method} needs a model that embeds texts: fit(data, start=firth.load(FOLDER)).",
            method=type(method).__name__,
        )
    base = start.base if isinstance(start, LinearHead) else start
    if not isinstance(base, EmbedsTexts):
        raise FirthError(
            "incompatible_start",
            "{method} needs a model that embeds texts; start is {got!r}.",
            method=type(method).__name__,
            got=start,
        )
    if isinstance(base.method, WordOptions) and callable(base.method.tokenizer):
        raise FirthError(
            "incompatible_start",
            "{method} stores its base, and the tokenizer of {got!r} is a function, which cannot be stored.",
            method=type(method).__name__,
            got=start,
        )
    return base


def train_linear_head(
    model_class: type[Head],
    method: LinearOptions,
    data: Any,
    run: Run,
    start: Model | None,
    regularization: float = 1.0,
) -> Head:
    """Embed the texts of examples, and fit a logistic or ridge regression to their labels or numbers."""
    began = time.monotonic()
    numbers = model_class.head == "ridge"
    base = base_of(start, method)
    examples = data if isinstance(data, Examples) else Examples(data)
    if examples.other is not None:
        raise FirthError(
            "wrong_input", "{method} reads single texts, not pairs. Omit other.", method=type(method).__name__
        )
    texts, targets, rows = labeled_rows(examples, run.report, numbers)
    labels = [] if numbers else report_label_balance(targets, False, run.report)
    encoder: Any = None
    if examples.columns:
        encoder = registry.method("onehot")(**COLUMNS).fit(Table(examples.table, columns=examples.columns))

    def part(source: Examples, texts: list[str], targets: list[Any], rows: list[int]) -> tuple[NDArray[Any], Raw]:
        table = None if encoder is None else Table(source.table, columns=source.columns)
        extra = np.zeros((len(rows), 0)) if encoder is None else encoder.embed(table)[rows]
        matrix = np.hstack([base.embed(texts, report=run.report).astype(np.float64), extra])
        ids = {label: id for id, label in enumerate(labels)}
        values = np.array(targets if numbers else [ids.get(label, -1) for label in targets])
        return matrix, Raw(texts, values, extra)

    matrix, train = part(examples, texts, targets, rows)
    held_out: tuple[NDArray[Any], Raw] | None = None
    if examples.dev is not None:
        held_out = part(examples.dev, *labeled_rows(examples.dev, run.report, numbers))
    elif method.held_out:
        train_rows, held_out_rows = split_rows(len(matrix), method.held_out, run.seed)
        if not numbers:  # the last rows of a label stay in training
            only_held_out = ~np.isin(train.targets[held_out_rows], train.targets[train_rows])
            train_rows = np.sort(np.concatenate([train_rows, held_out_rows[only_held_out]]))
            held_out_rows = held_out_rows[~only_held_out]
        held_out = matrix[held_out_rows], train.take(held_out_rows)
        matrix, train = matrix[train_rows], train.take(train_rows)
    linear = fit_linear(matrix, train.targets, model_class.head, regularization)
    metrics: dict[str, Any] = {
        "texts": len(train.texts),
        "features": int(matrix.shape[1]),
        "labels": len(labels) or None,
        "seconds": time.monotonic() - began,
        "data": examples.fingerprint(),
        "seed": run.seed,
        **sketch.recorded_rows([*train.texts, *(held_out[1].texts if held_out else ())]),
    }
    if held_out is not None and held_out[1].texts:
        outputs = held_out[0] @ linear.weights + linear.bias
        predicted = outputs[:, 0] if numbers else outputs.argmax(axis=1)
        metric = "spearman" if numbers else "accuracy"
        comparison = compare_texts(train, held_out[1], predicted, len(labels), metric, run.seed)
        comparison.add_notes(run.report, HINT)
        metrics |= comparison.metrics()
    return model_class(method, base, linear, labels, encoder, metrics)
