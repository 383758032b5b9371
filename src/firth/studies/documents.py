"""What a user's own documents can be asked: which body belongs to a title, which name, which sentence comes next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from firth.core.errors import FirthError
from firth.data.corpus import Corpus
from firth.data.sentences import split_sentences

LEAST = 10  # items a measure needs: fewer tell nothing
NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


class Drawn(NamedTuple):
    """Documents of the user's data; of columns that were not named, empty texts."""

    texts: list[str]
    titles: list[str]
    names: list[str]
    labels: list[str]
    corpus: Corpus | None = None  # all documents
    label: str = ""  # the column of labels


class Lookups(NamedTuple):
    """Query i is about target i, which must be found among all targets."""

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
    """`texts` documents, each as likely as any other, in one pass whatever there is (Vitter's algorithm R). `title`,
    `name` and `label` are columns; sources and further settings are those of `Corpus`."""
    if texts < LEAST:
        raise FirthError(
            "invalid_value", "{option} must be at least {least}; got {got}.", option="texts", least=LEAST, got=texts
        )
    wanted = {"title": title, "name": name, "label": label}
    columns = {kind: column for kind, column in wanted.items() if column}
    documents = Corpus(*sources, fields=tuple(columns.values()), **corpus)
    random, kept, seen = Random(seed), list[tuple[str, dict[str, str]]](), 0
    for (_, text), fields, _ in documents.walk():
        if not text.strip():
            continue
        values = ("" if value is None else str(value) for value in fields)
        document = text, dict(zip(columns, values, strict=True))
        seen += 1
        if len(kept) < texts:
            kept.append(document)
        elif (place := random.randrange(seen)) < texts:
            kept[place] = document
    if len(kept) < LEAST:
        raise FirthError(
            "too_few", "compare needs at least {least} documents; the data has {n_kept}.", least=LEAST, n_kept=len(kept)
        )
    found = {kind: [fields.get(kind, "") for _, fields in kept] for kind in wanted}
    columns_of = found["title"], found["name"], found["label"]
    return Drawn([text for text, _ in kept], *columns_of, Corpus(*sources, **corpus), label or "")


def lookups(documents: Drawn, seed: int) -> list[Lookups]:
    """Everything that can be asked of these documents; targets that stand twice are asked for once."""
    texts = documents.texts
    names = [" ".join(NAME_PARTS.findall(name)).lower() for name in documents.names]
    asked = [
        ("title → body", "find the text that a title belongs to", documents.titles, texts),
        ("text → name", "find the name that a text describes", texts, names),
        ("sentence → next", "find the sentence that follows one in its document", *neighbours(texts, seed)),
    ]
    found = [Lookups(name, what, *distinct(queries, targets)) for name, what, queries, targets in asked]
    return [lookup for lookup in found if len(lookup.queries) >= LEAST]


def neighbours(texts: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """One pair of sentences that follow each other, drawn from each text that has one."""
    random = Random(seed)
    queries, targets = [], []
    for text in texts:
        sentences = list(split_sentences(text))
        if len(sentences) > 1:
            place = random.randrange(len(sentences) - 1)
            queries.append(sentences[place])
            targets.append(sentences[place + 1])
    return queries, targets


def distinct(queries: Sequence[str], targets: Sequence[str]) -> tuple[list[str], list[str]]:
    """Without empty ones, and with the first of equal targets only: no model could tell them apart."""
    pairs: dict[str, str] = {}
    for query, target in zip(queries, targets, strict=True):
        if query.strip() and target.strip():
            pairs.setdefault(target, query)
    return list(pairs.values()), list(pairs)
