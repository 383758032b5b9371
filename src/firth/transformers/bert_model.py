"""A BERT with its tokenizer: word and text vectors from any layer, masked-token prediction, attention and files."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core import registry
from firth.core.embedding import EmbeddedTexts, EmbedsTexts, Text, check_texts
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Parts
from firth.core.options import build_settings
from firth.core.report import Silence
from firth.core.shortening import check_shorter
from firth.core.stored import finite_rows
from firth.core.vectors import Matrix, Vectors, unit_rows
from firth.data.subword_tokenizer import BERT as SPECIAL
from firth.data.subword_tokenizer import SubwordTokenizer, checked_texts
from firth.nets.attention import Packed, traced_copy
from firth.nets.bert import Bert, position_ids
from firth.nets.transformer import Size
from firth.transformers import huggingface_bert as bert_files
from firth.transformers.attention_trace import AttentionTrace, TracesAttention, attention_records
from firth.transformers.contextual_words import ContextualModel
from firth.transformers.huggingface_folder import network_folder, read_weights
from firth.transformers.pooling import Pooling
from firth.transformers.sentence_transformers_folder import (
    DENSE,
    read_sentence_files,
    sentence_documents,
    sentence_transformers_difference,
)
from firth.transformers.text_encoder import WINDOW, Engine, Read, Reader, new_engine, prefetched, resolve_engine
from firth.transformers.whitening import Projection, whitening

Pair = tuple[str, str]
OLD_SIZE_NAMES = {"hidden": "feedforward_dim", "places": "max_positions"}  # of folders that earlier versions saved


class BertModel(TracesAttention, ContextualModel, EmbedsTexts):
    """A BERT encoder with its tokenizer and pooling."""

    batch_texts = WINDOW

    def __init__(
        self,
        method: Method,
        net: Bert,
        tokenizer: SubwordTokenizer,
        pooling: Pooling,
        training: Mapping[str, Any],
        projection: Projection | None = None,
    ) -> None:
        missing = [token for token in SPECIAL if token not in tokenizer.ids]
        if missing:
            raise FirthError(
                "invalid_tokenizer",
                "The tokenizer of a BERT needs the special tokens {special}; it lacks {missing}.",
                special=", ".join(SPECIAL),
                missing=", ".join(missing),
            )
        for texts in ([""], ["", ""], ["[UNK]"], ["[UNK]", "[UNK]"]):
            read = tokenizer._call(tokenizer.engine.encode, *texts)
            separators = [position for position, token in enumerate(read.tokens) if token == "[SEP]"]
            well_formed = (
                read.tokens[:1] == ["[CLS]"] and read.tokens[-1:] == ["[SEP]"] and len(separators) == len(texts)
            )
            expected_segments = (
                [int(position > separators[0]) for position in range(len(read.tokens))] if well_formed else None
            )
            ids_agree = all(tokenizer.ids.get(token) == id for token, id in zip(read.tokens, read.ids, strict=True))
            if (
                not ids_agree
                or read.type_ids != expected_segments
                or (not any(texts) and len(read.tokens) != len(texts) + 1)
            ):
                raise FirthError(
                    "invalid_tokenizer",
                    "The tokenizer of a BERT must encode a pair as [CLS] A [SEP] B [SEP] with segments 0 and 1; this "
                    "one adds {tokens}. Check its post_processor.",
                    tokens=" ".join(tokenizer._call(tokenizer.engine.encode, "", "").tokens) or "nothing",
                )
        rows = net.input.tokens.num_embeddings
        if len(tokenizer) > rows:
            raise FirthError(
                "invalid_tokenizer",
                "The tokenizer has {n_tokenizer:,} tokens, but the model has {rows:,} embedding rows. Use the "
                "tokenizer that the weights were trained with.",
                n_tokenizer=len(tokenizer),
                rows=rows,
            )
        self.method, self.net, self.tokenizer, self.training = method, net.eval(), tokenizer, training
        self.pooling, self.projection = pooling, projection
        self._engines: dict[tuple[str, str], Engine] = {}
        pooling.check(self.size.layers, self.size.max_positions)

    @property
    def size(self) -> Size:
        """The dimensions of the network."""
        return self.net.size

    @property
    def heads(self) -> list[str]:
        """The heads on the encoder: any of pooler, masked and next_sentence."""
        return [name for name in bert_files.HEADS if getattr(self.net, name) is not None]

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.net.parameters()).device

    @cached_property
    def vectors(self) -> Vectors:
        """The token embeddings, without context."""
        rows, token_texts = self.net.input.tokens.weight.detach().cpu().numpy(), self.tokenizer.tokens
        return Vectors(
            [token_texts.get(id, f"<no token {id}>") for id in range(len(self.tokenizer))], rows[: len(self.tokenizer)]
        )

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The token embeddings by the name "tokens"."""
        return {"tokens": self.vectors}

    @property
    def position_vectors(self) -> NDArray[np.float32]:
        """The position embeddings, one row per position."""
        table: NDArray[np.float32] = self.net.input.positions.weight.detach().cpu().numpy()
        return table

    # ---- reading ----

    def read(self, inputs: Sequence[str | Pair]) -> list[Any]:
        """Encode texts or pairs of texts with [CLS] and [SEP], as `tokenizers.Encoding` objects."""
        for text in inputs:
            checked_texts(list(text) if isinstance(text, tuple | list) else [text])
            if not isinstance(text, str) and self.net.input.segments.num_embeddings < 2:
                raise FirthError(
                    "unsupported_model",
                    "This model has {segments} segment (type_vocab_size), so it accepts single texts, not pairs.",
                    segments=1,
                )
        encodings = self.tokenizer._call(self.tokenizer.engine.encode_batch, list(inputs))
        for encoding in encodings:
            self.check_length(len(encoding.ids))
        return list(encodings)

    def check_length(self, tokens: int) -> None:
        """Raise text_too_long if the model has fewer positions."""
        if tokens > self.size.max_positions:
            raise FirthError(
                "text_too_long",
                "The text has {tokens:,} tokens; the model has {limit:,} positions. Split the text.",
                tokens=tokens,
                limit=self.size.max_positions,
            )

    @torch.inference_mode()
    def states(self, text: str, other: str | None = None) -> NDArray[np.float32]:
        """Return the token vectors of all layers, (layers + 1, tokens, dim), beginning with the input."""
        encoding = self.read([text if other is None else (text, other)])[0]
        layer_states = self.net.states(*self.tensors([encoding.ids], [encoding.type_ids]))
        return torch.stack(layer_states).float().cpu().numpy()

    @property
    def max_text_tokens(self) -> int:
        """Maximum number of tokens of a text, without [CLS] and [SEP]."""
        return self.size.max_positions - 2

    def states_of(self, ids: Sequence[Sequence[int]]) -> list[Tensor]:
        """Return the token vectors of every layer for concatenated texts, without [CLS] and [SEP]."""
        before, after = (self.tokenizer.ids[token] for token in ("[CLS]", "[SEP]"))
        inputs = self.tensors([[before, *each, after] for each in ids])
        inner = torch.ones(len(inputs[0]), dtype=torch.bool, device=self.device)
        starts = inputs[-1].starts.long()
        inner[starts[:-1]] = inner[starts[1:] - 1] = False
        return [layer[inner] for layer in self.net.states(*inputs)]

    def tensors(
        self, ids: Sequence[Sequence[int]], segments: Sequence[Sequence[int]] | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Packed]:
        """Return the network's inputs for concatenated texts: ids, positions, segments and boundaries."""
        packed = Packed.of(tuple(map(len, ids)), device=self.device)
        flat = torch.tensor([id for each in ids for id in each], device=self.device)
        segment_ids = (
            torch.zeros_like(flat)
            if segments is None
            else torch.tensor([segment for each in segments for segment in each], device=self.device)
        )
        return flat, position_ids(packed, len(flat)), segment_ids, packed

    # ---- texts ----

    def embed_with_counts(
        self, texts: Sequence[str], pooling: Pooling | None = None, device: str = "auto", precision: str = "auto"
    ) -> EmbeddedTexts:
        """Return text vectors by this model's pooling or the given one, with the numbers of known and unknown tokens.

        `precision` is float32 (default) or int8 on a CPU, bf16 (default) or float32 on a GPU.
        """
        check_texts(texts)
        pooling = self.checked(pooling)
        batches = (texts[first : first + WINDOW] for first in range(0, len(texts), WINDOW))
        parts = list(self._reported_batches(batches, pooling, device, precision))
        if not parts:
            return EmbeddedTexts(np.zeros((0, self.dim_of(pooling)), np.float32), *np.zeros((2, 0), np.int64))
        return EmbeddedTexts(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def embed_batches(
        self,
        batches: Iterable[Sequence[Text]],
        pooling: Pooling | None = None,
        device: str = "auto",
        precision: str = "auto",
    ) -> Iterator[EmbeddedTexts]:
        """Apply `embed_with_counts` to a stream of lists of texts; truncation shows in the token counts only."""
        pooling = self.checked(pooling)
        reader = Reader(self.tokenizer, pooling, self.size.max_positions)
        return self._read_batches(batches, reader, pooling, device, precision)

    def _embed_batches(
        self,
        batches: Iterable[Sequence[Text]],
        pooling: Pooling | None = None,
        device: str = "auto",
        precision: str = "auto",
    ) -> Iterator[Matrix]:
        reported = self._reported_batches(batches, self.checked(pooling), device, precision)
        return (embedded.matrix for embedded in reported)

    def _reported_batches(
        self, batches: Iterable[Sequence[Text]], pooling: Pooling, device: str, precision: str
    ) -> Iterator[EmbeddedTexts]:
        """Embed lists of texts, and report at the end how many texts were truncated."""
        reader = Reader(self.tokenizer, pooling, self.size.max_positions)
        yield from self._read_batches(batches, reader, pooling, device, precision)
        reader.report_truncation()

    def _read_batches(
        self, batches: Iterable[Sequence[Any]], reader: Reader, pooling: Pooling, device: str, precision: str
    ) -> Iterator[EmbeddedTexts]:
        """Embed lists of texts; the next list is tokenized while one is computed."""
        engine = self.engine(device, precision)
        pending: deque[tuple[Read, Callable[[], Matrix]]] = deque()

        def ready() -> EmbeddedTexts:
            read, rows = pending.popleft()
            matrix = self.finished(read.joined(rows(), pooling.how), pooling)
            return EmbeddedTexts(matrix, read.known, read.unknown)

        for read in prefetched(map(reader, batches)):
            pending.append((read, engine(read.ids, pooling)))
            if len(pending) > 1:  # keep the GPU busy with the next list
                yield ready()
        while pending:
            yield ready()

    def embed_ids(
        self,
        texts: Sequence[list[int]],
        pooling: Pooling | None = None,
        device: str = "auto",
        precision: str = "auto",
    ) -> Matrix:
        """Return one row per text for token ids that include [CLS] and [SEP]."""
        for number, text in enumerate(texts, 1):
            if not text:
                raise FirthError(
                    "empty_data",
                    "Text {number:,} has no ids. Encode an empty text as [CLS] [SEP].",
                    number=number,
                )
        lowest, highest = min(map(min, texts), default=0), max(map(max, texts), default=0)
        if lowest < 0 or highest >= len(self.tokenizer):
            bad_id = lowest if lowest < 0 else highest
            raise FirthError(
                "unknown_token",
                "Token ids must be from 0 to {limit:,}; got {got}.",
                limit=len(self.tokenizer) - 1,
                got=bad_id,
            )
        pooling = self.checked(pooling)
        reader = Reader(self.tokenizer, pooling, self.size.max_positions)
        read = reader.take(texts)
        matrix = self.finished(read.joined(self.engine(device, precision)(read.ids, pooling)(), pooling.how), pooling)
        reader.report_truncation()
        return matrix

    def engine(self, device: str = "auto", precision: str = "auto") -> Engine:
        """Return the engine for a device and precision; cached, because it packs the weights."""
        key = resolve_engine(device, precision)
        if key not in self._engines:
            self._engines[key] = new_engine(self.net, *key)
        return self._engines[key]

    def finished(self, rows: Matrix, pooling: Pooling) -> Matrix:
        """Apply the projection and the normalization of the pooling."""
        if self.projection is not None and pooling.same_vectors(self.pooling):
            rows = self.projection(rows)
        finite_rows(rows, "Text")
        return unit_rows(rows) if pooling.normalize else rows

    def checked(self, pooling: Pooling | None) -> Pooling:
        """Return the given pooling, or this model's, after checking it."""
        resolved = self.pooling if pooling is None else pooling
        if not isinstance(resolved, Pooling):
            raise FirthError(
                "invalid_type", "pooling must be a Pooling such as Pooling(how='mean'); got {got!r:.80}.", got=resolved
            )
        resolved.check(self.size.layers, self.size.max_positions)
        return resolved

    def dim_of(self, pooling: Pooling) -> int:
        """Return the dimension of text vectors with this pooling."""
        pooling = self.checked(pooling)
        projection = self.projection if pooling.same_vectors(self.pooling) else None
        return pooling.dim(self.size.dim) if projection is None else projection.dim

    def with_pooling(self, **settings: Any) -> BertModel:
        """Return a model with the same network and other `Pooling` settings."""
        pooling = replace(self.pooling, **settings)
        projection = self.projection if pooling.same_vectors(self.pooling) else None
        return BertModel(self.method, self.net, self.tokenizer, pooling, self.training, projection)

    def whitened(self, texts: Sequence[str], dim: int = 0) -> BertModel:
        """Return a model whose vectors are whitened on these texts, with `dim` dimensions if given."""
        plain = BertModel(self.method, self.net, self.tokenizer, replace(self.pooling, normalize=False), self.training)
        projection, width = whitening(plain.embed(texts), dim), plain.dim_of(plain.pooling)
        if not dim and projection.dim < width - len(self.pooling.layers):  # a layer norm removes one direction
            Silence().note(
                f"The {len(texts):,} texts vary in {projection.dim:,} of {width:,} directions, so whitened vectors "
                f"have {projection.dim:,} dimensions. Pass more varied texts to keep more.",
                "whitening_dimensions",
            )
        training = {**self.training, "whitened": len(texts)}
        return BertModel(self.method, self.net, self.tokenizer, self.pooling, training, projection)

    @property
    def ordered(self) -> bool:
        """Whether the first dimensions carry the most information."""
        return super().ordered or (self.projection is not None and "whitened" in self.training)

    def shortened(self, dim: int) -> BertModel:
        """Return a model with the first `dim` dimensions of its vectors.

        The model must have been trained for it (SentenceEncoder.matryoshka_dims) or whitened.
        """
        width = self.dim_of(self.pooling)
        check_shorter(self, dim, width)
        full = self.projection or Projection(np.eye(width, dtype=np.float32), np.zeros(width, np.float32))
        projection = Projection(full.weight[:dim], full.bias[:dim])
        return BertModel(self.method, self.net, self.tokenizer, self.pooling, self.training, projection)

    # ---- masked tokens ----

    @torch.inference_mode()
    def fill(self, text: str, k: int = 5, other: str | None = None) -> list[list[tuple[str, float]]]:
        """Return the k most probable tokens with their probabilities for each [MASK] of a text or pair."""
        if self.net.masked is None:
            raise FirthError(
                "unsupported_model",
                "This model has no {head} head, so it cannot fill blanks.",
                head="masked-token",
            )
        encoding = self.read([text if other is None else (text, other)])[0]
        mask = self.tokenizer.ids["[MASK]"]
        blanks = [position for position, id in enumerate(encoding.ids) if id == mask]
        if not blanks:
            raise FirthError(
                "missing_mask", "There is no [MASK] in {text!r:.80}. Put [MASK] where a word is missing.", text=text
            )
        if type(k) is not int or k < 1:
            raise FirthError("invalid_value", "{option} must be at least 1; got {got!r}.", option="k", got=k)
        hidden = self.net(*self.tensors([encoding.ids], [encoding.type_ids]))[blanks]
        logits = self.net.masked_logits(hidden)[:, : len(self.tokenizer)].float()
        probabilities = torch.softmax(torch.from_numpy(finite_rows(logits.cpu().numpy(), "Blank")), dim=-1)
        best = probabilities.topk(min(k, len(self.tokenizer)))
        return [
            [(self.tokenizer.tokens.get(id, f"<no token {id}>"), value) for id, value in zip(ids, values, strict=True)]
            for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    def attention_trace(self, text: str, other: str | None = None) -> AttentionTrace:
        """Return the attention trace of a text, or of a pair as one sequence."""
        encoding = self.read([text if other is None else (text, other)])[0]
        ids, positions, segments, _ = self.tensors([encoding.ids], [encoding.type_ids])
        net, parts = traced_copy(self.net)
        net.stack(net.input(ids, positions, segments)[None])
        names, segment_ids = list(encoding.tokens), () if other is None else list(encoding.type_ids)
        return AttentionTrace(names, names, attention_records(parts.values()), segment_ids)

    # ---- files ----

    def parts(self) -> Parts:
        """Return the arrays and documents to store, in Hugging Face's format."""
        lowercase = bool((self.tokenizer._document.get("normalizer") or {}).get("lowercase"))
        documents = {
            "tokenizer": json.loads(self.tokenizer.to_json()),
            "tokenizer_config": {
                "tokenizer_class": "BertTokenizer",
                "do_lower_case": lowercase,
                "model_max_length": self.pooling.max_tokens or self.size.max_positions,
                **{f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")},
            },
            "pooling": asdict(self.pooling),
            **sentence_documents(self.pooling, self.projection, self.size),
        }
        if not isinstance(self.method, Shaped):  # methods other than BERT do not have the size as options
            documents["size"] = asdict(self.size)
        projection = self.projection
        more = (
            {}
            if projection is None
            else {f"{DENSE}/model": {"linear.weight": projection.weight, "linear.bias": projection.bias}}
        )
        return Parts(bert_files.to_bert(self.net), documents, bert_files.config_of(self.net), more=more)

    def save(self, folder: str | PathLike[str], overwrite: bool = False) -> Path:
        """Save the model; a note reports where sentence-transformers would give other vectors."""
        saved = super().save(folder, overwrite)
        if difference := sentence_transformers_difference(self.pooling, self.size.layers):
            Silence().note(f"{folder}: {difference}", "sentence_transformers_differs")
        return saved

    def to_onnx(self, path: str | PathLike[str]) -> None:
        """Write an ONNX file with inputs `input_ids` and `attention_mask` and output `sentence_embedding`."""
        from firth.transformers.onnx_export import write_onnx

        write_onnx(self, Path(path))

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> BertModel:
        """Rebuild a model from stored arrays and documents."""
        tokenizer = SubwordTokenizer.from_json(json.dumps(parts.documents["tokenizer"]))
        stored_size_document = parts.documents.get("size")
        size = size_of(method) if stored_size_document is None else stored_size(stored_size_document)
        stored = dict(parts.documents["pooling"])
        pooling = Pooling(**stored | {"layers": tuple(stored["layers"])})
        dense_arrays = parts.more.get(f"{DENSE}/model")
        projection = None if dense_arrays is None else Projection.of(dense_arrays, pooling.dim(size.dim))
        net = bert_files.net_of(bert_files.from_bert(parts.arrays, size), size)
        return cls(method, net, tokenizer, pooling, training, projection)

    @classmethod
    def from_foreign(cls, folder: Path, config: Mapping[str, Any], method: type[Method]) -> BertModel:
        """Load a BERT folder of Hugging Face, or of sentence-transformers with its pooling."""
        size = bert_files.size_of(config)
        options = {
            "layers": size.layers, "dim": size.dim, "heads": size.heads, "feedforward_dim": size.feedforward_dim,
            "context_length": size.max_positions,
            "dropout": size.dropout, "activation": size.activation, "epsilon": size.epsilon,
        }  # fmt: skip
        settings = method(**options)  # checks the ranges before the weights are read
        tokenizer = SubwordTokenizer.load(network_folder(folder))
        net = bert_files.net_of(bert_files.from_bert(read_weights(folder), size), size)
        bert_files.check_rows(net, config)
        pooling, projection = read_sentence_files(folder, size.dim, size.max_positions)
        return cls(settings, net, tokenizer, pooling, {"source": "bert"}, projection)

    def __repr__(self) -> str:
        return f"BERT model: {self.size.layers} layers × {self.size.dim}, {len(self.tokenizer):,} tokens"


def stored_size(document: Mapping[str, Any]) -> Size:
    """Return the stored size of a network, checked like the options of BERT."""
    size = Size(**{OLD_SIZE_NAMES.get(name, name): value for name, value in document.items()})
    names = ("layers", "dim", "heads", "feedforward_dim", "dropout", "activation", "epsilon")
    options = {name: getattr(size, name) for name in names} | {"context_length": size.max_positions}
    return size_of(build_settings(registry.method("bert"), options))


@runtime_checkable
class Shaped(Protocol):
    """Options that give the size of a network."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """The layers, dim and heads."""


def size_of(method: Method) -> Size:
    """Return the network size that a method's options give."""
    assert isinstance(method, Shaped)
    (layers, dim, heads), options = method.shape, method.options()
    return Size(
        layers=layers,
        dim=dim,
        heads=heads,
        feedforward_dim=options["feedforward_dim"],
        max_positions=options["context_length"],
        dropout=options["dropout"],
        activation=options["activation"],
        pre_norm=False,
        epsilon=options["epsilon"],
    )
