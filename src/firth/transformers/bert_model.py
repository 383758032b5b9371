"""A BERT with its tokenizer: word and text vectors from any layer, masked-token prediction, attention and files."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.embedding import EmbeddedTexts, EmbedsTexts, Text, check_texts
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Model, Parts
from firth.core.options import build_settings
from firth.core.report import Silence
from firth.core.shortening import check_shorter
from firth.core.storage import read_arrays
from firth.core.stored import finite_rows
from firth.core.vectors import Matrix, Vectors, unit_rows
from firth.data.special_tokens import BERT_NAMES
from firth.data.subword_tokenizer import SubwordTokenizer, checked_texts
from firth.nets.architecture import Architecture
from firth.nets.attention import MultiHead, Packed, traced_copy
from firth.nets.encoder import Encoder, position_ids
from firth.transformers.adapters import TakesAdapters, adapted_model, adapter_arrays, stored_adapter
from firth.transformers.attention_trace import AttentionTrace, TracesAttention, attention_records
from firth.transformers.bert_files import check_tokenizer, model_parts, shape_options, stored_architecture
from firth.transformers.contextual_words import ContextualModel
from firth.transformers.families import ENCODERS
from firth.transformers.families.encoders import HEADS, read_encoder
from firth.transformers.families.family import Config
from firth.transformers.families.weights import check_vocabulary
from firth.transformers.huggingface_folder import ADAPTER_WEIGHTS, network_folder, read_weights
from firth.transformers.next_sentence_pairs import FOLLOWS
from firth.transformers.packing import batch_ends
from firth.transformers.pooling import Pooling
from firth.transformers.sentence_modules import Projection
from firth.transformers.sentence_settings import SentenceSettings
from firth.transformers.sentence_transformers_folder import (
    read_sentence_files,
    sentence_transformers_difference,
    stored_projection,
    stored_settings,
)
from firth.transformers.text_encoder import (
    WINDOW,
    Engine,
    Read,
    Reader,
    engine_description,
    new_engine,
    prefetched,
    resolve_engine,
)
from firth.transformers.whitening import whitening

Pair = tuple[str, str]
PAIR_TOKENS = 8192  # per batch of pairs


class BertModel(TakesAdapters, TracesAttention, ContextualModel, EmbedsTexts):
    """A BERT encoder with its tokenizer and pooling."""

    batch_texts = WINDOW

    def __init__(
        self,
        method: Method,
        net: Encoder,
        tokenizer: SubwordTokenizer,
        pooling: Pooling,
        training: Mapping[str, Any],
        projection: Projection | None = None,
        sentence: SentenceSettings = SentenceSettings(),
    ) -> None:
        check_tokenizer(tokenizer, net)
        self.method, self.net, self.tokenizer, self.training = method, net.eval(), tokenizer, training
        self.pooling, self.projection, self.sentence = pooling, projection, sentence
        self._engines: dict[tuple[str, str], Engine] = {}
        pooling.check(self.size.layers, self.size.max_positions)

    @property
    def size(self) -> Architecture:
        """The dimensions of the network."""
        return self.net.size

    @property
    def heads(self) -> list[str]:
        """The heads on the encoder: any of pooler, masked and next_sentence."""
        return [name for name in HEADS if getattr(self.net, name) is not None]

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
    def position_vectors(self) -> NDArray[np.float32] | None:
        """The position embeddings, one row per position; None if positions are not embedded."""
        table = self.net.input.positions
        return table.weight.detach().cpu().numpy() if isinstance(table, torch.nn.Embedding) else None

    # ---- reading ----

    def read(self, inputs: Sequence[str | Pair]) -> list[Any]:
        """Encode texts or pairs of texts with special tokens, as `tokenizers.Encoding` objects."""
        for text in inputs:
            checked_texts(list(text) if isinstance(text, tuple | list) else [text])
        encodings = self.tokenizer._call(self.tokenizer.engine.encode_batch, list(inputs))
        for encoding in encodings:
            self.check_length(len(encoding.ids))
            if 0 < self.size.segments <= max(encoding.type_ids, default=0):
                raise FirthError(
                    "unsupported_model",
                    "This model has {segments} segment (type_vocab_size), so it accepts single texts, not pairs.",
                    segments=self.size.segments,
                )
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
        """Maximum number of tokens of a text, without special tokens."""
        return self.size.max_positions - self.tokenizer.template.added

    def states_of(self, ids: Sequence[Sequence[int]]) -> list[Tensor]:
        """Return the token vectors of every layer for concatenated texts, without special tokens."""
        template = self.tokenizer.template
        inputs = self.tensors([template.text(each) for each in ids])
        marks = ([False] * len(template.before) + [True] * len(each) + [False] * len(template.after) for each in ids)
        inner = torch.tensor([mark for each in marks for mark in each], device=self.device)
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
        self,
        texts: Sequence[str],
        pooling: Pooling | None = None,
        device: str = "auto",
        precision: str = "auto",
        prompt: str | None = None,
        prompt_text: str | None = None,
    ) -> EmbeddedTexts:
        """Return text vectors by this model's pooling or the given one, with the numbers of known and unknown tokens.

        `precision` is float32 (default) or int8 on a CPU, bf16 (default) or float32 on a GPU. `prompt` is the name of a
        prompt of the model, such as query, and `prompt_text` any text to put before each text; without them, the
        model's default prompt is used, and with prompt="" none.
        """
        check_texts(texts)
        pooling = self.checked(pooling)
        reader = self.reader(pooling, prompt, prompt_text)
        batches = (texts[first : first + WINDOW] for first in range(0, len(texts), WINDOW))
        parts = list(self._reported_batches(batches, reader, pooling, device, precision))
        if not parts:
            return EmbeddedTexts(np.zeros((0, self.dim_of(pooling)), np.float32), *np.zeros((2, 0), np.int64))
        return EmbeddedTexts(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def embed_batches(
        self,
        batches: Iterable[Sequence[Text]],
        pooling: Pooling | None = None,
        device: str = "auto",
        precision: str = "auto",
        prompt: str | None = None,
        prompt_text: str | None = None,
    ) -> Iterator[EmbeddedTexts]:
        """Apply `embed_with_counts` to a stream of lists of texts; truncation shows in the token counts only."""
        pooling = self.checked(pooling)
        reader = self.reader(pooling, prompt, prompt_text)
        return self._read_batches(batches, reader, pooling, device, precision)

    def _embed_batches(
        self,
        batches: Iterable[Sequence[Text]],
        pooling: Pooling | None = None,
        device: str = "auto",
        precision: str = "auto",
        prompt: str | None = None,
        prompt_text: str | None = None,
    ) -> Iterator[Matrix]:
        pooling = self.checked(pooling)
        reader = self.reader(pooling, prompt, prompt_text)
        return (each.matrix for each in self._reported_batches(batches, reader, pooling, device, precision))

    def reader(self, pooling: Pooling, prompt: str | None = None, prompt_text: str | None = None) -> Reader:
        """Return a reader of texts with a prompt."""
        text = self.sentence.prompt(prompt, prompt_text)
        return Reader(self.tokenizer, pooling, self.size.max_positions, text)

    def role_settings(self, role: str) -> dict[str, Any]:
        """Return the settings of `embed` for texts in a role, query or document: the prompt of the role."""
        text = self.sentence.role_prompt(role)
        return {"prompt_text": text} if text or self.sentence.default_prompt else {}

    def _reported_batches(
        self, batches: Iterable[Sequence[Text]], reader: Reader, pooling: Pooling, device: str, precision: str
    ) -> Iterator[EmbeddedTexts]:
        """Embed lists of texts, and report at the end how many texts were truncated."""
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
            matrix = self.finished(read.joined(rows(), pooling.modes), pooling)
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
        skipped: Sequence[int] | None = None,
    ) -> Matrix:
        """Return one row per text for token ids that include the special tokens; no prompt is added.

        `skipped` is the number of tokens at the beginning of each text that are not pooled.
        """
        for number, text in enumerate(texts, 1):
            if not text:
                raise FirthError(
                    "empty_data",
                    "Text {number:,} has no token ids; even an empty text has its special tokens.",
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
        read = reader.take(texts, skipped)
        rows = self.engine(device, precision)(read.ids, pooling)()
        matrix = self.finished(read.joined(rows, pooling.modes), pooling)
        reader.report_truncation()
        return matrix

    def engine(self, device: str = "auto", precision: str = "auto") -> Engine:
        """Return the engine for a device and precision; cached, because it packs the weights."""
        key = resolve_engine(device, precision)
        if key not in self._engines:
            self._engines[key] = new_engine(self.net, *key)
        return self._engines[key]

    @property
    def engine_description(self) -> str:
        """Which engine computes text vectors, and why."""
        return engine_description(self.size, self.pooling, bool(self.sentence.prompts))

    def finished(self, rows: Matrix, pooling: Pooling) -> Matrix:
        """Apply the projection and the normalization of the pooling."""
        if self.projection is not None and pooling.same_vectors(self.pooling):
            rows = self.projection(rows)
        finite_rows(rows, "Text")
        rows = unit_rows(rows) if pooling.normalize else rows
        return rows[:, : self.sentence.truncate_dim]

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
        dim = pooling.dim(self.size.dim) if projection is None else projection.dim
        return min(dim, self.sentence.truncate_dim or dim)

    def with_pooling(self, **settings: Any) -> BertModel:
        """Return a model with the same network and other `Pooling` settings."""
        pooling = replace(self.pooling, **settings)
        projection = self.projection if pooling.same_vectors(self.pooling) else None
        return BertModel(self.method, self.net, self.tokenizer, pooling, self.training, projection, self.sentence)

    def with_settings(self, **settings: Any) -> BertModel:
        """Return a model with other `SentenceSettings`: prompts, default_prompt, similarity or truncate_dim.

        A `truncate_dim` must be one that `shortened` accepts.
        """
        if settings.get("truncate_dim") is not None:
            full = replace(self.sentence, truncate_dim=None)
            plain = BertModel(self.method, self.net, self.tokenizer, self.pooling, self.training, self.projection, full)
            check_shorter(self, settings["truncate_dim"], plain.dim_of(self.pooling), "truncate_dim")
        sentence = replace(self.sentence, **settings)
        return BertModel(self.method, self.net, self.tokenizer, self.pooling, self.training, self.projection, sentence)

    def whitened(self, texts: Sequence[str], dim: int = 0) -> BertModel:
        """Return a model whose vectors are whitened on these texts, with `dim` dimensions if given."""
        sentence, pooling = replace(self.sentence, truncate_dim=None), replace(self.pooling, normalize=False)
        plain = BertModel(self.method, self.net, self.tokenizer, pooling, self.training, None, sentence)
        projection, width = whitening(plain.embed(texts), dim), plain.dim_of(plain.pooling)
        if not dim and projection.dim < width - len(self.pooling.layers):  # a layer norm removes one direction
            Silence().note(
                f"The {len(texts):,} texts vary in {projection.dim:,} of {width:,} directions, so whitened vectors "
                f"have {projection.dim:,} dimensions. Pass more varied texts to keep more.",
                "whitening_dimensions",
            )
        training = {**self.training, "whitened": len(texts)}
        return BertModel(self.method, self.net, self.tokenizer, self.pooling, training, projection, sentence)

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
        if self.projection is None:
            eye = np.eye(self.pooling.dim(self.size.dim), dtype=np.float32)[:dim]
            projection = Projection.linear(eye, np.zeros(dim, np.float32))
        else:
            projection = self.projection.shortened(dim)
        sentence = replace(self.sentence, truncate_dim=None)
        return BertModel(self.method, self.net, self.tokenizer, self.pooling, self.training, projection, sentence)

    # ---- masked tokens ----

    @torch.inference_mode()
    def fill(self, text: str, k: int = 5, other: str | None = None) -> list[list[tuple[str, float]]]:
        """Return the k most probable tokens with their probabilities for each mask token of a text or pair.

        [MASK] stands for the mask token of any model.
        """
        if self.net.masked is None:
            raise FirthError(
                "unsupported_model",
                "This model has no {head} head, so it cannot fill blanks.",
                head="masked-token",
            )
        mask, usual = self.tokenizer.special.require("mask"), BERT_NAMES["mask"]
        if usual not in self.tokenizer.ids:
            text, other = text.replace(usual, mask.token), other and other.replace(usual, mask.token)
        encoding = self.read([text if other is None else (text, other)])[0]
        blanks = [position for position, id in enumerate(encoding.ids) if id == mask.id]
        if not blanks:
            raise FirthError(
                "missing_mask",
                "There is no {mask} in {text!r:.80}. Put {mask} where a word is missing.",
                mask=mask.token,
                text=text,
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

    # ---- next sentences ----

    @torch.inference_mode()
    def next_sentence(self, firsts: Sequence[str], seconds: Sequence[str]) -> NDArray[np.float32]:
        """Return the probability that each second text follows the first one in the same document."""
        if self.net.next_sentence is None:
            raise FirthError(
                "unsupported_model",
                "This model has no {head} head. BERTs pre-trained with next_sentence have one, and folders of "
                "BertForPreTraining and BertForNextSentencePrediction.",
                head="next-sentence",
            )
        if isinstance(firsts, str) or isinstance(seconds, str):
            raise FirthError("invalid_type", "next_sentence takes two lists of texts; got a single str.")
        if len(firsts) != len(seconds):
            raise FirthError(
                "shape_mismatch",
                "next_sentence needs one second text per first text; got {n_firsts:,} and {n_seconds:,}.",
                n_firsts=len(firsts),
                n_seconds=len(seconds),
            )
        encodings = self.read(list(zip(firsts, seconds, strict=True)))
        lengths = np.array([len(encoding.ids) for encoding in encodings], np.int64)
        probabilities = np.zeros(len(encodings), np.float32)
        begin = 0
        order = np.argsort(lengths, kind="stable")
        for end in batch_ends(lengths[order], max(PAIR_TOKENS, int(lengths.max(initial=0))), PAIR_TOKENS):
            rows = order[begin:end]
            pairs = [encodings[row] for row in rows]
            inputs = self.tensors([pair.ids for pair in pairs], [pair.type_ids for pair in pairs])
            logits = self.net.next_sentence(self.net.pooled(self.net(*inputs), inputs[-1])).float().cpu().numpy()
            finite = torch.from_numpy(finite_rows(logits, "Pair"))
            probabilities[rows] = torch.softmax(finite, dim=-1)[:, FOLLOWS].numpy()
            begin = end
        return probabilities

    def attention_trace(self, text: str, other: str | None = None) -> AttentionTrace:
        """Return the attention trace of a text, or of a pair as one sequence."""
        encoding = self.read([text if other is None else (text, other)])[0]
        ids, positions, segments, _ = self.tensors([encoding.ids], [encoding.type_ids])
        net, _ = traced_copy(self.net)
        if self.size.shared_layers:
            net.stack.separate_blocks()  # each layer records its own call
        parts = {name: part for name, part in net.named_modules() if isinstance(part, MultiHead)}
        net.stack(net.input(ids, positions, segments)[None], positions)
        names, segment_ids = list(encoding.tokens), () if other is None else list(encoding.type_ids)
        return AttentionTrace(names, names, attention_records(parts.values()), segment_ids)

    # ---- files ----

    def parts(self) -> Parts:
        """Return the arrays and documents to store, in Hugging Face's format."""
        return model_parts(self)

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
        documents = parts.documents
        if (adapter := stored_adapter(parts)) is not None:
            return cls.on_base(method, parts, training, adapter)
        tokenizer = SubwordTokenizer.from_json(
            json.dumps(documents["tokenizer"]), config=documents.get("tokenizer_config")
        )
        size = stored_architecture(method, parts)
        pooling = stored_pooling(documents)
        projection = stored_projection(documents, parts.more, pooling.dim(size.dim))
        sentence = stored_settings(documents)
        net = read_encoder(ENCODERS[size.family], parts.arrays, size)
        return cls(method, net, tokenizer, pooling, training, projection, sentence)

    @classmethod
    def on_base(cls, method: Method, parts: Parts, training: Mapping[str, Any], config: Mapping[str, Any]) -> BertModel:
        """Rebuild a model from a stored adapter and its base."""
        base = adapted_model(parts.folder, config, adapter_arrays(parts), parts.documents["base"]["sha256"])
        assert isinstance(base, BertModel)
        base.net.masked = base.net.next_sentence = None
        pooling = stored_pooling(parts.documents)
        projection = stored_projection(parts.documents, parts.more, pooling.dim(base.size.dim))
        model = cls(method, base.net, base.tokenizer, pooling, training, projection, stored_settings(parts.documents))
        model.adapter = base.adapter
        return model

    @classmethod
    def from_adapter(cls, folder: Path, config: Mapping[str, Any], method: type[Method]) -> Model:
        """Load an adapter that peft wrote, with its base, which may also be a GPT."""
        return adapted_model(folder, config, read_arrays(folder / ADAPTER_WEIGHTS))

    @classmethod
    def from_foreign(cls, folder: Path, config: Mapping[str, Any], method: type[Method]) -> BertModel:
        """Load the folder of an encoder of Hugging Face, or of sentence-transformers with its pooling."""
        family = ENCODERS[config["model_type"]]
        size = family.architecture(Config(config))
        settings = build_settings(method, shape_options(size))  # checks the ranges before the weights are read
        tokenizer = SubwordTokenizer.load(network_folder(folder))
        net = read_encoder(family, read_weights(folder), size)
        check_vocabulary(net.input.tokens.num_embeddings, config)
        pooling, projection, sentence = read_sentence_files(folder, size.dim, size.max_positions)
        tokenizer = tokenizer.lowercased() if sentence.lowercase else tokenizer
        return cls(settings, net, tokenizer, pooling, {"source": family.model_type}, projection, sentence)

    def __repr__(self) -> str:
        size, title = self.size, ENCODERS[self.size.family].title
        return f"{title} model: {size.layers} layers × {size.dim}, {len(self.tokenizer):,} tokens"


def stored_pooling(documents: Mapping[str, Any]) -> Pooling:
    """Return the pooling of a saved model."""
    stored = dict(documents["pooling"])
    return Pooling(**stored | {"layers": tuple(stored["layers"])})
