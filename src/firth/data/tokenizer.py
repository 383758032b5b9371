"""Text to tokens, by name or by a function. The rules stand in `firth.kernels.text`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.functions import name_of, plain
from firth.kernels import text as kernel

NATIVE = ("words", "whitespace", "characters")
SEGMENTERS = ("jieba",)
TOKENIZERS = (*NATIVE, *SEGMENTERS)


class Tokenizer(Protocol):
    """Anything with a name that turns a text into tokens."""

    @property
    def name(self) -> str: ...

    def __call__(self, text: str) -> list[str]: ...


@dataclass(frozen=True)
class NativeTokenizer:
    """ "words", "whitespace" or "characters"; whole corpora go through the same code on all cores."""

    name: str
    lowercase: bool = True

    def __call__(self, text: str) -> list[str]:
        return kernel.tokenize(text, self.name, self.lowercase)


@dataclass(frozen=True)
class Jieba:
    """Chinese words, by the package jieba; punctuation and spaces are left out."""

    segment: Callable[[str], list[str]]
    version: str
    lowercase: bool = True
    name: str = "jieba"

    def __call__(self, text: str) -> list[str]:
        words = self.segment(text.lower() if self.lowercase else text)
        return [word for word in words if any(c.isalnum() for c in word)]


@dataclass(frozen=True)
class FunctionTokenizer:
    """Any function from a text to its tokens, whose answers are checked. It folds case itself where it wants to."""

    function: Callable[[str], Any]

    @property
    def name(self) -> str:
        return name_of(self.function)

    def __call__(self, text: str) -> list[str]:
        tokens = self.function(text)
        if not is_token_list(tokens):
            raise FirthError(
                "invalid_type",
                "A tokenizer must give a list of str; {name} gave {got!r:.60}.",
                name=self.name,
                got=tokens,
            )
        return [token for token in tokens if token]  # an empty one is none


class Splitting(NamedTuple):
    """How texts were split."""

    tokenizer: str | Callable[[str], list[str]]
    lowercase: bool

    def split(self) -> Tokenizer:
        return tokenizer(self.tokenizer, self.lowercase)

    def __str__(self) -> str:
        case = "" if callable(self.tokenizer) else f" and lowercase={'on' if self.lowercase else 'off'}"
        return f"tokenizer={plain(self.tokenizer)}{case}"


def is_token_list(item: Any) -> bool:
    """A list of str; a tuple or an array does too."""
    is_sequence = isinstance(item, (list, tuple)) or (hasattr(item, "dtype") and getattr(item, "ndim", 0) == 1)
    return is_sequence and all(isinstance(token, str) for token in item)


def tokenizer(name: str | Callable[[str], list[str]] = "words", lowercase: bool = True) -> Tokenizer:
    """The tokenizer of that name: words, whitespace, characters, or jieba where that package is installed; or a
    function."""
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
