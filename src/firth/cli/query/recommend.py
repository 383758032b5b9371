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
@click.option("--features", metavar="A=X,B=Y", help="What is known about a new user, as age=24,country=FR (two-tower).")
@click.option("--new-items", metavar="FILE", help="Also recommend items of this table of item features (two-tower).")
@click.option("--seen", is_flag=True, help="Include items of the user's history.")
@click.option(
    "--explore", type=click.FloatRange(0), help="Draw the code of a user, with its deviations times this (multvae)."
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The seed of --explore.")
@json_flag
def command(
    path: str,
    users: tuple[str, ...],
    items: str | None,
    k: int,
    features: str | None,
    new_items: str | None,
    seen: bool,
    explore: float | None,
    seed: int,
    as_json: bool,
) -> None:
    """Recommend items for a USER, best first, without the items of the user's history.

    MODEL was trained by als, bpr, item2vec, rating_factors, multvae, multdae, sequence_recommender or two_tower.
    Unknown items in --items are ignored and counted. For a sequence_recommender, --items begins with the oldest.
    """
    from firth.core.model import Explores, Recommends, StartsCold

    if bool(users) == bool(items or features):
        raise click.UsageError("Give --user USER (repeatable), or --items A,B or --features A=X for a new user.")
    opened = open_model(path)
    if not isinstance(opened, Recommends):
        raise unsupported(opened, path, "does not recommend items", "Train a model with `firth train als`.")
    if (features or new_items) and not isinstance(opened, StartsCold):
        raise unsupported(opened, path, "does not use features", "two_tower models do.")
    if explore is not None and not isinstance(opened, Explores):
        raise unsupported(opened, path, "does not know how certain it is about a user", "multvae models do.")
    model: Any = opened
    if new_items:
        model = model.with_items(new_items)
    settings: dict[str, Any] = {"seen": seen} | ({} if explore is None else {"explore": explore, "seed": seed})
    unknown: dict[str, Any] = {}
    if users:
        recommendations = {user: model.recommend(user, k, **settings) for user in users}
    else:
        vocabulary = model.tables["items"]
        history = parse_items(items, vocabulary) if items else []
        settings |= {"features": parse_features(features)} if features else {}
        recommendations = {items or features or "": model.recommend_for(history, k, **settings)}
        missing = [item for item in history if item not in vocabulary]
        unknown = {"unknown_items": {"count": len(missing), "names": missing}}
    if as_json:
        print_json({**{name: [hit._asdict() for hit in hits] for name, hits in recommendations.items()}, **unknown})
        return
    for name, hits in recommendations.items():
        if len(recommendations) > 1:
            click.echo(f"{name}:")
        click.echo(repr(hits))


def parse_features(text: str) -> dict[str, str]:
    """Return the features of age=24,country=FR."""
    pairs = [part.partition("=") for part in text.split(",")]
    wrong = next((name for name, equals, _ in pairs if not name or not equals), None)
    if wrong is not None:
        raise FirthError("invalid_value", "{option} takes A=X,B=Y; got {got!r}.", option="--features", got=text)
    return {name: value for name, _, value in pairs}


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
