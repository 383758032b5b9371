"""`firth tokenizer`: learn a subword tokenizer, turn text into ids and ids into text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from firth.cli.common import DATA_OPTIONS, choose_report, data_options, json_flag, print_facts, print_json
from firth.core.errors import FirthError
from firth.core.options import options_of

if TYPE_CHECKING:
    from firth.data.subword_tokenizer import Encoding

KINDS = ("bpe", "wordpiece", "characters")
BATCH = 1024  # texts at a time

lowercase_option = click.option(
    "--lowercase/--no-lowercase", default=True, help="Whether a vocab.txt is of folded case; other files say so."
)


@click.group()
def command() -> None:
    """Learn a subword tokenizer; text to ids and back.

    TOKENIZER is a tokenizer.json, a vocab.txt, or a folder with one of them or with vocab.json and merges.txt.
    """


@command.command()
@click.argument("data", nargs=-1, required=True, metavar="DATA…")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="OUT",
    help="tokenizer.json (or another .json), vocab.txt (of wordpiece), or a folder for these and GPT-2's two files.",
)
@click.option("--kind", type=click.Choice(KINDS), default="bpe", show_default=True)
@click.option("--size", type=int, metavar="N", help="Tokens in all [default 8000; of characters, as the text has].")
@click.option("--level", type=click.Choice(("bytes", "characters")), help="What BPE starts from [default bytes].")
@click.option("--lowercase/--no-lowercase", default=None, help="Fold case and accents [wordpiece: on, bpe: off].")
@click.option("--min-count", type=int, metavar="N", help="How often a pair must occur [2; characters: 1].")
@click.option("--max-characters", type=int, metavar="N", help="Characters kept, the most frequent [default 1000].")
@click.option(
    "--special", multiple=True, metavar="TOKEN", help="A special token in place of the usual ones; repeatable."
)
@click.option("--threads", type=int, default=0, help="Worker threads [default 0: one for each core].")
@click.option("--memory", default="", metavar="SIZE", help="Most memory for counting, such as 2GB.")
@click.option("--overwrite", is_flag=True, help="Replace what is in OUT.")
@click.option("--progress", type=click.Choice(("auto", "json", "none")), default="auto", help="On standard error.")
@data_options
@json_flag
def train(data: tuple[str, ...], output: str, kind: str, **values: Any) -> None:
    """Learn a tokenizer from DATA: text, jsonl, csv, tsv, Parquet, also compressed; - for standard input."""
    from firth.core.run import Run
    from firth.data import subwords
    from firth.data.corpus import Corpus

    target = Path(output)
    if target.exists() and not values["overwrite"] and (not target.is_dir() or any(target.iterdir())):
        raise FirthError("output_exists", "{path} exists; --overwrite replaces it.", path=output)
    settings: Any = {"bpe": subwords.BPE, "wordpiece": subwords.WordPiece, "characters": subwords.Characters}[kind]
    names = ("size", "level", "lowercase", "min_count", "max_characters")
    given = {name: values[name] for name in names if values[name] is not None}
    unknown = sorted(set(given) - {option.name for option in options_of(settings)})
    if unknown:
        raise click.UsageError(f"--{unknown[0].replace('_', '-')} is no option of --kind {kind}.")
    if values["special"]:
        given["special_tokens"] = values["special"]
    method = settings(**given)
    if target.suffix == ".txt" and kind != "wordpiece":
        raise FirthError(
            "unknown_format", "vocab.txt is WordPiece's file; for {kind} choose a .json file or a folder.", kind=kind
        )
    run = Run(threads=values["threads"], memory=values["memory"], report=choose_report(values["progress"]))
    corpus = Corpus(*data, **{option[0][2:]: values[option[0][2:]] for option in DATA_OPTIONS})
    tokenizer = method.train(corpus, run)
    tokenizer.save(target)
    facts = {"kind": tokenizer.kind, "tokens": len(tokenizer.ids), "merges": len(tokenizer.merges) or None}
    facts |= {"special": " ".join(tokenizer.special_tokens), "output": output}
    if values["as_json"]:
        print_json({**facts, "special": tokenizer.special_tokens})
        return
    print_facts(facts)


@command.command()
@click.argument("tokenizer")
@click.argument("data", default="-")
@click.option("--tokens", is_flag=True, help="Print tokens in place of ids.")
@click.option("--special/--no-special", default=True, help="Add what the tokenizer puts around a text, as [CLS].")
@lowercase_option
@data_options
@json_flag
def encode(
    tokenizer: str,
    data: str,
    tokens: bool,
    special: bool,
    lowercase: bool,
    unit: str,
    column: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """The texts of DATA (or standard input) as ids, one text a line; --json has tokens and offsets too."""
    from firth.data.corpus import Corpus
    from firth.data.subword_tokenizer import SubwordTokenizer

    engine = SubwordTokenizer.load(tokenizer, lowercase)
    documents = iter(Corpus(data, unit=unit, column=column, key=key))
    shown: Callable[[str, Encoding], str] = json_line if as_json else token_line if tokens else id_line
    while batch := list(islice(documents, BATCH)):
        found = engine.encode_batch([text for _, text in batch], special)
        for (name, _), encoded in zip(batch, found, strict=True):
            click.echo(shown(name, encoded))


def json_line(key: str, encoded: Encoding) -> str:
    return json.dumps({"key": key, **encoded._asdict()}, ensure_ascii=False)


def token_line(key: str, encoded: Encoding) -> str:
    return " ".join(encoded.tokens)


def id_line(key: str, encoded: Encoding) -> str:
    return " ".join(map(str, encoded.ids))


@command.command()
@click.argument("tokenizer")
@click.argument("file", default="-")
@click.option("--special/--no-special", default=False, help="Show special tokens.")
@lowercase_option
@json_flag
def decode(tokenizer: str, file: str, special: bool, lowercase: bool, as_json: bool) -> None:
    """Lines of ids (or the JSON lines of `encode`) in FILE or standard input as texts."""
    from firth.data.subword_tokenizer import SubwordTokenizer

    engine = SubwordTokenizer.load(tokenizer, lowercase)
    with click.open_file(file, encoding="utf-8", errors="replace") as lines:
        for ids in id_lines(lines):
            text = engine.decode(ids, special)
            if as_json:
                print_json({"text": text})
            else:
                click.echo(text)


def id_lines(file: IO[str]) -> Iterator[list[int]]:
    for number, line in enumerate(file, 1):
        found = ids_in(line)
        if found is None:
            raise FirthError(
                "malformed_data",
                "Line {number} must be ids with spaces between, or JSON with ids; got {got!r}.",
                number=number,
                got=line[:40],
            )
        yield found


def ids_in(line: str) -> list[int] | None:
    try:
        if not line.lstrip().startswith("{"):
            return [int(id) for id in line.split()]
        found = json.loads(line)["ids"]
        return found if isinstance(found, list) and all(type(id) is int for id in found) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
