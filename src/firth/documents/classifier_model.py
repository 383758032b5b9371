"""A model that labels texts, and the same in fastText's files.

Predictions go by fastText's own rules whoever trained the model: 1e-5 is added to each probability, and sigmoids are
looked up in a table of 512 steps (`label_probabilities`). So both programs name the same labels in the same
order, with the same probabilities, except that what fastText gives as 1.00001 is 1 here.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core import registry
from firth.core.errors import FirthError, FirthWarning
from firth.core.method import Method
from firth.core.model import Parts
from firth.core.options import options_of
from firth.core.run import available_cores
from firth.core.stored import check_arrays, finite_rows
from firth.core.vectors import Matrix, Vectors
from firth.data.labeled_texts import FASTTEXT, Examples
from firth.data.readers import to_bytes
from firth.data.tokenizer import NATIVE
from firth.data.vocabulary import Vocabulary
from firth.documents.classifier_training import ClassifierOptions, Training, rows_of_buckets
from firth.formats.fasttext import FastTextArgs, FastTextFile, SpreadRows
from firth.kernels import classify as kernel
from firth.kernels import text as text_kernel
from firth.kernels._native import LabelPredictor
from firth.kernels.product import ProductCodes
from firth.kernels.subwords import END_OF_LINE, ngrams
from firth.training.baselines import Bags, Part, Verdict, affordable, label_verdict, shares
from firth.words.fasttext_model import within
from firth.words.word_model import Phrases, Pooled, TextModel, Texts, check_texts

SEPARATORS = str.maketrans(dict.fromkeys(" \t\n\v\f\r", "\0"))
PREFIX = b"__label__"
LOSSES = {"softmax": "softmax", "hierarchical": "hs", "one_vs_all": "ova", "negative": "ns"}  # Firth's and fastText's

Ordinal = tuple[str, float]


class ClassifierModel(TextModel):
    """Labels texts. `inputs` has a row a word, then one for each of `buckets`, and (where n-grams are hashed) one of
    zeros for all other buckets; without that row, their n-grams are left out. `outputs` has a row a label; of the
    hierarchical loss, a row an inner node and one to spare."""

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
        found = self._labels
        if isinstance(found, Parts):
            with found.reading():
                self._labels = found = Vocabulary.from_json(found.documents["labels"])
        return found

    @property
    def vectors(self) -> Vectors:
        return self.tables["words"]

    @cached_property
    def tables(self) -> Mapping[str, Vectors]:
        """Words (the mean of their own row and those of their n-grams), and labels where the loss gives each a row."""
        words = Vectors(self._tokens, self._word_matrix(), missing=self._why_missing)
        if self.method.loss == "hierarchical":  # inner nodes of a tree are nobody's vectors
            return {"words": words}
        return {"words": words, "labels": Vectors(lambda: self.labels.tokens, self.outputs)}

    def _word_matrix(self) -> Matrix:
        if self.method.maxn == 0:
            return self.inputs[: len(self.vocabulary)]
        found = ngrams(self.vocabulary.tokens, self.method.minn, self.method.maxn, self.method.buckets)
        rows = self._bucket_rows[found.rows]
        matrix = np.array(self.inputs[: len(self.vocabulary)], dtype=np.float32)
        for word in range(len(matrix)):
            parts = rows[found.starts[word] : found.starts[word + 1]]
            parts = parts[parts >= 0]
            matrix[word] = (matrix[word] + self.inputs[parts].sum(axis=0)) / (1 + len(parts))
        return matrix

    @cached_property
    def _bucket_rows(self) -> NDArray[np.int32]:
        words, buckets = len(self.vocabulary), self.buckets
        rows = words + len(buckets)
        if len(self.inputs) not in (rows, rows + 1) or len(self.outputs) != len(self.labels):
            raise FirthError(
                "damaged_model",
                "The classifier is broken: {n_inputs:,} rows for {words:,} words and {n_buckets:,} buckets, "
                "{n_outputs:,} for {n_labels:,} labels.",
                n_inputs=len(self.inputs),
                words=words,
                n_buckets=len(buckets),
                n_outputs=len(self.outputs),
                n_labels=len(self.labels),
            )
        if len(buckets) and not 0 <= int(buckets.min()) <= int(buckets.max()) < self.method.buckets:
            raise FirthError(
                "damaged_model",
                "The classifier is broken: its buckets must be below {buckets:,}.",
                buckets=self.method.buckets,
            )
        return rows_of_buckets(self.method, words, buckets, zero_row=len(self.inputs) > rows)

    @cached_property
    def _labellers(self) -> dict[bool, LabelPredictor]:
        """By whether they split text themselves; made at their first use."""
        return {}

    def _labeller(self, texts: Texts) -> tuple[LabelPredictor, NDArray[np.uint8], NDArray[np.int64]]:
        """What reads these texts, the texts for native code, and where each ends."""
        check_texts(texts, lists=True)
        native = self._native and all(isinstance(text, str) for text in texts)
        joined = texts if native else ["".join(token + "\0" for token in self.tokenize(text)) for text in texts]
        parts = [to_bytes(str(text)) for text in joined]
        ends = np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)))
        return self.labeller(native), text_kernel.as_bytes(b"".join(parts)), ends.astype(np.int64)

    def labeller(self, native: bool) -> LabelPredictor:
        """The native code that predicts. `native`: it splits text itself; else a NUL stands after each token."""
        if native not in self._labellers:
            self._labellers[native] = self._new_labeller(native)
        return self._labellers[native]

    def _new_labeller(self, native: bool) -> LabelPredictor:
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
        except ValueError as error:  # a damaged file; what was learned fits
            raise FirthError("damaged_model", "The classifier is broken: {reason}", reason=str(error)) from None

    @property
    def _native(self) -> bool:
        """Whether texts are split natively; a segmenter, a function and phrases need Python."""
        return self.method.tokenizer in (*NATIVE, FASTTEXT) and not self.phrases

    def split(self, text: str) -> list[str]:
        if self.method.tokenizer != FASTTEXT:
            return super().split(text)
        return [*text_kernel.tokenize(text.translate(SEPARATORS), "separated", self.method.lowercase), END_OF_LINE]

    def predict(self, texts: Texts, k: int = 1, threshold: float = 0.0) -> list[list[Ordinal]]:
        """The k most probable labels of each text (or list of its tokens) that have at least `threshold` probability,
        best first.

        A text in which the model knows nothing (an empty one) has none. With loss=one_vs_all and negative each label
        has a probability of its own; otherwise all labels' add up to 1. As fastText does, 1e-5 is added to each, but
        none exceeds 1, and labels of a tree that are less probable than 1e-5 are left out.
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise FirthError(
                "invalid_value", "{option} must be a whole number of at least 1; got {got!r}.", option="k", got=k
            )
        if not 0 <= threshold <= 1:
            raise FirthError(
                "invalid_value", "{option} must be from 0 to 1; got {got}.", option="threshold", got=threshold
            )
        k = min(k, len(self.labels))
        labeller, data, ends = self._labeller(texts)
        starts, labels, probabilities = labeller.predict(data, ends, k, threshold, available_cores())
        names, chances = self.labels.tokens, np.minimum(probabilities, 1)
        pairs = [(names[label], p) for label, p in zip(labels.tolist(), chances.tolist(), strict=True)]
        bounds = starts.tolist()
        return [pairs[first:last] for first, last in pairwise(bounds)]

    def embed(self, inputs: Texts) -> Matrix:
        """The mean row of each text, from which its labels are predicted; zeros for a text without any."""
        labeller, data, ends = self._labeller(inputs)
        matrix = np.zeros((len(inputs), self.method.dim), dtype=np.float32)
        labeller.hidden(data, ends, matrix, np.zeros(len(inputs), np.int64), available_cores())
        return finite_rows(matrix, "Text")

    def pool(self, texts: Texts) -> Pooled:
        check_texts(texts, lists=True)
        tokens = [self.tokenize(text) for text in texts]
        known = np.array([sum(token in self.vocabulary for token in text) for text in tokens], dtype=np.int64)
        return Pooled(self.embed(texts), known, np.array([len(text) for text in tokens], dtype=np.int64) - known)

    def parts(self) -> Parts:
        arrays = {"inputs": self.inputs, "outputs": self.outputs, "buckets": self.buckets}
        return Parts(arrays, {"vocabulary": self.vocabulary_json(), "labels": self.labels.to_json()})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> ClassifierModel:
        assert isinstance(method, ClassifierOptions)
        dim = method.dim
        check_arrays(parts.arrays, inputs=f"float rows {dim}", outputs=f"float labels {dim}", buckets="int32 buckets")
        inputs, outputs, buckets = (parts.arrays[name] for name in ("inputs", "outputs", "buckets"))
        return cls(method, parts, parts, (inputs, outputs, buckets), training)

    @classmethod
    def from_file(cls, file: FastTextFile) -> ClassifierModel:
        """A model that fastText (or `to_file`) wrote, also in codes or pruned. Texts are split as fastText does."""
        if file.args.model != "sup" or not len(file.labels):
            raise FirthError("unsupported_model", "This fastText model has no labels to predict.")
        method = method_of(file.args)
        words = len(file.words)
        inputs, buckets = dense(file.inputs), np.arange(file.ngram_rows, dtype=np.int32)
        if file.pruned is not None:
            order = np.argsort(file.pruned[:, 0])
            buckets = np.ascontiguousarray(file.pruned[order, 0])
            inputs = np.concatenate([inputs[:words], inputs[words + file.pruned[order, 1]]])
        if not method.hashed:
            inputs, buckets = inputs[:words], buckets[:0]
        vocabulary = Vocabulary(names_of(file.words), file.word_counts, min_count=method.min_count)
        labels = Vocabulary(names_of([label.removeprefix(PREFIX) for label in file.labels]), file.label_counts)
        training = {"fasttext": asdict(file.args), "tokens": file.tokens}
        return cls(method, vocabulary, labels, (inputs, dense(file.outputs), buckets), training)

    def to_file(self) -> FastTextFile:
        """The model as fastText's .bin holds it, with a row for each bucket; a pruned one can only become .ftz."""
        method, words, buckets = self.method, len(self.vocabulary), self.buckets
        if method.tokenizer != FASTTEXT or method.lowercase:
            warnings.warn(
                "fastText splits at white space, keeps case and ends each text with </s>: it predicts as this model "
                "does only where that makes no difference. tokenizer=fasttext without lowercase makes none anywhere.",
                FirthWarning,
                stacklevel=2,
            )
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
            inputs=self.inputs if pruned else SpreadRows(self.inputs[:words], rows, buckets, args.bucket),
            outputs=self.outputs,
            pruned=np.stack([buckets, np.arange(len(buckets), dtype=np.int32)], axis=1) if pruned else None,
        )

    def __repr__(self) -> str:
        rows, labels = len(self.inputs), len(self.labels)
        return f"{type(self.method).__name__} model: {labels:,} labels, {rows:,} features × {self.method.dim}"


def learned(training: Training, figures: Mapping[str, Any]) -> ClassifierModel:
    """The model of a finished training. Words of held-out texts alone were not trained: the model lacks them."""
    examples, words = training.examples, training.vocabulary
    method = training.asked.as_trained(examples.tokens.splitting, words, training.run)
    inputs = np.ascontiguousarray(training.inputs[:, : method.dim])
    trained = training.counts[: len(words)] > 0
    if not trained.all():
        rows = np.concatenate([np.flatnonzero(trained), np.arange(len(words), len(inputs))])
        inputs = inputs[rows]
        facts = {
            "min_count": words.min_count,
            "dropped_types": words.dropped_types + int((~trained).sum()),
            "dropped_tokens": words.dropped_tokens + int(words.counts[~trained].sum()),
        }
        tokens = [words.tokens[row] for row in np.flatnonzero(trained).tolist()]
        words = Vocabulary(tokens, words.counts[trained], **facts)
    outputs = np.ascontiguousarray(training.outputs[: len(examples.labels), : method.dim])
    phrases = examples.tokens.phrases
    return ClassifierModel(method, words, examples.labels, (inputs, outputs, training.buckets), figures, phrases)


def scored(model: ClassifierModel, training: Training) -> Verdict | None:
    """How often the model is right about the texts that were held out, beside the baselines; None without any."""
    held, examples = training.held_out, training.examples
    if not len(held):
        return None
    names, bags = examples.tokens.vocabulary.tokens, Bags(examples.tokens.ids, examples.tokens.starts)
    texts = [
        "".join(names[id] + "\0" for id in bags.ids[bags.starts[row] : bags.starts[row + 1]].tolist()) for row in held
    ]
    parts = [to_bytes(text) for text in texts]
    ends = np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)))
    split = text_kernel.as_bytes(b"".join(parts)), ends
    starts, labels, _ = model.labeller(native=False).predict(*split, 1, 0.0, available_cores())
    found = np.full(len(held), -1)
    known = np.diff(starts) > 0
    found[known] = labels
    rows = training.rows[np.diff(examples.label_starts)[training.rows] > 0]
    some = affordable(rows, [bags], len(examples.labels), training.run.seed)
    verdict = label_verdict(label_part(examples, some), label_part(examples, held), found, len(names))
    return verdict if len(some) == len(rows) else verdict._replace(baseline_rows=len(some))


def label_part(examples: Examples, rows: NDArray[np.int64]) -> Part:
    """Texts and labels for the baselines."""
    own = [examples.label_ids[examples.label_starts[row] : examples.label_starts[row + 1]] for row in rows]
    bags = Bags(examples.tokens.ids, examples.tokens.starts)
    return Part([bags], rows, shares(own, len(examples.labels)))


def method_of(args: FastTextArgs) -> ClassifierOptions:
    """The options that a file's settings mean; of those that only training needs, the nearest."""
    method: Any = registry.method("fasttext_classifier")
    known = {item.name: item for item in options_of(method)}
    characters = args.maxn >= max(1, args.minn)
    training = {"epochs": args.epoch, "min_count": args.minCount, "negatives": args.neg}
    found: ClassifierOptions = method(
        dim=args.dim,
        loss=next(name for name, theirs in LOSSES.items() if theirs == args.loss),
        word_ngrams=max(1, args.wordNgrams),
        minn=args.minn if characters else 0,
        maxn=args.maxn if characters else 0,
        buckets=max(1, args.bucket),
        tokenizer=FASTTEXT,
        lowercase=False,
        **{name: within(value, known[name].low, known[name].high) for name, value in training.items()},
    )
    return found


def dense(matrix: Any) -> NDArray[np.float32]:
    """In memory: what is mapped from a fastText file lies at odd addresses."""
    found = matrix.dense() if isinstance(matrix, ProductCodes) else matrix[:]
    return np.array(found, dtype=np.float32)


def names_of(entries: Sequence[bytes]) -> list[str]:
    """As text; bytes that are not UTF-8 are written as \\xNN, and can't be met in a text."""
    names = [entry.decode("utf-8", "backslashreplace") for entry in entries]
    if len(set(names)) < len(names) or "" in names:
        raise FirthError(
            "damaged_model", "Words and labels of a fastText model must differ and not be empty; these do not."
        )
    return names
