"""`firth neighbors PATH WORD…`: the words nearest to words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from firth.cli.common import (
    as_keys,
    json_flag,
    metric_option,
    note,
    open_model,
    open_vectors,
    print_json,
    restrict_option,
    table_option,
)
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.core.vectors import Hits, Vectors

ALIKE = 0.9  # mean cosine of different rows above which nearness tells little


@click.command()
@click.argument("path")
@click.argument("words", nargs=-1, metavar="[WORD]…")
@click.option("-k", type=int, default=10, show_default=True, help="How many.")
@click.option("--together", is_flag=True, help="The words nearest to all WORDs at once: their vectors averaged.")
@click.option("--negative", "-n", multiple=True, metavar="WORD", help="Subtract this word; implies --together.")
@click.option("--texts", is_flag=True, help="WORDs are texts: the documents nearest to each (models of documents).")
@table_option
@metric_option
@restrict_option
@json_flag
def command(
    path: str,
    words: tuple[str, ...],
    k: int,
    together: bool,
    negative: tuple[str, ...],
    texts: bool,
    table: str | None,
    metric: str,
    restrict: int | None,
    as_json: bool,
) -> None:
    """The words (or documents) nearest to each WORD (or key), side by side. PATH is a model folder or a vector file."""
    if not words and not negative:
        raise click.UsageError("Give at least one WORD.")
    if texts:
        if together or negative or table or restrict:
            raise click.UsageError("--texts goes with -k, --metric and --json alone.")
        near = near_text(path)
        show({text: near(text, k, metric=metric) for text in words}, k, as_json)
        return
    vectors = open_vectors(path, table)
    asked, minus = as_keys(vectors, words), as_keys(vectors, negative)
    for word in (*asked, *minus):
        if table is None and word not in vectors:
            look_elsewhere(path, word)
        if metric == "cosine" and not vectors[word].any():  # a node without links, a document without known words
            note(f"The vector of {word!r} is zero: nothing is near it.", "zero_vector")
    if together or negative:
        hits = vectors.neighbors(asked, k, negative=minus, metric=metric, restrict=restrict)
        if as_json:
            print_json([hit._asdict() for hit in hits])
        else:
            click.echo(repr(hits))
    else:
        found = {
            word: vectors.neighbors(key, k, metric=metric, restrict=restrict)
            for word, key in zip(words, asked, strict=True)
        }
        show(found, k, as_json)
    if metric == "cosine":
        note_sameness(vectors, restrict)


def note_sameness(vectors: Vectors, restrict: int | None) -> None:
    """Says when all vectors point one way, as they do where little was learned: whatever is asked, all is near."""
    from firth.core.sparse import SparseVectors

    if isinstance(vectors, SparseVectors):  # counts, not learned
        return
    rows = vectors.unit[:restrict]
    mean = rows.mean(axis=0)
    alike = (len(rows) * float(mean @ mean) - 1) / max(len(rows) - 1, 1)  # without each row's cosine to itself
    if alike > ALIKE:
        note(
            f"All vectors point nearly one way (their mean cosine is {alike:.2f}), so what is nearest tells little. "
            "More data or more epochs may tell them apart.",
            "similar_vectors",
        )


def look_elsewhere(path: str, word: str) -> None:
    """Says which table has a key that the main one lacks."""
    tables = getattr(open_model(path), "tables", {}) if Path(path).is_dir() else {}
    for name, table in tables.items():
        if word in table:
            main = next(iter(tables))
            raise FirthError(
                "unknown_key",
                "No vector for {word!r} among the {main}; the {name} have one: --table {name}.",
                word=word,
                main=main,
                name=name,
            )


def near_text(path: str) -> Callable[..., Hits]:
    """What finds the documents nearest to a text."""
    model = open_model(path)
    found: Callable[..., Hits] | None = getattr(model, "neighbors", None)
    if found is None:
        raise FirthError(
            "unsupported_model",
            "{path} is no model of documents ({method}): --texts has none to find.",
            path=path,
            method=type(model.method).method_name(),
        )
    return found


def show(found: dict[str, Hits], k: int, as_json: bool) -> None:
    from firth.evaluate.tables import Neighbors, NeighborTable

    shown = NeighborTable(tuple(Neighbors(word, "", hits) for word, hits in found.items()), k)
    if as_json:
        print_json(shown.to_json())
    else:
        click.echo(str(shown))
