"""An encoder-decoder, trained or loaded: translation, attention and text vectors."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from firth.core.embedding import EmbeddedTexts, EmbedsTexts, check_texts
from firth.core.errors import FirthError, FirthWarning
from firth.core.method import Method
from firth.core.model import Attention, Candidate, GeneratedToken, Parts
from firth.core.options import build_settings
from firth.core.run import Run
from firth.core.storage import read_json
from firth.core.stored import finite_rows
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.data.subwords import BPE, Characters
from firth.nets.architecture import Architecture
from firth.nets.attention import traced_copy
from firth.nets.recurrent import RecurrentTranslator
from firth.nets.transformer import EncoderDecoder
from firth.training.network_options import SPECIAL_TOKENS, TranslatorOptions
from firth.training.weight_files import with_weights
from firth.transformers.attention_trace import AttentionTrace, TracesAttention, attention_records
from firth.transformers.beam_search import Hypothesis, RecurrentDecoder, StepDecoder, TransformerDecoder, beam_search
from firth.transformers.decoding import Decoding, decoding_of, generation_settings
from firth.transformers.families import ENCODER_DECODERS
from firth.transformers.families.encoder_decoders import check_classes, read_encoder_decoder, write_encoder_decoder
from firth.transformers.families.family import Config, Family
from firth.transformers.families.weights import check_vocabulary as check_rows
from firth.transformers.generation import Sampling, checked_token_ids, generated_token
from firth.transformers.huggingface_folder import network_folder, read_weights

PAD, BEGIN, END, _ = range(4)  # ids of the special tokens
ROWS = 64  # texts per batch
MULTIPLE = 8  # lengths are rounded up to it in training, so that a GPU sees few shapes
MOST_TOKENS = 200  # of the output of a loaded model that sets no limit
OWN_DECODING = Decoding(BEGIN, END, PAD, never=(PAD, BEGIN))
GENERATION, NETWORK = "generation_config", "network"  # documents of loaded models

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
        size = Architecture(
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
    """A trained `Seq2Seq` model, or a loaded one, such as T5; `generation` are the latter's decoding settings."""

    batch_texts = 256

    method: TranslatorOptions

    def __init__(
        self,
        method: TranslatorOptions,
        tokenizer: SubwordTokenizer,
        net: Net,
        training: Mapping[str, Any],
        generation: Mapping[str, Any] | None = None,
    ) -> None:
        self.method, self.net, self.training = method, net.eval(), training
        self.tokenizer, self.generation = tokenizer, generation or {}
        self.decoding = decoding_of(generation, self.rows) if generation else OWN_DECODING

    def __repr__(self) -> str:
        if self.family is not None:
            return f"{self.family.title} model: {len(self.tokenizer):,} tokens × {self.method.dim}"
        return f"Seq2Seq model ({self.method.architecture}): {len(self.tokenizer):,} tokens × {self.method.dim}"

    @property
    def family(self) -> Family | None:
        """The family of a loaded network; None for networks that Firth trained."""
        return ENCODER_DECODERS.get(self.net.size.family) if isinstance(self.net, EncoderDecoder) else None

    @property
    def engine_description(self) -> str:
        """Which engine translates and embeds, and why."""
        return "torch, because the native engines compute encoders and decoders, not networks of both"

    @property
    def rows(self) -> int:
        """The number of rows of the output layer; there may be more than tokens."""
        net = self.net
        return (net.target.tokens if isinstance(net, EncoderDecoder) else net.target).num_embeddings

    # ---- storage ----

    def parts(self) -> Parts:
        """Return the arrays and documents to store; loaded networks in Hugging Face's format."""
        tokenizer = json.loads(self.tokenizer.to_json())
        if self.family is None or not isinstance(self.net, EncoderDecoder):
            arrays = {shared(name): tensor.cpu().numpy() for name, tensor in self.net.state_dict().items()}
            return Parts(arrays, {"tokenizer": tokenizer})
        ids = {name: id for name, id in self.generation.items() if name.endswith("_token_id")}
        foreign = {
            "model_type": self.family.model_type,
            "architectures": [self.family.classes[()]],
            "is_encoder_decoder": True,
            "vocab_size": self.rows,
            **self.family.config(self.net.size),
            **ids,
        }
        documents = {
            "tokenizer": tokenizer,
            "tokenizer_config": {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "model_max_length": self.method.context_length,
                **self.tokenizer.special.config(),
            },
            GENERATION: dict(self.generation),
            NETWORK: foreign,
        }
        return Parts(write_encoder_decoder(self.family, self.net), documents, foreign)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> Translator:
        """Rebuild a model from stored arrays and documents."""
        assert isinstance(method, TranslatorOptions)
        network, settings = parts.documents.get(NETWORK), parts.documents.get("tokenizer_config")
        tokenizer = SubwordTokenizer.from_json(json.dumps(parts.documents["tokenizer"]), config=settings)
        if network is not None:
            if not isinstance(network, dict) or network.get("model_type") not in ENCODER_DECODERS:
                raise FirthError("damaged_model", "{name}.json must have a model_type that Firth opens.", name=NETWORK)
            return cls.of_family(network, parts.arrays, tokenizer, type(method), parts.documents[GENERATION], training)
        vocabulary_size = len(
            parts.arrays["source.tokens.weight" if method.architecture == "transformer" else "source.weight"]
        )
        check_vocabulary(tokenizer, vocabulary_size, exact=True)
        net = with_weights(lambda: new_net(method, vocabulary_size, 0), parts.arrays, shared)
        return cls(method, tokenizer, net, training)

    @classmethod
    def from_foreign(cls, folder: Path, config: Mapping[str, Any], method: type[Method]) -> Translator:
        """Load the folder of an encoder-decoder of Hugging Face."""
        family, network = ENCODER_DECODERS[config["model_type"]], network_folder(folder)
        check_classes(family, config)
        path = network / f"{GENERATION}.json"
        stored = read_json(path) if path.is_file() else {}
        if not isinstance(stored, dict):
            raise FirthError("damaged_model", "{path} must be a JSON object.", path=path)
        generation = generation_settings(family.generation, config, stored)
        tokenizer = SubwordTokenizer.load(network)
        source = {"source": family.model_type}
        return cls.of_family(config, read_weights(folder), tokenizer, method, generation, source)

    @classmethod
    def of_family(
        cls,
        config: Mapping[str, Any],
        arrays: Mapping[str, Any],
        tokenizer: SubwordTokenizer,
        method: type[Method],
        generation: Mapping[str, Any],
        training: Mapping[str, Any],
    ) -> Translator:
        """Return a model with the network that config.json and the arrays of a family describe."""
        family = ENCODER_DECODERS[config["model_type"]]
        size = family.architecture(Config(config))
        names = ("layers", "dim", "heads", "feedforward_dim", "dropout")
        options = {name: getattr(size, name) for name in names} | {"context_length": size.max_positions}
        settings = build_settings(method, options)  # checks the ranges before the weights are read
        assert isinstance(settings, TranslatorOptions)
        net = read_encoder_decoder(family, arrays, size)
        check_rows(net.source.tokens.num_embeddings, config)
        check_vocabulary(tokenizer, net.source.tokens.num_embeddings)
        return cls(settings, tokenizer, net, training, generation)

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
        stripped = [text if text.strip() else "" for text in texts]
        encoded_texts = (
            [[*ids, END] for ids in token_ids(self.tokenizer, stripped)]
            if self.family is None
            else self.tokenizer.ids_batch(stripped)
        )
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
            ids = torch.full((len(which), len(encoded[which[0]])), self.decoding.pad)
            for row, number in enumerate(which):
                ids[row, : len(encoded[number])] = torch.tensor(encoded[number])
            lengths = torch.tensor([len(encoded[number]) for number in which])
            mask = torch.arange(ids.shape[1]) < lengths[:, None]
            yield which, ids.to(self.device), mask.to(self.device)

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
    def special_count(self) -> int:
        """The number of special tokens around a text: the end token, or what a loaded tokenizer adds."""
        return 1 if self.family is None else self.tokenizer.template.added

    @property
    def max_text_tokens(self) -> int:
        """The most tokens of a text, without special tokens."""
        return self.method.context_length - self.special_count

    def translate(
        self,
        texts: Sequence[str],
        beam: int | None = None,
        length_penalty: float | None = None,
        tokens: int | None = None,
    ) -> list[str]:
        """Return one translation per text; an empty text stays empty.

        `beam` is the beam width (1 = greedy search), `length_penalty` is α of `decoding.py` (higher values prefer
        longer translations), and `tokens` the most tokens of a translation. By default, a model that Firth trained uses
        4, 0.6 and a limit by the length of the text, and a loaded one what its generation_config.json says.
        """
        translations = self.translations(texts, beam, length_penalty, tokens)
        unfinished = sum(not translation.ended for translation in translations)
        if unfinished:
            text = f"{unfinished:,} of {len(translations):,} translations reached the token limit and were cut."
            warnings.warn(FirthWarning(text, "translation_cut"), stacklevel=2)
        return [translation.text for translation in translations]

    def translations(
        self,
        texts: Sequence[str],
        beam: int | None = None,
        length_penalty: float | None = None,
        tokens: int | None = None,
    ) -> list[Translation]:
        """Return one translation per text with its score."""
        hypotheses = self.search(self.encoded(texts), beam, length_penalty, tokens)
        decoded = [self.tokenizer.decode(hypothesis.ids) for hypothesis in hypotheses]
        decoded = decoded if self.family is None else [text.strip() for text in decoded]  # some begin with a space
        return [Translation(text, each.score, each.ended) for text, each in zip(decoded, hypotheses, strict=True)]

    def search(
        self,
        encoded: Sequence[list[int]],
        beam: int | None = None,
        length_penalty: float | None = None,
        tokens: int | None = None,
    ) -> list[Hypothesis]:
        """Return the best hypothesis for each encoded text."""
        how, longest = self.searching(beam, length_penalty, tokens), self.method.context_length
        hypotheses = [Hypothesis([], 0.0, True)] * len(encoded)
        nonempty = [number for number, ids in enumerate(encoded) if len(ids) > self.special_count]
        for rows, ids, mask in self.batches([encoded[number] for number in nonempty]):
            usual = [3 * len(encoded[nonempty[row]]) + 20 if self.family is None else MOST_TOKENS for row in rows]
            limits = [min(longest, how.max_tokens or each) for each in usual]
            with torch.inference_mode():
                decoder = self.decoder(ids, mask, how.beam, max(limits))
            for row, hypothesis in zip(rows, beam_search(decoder, limits, how, self.device), strict=True):
                hypotheses[nonempty[row]] = hypothesis
        return hypotheses

    def searching(self, beam: int | None, length_penalty: float | None, tokens: int | None) -> Decoding:
        """Return the decoding settings with these, where they are given."""
        how, longest = self.decoding, self.method.context_length
        given: tuple[tuple[str, float | None, int, int], ...] = (
            ("beam", beam, 1, min(self.rows, len(self.tokenizer))),
            ("length_penalty", length_penalty, 0, 10),
            ("tokens", tokens, 1, longest),
        )
        for option, value, low, high in given:
            if value is not None and not low <= value <= high:
                raise FirthError(
                    "invalid_value",
                    "{option} must be from {low} to {limit:,}; got {got}.",
                    option=option,
                    low=low,
                    limit=high,
                    got=value,
                )
        return replace(
            how,
            beam=how.beam if beam is None else beam,
            length_penalty=how.length_penalty if length_penalty is None else length_penalty,
            max_tokens=how.max_tokens if tokens is None else tokens,
        )

    def decoder(self, ids: Tensor, mask: Tensor, beam: int, tokens: int) -> StepDecoder:
        """Return a step decoder for a batch of sources."""
        if isinstance(self.net, EncoderDecoder):
            return TransformerDecoder(self.net, ids, mask, beam, tokens)
        return RecurrentDecoder(self.net, ids, mask, beam, tokens)

    # ---- token by token ----

    @torch.inference_mode()
    def generate_tokens(
        self, prompt: str = "", generated: Sequence[int] = (), tokens: int = 1, k: int = 10, **settings: Any
    ) -> list[GeneratedToken]:
        """Generate a translation of `prompt` after the tokens `generated` so far, one token at a time.

        Each step has the `k` most probable tokens of the decoder's distribution. Settings are temperature, top_k, top_p
        and seed; there is no beam. Generation stops early at the end token.
        """
        if tokens < 1 or k < 1:
            raise FirthError(
                "invalid_value", "tokens and k must be at least 1; got tokens={tokens} and k={k}.", tokens=tokens, k=k
            )
        sampling, steps = Sampling(**settings), list[GeneratedToken]()
        generator = torch.Generator().manual_seed(sampling.seed)
        history, decoder = list(generated), self.stepping(prompt, generated, tokens)
        logits = [decoder(id) for id in (self.decoding.begin, *history)][-1]
        while len(steps) < tokens:
            allowed = self.allowed(logits, history)
            token = sampling.choose(allowed, generator)
            steps.append(generated_token(self.tokenizer, token, allowed, sampling, k))
            history.append(token)
            if token == self.decoding.end or len(steps) == tokens:
                break
            logits = decoder(token)
        return steps

    @torch.inference_mode()
    def token_probabilities(self, prompt: str, tokens: Sequence[int]) -> list[Candidate]:
        """Return the tokens of a translation of `prompt` with the probability of each, given the ones before it."""
        decoder, result = self.stepping(prompt, tokens, 0), list[Candidate]()
        for position, (before, token) in enumerate(zip([self.decoding.begin, *tokens], tokens, strict=False)):
            p = float(torch.softmax(self.allowed(decoder(before), tokens[:position]), dim=-1)[token])
            result.append(Candidate(token, self.tokenizer.decode([token], special=True), p, p))
        return result

    def stepping(self, source: str, generated: Sequence[int], tokens: int) -> Callable[[int], Tensor]:
        """Return a function from a token to the logits of the one after it, for a source; it is called in order."""
        checked_token_ids(generated, len(self.tokenizer))
        longest = self.method.context_length
        if len(generated) + tokens > longest:
            raise FirthError(
                "text_too_long",
                "The translation has {got} tokens; with {tokens} more it exceeds the context_length of {limit}.",
                got=len(generated),
                tokens=tokens,
                limit=longest,
            )
        ((_, ids, mask),) = self.batches(self.encoded([source]))
        decoder = self.decoder(ids, mask, 1, len(generated) + max(1, tokens))
        return lambda token: decoder.step(torch.tensor([token], device=self.device))[0].float().cpu()

    def allowed(self, logits: Tensor, history: Sequence[int]) -> Tensor:
        """Return log p of the next token with the exclusions of the model's decoding settings, which search follows."""
        prefix = torch.tensor([list(history)], dtype=torch.long)
        return self.decoding.log_probabilities(logits[None], prefix, torch.tensor([False]))[0][: len(self.tokenizer)]

    def attention_ids(self, text: str, other: str | None) -> tuple[list[int], list[int]]:
        """Return the ids of the text and of its translation: the given one, or the model's own."""
        (source,) = self.encoded([text])
        if other is None:
            hypothesis = self.search([source])[0]
            return source, [*hypothesis.ids, *([self.decoding.end] if hypothesis.ended else ())]
        if self.family is not None and not self.family.one_tokenizer:
            raise FirthError(
                "unsupported_model",
                "{family} models tokenize translations differently from sources. Omit the second text to see the "
                "model's own translation.",
                family=self.family.title,
            )
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
        before = torch.tensor([[self.decoding.begin, *target[:-1]]], device=self.device)
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


def check_vocabulary(tokenizer: SubwordTokenizer, rows: int, exact: bool = False) -> None:
    """Raise invalid_tokenizer if the tokenizer has more tokens than the embedding has rows, or also fewer."""
    if len(tokenizer) > rows or (exact and len(tokenizer) != rows):
        raise FirthError(
            "invalid_tokenizer",
            "The tokenizer has {n_tokenizer:,} tokens, but the model has {rows:,} embedding rows.",
            n_tokenizer=len(tokenizer),
            rows=rows,
        )
