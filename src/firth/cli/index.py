"""`firth index MODEL DATA… -o IDX`: texts embedded and indexed, in bounded memory; a killed run goes on."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from firth.cli.common import (
    choose_report,
    data_options,
    json_flag,
    metric_option,
    no_texts,
    note,
    open_model,
    print_json,
)
from firth.cli.places import Place, place_of, postgres_option
from firth.cli.pooling import engine_flags, given_engine
from firth.core.errors import FirthError, FirthWarning

if TYPE_CHECKING:
    from firth.core.model import Model
    from firth.core.vectors import Matrix
    from firth.data.corpus import Corpus
    from firth.index import Index, PostgresIndex

BATCH = 4096  # texts embedded at a time
COMMIT = 32_768  # rows, or a minute: what a killed run may lose
WIDEST = 16_384  # numbers a row: wider ones are sparse, and an index would be mostly zeros

Embed = Callable[[list[str]], tuple["Matrix", int]]  # vectors, and how many words had none


@click.command()
@click.argument("model")
@click.argument("data", nargs=-1, required=True, metavar="DATA…")
@click.option("-o", "--output", required=True, metavar="IDX", help="The index's folder; with --postgres, its table.")
@postgres_option
@click.option("--attributes", metavar="NAMES", help="Columns to filter by, as in year,language (jsonl, csv, Parquet).")
@click.option(
    "--numbers",
    type=click.Choice(("float32", "float16", "int8")),
    default="float32",
    show_default=True,
    help="float16 halves the memory; int8 adds bytes to narrow rows, as float32 has them for wide ones.",
)
@metric_option
@engine_flags
@data_options
@click.option("--overwrite", is_flag=True, help="Replace another index in IDX.")
@json_flag
def command(
    model: str,
    data: tuple[str, ...],
    output: str,
    postgres: str | None,
    attributes: str | None,
    numbers: str,
    metric: str,
    unit: str,
    column: str | None,
    key: str | None,
    overwrite: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Embed texts, one row a line (or record) of DATA, and index them for `firth search`; - reads standard input.

    The same command goes on where a killed one stopped.
    """
    from firth.data.corpus import Corpus, invalid_utf8_note

    embedder = open_model(model)
    engine = given_engine(embedder, model, values)
    fields = [name.strip() for name in attributes.split(",")] if attributes else []
    if "text" in fields and column not in (None, "text"):
        raise FirthError(
            "duplicate_name",
            "An index calls the texts 'text', here {column}; --attributes takes no other column 'text'.",
            column=column,
        )
    texts = Corpus(*data, unit=unit, column=column, key=key, fields=fields)
    embed = embedding(embedder, model, engine)
    started = time.perf_counter()
    place = place_of(output, postgres)
    index, status = opened(place, embedder, model, texts, engine, metric=metric, numbers=numbers, overwrite=overwrite)
    facts = {"rows": len(index), "unknown": 0, "zero_rows": 0}
    if status != "already finished":
        try:
            with index:
                facts = fill(index, texts, embed)
                if not len(index):
                    raise FirthError("empty_data", "There is nothing to index: the input has no documents.")
                index.optimize()
                index.add_metadata(finished=True)
        except BaseException:
            with contextlib.suppress(FirthError):  # the server may be what failed
                if not len(index):  # there is nothing to go on with
                    place.remove()
            raise
    seconds = time.perf_counter() - started
    lacking = [f"{facts['unknown']:,} words have no vector"] if facts["unknown"] else []
    lacking += [f"{facts['zero_rows']:,} texts are zero and found by words only"] if facts["zero_rows"] else []
    if lacking:
        note(f"{'; '.join(lacking)}.", "unknown_words")
    if texts.replaced:
        note(invalid_utf8_note(texts.replaced, texts), "invalid_utf8")
    if as_json:
        print_json({"index": output, "status": status, **facts, "seconds": round(seconds, 3)})
    else:
        click.echo(f"{len(index):,} texts in {output} ({status}, {seconds:.1f} s)")


def embedding(model: Model, path: str, engine: dict[str, str]) -> Embed:
    """What turns texts into vectors."""
    pool, plain = getattr(model, "pool", None), getattr(model, "embed", None)
    if model.method.kind == "table" or (pool is None and plain is None):
        raise no_texts(model, path)

    def embed(texts: list[str]) -> tuple[Matrix, int]:
        if pool is None:
            assert plain is not None
            return plain(texts), 0
        pooled = pool(texts, **engine)
        return pooled.matrix, int(pooled.unknown.sum())

    return embed


def unusual_precision(engine: dict[str, str]) -> str | None:
    """The precision that was given, unless it is the one that the device takes anyway."""
    if "precision" not in engine:
        return None
    from firth.transformers.text_encoder import resolve_engine

    device = engine.get("device", "auto")
    usual, given = (resolve_engine(device, precision)[1] for precision in ("auto", engine["precision"]))
    return None if given == usual else given


def opened(
    place: Place,
    model: Any,
    path: str,
    texts: Corpus,
    engine: dict[str, str],
    *,
    metric: str,
    numbers: str,
    overwrite: bool,
) -> tuple[Index | PostgresIndex, str]:
    """The index to fill, new or begun, and which of these it is."""
    from firth.core.checkpoint import difference
    from firth.core.train import model_hash

    identity = {"model": model_hash(model), "data": texts.fingerprint(), "metric": metric, "numbers": numbers}
    if unusual := unusual_precision(engine):
        identity["precision"] = unusual
    if place.exists():
        index = place.open()
        if not overwrite and index.metadata.get("identity") == identity and identity["data"] is not None:
            index.model = model
            return index, "already finished" if index.metadata.get("finished") else "resumed"
        if not overwrite and len(index):  # a run that did not come to its first commit may be replaced
            why = difference({"identity": index.metadata.get("identity")}, identity)
            if index.metadata.get("identity") == identity:
                why = "whether of the same data can't be told"
            raise FirthError(
                "other_run",
                "{path} holds another index ({reason}); choose another place, or --overwrite it.",
                path=place.describe,
                reason=why,
            )
        place.remove()
    dim = int(model.embed(["a"], **engine).shape[1])
    if dim > WIDEST:
        raise FirthError(
            "unsupported_model",
            "{path} gives rows of {dim:,} numbers, mostly zeros; index denser ones, such as those of lsa.",
            path=path,
            dim=dim,
        )
    metadata = {"identity": identity, "finished": False}
    where = str(Path(path).resolve())
    made = place.create(dim=dim, metric=metric, dtype=numbers, model=model, model_path=where, metadata=metadata)
    return made, "indexed"


class Batch(NamedTuple):
    keys: list[str]
    texts: list[str]
    values: list[tuple[Any, ...]]
    done: int  # bytes of the sources read so far


def batches(texts: Corpus, skip: int) -> Iterator[Batch]:
    walk = islice(texts.walk(), skip, None)
    while some := list(islice(walk, BATCH)):
        documents = [document for document, _, _ in some]
        keys, bodies = [document.key for document in documents], [document.text for document in documents]
        yield Batch(keys, bodies, [values for _, values, _ in some], some[-1][2])


def fill(index: Index | PostgresIndex, texts: Corpus, embed: Embed) -> dict[str, int]:
    """Adds all documents behind those that the index has."""
    import numpy as np

    report = choose_report()
    facts = {"rows": len(index), "unknown": 0, "zero_rows": 0}
    kinds = index.columns or column_kinds(texts)
    waiting: list[tuple[Batch, Matrix]] = []
    last = time.monotonic()

    def commit() -> None:
        if not waiting:
            return
        values = [row for batch, _ in waiting for row in batch.values]
        attributes: dict[str, Any] = {"text": [text for batch, _ in waiting for text in batch.texts]}
        for place, name in enumerate(texts.fields):
            attributes[name] = typed(name, [row[place] for row in values], kinds[name])
        keys = [key for batch, _ in waiting for key in batch.keys]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FirthWarning)  # zero rows are told once, at the end
            index.add(keys, np.concatenate([matrix for _, matrix in waiting]), attributes)
        waiting.clear()

    report.begin("indexing", texts.size, "bytes")
    for batch in batches(texts, len(index)):
        matrix, unknown = embed(batch.texts)
        waiting.append((batch, matrix))
        facts["rows"] += len(batch.keys)
        facts["unknown"] += unknown
        facts["zero_rows"] += int((~matrix.any(axis=1)).sum())
        if sum(len(part.keys) for part, _ in waiting) >= COMMIT or time.monotonic() - last > 60:
            commit()
            last = time.monotonic()
        report.step(batch.done, texts=facts["rows"])
    commit()
    report.end()
    return facts


def column_kinds(texts: Corpus) -> dict[str, Any]:
    """The Arrow type of each attribute, from all documents: what the first rows have may not fit the last."""
    import pyarrow

    found = dict.fromkeys(texts.fields, pyarrow.null())
    walk = texts.walk() if texts.fields else iter(())
    while some := [values for _, values, _ in islice(walk, BATCH)]:
        for name, values in zip(texts.fields, zip(*some, strict=True), strict=True):
            pair = [pyarrow.schema([(name, kind)]) for kind in (found[name], kind_of(values))]
            try:
                found[name] = pyarrow.unify_schemas(pair, promote_options="permissive").field(0).type
            except pyarrow.ArrowTypeError:
                found[name] = pyarrow.string()
    return {name: pyarrow.string() if pyarrow.types.is_null(kind) else kind for name, kind in found.items()}


def kind_of(values: Sequence[Any]) -> Any:
    """csv has texts only: where all are numbers or empty, these count."""
    import pyarrow

    try:
        column = pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError):  # of several kinds, or beyond 64 bits
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


def typed(name: str, values: list[Any], kind: Any) -> Any:
    """A column for Arrow, of this type."""
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
            "The attribute {name} holds {kind} in the index; got something else ({reason}).",
            name=name,
            kind=kind,
            reason=str(error),
        ) from None
