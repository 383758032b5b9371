"""`firth tokenizer`: train a subword tokenizer; encode text as token ids and decode them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import click

from firth.cli.common import (
    PROGRESS,
    choose_report,
    data_options,
    json_flag,
    print_fields,
    print_json,
    protect_inputs,
)
from firth.cli.groups import CommandGroup
from firth.core.errors import FirthError
from firth.core.options import options_of
from firth.core.remote import as_path

if TYPE_CHECKING:
    from firth.data.subword_tokenizer import Encoding

KINDS = ("bpe", "wordpiece", "characters")
BATCH = 1024  # texts at a time

lowercase_option = click.option(
    "--lowercase/--no-lowercase",
    default=True,
    help="Whether a vocab.txt is lowercase; other files contain this setting.",
)


@click.group(cls=CommandGroup)
def command() -> None:
    """Train a subword tokenizer; encode text as token ids and decode them.

    TOKENIZER is a tokenizer.json, a vocab.txt, or a folder with one of them or with vocab.json and merges.txt.
    """


@command.command()
@click.argument("data", nargs=-1, required=True, metavar="DATA…")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="OUT",
    help="A tokenizer.json (or another .json), a vocab.txt (wordpiece), or a folder for these and the files of GPT-2.",
)
@click.option("--kind", type=click.Choice(KINDS), default="bpe", show_default=True)
@click.option("--size", type=int, metavar="N", help="Vocabulary size  [8000; characters: all of the text].")
@click.option("--level", type=click.Choice(("bytes", "characters")), help="The initial units of BPE  [bytes].")
@click.option(
    "--lowercase/--no-lowercase", default=None, help="Convert to lowercase without accents  [wordpiece: on, bpe: off]."
)
@click.option("--min-count", type=int, metavar="N", help="The minimum count of a pair  [2; characters: 1].")
@click.option("--max-characters", type=int, metavar="N", help="Keep the N most frequent characters  [1000].")
@click.option(
    "--special-token",
    "special_tokens",
    multiple=True,
    metavar="TOKEN",
    help="A special token, instead of the default ones; repeatable.",
)
@click.option("--threads", type=int, default=0, help="Worker threads; 0 = one per core.")
@click.option("--memory", default="", metavar="SIZE", help="Memory limit for counting, such as 2GB.")
@click.option(
    "--cluster", default="", metavar="WHERE", help="Where the text is counted: processes, ray or ray://HOST:PORT."
)
@click.option("--workers", type=int, default=0, help="Worker processes of the cluster; 0 = one per core.")
@click.option("--overwrite", is_flag=True, help="Replace OUT.")
@click.option("--progress", type=click.Choice(("auto", "json", "none")), default="auto", help=PROGRESS)
@data_options
@json_flag
def train(data: tuple[str, ...], output: str, kind: str, **values: Any) -> None:
    """Train a tokenizer on DATA: text, jsonl, csv, tsv, Parquet, also compressed; - reads standard input."""
    from firth.core.run import Run
    from firth.data import subwords
    from firth.data.corpus import Corpus

    protect_inputs(output)
    target = as_path(output)
    if target.exists() and not values["overwrite"] and (not target.is_dir() or any(target.iterdir())):
        raise FirthError("output_exists", "{path} exists. Pass --overwrite to replace it.", path=output)
    kinds: Any = {"bpe": subwords.BPE, "wordpiece": subwords.WordPiece, "characters": subwords.Characters}
    names = ("size", "level", "lowercase", "min_count", "max_characters")
    given = {name: values[name] for name in names if values[name] is not None}
    unknown = sorted(set(given) - {option.name for option in options_of(kinds[kind])})
    if unknown:
        raise click.UsageError(f"--{unknown[0].replace('_', '-')} does not apply to --kind {kind}.")
    if values["special_tokens"]:
        given["special_tokens"] = values["special_tokens"]
    method = kinds[kind](**given)
    if target.suffix == ".txt" and kind != "wordpiece":
        raise FirthError(
            "unknown_format", "vocab.txt is a WordPiece file. For {kind}, choose a .json file or a folder.", kind=kind
        )
    if values["workers"] and not values["cluster"]:
        raise FirthError(
            "missing_option",
            "{option} needs {missing} too, which says where the workers run: processes or ray.",
            option="--workers",
            missing="--cluster",
        )
    settings: dict[str, Any] = {name: values[name] for name in ("threads", "memory", "cluster", "workers")}
    run = Run(**settings, report=choose_report(values["progress"]))
    corpus = Corpus.from_files(data, values)
    tokenizer = method.train(corpus, run)
    tokenizer.save(output)
    fields = {"kind": tokenizer.kind, "tokens": len(tokenizer.ids), "merges": len(tokenizer.merges) or None}
    fields |= {"special": " ".join(tokenizer.special_tokens), "output": output}
    if values["as_json"]:
        print_json({**fields, "special": tokenizer.special_tokens})
        return
    print_fields(fields)


@command.command()
@click.argument("tokenizer")
@click.argument("data", default="-")
@click.option("--tokens", is_flag=True, help="Print tokens instead of ids.")
@click.option("--special-tokens/--no-special-tokens", default=True, help="Add special tokens such as [CLS].")
@lowercase_option
@data_options
@json_flag
def encode(
    tokenizer: str,
    data: str,
    tokens: bool,
    special_tokens: bool,
    lowercase: bool,
    unit: str,
    column: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Encode the texts of DATA (or standard input) as token ids, one text per line; --json adds tokens and offsets."""
    from firth.data.corpus import Corpus
    from firth.data.subword_tokenizer import SubwordTokenizer

    engine = SubwordTokenizer.load(tokenizer, lowercase)
    documents = iter(Corpus(data, unit=unit, column=column, key=key))
    shown: Callable[[str, Encoding], str] = json_line if as_json else token_line if tokens else id_line
    while batch := list(islice(documents, BATCH)):
        encodings = engine.encode_batch([text for _, text in batch], special_tokens)
        for (document_key, _), encoded in zip(batch, encodings, strict=True):
            click.echo(shown(document_key, encoded))


def json_line(key: str, encoded: Encoding) -> str:
    """Return the ids, tokens and offsets as JSON."""
    return json.dumps({"key": key, **encoded._asdict()}, ensure_ascii=False)


def token_line(key: str, encoded: Encoding) -> str:
    """Return the tokens, separated by spaces."""
    return " ".join(encoded.tokens)


def id_line(key: str, encoded: Encoding) -> str:
    """Return the ids, separated by spaces."""
    return " ".join(map(str, encoded.ids))


@command.command()
@click.argument("tokenizer")
@click.argument("file", default="-")
@click.option("--special-tokens/--no-special-tokens", default=False, help="Show special tokens.")
@lowercase_option
@json_flag
def decode(tokenizer: str, file: str, special_tokens: bool, lowercase: bool, as_json: bool) -> None:
    """Decode lines of token ids, or the JSON lines of `encode`, from FILE or standard input."""
    from firth.data.subword_tokenizer import SubwordTokenizer

    engine = SubwordTokenizer.load(tokenizer, lowercase)
    with click.open_file(file, encoding="utf-8", errors="replace") as lines:
        for ids in id_lines(lines):
            text = engine.decode(ids, special_tokens)
            if as_json:
                print_json({"text": text})
            else:
                click.echo(text)


def id_lines(file: IO[str]) -> Iterator[list[int]]:
    """Yield the ids of each line."""
    for number, line in enumerate(file, 1):
        ids = parse_ids(line)
        if ids is None:
            raise FirthError(
                "malformed_data",
                "Line {number} must be token ids separated by spaces, or JSON with ids; got {got!r}.",
                number=number,
                got=line[:40],
            )
        yield ids


def parse_ids(line: str) -> list[int] | None:
    """Return the ids of a line, or None if it has none."""
    try:
        if not line.lstrip().startswith("{"):
            return [int(id) for id in line.split()]
        ids = json.loads(line)["ids"]
        return ids if isinstance(ids, list) and all(type(id) is int for id in ids) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
