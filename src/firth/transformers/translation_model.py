"""A trained encoder-decoder: translation, attention and text vectors."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from firth.core.embedding import EmbeddedTexts, EmbedsTexts, check_texts
from firth.core.errors import FirthError, FirthWarning
from firth.core.method import Method
from firth.core.model import Attention, Parts
from firth.core.run import Run
from firth.core.stored import finite_rows
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.data.subwords import BPE, Characters
from firth.nets.attention import traced_copy
from firth.nets.recurrent import RecurrentTranslator
from firth.nets.transformer import EncoderDecoder, Size
from firth.training.network_options import SPECIAL_TOKENS, TranslatorOptions
from firth.training.weight_files import with_weights
from firth.transformers.attention_trace import AttentionTrace, TracesAttention, attention_records
from firth.transformers.beam_search import Hypothesis, RecurrentDecoder, StepDecoder, TransformerDecoder, beam_search

PAD, BEGIN, END, _ = range(4)  # ids of the special tokens
ROWS = 64  # texts per batch
MULTIPLE = 8  # lengths are rounded up to it in training, so that a GPU sees few shapes

Net = EncoderDecoder | RecurrentTranslator


def new_net(method: TranslatorOptions, vocabulary_size: int, seed: int) -> Net:
    """Return a network with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if method.architecture == "lstm":
            return RecurrentTranslator(
                vocabulary_size, vocabulary_size, method.dim, method.layers, method.dropout, tied=True
            )
        max_positions = -(-method.context_length // MULTIPLE) * MULTIPLE
        size = Size(
            method.layers,
            method.dim,
            method.heads,
            method.feedforward_dim,
            max_positions,
            method.dropout,
            "relu",
            "sinusoidal",
        )
        return EncoderDecoder(vocabulary_size, vocabulary_size, size, tied=True)


def new_tokenizer(method: TranslatorOptions, texts: Iterable[str], run: Run) -> SubwordTokenizer:
    """Train the tokenizer that the options choose."""
    if method.tokenizer == "bpe":
        return BPE(size=method.vocabulary_size, special_tokens=SPECIAL_TOKENS).train(texts, run)
    return Characters(special_tokens=SPECIAL_TOKENS).train(texts, run)


def token_ids(tokenizer: SubwordTokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Return the ids of each text; special tokens such as "</s>" in a text are encoded as plain text."""
    tokenizer.engine.encode_special_tokens = True
    return tokenizer.ids_batch(texts, special=False)


def shared(name: str) -> str:
    """Return the stored name of a weight; the shared embedding is stored once, as the source's."""
    return "source." + name.removeprefix("target.") if name.startswith("target.") else name


class Translation(NamedTuple):
    """A translation with its score."""

    text: str
    score: float  # log-probability of its tokens, divided by the length penalty
    ended: bool  # False if it was cut at the token limit


class Translator(TracesAttention, EmbedsTexts):
    """A trained `Seq2Seq` model."""

    batch_texts = 256

    method: TranslatorOptions

    def __init__(
        self, method: TranslatorOptions, tokenizer: SubwordTokenizer, net: Net, training: Mapping[str, Any]
    ) -> None:
        self.method, self.net, self.training = method, net.eval(), training
        self.tokenizer = tokenizer

    def __repr__(self) -> str:
        return f"Seq2Seq model ({self.method.architecture}): {len(self.tokenizer):,} tokens × {self.method.dim}"

    # ---- storage ----

    def parts(self) -> Parts:
        """Return the arrays and documents to store."""
        arrays = {shared(name): tensor.cpu().numpy() for name, tensor in self.net.state_dict().items()}
        return Parts(arrays, {"tokenizer": json.loads(self.tokenizer.to_json())})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> Translator:
        """Rebuild a model from stored arrays and documents."""
        assert isinstance(method, TranslatorOptions)
        tokenizer = SubwordTokenizer.from_json(json.dumps(parts.documents["tokenizer"]))
        vocabulary_size = len(
            parts.arrays["source.tokens.weight" if method.architecture == "transformer" else "source.weight"]
        )
        if vocabulary_size != len(tokenizer):
            raise FirthError(
                "invalid_tokenizer",
                "The tokenizer has {n_tokenizer:,} tokens, but the model has {rows:,} embedding rows.",
                n_tokenizer=len(tokenizer),
                rows=vocabulary_size,
            )
        net = with_weights(lambda: new_net(method, vocabulary_size, 0), parts.arrays, shared)
        return cls(method, tokenizer, net, training)

    # ---- encoding ----

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.net.parameters()).device

    def to(self, device: str) -> Translator:
        """Move the network to "cuda" or "cpu"."""
        if device == "cuda" and not torch.cuda.is_available():
            raise FirthError("no_gpu", "device=cuda, but torch finds no GPU. Use device=cpu.")
        self.net.to(device)
        return self

    def encoded(self, texts: Sequence[str], label: str = "Text") -> list[list[int]]:
        """Return the ids of each text with an end token; raise text_too_long beyond the context length."""
        if isinstance(texts, str):
            raise FirthError("invalid_type", "Expected a list of texts; got one text. Put it in a list.")
        encoded_texts = [
            [*ids, END] for ids in token_ids(self.tokenizer, [text if text.strip() else "" for text in texts])
        ]
        for number, ids in enumerate(encoded_texts, 1):
            if len(ids) > self.method.context_length:
                raise FirthError(
                    "text_too_long",
                    "{detail} {number} has {tokens:,} tokens with its end token; the model's context_length is "
                    "{limit:,}. Split it into sentences, or train with a larger context_length.",
                    detail=label,
                    number=number,
                    tokens=len(ids),
                    limit=self.method.context_length,
                )
        return encoded_texts

    def batches(self, encoded: Sequence[list[int]], rows: int = ROWS) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Yield batches of texts of similar length: their numbers, padded ids and mask."""
        order = sorted(range(len(encoded)), key=lambda number: -len(encoded[number]))
        for first in range(0, len(order), rows):
            which = order[first : first + rows]
            ids = torch.full((len(which), len(encoded[which[0]])), PAD)
            for row, number in enumerate(which):
                ids[row, : len(encoded[number])] = torch.tensor(encoded[number])
            yield which, ids.to(self.device), (ids != PAD).to(self.device)

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each token, with its leading space."""
        return [self.tokenizer.decode([id], special=True) for id in ids]

    @torch.inference_mode()
    def embed_with_counts(self, texts: Sequence[str]) -> EmbeddedTexts:
        """Return the mean of the encoder states over the tokens and end token of each text, with token counts."""
        check_texts(texts)
        dim = self.method.dim * (1 if self.method.architecture == "transformer" else 2)
        rows = np.zeros((len(texts), dim), np.float32)
        for which, ids, mask in self.batches(self.encoded(texts)):
            memory = self.net.encode(ids, mask)
            states = memory if isinstance(memory, Tensor) else memory[0].states
            inside = mask[..., None]
            rows[which] = ((states * inside).sum(1) / inside.sum(1)).cpu().numpy()
        return EmbeddedTexts(finite_rows(rows, "Text"), *self.tokenizer.count_known(texts))

    # ---- translation ----

    @property
    def max_text_tokens(self) -> int:
        """The most tokens of a text, without the end token."""
        return self.method.context_length - 1

    def translate(self, texts: Sequence[str], beam: int = 4, length_penalty: float = 0.6) -> list[str]:
        """Return one translation per text; an empty text stays empty.

        `beam` is the beam width (1 = greedy search). `length_penalty` is α of `beam_search`; higher values prefer
        longer translations.
        """
        translations = self.translations(texts, beam, length_penalty)
        unfinished = sum(not translation.ended for translation in translations)
        if unfinished:
            text = f"{unfinished:,} of {len(translations):,} translations reached the token limit and were cut."
            warnings.warn(FirthWarning(text, "translation_cut"), stacklevel=2)
        return [translation.text for translation in translations]

    def translations(self, texts: Sequence[str], beam: int = 4, length_penalty: float = 0.6) -> list[Translation]:
        """Return one translation per text with its score."""
        return [
            Translation(self.tokenizer.decode(hypothesis.ids), hypothesis.score, hypothesis.ended)
            for hypothesis in self.search(self.encoded(texts), beam, length_penalty)
        ]

    def search(self, encoded: Sequence[list[int]], beam: int, length_penalty: float) -> list[Hypothesis]:
        """Return the best hypothesis for each encoded text."""
        vocabulary_size = len(self.tokenizer)
        if not 1 <= beam <= vocabulary_size:
            raise FirthError(
                "invalid_value",
                "{option} must be from 1 to {limit:,}, the vocabulary size; got {got}.",
                option="beam",
                limit=vocabulary_size,
                got=beam,
            )
        if not 0 <= length_penalty <= 10:
            raise FirthError(
                "invalid_value",
                "{option} must be from 0 to 10; got {got}.",
                option="length_penalty",
                got=length_penalty,
            )
        hypotheses = [Hypothesis([], 0.0, True)] * len(encoded)
        nonempty = [number for number, ids in enumerate(encoded) if len(ids) > 1]  # an empty text has an end token only
        never = torch.tensor([PAD, BEGIN], device=self.device)
        for rows, ids, mask in self.batches([encoded[number] for number in nonempty]):
            limits = [min(self.method.context_length, 3 * len(encoded[nonempty[row]]) + 20) for row in rows]
            with torch.inference_mode():
                decoder = self.decoder(ids, mask, beam, max(limits))
            results = beam_search(decoder, limits, beam, length_penalty, BEGIN, END, never)
            for row, hypothesis in zip(rows, results, strict=True):
                hypotheses[nonempty[row]] = hypothesis
        return hypotheses

    def decoder(self, ids: Tensor, mask: Tensor, beam: int, tokens: int) -> StepDecoder:
        """Return a step decoder for a batch of sources."""
        if isinstance(self.net, EncoderDecoder):
            return TransformerDecoder(self.net, ids, mask, beam, tokens)
        return RecurrentDecoder(self.net, ids, mask, beam, tokens)

    def attention_ids(self, text: str, other: str | None) -> tuple[list[int], list[int]]:
        """Return the ids of the text and of its translation: the given one, or the model's own."""
        (source,) = self.encoded([text])
        if other is None:
            hypothesis = self.search([source], 4, 0.6)[0]
            return source, [*hypothesis.ids, *([END] if hypothesis.ended else ())]
        return source, self.encoded([other], "Translation")[0]

    def attention_trace(self, text: str, other: str | None = None) -> AttentionTrace:
        """Return the cross-attention of a translation to its source.

        `other` is the translation; without it, the model translates. The last query is the end token.
        """
        if not isinstance(self.net, EncoderDecoder):
            raise FirthError(
                "unsupported_model",
                "Attention steps need architecture=transformer; got architecture={architecture}, whose attention is "
                "additive: vᵀ tanh(Wq + Uk).",
                architecture=self.method.architecture,
            )
        source, target = self.attention_ids(text, other)
        ids = torch.tensor([source], device=self.device)
        before = torch.tensor([[BEGIN, *target[:-1]]], device=self.device)
        net, parts = traced_copy(self.net)
        net(ids, torch.ones_like(ids, dtype=torch.bool), before)
        layers = attention_records(part for name, part in parts.items() if name.endswith(".cross"))
        return AttentionTrace(self.token_texts(target), self.token_texts(source), layers)

    @torch.inference_mode()
    def attention(self, text: str, other: str | None = None) -> Attention:
        """Return the cross-attention of a translation to its source, by layer and head (one of each for lstm)."""
        if isinstance(self.net, EncoderDecoder):
            return super().attention(text, other)
        source, target = self.attention_ids(text, other)
        ids = torch.tensor([source], device=self.device)
        memory, state = self.net.encode(ids, torch.ones_like(ids, dtype=torch.bool))
        rows = []
        for token in [BEGIN, *target[:-1]]:
            _, state, row = self.net.step(torch.tensor([token], device=self.device), memory, state)
            rows.append(row)
        weights = torch.stack(rows, dim=1)[None]
        return Attention(self.token_texts(target), self.token_texts(source), weights.cpu().numpy())
