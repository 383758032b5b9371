"""`Vocabulary`: tokens with their ids and counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.errors import FirthError
from firth.core.notebook import ShowsRows


def automatic_min_count(tokens: int) -> int:
    """Return the default min_count: 5, as in word2vec, from 400,000 tokens on, and 1 below 100,000.

    A small corpus would lose most of its words with 5 (benchmarks/small_data.py).
    """
    return min(5, 1 + tokens // 100_000)


class Vocabulary(ShowsRows):
    """Tokens by id, in order of decreasing count, with ties in order of their UTF-8 bytes.

    `counts` are the numbers of occurrences in the text. `dropped_types` and `dropped_tokens` count what `min_count` and
    the size limit left out. Immutable, so threads can share it.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        counts: ArrayLike,
        *,
        min_count: int = 1,
        dropped_types: int = 0,
        dropped_tokens: int = 0,
    ) -> None:
        self.tokens = tokens
        self.counts: NDArray[np.int64] = np.asarray(counts, dtype=np.int64)
        self.min_count = min_count
        self.dropped_types = dropped_types
        self.dropped_tokens = dropped_tokens
        self._ids: dict[str, int] | None = None
        if self.counts.shape != (len(tokens),):
            raise FirthError(
                "damaged_model",
                "A vocabulary must have one count per token; got {got:,} counts for {tokens:,} tokens.",
                got=self.counts.size,
                tokens=len(tokens),
            )

    @property
    def ids(self) -> Mapping[str, int]:
        """The id of each token, computed at the first use."""
        if self._ids is None:
            self._ids = {token: id for id, token in enumerate(self.tokens)}
        return self._ids

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self.ids

    def id(self, token: str) -> int | None:
        """Return the id of a token, None if it is not in the vocabulary."""
        return self.ids.get(token)

    def _rows_shown(self) -> tuple[list[str], Iterator[tuple[str, str]]]:
        return ["token", "count"], ((token, f"{n:,}") for token, n in zip(self.tokens, self.counts, strict=True))

    def __repr__(self) -> str:
        shown_tokens = ", ".join(repr(token) for token in self.tokens[:3])
        return f"Vocabulary({len(self):,} tokens: {shown_tokens}{', …' if len(self) > 3 else ''})"

    def to_json(self) -> dict[str, Any]:
        """Return a dictionary for JSON; `from_json` is the inverse."""
        return {
            "tokens": list(self.tokens),
            "counts": self.counts.tolist(),
            "min_count": self.min_count,
            "dropped_types": self.dropped_types,
            "dropped_tokens": self.dropped_tokens,
        }

    @classmethod
    def from_json(cls, document: Any) -> Vocabulary:
        """Build a vocabulary from what `to_json` returned, and check it."""
        names = ("min_count", "dropped_types", "dropped_tokens")
        try:
            tokens, counts = document["tokens"], document["counts"]
            metadata = {name: document.get(name, 0) for name in names}
        except (TypeError, KeyError, AttributeError) as error:
            raise FirthError(
                "damaged_model", "A vocabulary must have tokens and counts; {reason} is missing.", reason=str(error)
            ) from None
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise FirthError("damaged_model", "The {field} of a vocabulary must be a list of strings.", field="tokens")
        numbers = [*counts, *metadata.values()] if isinstance(counts, list) else [None]
        if not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
            raise FirthError(
                "damaged_model", "The {field} of a vocabulary must be integers of at least 0.", field="counts"
            )
        if len(set(tokens)) < len(tokens):
            raise FirthError(
                "damaged_model",
                "The tokens of a vocabulary must be different; {repeated:,} are repeated.",
                repeated=len(tokens) - len(set(tokens)),
            )
        return cls(tokens, np.array(counts, dtype=np.int64), **metadata)


@runtime_checkable
class HasVocabulary(Protocol):
    """Has a vocabulary with counts."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary."""
