"""Neighbor tables: the nearest keys of some words, in one model or in several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firth.core.errors import FirthError
from firth.core.notebook import html_table
from firth.core.vectors import Hits, Vectors
from firth.evaluate.layout import markdown_table, text_table, width

PAGE = 100  # characters per line of the printed table, after which the next words start a new block


@dataclass(frozen=True)
class Neighbors:
    """The nearest keys of one word in one model; `hits` is None if the model has no vector for it."""

    word: str
    model: str
    hits: Hits | None


@dataclass(frozen=True)
class NeighborTable:
    """Entries ordered by word and, within a word, by model; a single model has the name ""."""

    entries: tuple[Neighbors, ...]
    k: int

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(dict.fromkeys(entry.model for entry in self.entries))

    @property
    def words(self) -> tuple[str, ...]:
        """The words whose neighbors are listed."""
        return tuple(dict.fromkeys(entry.word for entry in self.entries))

    def to_json(self) -> dict[str, Any]:
        """Return {word: {model: [{"key": …, "score": …}, …] or null}}, without the model level for a single model."""
        by_word: dict[str, dict[str, Any]] = {word: {} for word in self.words}
        for entry in self.entries:
            hits = entry.hits
            by_word[entry.word][entry.model] = None if hits is None else [hit._asdict() for hit in hits]
        return {word: by_model[""] for word, by_model in by_word.items()} if self.models == ("",) else by_word

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        return "\n\n".join(markdown_table(*block) for block in self._blocks(page=None))

    def __str__(self) -> str:
        return "\n\n".join(text_table(*block) for block in self._blocks(page=PAGE))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(html_table(*block) for block in self._blocks(page=None))

    def _blocks(self, page: int | None) -> Iterator[tuple[list[str], list[list[str]]]]:
        """Yield tables as header and rows: one per word if models are compared, else words in columns."""
        if self.models != ("",):
            for word in self.words:
                columns = [_column(entry.model, entry.hits, self.k) for entry in self.entries if entry.word == word]
                yield _transposed([[word, *(str(rank + 1) for rank in range(self.k))], *columns])
            return
        block: list[list[str]] = []
        used_width = 0
        for entry in self.entries:
            column = _column(entry.word, entry.hits, self.k)
            column_width = max(map(width, column)) + 2
            if block and page is not None and used_width + column_width > page:
                yield _transposed(block)
                block, used_width = [], 0
            block.append(column)
            used_width += column_width
        yield _transposed(block)


def neighbor_table(
    vectors: Vectors | Mapping[str, Vectors], words: Sequence[str], k: int = 10, *, restrict: int | None = None
) -> NeighborTable:
    """Return the `k` nearest keys of each word by cosine, in one model or in several given by name."""
    models = {"": vectors} if isinstance(vectors, Vectors) else dict(vectors)
    if not models or not words:
        raise FirthError("too_few", "neighbor_table needs at least one model and one word.")
    for word in words:
        if not any(word in each for each in models.values()):
            next(iter(models.values())).row(word)  # raises the error for an unknown word
    entries = (
        Neighbors(word, name, each.neighbors(word, k, restrict=restrict) if word in each else None)
        for word in dict.fromkeys(words)
        for name, each in models.items()
    )
    return NeighborTable(tuple(entries), k)


def _column(heading: str, hits: Hits | None, k: int) -> list[str]:
    if hits is None:
        cells = ["no vector"]
    else:
        longest = max((width(hit.key) for hit in hits), default=0)
        cells = [f"{hit.key}{' ' * (longest - width(hit.key))} {hit.score:.2f}" for hit in hits]
    return [heading, *cells, *[""] * (k - len(cells))]


def _transposed(columns: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    header, *rows = (list(row) for row in zip(*columns, strict=True))
    return header, [row for row in rows if any(row)]  # a model may have fewer than k other keys
