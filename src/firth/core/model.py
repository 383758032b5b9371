"""`Model`: what a method learned, complete once it exists; and the small protocols of what it can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from firth.core.method import Method
    from firth.core.vectors import Vectors


@dataclass(frozen=True)
class Parts:
    """A model taken apart for storage: arrays go to safetensors, the rest to JSON files by name.

    A network that other libraries know gives `foreign`, the keys they look for in config.json, and its arrays go to
    model.safetensors under their names: the folder is then theirs too.
    """

    arrays: Mapping[str, NDArray[Any]]
    documents: Mapping[str, Any] = field(default_factory=dict)
    foreign: Mapping[str, Any] = field(default_factory=dict)


class Model(ABC):
    """What was learned. `save(folder)` writes it; `firth.load(folder)` gives it back."""

    method: Method
    training: Mapping[str, Any]  # loss, speed, data fingerprint: how it came to be

    @abstractmethod
    def parts(self) -> Parts:
        """Everything needed to build this model again."""

    @classmethod
    @abstractmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> Model:
        """The inverse of `parts`."""

    def save(self, folder: str | PathLike[str], overwrite: bool = False) -> Path:
        """Writes a folder of config.json, safetensors and JSON; whole or not at all."""
        from firth.core.storage import save_model

        return save_model(self, Path(folder), overwrite=overwrite)


@runtime_checkable
class Embeds(Protocol):
    """Turns inputs into vectors."""

    def embed(self, inputs: Sequence[str]) -> NDArray[np.float32]:
        """One row an input."""


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


@runtime_checkable
class Attends(Protocol):
    """Shows where it looks."""

    def attention(self, text: str, other: str | None = None) -> Attention:
        """Of a text to itself, or from `other` (a translation) to the text."""


@runtime_checkable
class Generates(Protocol):
    """Writes text."""

    def generate(self, prompt: str = "", tokens: int = 100, **settings: Any) -> Iterator[str]:
        """Piece by piece, as it is written."""


@runtime_checkable
class Translates(Protocol):
    """Turns texts into others: translations, summaries."""

    def translate(self, texts: Sequence[str], beam: int = 4, length_penalty: float = 0.6) -> list[str]:
        """One for each."""


@runtime_checkable
class HasMatrix(Protocol):
    """Keeps the sparse matrix that it counted: documents by words, or words by contexts."""

    @property
    def matrix(self) -> Any:
        """scipy.sparse, compressed rows."""

    @property
    def matrix_keys(self) -> tuple[Sequence[str], Sequence[str]]:
        """What its rows and its columns stand for."""
