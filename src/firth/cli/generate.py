"""`firth generate MODEL [PROMPT]`: text as a language model writes it, streamed."""

from __future__ import annotations

import sys
from typing import Any

import click

from firth.cli.common import json_flag, note, open_model, print_json
from firth.core.errors import FirthError


@click.command()
@click.argument("model")
@click.argument("prompt", default="")
@click.option("--tokens", type=int, help="At most so many.  [default: 200, or what the context has room for]")
@click.option(
    "--temperature", type=float, default=0.8, show_default=True, help="0 takes the likeliest token each time."
)
@click.option("--top-k", type=int, default=0, help="Choose among so many likeliest tokens; 0 = all.")
@click.option(
    "--top-p", type=float, default=1.0, help="Choose among the likeliest that have this probability together."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed, another text.")
@click.option("--stop", multiple=True, metavar="TEXT", help="End before this text; may be repeated.")
@click.option("--slide", is_flag=True, help="Go on past the context, forgetting its older half.")
@json_flag
def command(
    model: str,
    prompt: str,
    tokens: int | None,
    temperature: float,
    top_k: int,
    top_p: float,
    seed: int,
    stop: tuple[str, ...],
    slide: bool,
    as_json: bool,
) -> None:
    """Write what might come after PROMPT (standard input if it is -)."""
    from firth.core.model import Generates

    opened = open_model(model)
    if not isinstance(opened, Generates):
        raise FirthError(
            "unsupported_model",
            "{model} does not write text ({method}); gpt does.",
            model=model,
            method=type(opened.method).method_name(),
        )
    given = sys.stdin.read() if prompt == "-" else prompt
    settings = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed, "stop": stop, "slide": slide}
    pieces, written = opened.generate(given, tokens, **settings), ""
    if not as_json:
        click.echo(given, nl=False)
    for piece in pieces:
        written += piece
        if not as_json:
            click.echo(piece, nl=False)
            sys.stdout.flush()
    print_json({"prompt": given, "text": written}) if as_json else click.echo()
    # A text to stop at may have come first: without it there is something, or the text is over.
    if not written and tokens != 0 and not any(opened.generate(given, tokens, **{**settings, "stop": ()})):
        note(explained(opened), "empty_continuation")


def explained(model: Any) -> str:
    """Why nothing came after the prompt."""
    known = model.training
    size = known["tokens"] / known["documents"] if known.get("tokens") and known.get("documents") else 0
    average = f" ({size:,.0f} tokens on average)" if size else ""
    return (
        "The model ended the text right after the prompt, as the documents it was trained on do"
        f"{average}. If those were single lines, train on longer documents (--unit block or --unit file); or try "
        "another prompt, another --seed or a higher --temperature."
    )
