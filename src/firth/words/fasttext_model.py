"""A model of words and their subwords, which gives vectors to words it never met; fastText's files, both ways.

How vectors are composed and trained stands in `subwords`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Parts
from firth.core.options import options_of
from firth.core.run import available_cores
from firth.core.stored import finite_rows
from firth.core.vectors import Matrix, Vectors
from firth.data.vocabulary import Vocabulary
from firth.formats.fasttext import FastTextArgs, FastTextFile, SparseRows
from firth.formats.files import warn
from firth.kernels.product import CENTROIDS, ProductCodes, parts_of
from firth.words.fasttext_quantization import quantize
from firth.words.subword_training import Subwords
from firth.words.word_model import Phrases, Pooled, TextModel, Texts, WordOptions, check_texts

LOSSES = {"negative": "ns", "hierarchical": "hs", "softmax": "softmax"}  # Firth's names and fastText's
OBJECTIVES = {"skipgram": "sg", "cbow": "cbow"}
CODES = ("codes", "centroids", "norm_codes", "norm_centroids")


class FastTextModel(TextModel):
    """Words and their subwords. `table` holds a row a word, then a row for each bucket of n-grams that has one;
    `vectors` are composed of them at the first use, and compose a vector for a word that has no row."""

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
                "There must be a row a word and {rows:,} for n-grams; got {got:,}.",
                rows=subwords.rows,
                got=len(table),
            )
        self.table, self.outputs, self.subwords = table, outputs, subwords
        self.words = len(table) - subwords.rows

    @cached_property
    def vectors(self) -> Vectors:
        """One row a word of the vocabulary."""
        own = np.arange(self.words, dtype=np.int32)
        if len(self.vocabulary) != self.words:
            raise FirthError(
                "damaged_model",
                "The vocabulary has {n_vocabulary:,} words for {words:,} rows.",
                n_vocabulary=len(self.vocabulary),
                words=self.words,
            )
        found = self.subwords.compose(self.table, self.vocabulary.tokens, own, available_cores())
        return Vectors(self._tokens, found.matrix, missing=self._why_missing, compose=self.compose)

    @property
    def tables(self) -> Mapping[str, Vectors]:
        if len(self.outputs) != self.words:  # inner nodes of a tree are nobody's vectors
            return {"words": self.vectors}
        return {"words": self.vectors, "contexts": Vectors(self._tokens, self.outputs, missing=self._why_missing)}

    def _why_missing(self) -> str:
        low, high = self.subwords.minn, self.subwords.maxn
        ngrams = f"it has no n-gram of {low} to {high} characters with a row" if high else "the model has no n-grams"
        return ", and ".join(filter(None, (super()._why_missing(), ngrams)))

    def compose(self, word: str) -> Matrix | None:
        """The vector of a word outside the vocabulary; None where none of its n-grams has a row."""
        found = self.subwords.compose(self.table, [word], np.array([-1], dtype=np.int32))
        return found.matrix[0] if found.pieces[0] else None

    def pool(self, texts: Texts, smoothing: float = 0.0) -> Pooled:
        """The mean of the vectors of each text's words, those outside the vocabulary composed; zeros for a text that
        has none. Unknown are words without a vector. `smoothing` is that of `WordModel.pool`; words outside the
        vocabulary weigh most."""
        check_texts(texts, lists=True)
        if not 0 <= smoothing < math.inf:
            raise FirthError(
                "invalid_value", "{option} must be at least 0; got {got}.", option="smoothing", got=smoothing
            )
        counts = self.vocabulary.counts
        ids = self.vocabulary.ids
        tokens = [self.tokenize(text) for text in texts]
        different = list({token: None for text in tokens for token in text})
        places = {token: place for place, token in enumerate(different)}
        own = np.array([ids.get(token, -1) for token in different], dtype=np.int32)
        found = self.subwords.compose(self.table, different, own, available_cores())
        weights = np.ones(len(different))
        if smoothing:
            shares = np.where(own >= 0, counts[own] if len(counts) else 0, 0) / max(1, counts.sum())
            weights = smoothing / (smoothing + shares)
        matrix = np.zeros((len(texts), self.table.shape[1]), dtype=np.float32)
        known = np.zeros(len(texts), dtype=np.int64)
        for row, text in enumerate(tokens):
            rows = [place for place in map(places.__getitem__, text) if found.pieces[place]]
            known[row] = len(rows)
            if rows:
                matrix[row] = np.average(found.matrix[rows], 0, weights[rows])
        return Pooled(
            finite_rows(matrix, "Text"), known, np.array([len(text) for text in tokens], dtype=np.int64) - known
        )

    def parts(self) -> Parts:
        subwords, table = self.subwords, self.table
        facts = {name: getattr(subwords, name) for name in ("minn", "maxn", "buckets", "skip_missing")}
        arrays: dict[str, NDArray[Any]] = {"outputs": self.outputs}
        if isinstance(table, ProductCodes):
            facts["width"] = table.width
            arrays |= {name: array for name in CODES if (array := getattr(table, name)) is not None}
        else:
            arrays["inputs"] = table
        if subwords.bucket_ids is not None:
            arrays["bucket_ids"] = subwords.bucket_ids
        return Parts(arrays, {"vocabulary": self.vocabulary_json(), "subwords": facts})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> FastTextModel:
        facts, arrays = parts.documents["subwords"], parts.arrays
        kinds = {"minn": int, "maxn": int, "buckets": int, "skip_missing": bool}
        if not isinstance(facts, dict) or any(type(facts.get(name)) is not kind for name, kind in kinds.items()):
            raise FirthError(
                "damaged_model", "A model of subwords needs subwords.json with minn, maxn, buckets and skip_missing."
            )
        outputs = arrays["outputs"]
        if outputs.ndim != 2 or outputs.dtype != np.float32:
            raise FirthError("damaged_model", "A model of subwords needs a table of outputs.")
        table = stored_codes(arrays, facts.get("width"), outputs.shape[1]) if "codes" in arrays else arrays["inputs"]
        if len(table.shape) != 2 or table.shape[1] != outputs.shape[1]:
            raise FirthError(
                "damaged_model",
                "inputs and outputs must be equally wide; got {got} and {shape}.",
                got=table.shape,
                shape=outputs.shape,
            )
        subwords = Subwords(**{name: facts[name] for name in kinds}, bucket_ids=arrays.get("bucket_ids"))
        assert isinstance(method, WordOptions)
        return cls(method, parts, table, outputs, subwords, training)

    @classmethod
    def from_file(cls, file: FastTextFile) -> FastTextModel:
        """A model that fastText (or `to_file`) wrote; matrices stay mapped from the file. Words that are not UTF-8 are
        kept with their odd bytes written as \\xNN, counted in a `FirthWarning`."""
        args = file.args
        if args.model == "sup":
            raise FirthError("unsupported_model", "This fastText model is a classifier, not one of word vectors.")
        tokens = [word.decode(errors="backslashreplace") for word in file.words]
        odd = sum(token.encode() != word for token, word in zip(tokens, file.words, strict=True))
        if odd:
            warn(f"{odd:,} words of the fastText model are not UTF-8; their odd bytes are written as \\xNN.")
        if len(set(tokens)) < len(tokens):
            raise FirthError(
                "damaged_model",
                "{n_tokens:,} words stand twice in the fastText model.",
                n_tokens=len(tokens) - len(set(tokens)),
            )
        subwords = Subwords(args.minn, args.maxn, args.bucket)
        table = file.inputs[:] if isinstance(file.inputs, SparseRows) else file.inputs
        if file.pruned is not None and isinstance(table, ProductCodes):
            order = np.argsort(file.pruned[:, 0])
            rows = np.concatenate([np.arange(len(tokens)), len(tokens) + file.pruned[order, 1]])
            table = table.rows(rows)
            subwords = replace(subwords, bucket_ids=file.pruned[order, 0].astype(np.int32), skip_missing=True)
        outputs = file.outputs.dense() if isinstance(file.outputs, ProductCodes) else file.outputs
        if args.loss == "hs":  # fastText's nodes say how likely the way to the right is, Firth's the way to the left
            outputs = -outputs[:-1]
        vocabulary = Vocabulary(tokens, file.word_counts, min_count=max(0, args.minCount))
        training = {"fasttext": asdict(args), "tokens": file.tokens}
        return cls(method_of(args), vocabulary, table, outputs, subwords, training)

    def to_file(self) -> FastTextFile:
        """The model as fastText's .bin holds it, or .ftz where its table is in codes. Words stand by their counts."""
        vocabulary = self.vocabulary
        order = np.argsort(-vocabulary.counts, kind="stable")
        args = args_of(self)
        outputs = self.outputs
        if args.loss == "hs":
            outputs = np.concatenate([-outputs, np.zeros((self.words - len(outputs), args.dim), dtype=np.float32)])
        table, pruned = self.table, None
        if (np.diff(order) < 0).any():
            rows = np.concatenate([order, np.arange(self.words, len(table))])
            table = table.rows(rows) if isinstance(table, ProductCodes) else table[rows]
            outputs = outputs if args.loss == "hs" else outputs[order]
        inputs: Matrix | SparseRows | ProductCodes = table
        ids = self.subwords.bucket_ids
        if ids is not None and isinstance(table, ProductCodes):
            pruned = np.stack([ids, np.arange(len(ids), dtype=np.int32)], axis=1)
        elif ids is not None and not isinstance(table, ProductCodes):
            inputs = SparseRows(table[: self.words], table[self.words :], ids, args.bucket)
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
        """The model with its table in codes; the settings are those of `quantize`. What that lost stands in
        `training["quantisation_error"]`."""
        file, error = quantize(self.to_file(), **settings)
        made = FastTextModel.from_file(file)
        training = {**self.training, "quantisation_error": error}
        return FastTextModel(
            self.method, made.vocabulary, made.table, made.outputs, made.subwords, training, self.phrases
        )

    def __repr__(self) -> str:
        codes = " in codes" if isinstance(self.table, ProductCodes) else ""
        rows = f"{self.words:,} words and {self.subwords.rows:,} rows of n-grams"
        return f"FastText model: {rows} × {self.table.shape[1]}{codes}"


def stored_codes(arrays: Mapping[str, NDArray[Any]], width: Any, dim: int) -> ProductCodes:
    """A table in codes, as `parts` stores it, with its shapes checked."""
    if type(width) is not int or not 1 <= width <= dim:
        raise FirthError(
            "damaged_model", "The width of the codes' parts must be 1 to {dim}; got {got!r}.", dim=dim, got=width
        )
    rows = len(arrays["codes"])
    kinds: dict[str, tuple[Any, tuple[int, ...]]] = {
        "codes": (np.uint8, (rows, parts_of(dim, width))),
        "centroids": (np.float32, (CENTROIDS * dim,)),
        "norm_codes": (np.uint8, (rows,)),
        "norm_centroids": (np.float32, (CENTROIDS,)),
    }
    wanted = [name for name in kinds if "norm_codes" in arrays or not name.startswith("norm")]
    for name in wanted:
        kind, shape = kinds[name]
        if arrays[name].dtype != kind or arrays[name].shape != shape:
            raise FirthError(
                "damaged_model",
                "{name} must be {dtype} of {shape}; got {got}.",
                name=name,
                dtype=np.dtype(kind),
                shape=shape,
                got=arrays[name].shape,
            )
    return ProductCodes(dim=dim, width=width, **{name: arrays[name] for name in wanted})


def method_of(args: FastTextArgs) -> WordOptions:
    """The settings of Firth's FastText that are nearest to a file's; the file's own stay in `training`."""
    method: Any = registry.method("fasttext")
    known = {item.name: item for item in options_of(method)}
    wanted = {
        "dim": args.dim,
        "window": args.ws,
        "epochs": args.epoch,
        "min_count": args.minCount,
        "negatives": args.neg,
        "buckets": args.bucket,
        "minn": args.minn,
        "maxn": args.maxn if args.minn <= args.maxn else 0,  # no n-grams either way
        "subsample": args.t,
    }
    facts = {name: within(value, known[name].low, known[name].high) for name, value in wanted.items()}
    facts["loss"] = next((name for name, other in LOSSES.items() if other == args.loss), "softmax")
    facts["objective"] = next(name for name, other in OBJECTIVES.items() if other == args.model)
    # fastText splits at white space and folds no case.
    found: WordOptions = method(**facts, tokenizer="whitespace", lowercase=False)
    return found


def within(value: Any, low: float | None, high: float | None) -> Any:
    """`value`, or the nearest that an option takes: fastText sets no limits."""
    kind = type(value)
    value = value if low is None else max(value, kind(low))
    return value if high is None else min(value, kind(high))


def args_of(model: FastTextModel) -> FastTextArgs:
    """fastText's settings: those of the file that the model came from, or its method's."""
    options, subwords = model.method.options(), model.subwords
    facts = model.training.get("fasttext") or {
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
    same = {"dim": model.table.shape[1], "bucket": subwords.buckets, "minn": subwords.minn, "maxn": subwords.maxn}
    try:
        return FastTextArgs(**{**facts, **same})
    except TypeError as error:
        raise FirthError(
            "damaged_model", "training.json does not hold fastText's settings ({reason}).", reason=str(error)
        ) from None
