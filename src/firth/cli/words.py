"""`firth words MODEL DATA…`: words with the vectors they have where they stand, or the mean of these, one a word."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

import click

from firth.cli.common import (
    choose_report,
    data_options,
    json_flag,
    keep_inputs,
    note,
    open_model,
    or_stdout,
    print_json,
)
from firth.core.errors import FirthError

BATCH = 256  # texts at a time
LEAST_1 = click.IntRange(1)


@click.command()
@click.argument("model")
@click.argument("data", nargs=-1, required=True, metavar="DATA…")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    callback=or_stdout,
    help=".jsonl, standard output if left out; with --static a file of vectors.",
)
@click.option("--layers", default="-1", show_default=True, metavar="N,…", help="0 is the input, -1 the last.")
@click.option(
    "--combine", type=click.Choice(("mean", "sum", "concat")), default="mean", show_default=True, help="Of the layers."
)
@click.option(
    "--pieces", type=click.Choice(("mean", "first", "last")), default="mean", show_default=True, help="Of a word."
)
@click.option("--windows", is_flag=True, help="Read texts that do not fit in parts, cut between words.")
@click.option("--static", is_flag=True, help="One vector a word: the mean over the places where it stands.")
@click.option("--most", type=LEAST_1, metavar="N", help="--static: so many words, the most frequent.  [default: 20000]")
@click.option("--only", metavar="FILE", help="--static: the words of this file, one a line.")
@click.option("--contexts", type=LEAST_1, metavar="N", help="--static: at most so many places a word.  [default: 100]")
@data_options
@json_flag
def command(
    model: str,
    data: tuple[str, ...],
    output: str | None,
    layers: str,
    combine: str,
    pieces: str,
    windows: bool,
    static: bool,
    most: int | None,
    only: str | None,
    contexts: int | None,
    unit: str,
    column: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Words of DATA with the vectors they have where they stand, a line (or record) at a time; - reads standard input.

    \b
      firth words bert notes.txt -o words.jsonl        {"key", "words", "offsets", "vectors"} a line
      firth words bert notes.txt -o w.vec --static     one vector a word, for neighbors, analogy, evaluate
    """
    from firth.core.model import Contextual
    from firth.data.corpus import Corpus, invalid_utf8_note

    keep_inputs(output, model, *data)
    if not static and any(value is not None for value in (most, only, contexts)):
        raise click.UsageError("--most, --only and --contexts are for --static.")
    if most is not None and only is not None:
        raise click.UsageError("--most or --only, not both.")
    if output is None and (static or as_json):
        raise click.UsageError("--static and --json need -o OUT.")
    if output and not static and Path(output).suffix != ".jsonl":
        raise FirthError(
            "unknown_format", "The output must end with .jsonl, or --static be given; got {got}.", got=output
        )
    opened: Any = open_model(model)
    if not isinstance(opened, Contextual):
        raise FirthError(
            "unsupported_model",
            "{model} has one vector a word ({method}); bert and gpt have many.",
            model=model,
            method=type(opened.method).method_name(),
        )
    corpus = Corpus(*data, unit=unit, column=column, key=key)
    keep_inputs(output, *(source.name for source in corpus.sources))
    chosen = {"layers": numbers_of(layers), "combine": combine, "subword_pooling": pieces}
    if static:
        words = most or 20_000 if only is None else words_in(only)
        facts = write_static(opened, corpus, str(output), words, contexts or 100, chosen)
    else:
        facts = write_words(opened, corpus, output, {**chosen, "windows": windows})
    facts |= {"not_utf8": corpus.replaced, "output": output}
    if corpus.replaced:
        note(invalid_utf8_note(corpus.replaced, corpus), "invalid_utf8")
    if as_json:
        print_json(facts)
    elif output:
        second = "contexts" if static else "texts"
        click.echo(f"{facts['words']:,} words, {facts[second]:,} {second} in {output}")


def numbers_of(layers: str) -> list[int]:
    try:
        return [int(layer) for layer in layers.split(",")]
    except ValueError:
        raise FirthError(
            "invalid_value",
            "{option} must be numbers, as in -1 or 9,10,11,12; got {got!r}.",
            option="--layers",
            got=layers,
        ) from None


def words_in(path: str) -> list[str]:
    from firth.data.corpus import Corpus

    return [text.strip() for _, text in Corpus(path) if text.strip()]


def write_static(
    model: Any, corpus: Any, output: str, words: Any, contexts: int, chosen: dict[str, Any]
) -> dict[str, Any]:
    from firth.core.run import Run
    from firth.formats import format_of_name, write_vectors

    if format_of_name(Path(output)) is None:
        raise FirthError(
            "unknown_format",
            "{path}: the suffix names no format of vectors, such as .vec, .npy or .safetensors.",
            path=output,
        )
    found = model.averaged(corpus, words, **chosen, contexts=contexts, run=Run(report=choose_report()))
    write_vectors(found.vectors, output)
    return {"words": len(found.vectors), "contexts": int(found.contexts.sum())}


def write_words(model: Any, corpus: Any, output: str | None, chosen: dict[str, Any]) -> dict[str, Any]:
    from firth.transformers.contextual_words import TooLongError

    texts = words = 0
    documents = iter(corpus)
    with opened_for_writing(output) as file:
        while batch := list(islice(documents, BATCH)):
            try:
                found = model.word_vectors([text for _, text in batch], **chosen)
            except TooLongError as error:
                raise TooLongError(error.number, error.tokens, error.max_text_tokens, batch[error.number][0]) from None
            for (name, _), each in zip(batch, found, strict=True):
                head = {"key": name, "words": each.words, "offsets": each.offsets}
                rows = ", ".join("[" + ", ".join(f"{number:.9g}" for number in row) + "]" for row in each.vectors)
                file.write(f'{json.dumps(head, ensure_ascii=False)[:-1]}, "vectors": [{rows}]}}\n')
                words += len(each.words)
            texts += len(batch)
        if not texts:
            raise FirthError("empty_data", "There is nothing to read: the input has no documents.")
    return {"words": words, "texts": texts}


@contextlib.contextmanager
def opened_for_writing(output: str | None) -> Iterator[IO[str]]:
    from firth.core.storage import new_file

    if output is None:
        yield sys.stdout
        return
    with new_file(Path(output)) as work, work.open("w", encoding="utf-8") as file:
        yield file
