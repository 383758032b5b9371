"""`firth generate text MODEL [PROMPT]`: the continuation of a prompt, printed token by token."""

from __future__ import annotations

import sys
from typing import Any

import click

from firth.cli.common import json_flag, note, open_model, print_json, unsupported


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("prompt", default="")
@click.option(
    "--max-new-tokens",
    type=int,
    metavar="N",
    help="Generate at most N tokens.  [default: 200, or the rest of the context]",
)
@click.option(
    "--temperature", type=float, default=0.8, show_default=True, help="0 always takes the most probable token."
)
@click.option("--top-k", type=int, default=0, help="Sample from the k most probable tokens; 0 = all.")
@click.option(
    "--top-p", type=float, default=1.0, help="Sample from the most probable tokens whose probabilities sum to this."
)
@click.option("--seed", type=int, default=1, show_default=True, help="The seed of the random numbers.")
@click.option("--stop", multiple=True, metavar="TEXT", help="Stop before this text; repeatable.")
@click.option("--slide", is_flag=True, help="Continue past the context length by dropping the older half.")
@json_flag
def command(
    path: str,
    prompt: str,
    max_new_tokens: int | None,
    temperature: float,
    top_k: int,
    top_p: float,
    seed: int,
    stop: tuple[str, ...],
    slide: bool,
    as_json: bool,
) -> None:
    """Continue PROMPT with a language model. - reads the prompt from standard input."""
    from firth.core.model import Generates

    model = open_model(path)
    if not isinstance(model, Generates):
        raise unsupported(model, path, "does not generate text", "gpt models do.")
    given = sys.stdin.read() if prompt == "-" else prompt
    settings = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed, "stop": stop, "slide": slide}
    generated = ""
    if not as_json:
        click.echo(given, nl=False)
    for token in model.generate(given, max_new_tokens, **settings):
        generated += token
        if not as_json:
            click.echo(token, nl=False)
            sys.stdout.flush()
    print_json({"prompt": given, "text": generated}) if as_json else click.echo()
    # An empty result is normal if a stop text came first: without the stop texts something would be generated.
    if (
        not generated
        and max_new_tokens != 0
        and not any(model.generate(given, max_new_tokens, **settings | {"stop": ()}))
    ):
        note(explain_empty(model), "empty_continuation")


def explain_empty(model: Any) -> str:
    """Return why nothing was generated after the prompt."""
    training = model.training
    length = training["tokens"] / training["documents"] if training.get("tokens") and training.get("documents") else 0
    average = f" ({length:,.0f} tokens on average)" if length else ""
    return (
        f"The model ended the text right after the prompt, like the documents it was trained on{average}. If those "
        "were single lines, train on longer documents (--unit block or --unit file). Or try another prompt, another "
        "--seed or a higher --temperature."
    )
