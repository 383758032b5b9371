"""`firth search INDEX QUERY`: search an index by meaning, by words, or both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import json_flag, k_option, note, open_model, print_json, print_table
from firth.cli.index_location import index_location, postgres_option
from firth.cli.pooling_options import given_prompt, prompt_flag
from firth.core.errors import FirthError
from firth.core.remote import as_path, is_url

if TYPE_CHECKING:
    from firth.index import Hits, Index, PostgresIndex


@click.command()
@click.argument("index")
@click.argument("query")
@k_option
@click.option(
    "--where", metavar="CONDITION", help='Filter the rows, as in \'year >= 2020 and language in ("en", "de")\'.'
)
@click.option(
    "--mode",
    type=click.Choice(("both", "vector", "words")),
    help="By vector (the metric of the index), by words (BM25), or both by reciprocal rank fusion (the default). "
    "PostgreSQL supports vector only.",
)
@click.option("--explain", "explained", is_flag=True, help="Show which words contributed to each match (word models).")
@prompt_flag("the prompt for queries")
@click.option("--model", metavar="PATH", help="The model of the index, if it has moved.")
@postgres_option
@json_flag
def command(
    index: str,
    query: str,
    k: int,
    where: str | None,
    mode: str | None,
    explained: bool,
    prompt: str | None,
    model: str | None,
    postgres: str | None,
    as_json: bool,
) -> None:
    """Search an index made by `firth index build` for the text QUERY."""
    from firth.index import Index, snippet
    from firth.index.words import word_tokens

    location = index_location(index, postgres)
    if postgres and mode not in (None, "vector"):
        raise FirthError("conflicting_options", "An index in PostgreSQL supports --mode vector only. Omit --mode.")
    opened, mode = location.open(), mode or "both"
    if mode != "words" or explained:
        path = model_path(opened, model)
        opened = location.open(open_model(path))
        given_prompt(opened.model, path, prompt)
    if isinstance(opened, Index) and opened.metadata.get("finished") is False:
        note(
            f"{index} is unfinished: it has {len(opened):,} texts so far. Run its build command again to finish it.",
            "unfinished_index",
        )
    hits = opened.search(query, k, where=where, prompt=prompt, **({} if postgres else {"mode": mode}))
    shares = [word_shares(opened, query, hit.attributes.get("text")) for hit in hits] if explained else None
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
        note("No results.", "no_hits")
        return
    print_table(header, rows, numbers=(0, 1))


def model_path(index: Index | PostgresIndex, given: str | None) -> str:
    """Return the path of the model: as given, or as it was when the index was built."""
    from firth.index import PostgresIndex

    stored = index.properties["model"] if isinstance(index, PostgresIndex) else index.store.manifest.get("model")
    path = given or (stored or {}).get("path")
    if not path:
        raise FirthError(
            "missing_model", "The index does not store the path of its model. Give --model PATH, or use --mode words."
        )
    if given is None and is_url(path):  # an index may come from someone else, and names no address to connect to
        raise FirthError(
            "missing_model",
            "The model of the index is at a URL, which is opened only if you name it. Pass --model {path}.",
            path=path,
        )
    if not as_path(path).exists():
        raise FirthError("not_found", "There is no model at {path}. Give --model PATH, or use --mode words.", path=path)
    return str(path)


def word_shares(index: Index | PostgresIndex, query: str, text: Any) -> list[dict[str, Any]]:
    """Return how much each pair of words contributed to the score of a text."""
    from firth.index.explain import explain

    assert index.model is not None
    return [share._asdict() for share in explain(index.model, query, str(text or ""))]


def as_documents(hits: Hits, shares: list[list[dict[str, Any]]] | None) -> list[dict[str, Any]]:
    """Return the hits as JSON objects."""
    documents: list[dict[str, Any]] = []
    for rank, hit in enumerate(hits, 1):
        values = plain(dict(hit.attributes))
        why = {} if shares is None else {"because": shares[rank - 1]}
        documents.append({"rank": rank, "score": hit.score, "key": hit.key, **why, "attributes": values})
    return documents


def plain(value: Any) -> Any:
    """Return a value for JSON: dates become strings, NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)
