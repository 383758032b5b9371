"""Static token vectors: a text is the mean of its token vectors.

The files are compatible with model2vec and sentence-transformers. Neither torch nor tokenizers is needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.embedding import EmbeddedTexts, EmbedsTexts, check_texts
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Parts
from firth.core.run import available_cores
from firth.core.storage import read_json
from firth.core.stored import check_arrays, finite_rows
from firth.core.vectors import Matrix, Vectors, unit_rows
from firth.data.subword_tokenizer import SubwordTokenizer, checked_texts
from firth.kernels.bags import MAX_CHARACTERS, Bags, WordPieces
from firth.transformers.huggingface_folder import read_weights

EMBEDDINGS, TOKENIZER = "embeddings", "tokenizer"
#: Settings of tokenizer.json that the native tokenizer supports: those of BERT, without added tokens.
NORMAL = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
PIECES = {"type": "WordPiece", "continuing_subword_prefix": "##", "max_input_chars_per_word": MAX_CHARACTERS}


class StaticModel(EmbedsTexts):
    """A table of token vectors. `method.normalize` scales text vectors to length 1."""

    def __init__(
        self, method: Method, tokenizer: Mapping[str, Any], table: Matrix, training: Mapping[str, Any]
    ) -> None:
        self.method, self.training, self._document = method, training, tokenizer
        self.tokens = tokens_of(tokenizer)
        table = np.ascontiguousarray(table, np.float32)
        if len(table) != len(self.tokens):
            raise FirthError(
                "invalid_tokenizer",
                "The tokenizer has {n_tokenizer:,} tokens, but the table has {rows:,} rows.",
                n_tokenizer=len(self.tokens),
                rows=len(table),
            )
        self.vectors = Vectors(self.tokens, table, compose=self._composed)

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The token vectors by the name "tokens"."""
        return {"tokens": self.vectors}

    @property
    def ordered(self) -> bool:
        """Whether the first dimensions carry the most information: true for Distil's principal components."""
        return "teacher" in self.training  # unknown for models of other libraries

    @cached_property
    def reader(self) -> WordPieces | OtherTokens:
        """The tokenizer: native for BERT's settings, otherwise the package `tokenizers`."""
        return native_reader(self._document, self.tokens) or OtherTokens(self._document)

    def _composed(self, key: str) -> Matrix | None:
        """Return the mean vector of a word of several tokens; None if all are unknown."""
        bags = self.reader.means([key], self.vectors.matrix, 1)
        return bags.rows[0] if bags.known[0] else None

    def embed_with_counts(self, texts: Sequence[str]) -> EmbeddedTexts:
        """Return the mean of each text's known tokens (zeros if none), with the numbers of known and unknown tokens."""
        check_texts(texts)
        bags = self.reader.means(checked_texts(texts), self.vectors.matrix, available_cores())
        rows = unit_rows(bags.rows) if self.method.options()["normalize"] else bags.rows
        return EmbeddedTexts(finite_rows(rows, "Text"), bags.known, bags.unknown)

    # ---- files ----

    def parts(self) -> Parts:
        """Return the arrays and documents to store, in model2vec's format."""
        options = self.method.options()
        normalize = [{"idx": 1, "name": "1", "path": "1_Normalize", "type": "sentence_transformers.models.Normalize"}]
        static = {"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"}
        documents = {TOKENIZER: self._document, "modules": [static, *(normalize if options["normalize"] else [])]}
        foreign = {
            "model_type": "model2vec",
            "architectures": ["StaticModel"],
            "apply_pca": self.vectors.dim,
            "sif_coefficient": options["smoothing"] or None,
            "hidden_dim": self.vectors.dim,
            "seq_length": 1_000_000,
            "normalize": options["normalize"],
            "max_length": None,  # no limit
            "embedding_dtype": "float32",
        }
        return Parts({EMBEDDINGS: self.vectors.matrix}, documents, foreign)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> StaticModel:
        """Rebuild a model from stored arrays and documents."""
        check_arrays(parts.arrays, **{EMBEDDINGS: "float tokens dim"})
        return cls(method, parts.documents[TOKENIZER], parts.arrays[EMBEDDINGS], training)

    @classmethod
    def from_foreign(cls, folder: Path, config: Mapping[str, Any], method: type[Method]) -> StaticModel:
        """Load a model2vec folder; shared rows are expanded and token weights multiplied in."""
        arrays = read_weights(folder)
        table = arrays.get(EMBEDDINGS)
        if table is None or table.ndim != 2:
            raise FirthError(
                "damaged_model",
                "{folder}: model.safetensors must contain a matrix {array!r}.",
                folder=folder,
                array=EMBEDDINGS,
            )
        mapping, weights = arrays.get("mapping"), arrays.get("weights")
        if mapping is not None:
            right = mapping.ndim == 1 and mapping.dtype.kind in "iu" and len(mapping)
            if not right or not 0 <= int(mapping.min()) <= int(mapping.max()) < len(table):
                raise FirthError(
                    "damaged_model",
                    "{folder}: {array!r} must give each token a row from 0 to {limit:,}.",
                    folder=folder,
                    array="mapping",
                    limit=len(table) - 1,
                )
            table = table[mapping]
        table = np.asarray(table, np.float32)
        if weights is not None:
            if weights.shape != table.shape[:1]:
                raise FirthError(
                    "damaged_model",
                    "{folder}: {array!r} must have {expected:,} numbers, one per token; got shape {got}.",
                    folder=folder,
                    array="weights",
                    expected=len(table),
                    got=weights.shape,
                )
            table = table * np.asarray(weights, np.float32)[:, None]
        if not np.isfinite(table).all():
            raise FirthError(
                "damaged_model", "{folder}: {array!r} contains NaN or infinity.", folder=folder, array=EMBEDDINGS
            )
        settings = method(dim=table.shape[1], normalize=bool(config.get("normalize")))
        return cls(settings, read_json(folder / f"{TOKENIZER}.json"), table, {"source": "model2vec"})

    def __repr__(self) -> str:
        return f"Static model: {len(self.vectors):,} tokens × {self.vectors.dim}"


def tokens_of(document: Any) -> list[str]:
    """Return the tokens of a tokenizer.json in the order of their ids, which must be 0, 1, 2, …"""
    model = document.get("model") if isinstance(document, dict) else None
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    added = document.get("added_tokens") or [] if isinstance(document, dict) else []
    try:
        listed = vocabulary if isinstance(vocabulary, dict) else {row[0]: id for id, row in enumerate(vocabulary or ())}
        ids = {str(token): int(id) for token, id in listed.items()} | {entry["content"]: entry["id"] for entry in added}
    except (TypeError, ValueError, KeyError, IndexError):
        raise FirthError("damaged_model", "tokenizer.json must have model.vocab with an id for each token.") from None
    if sorted(ids.values()) != list(range(len(ids))):
        raise FirthError("damaged_model", "tokenizer.json must number its tokens 0, 1, 2, … without gaps.")
    return sorted(ids, key=ids.__getitem__)


def native_reader(document: Mapping[str, Any], tokens: Sequence[str]) -> WordPieces | None:
    """Return the native tokenizer for a tokenizer.json with BERT's settings; None for others."""
    normal, model = document.get("normalizer") or {}, document["model"]
    fold = bool(normal.get("lowercase"))
    plain = NORMAL.items() <= normal.items() and PIECES.items() <= model.items()
    plain = plain and normal.get("strip_accents") in (None, fold) and not document.get("added_tokens")
    plain = plain and document.get("pre_tokenizer") == {"type": "BertPreTokenizer"}
    unknown = model.get("unk_token")
    return WordPieces(tokens, fold, tokens.index(unknown)) if plain and unknown in tokens else None


class OtherTokens:
    """Any tokenizer that the package `tokenizers` supports."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.tokenizer = SubwordTokenizer.from_json(json.dumps(document))
        model = document["model"]
        self.unknown = self.tokenizer.ids.get(model.get("unk_token"), model.get("unk_id"))

    def ids(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the concatenated known ids of the texts, and the end of each text."""
        known_ids = [[id for id in ids if id != self.unknown] for ids in self.tokenizer.ids_batch(texts, special=False)]
        return np.array([id for ids in known_ids for id in ids], np.int32), np.cumsum([len(ids) for ids in known_ids])

    def means(self, texts: Sequence[str], table: NDArray[np.float32], threads: int) -> Bags:
        """Return the mean row of each text's known tokens, and the numbers of known and unknown tokens."""
        rows = np.zeros((len(texts), table.shape[1]), np.float32)
        known, unknown = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
        for row, ids in enumerate(self.tokenizer.ids_batch(texts, special=False)):
            known_ids = [id for id in ids if id != self.unknown]
            known[row], unknown[row] = len(known_ids), len(ids) - len(known_ids)
            if known_ids:
                rows[row] = table[known_ids].mean(axis=0)
        return Bags(rows, known, unknown)
