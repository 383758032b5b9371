"""Functions as values of options. A saved model keeps their name alone: who loads it passes the function again."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firth.core.errors import FirthError

MARK = "callable:"  # before the name, where options are saved and shown


@dataclass(frozen=True)
class MissingTokenizer:
    """Stands for the function that a loaded model names and that was not passed to `load`. Calling it is refused."""

    name: str

    def __call__(self, text: str) -> list[str]:
        raise FirthError(
            "missing_tokenizer",
            "This model splits text by the Python function {name!r}, which a model folder cannot hold. In Python, pass "
            "it again: firth.load(folder, tokenizer={name}); or embed lists of tokens.",
            name=self.name,
        )


def check_tokenizer(method: Any) -> None:
    """Refuses raw text where the function that splits it was not passed."""
    if lacks_tokenizer(method):
        method.tokenizer("")


def lacks_tokenizer(method: Any) -> bool:
    return isinstance(getattr(method, "tokenizer", None), MissingTokenizer)


def name_of(function: Any) -> str:
    """What a function is known by: its attribute `name`, its own name, or that of its class; "" for a nameless one."""
    own = getattr(function, "name", None)
    if isinstance(own, str) and own:
        return own
    if isinstance(function, functools.partial):
        return ""
    found = getattr(function, "__qualname__", None) or type(function).__qualname__
    last: str = found.rpartition("<locals>.")[2]  # where a function was defined may differ from script to script
    return "" if "<lambda>" in last else last


def plain(value: Any) -> Any:
    """An option's value as it is saved and shown."""
    return MARK + name_of(value) if callable(value) else value


def restored(options: Mapping[str, Any], tokenizer: Any, where: Any) -> dict[str, Any]:
    """Saved options with their function in its place, or with what stands for it where none was passed."""
    saved = options.get("tokenizer")
    if not isinstance(saved, str) or not saved.startswith(MARK):
        refuse_tokenizer(tokenizer, where, saved)
        return dict(options)
    name = saved.removeprefix(MARK)
    if tokenizer is not None and name_of(tokenizer) != name:
        raise FirthError(
            "invalid_tokenizer",
            "{folder} was trained with the tokenizer {expected!r}; got {got!r}. Pass the function it was trained with, "
            "under the same name.",
            folder=where,
            expected=name,
            got=name_of(tokenizer),
        )
    return {**options, "tokenizer": MissingTokenizer(name) if tokenizer is None else tokenizer}


def refuse_tokenizer(tokenizer: Any, where: Any, own: Any = None) -> None:
    """Refuses a function for a model that was not trained with one: it is never replaced."""
    if tokenizer is not None:
        raise FirthError(
            "invalid_tokenizer",
            "{folder} splits text by its own tokenizer ({expected}), not by a function; leave tokenizer out.",
            folder=where,
            expected=own or "stored with it",
        )
