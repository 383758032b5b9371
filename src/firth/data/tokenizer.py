"""Word tokenizers, by name or as a function. The rules are in `firth.kernels.text`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from firth.core.embedding import is_token_list
from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.functions import name_of, plain
from firth.kernels import text as kernel

NATIVE = ("words", "whitespace", "characters")
SEGMENTERS = ("jieba",)
TOKENIZERS = (*NATIVE, *SEGMENTERS)


class Tokenizer(Protocol):
    """A named function from a text to its tokens."""

    @property
    def name(self) -> str:
        """The name that is saved with a model."""

    def __call__(self, text: str) -> list[str]: ...


@dataclass(frozen=True)
class NativeTokenizer:
    """The tokenizers "words", "whitespace" and "characters"; the same native code encodes corpora on all cores."""

    name: str
    lowercase: bool = True

    def __call__(self, text: str) -> list[str]:
        return kernel.tokenize(text, self.name, self.lowercase)


@dataclass(frozen=True)
class Jieba:
    """Segments Chinese text with the package jieba; punctuation and spaces are left out."""

    segment: Callable[[str], list[str]]
    version: str
    lowercase: bool = True
    name: str = "jieba"

    def __call__(self, text: str) -> list[str]:
        words = self.segment(text.lower() if self.lowercase else text)
        return [word for word in words if any(c.isalnum() for c in word)]


@dataclass(frozen=True)
class FunctionTokenizer:
    """Wraps any function from a text to its tokens, and checks its results. Lowercasing is up to the function."""

    function: Callable[[str], Any]

    @property
    def name(self) -> str:
        """The module and name of the function."""
        return name_of(self.function)

    def __call__(self, text: str) -> list[str]:
        tokens = self.function(text)
        if not is_token_list(tokens):
            raise FirthError(
                "invalid_type",
                "A tokenizer must return a list of str; {name} returned {got!r:.60}.",
                name=self.name,
                got=tokens,
            )
        return [token for token in tokens if token]  # empty tokens are dropped


class Splitting(NamedTuple):
    """The tokenizer settings that texts were split with."""

    tokenizer: str | Callable[[str], list[str]]
    lowercase: bool

    def split(self) -> Tokenizer:
        """Return the tokenizer with these settings."""
        return tokenizer(self.tokenizer, self.lowercase)

    def __str__(self) -> str:
        case = "" if callable(self.tokenizer) else f" and lowercase={'on' if self.lowercase else 'off'}"
        return f"tokenizer={plain(self.tokenizer)}{case}"


def tokenizer(name: str | Callable[[str], list[str]] = "words", lowercase: bool = True) -> Tokenizer:
    """Return the tokenizer of this name (words, whitespace, characters, or jieba if installed), or wrap a function."""
    if not isinstance(name, str):
        return FunctionTokenizer(name)
    if name in NATIVE:
        return NativeTokenizer(name, lowercase)
    if name not in SEGMENTERS:
        raise FirthError(
            "invalid_value",
            "{option} must be one of {choices}; got {got!r}.",
            option="tokenizer",
            choices=", ".join(TOKENIZERS),
            got=name,
        )
    try:
        package = importlib.import_module(name)
    except ImportError:
        raise missing_package(f"tokenizer={name} needs", name) from None
    return Jieba(package.lcut, str(getattr(package, "__version__", "")), lowercase)
