"""What the verbs share: opening what a path names, tables, JSON, and the flags that several have."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from firth.cli.main import wants_json
from firth.core.errors import FirthError, FirthWarning
from firth.core.report import JsonLines, JsonLog, LogLines, Report, TerminalBar

if TYPE_CHECKING:
    from firth.core.model import Model
    from firth.core.vectors import Vectors

Function = TypeVar("Function", bound=Callable[..., Any])
METRICS = ("cosine", "dot", "euclidean")  # as in core.vectors, which --help need not load
UNITS = ("line", "block", "file")

json_flag = click.option("--json", "as_json", is_flag=True, help="Print JSON; errors and notes are JSON too.")
metric_option = click.option("--metric", type=click.Choice(METRICS), default="cosine", show_default=True)
table_option = click.option(
    "--table", metavar="NAME", help="Which table of a model, such as users or tags; else its main one."
)
restrict_option = click.option("--restrict", type=int, metavar="N", help="Only the first N words, the most frequent.")


def data_options(function: Function) -> Function:
    """--unit, --column and --key: how files are cut into documents."""
    for option in reversed(DATA_OPTIONS):
        function = click.option(option[0], **option[1])(function)
    return function


DATA_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--unit",
        {
            "type": click.Choice(UNITS),
            "default": "line",
            "show_default": True,
            "help": "What one document of a text file is.",
        },
    ),
    ("--column", {"metavar": "NAME", "help": "The text's column (jsonl, csv, tsv, Parquet)."}),
    ("--key", {"metavar": "NAME", "help": "The key's column."}),
)

TAGS_OPTION: tuple[str, dict[str, Any]] = (
    "--tags",
    {"metavar": "NAMES", "help": "Columns with a tag or a list of tags, as in author,topics: tags get vectors too."},
)

LABEL_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--column", {"metavar": "NAME", "help": "The text's column (jsonl, csv, tsv, Parquet)."}),
    ("--label", {"metavar": "NAME", "help": "The labels' column; label if left out. Text files have __label__ words."}),
)

TABLE_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--columns", {"metavar": "NAMES", "help": "Only these columns of the table, as in age,zip."}),
    ("--categories", {"metavar": "NAMES", "help": "Columns that look like numbers and are categories, as in zip."}),
)

GRAPH_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--directed", {"is_flag": True, "help": "Links lead from the first node to the second only."}),
    ("--unweighted", {"is_flag": True, "help": "All edges weigh 1, whatever stands in the third column."}),
    (
        "--layout",
        {
            "type": click.Choice(("edges", "adjacency")),
            "default": "edges",
            "show_default": True,
            "help": "A line is an edge (a b, or a b weight), or a node and all it is linked to.",
        },
    ),
    ("--columns", {"metavar": "NAMES", "help": "Columns of a table with a header: from,to or from,to,weight."}),
)

RATING_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--user", {"metavar": "NAME", "help": "The users' column; the first if left out."}),
    ("--item", {"metavar": "NAME", "help": "The items' column; the second if left out."}),
    ("--value", {"metavar": "NAME", "help": "The column of weights or ratings; the third if left out."}),
    ("--time", {"metavar": "NAME", "help": "The column of times; the fourth if left out."}),
)

PAIR_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--source", {"default": "source", "show_default": True, "metavar": "NAME", "help": "The sources' column."}),
    ("--target", {"default": "target", "show_default": True, "metavar": "NAME", "help": "The targets' column."}),
    (
        "--dev, --validation, validation",
        {"metavar": "FILES", "help": "Pairs to measure on, as in val.de,val.en or val.tsv."},
    ),
)


EXAMPLE_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--column, --text, text",
        {"default": "text", "show_default": True, "metavar": "NAME", "help": "The texts' column."},
    ),
    ("--other", {"metavar": "NAME", "help": "The column of the second texts, of pairs."}),
    ("--label", {"default": "label", "show_default": True, "metavar": "NAME", "help": "The column to be learned."}),
    ("--columns", {"metavar": "NAMES", "help": "Other columns to learn from beside the text, as in price,colour."}),
    ("--dev", {"metavar": "FILE", "help": "Data to choose and stop by; else a part of DATA is held out."}),
)


TAGGED_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--column, --text, text",
        {"default": "text", "show_default": True, "metavar": "NAME", "help": "The words' column."},
    ),
    ("--tags", {"default": "tags", "show_default": True, "metavar": "NAME", "help": "The tags' column."}),
    ("--dev", {"metavar": "FILE", "help": "Data to choose and stop by; else a part of DATA is held out."}),
)

ALIKE_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--unit",
        {
            "type": click.Choice((*UNITS, "sentence")),
            "default": "line",
            "show_default": True,
            "help": "What one text of a text file is.",
        },
    ),
    ("--column, --text, text", {"metavar": "NAME", "help": "The texts' column (csv, tsv, jsonl, Parquet)."}),
    ("--other", {"metavar": "NAME", "help": "Pairs: the column of the texts that are like them."}),
    ("--negative", {"metavar": "NAME", "help": "Pairs: a column of texts that are not."}),
    ("--score", {"metavar": "NAME", "help": "Pairs: a column that says how alike they are, the more the higher."}),
    ("--dev", {"metavar": "FILE", "help": "Pairs with scores to measure on; the best weights are kept."}),
    (
        "--dev-columns",
        {
            "default": "text,other,score",
            "show_default": True,
            "metavar": "NAMES",
            "help": "Their two texts and the score.",
        },
    ),
)


QUESTION_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(
        (
            f"--{name}-column",
            {"default": name, "show_default": True, "metavar": "NAME", "help": f"The {name}s' column."},
        )
        for name in ("question", "passage", "answer")
    ),
    ("--start-column", {"metavar": "NAME", "help": "The column that says at which character answers begin, if any."}),
    ("--dev", {"metavar": "FILE", "help": "Data to choose and stop by; else a part of DATA is held out."}),
)


def open_model(path: str) -> Model:
    """The model in a folder, or in a file of fastText's."""
    from firth.core.saved import load
    from firth.core.storage import CONFIG
    from firth.core.train import UNFINISHED

    folder = Path(path)
    if (folder / UNFINISHED).is_dir() and not (folder / CONFIG).exists():
        raise FirthError(
            "other_run",
            "{path} holds an unfinished run; `firth info {path}` tells how far it is and how to go on.",
            path=path,
        )
    if (folder / "sweep.json").is_file():
        raise FirthError(
            "wrong_input", "{path} holds a sweep; its model is {path_2}.", path=path, path_2=folder / "best"
        )
    if (folder / "index.json").is_file():
        raise FirthError(
            "wrong_input", "{path} is an index, which `firth search` asks; this needs a model's folder.", path=path
        )
    if folder.is_file() and not is_model_file(path):
        raise FirthError(
            "wrong_input", "{path} is a file; this needs the folder of a trained model, or a fastText model.", path=path
        )
    return load(folder)


def no_texts(model: Model, path: str) -> FirthError:
    """What to say of a model that embeds no texts."""
    way_out = "; `firth convert` writes the vectors that it has" if hasattr(model, "tables") else ""
    return FirthError(
        "unsupported_model",
        "{path} does not embed texts ({method}){hint}.",
        path=path,
        method=type(model.method).method_name(),
        hint=way_out,
    )


def is_model_file(path: str) -> bool:
    """Whether a file is a model, not a table of vectors."""
    from firth.formats.fasttext import is_fasttext

    return Path(path).is_file() and is_fasttext(path)


def one_file(data: Sequence[str], what: str) -> str:
    """The file that holds a table or a graph."""
    if len(data) > 1:
        raise FirthError("wrong_input", "A {detail} is one file; got {got}.", detail=what, got=len(data))
    return data[0]


def open_vectors(path: str, table: str | None = None) -> Vectors:
    """The vectors that a model (its main table, unless one is named) or a vector file holds."""
    if not Path(path).is_dir() and not is_model_file(path):
        from firth.formats import read_vectors

        if table:
            raise FirthError(
                "wrong_input", "{path} is a vector file, which has no tables; leave --table out.", path=path
            )
        return read_vectors(path)
    return vectors_of(open_model(path), path, table)


def vectors_of(model: Model, path: str, table: str | None = None) -> Vectors:
    from firth.core.model import HasVectors

    if not isinstance(model, HasVectors):
        raise FirthError(
            "unsupported_model",
            "{path} is a model without a table of vectors ({method}).",
            path=path,
            method=type(model.method).method_name(),
        )
    if table is None:
        return model.vectors
    tables = model.tables
    if table not in tables:
        raise FirthError(
            "unknown_table",
            "{path} has no table {table!r}; it has {tables}.",
            path=path,
            table=table,
            tables=", ".join(tables),
        )
    return tables[table]


def as_keys(vectors: Vectors, words: Sequence[str]) -> list[str]:
    """The words as the table has them: where its words have no capitals, Paris is taken for paris, and that is said."""
    found = list(words)
    for place, word in enumerate(words):
        if word not in vectors and word.lower() in vectors and not has_capitals(vectors):
            found[place] = word.lower()
            note(f"{word!r} is taken for {found[place]!r}: words have no capitals here.", "lowercased")
    return found


def has_capitals(vectors: Vectors) -> bool:
    return any(key != key.lower() for key in vectors.keys if key[:1] not in ("[", "<"))  # [CLS] and <unk> are no words


def or_stdout(_: click.Context, __: click.Parameter, output: str | None) -> str | None:
    """-o - is standard output, as if -o were left out."""
    return None if output == "-" else output


def keep_inputs(output: str | None, *inputs: str) -> None:
    """Refuses to write over what is read, or over a file in the folder of a model that is read."""
    if not output or not Path(output).exists():
        return
    place = Path(output).resolve()
    for path in map(Path, filter(None, inputs)):
        is_part = place.is_file() and (path / "config.json").is_file() and place.is_relative_to(path.resolve())
        if is_part or place == path.resolve():
            raise FirthError(
                "output_is_input", "{path} is what is read; choose another place for what is written.", path=output
            )


def open_rows(path: str) -> Any:
    """What a model of tables takes: a table, or the vectors of a model or a vector file."""
    names = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
    table = any(suffix in names for suffix in Path(path).suffixes) or not Path(path).exists()
    return path if table else open_vectors(path)


def write_table(table: Any, path: str) -> None:
    """A table as csv, tsv, jsonl or Parquet, whole or not at all."""
    import pyarrow.csv
    import pyarrow.parquet

    from firth.core.storage import new_file

    suffix = Path(path).suffix
    if suffix not in (".csv", ".tsv", ".jsonl", ".parquet"):
        raise FirthError("unknown_format", "A table is written as .csv, .tsv, .jsonl or .parquet; got {got}.", got=path)
    with new_file(Path(path)) as work:
        if suffix == ".parquet":
            pyarrow.parquet.write_table(table.arrow(), work)
        elif suffix == ".jsonl":
            columns = table.to_dict()
            rows = zip(*columns.values(), strict=True)
            lines = [json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) for row in rows]
            work.write_text("\n".join(lines) + "\n", encoding="utf-8")
        else:
            options = pyarrow.csv.WriteOptions(delimiter="," if suffix == ".csv" else "\t", quoting_style="needed")
            pyarrow.csv.write_csv(table.arrow(), work, options)


def print_rows(table: Any, output: str | None, as_json: bool) -> None:
    """Rows into a file, or on standard output as a table or as JSON."""
    if output:
        write_table(table, output)
        click.echo(
            json.dumps({"rows": len(table), "output": output}) if as_json else f"{len(table):,} rows in {output}"
        )
        return
    columns = table.to_dict()
    rows = list(zip(*columns.values(), strict=True))
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
        return

    def shown(value: Any) -> str:
        return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)

    numbers = [place for place, values in enumerate(columns.values()) if isinstance(values[0], (int, float))]
    print_table(list(columns), [[shown(value) for value in row] for row in rows], numbers)


def choose_report(progress: str = "auto") -> Report:
    """A bar on a terminal, elsewhere a line now and then, with --json as JSON; "none" leaves notes only. All events as
    JSON by "json" or by FIRTH_PROGRESS=json, for programs that draw the progress themselves."""
    if progress == "json" or (progress == "auto" and os.environ.get("FIRTH_PROGRESS") == "json"):
        return JsonLines()
    if progress == "auto" and sys.stderr.isatty() and not wants_json():
        return TerminalBar()
    return (JsonLog if wants_json() else LogLines)(progress=progress == "auto")


def note(text: str, code: str = "note") -> None:
    """Something the user should know, on standard error: a line, or with --json an object."""
    warnings.warn(FirthWarning(text, code), stacklevel=2)


def print_json(document: Any) -> None:
    click.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> None:
    from firth.evaluate.layout import text_table

    click.echo(text_table(header, rows, numbers))


def print_facts(facts: Mapping[str, Any]) -> None:
    """name  value, one a line; what is empty is left out."""
    shown = {name: value for name, value in facts.items() if value not in (None, "")}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        click.echo(f"{name:<{width}}  {f'{value:,}' if isinstance(value, int) else value}")
