"""Classifiers in fastText's own files: .bin, and .ftz where they are quantised.

fastText adds 1e-5 to each probability before it takes a logarithm, and looks sigmoids up in a table of 512 steps. Firth
computes both as they are, so that the probabilities of a softmax differ by 1e-5, those of a tree by 1e-5 for each of its
levels, and those of one-vs-all by up to 0.008. Labels and their order are the same.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from firth.core import registry
from firth.core.errors import FirthError, FirthWarning
from firth.data.labelled import FASTTEXT
from firth.data.vocabulary import Vocabulary
from firth.formats.fasttext import FastTextArgs, FastTextFile, SpreadRows, read_fasttext, write_fasttext
from firth.kernels.product import ProductCodes
from firth.learners.classify import ClassifierModel, ClassifierOptions

PREFIX = b"__label__"
LOSSES = {"softmax": "softmax", "hierarchical": "hs", "one_vs_all": "ova", "negative": "ns"}
METHOD = "fasttext_classifier"  # by name: learners don't know methods


def read_classifier(path: str | os.PathLike[str]) -> ClassifierModel:
    """A supervised model that fastText has written, quantised and pruned ones too. Texts are split as fastText does."""
    return from_fasttext(read_fasttext(path), str(path))


def from_fasttext(file: FastTextFile, where: str) -> ClassifierModel:
    args = file.args
    if args.model != "sup":
        raise FirthError(f"{where} holds vectors of words ({args.model}), no labels; read_vectors opens it.")
    loss = next(name for name, theirs in LOSSES.items() if theirs == args.loss)
    method = registry.method(METHOD)(  # type: ignore[call-arg]
        dim=args.dim,
        loss=loss,
        negatives=max(1, args.neg),
        word_ngrams=max(1, args.wordNgrams),
        minn=args.minn if args.maxn else 0,
        maxn=args.maxn,
        buckets=max(1, args.bucket),
        epochs=max(1, args.epoch),
        min_count=max(1, args.minCount),
        tokenizer=FASTTEXT,
        lowercase=False,
    )
    assert isinstance(method, ClassifierOptions)
    words = len(file.words)
    inputs, buckets = dense(file.inputs), np.arange(file.ngram_rows, dtype=np.int32)
    if file.pruned is not None:
        order = np.argsort(file.pruned[:, 1], kind="stable")
        buckets = np.ascontiguousarray(file.pruned[order, 0])
        inputs = np.concatenate([inputs[:words], inputs[words + file.pruned[order, 1]]])
    if not method.hashed:
        inputs, buckets = inputs[:words], buckets[:0]
    labels = [label.removeprefix(PREFIX) for label in file.labels]
    return ClassifierModel(
        method,
        Vocabulary(distinct(file.words), file.word_counts, min_count=method.min_count),
        Vocabulary(distinct(labels), file.label_counts),
        (np.ascontiguousarray(inputs, dtype=np.float32), dense(file.outputs), buckets),
        {"tokens": file.tokens, "source": os.path.basename(where)},  # noqa: PTH119
    )


def dense(matrix: object) -> NDArray[np.float32]:
    if isinstance(matrix, ProductCodes):
        return matrix.dense()
    assert isinstance(matrix, np.ndarray)
    return np.asarray(matrix, dtype=np.float32)


def distinct(entries: Sequence[bytes]) -> list[str]:
    """As text. What is no UTF-8, or stands twice, can't be met in a text; it gets a name of its own."""
    found: dict[str, None] = {}
    for entry in entries:
        name = entry.decode("utf-8", "replace") or "\ufffd"
        while name in found:
            name += "\ufffd"
        found[name] = None
    return list(found)


def write_classifier(model: ClassifierModel, path: str | os.PathLike[str]) -> None:
    """Writes a .bin file that fastText opens. It takes a row for each bucket, used or not."""
    method, words, buckets = model.method, len(model.vocabulary), model.buckets
    zeros = len(model.inputs) > words + len(buckets)
    if method.hashed and not zeros and len(buckets) < method.buckets:
        raise FirthError("A pruned model has rows for some n-grams only; fastText's .bin needs one for each.")
    if method.tokenizer != FASTTEXT or method.lowercase:
        warnings.warn(
            "fastText splits at white space, keeps case and ends each line with </s>: it predicts the same as this model "
            "only for text prepared so. tokenizer=fasttext and no lowercase make both the same for any text.",
            FirthWarning,
            stacklevel=2,
        )
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
    order = np.argsort(buckets)
    write_fasttext(
        path,
        FastTextFile(
            args=args,
            words=[word.encode("utf-8", "surrogatepass") for word in model.vocabulary.tokens],
            word_counts=model.vocabulary.counts,
            labels=[PREFIX + label.encode("utf-8", "surrogatepass") for label in model.labels.tokens],
            label_counts=model.labels.counts,
            tokens=int(model.vocabulary.counts.sum() + model.labels.counts.sum()),
            inputs=SpreadRows(model.inputs[:words], model.inputs[words:][order], buckets[order], args.bucket),
            outputs=model.outputs,
        ),
    )
