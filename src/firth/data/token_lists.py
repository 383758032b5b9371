"""Documents given as lists of tokens, which methods for words and documents accept besides texts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from firth.core.embedding import is_token_list
from firth.core.errors import FirthError
from firth.data import readers
from firth.data.blocks import Tags
from firth.data.corpus import Corpus, IterableSource, Spilled, is_document, is_table_like


@dataclass(frozen=True)
class TokenLists:
    """Documents that are lists of tokens, or tuples (key, tokens[, tags])."""

    items: Iterable[Any]

    def documents(self, keys: bool) -> Iterator[tuple[list[str], int, list[str], list[Tags]]]:
        """Yield documents for `corpus_encoding.token_blocks`; those without a key are numbered from 1."""
        for number, item in enumerate(self.items):
            keyed = has_key(item)
            tokens = item[1] if keyed else item
            check_tokens(tokens, number)
            if not keys:
                yield tokens, 0, [], []
                continue
            key = item[0] if keyed and item[0] is not None else str(number + 1)
            tags = readers.tags_of(item[2:], f"document {key!r}") if keyed else ()
            yield tokens, 0, [key], [tags]


def check_tokens(tokens: Any, number: int) -> None:
    """Refuse a document that is not a list of str."""
    if not is_token_list(tokens):
        raise FirthError(
            "invalid_type",
            "Document {number:,} must be a list of str, like the first one; got {got!r:.60}.",
            number=number + 1,
            got=tokens,
        )


def has_key(item: Any) -> bool:
    """Whether an item is (key, tokens) or (key, tokens, tags)."""
    return isinstance(item, tuple) and len(item) in (2, 3) and isinstance(item[1], (list, tuple))


def is_tokenized(item: Any) -> bool:
    """Whether a document is a list of tokens; a pair of two str is a (key, text) document."""
    return not is_document(item) and (isinstance(item, (list, tuple)) or is_token_list(item))


def corpus_or_token_lists(data: Any) -> Corpus | TokenLists:
    """Return `data` as a Corpus, or as TokenLists if its first document is a list of tokens."""
    if isinstance(data, Corpus):
        return lists_in(data) or data
    if isinstance(data, TokenLists):
        return data
    if is_table_like(data):
        is_column = not hasattr(data, "columns") and not hasattr(data, "schema")
        values = (data.to_list if hasattr(data, "to_list") else data.to_pylist)() if is_column else []
        return TokenLists(values) if values and is_tokenized(values[0]) else Corpus(data)
    if not isinstance(data, Iterable) or isinstance(data, (str, bytes, bytearray, Mapping, os.PathLike)):
        return Corpus(data)
    first, items = peek_first(data)
    return TokenLists(items) if is_tokenized(first) else Corpus(items)


def lists_in(corpus: Corpus) -> TokenLists | None:
    """Return the token lists of a corpus with a single iterable of them; iterators are not inspected."""
    sources = corpus.sources
    items = sources[0].items if len(sources) == 1 and isinstance(sources[0], IterableSource) else None
    if items is None or isinstance(items, Spilled) or not is_tokenized(next(iter(items), None)):
        return None
    return TokenLists(items)


def peek_first(items: Iterable[Any]) -> tuple[Any, Iterable[Any]]:
    """Return the first item, None if there is none, and an iterable of all items."""
    if not isinstance(items, Iterator):
        return next(iter(items), None), items
    first_items = list(next(zip(items), ()))
    return (first_items[0] if first_items else None), chain(first_items, items)
