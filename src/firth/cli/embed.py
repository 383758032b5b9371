"""`firth embed MODEL DATA… -o OUT`: texts as vectors, one row a document, in bounded memory."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from firth.cli.common import (
    choose_report,
    data_options,
    json_flag,
    keep_inputs,
    no_texts,
    note,
    one_file,
    open_model,
    open_rows,
    or_stdout,
    print_json,
)
from firth.cli.pooling import engine_flags, given_engine, given_pooling, pooling_flags
from firth.cli.rows import SUFFIXES, Rows, writer
from firth.cli.shards import Shards, open_for_all, written_by_all
from firth.core.errors import FirthError
from firth.core.functions import check_tokenizer
from firth.core.processes import is_first_process, refuse_processes

if TYPE_CHECKING:
    from firth.data.corpus import Corpus
    from firth.transformers.pooling import Pooling

BATCH = 2048  # texts at a time
SHARD = 65536  # rows of a shard
NOTHING = "There is nothing to embed: the input has no documents."


@click.command()
@click.argument("model")
@click.argument("data", nargs=-1, required=True, metavar="DATA…")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    callback=or_stdout,
    help=".npy (keys in NAME.keys.json), .parquet, .jsonl, or .npz (sparse rows, of counts and tf-idf); or a folder, "
    "for shards. JSON lines on standard output if left out.",
)
@click.option(
    "--shards",
    type=click.Choice(("parquet", "npy")),
    default="parquet",
    show_default=True,
    help="The files of a folder.",
)
@click.option("--shard-rows", type=int, default=SHARD, show_default=True, help="Rows of each of them.")
@click.option(
    "--smoothing",
    type=float,
    default=0.0,
    metavar="A",
    help="Rare words weigh more: A/(A+share), such as 0.001; 0 = off.",
)
@pooling_flags
@engine_flags
@data_options
@json_flag
def command(model: str, data: tuple[str, ...], output: str | None, as_json: bool, **values: Any) -> None:
    """Turn texts into vectors, one row a line (or record) of DATA; - reads standard input.

    Into a folder, vectors go in shards: the same command again goes on with what was broken off. A model of tables
    takes a table (csv, tsv, jsonl, Parquet), one row a row.
    """
    from firth.data.corpus import Corpus

    keep_inputs(output, model, *data)
    if output and Path(output).suffix not in (*SUFFIXES, ""):
        raise FirthError(
            "unknown_format",
            "The output must be a folder or end with one of {choices}; got {got}.",
            choices=", ".join(SUFFIXES),
            got=output,
        )
    if not output or Path(output).suffix:
        refuse_processes("firth embed to one file")
    if as_json and not output:
        raise click.UsageError("--json needs -o OUT: without it the rows themselves are JSON.")
    embedder = open_model(model)
    if embedder.method.kind == "table":
        if output and not Path(output).suffix:
            raise FirthError(
                "unknown_format",
                "A table's rows go to one file: {suffixes}; got {got}.",
                suffixes=", ".join(SUFFIXES[:3]),
                got=output,
            )
        embed_table(embedder, one_file(data, "table"), values["key"], output, as_json)
        return
    check_tokenizer(embedder.method)
    settings = settings_of(embedder, model, values)
    texts = Corpus(*data, unit=values["unit"], column=values["column"], key=values["key"])
    keep_inputs(output, *(source.name for source in texts.sources))
    if output and not Path(output).suffix:
        with contextlib.closing(open_for_all(model, texts, Path(output), settings, values)) as shards:
            figures = embed_to_shards(embedder, texts, shards, settings)
    else:
        figures = embed_to_file(embedder, model, texts, output, settings)
    if not is_first_process():
        return
    tell(embedder, texts, figures, settings.get("pooling"))
    if as_json:
        print_json({**figures, "output": output})
    elif output:
        click.echo(f"{figures['rows']:,} rows in {output}")


def tell(model: Any, texts: Corpus, figures: Counter[str], pooling: Pooling | None) -> None:
    """Notes on what is odd."""
    from firth.data.corpus import invalid_utf8_note

    rows, unit, unknown = figures["rows"], unit_of(model), figures["unknown"]
    if hasattr(model, "net"):  # which has a vector for what it does not know, and for nothing at all
        if unknown:
            note(f"{unknown:,} of {figures[unit]:,} tokens are unknown to the tokenizer.", "unknown_tokens")
        if figures["empty_rows"]:
            empty = f"{figures['empty_rows']:,} of {rows:,} texts are empty"
            note(f"{empty}; they all have the same vector.", "empty_texts")
    else:
        lacking = [f"{unknown:,} of {figures[unit]:,} {unit} have no vector"] if unknown else []
        lacking += [f"{figures['zero_rows']:,} rows are zero"] if figures["zero_rows"] else []
        if lacking:
            note(f"{'; '.join(lacking)}.", "unknown_words")
    if figures["cut_rows"] and pooling is not None:
        most = pooling.max_tokens or model.size.max_positions
        cut = f"{figures['cut_rows']:,} of {rows:,} texts have more than {most:,} tokens and were cut there"
        note(f"{cut}; --long chunk reads them whole.", "cut_texts")
    if figures["not_utf8"]:
        note(invalid_utf8_note(figures["not_utf8"], texts), "invalid_utf8")


def unit_of(model: Any) -> str:
    """What a model cuts texts into."""
    return "tokens" if hasattr(model, "tokenizer") or hasattr(model, "tokens") else "words"


def settings_of(model: Any, path: str, values: dict[str, Any]) -> dict[str, Any]:
    """What `pool` or `pool_windows` of this model is given."""
    pooling = given_pooling(model, values)
    chosen = given_engine(model, path, values)
    method = type(model.method).method_name()
    if values["smoothing"] and "smoothing" not in inspect.signature(getattr(model, "pool", bool)).parameters:
        raise FirthError(
            "unsupported_model",
            "--smoothing weighs words whose vectors are averaged; {method} does not average any.",
            method=method,
        )
    if not hasattr(model, "pool_windows"):
        return {"smoothing": values["smoothing"]} if values["smoothing"] else {}
    return {"pooling": model.with_pooling(**pooling).pooling, **chosen}


# ---- where to ----


def embed_to_file(model: Any, path: str, texts: Corpus, output: str | None, settings: dict[str, Any]) -> Counter[str]:
    sparse = output is not None and Path(output).suffix == ".npz"
    total = Counter[str]()
    with writer(output) as write, Progress(texts, shown=output is not None) as progress:
        documents = windows(texts, progress, BATCH)
        found = sparse_batches(model, documents, path) if sparse else batches(model, documents, path, settings)
        for batch, figures in found:
            write(batch)
            total.update(figures)
            progress.rows(total["rows"])
        if not total["rows"]:
            raise FirthError("empty_data", NOTHING)
    return total


def embed_to_shards(model: Any, texts: Corpus, shards: Shards, settings: dict[str, Any]) -> Counter[str]:
    """Embeds this process's part of what is missing; the first process finishes the folder."""
    first = is_first_process()
    if shards.finished:
        if first:
            note(f"{shards.folder} is finished already: nothing was computed.", "already_finished")
        return shards.figures()
    if shards.lost and first:
        note(f"Missing or damaged, and embedded again: {', '.join(shards.lost)}.", "lost_shards")
    if shards.done and first:
        note(f"{len(shards.done):,} shards are there already; going on with the others.", "resumed")
    rows = 0
    with Progress(texts, shown=first) as progress:
        found = batches(model, windows(texts, progress, BATCH, shards), str(shards.folder), settings)
        batch = next(found, None)
        for number in filter(shards.mine, count()):
            if batch is None:
                break
            left, total = shards.rows, Counter[str]()
            with shards.writing(number, total) as write:
                while batch is not None:
                    write(batch[0])
                    total.update(batch[1])
                    rows += len(batch[0].keys)
                    progress.rows(rows)
                    left -= len(batch[0].keys)
                    batch = next(found, None) if left else None
            batch = next(found, None)
    others = written_by_all(shards)
    if not first:
        return shards.figures()
    if not any(others):
        raise FirthError("empty_data", NOTHING)
    shards.finish(others)
    return shards.figures()


class Progress:
    """Rows per second and the time left, by the bytes that were read."""

    def __init__(self, texts: Any, shown: bool = True) -> None:
        self.report, self.size = choose_report("auto" if shown else "none"), texts.size  # rows may go to the terminal
        self.read = 0
        self.started = time.monotonic()

    def __enter__(self) -> Progress:
        self.report.begin("embedding", self.size, "B")
        return self

    def rows(self, count: int) -> None:
        speed = count / max(1e-9, time.monotonic() - self.started)
        self.report.step(self.read, **{"rows": count, "rows/s": speed})

    def __exit__(self, *_: object) -> None:
        self.report.end()


# ---- from where ----


class Batch(NamedTuple):
    """Documents read together."""

    keys: list[str]
    texts: list[str]
    not_utf8: int  # byte sequences that were replaced


def windows(texts: Corpus, progress: Progress, size: int, shards: Shards | None = None) -> Iterator[Batch]:
    """Documents in lists of `size`, none across the end of a shard; those of shards that are done, or of another
    process, are passed by."""
    documents, replaced = texts.walk(), 0
    for number in count():
        part = islice(documents, shards.rows if shards else None)
        if shards and not shards.mine(number):
            deque(part, maxlen=0)
            replaced = texts.replaced
            continue
        some = list(islice(part, size))
        if not some:
            return
        while some:
            progress.read = some[-1][2]
            keys, bodies = [document.key for document, _, _ in some], [document.text for document, _, _ in some]
            yield Batch(keys, bodies, texts.replaced - replaced)
            replaced = texts.replaced
            some = list(islice(part, size))


def figures_of(model: Any, batch: Batch, pooled: Any, pooling: Pooling | None) -> dict[str, int]:
    """What is told of a batch; `cut_rows` where texts that are too long are cut."""
    read = pooled.known + pooled.unknown
    figures = {"rows": len(batch.keys), unit_of(model): int(read.sum()), "unknown": int(pooled.unknown.sum())}
    figures |= {"empty_rows": int((read == 0).sum()), "zero_rows": int(((pooled.matrix != 0).sum(axis=1) == 0).sum())}
    if pooling is not None:
        most = (pooling.max_tokens or model.size.max_positions) - 2  # [CLS] and [SEP]
        figures["cut_rows"] = int((read > most).sum()) if pooling.long == "truncate" else 0
    return {**figures, "not_utf8": batch.not_utf8}


def batches(
    model: Any, documents: Iterable[Batch], path: str, settings: dict[str, Any]
) -> Iterator[tuple[Rows, dict[str, int]]]:
    """Batches, each with its figures."""
    if not hasattr(model, "pool"):
        raise no_texts(model, path)
    waiting: deque[Batch] = deque()

    def texts() -> Iterator[list[str]]:
        for batch in documents:
            waiting.append(batch)
            yield batch.texts

    if hasattr(model, "pool_windows"):
        found = model.pool_windows(texts(), **settings)
    else:
        found = (model.pool(window, **settings) for window in texts())
    for pooled in found:
        batch = waiting.popleft()
        figures = figures_of(model, batch, pooled, settings.get("pooling"))
        yield Rows(batch.keys, pooled.matrix, pooled.unknown.tolist()), figures


def sparse_batches(model: Any, documents: Iterable[Batch], path: str) -> Iterator[tuple[Rows, dict[str, int]]]:
    """`batches` for models that give sparse rows."""
    if not hasattr(model, "transform") or not hasattr(model, "weighted"):
        method = type(model.method).method_name()
        raise FirthError(
            "unsupported_model",
            "{path} gives no sparse rows ({method}); choose .npy, .parquet or .jsonl.",
            path=path,
            method=method,
        )
    for batch in documents:
        found = model.weighted(batch.texts)
        yield Rows(batch.keys, found.matrix, found.unknown.tolist()), figures_of(model, batch, found, None)


def embed_table(model: Any, path: str, key: str | None, output: str | None, as_json: bool) -> None:
    """`model` is a TableModel. What is unknown are categories that it did not meet when it was fitted."""
    from firth.tables.table_model import single_precision

    rows = open_rows(path)
    table = model.open(rows)
    named = None if isinstance(rows, str) else list(rows.keys)  # vectors
    keys = table.categories(key) if key else named or list(map(str, range(1, len(table) + 1)))
    if None in keys:
        raise FirthError(
            "malformed_data", "The key column {key!r} is empty in row {index:,}.", key=key, index=keys.index(None) + 1
        )
    unseen = 0
    with writer(output) as write:
        if not len(table):
            raise FirthError("empty_data", "There is nothing to embed: the table has no rows.")
        for start in range(0, len(table), BATCH):
            coded = model.coded(table.slice(start, start + BATCH))
            write(Rows(keys[start : start + BATCH], single_precision(coded.matrix), coded.unseen.tolist()))
            unseen += int(coded.unseen.sum())
    if unseen:
        note(f"{unseen:,} categories are new to the model and coded as missing.", "unknown_category")
    if as_json:
        print_json({"rows": len(table), "features": model.feature_names, "unknown": unseen, "output": output})
    elif output:
        click.echo(f"{len(table):,} rows in {output}")
