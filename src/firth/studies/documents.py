"""Known-item searches in a user's own documents: the text of a title, the name of a text, the next sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from firth.core.errors import FirthError
from firth.data.corpus import Corpus
from firth.data.sentences import split_sentences

LEAST = 10  # items that a measure needs
NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


class Drawn(NamedTuple):
    """A sample of the user's documents; columns that were not named are empty."""

    texts: list[str]
    titles: list[str]
    names: list[str]
    labels: list[str]
    corpus: Corpus | None = None  # all documents
    label: str = ""  # the column of labels


class Lookups(NamedTuple):
    """A known-item search: target i is the only relevant one for query i."""

    name: str
    what: str
    queries: list[str]
    targets: list[str]


def draw(
    *sources: Any,
    texts: int = 2000,
    seed: int = 1,
    title: str | None = None,
    name: str | None = None,
    label: str | None = None,
    **corpus: Any,
) -> Drawn:
    """Sample `texts` documents uniformly in one pass (Vitter's algorithm R).

    `title`, `name` and `label` are columns; sources and further settings are those of `Corpus`.
    """
    if texts < LEAST:
        raise FirthError(
            "invalid_value", "{option} must be at least {least}; got {got}.", option="texts", least=LEAST, got=texts
        )
    all_columns = {"title": title, "name": name, "label": label}
    columns = {role: column for role, column in all_columns.items() if column}
    documents = Corpus(*sources, fields=tuple(columns.values()), **corpus)
    random, sample, seen = Random(seed), list[tuple[str, dict[str, str]]](), 0
    for (_, text), fields, _ in documents.walk():
        if not text.strip():
            continue
        values = ("" if value is None else str(value) for value in fields)
        document = text, dict(zip(columns, values, strict=True))
        seen += 1
        if len(sample) < texts:
            sample.append(document)
        elif (replaced := random.randrange(seen)) < texts:
            sample[replaced] = document
    if len(sample) < LEAST:
        raise FirthError(
            "too_few", "compare needs at least {least} documents; got {got}.", least=LEAST, got=len(sample)
        )
    titles, names, labels = ([fields.get(role, "") for _, fields in sample] for role in all_columns)
    return Drawn([text for text, _ in sample], titles, names, labels, Corpus(*sources, **corpus), label or "")


def lookups(documents: Drawn, seed: int) -> list[Lookups]:
    """Return all known-item searches that these documents allow, without duplicate targets."""
    texts = documents.texts
    names = [" ".join(NAME_PARTS.findall(name)).lower() for name in documents.names]
    searches = [
        ("title → body", "find the text that a title belongs to", documents.titles, texts),
        ("text → name", "find the name that a text describes", texts, names),
        ("sentence → next", "find the sentence that follows one in its document", *consecutive_sentences(texts, seed)),
    ]
    usable = [Lookups(name, what, *distinct(queries, targets)) for name, what, queries, targets in searches]
    return [lookup for lookup in usable if len(lookup.queries) >= LEAST]


def consecutive_sentences(texts: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """Return one random pair of consecutive sentences of each text that has one."""
    random = Random(seed)
    queries, targets = [], []
    for text in texts:
        sentences = list(split_sentences(text))
        if len(sentences) > 1:
            number = random.randrange(len(sentences) - 1)
            queries.append(sentences[number])
            targets.append(sentences[number + 1])
    return queries, targets


def distinct(queries: Sequence[str], targets: Sequence[str]) -> tuple[list[str], list[str]]:
    """Remove empty texts and repeated targets, which no model could rank correctly."""
    pairs: dict[str, str] = {}
    for query, target in zip(queries, targets, strict=True):
        if query.strip() and target.strip():
            pairs.setdefault(target, query)
    return list(pairs.values()), list(pairs)
