"""Classifiers in fastText's own files: .bin, and .ftz where they are quantised.

fastText adds 1e-5 to each probability before it takes a logarithm, and looks sigmoids up in a table of 512 steps. Firth
computes both as they are: the probabilities of a softmax differ by 1e-5, those of a tree by 1e-5 for each of its
levels, those of one-vs-all and negative by up to 0.008. The hidden vectors are the same.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core import registry
from firth.core.errors import FirthError, FirthWarning
from firth.core.options import options_of
from firth.data.labelled import FASTTEXT
from firth.data.vocabulary import Vocabulary
from firth.formats.fasttext import FastTextArgs, FastTextFile, SpreadRows, read_fasttext, write_fasttext
from firth.kernels.product import ProductCodes
from firth.learners.classify import ClassifierModel, ClassifierOptions
from firth.learners.fasttext import within

PREFIX = b"__label__"
LOSSES = {"softmax": "softmax", "hierarchical": "hs", "one_vs_all": "ova", "negative": "ns"}


def read_classifier(path: str | os.PathLike[str]) -> ClassifierModel:
    """A supervised model that fastText has written, quantised and pruned ones too. Texts are split as fastText does."""
    file = read_fasttext(path)
    if file.args.model != "sup":
        raise FirthError(f"{path} holds vectors of words, no labels; firth.read_vectors opens it.")
    return from_file(file)


def write_classifier(model: ClassifierModel, path: str | os.PathLike[str]) -> None:
    """Writes a .bin file that fastText opens. It has a row for each bucket, used or not."""
    if model.method.tokenizer != FASTTEXT or model.method.lowercase:
        warnings.warn(
            "fastText splits at white space, keeps case and ends each text with </s>: it predicts as this model does "
            "only where that makes no difference. tokenizer=fasttext without lowercase is the same for any text.",
            FirthWarning,
            stacklevel=2,
        )
    write_fasttext(path, to_file(model))


def from_file(file: FastTextFile) -> ClassifierModel:
    method = method_of(file.args)
    words = len(file.words)
    inputs, buckets = dense(file.inputs), np.arange(file.ngram_rows, dtype=np.int32)
    if file.pruned is not None:
        buckets = np.ascontiguousarray(file.pruned[:, 0])
        inputs = np.concatenate([inputs[:words], inputs[words + file.pruned[:, 1]]])
    if not method.hashed:
        inputs, buckets = inputs[:words], buckets[:0]
    vocabulary = Vocabulary(names_of(file.words), file.word_counts, min_count=method.min_count)
    labels = Vocabulary(names_of([label.removeprefix(PREFIX) for label in file.labels]), file.label_counts)
    if not len(labels):
        raise FirthError("This fastText model is a classifier without any label.")
    training = {"fasttext": asdict(file.args), "tokens": file.tokens}
    return ClassifierModel(method, vocabulary, labels, (inputs, dense(file.outputs), buckets), training)


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
        raise FirthError("Words and labels of a fastText model must differ and not be empty; these do not.")
    return names


def to_file(model: ClassifierModel) -> FastTextFile:
    method, words, buckets = model.method, len(model.vocabulary), model.buckets
    pruned = len(model.inputs) == words + len(buckets) and len(buckets) < method.buckets
    if method.hashed and pruned:
        raise FirthError("A pruned model has rows for some n-grams only; fastText's .bin has one for each.")
    args = FastTextArgs(
        dim=method.dim,
        ws=5,
        epoch=method.epochs,
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
    rows = model.inputs[words : words + len(buckets)]
    return FastTextFile(
        args=args,
        words=[word.encode("utf-8", "surrogatepass") for word in model.vocabulary.tokens],
        word_counts=model.vocabulary.counts,
        labels=[PREFIX + label.encode("utf-8", "surrogatepass") for label in model.labels.tokens],
        label_counts=model.labels.counts,
        tokens=int(model.vocabulary.counts.sum() + model.labels.counts.sum()),
        inputs=SpreadRows(model.inputs[:words], rows, buckets, args.bucket),
        outputs=model.outputs,
    )
