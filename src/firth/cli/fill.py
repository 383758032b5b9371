"""`firth fill MODEL "the [MASK] sat on the mat"`: what may stand in a blank."""

from __future__ import annotations

import click

from firth.cli.common import json_flag, open_model, print_json, print_table
from firth.core.errors import FirthError


@click.command()
@click.argument("model")
@click.argument("text")
@click.argument("other", required=False)
@click.option("-k", default=5, show_default=True, help="So many tokens for each blank.")
@json_flag
def command(model: str, text: str, other: str | None, k: int, as_json: bool) -> None:
    """Tokens that may stand for each [MASK] of TEXT (and of OTHER, read behind it), with their probabilities.

    A BERT reads the whole text; skip-gram and CBOW go by the words within their window, in any order.
    Each blank is filled by itself: what stands in one does not know what was chosen for another.
    """
    from firth.core.model import Fills

    opened = open_model(model)
    if not isinstance(opened, Fills):
        method = type(opened.method).method_name()
        if hasattr(opened, "base"):
            raise FirthError(
                "unsupported_model",
                "{model} fills no blanks: it was fine-tuned ({method}); ask the BERT that it began with.",
                model=model,
                method=method,
            )
        raise FirthError(
            "unsupported_model",
            "{model} fills no blanks ({method}); bert, skipgram and cbow do.",
            model=model,
            method=method,
        )
    found = opened.fill(text, k, other)
    if as_json:
        blanks = [[{"token": token, "probability": chance} for token, chance in blank] for blank in found]
        print_json({"text": text, **({"other": other} if other is not None else {}), "blanks": blanks})
        return
    for number, blank in enumerate(found, 1):
        if len(found) > 1:
            click.echo(f"{'' if number == 1 else chr(10)}blank {number}")
        widest = max(chance for _, chance in blank)
        rows = [[token, f"{chance:.4f}", "█" * round(30 * chance / widest)] for token, chance in blank]
        print_table(["token", "probability", ""], rows, numbers=[1])
