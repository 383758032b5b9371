"""A GPT with its tokenizer: text generation, perplexity, text vectors and attention."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from firth.core.embedding import EmbeddedTexts, EmbedsTexts, check_texts
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Candidate, GeneratedToken, Parts
from firth.core.stored import finite_rows
from firth.core.vectors import Vectors
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.nets.attention import traced_copy
from firth.nets.transformer import Decoder, Size
from firth.training.weight_files import with_weights
from firth.transformers import huggingface_gpt2 as gpt2
from firth.transformers.attention_trace import AttentionTrace, TracesAttention, attention_records
from firth.transformers.contextual_words import ContextualModel
from firth.transformers.huggingface_folder import read_weights
from firth.transformers.language_modeling import Sampling, generate_ids, generate_with_logits, windows

END = "<|endoftext|>"
TOKENS = 200  # default number of generated tokens
BATCH_TOKENS = 8192  # per batch


class Perplexity(NamedTuple):
    """Loss and perplexity of texts."""

    loss: float  # mean −log p per token
    perplexity: float
    tokens: int


class GPTModel(TracesAttention, ContextualModel, EmbedsTexts):
    """A causal language model with its tokenizer."""

    batch_texts = 256

    def __init__(self, method: Method, net: Decoder, tokenizer: SubwordTokenizer, training: Mapping[str, Any]) -> None:
        if len(tokenizer) > net.embedding.tokens.num_embeddings:
            raise FirthError(
                "invalid_tokenizer",
                "The tokenizer has {n_tokenizer:,} tokens, but the model has {rows:,} embedding rows. Use the "
                "tokenizer that the weights were trained with.",
                n_tokenizer=len(tokenizer),
                rows=net.embedding.tokens.num_embeddings,
            )
        self.method, self.net, self.tokenizer, self.training = method, net.eval(), tokenizer, training

    @property
    def size(self) -> Size:
        """The dimensions of the network."""
        return self.net.size

    @cached_property
    def vectors(self) -> Vectors:
        """The token embeddings, without context."""
        rows, token_texts = self.net.embedding.tokens.weight.detach().cpu().numpy(), self.tokenizer.tokens
        return Vectors(
            [token_texts.get(id, f"<no token {id}>") for id in range(len(self.tokenizer))], rows[: len(self.tokenizer)]
        )

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The token embeddings by the name "tokens"."""
        return {"tokens": self.vectors}

    @property
    def position_vectors(self) -> NDArray[np.float32] | None:
        """The position embeddings, one row per position; None with rotary positions."""
        embedding = self.net.embedding.positions
        return None if embedding is None else embedding.table.detach().cpu().numpy()

    def ids(self, text: str) -> list[int]:
        """Return the token ids of a text after the begin token; raise text_too_long if they exceed the context."""
        ids = [self.tokenizer.special_id(END), *self.tokenizer.encode(text).ids]
        if len(ids) > self.size.max_positions:
            raise FirthError(
                "text_too_long",
                "The text has {tokens:,} tokens; the model's context_length is {limit:,}. Split the text, or train "
                "with a larger context_length.",
                tokens=len(ids) - 1,
                limit=self.size.max_positions - 1,
            )
        return ids

    # ---- generation ----

    def generate(self, prompt: str = "", tokens: int | None = None, **settings: Any) -> Iterator[str]:
        """Generate text after `prompt` and yield it as soon as it is complete.

        `tokens` is the maximum number of tokens; by default 200 or what fits the context. Settings are temperature,
        top_k, top_p, seed, `stop` (texts that end the generation) and `slide` (continue past the context length by
        dropping the older half of the context).
        """
        stop, slide = settings.pop("stop", ()), bool(settings.pop("slide", False))
        ids, sampling = self.ids(prompt), Sampling(**settings)
        if tokens is None:
            tokens = TOKENS if slide else min(TOKENS, self.size.max_positions + 1 - len(ids))
        if tokens < 0:
            raise FirthError("invalid_value", "{option} must be at least 0; got {got}.", option="tokens", got=tokens)
        if len(ids) + tokens > self.size.max_positions + 1 and not slide:
            raise FirthError(
                "text_too_long",
                "The prompt has {prompt_tokens} tokens; with {tokens} more it exceeds the context_length of {limit}. "
                "Generate fewer tokens, or pass slide=True to drop the older half of the context.",
                prompt_tokens=len(ids) - 1,
                tokens=tokens,
                limit=self.size.max_positions - 1,
            )
        return self._stream_text(ids, tokens, sampling, slide, [stop] if isinstance(stop, str) else list(stop))

    def _stream_text(
        self, ids: list[int], tokens: int, sampling: Sampling, slide: bool, stop: Sequence[str]
    ) -> Iterator[str]:
        """Yield generated text as soon as it is final: a token may hold part of a character or of a stop text."""
        end, generated, emitted = self.tokenizer.special_id(END), list[int](), 0
        longest = max(map(len, stop), default=1) - 1
        for token in generate_ids(self.net, len(self.tokenizer), ids, tokens, sampling, slide):
            if token == end:
                break
            generated.append(token)
            text = self.tokenizer.decode(generated)
            stops = [index for index in (text.find(word) for word in stop if word) if index >= 0]
            if stops:
                text, longest = text[: min(stops)], 0
            certain = len(text) - longest if stops or not text.endswith("\ufffd") else emitted
            if certain > emitted:
                yield text[emitted:certain]
                emitted = certain
            if stops:
                return
        rest = self.tokenizer.decode(generated)[emitted:]
        if rest:
            yield rest

    def generate_tokens(
        self, prompt: str = "", generated: Sequence[int] = (), tokens: int = 1, k: int = 10, **settings: Any
    ) -> list[GeneratedToken]:
        """Generate tokens after `prompt` and the tokens `generated` so far, with the `k` most probable at each step.

        Settings are temperature, top_k, top_p and seed. Generation stops early at the end token.
        """
        ids, sampling, vocabulary_size = (
            [*self.ids(prompt), *self.check_token_ids(generated)],
            Sampling(**settings),
            len(self.tokenizer),
        )
        if tokens < 1 or k < 1:
            raise FirthError(
                "invalid_value", "tokens and k must be at least 1; got tokens={tokens} and k={k}.", tokens=tokens, k=k
            )
        if len(ids) + tokens > self.size.max_positions + 1:
            raise FirthError(
                "text_too_long",
                "The context has {prompt_tokens} tokens; with {tokens} more it exceeds the context_length of {limit}. "
                "Start again from the last words.",
                prompt_tokens=len(ids) - 1,
                tokens=tokens,
                limit=self.size.max_positions - 1,
            )
        steps, end = list[GeneratedToken](), self.tokenizer.special_id(END)
        for token, logits in generate_with_logits(self.net, vocabulary_size, ids, tokens, sampling, slide=False):
            probabilities, sampling_probabilities = (
                torch.softmax(logits.float().cpu(), dim=-1),
                sampling.probabilities(logits),
            )
            best = probabilities.topk(min(k, vocabulary_size)).indices.tolist()
            candidates = {
                id: Candidate(
                    id,
                    self.tokenizer.decode([id], special=True),
                    float(probabilities[id]),
                    float(sampling_probabilities[id]),
                )
                for id in (*best, token)
            }
            steps.append(GeneratedToken(candidates[token], [candidates[id] for id in best]))
            if token == end:
                break
        return steps

    @torch.inference_mode()
    def token_probabilities(self, prompt: str, tokens: Sequence[int]) -> list[Candidate]:
        """Return the tokens after `prompt` with the probability of each, given the ones before it."""
        prompt_ids, vocabulary_size = self.ids(prompt), len(self.tokenizer)
        ids = [*prompt_ids, *self.check_token_ids(tokens)]
        if len(ids) > self.size.max_positions:
            raise FirthError(
                "text_too_long",
                "The text has {tokens} tokens; the model's context_length is {limit}.",
                tokens=len(ids) - 1,
                limit=self.size.max_positions - 1,
            )
        if not tokens:
            return []
        logits = self.net.logits(self.net(torch.tensor([ids[:-1]], device=self.device)))[
            0, len(prompt_ids) - 1 :, :vocabulary_size
        ]
        probabilities = torch.softmax(logits.float(), dim=-1)[range(len(tokens)), list(tokens)].tolist()
        texts = [self.tokenizer.decode([id], special=True) for id in tokens]
        return [Candidate(*each) for each in zip(tokens, texts, probabilities, probabilities, strict=True)]

    def check_token_ids(self, tokens: Sequence[int]) -> Sequence[int]:
        """Return the token ids, or raise unknown_token."""
        invalid = [id for id in tokens if not 0 <= id < len(self.tokenizer)]
        if invalid:
            raise FirthError(
                "unknown_token",
                "Token ids must be from 0 to {limit:,}; got {got}.",
                limit=len(self.tokenizer) - 1,
                got=invalid[0],
            )
        return tokens

    # ---- perplexity and vectors ----

    @torch.inference_mode()
    def perplexity(self, texts: Sequence[str]) -> Perplexity:
        """Return the loss and perplexity over all tokens of the texts; long texts are split into contexts."""
        check_texts(texts)
        total, count = 0.0, 0
        for text in texts:
            ids = np.array([self.tokenizer.special_id(END), *self.tokenizer.encode(text).ids], np.int32)
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
        layer_states = self.net.stack.states(self.net.embedding(ids))
        return np.stack([layer[0, 1:].float().cpu().numpy() for layer in layer_states])

    @property
    def max_text_tokens(self) -> int:
        """Maximum number of tokens of a text, without the begin token."""
        return self.size.max_positions - 1

    def states_of(self, ids: Sequence[Sequence[int]]) -> list[torch.Tensor]:
        """Return the token vectors of every layer for concatenated texts."""
        end = self.tokenizer.special_id(END)
        layer_states = []
        for each in ids:
            inputs = torch.tensor([[end, *each]], device=self.device)
            layer_states.append([layer[0, 1:] for layer in self.net.stack.states(self.net.embedding(inputs))])
        return [torch.cat(layers) for layers in zip(*layer_states, strict=True)]

    def embed_with_counts(self, texts: Sequence[str], layer: int = -1) -> EmbeddedTexts:
        """Return the mean of a layer's token vectors for each text (zeros for an empty one), with token counts."""
        check_texts(texts)
        if not -self.size.layers - 1 <= layer <= self.size.layers:
            raise FirthError(
                "invalid_value",
                "{option} must be from 0 (the embedding) to {limit}, or negative to count from the end; got {got}.",
                option="layer",
                limit=self.size.layers,
                got=layer,
            )
        rows = np.zeros((len(texts), self.size.dim), np.float32)
        for row, text in enumerate(texts):
            states = self.states(text)[layer]
            if len(states):
                rows[row] = states.mean(axis=0)
        return EmbeddedTexts(finite_rows(rows, "Text"), *self.tokenizer.count_known(texts))

    def attention_trace(self, text: str, other: str | None = None) -> AttentionTrace:
        """Return the attention trace of a text; each token attends to itself and earlier tokens."""
        if other is not None:
            raise FirthError(
                "unsupported_model", "A language model has attention for one text; got {got} texts.", got=2
            )
        ids = self.ids(text)
        net, parts = traced_copy(self.net)
        net(torch.tensor([ids], device=self.device))
        read = self.tokenizer.encode(text)
        names = [
            END,
            *(text[begin:end] or token for token, (begin, end) in zip(read.tokens, read.offsets, strict=True)),
        ]
        return AttentionTrace(names, names, attention_records(parts.values()))

    # ---- files ----

    def parts(self) -> Parts:
        """Return the arrays and documents to store, in GPT-2's format where it fits."""
        documents, vocabulary_size = {"tokenizer": json.loads(self.tokenizer.to_json())}, len(self.tokenizer)
        if gpt2.is_gpt2(self.size):
            foreign = gpt2.config_of(self.size, vocabulary_size)
            end = self.tokenizer.special_id(END)
            return Parts(
                gpt2.to_gpt2(self.net.state_dict(), self.size, vocabulary_size),
                {**documents, "tokenizer_config": {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END}},
                {**foreign, "bos_token_id": end, "eos_token_id": end},
            )
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in self.net.state_dict().items()}
        arrays["embedding.tokens.weight"] = arrays["embedding.tokens.weight"][:vocabulary_size]
        return Parts(arrays, documents)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> GPTModel:
        """Rebuild a model from stored arrays and documents."""
        tokenizer = SubwordTokenizer.from_json(json.dumps(parts.documents["tokenizer"]))
        size = size_of(method)
        arrays = parts.arrays
        if gpt2.is_gpt2(size):
            state = gpt2.from_gpt2(arrays, size)
        else:
            state = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        return cls(method, net_of(state, size), tokenizer, training)

    @classmethod
    def from_foreign(cls, folder: Path, config: Mapping[str, Any], method: type[Method]) -> GPTModel:
        """Load a GPT-2 folder of Hugging Face."""
        size, vocabulary_size = gpt2.size_of(config)
        state = gpt2.from_foreign(read_weights(folder), size, config)
        tokenizer = SubwordTokenizer.load(folder)
        if len(tokenizer) > vocabulary_size:
            raise FirthError(
                "invalid_tokenizer",
                "{folder}: the tokenizer has {n_tokenizer:,} tokens, but the model has {rows:,} embedding rows.",
                folder=folder,
                n_tokenizer=len(tokenizer),
                rows=vocabulary_size,
            )
        options = {
            "layers": size.layers, "dim": size.dim, "heads": size.heads, "feedforward_dim": size.feedforward_dim,
            "context_length": size.max_positions - 1,
            "dropout": size.dropout, "activation": size.activation, "epsilon": size.epsilon,
        }  # fmt: skip
        return cls(method(**options), net_of(state, size), tokenizer, {"source": "gpt2"})

    def __repr__(self) -> str:
        return f"GPT model: {self.size.layers} layers × {self.size.dim}, {len(self.tokenizer):,} tokens"


def net_of(state: Mapping[str, torch.Tensor], size: Size) -> Decoder:
    """Return a network with these weights."""
    vocabulary_size = len(state["embedding.tokens.weight"])
    return with_weights(lambda: Decoder(vocabulary_size, size), state).eval()


def size_of(method: Method) -> Size:
    """Return the network size that a method's options give."""
    options = method.options()
    return Size(
        layers=options["layers"],
        dim=options["dim"],
        heads=options["heads"],
        feedforward_dim=options["feedforward_dim"],
        max_positions=options["context_length"] + 1,  # one more for the begin token
        dropout=options["dropout"],
        activation=options["activation"],
        positions=options["positions"],
        epsilon=options["epsilon"],
    )
