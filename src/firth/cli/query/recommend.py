"""`firth query recommend MODEL --user USER`: items for a user; `--items A,B`: items for a new user."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import click

from firth.cli.common import json_flag, k_option, open_model, print_json, unsupported
from firth.core.errors import FirthError


@click.command()
@click.argument("path", metavar="MODEL")
@click.option("--user", "users", multiple=True, metavar="USER", help="A user of the training data; repeatable.")
@click.option("--items", metavar="A,B=2,…", help="The history of a new user: items, each with an optional weight.")
@k_option
@click.option("--seen", is_flag=True, help="Include items of the user's history.")
@json_flag
def command(path: str, users: tuple[str, ...], items: str | None, k: int, seen: bool, as_json: bool) -> None:
    """Recommend items for a USER, best first, without the items of the user's history.

    MODEL was trained by als, bpr, item2vec, rating_factors, multvae or multdae. Unknown items in --items are ignored
    and counted.
    """
    from firth.core.model import Recommends

    if bool(users) == bool(items):
        raise click.UsageError("Give --user USER (repeatable), or --items A,B for a new user.")
    model = open_model(path)
    if not isinstance(model, Recommends):
        raise unsupported(model, path, "does not recommend items", "Train a model with `firth train als`.")
    unknown: dict[str, Any] = {}
    if items:
        vocabulary = model.tables["items"]
        history = parse_items(items, vocabulary)
        recommendations = {items: model.recommend_for(history, k, seen=seen)}
        missing = [item for item in history if item not in vocabulary]
        unknown = {"unknown_items": {"count": len(missing), "names": missing}}
    else:
        recommendations = {user: model.recommend(user, k, seen=seen) for user in users}
    if as_json:
        print_json({**{name: [hit._asdict() for hit in hits] for name, hits in recommendations.items()}, **unknown})
        return
    for name, hits in recommendations.items():
        if len(recommendations) > 1:
            click.echo(f"{name}:")
        click.echo(repr(hits))


def parse_items(text: str, vocabulary: Container[str]) -> list[str] | dict[str, float]:
    """Return the items of a,b or a=2,b=5. An item may contain = if the whole of it is in the vocabulary."""
    weights: dict[str, float] = {}
    unweighted: list[str] = []
    for part in text.split(","):
        item, equals, number = part.rpartition("=")
        if not equals or part in vocabulary:
            unweighted.append(part)
            continue
        try:
            weights[item] = float(number)
        except ValueError:
            raise FirthError(
                "invalid_value", "{option} takes A,B or A=2,B=5; got {got!r}.", option="--items", got=part
            ) from None
    if weights and unweighted:
        raise FirthError(
            "invalid_value",
            "{option}: give a weight to all items or to none; {got!r} has none.",
            option="--items",
            got=unweighted[0],
        )
    return weights or unweighted
