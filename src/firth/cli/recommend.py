"""`firth recommend MODEL --user U`: items that a user may like; `--items a,b`: someone who had these."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import click

from firth.cli.common import json_flag, open_model, print_json
from firth.core.errors import FirthError


@click.command()
@click.argument("model")
@click.option("--user", "users", multiple=True, metavar="USER", help="A user of the ratings; may be repeated.")
@click.option("--items", metavar="A,B=2,…", help="For someone who had these, each with a weight or rating if given.")
@click.option("-k", type=int, default=10, show_default=True, help="How many.")
@click.option("--seen", is_flag=True, help="Also items that the user had.")
@json_flag
def command(model: str, users: tuple[str, ...], items: str | None, k: int, seen: bool, as_json: bool) -> None:
    """Items that a USER may like, best first, less those the user had. MODEL is trained by als, bpr, item2vec,
    rating_factors, multvae or multdae. Of --items, those that the model does not know are left out and counted."""
    from firth.core.model import Recommends

    if bool(users) == bool(items):
        raise click.UsageError("Give --user USER (may be repeated), or --items A,B for someone new.")
    opened = open_model(model)
    if not isinstance(opened, Recommends):
        method = type(opened.method).method_name()
        raise FirthError(
            "unsupported_model",
            "{model} does not recommend ({method}); `firth train als` makes a model that does.",
            model=model,
            method=method,
        )
    told: dict[str, Any] = {}
    if items:
        known = opened.tables["items"]
        history = parse_items(items, known)
        found = {items: opened.recommend_for(history, k, seen=seen)}
        missing = [item for item in history if item not in known]
        told = {"unknown_items": {"count": len(missing), "names": missing}}
    else:
        found = {user: opened.recommend(user, k, seen=seen) for user in users}
    if as_json:
        print_json({**{name: [hit._asdict() for hit in hits] for name, hits in found.items()}, **told})
        return
    for name, hits in found.items():
        if len(found) > 1:
            click.echo(f"{name}:")
        click.echo(repr(hits))


def parse_items(text: str, known: Container[str]) -> list[str] | dict[str, float]:
    """a,b or a=2,b=5: an item may hold = where all of it is known."""
    weights: dict[str, float] = {}
    plain: list[str] = []
    for part in text.split(","):
        item, equals, number = part.rpartition("=")
        if not equals or part in known:
            plain.append(part)
            continue
        try:
            weights[item] = float(number)
        except ValueError:
            raise FirthError(
                "invalid_value", "{option} takes A,B or A=2,B=5; got {got!r}.", option="--items", got=part
            ) from None
    if weights and plain:
        raise FirthError("invalid_value", "Give all items a number or none; {plain!r} has none.", plain=plain[0])
    return weights or plain
