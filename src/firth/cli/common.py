"""What commands share: opening models, vectors and tables, printing results, and the flags that several have."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from firth.cli.main import wants_json
from firth.core.data import FileOption
from firth.core.errors import FirthError, FirthWarning
from firth.core.remote import RemotePath, as_path, is_url
from firth.core.report import JsonLines, JsonLog, LogLines, Report, TerminalBar
from firth.data.shared_options import TEXT_OPTIONS

if TYPE_CHECKING:
    from firth.core.model import Model
    from firth.core.vectors import Vectors

Function = TypeVar("Function", bound=Callable[..., Any])
Flags = tuple[tuple[str, dict[str, Any]], ...]  # name of the flag, and the settings of click.option
METRICS = ("cosine", "dot", "euclidean")  # as in core.vectors, which --help must not import
PROGRESS = "auto: a bar on a terminal, otherwise an occasional line; json: every event; none: notes only."
TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")

json_flag = click.option("--json", "as_json", is_flag=True, help="Print JSON; errors, notes and progress are JSON too.")
k_option = click.option("-k", type=int, default=10, show_default=True, help="How many results to show.")
metric_option = click.option("--metric", type=click.Choice(METRICS), default="cosine", show_default=True)
table_option = click.option(
    "--table", metavar="NAME", help="A table of the model, such as users or tags; the default is its main table."
)
subwords_option = click.option(
    "--subwords",
    type=click.Choice(("mean", "first", "last")),
    default="mean",
    show_default=True,
    help="How the vectors of the subwords of a word are combined.",
)
restrict_option = click.option("--restrict", type=int, metavar="N", help="Only the N most frequent words.")


def file_flags(options: Sequence[FileOption]) -> Flags:
    """Return the flags of options for reading files."""
    return tuple((f"--{option.flag}", flag_settings(option)) for option in options)


def flag_settings(option: FileOption) -> dict[str, Any]:
    """Return the settings of the flag of one option."""
    if option.role == "flag":
        return {"is_flag": True, "help": option.help}
    default = option.default if option.role != "columns" else ",".join(option.default or ())
    settings: dict[str, Any] = {"default": default, "show_default": True} if default else {}
    if option.role == "choice":
        return {"type": click.Choice(option.choices), **settings, "help": option.help}
    metavars = {"column": "NAME", "columns": "NAMES", "source": "FILES" if option.several else "FILE"}
    return {"metavar": metavars[option.role], **settings, "help": option.help}


def add_flags(flags: Flags) -> Callable[[Function], Function]:
    """Return a decorator that adds flags to a command, in their order."""

    def decorate(function: Function) -> Function:
        """Add the flags to a command."""
        for name, settings in reversed(flags):
            function = click.option(name, **settings)(function)
        return function

    return decorate


data_options = add_flags(file_flags(TEXT_OPTIONS))  # --unit, --column and --key: how files are divided into documents


def open_model(path: str) -> Model:
    """Open the model in a folder or in a fastText file; one at a URL is copied to the cache."""
    from firth.core.remote_folders import local_copy

    with local_copy(path) as folder:
        return open_local(folder)


def open_local(folder: Path) -> Model:
    """Open the model in a folder or file of this machine; see `open_model`."""
    from firth.core.saved import load
    from firth.core.storage import CONFIG
    from firth.core.train import UNFINISHED

    path = str(folder)
    if (folder / UNFINISHED).is_dir() and not (folder / CONFIG).exists():
        raise FirthError(
            "other_run",
            "{path} contains an unfinished run. `firth info {path}` shows its progress and how to resume it.",
            path=path,
        )
    if (folder / "sweep.json").is_file():
        raise FirthError(
            "wrong_input", "{path} contains a sweep. Its model is {best}.", path=path, best=folder / "best"
        )
    if (folder / "index.json").is_file():
        raise FirthError(
            "wrong_input", "{path} is an index; a model folder is needed. Search it with `firth search`.", path=path
        )
    if folder.is_file() and not is_model_file(path):
        raise FirthError(
            "wrong_input",
            "{path} is not a model. Expected a model folder, a fastText model (.bin, .ftz) or GGUF.",
            path=path,
        )
    return load(folder)


def unsupported(model: Model, path: str, problem: str, advice: str = "") -> FirthError:
    """Return the error for a model that lacks an ability: `problem` completes "MODEL (method) …"."""
    return FirthError(
        "unsupported_model",
        "{path} ({method}) {problem}.{advice}",
        path=path,
        method=type(model.method).method_name(),
        problem=problem,
        advice=advice and f" {advice}",
    )


def does_not_embed(model: Model, path: str) -> FirthError:
    """Return the error for a model that does not embed texts."""
    from firth.core.model import HasVectors

    advice = "`firth convert` writes the vectors it has." if isinstance(model, HasVectors) else ""
    return unsupported(model, path, "does not embed texts", advice)


def is_model_file(path: str) -> bool:
    """Return whether a file is a model, of fastText or GGUF, rather than a vector file."""
    from firth.core.remote_folders import local_path
    from firth.formats.fasttext import is_fasttext
    from firth.formats.gguf import is_gguf

    if not as_path(path).is_file() or (is_url(path) and as_path(path).suffix in (*TABLE_SUFFIXES, ".txt")):
        return False
    local = local_path(path)
    return is_fasttext(local) or is_gguf(local)


def open_vectors(path: str, table: str | None = None) -> Vectors:
    """Open a vector file, or a table of a model; the default is its main table."""
    if not as_path(path).is_dir() and not is_model_file(path):
        from firth.formats import read_vectors

        if table:
            raise FirthError("wrong_input", "{path} is a vector file and has no tables. Omit --table.", path=path)
        return read_vectors(path)
    return vectors_of(open_model(path), path, table)


def vectors_of(model: Model, path: str, table: str | None = None) -> Vectors:
    """Return a table of vectors of a model."""
    from firth.core.model import HasVectors

    if not isinstance(model, HasVectors):
        raise unsupported(model, path, "has no table of vectors")
    if table is None:
        return model.vectors
    tables = model.tables
    if table not in tables:
        raise FirthError(
            "unknown_table",
            "{path} has no table {table!r}. Its tables are: {tables}.",
            path=path,
            table=table,
            tables=", ".join(tables),
        )
    return tables[table]


def resolve_keys(vectors: Vectors, words: Sequence[str]) -> list[str]:
    """Return the keys for words: Paris becomes paris, with a note, in a vocabulary that is all lowercase."""
    keys = list(words)
    for position, word in enumerate(words):
        if word not in vectors and word.lower() in vectors and not has_capitals(vectors):
            keys[position] = word.lower()
            note(f"Using {keys[position]!r} for {word!r}: the vocabulary is lowercase.", "lowercased")
    return keys


def has_capitals(vectors: Vectors) -> bool:
    """Return whether a key has capital letters, not counting special tokens such as [CLS] and <unk>."""
    return any(key != key.lower() for key in vectors.keys if key[:1] not in ("[", "<"))


def dash_is_stdout(_: click.Context, __: click.Parameter, output: str | None) -> str | None:
    """Treat `-o -` as standard output, as if -o were omitted."""
    return None if output == "-" else output


def protect_inputs(output: str | None, *inputs: str) -> None:
    """Refuse to overwrite an input, or a file in the folder of a model that is an input."""
    target = as_path(output) if output else None
    if isinstance(target, RemotePath):
        if output in inputs:
            raise FirthError(
                "output_is_input", "The output {path} is also an input. Choose another output path.", path=output
            )
        target.check_writable()
        return
    if not output or not Path(output).exists():
        return
    target = Path(output).resolve()
    for path in map(Path, filter(None, inputs)):
        is_part = target.is_file() and (path / "config.json").is_file() and target.is_relative_to(path.resolve())
        if is_part or target == path.resolve():
            raise FirthError(
                "output_is_input", "The output {path} is also an input. Choose another output path.", path=output
            )


def open_table_input(path: str) -> Any:
    """Return what a table model takes: the path of a table, or the vectors of a model or vector file."""
    suffixes = (*TABLE_SUFFIXES, ".ndjson")
    is_table = any(suffix in suffixes for suffix in as_path(path).suffixes) or not as_path(path).exists()
    return path if is_table else open_vectors(path)


def write_table(table: Any, path: str) -> None:
    """Write a table as csv, tsv, jsonl or Parquet; the file is complete or not written at all."""
    import pyarrow.csv
    import pyarrow.parquet

    from firth.core.storage import new_file

    suffix = as_path(path).suffix
    if suffix not in TABLE_SUFFIXES:
        raise FirthError("unknown_format", "A table is written as .csv, .tsv, .jsonl or .parquet; got {got}.", got=path)
    with new_file(as_path(path)) as work:
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
    """Write rows to a file, or print them as a table or as JSON."""
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

    numeric = [position for position, values in enumerate(columns.values()) if isinstance(values[0], (int, float))]
    print_table(list(columns), [[shown(value) for value in row] for row in rows], numeric)


def choose_report(progress: str = "auto") -> Report:
    """Return the progress report for standard error.

    "auto" is a bar on a terminal and otherwise an occasional line, with --json as JSON. "none" shows only notes.
    "json", or FIRTH_PROGRESS=json in the environment, prints every event for programs that draw the progress.
    """
    if progress == "json" or (progress == "auto" and os.environ.get("FIRTH_PROGRESS") == "json"):
        return JsonLines()
    if progress == "auto" and sys.stderr.isatty() and not wants_json():
        return TerminalBar()
    return (JsonLog if wants_json() else LogLines)(progress=progress == "auto")


def note(text: str, code: str = "note") -> None:
    """Print a note on standard error: a line, or with --json an object."""
    warnings.warn(FirthWarning(text, code), stacklevel=2)


def print_json(document: Any) -> None:
    """Print one JSON document on one line."""
    click.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> None:
    """Print an aligned table; `numbers` are the columns that are aligned to the right."""
    from firth.evaluate.layout import text_table

    click.echo(text_table(header, rows, numbers))


def print_fields(fields: Mapping[str, Any]) -> None:
    """Print one `name  value` per line, without empty values."""
    shown = {name: value for name, value in fields.items() if value not in (None, "")}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        click.echo(f"{name:<{width}}  {f'{value:,}' if isinstance(value, int) else value}")


@contextlib.contextmanager
def open_output(output: str | None) -> Iterator[IO[str]]:
    """Open the output file, which is complete or not written at all; None is standard output."""
    from firth.core.storage import new_file

    if output is None:
        yield sys.stdout
        return
    with new_file(as_path(output)) as work, work.open("w", encoding="utf-8") as file:
        yield file
