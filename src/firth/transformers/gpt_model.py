"""A decoder with its tokenizer: text generation, perplexity, text vectors and attention."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from firth.core.embedding import EmbeddedTexts, EmbedsTexts, check_texts
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Candidate, GeneratedToken, Model, Parts
from firth.core.options import build_settings
from firth.core.renamed import current_weight
from firth.core.storage import read_arrays
from firth.core.stored import finite_rows
from firth.core.vectors import Vectors, unit_rows
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.kernels.decoder import Decoder as NativeDecoder
from firth.nets.architecture import Architecture
from firth.nets.attention import Packed, traced_copy
from firth.nets.positions import Sinusoidal
from firth.nets.transformer import Decoder
from firth.transformers.adapters import TakesAdapters, adapted_model, adapter_arrays, adapter_parts, stored_adapter
from firth.transformers.attention_trace import AttentionTrace, TracesAttention, attention_records
from firth.transformers.chat import Messages, read_template, render_chat
from firth.transformers.contextual_words import ContextualModel
from firth.transformers.families import DECODERS
from firth.transformers.families.decoders import decoder_config, has_output_layer, read_decoder, write_decoder
from firth.transformers.families.family import Config
from firth.transformers.families.gpt2 import GPT2
from firth.transformers.generation import (
    Engine,
    Sampling,
    checked_token_ids,
    engine_of,
    generate_ids,
    generate_with_logits,
    generated_token,
    stream_text,
)
from firth.transformers.gpt_files import (
    NETWORK,
    TextSettings,
    end_ids,
    is_base,
    layout_of,
    net_of,
    options_of,
    size_of,
    stored_architecture,
    stored_sentence,
)
from firth.transformers.huggingface_folder import ADAPTER_WEIGHTS, network_folder, read_modules, read_weights
from firth.transformers.language_modeling import windows
from firth.transformers.native_decoder import checked_precision, native_decoder, native_problem
from firth.transformers.pooling import Pooling, pool_tokens
from firth.transformers.sentence_settings import SentenceSettings
from firth.transformers.sentence_transformers_folder import (
    SentenceFiles,
    read_sentence_files,
    sentence_documents,
    step_arrays,
)

END = "<|endoftext|>"
TEXT_SETTINGS = "text_settings"  # document with the settings of a model that is not a GPT of Firth
TOKENS = 200  # default number of generated tokens
BATCH_TOKENS = 8192  # per batch


class Perplexity(NamedTuple):
    """Loss and perplexity of texts."""

    loss: float  # mean −log p per token
    perplexity: float
    tokens: int


class GPTModel(TakesAdapters, TracesAttention, ContextualModel, EmbedsTexts):
    """A causal language model with its tokenizer."""

    batch_texts = 256

    def __init__(
        self,
        method: Method,
        net: Decoder,
        tokenizer: SubwordTokenizer,
        training: Mapping[str, Any],
        settings: TextSettings = TextSettings(),
        sentence: SentenceFiles | None = None,
    ) -> None:
        if len(tokenizer) > net.embedding.tokens.num_embeddings:
            raise FirthError(
                "invalid_tokenizer",
                "The tokenizer has {n_tokenizer:,} tokens, but the model has {rows:,} embedding rows. Use the "
                "tokenizer that the weights were trained with.",
                n_tokenizer=len(tokenizer),
                rows=net.embedding.tokens.num_embeddings,
            )
        self.method, self.net, self.tokenizer, self.training = method, net.eval(), tokenizer, training
        self.settings, self.sentence = settings, sentence  # sentence: how texts are pooled; None: as in a GPT of Firth

    @property
    def size(self) -> Architecture:
        """The dimensions of the network."""
        return self.net.size

    @cached_property
    def vectors(self) -> Vectors:
        """The token embeddings, without context."""
        return self.token_vectors(self.net.embedding.tokens.weight.detach().cpu().numpy())

    def token_vectors(self, rows: NDArray[np.float32]) -> Vectors:
        """Return rows of the embedding table with the tokens as keys."""
        tokens = self.tokenizer.tokens
        keys = [tokens.get(id, f"<no token {id}>") for id in range(len(self.tokenizer))]
        return Vectors(keys, rows[: len(self.tokenizer)])

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The token embeddings by the name "tokens"."""
        return {"tokens": self.vectors}

    @property
    def position_vectors(self) -> NDArray[np.float32] | None:
        """The position embeddings, one row per position; None with rotary positions."""
        positions = self.net.embedding.positions
        if isinstance(positions, Sinusoidal):
            return positions.table.cpu().numpy()
        return positions.weight.detach().cpu().numpy() if isinstance(positions, torch.nn.Embedding) else None

    @property
    def begin(self) -> int:
        """The id of the token before a text."""
        return self.tokenizer.special.require("bos").id

    @property
    def end(self) -> int:
        """The id of the token after a text, at which generation stops."""
        return self.tokenizer.special.require("eos").id

    @property
    def before(self) -> tuple[int, ...]:
        """The tokens before every text: the begin token in a GPT, otherwise what the tokenizer declares."""
        return (self.begin,) if self.size.family in ("", GPT2.model_type) else self.tokenizer.template.before

    def ids(self, text: str) -> list[int]:
        """Return the token ids of a text after the begin token; raise text_too_long if they exceed the context."""
        ids = [*self.before, *self.tokenizer.encode(text, special=False).ids] or [self.begin]
        self.check_length(ids)
        return ids

    def check_length(self, ids: Sequence[int]) -> None:
        """Raise text_too_long if the token ids exceed the context."""
        if len(ids) > self.size.max_positions:
            raise FirthError(
                "text_too_long",
                "The text has {tokens:,} tokens; the model's context_length is {limit:,}. Split the text, or train "
                "with a larger context_length.",
                tokens=len(ids) - len(self.before),
                limit=self.max_text_tokens,
            )

    # ---- engines ----

    def engine(self, precision: str = "auto") -> Engine:
        """Return what computes the network for generation: the native engine on a CPU, otherwise torch.

        `precision` is float32, or int8 or int4 of the native engine; auto takes the weights as they are.
        """
        if precision in ("auto", "float32"):
            return engine_of(self.net, len(self.tokenizer))
        if precision not in self._engines:
            problem = native_problem(self.size)
            native = native_decoder(self.net, len(self.tokenizer), checked_precision(precision))
            if native is None:
                raise FirthError(
                    "unsupported_device",
                    "precision={precision} needs the native engine on a CPU{problem}.",
                    precision=precision,
                    problem=f", which does not support this network, because {problem}" if problem else "",
                )
            self._engines[precision] = native
        return self._engines[precision]

    @cached_property
    def _engines(self) -> dict[str, Engine]:
        return {}

    @property
    def engine_description(self) -> str:
        """Which engine generates text, and why."""
        problem = native_problem(self.size)
        return f"torch, because {problem}" if problem else "native on a CPU, torch on a GPU"

    # ---- generation ----

    def generate(self, prompt: str = "", tokens: int | None = None, **settings: Any) -> Iterator[str]:
        """Generate text after `prompt` and yield it as soon as it is complete.

        `tokens` is the maximum number of tokens; by default 200 or what fits the context. Settings are temperature,
        top_k, top_p, seed, `stop` (texts that end the generation), `slide` (continue past the context length by
        dropping the older half of the context) and `precision` (auto, float32, int8, int4).
        """
        return self._generate(self.ids(prompt), tokens, settings)

    def chat(self, messages: Messages, tokens: int | None = None, **settings: Any) -> Iterator[str]:
        """Generate the answer to messages, each with a "role" (system, user, assistant) and "content".

        The prompt is written by the model's chat template. Settings are those of `generate`.
        """
        ids = self.tokenizer.encode(self.chat_prompt(messages), special=False).ids
        return self._generate(ids, tokens, settings)

    def chat_prompt(self, messages: Messages) -> str:
        """Return the prompt for messages, which ends where the answer begins."""
        return render_chat(self.settings.chat_template, messages, self.tokenizer.special.config())

    def _generate(self, ids: list[int], tokens: int | None, settings: dict[str, Any]) -> Iterator[str]:
        """Check the length of the prompt and return the generated text."""
        if self.size.bidirectional or not self.settings.has_output:
            problem = "attends to both sides" if self.size.bidirectional else "has no output layer"
            raise FirthError(
                "unsupported_model", "The model {problem}, so it embeds texts but cannot generate.", problem=problem
            )
        stop, slide = settings.pop("stop", ()), bool(settings.pop("slide", False))
        engine = self.engine(settings.pop("precision", "auto"))
        sampling = Sampling(**settings)
        if tokens is None:
            tokens = TOKENS if slide else min(TOKENS, self.size.max_positions + 1 - len(ids))
        if tokens < 0:
            raise FirthError("invalid_value", "{option} must be at least 0; got {got}.", option="tokens", got=tokens)
        if len(ids) + tokens > self.size.max_positions + 1 and not slide:
            raise FirthError(
                "text_too_long",
                "The prompt has {prompt_tokens} tokens; with {tokens} more it exceeds the context_length of {limit}. "
                "Generate fewer tokens, or pass slide=True to drop the older half of the context.",
                prompt_tokens=len(ids) - len(self.before),
                tokens=tokens,
                limit=self.max_text_tokens,
            )
        generated = generate_ids(engine, ids, tokens, sampling, slide)
        ends = {self.end, *self.settings.ends}
        return stream_text(self.tokenizer, generated, ends, [stop] if isinstance(stop, str) else list(stop))

    def generate_tokens(
        self, prompt: str = "", generated: Sequence[int] = (), tokens: int = 1, k: int = 10, **settings: Any
    ) -> list[GeneratedToken]:
        """Generate tokens after `prompt` and the tokens `generated` so far, with the `k` most probable at each step.

        Settings are temperature, top_k, top_p and seed. Generation stops early at the end token.
        """
        ids, sampling = [*self.ids(prompt), *checked_token_ids(generated, len(self.tokenizer))], Sampling(**settings)
        if tokens < 1 or k < 1:
            raise FirthError(
                "invalid_value", "tokens and k must be at least 1; got tokens={tokens} and k={k}.", tokens=tokens, k=k
            )
        if len(ids) + tokens > self.size.max_positions + 1:
            raise FirthError(
                "text_too_long",
                "The context has {prompt_tokens} tokens; with {tokens} more it exceeds the context_length of {limit}. "
                "Start again from the last words.",
                prompt_tokens=len(ids) - len(self.before),
                tokens=tokens,
                limit=self.max_text_tokens,
            )
        steps, ends = list[GeneratedToken](), {self.end, *self.settings.ends}
        for token, logits in generate_with_logits(self.engine(), ids, tokens, sampling, slide=False):
            steps.append(generated_token(self.tokenizer, token, logits, sampling, k))
            if token in ends:
                break
        return steps

    @torch.inference_mode()
    def token_probabilities(self, prompt: str, tokens: Sequence[int]) -> list[Candidate]:
        """Return the tokens after `prompt` with the probability of each, given the ones before it."""
        prompt_ids, vocabulary_size = self.ids(prompt), len(self.tokenizer)
        ids = [*prompt_ids, *checked_token_ids(tokens, vocabulary_size)]
        if len(ids) > self.size.max_positions:
            raise FirthError(
                "text_too_long",
                "The text has {tokens} tokens; the model's context_length is {limit}.",
                tokens=len(ids) - len(self.before),
                limit=self.max_text_tokens,
            )
        if not tokens:
            return []
        logits = self.net.logits(self.net(torch.tensor([ids[:-1]], device=self.device)))[
            0, len(prompt_ids) - 1 :, :vocabulary_size
        ]
        probabilities = torch.softmax(logits.float(), dim=-1)[range(len(tokens)), list(tokens)].tolist()
        texts = [self.tokenizer.decode([id], special=True) for id in tokens]
        return [Candidate(*each) for each in zip(tokens, texts, probabilities, probabilities, strict=True)]

    # ---- perplexity and vectors ----

    @torch.inference_mode()
    def perplexity(self, texts: Sequence[str]) -> Perplexity:
        """Return the loss and perplexity over all tokens of the texts; long texts are split into contexts."""
        check_texts(texts)
        total, count = 0.0, 0
        for text in texts:
            ids = np.array([*self.before, *self.tokenizer.encode(text, special=False).ids], np.int32)
            for rows in windows(ids, self.size.max_positions, rows=max(1, BATCH_TOKENS // self.size.max_positions)):
                inputs = torch.from_numpy(rows).to(self.device)
                logits = self.net.logits(self.net(inputs[:, :-1]))[..., : len(self.tokenizer)].float()
                total += float(
                    torch.nn.functional.cross_entropy(logits.transpose(1, 2), inputs[:, 1:], reduction="sum")
                )
                count += inputs[:, 1:].numel()
        if not count:
            raise FirthError("empty_data", "The texts have no tokens, so there is no perplexity.")
        return Perplexity(total / count, math.exp(min(700.0, total / count)), count)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.net.parameters()).device

    @torch.inference_mode()
    def states(self, text: str) -> NDArray[np.float32]:
        """Return the token vectors of all layers, (layers + 1, tokens, dim), beginning with the embedding."""
        ids = torch.tensor([self.ids(text)], device=self.device)
        layer_states = self.net.stack.states(*self.net.embedding.at(ids))
        return np.stack([layer[0, len(self.before) :].float().cpu().numpy() for layer in layer_states])

    @property
    def max_text_tokens(self) -> int:
        """Maximum number of tokens of a text, without those before it."""
        return self.size.max_positions - len(self.before)

    def states_of(self, ids: Sequence[Sequence[int]]) -> list[torch.Tensor]:
        """Return the token vectors of every layer for concatenated texts."""
        layer_states = []
        for each in ids:
            inputs = torch.tensor([[*self.before, *each]], device=self.device)
            states = self.net.stack.states(*self.net.embedding.at(inputs))
            layer_states.append([layer[0, len(self.before) :] for layer in states])
        return [torch.cat(layers) for layers in zip(*layer_states, strict=True)]

    def embed_with_counts(
        self, texts: Sequence[str], layer: int = -1, prompt: str | None = None, prompt_text: str | None = None
    ) -> EmbeddedTexts:
        """Return the mean of a layer's token vectors for each text (zeros for an empty one), with token counts.

        A model of sentence-transformers has its own pooling; `prompt` is then the name of one of its prompts, and
        `prompt_text` any text to put before each text.
        """
        check_texts(texts)
        if not -self.size.layers - 1 <= layer <= self.size.layers:
            raise FirthError(
                "invalid_value",
                "{option} must be from 0 (the embedding) to {limit}, or negative to count from the end; got {got}.",
                option="layer",
                limit=self.size.layers,
                got=layer,
            )
        sentence = self.sentence or SentenceFiles(Pooling(), None, SentenceSettings())
        before = sentence.settings.prompt(prompt, prompt_text)
        rows = np.zeros((len(texts), sentence.pooling.dim(self.size.dim)), np.float32)
        for row, text in enumerate(texts):
            if self.sentence is not None:
                rows[row] = self.pooled(text, layer, before, sentence)
            elif len(states := self.states(before + text)[layer]):
                rows[row] = states.mean(axis=0)
        if sentence.projection is not None:
            rows = sentence.projection(rows)
        finite_rows(rows, "Text")
        rows = unit_rows(rows) if sentence.pooling.normalize else rows
        counts = self.tokenizer.count_known(texts)
        return EmbeddedTexts(rows[:, : sentence.settings.truncate_dim], *counts)

    @torch.inference_mode()
    def pooled(self, text: str, layer: int, prompt: str, sentence: SentenceFiles) -> NDArray[np.float32]:
        """Return the vector of a text as sentence-transformers pools it, with the special tokens of the template."""
        if sentence.settings.lowercase:
            text, prompt = text.lower(), prompt.lower()
        template, pooling = self.tokenizer.template, sentence.pooling
        ids = template.text(self.tokenizer.encode(prompt + text, special=False).ids)
        self.check_length(ids)
        engine = self.engine()
        if not ids:
            return np.zeros(pooling.dim(self.size.dim), np.float32)
        if layer in (-1, self.size.layers) and isinstance(engine, NativeDecoder):
            states = torch.from_numpy(engine.start().states(ids))
        else:
            inputs = torch.tensor([ids], device=self.device)
            states = self.net.stack.states(*self.net.embedding.at(inputs))[layer][0].float().cpu()
        n_prompt = 0 if pooling.include_prompt or not prompt else len(self.tokenizer.encode(prompt, special=False).ids)
        skipped = torch.tensor([len(template.before) + n_prompt]) if n_prompt else None
        packed = Packed.of((len(ids),))
        return torch.cat([pool_tokens(states, packed, mode, skipped)[0] for mode in pooling.modes]).numpy()

    def attention_trace(self, text: str, other: str | None = None) -> AttentionTrace:
        """Return the attention trace of a text; each token attends to itself and earlier tokens."""
        if other is not None:
            raise FirthError(
                "unsupported_model", "A language model has attention for one text; got {got} texts.", got=2
            )
        ids = self.ids(text)
        net, parts = traced_copy(self.net)
        net(torch.tensor([ids], device=self.device))
        read = self.tokenizer.encode(text, special=False)
        names = [
            *(self.tokenizer.tokens[id] for id in ids[: len(ids) - len(read.ids)]),
            *(text[begin:end] or token for token, (begin, end) in zip(read.tokens, read.offsets, strict=True)),
        ]
        return AttentionTrace(names, names, attention_records(parts.values()))

    # ---- files ----

    def parts(self) -> Parts:
        """Return the arrays and documents to store, in the format of the family where it has one."""
        if self.adapter is not None:
            return adapter_parts(self.adapter, self.net, self.size, "CAUSAL_LM", {}, prefixed=True)
        documents: dict[str, Any] = {"tokenizer": json.loads(self.tokenizer.to_json())}
        family, vocabulary_size, special = layout_of(self.size), len(self.tokenizer), self.tokenizer.special
        if self.settings != TextSettings():
            documents[TEXT_SETTINGS] = asdict(self.settings)
        if family is None:
            arrays = {name: tensor.detach().cpu().numpy() for name, tensor in self.net.state_dict().items()}
            arrays["embedding.tokens.weight"] = arrays["embedding.tokens.weight"][:vocabulary_size]
            return Parts(arrays, documents)
        ends = (self.end, *(id for id in self.settings.ends if id != self.end))
        ids = {"bos": self.begin, "eos": ends[0] if len(ends) == 1 else list(ends)}
        foreign = decoder_config(family, self.size, vocabulary_size, ids)
        template = {"chat_template": self.settings.chat_template} if self.settings.chat_template else {}
        documents["tokenizer_config"] = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **special.config(),
            **template,
        }
        if size_of(self.method) != replace(self.size, family=""):
            documents[NETWORK] = foreign  # more than the options of the method say
        arrays = write_decoder(family, self.net, vocabulary_size)
        if self.sentence is None:
            return Parts(arrays, documents, foreign)
        documents |= {"pooling": asdict(self.sentence.pooling), **sentence_documents(*self.sentence, self.size)}
        return Parts(arrays, documents, foreign, more=step_arrays(self.sentence.projection))

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> GPTModel:
        """Rebuild a model from stored arrays and documents."""
        documents = parts.documents
        if (config := stored_adapter(parts)) is not None:
            base = adapted_model(parts.folder, config, adapter_arrays(parts), documents["base"]["sha256"])
            assert isinstance(base, GPTModel)
            base.training = training
            return base
        tokenizer = SubwordTokenizer.from_json(
            json.dumps(documents["tokenizer"]), config=documents.get("tokenizer_config")
        )
        network = documents.get(NETWORK)
        size = size_of(method) if network is None else stored_architecture(network)
        family, stored = layout_of(size), dict(documents.get(TEXT_SETTINGS) or {})
        settings = TextSettings(**stored | {"ends": tuple(stored.get("ends", ()))})
        if family is None:
            state = {current_weight(name): torch.from_numpy(np.array(array)) for name, array in parts.arrays.items()}
            return cls(method, net_of(state, size), tokenizer, training, settings)
        sentence = stored_sentence(parts, size) if "pooling" in documents else None
        return cls(method, read_decoder(family, parts.arrays, size), tokenizer, training, settings, sentence)

    @classmethod
    def from_adapter(cls, folder: Path, config: Mapping[str, Any], method: type[Method]) -> Model:
        """Load an adapter that peft wrote, with its base."""
        return adapted_model(folder, config, read_arrays(folder / ADAPTER_WEIGHTS))

    @classmethod
    def from_foreign(cls, folder: Path, config: Mapping[str, Any], method: type[Method]) -> GPTModel:
        """Load the folder of a decoder of Hugging Face, or of sentence-transformers with its pooling."""
        family, network = DECODERS[config["model_type"]], network_folder(folder)
        size = family.architecture(Config(config))
        options = build_settings(method, options_of(size))  # checks the ranges before the weights are read
        tokenizer, arrays = SubwordTokenizer.load(network), read_weights(folder)
        has_output = size.tied or has_output_layer(family, arrays) or not is_base(config)
        net = read_decoder(family, arrays, size if has_output else replace(size, tied=True), config)
        settings = TextSettings(read_template(network), end_ids(network, config), has_output)
        is_pooled = family is not GPT2 or bool(read_modules(folder))
        sentence = read_sentence_files(folder, size.dim, size.max_positions) if is_pooled else None
        return cls(options, net, tokenizer, {"source": family.model_type}, settings, sentence)

    def __repr__(self) -> str:
        title = DECODERS[self.size.family].title if self.size.family in DECODERS else "GPT"
        return f"{title} model: {self.size.layers} layers × {self.size.dim}, {len(self.tokenizer):,} tokens"
