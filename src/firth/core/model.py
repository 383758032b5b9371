"""`Model`, the result of training, and the protocols for what models can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from firth.core.remote import as_path
from firth.core.storage import saying_which

if TYPE_CHECKING:
    from firth.core.method import Method
    from firth.core.vectors import Hits, Vectors


@dataclass(frozen=True)
class Parts:
    """The stored form of a model: arrays go to safetensors, documents to JSON files by name.

    A network that other libraries can open sets `foreign`, the keys they expect in config.json; its arrays go to
    model.safetensors under the names they expect. `more` holds arrays for separate files, by path without suffix.
    """

    arrays: Mapping[str, NDArray[Any]]
    documents: Mapping[str, Any] = field(default_factory=dict)
    foreign: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    folder: Path | None = None  # that they were read from

    def reading(self) -> AbstractContextManager[None]:
        """A context for reading documents later: errors name the folder."""
        return nullcontext() if self.folder is None else saying_which(self.folder)


class Model(ABC):
    """The result of training. `save(folder)` writes it; `firth.load(folder)` opens it.

    Models are immutable and can be shared between threads.
    """

    method: Method
    training: Mapping[str, Any]  # loss, speed, data fingerprint
    folder: Path | None = None  # where the model is stored, if it was loaded or saved

    @property
    def ordered(self) -> bool:
        """Whether vectors can be truncated to their first dimensions: the model was trained for it
        (SentenceEncoder.matryoshka_dims), or the dimensions are principal components (LSA, PCA, Distil, whitening)."""
        return bool(getattr(self.method, "matryoshka_dims", ""))

    @abstractmethod
    def parts(self) -> Parts:
        """The stored form of this model."""

    @classmethod
    @abstractmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> Model:
        """The inverse of `parts`."""

    def save(self, folder: str | PathLike[str], overwrite: bool = False) -> Path:
        """Write the model to a folder of config.json, safetensors and JSON files, atomically."""
        from firth.core.saved import save_model

        self.folder = save_model(self, as_path(folder), overwrite=overwrite)
        return self.folder

    def _repr_html_(self) -> str:
        from firth.core.card import card_html

        return card_html(self)


@runtime_checkable
class Embeds(Protocol):
    """Turns inputs into vectors."""

    def embed(self, inputs: Any, *, normalize: bool = False) -> NDArray[np.float32]:
        """Return one row per input; `normalize` scales the rows to length 1."""


@runtime_checkable
class TokenizesWords(Protocol):
    """Splits texts into words of a vocabulary."""

    def tokenize(self, text: str) -> list[str]:
        """Return the words of a text."""


@runtime_checkable
class LimitsTexts(Protocol):
    """Reads texts of a limited number of tokens."""

    @property
    def max_text_tokens(self) -> int:
        """The most tokens of a text, without special tokens."""


@runtime_checkable
class HasBase(Protocol):
    """Was trained on top of another model, which it contains."""

    @property
    def base(self) -> Model:
        """The other model."""


@runtime_checkable
class FineTuned(HasBase, Protocol):
    """A pre-trained network with a head for a task."""

    @property
    def max_length(self) -> int:
        """The most tokens of a text or pair, with special tokens."""


@runtime_checkable
class Adapted(Protocol):
    """May have been fine-tuned by low-rank adapters (LoRA), which are stored without the base model."""

    @property
    def adapter(self) -> Any:
        """The adapters, which are merged into the weights of this model; None if it has none."""

    def merged(self) -> Model:
        """Return the same model without adapters: it is stored with all its weights."""


def merged(model: Model) -> Model:
    """Return a model that is stored with all its weights: the model itself, unless it has adapters."""
    return model.merged() if isinstance(model, Adapted) and model.adapter is not None else model


def base_model(model: Model) -> Model:
    """The model that a fine-tuned or linear model was trained on; any other model itself."""
    return base_model(model.base) if isinstance(model, HasBase) else model


@runtime_checkable
class HasLabels(Protocol):
    """Knows the labels that it predicts."""

    @property
    def labels(self) -> Collection[str]:
        """The labels in the order of the outputs."""


@runtime_checkable
class ReadsColumns(Protocol):
    """Reads pairs of texts, and further columns of a table besides the texts."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of the further columns; empty if it reads texts only."""


@runtime_checkable
class HasHeads(Protocol):
    """Has some of the heads of its pre-training."""

    @property
    def heads(self) -> list[str]:
        """The names of the heads."""


@runtime_checkable
class HasPositions(Protocol):
    """Has vectors of the positions in a text."""

    @property
    def position_vectors(self) -> NDArray[np.float32] | None:
        """One row per position; None if positions are encoded otherwise."""


@runtime_checkable
class ExplainsVariance(Protocol):
    """Knows the variance of its dimensions."""

    @property
    def explained_variance(self) -> NDArray[np.float64]:
        """The share of the total variance of each dimension."""


@runtime_checkable
class FindsDocuments(Protocol):
    """Finds the documents of its training data that are nearest to a text."""

    def neighbors(self, text: str | Sequence[str], k: int = 10, metric: str = "cosine") -> Hits:
        """Return the `k` nearest documents."""


@runtime_checkable
class Predicts(Protocol):
    """Predicts labels of texts."""

    def predict(self, texts: Sequence[str], k: int = 1, threshold: float = 0.0) -> list[list[tuple[str, float]]]:
        """Return the k most probable labels of each text with at least `threshold` probability, best first."""


@runtime_checkable
class Estimates(Protocol):
    """Predicts a number for each text."""

    def estimate(self, texts: Sequence[Any]) -> NDArray[np.float32]:
        """Return one number per text or pair of texts."""


class TaggedWord(NamedTuple):
    """A word with its tag and the probability of the tag."""

    word: str
    tag: str
    probability: float


@runtime_checkable
class TagsWords(Protocol):
    """Predicts a tag for each word."""

    def tag(self, texts: Sequence[str | Sequence[str]]) -> list[list[TaggedWord]]:
        """Return the tagged words of each text or list of words."""


class Span(NamedTuple):
    """A span of a passage: `passage[start:end] == text`. All fields are empty if there is no answer."""

    text: str
    start: int
    end: int
    score: float  # sum of the start and end logits, minus that of "no answer" if the model can predict it


@runtime_checkable
class Answers(Protocol):
    """Finds the answer to a question in a passage."""

    def answer(self, questions: Sequence[str], passages: Sequence[str]) -> list[Span]:
        """Return one span per question and passage."""


@runtime_checkable
class HasVectors(Protocol):
    """Holds one or more named tables of vectors; the first is the main one."""

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """Tables by name: words, documents, users, items."""

    @property
    def vectors(self) -> Vectors:
        """The main table."""


class Attention(NamedTuple):
    """Attention weights of each layer and head, from queries to keys."""

    queries: list[str]
    keys: list[str]
    weights: NDArray[np.float32]  # (layers, heads, queries, keys); they sum to 1 over the keys
    segments: Sequence[int] = ()  # of a text pair: 0 for tokens of the first text, 1 for the second


class AttentionSteps(NamedTuple):
    """The intermediate results of one query of one head: softmax(q·k / √d) v."""

    query: NDArray[np.float32]  # (dim of a head,)
    keys: NDArray[np.float32]  # (keys, dim)
    values: NDArray[np.float32]  # (keys, dim)
    allowed: NDArray[np.bool_]  # keys that are not masked; a causal model masks later tokens
    scores: NDArray[np.float32]  # q·k
    scaled: NDArray[np.float32]  # / √dim
    weights: NDArray[np.float32]  # softmax over the allowed keys
    output: NDArray[np.float32]  # the weighted sum of the values


@runtime_checkable
class Attends(Protocol):
    """Exposes its attention weights."""

    def attention(self, text: str, other: str | None = None) -> Attention:
        """Return the self-attention of a text or text pair, or the cross-attention from `other`, its translation."""

    def attention_steps(
        self, text: str, other: str | None = None, *, layer: int, head: int, query: int
    ) -> AttentionSteps:
        """Return the intermediate results for one query of one head; layers, heads and queries are counted from 1."""


class WordsInContext(NamedTuple):
    """The words of a text, as the tokenizer splits them, with their contextual vectors."""

    words: list[str]
    offsets: list[tuple[int, int]]  # character offsets in the text, begin and end
    vectors: NDArray[np.float32]  # words × dim


class Occurrence(NamedTuple):
    """An occurrence of a word."""

    text: int  # index of the text
    begin: int  # character offsets
    end: int


class Senses(NamedTuple):
    """The contextual vectors of one word in several texts, per layer; layer 0 is the embedding."""

    word: str
    texts: list[str]
    occurrences: list[Occurrence]
    states: NDArray[np.float32]  # (layers + 1, occurrences, dim)
    distances: NDArray[np.float64]  # (layers + 1, occurrences, occurrences): 1 − cosine
    others: NDArray[
        np.float64
    ]  # (layers + 1,): mean distance between other words of different texts; NaN if there are none


@runtime_checkable
class Contextual(Protocol):
    """Computes contextual word vectors from any of its layers."""

    def word_vectors(
        self,
        texts: Sequence[str],
        layers: Sequence[int] = (-1,),
        combine: str = "mean",
        subword_pooling: str = "mean",
        long: str = "refuse",
    ) -> list[WordsInContext]:
        """Return the words of each text with their vectors; `long` says what happens to texts over the limit."""

    def static(self, data: Any, words: int | Sequence[str] = 20_000, **settings: Any) -> Vectors:
        """Return one vector per word: the mean over its occurrences in `data`."""

    def senses(self, texts: Sequence[str], word: str, subword_pooling: str = "mean") -> Senses:
        """Return the vectors of a word in each text and their distances, per layer."""


@runtime_checkable
class HasStates(Protocol):
    """Exposes the vectors of its tokens in every layer."""

    def states(self, text: str) -> NDArray[np.float32]:
        """Return the token vectors, (layers + 1, tokens, dim), beginning with the input."""


@runtime_checkable
class Fills(Protocol):
    """Predicts masked tokens."""

    def fill(self, text: str, k: int = 5, other: str | None = None) -> list[list[tuple[str, float]]]:
        """Return the k most probable tokens for each [MASK] of the text and of `other`, the second text of a pair."""


@runtime_checkable
class PredictsNextSentence(Protocol):
    """Predicts whether a text follows another one, if it has the head for it."""

    @property
    def heads(self) -> list[str]:
        """The names of the heads of its pre-training."""

    def next_sentence(self, firsts: Sequence[str], seconds: Sequence[str]) -> NDArray[np.float32]:
        """Return the probability that each second text follows the first one in the same document."""


class Candidate(NamedTuple):
    """A candidate for the next token."""

    id: int
    text: str
    probability: float  # under the model
    chance: float  # of being sampled, after temperature, top_k and top_p


class GeneratedToken(NamedTuple):
    """One generated token, and its candidates, most probable first."""

    token: Candidate
    candidates: list[Candidate]


@runtime_checkable
class GeneratesTokens(Protocol):
    """Generates a text token by token, with the distribution of each: after a prompt, or from a source text."""

    def generate_tokens(
        self, prompt: str = "", generated: Sequence[int] = (), tokens: int = 1, k: int = 10, **settings: Any
    ) -> list[GeneratedToken]:
        """Return generated tokens, each with its `k` best candidates; `generated` are tokens after the prompt."""

    def token_probabilities(self, prompt: str, tokens: Sequence[int]) -> list[Candidate]:
        """Return the probability of each of the given tokens after the prompt."""


@runtime_checkable
class Generates(GeneratesTokens, Protocol):
    """Continues text."""

    def generate(self, prompt: str = "", tokens: int | None = None, **settings: Any) -> Iterator[str]:
        """Yield text as it is generated, up to `tokens` tokens; by default 200, or what fits into the context."""


@runtime_checkable
class Chats(Protocol):
    """Answers messages with its chat template."""

    def chat(self, messages: Sequence[Mapping[str, Any]], tokens: int | None = None, **settings: Any) -> Iterator[str]:
        """Yield the answer to messages, each with a "role" and "content", as it is generated."""


@runtime_checkable
class DescribesEngine(Protocol):
    """Says what computes it."""

    @property
    def engine_description(self) -> str:
        """Which engine computes the network, and why."""


@runtime_checkable
class Translates(Protocol):
    """Maps texts to texts: translation, summarization."""

    def translate(
        self,
        texts: Sequence[str],
        beam: int | None = None,
        length_penalty: float | None = None,
        tokens: int | None = None,
    ) -> list[str]:
        """Return one text per input text; settings that are not given are the model's."""


@runtime_checkable
class Inverts(Protocol):
    """Reconstructs inputs from their codes."""

    def reconstruct(self, inputs: Any) -> Any:
        """Return the reconstruction of each input, in the type of `inputs`."""


@runtime_checkable
class Interpolates(Protocol):
    """Interpolates between rows in its latent space."""

    def interpolate(self, data: Any, first: int, second: int, steps: int = 9) -> Any:
        """Return rows decoded along the line between the codes of two rows of `data`."""


@runtime_checkable
class Samples(Protocol):
    """Samples new rows from the learned distribution."""

    def sample(self, n: int = 1, *, seed: int = 1, noise: bool = True) -> Any:
        """Return `n` new rows; equal seeds give equal rows. Without `noise`, a row is the mean for its code."""


@runtime_checkable
class HasMatrix(Protocol):
    """Holds a sparse count matrix: documents × words, or words × contexts."""

    @property
    def matrix(self) -> Any:
        """The matrix, in scipy's CSR format."""

    @property
    def matrix_keys(self) -> tuple[Sequence[str], Sequence[str]]:
        """The keys of its rows and of its columns."""


History = Sequence[str] | Mapping[str, float]  # items, or items with their weights or ratings


class Histories(NamedTuple):
    """User histories: `items[starts[u]:starts[u + 1]]` are the item rows of user u."""

    starts: NDArray[np.int64]
    items: NDArray[np.int32]


@runtime_checkable
class AveragesWords(Protocol):
    """Embeds a text as the mean of its word vectors."""

    @property
    def smoothing(self) -> float:
        """The smoothing of `embed` where none is given; 0 is the plain mean."""

    def with_smoothing(self, smoothing: float) -> Model:
        """Return the same model with another default of `smoothing`."""

    def with_context_transform(self, data: Any) -> Model:
        """Return the same model with a transform for `vector_from_contexts`, learned from a corpus."""

    def vector_from_contexts(self, word: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector for a word from texts in which it occurs."""


@runtime_checkable
class HasHistories(Protocol):
    """Has the history of each user."""

    def histories(self) -> Mapping[str, Mapping[str, float]]:
        """Return the items of each user with their values."""


@runtime_checkable
class Recommends(Protocol):
    """Recommends items to users."""

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The tables `items` and `users`."""

    @property
    def seen(self) -> Histories:
        """The history of each user in the training data."""

    def fold_in(self, histories: Sequence[History]) -> NDArray[np.float32]:
        """Return user vectors for histories of users unseen in training, for `scores`."""

    def user_rows(self, users: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of users of the training data, for `scores`."""

    def scores(self, users: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return predicted scores, users × items."""

    def recommend(self, user: str, k: int = 10, *, seen: bool = False) -> Hits:
        """Return the `k` best items for a user of the training data; `seen` includes items of the history."""

    def recommend_for(self, history: History, k: int = 10, *, seen: bool = False) -> Hits:
        """Return the `k` best items for a user with this history."""


@runtime_checkable
class Explores(Recommends, Protocol):
    """Recommends with the uncertainty about a user: `recommend` and `recommend_for` take `explore` and `seed`."""

    def uncertainty(self, histories: Sequence[History]) -> NDArray[np.float32]:
        """Return the standard deviations of the codes of these histories."""


@runtime_checkable
class StartsCold(Recommends, Protocol):
    """Recommends new items, and to new users, by their features: `recommend_for` takes `features`."""

    def with_items(self, features: Any) -> Any:
        """Return the model with new items, whose vectors are computed from their features."""


@runtime_checkable
class Rates(Protocol):
    """Predicts ratings."""

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The tables `items` and `users`."""

    @property
    def mean(self) -> float:
        """The mean rating of the training data."""

    def rate(self, users: Sequence[str], items: Sequence[str]) -> NDArray[np.float32]:
        """Return the predicted rating of each pair of user and item."""
