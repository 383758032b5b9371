"""`firth query neighbors MODEL WORD…`: the nearest neighbors of words, documents, nodes or items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from firth.cli.common import (
    json_flag,
    k_option,
    metric_option,
    note,
    open_model,
    open_vectors,
    print_json,
    resolve_keys,
    restrict_option,
    table_option,
    unsupported,
)
from firth.core.errors import FirthError
from firth.core.remote import as_path

if TYPE_CHECKING:
    from firth.core.vectors import Hits, Vectors

SIMILAR = 0.9  # mean cosine of different rows above which neighbors mean little


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("words", nargs=-1, metavar="[WORD]…")
@k_option
@click.option("--together", is_flag=True, help="Average the WORDs and show the neighbors of the mean.")
@click.option("--negative", multiple=True, metavar="WORD", help="Subtract this word; implies --together.")
@click.option("--uses", metavar="FILE", help="Texts that use the WORDs: their vectors are computed from the contexts.")
@click.option("--texts", is_flag=True, help="The WORDs are texts: show the nearest documents (document models).")
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
    uses: str | None,
    texts: bool,
    table: str | None,
    metric: str,
    restrict: int | None,
    as_json: bool,
) -> None:
    """Show the nearest neighbors of each WORD (or key).

    MODEL is a model folder or a vector file.
    """
    if not words and not negative:
        raise click.UsageError("Missing argument 'WORD': give at least one.")
    if texts:
        if together or negative or table or restrict or uses:
            raise click.UsageError("--texts can only be combined with -k, --metric and --json.")
        search = document_search(path)
        show({text: search(text, k, metric=metric) for text in words}, k, as_json)
        return
    if uses:
        if together or negative or table:
            raise click.UsageError("--uses can only be combined with -k, --metric, --restrict and --json.")
        show(neighbors_by_use(path, words, uses, k, metric, restrict), k, as_json)
        return
    vectors = open_vectors(path, table)
    keys, negative_keys = resolve_keys(vectors, words), resolve_keys(vectors, negative)
    for key in (*keys, *negative_keys):
        if table is None and key not in vectors:
            check_other_tables(path, key)
        if metric == "cosine" and not vectors[key].any():  # a node without edges, a document of unknown words
            note(f"The vector of {key!r} is zero, so it has no nearest neighbors.", "zero_vector")
    if together or negative:
        hits = vectors.neighbors(keys, k, negative=negative_keys, metric=metric, restrict=restrict)
        if as_json:
            print_json([hit._asdict() for hit in hits])
        else:
            click.echo(repr(hits))
    else:
        neighbors = {
            word: vectors.neighbors(key, k, metric=metric, restrict=restrict)
            for word, key in zip(words, keys, strict=True)
        }
        show(neighbors, k, as_json)
    if metric == "cosine":
        warn_if_similar(vectors, restrict)


def warn_if_similar(vectors: Vectors, restrict: int | None) -> None:
    """Print a note if all vectors point in nearly the same direction, as after too little training."""
    from firth.core.sparse import SparseVectors

    if isinstance(vectors, SparseVectors):  # counts, not trained
        return
    rows = vectors.unit[:restrict]
    mean = rows.mean(axis=0)
    cosine = (len(rows) * float(mean @ mean) - 1) / max(len(rows) - 1, 1)  # without each row's cosine with itself
    if cosine > SIMILAR:
        note(
            f"All vectors point in nearly the same direction (mean cosine {cosine:.2f}), so neighbors mean little. "
            "Train on more data or for more epochs.",
            "similar_vectors",
        )


def check_other_tables(path: str, key: str) -> None:
    """Raise an error that names the table if a key is missing from the main table and another one has it."""
    from firth.core.model import HasVectors

    model = open_model(path) if as_path(path).is_dir() else None
    tables: Mapping[str, Vectors] = model.tables if isinstance(model, HasVectors) else {}
    for name, table in tables.items():
        if key in table:
            raise FirthError(
                "unknown_key",
                "The table {main} has no {key!r}, but the table {name} has. Add --table {name}.",
                key=key,
                main=next(iter(tables)),
                name=name,
            )


def neighbors_by_use(
    path: str, words: tuple[str, ...], uses: str, k: int, metric: str, restrict: int | None
) -> dict[str, Hits]:
    """Return the neighbors of the vectors that words have by the texts of a file."""
    from firth.core.model import AveragesWords, HasVectors
    from firth.data.corpus import Corpus

    model = open_model(path)
    if not isinstance(model, AveragesWords) or not isinstance(model, HasVectors):
        raise unsupported(
            model, path, "is not a model of words, which --uses needs", "See firth inspect words --static."
        )
    texts = [text for _, text in Corpus(uses)]
    return {
        word: model.vectors.neighbors(model.vector_from_contexts(word, texts), k, metric=metric, restrict=restrict)
        for word in words
    }


def document_search(path: str) -> Callable[..., Hits]:
    """Return the function that finds the documents nearest to a text."""
    from firth.core.model import FindsDocuments

    model = open_model(path)
    if not isinstance(model, FindsDocuments):
        raise unsupported(model, path, "has no documents, which --texts searches")
    return model.neighbors


def show(neighbors: dict[str, Hits], k: int, as_json: bool) -> None:
    """Print the neighbors of several words side by side."""
    from firth.evaluate.tables import Neighbors, NeighborTable

    table = NeighborTable(tuple(Neighbors(word, "", hits) for word, hits in neighbors.items()), k)
    if as_json:
        print_json(table.to_json())
    else:
        click.echo(str(table))
