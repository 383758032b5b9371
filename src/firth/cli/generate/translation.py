"""`firth generate translation MODEL TEXT…`: translations, summaries or answers, from text to text."""

from __future__ import annotations

import os.path
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import Flags, add_flags, json_flag, note, open_model, print_json, unsupported
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.transformers.translation_model import Translator

BY_MODEL = "[default: {}; for loaded models, from generation_config.json]"
DECODING_OPTIONS: Flags = (
    ("--beam", {"type": int, "help": f"The beam width; 1 = greedy decoding.  {BY_MODEL.format(4)}"}),
    (
        "--length-penalty",
        {"type": float, "metavar": "A", "help": f"Higher prefers longer outputs.  {BY_MODEL.format(0.6)}"},
    ),
    (
        "--max-new-tokens",
        {
            "type": int,
            "metavar": "N",
            "help": f"Generate at most N tokens per text.  {BY_MODEL.format('3 times its length, plus 20')}",
        },
    ),
    ("--device", {"type": click.Choice(("cpu", "cuda")), "default": "cpu", "show_default": True}),
)


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("texts", nargs=-1, required=True, metavar="TEXT…")
@add_flags(DECODING_OPTIONS)
@json_flag
def command(
    path: str,
    texts: tuple[str, ...],
    beam: int | None,
    length_penalty: float | None,
    max_new_tokens: int | None,
    device: str,
    as_json: bool,
) -> None:
    """Translate each TEXT and print one translation per line. - reads one text per line from standard input.

    A model such as Flan-T5 reads its task in the text: "translate English to German: Good morning."
    """
    translator = open_translator(path)
    file = next(filter(os.path.isfile, texts), None)  # Path would fail on a long text
    if file is not None:
        raise FirthError(
            "wrong_input",
            "{file} is a file, and TEXT is translated as it is. For its lines: "
            "firth generate translation {model} - < {file}",
            file=file,
            model=path,
        )
    translator = translator.to(device)  # before waiting for standard input
    sources = [line.rstrip("\r\n") for line in sys.stdin] if texts == ("-",) else list(texts)
    translations = translator.translations(sources, beam, length_penalty, max_new_tokens)
    if as_json:
        rows = [{"source": source, **each._asdict()} for source, each in zip(sources, translations, strict=True)]
        print_json({"translations": rows})
        return
    for translation in translations:
        click.echo(translation.text)
    note_truncated(translations)


def note_truncated(translations: Sequence[Any]) -> None:
    """Print a note if translations reached the length limit before the end token."""
    truncated = sum(not translation.ended for translation in translations)
    if truncated:
        note(
            f"{truncated:,} of {len(translations):,} translations reached the length limit and were cut off.", "no_end"
        )


def open_translator(path: str) -> Translator:
    """Open a model that translates."""
    from firth.transformers.translation_model import Translator

    model = open_model(path)
    if not isinstance(model, Translator):
        raise unsupported(
            model, path, "does not translate", "Train a model with `firth train seq2seq`, or load a T5, BART or Marian."
        )
    return model
