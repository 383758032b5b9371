"""`firth search IDX WORDS`: what an index holds that is near in meaning, has the words, or both."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import json_flag, note, open_model, print_json, print_table
from firth.cli.places import place_of, postgres_option
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.index import Hits, Index, PostgresIndex


@click.command()
@click.argument("index")
@click.argument("query")
@click.option("-k", type=int, default=10, show_default=True, help="How many.")
@click.option(
    "--where", metavar="CONDITION", help='Only such rows, as in \'year >= 2020 and language in ("en", "de")\'.'
)
@click.option(
    "--mode",
    type=click.Choice(("both", "vector", "words")),
    help="By nearness (score: the index's metric), by words (BM25), or both rankings fused (reciprocal ranks), the "
    "default; of a table, by nearness alone.",
)
@click.option("--explain", "explained", is_flag=True, help="Which words made each match (models of words).")
@click.option("--model", metavar="PATH", help="Where the model is that made the index, if it has moved.")
@postgres_option
@json_flag
def command(
    index: str,
    query: str,
    k: int,
    where: str | None,
    mode: str | None,
    explained: bool,
    model: str | None,
    postgres: str | None,
    as_json: bool,
) -> None:
    """Search an index that `firth index` made for the text QUERY."""
    from firth.index import Index, snippet
    from firth.index.words import word_tokens

    place = place_of(index, postgres)
    if postgres and mode not in (None, "vector"):
        raise FirthError("conflicting_options", "A table is searched by nearness alone; leave --mode out.")
    opened, mode = place.open(), mode or "both"
    if mode != "words" or explained:
        opened = place.open(open_model(model_path(opened, model)))
    if isinstance(opened, Index) and opened.metadata.get("finished") is False:
        say = f"{index} is unfinished, with {len(opened):,} texts; the command that began it goes on."
        note(say, "unfinished_index")
    hits = opened.search(query, k, where=where, **({} if postgres else {"mode": mode}))
    shares = [reasons(opened, query, hit.attributes.get("text")) for hit in hits] if explained else None
    if as_json:
        print_json(as_documents(hits, shares))
        return
    rows = [
        [str(rank), f"{hit.score:.4f}", hit.key, snippet(hit.attributes.get("text"), word_tokens(query))]
        for rank, hit in enumerate(hits, 1)
    ]
    header = ["", "score", "key", "text"]
    if shares is not None:
        header.append("because of")
        for row, why in zip(rows, shares, strict=True):
            row.append(", ".join(f"{each['query']}–{each['text']} {each['share']:.3f}" for each in why))
    if not rows:
        note("Nothing was found.", "no_hits")
        return
    print_table(header, rows, numbers=(0, 1))


def model_path(index: Index | PostgresIndex, given: str | None) -> str:
    """Where the model is: as given, or where it was when the index was made."""
    from firth.index import PostgresIndex

    made = index.properties["model"] if isinstance(index, PostgresIndex) else index.store.manifest.get("model")
    path = given or (made or {}).get("path")
    if not path:
        raise FirthError(
            "missing_model", "The index does not say where its model is: give --model PATH, or search by --mode words."
        )
    if not Path(path).exists():
        raise FirthError(
            "not_found", "There is no model at {path}; give --model PATH, or search by --mode words.", path=path
        )
    return str(path)


def reasons(index: Index | PostgresIndex, query: str, text: Any) -> list[dict[str, Any]]:
    from firth.index.explain import explain

    return [share._asdict() for share in explain(index.model, query, str(text or ""))]


def as_documents(hits: Hits, shares: list[list[dict[str, Any]]] | None) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = []
    for rank, hit in enumerate(hits, 1):
        values = plain(dict(hit.attributes))
        why = {} if shares is None else {"because": shares[rank - 1]}
        documents.append({"rank": rank, "score": hit.score, "key": hit.key, **why, "attributes": values})
    return documents


def plain(value: Any) -> Any:
    """JSON has no dates, which become texts, and no infinity, which becomes null."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)
