"""`firth embed MODEL DATA… -o OUT`: one vector per text or table row, in bounded memory."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firth.cli.cluster_options import cluster_flags, given_cluster, shard_flag
from firth.cli.common import (
    choose_report,
    dash_is_stdout,
    data_options,
    json_flag,
    note,
    open_model,
    open_table_input,
    print_json,
    protect_inputs,
    unsupported,
)
from firth.cli.embed_batches import BATCH, NO_DOCUMENTS, batches, sparse_batches, text_batches, unit_of
from firth.cli.pooling_options import (
    NAMES,
    engine_flags,
    given_engine,
    given_pooling,
    given_prompt,
    pooling_flags,
    prompt_flag,
)
from firth.cli.row_writers import SUFFIXES, EmbeddedBatch, writer
from firth.core.data import single_file
from firth.core.errors import FirthError
from firth.core.functions import check_tokenizer
from firth.core.processes import is_first_process, refuse_processes
from firth.core.remote import as_path
from firth.transformers.pooling import PoolsTokens

if TYPE_CHECKING:
    from firth.core.model import Model
    from firth.data.corpus import Corpus, Document
    from firth.tables.table_model import TableModel
    from firth.transformers.pooling import Pooling

SHARD_ROWS = 65536


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("data", nargs=-1, required=True, metavar="DATA…")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    callback=dash_is_stdout,
    help=".npy (keys in NAME.keys.json), .parquet, .jsonl, .npz (sparse rows of counts and tf-idf), or a folder of "
    "shards. JSON lines on standard output if omitted.",
)
@click.option(
    "--shards",
    type=click.Choice(("parquet", "npy")),
    default="parquet",
    show_default=True,
    help="The format of the shards.",
)
@click.option("--shard-rows", type=int, default=SHARD_ROWS, show_default=True, help="Rows per shard.")
@click.option(
    "--smoothing",
    type=float,
    metavar="A",
    help="Weight each word by A/(A+frequency), so that rare words count more, for example 0.001; 0 = off. By default "
    "as stored in the model (firth pooling --smoothing).",
)
@pooling_flags
@prompt_flag("the model's default prompt")
@engine_flags
@data_options
@cluster_flags
@shard_flag
@json_flag
def command(path: str, data: tuple[str, ...], output: str | None, as_json: bool, **values: Any) -> None:
    """Embed the texts of DATA, one row per line or record; - reads standard input.

    Vectors in a folder are written as shards, by several workers with --cluster, and the same command resumes an
    interrupted run. After a job array (--shard), the command without --shard completes the folder. A table model
    takes a table (csv, tsv, jsonl, Parquet) and writes one vector per row.
    """
    from firth.data.corpus import Corpus
    from firth.tables.table_model import TableModel

    protect_inputs(output, path, *data)
    if output and Path(output).suffix not in (*SUFFIXES, ""):
        raise FirthError(
            "unknown_format",
            "The output must be a folder or end with one of {choices}; got {got}.",
            choices=", ".join(SUFFIXES),
            got=output,
        )
    has_shards = bool(output) and not Path(output or "").suffix
    cluster = given_cluster(values, has_shards)
    if not has_shards:
        refuse_processes("firth embed to one file")
    if as_json and not output:
        raise click.UsageError("--json needs -o OUT; without it the rows themselves are printed as JSON.")
    model = open_model(path)
    if isinstance(model, TableModel):
        if output and not Path(output).suffix:
            raise FirthError(
                "unknown_format",
                "The rows of a table are written to one file ({suffixes}); got {got}.",
                suffixes=", ".join(SUFFIXES[:3]),
                got=output,
            )
        embed_table(model, single_file(data, "table"), values["key"], output, as_json)
        return
    check_tokenizer(model.method)
    settings = embedding_settings(model, path, values)
    texts = Corpus(*data, unit=values["unit"], column=values["column"], key=values["key"])
    protect_inputs(output, *(source.name for source in texts.sources))
    if output and has_shards:
        from firth.cli.embed_job import ShardTask, embed_to_shards

        task = ShardTask(model, path, texts, as_path(output), settings, values["shards"], values["shard_rows"])
        counts = embed_to_shards(task, cluster)
    else:
        counts = embed_to_file(model, path, texts, output, settings)
    if not is_first_process():
        return
    print_notes(model, texts, counts, settings.get("pooling"))
    if as_json:
        print_json({**counts, "output": output})
    elif output:
        part = f" (part {values['shard']})" if cluster.part else ""
        click.echo(f"{counts['rows']:,} rows in {output}{part}")


def print_notes(model: Model, texts: Corpus, counts: Counter[str], pooling: Pooling | None) -> None:
    """Print notes on unknown words, empty texts, truncation and invalid UTF-8."""
    from firth.core.model import Contextual
    from firth.data.corpus import invalid_utf8_note

    rows, unit, unknown = counts["rows"], unit_of(model), counts["unknown"]
    if isinstance(model, Contextual):  # a network has vectors for unknown tokens and for the empty text
        if unknown:
            note(f"{unknown:,} of {counts[unit]:,} tokens are unknown to the tokenizer.", "unknown_tokens")
        if counts["empty_rows"]:
            note(f"{counts['empty_rows']:,} of {rows:,} texts are empty; they all have the same vector.", "empty_texts")
    else:
        problems = [f"{unknown:,} of {counts[unit]:,} {unit} have no vector"] if unknown else []
        problems += [f"{counts['zero_rows']:,} rows are zero"] if counts["zero_rows"] else []
        if problems:
            note(f"{'; '.join(problems)}.", "unknown_words")
    if counts["cut_rows"] and pooling is not None and isinstance(model, PoolsTokens):
        limit = pooling.max_tokens or model.size.max_positions
        note(
            f"{counts['cut_rows']:,} of {rows:,} texts have more than {limit:,} tokens and were truncated; "
            "--long chunk reads them completely.",
            "cut_texts",
        )
    if counts["not_utf8"]:
        note(invalid_utf8_note(counts["not_utf8"], texts), "invalid_utf8")


def embedding_settings(model: Model, path: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the further arguments of `embed_batches` of this model."""
    from firth.core.model import AveragesWords

    layer = given_layer(model, values)
    pooling = {} if layer else given_pooling(model, path, values)
    engine = given_engine(model, path, values)
    prompt = given_prompt(model, path, values["prompt"])
    smoothing = {} if values["smoothing"] is None else {"smoothing": values["smoothing"]}
    if values["smoothing"] and not isinstance(model, AveragesWords):
        raise unsupported(model, path, "does not average word vectors, and --smoothing does not apply to it")
    if not isinstance(model, PoolsTokens):
        return smoothing if isinstance(model, AveragesWords) else layer
    return {"pooling": model.with_pooling(**pooling).pooling, **engine, **prompt}


def given_layer(model: Model, values: dict[str, Any]) -> dict[str, Any]:
    """Return --layers as the layer of a language model, which has one pooling: the mean of its tokens."""
    from firth.core.model import Generates

    others = [name for name in NAMES if name != "layers" and values[name] is not None]
    if values["layers"] is None or others or isinstance(model, PoolsTokens) or not isinstance(model, Generates):
        return {}
    try:
        return {"layer": int(values["layers"])}
    except ValueError:
        raise FirthError(
            "invalid_value",
            "{option} takes one layer of a language model, as in -2; got {got!r}.",
            option="--layers",
            got=values["layers"],
        ) from None


# ---- outputs ----


def embed_to_file(model: Model, path: str, texts: Corpus, output: str | None, settings: dict[str, Any]) -> Counter[str]:
    """Embed all texts to one file or to standard output, and return the counts."""
    sparse = output is not None and Path(output).suffix == ".npz"
    total = Counter[str]()
    with writer(output) as write, Progress(texts, shown=output is not None) as progress:
        documents = text_batches(progress.documents(), texts)
        embedded = sparse_batches(model, documents, path) if sparse else batches(model, documents, path, settings)
        for batch, counts in embedded:
            write(batch)
            total.update(counts)
            progress.rows(total["rows"])
        if not total["rows"]:
            raise FirthError("empty_data", NO_DOCUMENTS)
    return total


class Progress:
    """Progress in bytes read, with rows per second."""

    def __init__(self, texts: Corpus, shown: bool) -> None:
        self.report = choose_report("auto" if shown else "none")  # rows may be printed on the terminal
        self.texts, self.read = texts, 0
        self.started = time.monotonic()

    def __enter__(self) -> Progress:
        self.report.begin("embedding", self.texts.size, "B")
        return self

    def documents(self) -> Iterator[Document]:
        """Yield the documents, and count the bytes that were read."""
        for document, _, read in self.texts.walk():
            self.read = read
            yield document

    def rows(self, count: int) -> None:
        """Report the number of rows written, and the speed."""
        speed = count / max(1e-9, time.monotonic() - self.started)
        self.report.step(self.read, **{"rows": count, "rows/s": speed})

    def __exit__(self, *_: object) -> None:
        self.report.end()


def embed_table(model: TableModel, path: str, key: str | None, output: str | None, as_json: bool) -> None:
    """Embed the rows of a table. Unknown are categories that were not in the training data."""
    from firth.tables.table_model import single_precision

    rows = open_table_input(path)
    table = model.open(rows)
    vector_keys = None if isinstance(rows, str) else list(rows.keys)
    keys = vector_keys or list(map(str, range(1, len(table) + 1)))
    if key:
        cells = table.categories(key)
        if None in cells:
            raise FirthError(
                "malformed_data",
                "The key column {key!r} is empty in row {index:,}.",
                key=key,
                index=cells.index(None) + 1,
            )
        keys = [cell for cell in cells if cell is not None]
    unseen = 0
    with writer(output) as write:
        if not len(table):
            raise FirthError("empty_data", "{path} has no rows to embed.", path=path)
        for start in range(0, len(table), BATCH):
            coded = model.coded(table.slice(start, start + BATCH))
            write(EmbeddedBatch(keys[start : start + BATCH], single_precision(coded.matrix), coded.unseen.tolist()))
            unseen += int(coded.unseen.sum())
    if unseen:
        note(f"{unseen:,} categories were not in the training data and are encoded as missing.", "unknown_category")
    if as_json:
        print_json({"rows": len(table), "features": model.feature_names, "unknown": unseen, "output": output})
    elif output:
        click.echo(f"{len(table):,} rows in {output}")
