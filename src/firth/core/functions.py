"""Functions as option values. A saved model stores only their name; the function is passed again to `load`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.core.method import Method

MARK = "callable:"  # prefix of the name in saved options


@dataclass(frozen=True)
class MissingTokenizer:
    """Placeholder for a tokenizer function that was not passed to `load`; calling it raises an error."""

    name: str

    def __call__(self, text: str) -> list[str]:
        raise FirthError(
            "missing_tokenizer",
            "This model was trained with the tokenizer function {name!r}, which is not stored in the folder. Pass it "
            "in Python, firth.load(folder, tokenizer={name}), or embed lists of tokens.",
            name=self.name,
        )


def check_tokenizer(method: Method) -> None:
    """Raise an error if the tokenizer function was not passed to `load`."""
    tokenizer = tokenizer_function(method)
    if isinstance(tokenizer, MissingTokenizer):
        tokenizer("")


def lacks_tokenizer(method: Method) -> bool:
    """Return whether a loaded method needs a tokenizer function that was not passed to `load`."""
    return isinstance(tokenizer_function(method), MissingTokenizer)


def tokenizer_function(method: Method) -> Callable[[str], list[str]] | None:
    """The function that the method splits texts with; None if it has none."""
    tokenizer = getattr(method, "tokenizer", None)
    return tokenizer if callable(tokenizer) else None


def name_of(function: Any) -> str:
    """The name of a function: its attribute `name`, its own name, or that of its class; "" if it has none."""
    own = getattr(function, "name", None)
    if isinstance(own, str) and own:
        return own
    if isinstance(function, functools.partial):
        return ""
    qualname = getattr(function, "__qualname__", None) or type(function).__qualname__
    last: str = qualname.rpartition("<locals>.")[2]  # the enclosing function may differ between scripts
    return "" if "<lambda>" in last else last


def plain(value: Any) -> Any:
    """The stored form of an option value."""
    return MARK + name_of(value) if callable(value) else value


def restored(options: Mapping[str, Any], tokenizer: Any, where: Any) -> dict[str, Any]:
    """Stored options with the tokenizer function, or with a placeholder if none was passed."""
    saved = options.get("tokenizer")
    if not isinstance(saved, str) or not saved.startswith(MARK):
        refuse_tokenizer(tokenizer, where, saved)
        return dict(options)
    name = saved.removeprefix(MARK)
    if tokenizer is not None and name_of(tokenizer) != name:
        raise FirthError(
            "invalid_tokenizer",
            "{folder} was trained with the tokenizer function {expected!r}; got {got!r}. Pass the function it was "
            "trained with, under the same name.",
            folder=where,
            expected=name,
            got=name_of(tokenizer),
        )
    return {**options, "tokenizer": MissingTokenizer(name) if tokenizer is None else tokenizer}


def refuse_tokenizer(tokenizer: Any, where: Any, own: Any = None) -> None:
    """Raise an error if a tokenizer is passed for a model that was not trained with a function."""
    if tokenizer is not None:
        raise FirthError(
            "invalid_tokenizer",
            "{folder} has its own tokenizer ({expected}), not a function. Omit the tokenizer argument.",
            folder=where,
            expected=own or "stored with it",
        )
