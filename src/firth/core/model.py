"""`Model`: what a method learned, complete once it exists; and the small protocols of what it can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from firth.core.storage import saying_which

if TYPE_CHECKING:
    from firth.core.method import Method
    from firth.core.vectors import Hits, Vectors


@dataclass(frozen=True)
class Parts:
    """A model taken apart for storage: arrays go to safetensors, the rest to JSON files by name.

    A network that other libraries know gives `foreign`, the keys they look for in config.json, and its arrays go to
    model.safetensors under their names: the folder is then theirs too. `more` are arrays that must stand in a file of
    their own, by its path without the suffix.
    """

    arrays: Mapping[str, NDArray[Any]]
    documents: Mapping[str, Any] = field(default_factory=dict)
    foreign: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    folder: Path | None = None  # where they were read from

    def reading(self) -> AbstractContextManager[None]:
        """Around what is read of the documents later: what is wrong with them is told with the folder."""
        return nullcontext() if self.folder is None else saying_which(self.folder)


class Model(ABC):
    """What was learned. `save(folder)` writes it; `firth.load(folder)` gives it back.

    Immutable: threads can share it.
    """

    method: Method
    training: Mapping[str, Any]  # loss, speed, data fingerprint: how it came to be

    @property
    def ordered(self) -> bool:
        """Whether the first dimensions of its vectors matter most, so that vectors may be shortened to them: it was
        trained so (Sentence.dims), or they are principal components, as of LSA, PCA, Distil and whitened models."""
        return bool(getattr(self.method, "matryoshka_dims", ""))

    @abstractmethod
    def parts(self) -> Parts:
        """Everything needed to build this model again."""

    @classmethod
    @abstractmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> Model:
        """The inverse of `parts`."""

    def save(self, folder: str | PathLike[str], overwrite: bool = False) -> Path:
        """Writes a folder of config.json, safetensors and JSON; whole or not at all."""
        from firth.core.saved import save_model

        return save_model(self, Path(folder), overwrite=overwrite)


@runtime_checkable
class Embeds(Protocol):
    """Turns inputs into vectors."""

    def embed(self, inputs: Sequence[str]) -> NDArray[np.float32]:
        """One row an input."""


@runtime_checkable
class Predicts(Protocol):
    """Gives texts their labels."""

    def predict(self, texts: Sequence[str], k: int = 1, threshold: float = 0.0) -> list[list[tuple[str, float]]]:
        """The k most probable labels of each text with at least `threshold` probability, best first."""


@runtime_checkable
class Estimates(Protocol):
    """Gives texts a number."""

    def estimate(self, texts: Sequence[Any]) -> NDArray[np.float32]:
        """One for each text, or pair of texts."""


class TaggedWord(NamedTuple):
    """A word of a text, its tag and how probable that is."""

    word: str
    tag: str
    probability: float


@runtime_checkable
class TagsWords(Protocol):
    """Gives each word a tag."""

    def tag(self, texts: Sequence[str | Sequence[str]]) -> list[list[TaggedWord]]:
        """The words of each text, or list of words."""


class Span(NamedTuple):
    """A stretch of a passage: `passage[start:end] == text`. Without an answer all are empty."""

    text: str
    start: int
    end: int
    score: float  # the logits of its two ends, less those of "no answer" where the model knows of it


@runtime_checkable
class Answers(Protocol):
    """Finds the answer to a question in a passage."""

    def answer(self, questions: Sequence[str], passages: Sequence[str]) -> list[Span]:
        """One for each question and the passage beside it."""


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
    """Where a network looks: for each layer and head, how much of each key goes into each query."""

    queries: list[str]
    keys: list[str]
    weights: NDArray[np.float32]  # (layers, heads, queries, keys); over the keys they sum to 1
    segments: Sequence[int] = ()  # of a pair that is read as one: 0 for the tokens of the first text, 1 for the second


class AttentionSteps(NamedTuple):
    """How one head mixes what one token looks at: softmax(q·k / √d) v, number by number."""

    query: NDArray[np.float32]  # dim of a head
    keys: NDArray[np.float32]  # (keys, dim)
    values: NDArray[np.float32]  # (keys, dim)
    allowed: NDArray[np.bool_]  # the keys it may look at: a language model's tokens don't see what comes after
    scores: NDArray[np.float32]  # q·k
    scaled: NDArray[np.float32]  # / √dim
    weights: NDArray[np.float32]  # softmax over the allowed keys
    output: NDArray[np.float32]  # the values, mixed by the weights


@runtime_checkable
class Attends(Protocol):
    """Shows where it looks."""

    def attention(self, text: str, other: str | None = None) -> Attention:
        """Of a text to itself, from `other` (a translation) to the text, or of both as one (BERT)."""

    def attention_steps(
        self, text: str, other: str | None = None, *, layer: int, head: int, query: int
    ) -> AttentionSteps:
        """How those weights came about, for one query of one head; layers, heads and queries are counted from 1."""


class WordsInContext(NamedTuple):
    """A text's words, as the model's tokenizer cuts them, with the vectors they have there."""

    words: list[str]
    offsets: list[tuple[int, int]]  # characters of the text, begin and end
    vectors: NDArray[np.float32]  # words × dim


class Occurrence(NamedTuple):
    """A word in a text."""

    text: int  # which, from 0
    begin: int  # its characters there
    end: int


class Senses(NamedTuple):
    """One word in several places, as each layer sees it; layer 0 is the input."""

    word: str
    texts: list[str]
    occurrences: list[Occurrence]
    states: NDArray[np.float32]  # (layers + 1, occurrences, dim)
    distances: NDArray[np.float64]  # (layers + 1, occurrences, occurrences): 1 − cosine
    others: NDArray[np.float64]  # layers + 1: the mean distance between other words of different texts; NaN without any


@runtime_checkable
class Contextual(Protocol):
    """Gives a word the vector that it has where it stands, from any of its layers."""

    def word_vectors(
        self,
        texts: Sequence[str],
        layers: Sequence[int] = (-1,),
        combine: str = "mean",
        subword_pooling: str = "mean",
        windows: bool = False,
    ) -> list[WordsInContext]:
        """Of each text, its words with their vectors."""

    def static(self, data: Any, words: int | Sequence[str] = 20_000, **settings: Any) -> Vectors:
        """One vector a word: the mean over the places where it stands in `data`."""

    def senses(self, texts: Sequence[str], word: str, subword_pooling: str = "mean") -> Senses:
        """How far apart the word's vectors are, layer by layer."""


@runtime_checkable
class Fills(Protocol):
    """Fills blanks."""

    def fill(self, text: str, k: int = 5, other: str | None = None) -> list[list[tuple[str, float]]]:
        """For each [MASK] of the text (and of `other`, read behind it), the k most probable tokens, best first."""


class Candidate(NamedTuple):
    """A token that may come next."""

    id: int
    text: str
    probability: float  # as the model has it
    chance: float  # of being chosen: with temperature, top_k and top_p


class GeneratedToken(NamedTuple):
    """One step of writing: the token that was chosen, and those it was chosen from, likeliest first."""

    token: Candidate
    candidates: list[Candidate]


@runtime_checkable
class Generates(Protocol):
    """Writes text."""

    def generate(self, prompt: str = "", tokens: int | None = None, **settings: Any) -> Iterator[str]:
        """Piece by piece, as it is written: so many tokens at most; if none is said, 200 or what there is room for."""

    def generate_tokens(
        self, prompt: str = "", generated: Sequence[int] = (), tokens: int = 1, k: int = 10, **settings: Any
    ) -> list[GeneratedToken]:
        """Token by token, with the `k` likeliest of each step; `generated` are tokens that follow the prompt."""

    def token_probabilities(self, prompt: str, tokens: Sequence[int]) -> list[Candidate]:
        """Tokens that stand after the prompt, with the probability that each had there."""


@runtime_checkable
class Translates(Protocol):
    """Turns texts into others: translations, summaries."""

    def translate(self, texts: Sequence[str], beam: int = 4, length_penalty: float = 0.6) -> list[str]:
        """One for each."""


@runtime_checkable
class Inverts(Protocol):
    """Makes inputs again from their codes."""

    def reconstruct(self, inputs: Any) -> Any:
        """What is left of each when only its code is known; of the kind of `inputs`, equally many."""


@runtime_checkable
class Interpolates(Protocol):
    """Has a space of codes in which one can walk from row to row."""

    def interpolate(self, data: Any, first: int, second: int, steps: int = 9) -> Any:
        """Rows on the straight line between the codes of two rows of `data`."""


@runtime_checkable
class Samples(Protocol):
    """Makes up rows like those it learned from."""

    def sample(self, n: int = 1, *, seed: int = 1) -> Any:
        """`n` new ones, the same for the same seed."""


@runtime_checkable
class HasMatrix(Protocol):
    """Keeps the sparse matrix that it counted: documents by words, or words by contexts."""

    @property
    def matrix(self) -> Any:
        """scipy.sparse, compressed rows."""

    @property
    def matrix_keys(self) -> tuple[Sequence[str], Sequence[str]]:
        """What its rows and its columns stand for."""


History = Sequence[str] | Mapping[str, float]  # items, or items with how much each was used or how it was rated


class Histories(NamedTuple):
    """`items[starts[u]:starts[u + 1]]` are the rows of the items that user u had."""

    starts: NDArray[np.int64]
    items: NDArray[np.int32]


@runtime_checkable
class Recommends(Protocol):
    """Tells what a user may like."""

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """`items` and `users`."""

    @property
    def seen(self) -> Histories:
        """Which items each user had when it was trained."""

    def fold_in(self, histories: Sequence[History]) -> NDArray[np.float32]:
        """Rows for users that it was not trained on, from what they had; for `scores`."""

    def user_rows(self, users: Sequence[str]) -> NDArray[np.float32]:
        """Rows of users that it was trained on, for `scores`."""

    def scores(self, users: NDArray[np.float32]) -> NDArray[np.float32]:
        """How much each user may like each item: users × items."""

    def recommend(self, user: str, k: int = 10, *, seen: bool = False) -> Hits:
        """The `k` best items for a user that it was trained on; with `seen`, also those the user had."""

    def recommend_for(self, history: History, k: int = 10, *, seen: bool = False) -> Hits:
        """The `k` best items for someone with this history."""


@runtime_checkable
class Rates(Protocol):
    """Predicts ratings."""

    @property
    def mean(self) -> float:
        """Of the ratings it was trained on."""

    def rate(self, users: Sequence[str], items: Sequence[str]) -> NDArray[np.float32]:
        """The rating that each user would give to the item beside it."""
