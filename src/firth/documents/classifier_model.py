"""The model of FastTextClassifier, and reading and writing of fastText's classifier files.

Predictions follow fastText's rules, whichever program trained the model: 1e-5 is added to each probability, and
sigmoids are looked up in a table of 512 steps (`kernels.classify.predicted`). Both programs predict the same labels in
the same order with the same probabilities, except that fastText's 1.00001 is 1 here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core import registry
from firth.core.arguments import check_count, check_share
from firth.core.embedding import EmbeddedTexts, Text, check_texts
from firth.core.errors import FirthError, FirthWarning
from firth.core.method import Method
from firth.core.model import Parts
from firth.core.options import build_settings, options_of
from firth.core.run import available_cores
from firth.core.stored import check_arrays, finite_rows
from firth.core.vectors import Matrix, Vectors
from firth.data.labeled_texts import FASTTEXT, EncodedExamples
from firth.data.readers import to_bytes
from firth.data.tokenizer import NATIVE
from firth.data.vocabulary import Vocabulary
from firth.documents.classifier_training import ClassifierOptions, Training, rows_of_buckets
from firth.formats.fasttext import FastTextArgs, FastTextFile, SparseRows
from firth.kernels import classify as kernel
from firth.kernels import text as text_kernel
from firth.kernels._native import LabelPredictor
from firth.kernels.product import ProductCodes
from firth.kernels.subwords import END_OF_LINE, ngrams
from firth.training.baselines import Bags, BaselineComparison, Part, affordable, compare_labels, shares
from firth.words.fasttext_model import within
from firth.words.word_model import Phrases, TextModel, Texts

SEPARATORS = str.maketrans(dict.fromkeys(" \t\n\v\f\r", "\0"))
PREFIX = b"__label__"
#: Firth's name of a loss -> fastText's.
LOSSES = {"softmax": "softmax", "hierarchical": "hs", "one_vs_all": "ova", "negative": "ns"}

LabelProbability = tuple[str, float]


class ClassifierModel(TextModel):
    """A linear classifier of averaged word and n-gram vectors.

    `inputs` has one row per word, then one row per bucket in `buckets`. If n-grams are hashed, a last row of zeros
    stands for all other buckets; without that row, n-grams of other buckets are skipped. `outputs` has one row per
    label; with the hierarchical loss, one row per inner node and one unused row.
    """

    method: ClassifierOptions

    def __init__(
        self,
        method: ClassifierOptions,
        vocabulary: Vocabulary | Parts,
        labels: Vocabulary | Parts,
        arrays: tuple[Matrix, Matrix, NDArray[np.int32]],
        training: Mapping[str, Any],
        phrases: Phrases = (),
    ) -> None:
        super().__init__(method, vocabulary, training, phrases)
        self.inputs, self.outputs, self.buckets = arrays
        self._labels = labels

    @property
    def labels(self) -> Vocabulary:
        """The labels with their counts, most frequent first."""
        labels = self._labels
        if isinstance(labels, Parts):
            with labels.reading():
                self._labels = labels = Vocabulary.from_json(labels.documents["labels"])
        return labels

    @property
    def vectors(self) -> Vectors:
        """The word vectors."""
        return self.tables["words"]

    @cached_property
    def tables(self) -> Mapping[str, Vectors]:
        """Word vectors (means of a word's own row and its n-gram rows), and label vectors if labels have rows."""
        words = Vectors(self._tokens, self._word_matrix(), missing=self._missing_reason)
        if self.method.loss == "hierarchical":  # rows of outputs are inner nodes of the Huffman tree, not labels
            return {"words": words}
        return {"words": words, "labels": Vectors(lambda: self.labels.tokens, self.outputs)}

    def _word_matrix(self) -> Matrix:
        if self.method.maxn == 0:
            return self.inputs[: len(self.vocabulary)]
        word_ngrams = ngrams(self.vocabulary.tokens, self.method.minn, self.method.maxn, self.method.buckets)
        rows = self._bucket_rows[word_ngrams.rows]
        matrix = np.array(self.inputs[: len(self.vocabulary)], dtype=np.float32)
        for word in range(len(matrix)):
            ngram_rows = rows[word_ngrams.starts[word] : word_ngrams.starts[word + 1]]
            ngram_rows = ngram_rows[ngram_rows >= 0]
            matrix[word] = (matrix[word] + self.inputs[ngram_rows].sum(axis=0)) / (1 + len(ngram_rows))
        return matrix

    @cached_property
    def _bucket_rows(self) -> NDArray[np.int32]:
        words, buckets = len(self.vocabulary), self.buckets
        rows = words + len(buckets)
        if len(self.inputs) not in (rows, rows + 1) or len(self.outputs) != len(self.labels):
            raise FirthError(
                "damaged_model",
                "The classifier is damaged: it has {n_inputs:,} input rows for {words:,} words and {n_buckets:,} "
                "buckets, and {n_outputs:,} output rows for {n_labels:,} labels.",
                n_inputs=len(self.inputs),
                words=words,
                n_buckets=len(buckets),
                n_outputs=len(self.outputs),
                n_labels=len(self.labels),
            )
        if len(buckets) and not 0 <= int(buckets.min()) <= int(buckets.max()) < self.method.buckets:
            raise FirthError(
                "damaged_model",
                "The classifier is damaged: {name} must be from 0 to {last:,}.",
                name="buckets",
                last=self.method.buckets - 1,
            )
        return rows_of_buckets(self.method, words, buckets, zero_row=len(self.inputs) > rows)

    @cached_property
    def _predictors(self) -> dict[bool, LabelPredictor]:
        """Native predictors, by whether they tokenize; created at their first use."""
        return {}

    def _prepare(self, texts: Texts) -> tuple[LabelPredictor, NDArray[np.uint8], NDArray[np.int64]]:
        """Return the predictor for these texts, the texts as bytes, and the end of each text."""
        check_texts(texts, lists=True)
        native = self._native and all(isinstance(text, str) for text in texts)
        joined = texts if native else ["".join(token + "\0" for token in self.tokenize(text)) for text in texts]
        parts = [to_bytes(str(text)) for text in joined]
        ends = np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)))
        return self.predictor(native), text_kernel.as_bytes(b"".join(parts)), ends.astype(np.int64)

    def predictor(self, native: bool) -> LabelPredictor:
        """Return the native predictor. If `native`, it tokenizes text; otherwise each token must end with NUL."""
        if native not in self._predictors:
            self._predictors[native] = self._new_predictor(native)
        return self._predictors[native]

    def _new_predictor(self, native: bool) -> LabelPredictor:
        method, count = self.method, len(self.labels)
        rows = self._bucket_rows
        outputs = kernel.new_outputs(count, method.dim)
        outputs[:count, : method.dim] = self.outputs
        children = kernel.label_children(self.labels.counts if method.loss == "hierarchical" else np.zeros(0, np.int64))
        try:
            return LabelPredictor(
                words="".join(token + "\0" for token in self.vocabulary.tokens).encode("utf-8", "surrogatepass"),
                split=str(method.tokenizer) if native else "separated",
                lowercase=method.lowercase and native,
                minn=method.minn,
                maxn=method.maxn,
                word_ngrams=method.word_ngrams,
                inputs=np.ascontiguousarray(self.inputs, dtype=np.float32),
                bucket_rows=rows,
                word_count=len(self.vocabulary),
                outputs=outputs,
                labels=count,
                loss=kernel.LOSSES.index(method.loss),
                children=children,
            )
        except ValueError as error:  # only possible with damaged files
            raise FirthError("damaged_model", "The classifier is damaged: {reason}", reason=str(error)) from None

    @property
    def _native(self) -> bool:
        """Whether texts are tokenized natively; segmenters, functions and phrases need Python."""
        return self.method.tokenizer in (*NATIVE, FASTTEXT) and not self.phrases

    def split(self, text: str) -> list[str]:
        """Split `text` with the model's tokenizer; fastText's appends </s>."""
        if self.method.tokenizer != FASTTEXT:
            return super().split(text)
        return [*text_kernel.tokenize(text.translate(SEPARATORS), "separated", self.method.lowercase), END_OF_LINE]

    def predict(self, texts: Texts, k: int = 1, threshold: float = 0.0) -> list[list[LabelProbability]]:
        """Return the k most probable labels of each text (or list of its tokens), best first.

        Labels with a probability below `threshold` are excluded. A text without known words or n-grams has no labels.
        With loss=one_vs_all and loss=negative the probabilities are independent; otherwise they sum to 1. As in
        fastText, 1e-5 is added to each probability, but none exceeds 1. With loss=hierarchical, labels less probable
        than 1e-5 are excluded.
        """
        k = min(check_count("k", k), len(self.labels))
        check_share("threshold", threshold)
        predictor, data, ends = self._prepare(texts)
        starts, labels, probabilities = predictor.predict(data, ends, k, threshold, available_cores())
        names, probabilities = self.labels.tokens, np.minimum(probabilities, 1)
        pairs = [(names[label], p) for label, p in zip(labels.tolist(), probabilities.tolist(), strict=True)]
        bounds = starts.tolist()
        return [pairs[first:last] for first, last in pairwise(bounds)]

    def _hidden(self, texts: Sequence[Text]) -> Matrix:
        """Return the mean row of each text, from which its labels are predicted; zeros for a text without any."""
        predictor, data, ends = self._prepare(texts)
        matrix = np.zeros((len(texts), self.method.dim), dtype=np.float32)
        predictor.hidden(data, ends, matrix, np.zeros(len(texts), np.int64), available_cores())
        return finite_rows(matrix, "Text")

    def embed_with_counts(self, texts: Texts) -> EmbeddedTexts:
        """Return the mean row of each text, from which its labels are predicted; zeros for a text without any."""
        check_texts(texts, lists=True)
        tokens = [self.tokenize(text) for text in texts]
        known = np.array([sum(token in self.vocabulary for token in text) for text in tokens], dtype=np.int64)
        lengths = np.array([len(text) for text in tokens], dtype=np.int64)
        return EmbeddedTexts(self._hidden(texts), known, lengths - known)

    def _embed_batches(self, batches: Iterable[Sequence[Text]], *args: Any, **settings: Any) -> Iterator[Matrix]:
        """Embed without counting words, which would tokenize every text twice."""
        return map(self._hidden, batches)

    def parts(self) -> Parts:
        """Return the arrays and documents to store."""
        arrays = {"inputs": self.inputs, "outputs": self.outputs, "buckets": self.buckets}
        return Parts(arrays, {"vocabulary": self.vocabulary_json(), "labels": self.labels.to_json()})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> ClassifierModel:
        """Return the model from stored parts, after checking their shapes."""
        assert isinstance(method, ClassifierOptions)
        dim = method.dim
        check_arrays(parts.arrays, inputs=f"float rows {dim}", outputs=f"float labels {dim}", buckets="int32 buckets")
        inputs, outputs, buckets = (parts.arrays[name] for name in ("inputs", "outputs", "buckets"))
        return cls(method, parts, parts, (inputs, outputs, buckets), training)

    @classmethod
    def from_file(cls, file: FastTextFile) -> ClassifierModel:
        """Return the model in a file written by fastText or `to_file`, also a quantized or pruned one.

        Texts are tokenized as in fastText.
        """
        if file.args.model != "sup" or not len(file.labels):
            raise FirthError(
                "unsupported_model",
                "This fastText file (model={model}) has no labels to predict.",
                model=file.args.model,
            )
        method = method_of(file.args)
        words = len(file.words)
        inputs, buckets = dense(file.inputs), np.arange(file.ngram_rows, dtype=np.int32)
        if file.pruned is not None:
            order = np.argsort(file.pruned[:, 0])
            buckets = np.ascontiguousarray(file.pruned[order, 0])
            inputs = np.concatenate([inputs[:words], inputs[words + file.pruned[order, 1]]])
        if not method.hashed:
            inputs, buckets = inputs[:words], buckets[:0]
        vocabulary = Vocabulary(decode_names(file.words), file.word_counts, min_count=method.min_count)
        labels = Vocabulary(decode_names([label.removeprefix(PREFIX) for label in file.labels]), file.label_counts)
        training = {"fasttext": asdict(file.args), "tokens": file.tokens}
        return cls(method, vocabulary, labels, (inputs, dense(file.outputs), buckets), training)

    def to_file(self) -> FastTextFile:
        """Return the model in fastText's layout, with one row per bucket. A pruned model needs the format .ftz."""
        method, words, buckets = self.method, len(self.vocabulary), self.buckets
        if method.tokenizer != FASTTEXT or method.lowercase:
            text = (
                "fastText splits text at whitespace, keeps case and appends </s>, so its predictions may differ from "
                "this model's. Train with tokenizer=fasttext and lowercase=False for identical predictions."
            )
            warnings.warn(FirthWarning(text, "tokenizer_mismatch"), stacklevel=2)
        args = FastTextArgs(
            dim=method.dim,
            ws=5,
            epoch=method.epochs or self.training.get("chosen", {}).get("epochs", 5),
            minCount=method.min_count,
            neg=method.negatives,
            wordNgrams=method.word_ngrams,
            loss=LOSSES[method.loss],
            model="sup",
            bucket=method.buckets if method.hashed else 0,
            minn=method.minn,
            maxn=method.maxn,
            lrUpdateRate=100,
            t=1e-4,
        )
        pruned = method.hashed and len(self.inputs) == words + len(buckets) < words + method.buckets
        rows = self.inputs[words : words + len(buckets)]
        return FastTextFile(
            args=args,
            words=[word.encode("utf-8", "surrogatepass") for word in self.vocabulary.tokens],
            word_counts=self.vocabulary.counts,
            labels=[PREFIX + label.encode("utf-8", "surrogatepass") for label in self.labels.tokens],
            label_counts=self.labels.counts,
            tokens=int(self.vocabulary.counts.sum() + self.labels.counts.sum()),
            inputs=self.inputs if pruned else SparseRows(self.inputs[:words], rows, buckets, args.bucket),
            outputs=self.outputs,
            pruned=np.stack([buckets, np.arange(len(buckets), dtype=np.int32)], axis=1) if pruned else None,
        )

    def __repr__(self) -> str:
        rows, labels = len(self.inputs), len(self.labels)
        return f"{type(self.method).__name__} model: {labels:,} labels, {rows:,} features × {self.method.dim}"


def model_from_training(training: Training, metrics: Mapping[str, Any]) -> ClassifierModel:
    """Return the model of a finished training, without the words that occur in held-out texts only."""
    examples, words = training.examples, training.vocabulary
    method = training.method.as_trained(examples.tokens.splitting, words, training.run)
    inputs = np.ascontiguousarray(training.inputs[:, : method.dim])
    trained = training.counts[: len(words)] > 0
    if not trained.all():
        rows = np.concatenate([np.flatnonzero(trained), np.arange(len(words), len(inputs))])
        inputs = inputs[rows]
        vocabulary_settings = {
            "min_count": words.min_count,
            "dropped_types": words.dropped_types + int((~trained).sum()),
            "dropped_tokens": words.dropped_tokens + int(words.counts[~trained].sum()),
        }
        tokens = [words.tokens[row] for row in np.flatnonzero(trained).tolist()]
        words = Vocabulary(tokens, words.counts[trained], **vocabulary_settings)
    outputs = np.ascontiguousarray(training.outputs[: len(examples.labels), : method.dim])
    phrases = examples.tokens.phrases
    return ClassifierModel(method, words, examples.labels, (inputs, outputs, training.buckets), metrics, phrases)


def held_out_comparison(model: ClassifierModel, training: Training) -> BaselineComparison | None:
    """Return the accuracy on the held-out texts and that of the baselines; None without held-out texts."""
    held_out, examples = training.held_out, training.examples
    if not len(held_out):
        return None
    names, bags = examples.tokens.vocabulary.tokens, Bags(examples.tokens.ids, examples.tokens.starts)
    texts = [
        "".join(names[id] + "\0" for id in bags.ids[bags.starts[row] : bags.starts[row + 1]].tolist())
        for row in held_out
    ]
    parts = [to_bytes(text) for text in texts]
    ends = np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)))
    split = text_kernel.as_bytes(b"".join(parts)), ends
    starts, labels, _ = model.predictor(native=False).predict(*split, 1, 0.0, available_cores())
    predicted = np.full(len(held_out), -1)
    known = np.diff(starts) > 0
    predicted[known] = labels
    rows = training.rows[np.diff(examples.label_starts)[training.rows] > 0]
    baseline_rows = affordable(rows, [bags], len(examples.labels), training.run.seed)
    comparison = compare_labels(
        label_part(examples, baseline_rows), label_part(examples, held_out), predicted, len(names)
    )
    return comparison if len(baseline_rows) == len(rows) else comparison._replace(baseline_rows=len(baseline_rows))


def label_part(examples: EncodedExamples, rows: NDArray[np.int64]) -> Part:
    """Return texts and labels for the baselines."""
    label_ids = [examples.label_ids[examples.label_starts[row] : examples.label_starts[row + 1]] for row in rows]
    bags = Bags(examples.tokens.ids, examples.tokens.starts)
    return Part([bags], rows, shares(label_ids, len(examples.labels)))


def method_of(args: FastTextArgs) -> ClassifierOptions:
    """Return the options for a file's settings; those used only in training are clipped to their range."""
    method = registry.method("fasttext_classifier")
    options = {item.name: item for item in options_of(method)}
    characters = args.maxn >= max(1, args.minn)
    training = {"epochs": args.epoch, "min_count": args.minCount, "negatives": args.neg}
    values = {
        "dim": args.dim,
        "loss": next(name for name, fasttext_name in LOSSES.items() if fasttext_name == args.loss),
        "word_ngrams": max(1, args.wordNgrams),
        "minn": args.minn if characters else 0,
        "maxn": args.maxn if characters else 0,
        "buckets": max(1, args.bucket),
        "tokenizer": FASTTEXT,
        "lowercase": False,
        **{name: within(value, options[name].low, options[name].high) for name, value in training.items()},
    }
    classifier_options = build_settings(method, values)
    assert isinstance(classifier_options, ClassifierOptions)
    return classifier_options


def dense(matrix: Any) -> NDArray[np.float32]:
    """Return an aligned copy in memory; matrices mapped from a fastText file are not aligned."""
    array = matrix.dense() if isinstance(matrix, ProductCodes) else matrix[:]
    return np.array(array, dtype=np.float32)


def decode_names(entries: Sequence[bytes]) -> list[str]:
    """Return the entries as text, with bytes that are not valid UTF-8 written as \\xNN."""
    names = [entry.decode("utf-8", "backslashreplace") for entry in entries]
    if len(set(names)) < len(names) or "" in names:
        raise FirthError("damaged_model", "Words and labels of a fastText model must be unique and not empty.")
    return names
