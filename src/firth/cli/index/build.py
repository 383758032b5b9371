"""`firth index build MODEL DATA… -o INDEX`: texts embedded and indexed, in bounded memory; resumable."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from firth.cli.cluster_options import cluster_flags, given_cluster
from firth.cli.common import (
    METRICS,
    choose_report,
    data_options,
    does_not_embed,
    json_flag,
    note,
    open_model,
    print_json,
)
from firth.cli.index_location import IndexLocation, index_location, postgres_option
from firth.cli.pooling_options import engine_flags, given_engine, given_prompt, prompt_flag
from firth.core.errors import FirthError, FirthWarning
from firth.core.remote import is_url

if TYPE_CHECKING:
    from firth.core.model import Model
    from firth.core.vectors import Matrix
    from firth.data.corpus import Corpus
    from firth.index import Index, PostgresIndex

BATCH = 4096  # texts embedded at a time
COMMIT = 32_768  # rows, or one minute: the most that a killed run loses
PARTITIONS = 8  # of a table that several workers fill
MAX_DIM = 16_384  # wider rows are sparse, and the index would be mostly zeros

Embed = Callable[[list[str]], tuple["Matrix", int]]  # vectors, and the number of words without one


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("data", nargs=-1, required=True, metavar="DATA…")
@click.option(
    "-o", "--output", required=True, metavar="INDEX", help="The folder of the index; with --postgres, its table."
)
@postgres_option
@click.option(
    "--attributes", metavar="NAMES", help="Columns to filter searches by, as in year,language (jsonl, csv, Parquet)."
)
@click.option(
    "--dtype",
    type=click.Choice(("float32", "float16", "int8")),
    default="float32",
    show_default=True,
    help="How vectors are stored. float16 halves the memory; int8 adds a byte copy for faster exact search.",
)
@click.option("--metric", type=click.Choice(METRICS), help="By default the similarity of the model, else cosine.")
@prompt_flag("the prompt for documents")
@engine_flags
@data_options
@cluster_flags
@click.option("--overwrite", is_flag=True, help="Replace another index in INDEX.")
@json_flag
def command(
    path: str,
    data: tuple[str, ...],
    output: str,
    postgres: str | None,
    attributes: str | None,
    dtype: str,
    metric: str | None,
    prompt: str | None,
    unit: str,
    column: str | None,
    key: str | None,
    overwrite: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Embed the texts of DATA, one per line or record, and index them for `firth search`; - reads standard input.

    The same command resumes an interrupted build.
    """
    from firth.data.corpus import Corpus
    from firth.index import Index
    from firth.work.worker import RECORDS

    cluster = given_cluster(values, has_shards=True)
    model = open_model(path)
    engine = given_engine(model, path, values)
    fields = [name.strip() for name in attributes.split(",")] if attributes else []
    if "text" in fields and column not in (None, "text"):
        raise FirthError(
            "duplicate_name",
            "The texts are stored as the attribute 'text' (here from {column}), so --attributes cannot contain 'text'.",
            column=column,
        )
    texts = Corpus(*data, unit=unit, column=column, key=key, fields=fields)
    settings = {**engine, **document_prompt(model, path, prompt)}
    metric = metric or default_metric(model)
    embed = embedding(model, path, settings)
    started = time.perf_counter()
    location = index_location(output, postgres)
    index, status = open_or_create(
        location,
        model,
        path,
        texts,
        settings,
        metric=metric,
        dtype=dtype,
        overwrite=overwrite,
        partitions=PARTITIONS if postgres and cluster.where else None,
    )
    counts = {"rows": len(index), "unknown": 0, "zero_rows": 0}
    if status != "already finished":
        records = None if postgres else Path(output) / RECORDS
        if not isinstance(index, Index):
            index.lock()
        with removed_if_empty(index, location, records), index:
            types = index.columns or column_types(texts)
            if cluster.where and isinstance(index, Index):
                from firth.cli.index.cluster import fill_on

                counts = fill_on(cluster, index, path, texts, settings, types)
            elif not isinstance(index, Index) and (cluster.where or index.has_shards):
                from firth.cli.index.cluster import fill_table_on

                counts = fill_table_on(cluster, index, path, texts, settings, types)
            else:
                counts = fill(index, texts, embed, types)
            finish(index, records)
    seconds = time.perf_counter() - started
    note_problems(counts, texts)
    if as_json:
        print_json({"index": output, "status": status, **counts, "seconds": round(seconds, 3)})
    else:
        click.echo(f"{len(index):,} texts in {output} ({status}, {seconds:.1f} s)")


@contextlib.contextmanager
def removed_if_empty(index: Index | PostgresIndex, location: IndexLocation, records: Path | None) -> Iterator[None]:
    """Remove the index after an error in the block if there is nothing to resume: no rows and no finished shards."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(FirthError):  # the server may be the cause of the failure
            if not len(index) and not (records and records.exists()):
                location.remove()
        raise


def finish(index: Index | PostgresIndex, records: Path | None) -> None:
    """Optimize a filled index, mark it as finished, and remove the records of its shards."""
    from firth.core.storage import remove
    from firth.index import Index

    if not len(index):
        raise FirthError("empty_data", "The input has no documents to index.")
    index.optimize()
    (index.add_metadata if isinstance(index, Index) else index.end_shards)(finished=True)
    if records:
        remove(records)


def note_problems(counts: Mapping[str, int], texts: Corpus) -> None:
    """Print notes on unknown words, texts without a vector, and invalid UTF-8."""
    from firth.data.corpus import invalid_utf8_note

    problems = [f"{counts['unknown']:,} words have no vector"] if counts["unknown"] else []
    if counts["zero_rows"]:
        problems.append(f"{counts['zero_rows']:,} texts have a zero vector and are found by words only")
    if problems:
        note(f"{'; '.join(problems)}.", "unknown_words")
    if texts.replaced:
        note(invalid_utf8_note(texts.replaced, texts), "invalid_utf8")


def embedding(model: Model, path: str, engine: dict[str, str]) -> Embed:
    """Return the function that embeds texts."""
    from firth.core.embedding import EmbedsTexts

    if not isinstance(model, EmbedsTexts):
        raise does_not_embed(model, path)

    def embed(texts: list[str]) -> tuple[Matrix, int]:
        embedded = model.embed_with_counts(texts, **engine)
        return embedded.matrix, int(embedded.unknown.sum())

    return embed


def document_prompt(model: Model, path: str, name: str | None) -> dict[str, Any]:
    """Return the prompt of documents as a setting of `embed`: the given one, or the model's own for documents."""
    from firth.core.embedding import EmbedsTexts

    if name is not None:
        return given_prompt(model, path, name)
    return model.role_settings("document") if isinstance(model, EmbedsTexts) else {}


def default_metric(model: Model) -> str:
    """Return the similarity that the model was made for, if the index has it; else cosine."""
    from firth.transformers.pooling import PoolsTokens

    similarity = model.sentence.similarity if isinstance(model, PoolsTokens) else None
    return similarity if similarity in METRICS else METRICS[0]


def unusual_precision(engine: dict[str, str]) -> str | None:
    """Return the given precision, unless it is the default of the device."""
    if "precision" not in engine:
        return None

    device = engine.get("device", "auto")
    from firth.transformers.text_encoder import resolve_engine

    default, given = (resolve_engine(device, precision)[1] for precision in ("auto", engine["precision"]))
    return None if given == default else given


def open_or_create(
    location: IndexLocation,
    model: Model,
    path: str,
    texts: Corpus,
    engine: dict[str, str],
    *,
    metric: str,
    dtype: str,
    overwrite: bool,
    partitions: int | None,
) -> tuple[Index | PostgresIndex, str]:
    """Return the index to fill and its status: indexed (new), resumed or already finished. `partitions` are those of a
    new table."""
    from firth.core.checkpoint import difference
    from firth.core.train import model_hash

    identity = {"model": model_hash(model), "data": texts.fingerprint(), "metric": metric, "numbers": dtype}
    if unusual := unusual_precision(engine):
        identity["precision"] = unusual
    for name in {"prompt", "prompt_text"} & engine.keys():
        identity[name] = engine[name]
    if location.exists():
        index = location.open()
        if not overwrite and index.metadata.get("identity") == identity and identity["data"] is not None:
            index.model = model
            return index, "already finished" if index.metadata.get("finished") else "resumed"
        if not overwrite and len(index):  # a run without a first commit may be replaced
            reason = difference({"identity": index.metadata.get("identity")}, identity)
            if index.metadata.get("identity") == identity:
                reason = "standard input cannot be compared with the indexed data"
            raise FirthError(
                "other_run",
                "{path} contains another index ({reason}). Choose another output, or pass --overwrite.",
                path=location.description,
                reason=reason,
            )
        location.remove()
    dim = int(embedding(model, path, engine)(["a"])[0].shape[1])
    if dim > MAX_DIM:
        raise FirthError(
            "unsupported_model",
            "{path} gives sparse vectors of {dim:,} dimensions. Index dense vectors, such as those of lsa.",
            path=path,
            dim=dim,
        )
    metadata = {"identity": identity, "finished": False}
    model_path = path if is_url(path) else str(Path(path).resolve())
    more = {} if partitions is None else {"partitions": partitions}
    index = location.create(
        dim=dim, metric=metric, dtype=dtype, model=model, model_path=model_path, metadata=metadata, **more
    )
    return index, "indexed"


class Batch(NamedTuple):
    """Documents that are embedded together."""

    keys: list[str]
    texts: list[str]
    values: list[tuple[Any, ...]]


def batches(texts: Corpus, skip: int) -> Iterator[tuple[Batch, int]]:
    """Yield the documents in batches, without the first `skip`, and the bytes of the sources read so far."""
    walk = islice(texts.walk(), skip, None)
    while some := list(islice(walk, BATCH)):
        documents = [document for document, _, _ in some]
        keys, bodies = [document.key for document in documents], [document.text for document in documents]
        yield Batch(keys, bodies, [values for _, values, _ in some]), some[-1][2]


def fill(index: Index | PostgresIndex, texts: Corpus, embed: Embed, types: Mapping[str, Any]) -> dict[str, int]:
    """Add all documents after those that the index already has, and return the counts."""
    import numpy as np

    report = choose_report()
    counts = {"rows": len(index), "unknown": 0, "zero_rows": 0}
    waiting: list[tuple[Batch, Matrix]] = []
    last = time.monotonic()

    def commit() -> None:
        if not waiting:
            return
        attributes = attribute_columns([batch for batch, _ in waiting], texts.fields, types)
        keys = [key for batch, _ in waiting for key in batch.keys]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FirthWarning)  # zero rows are reported once, at the end
            index.add(keys, np.concatenate([matrix for _, matrix in waiting]), attributes)
        waiting.clear()

    report.begin("indexing", texts.size, "bytes")
    for batch, done in batches(texts, len(index)):
        matrix, unknown = embed(batch.texts)
        waiting.append((batch, matrix))
        counts["rows"] += len(batch.keys)
        counts["unknown"] += unknown
        counts["zero_rows"] += int((~matrix.any(axis=1)).sum())
        if sum(len(part.keys) for part, _ in waiting) >= COMMIT or time.monotonic() - last > 60:
            commit()
            last = time.monotonic()
        report.step(done, texts=counts["rows"])
    commit()
    report.end()
    return counts


def attribute_columns(batches: Sequence[Batch], fields: Sequence[str], types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts and the attributes of batches as columns."""
    values = [row for batch in batches for row in batch.values]
    attributes: dict[str, Any] = {"text": [text for batch in batches for text in batch.texts]}
    for position, name in enumerate(fields):
        attributes[name] = typed_column(name, [row[position] for row in values], types[name])
    return attributes


def column_types(texts: Corpus) -> dict[str, Any]:
    """Return the Arrow type of each attribute, from all documents: the type of the first rows may not fit the last."""
    import pyarrow

    types = dict.fromkeys(texts.fields, pyarrow.null())
    walk = texts.walk() if texts.fields else iter(())
    while some := [values for _, values, _ in islice(walk, BATCH)]:
        for name, values in zip(texts.fields, zip(*some, strict=True), strict=True):
            pair = [pyarrow.schema([(name, kind)]) for kind in (types[name], column_type(values))]
            try:
                types[name] = pyarrow.unify_schemas(pair, promote_options="permissive").field(0).type
            except pyarrow.ArrowTypeError:
                types[name] = pyarrow.string()
    return {name: pyarrow.string() if pyarrow.types.is_null(kind) else kind for name, kind in types.items()}


def column_type(values: Sequence[Any]) -> Any:
    """Return the Arrow type of a column. The cells of csv are strings; if all are numbers or empty, it is numeric."""
    import pyarrow

    try:
        column = pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError):  # mixed types, or numbers beyond 64 bits
        return pyarrow.string()
    if not pyarrow.types.is_string(column.type):
        return column.type
    filled = pyarrow.array([value or None for value in values], pyarrow.string())
    if filled.null_count == len(filled):
        return pyarrow.null()
    for number in (pyarrow.int64(), pyarrow.float64()):
        with contextlib.suppress(pyarrow.ArrowInvalid):
            return filled.cast(number).type
    return column.type


def typed_column(name: str, values: list[Any], kind: Any) -> Any:
    """Return the values as an Arrow array of this type."""
    import pyarrow

    from firth.index.where import is_text

    try:
        if is_text(kind):
            return pyarrow.array([None if value is None else str(value) for value in values], kind)
        if any(isinstance(value, str) for value in values):  # numbers in csv
            texts = [None if value in (None, "") else str(value) for value in values]
            return pyarrow.array(texts, pyarrow.string()).cast(kind)
        return pyarrow.array(values, kind)
    except (pyarrow.ArrowException, OverflowError) as error:
        raise FirthError(
            "invalid_type",
            "The attribute {name} has the type {kind} in the index, and the new values do not fit it ({reason}).",
            name=name,
            kind=kind,
            reason=str(error),
        ) from None
