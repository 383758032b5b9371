"""`firth generate fill MODEL "the [MASK] sat on the mat"`: the most probable tokens at each mask."""

from __future__ import annotations

import click

from firth.cli.common import json_flag, open_model, print_json, print_table, unsupported


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("text")
@click.argument("other", required=False)
@click.option("-k", default=5, show_default=True, help="How many tokens to show per mask.")
@json_flag
def command(path: str, text: str, other: str | None, k: int, as_json: bool) -> None:
    """Predict the tokens at each [MASK] of TEXT, and of OTHER as the second segment, with their probabilities.

    A BERT reads the whole text; skip-gram and CBOW use the words within their window, in any order. Each mask is
    predicted independently of the others.
    """
    from firth.core.model import Fills, FineTuned

    model = open_model(path)
    if not isinstance(model, Fills):
        tuned = "Use the BERT it was fine-tuned from."
        advice = tuned if isinstance(model, FineTuned) else "bert, skipgram and cbow models do."
        raise unsupported(model, path, "does not fill masks", advice)
    predictions = model.fill(text, k, other)
    if as_json:
        blanks = [[{"token": token, "probability": chance} for token, chance in blank] for blank in predictions]
        print_json({"text": text, **({"other": other} if other is not None else {}), "blanks": blanks})
        return
    for number, blank in enumerate(predictions, 1):
        if len(predictions) > 1:
            click.echo(f"{'' if number == 1 else chr(10)}mask {number}")
        highest = max(chance for _, chance in blank)
        rows = [[token, f"{chance:.4f}", "█" * round(30 * chance / highest)] for token, chance in blank]
        print_table(["token", "probability", ""], rows, numbers=[1])
