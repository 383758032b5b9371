"""`firth translate MODEL TEXT…`: texts into other texts."""

from __future__ import annotations

import os.path
import sys
from typing import Any

import click

from firth.cli.common import json_flag, note, open_model, print_json
from firth.core.errors import FirthError


@click.command()
@click.argument("model")
@click.argument("texts", nargs=-1, required=True, metavar="TEXT…")
@click.option("--beam", type=int, default=4, show_default=True, help="Beginnings followed at once; 1 = greedy.")
@click.option(
    "--length-penalty", type=float, default=0.6, show_default=True, metavar="A", help="Higher prefers longer ones."
)
@click.option(
    "--reference", metavar="FILE", help="Right translations, one a line: BLEU is told at the end (needs sacrebleu)."
)
@click.option("--device", type=click.Choice(("cpu", "cuda")), default="cpu", show_default=True)
@json_flag
def command(
    model: str,
    texts: tuple[str, ...],
    beam: int,
    length_penalty: float,
    reference: str | None,
    device: str,
    as_json: bool,
) -> None:
    """Translate each TEXT, or with - each line of standard input; one translation a line."""
    from firth.transformers.translation_model import Translator

    translator = open_model(model)
    if not isinstance(translator, Translator):
        method = type(translator.method).method_name()
        raise FirthError(
            "unsupported_model",
            "{model} does not translate ({method}); `firth train seq2seq` makes a model that does.",
            model=model,
            method=method,
        )
    file = next(filter(os.path.isfile, texts), None)  # Path would fail on a long text
    if file is not None:
        raise FirthError(
            "wrong_input",
            "A TEXT is translated as it stands; {file} is a file. For its lines: firth translate {model} - < {file}",
            file=file,
            model=model,
        )
    translator = translator.to(device)  # before standard input is waited for
    sources = [line.rstrip("\r\n") for line in sys.stdin] if texts == ("-",) else list(texts)
    right = read_lines(reference, len(sources)) if reference else None
    found = translator.translations(sources, beam, length_penalty)
    score = None
    if right is not None:
        from firth.evaluate.translation import bleu

        score = bleu([translation.text for translation in found], right)
    if as_json:
        rows = [{"source": source, **each._asdict()} for source, each in zip(sources, found, strict=True)]
        document: dict[str, Any] = {"translations": rows}
        print_json(document | ({} if score is None else {"bleu": score}))
        return
    for translation in found:
        click.echo(translation.text)
    broken = sum(not translation.ended for translation in found)
    if broken:
        note(f"{broken:,} of {len(found):,} translations found no end and were broken off.", "no_end")
    if score is not None:
        click.echo(f"BLEU {score:.2f}", err=True)


def read_lines(path: str, count: int) -> list[str]:
    from firth.data.corpus import Corpus

    found = [document.text for document in Corpus(path)]
    if len(found) != count:
        raise FirthError(
            "wrong_input",
            "{path} has {n_got:,} lines for {count:,} texts; it takes one line a text.",
            path=path,
            n_got=len(found),
            count=count,
        )
    return found
