"""A BERT with its tokenizer: vectors of words and texts from any layer, words for blanks, where it looks; its files."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.foreign import network_folder, read_weights
from firth.core.method import Method
from firth.core.model import Model, Parts
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
from firth.transformers.pooling import Pooling
from firth.transformers.sentence_transformers_folder import (
    DENSE,
    read_sentence_files,
    sentence_documents,
    sentence_transformers_difference,
)
from firth.transformers.text_encoder import WINDOW, Engine, Read, Reader, new_engine, prefetched, resolve_engine
from firth.transformers.whitening import Projection, whitening
from firth.words.word_model import Pooled, check_texts

Pair = tuple[str, str]
OLD_SIZE_NAMES = {"hidden": "feedforward_dim", "places": "max_positions"}  # of folders that earlier versions saved


class BertModel(TracesAttention, ContextualModel, Model):
    """A net that reads texts from both sides, and the tokens it knows."""

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
                "A BERT's tokenizer needs {special}; this one lacks {missing}.",
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
                    "A BERT's tokenizer writes a pair as [CLS] A [SEP] B [SEP], the first three of segment 0; this "
                    "one writes {tokens} around it (its post_processor says so).",
                    tokens=" ".join(tokenizer._call(tokenizer.engine.encode, "", "").tokens) or "nothing",
                )
        rows = net.input.tokens.num_embeddings
        if len(tokenizer) > rows:
            raise FirthError(
                "invalid_tokenizer",
                "The tokenizer has {n_tokenizer:,} tokens, the model rows for {rows:,}: it is another model's; "
                "put the one that the weights were trained with beside them.",
                n_tokenizer=len(tokenizer),
                rows=rows,
            )
        self.method, self.net, self.tokenizer, self.training = method, net.eval(), tokenizer, training
        self.pooling, self.projection = pooling, projection
        self._engines: dict[tuple[str, str], Engine] = {}
        pooling.check(self.size.layers, self.size.max_positions)

    @property
    def size(self) -> Size:
        return self.net.size

    @property
    def heads(self) -> list[str]:
        """What it has above the encoder, of: pooler, masked (words), following (sentences)."""
        return [name for name in bert_files.HEADS if getattr(self.net, name) is not None]

    @property
    def device(self) -> torch.device:
        return next(self.net.parameters()).device

    @cached_property
    def vectors(self) -> Vectors:
        """The tokens' own vectors, before any context."""
        rows, token_texts = self.net.input.tokens.weight.detach().cpu().numpy(), self.tokenizer.tokens
        return Vectors(
            [token_texts.get(id, f"<no token {id}>") for id in range(len(self.tokenizer))], rows[: len(self.tokenizer)]
        )

    @property
    def tables(self) -> Mapping[str, Vectors]:
        return {"tokens": self.vectors}

    @property
    def position_vectors(self) -> NDArray[np.float32]:
        """The vector that is added to a token for its place, a row each."""
        table: NDArray[np.float32] = self.net.input.positions.weight.detach().cpu().numpy()
        return table

    # ---- reading ----

    def read(self, inputs: Sequence[str | Pair]) -> list[Any]:
        """Each text, or pair of texts, with [CLS] and [SEP] around it: `tokenizers.Encoding`s."""
        for text in inputs:
            checked_texts(list(text) if isinstance(text, tuple | list) else [text])
            if not isinstance(text, str) and self.net.input.segments.num_embeddings < 2:
                raise FirthError(
                    "unsupported_model",
                    "This model has one segment (type_vocab_size 1): it reads texts, not pairs of them.",
                )
        encodings = self.tokenizer._call(self.tokenizer.engine.encode_batch, list(inputs))
        for encoding in encodings:
            self.check_length(len(encoding.ids))
        return list(encodings)

    def check_length(self, tokens: int) -> None:
        if tokens > self.size.max_positions:
            raise FirthError(
                "text_too_long",
                "This text has {tokens:,} tokens and the model places for {max_positions:,}: cut it into parts.",
                tokens=tokens,
                max_positions=self.size.max_positions,
            )

    @torch.inference_mode()
    def states(self, text: str, other: str | None = None) -> NDArray[np.float32]:
        """All layers' vectors of a text's (or pair's) tokens, (layers + 1, tokens, dim): the input's first."""
        encoding = self.read([text if other is None else (text, other)])[0]
        layer_states = self.net.states(*self.tensors([encoding.ids], [encoding.type_ids]))
        return torch.stack(layer_states).float().cpu().numpy()

    @property
    def max_text_tokens(self) -> int:
        return self.size.max_positions - 2  # [CLS] and [SEP] stand around every text

    def states_of(self, ids: Sequence[Sequence[int]]) -> list[Tensor]:
        """Every layer's vectors of the tokens of texts, one behind the other, without those of [CLS] and [SEP]."""
        before, after = (self.tokenizer.ids[token] for token in ("[CLS]", "[SEP]"))
        inputs = self.tensors([[before, *each, after] for each in ids])
        inner = torch.ones(len(inputs[0]), dtype=torch.bool, device=self.device)
        starts = inputs[-1].starts.long()
        inner[starts[:-1]] = inner[starts[1:] - 1] = False
        return [layer[inner] for layer in self.net.states(*inputs)]

    def tensors(
        self, ids: Sequence[Sequence[int]], segments: Sequence[Sequence[int]] | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Packed]:
        """Texts one behind the other, as the net takes them."""
        packed = Packed.of(tuple(map(len, ids)), device=self.device)
        flat = torch.tensor([id for each in ids for id in each], device=self.device)
        segment_ids = (
            torch.zeros_like(flat)
            if segments is None
            else torch.tensor([segment for each in segments for segment in each], device=self.device)
        )
        return flat, position_ids(packed, len(flat)), segment_ids, packed

    # ---- texts ----

    def embed(
        self, inputs: Sequence[str], pooling: Pooling | None = None, device: str = "auto", precision: str = "auto"
    ) -> Matrix:
        """One row a text, by this model's pooling or another. `precision`: float32 or int8 on a CPU, float32 or bf16 on
        a GPU; what is chosen when left open is float32 and bf16."""
        return self.pool(inputs, pooling, device, precision).matrix

    def pool(
        self, texts: Sequence[str], pooling: Pooling | None = None, device: str = "auto", precision: str = "auto"
    ) -> Pooled:
        """`embed`, with how many tokens of each text were known and unknown to the tokenizer."""
        check_texts(texts)
        pooling = self.checked(pooling)
        windows = (texts[first : first + WINDOW] for first in range(0, len(texts), WINDOW))
        reader = Reader(self.tokenizer, pooling, self.size.max_positions)
        parts = list(self._pool_windows(windows, reader, pooling, device, precision))
        reader.report_truncation()
        if not parts:
            return Pooled(np.zeros((0, self.dim_of(pooling)), np.float32), *np.zeros((2, 0), np.int64))
        return Pooled(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def pool_windows(
        self,
        windows: Iterable[Sequence[str]],
        pooling: Pooling | None = None,
        device: str = "auto",
        precision: str = "auto",
    ) -> Iterator[Pooled]:
        """`pool` for lists of texts without end. Whether texts were cut, the counts of tokens say."""
        pooling = self.checked(pooling)
        return self._pool_windows(
            windows, Reader(self.tokenizer, pooling, self.size.max_positions), pooling, device, precision
        )

    def _pool_windows(
        self, windows: Iterable[Sequence[str]], reader: Reader, pooling: Pooling, device: str, precision: str
    ) -> Iterator[Pooled]:
        """The next list is cut into tokens while one is computed."""
        engine = self.engine(device, precision)
        pending: deque[tuple[Read, Callable[[], Matrix]]] = deque()

        def ready() -> Pooled:
            read, rows = pending.popleft()
            matrix = self.finished(read.joined(rows(), pooling.how), pooling)
            return Pooled(matrix, read.known, read.unknown)

        for read in prefetched(map(reader, windows)):
            pending.append((read, engine(read.ids, pooling)))
            if len(pending) > 1:  # a GPU has the next already while this one is waited for
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
        """`embed` for texts that are ids of tokens already, [CLS] and [SEP] around them."""
        for number, text in enumerate(texts, 1):
            if not text:
                raise FirthError(
                    "empty_data",
                    "Text {number:,} has no ids; a text without any token is [CLS] and [SEP].",
                    number=number,
                )
        lowest, highest = min(map(min, texts), default=0), max(map(max, texts), default=0)
        if lowest < 0 or highest >= len(self.tokenizer):
            bad_id = lowest if lowest < 0 else highest
            raise FirthError(
                "unknown_token",
                "There is no token {problem}; ids go from 0 to {n_tokenizer}.",
                problem=bad_id,
                n_tokenizer=len(self.tokenizer) - 1,
            )
        pooling = self.checked(pooling)
        reader = Reader(self.tokenizer, pooling, self.size.max_positions)
        read = reader.take(texts)
        matrix = self.finished(read.joined(self.engine(device, precision)(read.ids, pooling)(), pooling.how), pooling)
        reader.report_truncation()
        return matrix

    def engine(self, device: str = "auto", precision: str = "auto") -> Engine:
        """What computes vectors there; kept, since weights are packed for it."""
        key = resolve_engine(device, precision)
        if key not in self._engines:
            self._engines[key] = new_engine(self.net, *key)
        return self._engines[key]

    def finished(self, rows: Matrix, pooling: Pooling) -> Matrix:
        """Projected and normalised, where that is asked for."""
        if self.projection is not None and pooling.same_vectors(self.pooling):
            rows = self.projection(rows)
        finite_rows(rows, "Text")
        return unit_rows(rows) if pooling.normalize else rows

    def checked(self, pooling: Pooling | None) -> Pooling:
        """The pooling that is asked for, or this model's."""
        resolved = self.pooling if pooling is None else pooling
        if not isinstance(resolved, Pooling):
            raise FirthError(
                "invalid_type", "pooling must be a Pooling, such as Pooling(how='mean'); got {got!r:.80}.", got=resolved
            )
        resolved.check(self.size.layers, self.size.max_positions)
        return resolved

    def dim_of(self, pooling: Pooling) -> int:
        pooling = self.checked(pooling)
        projection = self.projection if pooling.same_vectors(self.pooling) else None
        return pooling.dim(self.size.dim) if projection is None else projection.dim

    def with_pooling(self, **settings: Any) -> BertModel:
        """The same net with another way from tokens to a text's vector: fields of `Pooling`."""
        pooling = replace(self.pooling, **settings)
        projection = self.projection if pooling.same_vectors(self.pooling) else None
        return BertModel(self.method, self.net, self.tokenizer, pooling, self.training, projection)

    def whitened(self, texts: Sequence[str], dim: int = 0) -> BertModel:
        """This model with its vectors whitened, by what these texts are like; `dim`: fewer dimensions."""
        plain = BertModel(self.method, self.net, self.tokenizer, replace(self.pooling, normalize=False), self.training)
        projection, width = whitening(plain.embed(texts), dim), plain.dim_of(plain.pooling)
        if not dim and projection.dim < width - len(
            self.pooling.layers
        ):  # behind the norm of a layer one is always missing
            Silence().note(
                f"These {len(texts):,} texts differ in {projection.dim:,} directions, and whitened vectors have no more "
                f"dimensions; texts that differ more keep more of the {width:,}."
            )
        training = {**self.training, "whitened": len(texts)}
        return BertModel(self.method, self.net, self.tokenizer, self.pooling, training, projection)

    @property
    def ordered(self) -> bool:
        return super().ordered or (self.projection is not None and "whitened" in self.training)

    def shortened(self, dim: int) -> BertModel:
        """This model with the first `dim` numbers of its vectors, if it was trained for it
        (SentenceEncoder.matryoshka_dims) or whitened."""
        width = self.dim_of(self.pooling)
        check_shorter(self, dim, width)
        full = self.projection or Projection(np.eye(width, dtype=np.float32), np.zeros(width, np.float32))
        projection = Projection(full.weight[:dim], full.bias[:dim])
        return BertModel(self.method, self.net, self.tokenizer, self.pooling, self.training, projection)

    # ---- blanks ----

    @torch.inference_mode()
    def fill(self, text: str, k: int = 5, other: str | None = None) -> list[list[tuple[str, float]]]:
        """For each [MASK] of a text, or pair of texts, the k most probable tokens with their probabilities."""
        if self.net.masked is None:
            raise FirthError(
                "unsupported_model",
                "This model has no head that predicts masked words: its folder holds an encoder only.",
            )
        encoding = self.read([text if other is None else (text, other)])[0]
        mask = self.tokenizer.ids["[MASK]"]
        blanks = [position for position, id in enumerate(encoding.ids) if id == mask]
        if not blanks:
            raise FirthError(
                "missing_mask", "There is no [MASK] in {text!r:.80}: put it where a word is to be found.", text=text
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
        """Of a pair, both texts are one sequence."""
        encoding = self.read([text if other is None else (text, other)])[0]
        ids, positions, segments, _ = self.tensors([encoding.ids], [encoding.type_ids])
        net, parts = traced_copy(self.net)
        net.stack(net.input(ids, positions, segments)[None])
        names, segment_ids = list(encoding.tokens), () if other is None else list(encoding.type_ids)
        return AttentionTrace(names, names, attention_records(parts.values()), segment_ids)

    # ---- files ----

    def parts(self) -> Parts:
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
        if not hasattr(self.method, "shape"):  # another method than BERT does not tell the net's size
            documents["size"] = asdict(self.size)
        projection = self.projection
        more = (
            {}
            if projection is None
            else {f"{DENSE}/model": {"linear.weight": projection.weight, "linear.bias": projection.bias}}
        )
        return Parts(bert_files.to_bert(self.net), documents, bert_files.config_of(self.net), more=more)

    def save(self, folder: str | PathLike[str], overwrite: bool = False) -> Path:
        saved = super().save(folder, overwrite)
        if difference := sentence_transformers_difference(self.pooling, self.size.layers):
            Silence().note(f"{folder}: {difference}")
        return saved

    def to_onnx(self, path: str | PathLike[str]) -> None:
        """One file for other runtimes: `input_ids` and `attention_mask` in, `sentence_embedding` out."""
        from firth.transformers.onnx_export import write_onnx

        write_onnx(self, Path(path))

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> BertModel:
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
        """A BERT of Hugging Face, or of sentence-transformers with its pooling."""
        size = bert_files.size_of(config)
        options = {
            "layers": size.layers, "dim": size.dim, "heads": size.heads, "feedforward_dim": size.feedforward_dim,
            "context_length": size.max_positions,
            "dropout": size.dropout, "activation": size.activation, "epsilon": size.epsilon,
        }  # fmt: skip
        settings = method(**options)  # which refuses what is out of range, before anything is read
        tokenizer = SubwordTokenizer.load(network_folder(folder))
        net = bert_files.net_of(bert_files.from_bert(read_weights(folder), size), size)
        bert_files.check_rows(net, config)
        pooling, projection = read_sentence_files(folder, size.dim, size.max_positions)
        return cls(settings, net, tokenizer, pooling, {"source": "bert"}, projection)

    def __repr__(self) -> str:
        return f"BERT model: {self.size.layers} layers × {self.size.dim}, {len(self.tokenizer):,} tokens"


def stored_size(document: Mapping[str, Any]) -> Size:
    """The size of a net whose method does not tell it, checked as the options of BERT are."""
    size = Size(**{OLD_SIZE_NAMES.get(name, name): value for name, value in document.items()})
    names = ("layers", "dim", "heads", "feedforward_dim", "dropout", "activation", "epsilon")
    options = {name: getattr(size, name) for name in names} | {"context_length": size.max_positions}
    return size_of(build_settings(registry.method("bert"), options))


def size_of(method: Any) -> Size:
    """The net that a method's options tell of."""
    layers, dim, heads = method.shape
    return Size(
        layers=layers,
        dim=dim,
        heads=heads,
        feedforward_dim=method.feedforward_dim,
        max_positions=method.context_length,
        dropout=method.dropout,
        activation=method.activation,
        pre_norm=False,
        epsilon=method.epsilon,
    )
