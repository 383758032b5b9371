"""`firth corpus`: make a corpus, or describe one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from firth.cli.common import (
    choose_report,
    dash_is_stdout,
    data_options,
    json_flag,
    open_output,
    print_fields,
    print_json,
    print_table,
)
from firth.cli.groups import CommandGroup
from firth.core.errors import FirthError
from firth.core.remote import as_path

output_option = click.option(
    "-o", "--output", metavar="FILE", callback=dash_is_stdout, help=".jsonl or .txt; standard output if omitted."
)


@click.group(cls=CommandGroup)
def command() -> None:
    """Make a corpus or describe one."""


@command.command()
@output_option
@click.option("--package", "packages", multiple=True, metavar="NAME", help="Only this package; repeatable.")
@json_flag
def python(output: str | None, packages: tuple[str, ...], as_json: bool) -> None:
    """Write the docstrings of the installed Python packages: {"key": qualified name, "text": docstring} per line."""
    from firth.data.docstrings import python_docstrings

    count = write_documents(output, python_docstrings(packages or None, report=choose_report()))
    if output and as_json:
        print_json({"documents": count, "output": output})
    elif output:
        click.echo(f"{count:,} documents in {output}")


@command.command()
@output_option
@click.option("--seed", type=int, default=1, show_default=True, help="The seed of the random numbers.")
@click.option("--size", type=int, default=24, show_default=True, help="How many countries the text is about.")
@click.option("--sentences", type=int, default=40_000, show_default=True, help="How many sentences to write.")
@click.option("--analogies", metavar="FILE", help="Also write analogy questions for the corpus.")
@json_flag
def world(output: str | None, seed: int, size: int, sentences: int, analogies: str | None, as_json: bool) -> None:
    """Write a synthetic corpus with known relations between its words."""
    from firth.core.storage import new_file
    from firth.data.world import World, write_analogies

    synthetic = World(seed, size)
    documents = ((str(number), text) for number, text in enumerate(synthetic.sentences(sentences), 1))
    count = write_documents(output, documents)
    if analogies:
        with new_file(as_path(analogies)) as work:
            write_analogies(work, synthetic.analogies())
    if output and as_json:
        print_json({"sentences": count, "analogies": analogies, "output": output})
    elif output:
        click.echo(f"{count:,} sentences in {output}")


def write_documents(output: str | None, documents: Iterable[tuple[str, str]]) -> int:
    """Write documents as JSON lines, or to a .txt file as one text per line; return their number."""
    suffix = Path(output).suffix if output else ".jsonl"
    if suffix not in (".jsonl", ".txt"):
        raise FirthError("unknown_format", "The output must end with .jsonl or .txt; got {got}.", got=output)
    count = 0
    with open_output(output) as file:
        for key, text in documents:
            as_json = suffix == ".jsonl"
            row = json.dumps({"key": key, "text": text}, ensure_ascii=False) if as_json else " ".join(text.split())
            file.write(row + "\n")
            count += 1
    return count


@command.command()
@click.argument("data", nargs=-1, required=True, metavar="DATA…")
@click.option("--tokenizer", default="words", show_default=True, help="words, whitespace, characters or jieba.")
@click.option("--lowercase/--no-lowercase", default=True, help="Convert to lowercase.")
@click.option("-k", type=int, default=20, show_default=True, help="How many frequent words to show.")
@data_options
@json_flag
def info(
    data: tuple[str, ...],
    tokenizer: str,
    lowercase: bool,
    k: int,
    unit: str,
    column: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Describe DATA: documents, words, vocabulary, the most frequent words, and encoding errors."""
    from firth.core.run import Run
    from firth.data.corpus import Corpus
    from firth.data.tokens import read_tokens

    report = RecordingReport()
    corpus = Corpus(*data, unit=unit, column=column, key=key)
    tokens = read_tokens(corpus, tokenizer=tokenizer, lowercase=lowercase, min_count=1, run=Run(report=report))
    vocabulary = tokens.vocabulary
    counts: dict[str, Any] = {
        "documents": len(tokens),
        "words": tokens.raw_tokens,
        "vocabulary": len(vocabulary),
        "once": int((vocabulary.counts == 1).sum()),
    }
    top = list(zip(vocabulary.tokens[:k], vocabulary.counts[:k].tolist(), strict=True))
    if as_json:
        print_json({**counts, "most_frequent": dict(top), "notes": report.notes})
        return
    print_fields(counts)
    click.echo()
    print_table(["word", "count"], [[word, f"{count:,}"] for word, count in top], numbers=[1])


class RecordingReport:
    """The report of `choose_report` that also records its notes."""

    def __init__(self) -> None:
        self.report, self.notes = choose_report(), list[str]()
        self.begin, self.step, self.end = self.report.begin, self.report.step, self.report.end

    def note(self, text: str, code: str = "note") -> None:
        """Record a note, and pass it on."""
        self.notes.append(text)
        self.report.note(text, code)
