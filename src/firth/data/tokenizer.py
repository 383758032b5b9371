"""Text to tokens, by name. The rules stand in `firth.kernels.text`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from firth.core.errors import FirthError
from firth.core.extras import missing_package
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


def tokenizer(name: str = "words", lowercase: bool = True) -> Tokenizer:
    """The tokenizer of that name: words, whitespace, characters, or jieba where that package is installed."""
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
