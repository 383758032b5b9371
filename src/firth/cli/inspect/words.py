"""`firth inspect words MODEL DATA…`: contextual word vectors, or with --static their mean per word."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import (
    choose_report,
    dash_is_stdout,
    data_options,
    json_flag,
    note,
    open_model,
    open_output,
    print_json,
    protect_inputs,
    subwords_option,
    unsupported,
)
from firth.core.errors import FirthError
from firth.core.long_texts import CHUNK, REFUSE

if TYPE_CHECKING:
    from firth.core.model import Contextual, Model
    from firth.data.corpus import Corpus

BATCH = 256  # texts at a time
POSITIVE = click.IntRange(1)
MAX_WORDS, MAX_CONTEXTS = 20_000, 100  # defaults of --static


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("data", nargs=-1, required=True, metavar="DATA…")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    callback=dash_is_stdout,
    help="A .jsonl file, by default standard output; with --static a vector file.",
)
@click.option("--layers", default="-1", show_default=True, metavar="N,…", help="0 is the input, -1 the last layer.")
@click.option(
    "--combine",
    type=click.Choice(("mean", "sum", "concat")),
    default="mean",
    show_default=True,
    help="How the vectors of several layers are combined.",
)
@subwords_option
@click.option(
    "--long",
    type=click.Choice((REFUSE, CHUNK)),
    default=REFUSE,
    show_default=True,
    help="Texts longer than the model's context: refuse = error, chunk = process in parts, split between words.",
)
@click.option("--static", is_flag=True, help="One vector per word: the mean over its occurrences.")
@click.option("--max-words", type=POSITIVE, metavar="N", help=f"--static: the N most frequent words.  [{MAX_WORDS}]")
@click.option("--word-list", metavar="FILE", help="--static: only the words of this file, one per line.")
@click.option(
    "--max-contexts", type=POSITIVE, metavar="N", help=f"--static: at most N occurrences per word.  [{MAX_CONTEXTS}]"
)
@data_options
@json_flag
def command(
    path: str,
    data: tuple[str, ...],
    output: str | None,
    layers: str,
    combine: str,
    subwords: str,
    long: str,
    static: bool,
    max_words: int | None,
    word_list: str | None,
    max_contexts: int | None,
    unit: str,
    column: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Write the contextual vectors of the words of DATA, one line per text; - reads standard input.

    \b
      firth inspect words bert notes.txt -o words.jsonl      {"key", "words", "offsets", "vectors"} per line
      firth inspect words bert notes.txt -o w.vec --static   one vector per word, for `firth query`
    """
    from firth.core.model import Contextual
    from firth.data.corpus import Corpus, invalid_utf8_note

    protect_inputs(output, path, *data)
    if not static and any(value is not None for value in (max_words, word_list, max_contexts)):
        raise click.UsageError("--max-words, --word-list and --max-contexts need --static.")
    if max_words is not None and word_list is not None:
        raise click.UsageError("--max-words and --word-list cannot be combined.")
    if output is None and (static or as_json):
        raise click.UsageError("--static and --json need -o FILE.")
    if output and not static and Path(output).suffix != ".jsonl":
        raise FirthError(
            "unknown_format",
            "The output must end with .jsonl; got {got}. --static writes a vector file.",
            got=output,
        )
    model = open_model(path)
    if not isinstance(model, Contextual):
        raise unsupported(model, path, "has one vector per word", "bert and gpt models have one per occurrence.")
    corpus = Corpus(*data, unit=unit, column=column, key=key)
    protect_inputs(output, *(source.name for source in corpus.sources))
    settings = {"layers": parse_layers(layers), "combine": combine, "subword_pooling": subwords}
    if static:
        words = max_words or MAX_WORDS if word_list is None else read_words(word_list)
        counts = write_static(model, corpus, str(output), words, max_contexts or MAX_CONTEXTS, settings)
    else:
        counts = write_words(model, corpus, output, {**settings, "long": long})
    counts |= {"not_utf8": corpus.replaced, "output": output}
    if corpus.replaced:
        note(invalid_utf8_note(corpus.replaced, corpus), "invalid_utf8")
    if as_json:
        print_json(counts)
    elif output:
        second = "contexts" if static else "texts"
        click.echo(f"{counts['words']:,} words, {counts[second]:,} {second} in {output}")


def parse_layers(layers: str) -> list[int]:
    """Return the layers of a list such as 9,10,11,12."""
    try:
        return [int(layer) for layer in layers.split(",")]
    except ValueError:
        raise FirthError(
            "invalid_value",
            "{option} takes integers, as in -1 or 9,10,11,12; got {got!r}.",
            option="--layers",
            got=layers,
        ) from None


def read_words(path: str) -> list[str]:
    """Return the words of a file with one word per line."""
    from firth.data.corpus import Corpus

    return [text.strip() for _, text in Corpus(path) if text.strip()]


def write_static(
    model: Model, corpus: Corpus, output: str, words: int | list[str], contexts: int, settings: dict[str, Any]
) -> dict[str, Any]:
    """Write the mean vector of each word, and return the counts."""
    from firth.core.model import base_model
    from firth.core.run import Run
    from firth.formats import format_of_name, write_vectors
    from firth.transformers.contextual_words import ContextualModel

    base = base_model(model)
    assert isinstance(base, ContextualModel)
    if format_of_name(Path(output)) is None:
        raise FirthError(
            "unknown_format",
            "Unknown vector format: {path}. Use a suffix such as .vec, .npy or .safetensors.",
            path=output,
        )
    averaged = base.averaged(corpus, words, **settings, contexts=contexts, run=Run(report=choose_report()))
    write_vectors(averaged.vectors, output)
    return {"words": len(averaged.vectors), "contexts": int(averaged.contexts.sum())}


def write_words(model: Contextual, corpus: Corpus, output: str | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Write the words of each text with their vectors as JSON lines, and return the counts."""
    from firth.core.long_texts import TooLongError

    texts = words = 0
    documents = iter(corpus)
    with open_output(output) as file:
        while batch := list(islice(documents, BATCH)):
            try:
                contextual = model.word_vectors([text for _, text in batch], **settings)
            except TooLongError as error:
                raise error.named(f"Text {batch[error.number][0]}") from None
            for (key, _), each in zip(batch, contextual, strict=True):
                head = {"key": key, "words": each.words, "offsets": each.offsets}
                rows = ", ".join("[" + ", ".join(f"{number:.9g}" for number in row) + "]" for row in each.vectors)
                file.write(f'{json.dumps(head, ensure_ascii=False)[:-1]}, "vectors": [{rows}]}}\n')
                words += len(each.words)
            texts += len(batch)
        if not texts:
            raise FirthError("empty_data", "The input has no documents.")
    return {"words": words, "texts": texts}
