"""FastText's model: word vectors composed of subwords, also for unseen words; reading and writing fastText's files.

Composition and training of the vectors are in `subword_training`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core import registry
from firth.core.embedding import EmbeddedTexts, check_texts
from firth.core.errors import FirthError, FirthWarning
from firth.core.method import Method
from firth.core.model import Parts
from firth.core.options import build_settings, options_of
from firth.core.run import available_cores
from firth.core.vectors import Matrix, Vectors
from firth.data.vocabulary import Vocabulary
from firth.formats.fasttext import FastTextArgs, FastTextFile, SparseRows
from firth.kernels.product import CENTROIDS, ProductCodes, parts_of
from firth.words.fasttext_quantization import quantize
from firth.words.subword_training import Subwords
from firth.words.word_model import AveragingModel, Phrases, Texts, WordOptions, average_words, sif_weights

LOSSES = {"negative": "ns", "hierarchical": "hs", "softmax": "softmax"}  # Firth's name -> fastText's
OBJECTIVES = {"skipgram": "sg", "cbow": "cbow"}
CODES = ("codes", "centroids", "norm_codes", "norm_centroids")


class FastTextModel(AveragingModel):
    """Word vectors composed of subwords.

    `table` has one row per word, followed by one row per n-gram bucket that was trained. `vectors` are composed from it
    at the first use. For a word outside the vocabulary, `vectors` composes a vector from its n-grams.
    """

    def __init__(
        self,
        method: WordOptions,
        vocabulary: Vocabulary | Parts,
        table: Matrix | ProductCodes,
        outputs: Matrix,
        subwords: Subwords,
        training: Mapping[str, Any],
        phrases: Phrases = (),
    ) -> None:
        super().__init__(method, vocabulary, training, phrases)
        if len(table) < subwords.rows:
            raise FirthError(
                "damaged_model",
                "{name} must have one row per word and {rows:,} rows for n-grams; it has {got:,} rows.",
                name="inputs",
                rows=subwords.rows,
                got=len(table),
            )
        self.table, self.outputs, self.subwords = table, outputs, subwords
        self.n_words = len(table) - subwords.rows  # rows of words; the others are of n-grams

    @cached_property
    def vectors(self) -> Vectors:
        """Vectors of the vocabulary, one row per word."""
        word_rows = np.arange(self.n_words, dtype=np.int32)
        if len(self.vocabulary) != self.n_words:
            raise FirthError(
                "damaged_model",
                "The vocabulary has {n_vocabulary:,} words, but the table has rows for {words:,}.",
                n_vocabulary=len(self.vocabulary),
                words=self.n_words,
            )
        composed = self.subwords.compose(self.table, self.vocabulary.tokens, word_rows, available_cores())
        return Vectors(self._tokens, composed.matrix, missing=self._missing_reason, compose=self.compose)

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The word vectors, and the context vectors unless the loss is hierarchical."""
        if len(self.outputs) != self.n_words:  # rows of outputs are inner nodes of the Huffman tree, not words
            return {"words": self.vectors}
        return {"words": self.vectors, "contexts": Vectors(self._tokens, self.outputs, missing=self._missing_reason)}

    def _missing_reason(self) -> str:
        low, high = self.subwords.minn, self.subwords.maxn
        ngrams = (
            f"none of its n-grams of {low} to {high} characters was trained" if high else "the model has no n-grams"
        )
        return ", and ".join(filter(None, (super()._missing_reason(), ngrams)))

    def compose(self, word: str) -> Matrix | None:
        """Return the vector of a word outside the vocabulary, or None if none of its n-grams has a row."""
        composed = self.subwords.compose(self.table, [word], np.array([-1], dtype=np.int32))
        return composed.matrix[0] if composed.n_rows[0] else None

    def embed_with_counts(self, texts: Texts, smoothing: float | None = None) -> EmbeddedTexts:
        """Return the mean word vector of each text, with vectors of unseen words composed from their n-grams.

        A text without any vector gets zeros. `unknown` counts words without a vector. `smoothing` weights words as in
        `WordModel.embed_with_counts`; words outside the vocabulary have frequency 0 and therefore the weight 1.
        """
        check_texts(texts, lists=True)
        counts, ids = self.vocabulary.counts, self.vocabulary.ids
        tokens = [self.tokenize(text) for text in texts]
        unique_tokens = list({token: None for text in tokens for token in text})
        token_index = {token: index for index, token in enumerate(unique_tokens)}
        word_rows = np.array([ids.get(token, -1) for token in unique_tokens], dtype=np.int32)
        token_counts = np.where(word_rows >= 0, counts[word_rows] if len(counts) else 0, 0)
        weights = sif_weights(token_counts, counts.sum(), self.smoothing if smoothing is None else smoothing)
        composed = self.subwords.compose(self.table, unique_tokens, word_rows, available_cores())
        rows = [[index for token in text if composed.n_rows[index := token_index[token]]] for text in tokens]
        weights = np.ones(len(unique_tokens)) if weights is None else weights
        return average_words(composed.matrix, rows, weights, [len(text) for text in tokens])

    def parts(self) -> Parts:
        """Return the arrays and documents to store."""
        subwords, table = self.subwords, self.table
        metadata = {name: getattr(subwords, name) for name in ("minn", "maxn", "buckets", "skip_missing")}
        arrays: dict[str, NDArray[Any]] = {"outputs": self.outputs}
        if isinstance(table, ProductCodes):
            metadata["width"] = table.width
            arrays |= {name: array for name in CODES if (array := getattr(table, name)) is not None}
        else:
            arrays["inputs"] = table
        if subwords.bucket_ids is not None:
            arrays["bucket_ids"] = subwords.bucket_ids
        return Parts(arrays, {"vocabulary": self.vocabulary_json(), "subwords": metadata})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> FastTextModel:
        """Return the model from stored parts, after checking their shapes."""
        metadata, arrays = parts.documents["subwords"], parts.arrays
        field_types = {"minn": int, "maxn": int, "buckets": int, "skip_missing": bool}
        if not isinstance(metadata, dict) or any(
            type(metadata.get(name)) is not field_type for name, field_type in field_types.items()
        ):
            raise FirthError(
                "damaged_model",
                "{name} must contain {expected}.",
                name="subwords.json",
                expected=", ".join(field_types),
            )
        outputs = arrays["outputs"]
        if outputs.ndim != 2 or outputs.dtype != np.float32:
            raise FirthError("damaged_model", "{name} must be a float32 matrix.", name="outputs")
        table = stored_codes(arrays, metadata.get("width"), outputs.shape[1]) if "codes" in arrays else arrays["inputs"]
        if len(table.shape) != 2 or table.shape[1] != outputs.shape[1]:
            raise FirthError(
                "damaged_model",
                "inputs and outputs must have the same number of columns; got shapes {inputs} and {outputs}.",
                inputs=table.shape,
                outputs=outputs.shape,
            )
        subwords = Subwords(**{name: metadata[name] for name in field_types}, bucket_ids=arrays.get("bucket_ids"))
        assert isinstance(method, WordOptions)
        return cls(method, parts, table, outputs, subwords, training)

    @classmethod
    def from_file(cls, file: FastTextFile) -> FastTextModel:
        """Return the model in a file written by fastText or `to_file`. Matrices stay memory-mapped.

        In words that are not valid UTF-8, invalid bytes are written as \\xNN; a `FirthWarning` reports their number.
        """
        args = file.args
        if args.model == "sup":
            raise FirthError(
                "unsupported_model",
                "This fastText file holds a classifier (model={model}), not word vectors.",
                model=args.model,
            )
        tokens = [word.decode(errors="backslashreplace") for word in file.words]
        invalid_utf8 = sum(token.encode() != word for token, word in zip(tokens, file.words, strict=True))
        if invalid_utf8:
            text = (
                f"{invalid_utf8:,} words of the fastText model are not valid UTF-8; invalid bytes are written as \\xNN."
            )
            warnings.warn(FirthWarning(text, "invalid_utf8"), stacklevel=2)
        if len(set(tokens)) < len(tokens):
            raise FirthError(
                "damaged_model",
                "{duplicates:,} words of the fastText model occur more than once.",
                duplicates=len(tokens) - len(set(tokens)),
            )
        subwords = Subwords(args.minn, args.maxn, args.bucket)
        table = file.inputs[:] if isinstance(file.inputs, SparseRows) else file.inputs
        if file.pruned is not None and isinstance(table, ProductCodes):
            order = np.argsort(file.pruned[:, 0])
            rows = np.concatenate([np.arange(len(tokens)), len(tokens) + file.pruned[order, 1]])
            table = table.rows(rows)
            subwords = replace(subwords, bucket_ids=file.pruned[order, 0].astype(np.int32), skip_missing=True)
        outputs = file.outputs.dense() if isinstance(file.outputs, ProductCodes) else file.outputs
        if args.loss == "hs":  # fastText's nodes score the right branch, Firth's the left branch
            outputs = -outputs[:-1]
        vocabulary = Vocabulary(tokens, file.word_counts, min_count=max(0, args.minCount))
        training = {"fasttext": asdict(args), "tokens": file.tokens}
        return cls(method_of(args), vocabulary, table, outputs, subwords, training)

    def to_file(self) -> FastTextFile:
        """Return the model in fastText's layout: .bin, or .ftz if it is quantized. Words are sorted by count."""
        vocabulary = self.vocabulary
        order = np.argsort(-vocabulary.counts, kind="stable")
        args = args_of(self)
        outputs = self.outputs
        if args.loss == "hs":
            outputs = np.concatenate([-outputs, np.zeros((self.n_words - len(outputs), args.dim), dtype=np.float32)])
        table, pruned = self.table, None
        if (np.diff(order) < 0).any():
            rows = np.concatenate([order, np.arange(self.n_words, len(table))])
            table = table.rows(rows) if isinstance(table, ProductCodes) else table[rows]
            outputs = outputs if args.loss == "hs" else outputs[order]
        inputs: Matrix | SparseRows | ProductCodes = table
        bucket_ids = self.subwords.bucket_ids
        if bucket_ids is not None and isinstance(table, ProductCodes):
            pruned = np.stack([bucket_ids, np.arange(len(bucket_ids), dtype=np.int32)], axis=1)
        elif bucket_ids is not None and not isinstance(table, ProductCodes):
            inputs = SparseRows(table[: self.n_words], table[self.n_words :], bucket_ids, args.bucket)
        return FastTextFile(
            args=args,
            words=[vocabulary.tokens[word].encode() for word in order],
            word_counts=vocabulary.counts[order],
            labels=(),
            label_counts=np.zeros(0, dtype=np.int64),
            tokens=int(self.training.get("tokens", vocabulary.counts.sum())),
            inputs=inputs,
            outputs=outputs,
            pruned=pruned,
        )

    def quantized(self, **settings: Any) -> FastTextModel:
        """Return the model with a product-quantized table; the settings are those of `quantize`.

        The relative error is in `training["quantisation_error"]`.
        """
        file, error = quantize(self.to_file(), **settings)
        quantized = FastTextModel.from_file(file)
        training = {**self.training, "quantisation_error": error}
        return FastTextModel(
            self.method,
            quantized.vocabulary,
            quantized.table,
            quantized.outputs,
            quantized.subwords,
            training,
            self.phrases,
        )

    def __repr__(self) -> str:
        quantized = ", quantized" if isinstance(self.table, ProductCodes) else ""
        rows = f"{self.n_words:,} words and {self.subwords.rows:,} n-gram rows"
        return f"FastText model: {rows} × {self.table.shape[1]}{quantized}"


def stored_codes(arrays: Mapping[str, NDArray[Any]], width: Any, dim: int) -> ProductCodes:
    """Return the quantized table stored by `parts`, after checking dtypes and shapes."""
    if type(width) is not int or not 1 <= width <= dim:
        raise FirthError(
            "damaged_model",
            "{name} of the quantized table must be from 1 to {dim}; got {got!r}.",
            name="width",
            dim=dim,
            got=width,
        )
    rows = len(arrays["codes"])
    expected: dict[str, tuple[Any, tuple[int, ...]]] = {
        "codes": (np.uint8, (rows, parts_of(dim, width))),
        "centroids": (np.float32, (CENTROIDS * dim,)),
        "norm_codes": (np.uint8, (rows,)),
        "norm_centroids": (np.float32, (CENTROIDS,)),
    }
    names = [name for name in expected if "norm_codes" in arrays or not name.startswith("norm")]
    for name in names:
        dtype, shape = expected[name]
        if arrays[name].dtype != dtype or arrays[name].shape != shape:
            raise FirthError(
                "damaged_model",
                "{name} must be {dtype} of shape {shape}; got shape {got}.",
                name=name,
                dtype=np.dtype(dtype),
                shape=shape,
                got=arrays[name].shape,
            )
    return ProductCodes(dim=dim, width=width, **{name: arrays[name] for name in names})


def method_of(args: FastTextArgs) -> WordOptions:
    """Return the options of Firth's FastText that are closest to a file's settings, which stay in `training`."""
    method = registry.method("fasttext")
    options = {item.name: item for item in options_of(method)}
    settings = {
        "dim": args.dim,
        "window": args.ws,
        "epochs": args.epoch,
        "min_count": args.minCount,
        "negatives": args.neg,
        "buckets": args.bucket,
        "minn": args.minn,
        "maxn": args.maxn if args.minn <= args.maxn else 0,  # fastText uses no n-grams if minn > maxn
        "subsample": args.t,
    }
    values = {name: within(value, options[name].low, options[name].high) for name, value in settings.items()}
    values["loss"] = next((name for name, other in LOSSES.items() if other == args.loss), "softmax")
    values["objective"] = next(name for name, other in OBJECTIVES.items() if other == args.model)
    # fastText splits at whitespace and keeps case.
    fasttext_method = build_settings(method, {**values, "tokenizer": "whitespace", "lowercase": False})
    assert isinstance(fasttext_method, WordOptions)
    return fasttext_method


def within(value: Any, low: float | None, high: float | None) -> Any:
    """Clip `value` to the range of an option; fastText does not limit its settings."""
    number_type = type(value)
    value = value if low is None else max(value, number_type(low))
    return value if high is None else min(value, number_type(high))


def args_of(model: FastTextModel) -> FastTextArgs:
    """Return fastText's settings: those of the file the model was read from, or those of its method."""
    options, subwords = model.method.options(), model.subwords
    settings = model.training.get("fasttext") or {
        "ws": options["window"],
        "epoch": options["epochs"],
        "minCount": options["min_count"],
        "neg": options["negatives"],
        "wordNgrams": 1,
        "loss": LOSSES[options["loss"]],
        "model": OBJECTIVES[options["objective"]],
        "lrUpdateRate": 100,
        "t": options["subsample"],
    }
    subword_settings = {
        "dim": model.table.shape[1],
        "bucket": subwords.buckets,
        "minn": subwords.minn,
        "maxn": subwords.maxn,
    }
    try:
        return FastTextArgs(**{**settings, **subword_settings})
    except TypeError as error:
        raise FirthError(
            "damaged_model", "training.json does not contain valid fastText settings: {reason}.", reason=str(error)
        ) from None
