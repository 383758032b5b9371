"""`firth embed MODEL DATA… -o OUT`: texts as vectors, one row a document, in bounded memory."""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from firth.cli.common import data_options, json_flag, one_file, open_model, open_rows, print_json
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.core.model import Model
    from firth.core.vectors import Matrix

BATCH = 4096  # texts at a time
SUFFIXES = (".npy", ".parquet", ".jsonl", ".npz")


class Rows(NamedTuple):
    """A batch of embedded texts."""

    keys: list[str]
    matrix: Matrix  # for .npz a scipy.sparse one
    unknown: Sequence[int]  # words without a vector, a text


Write = Callable[[Rows], None]


@click.command()
@click.argument("model")
@click.argument("data", nargs=-1, required=True, metavar="DATA…")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    help=".npy, .parquet, .jsonl, or .npz (sparse rows, of counts and tf-idf); JSON lines on standard output if left "
    "out.",
)
@click.option(
    "--smoothing",
    type=float,
    default=0.0,
    metavar="A",
    help="Rare words weigh more: A/(A+share), such as 0.001; 0 = off.",
)
@data_options
@json_flag
def command(
    model: str,
    data: tuple[str, ...],
    output: str | None,
    smoothing: float,
    unit: str,
    column: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Turn texts into vectors, one row a line (or record) of DATA; - reads standard input.

    A model of tables takes a table (csv, tsv, jsonl, Parquet), one row a row.
    """
    from firth.data.corpus import Corpus

    if output and Path(output).suffix not in SUFFIXES:
        raise FirthError(f"The output must end with one of {', '.join(SUFFIXES)}; got {output}.")
    if as_json and not output:
        raise click.UsageError("--json needs -o OUT: without it the rows themselves are JSON.")
    embedder = open_model(model)
    if embedder.method.kind == "table":
        embed_table(embedder, one_file(data, "table"), key, output, as_json)
        return
    if smoothing and "smoothing" not in inspect.signature(getattr(embedder, "pool", bool)).parameters:
        method = type(embedder.method).method_name()
        raise FirthError(f"--smoothing weighs words whose vectors are averaged; {method} does not average any.")
    texts = Corpus(*data, unit=unit, column=column, key=key)
    rows = known = unknown = empty = 0
    with writer(output) as write:
        sparse = output is not None and Path(output).suffix == ".npz"
        found = sparse_batches(embedder, texts, model) if sparse else batches(embedder, texts, model, smoothing)
        for batch, counts in found:
            write(batch)
            rows += len(batch.keys)
            known += sum(counts)
            unknown += sum(batch.unknown)
            empty += sum(count == 0 for count in counts)
        if not rows:
            raise FirthError("There is nothing to embed: the input has no documents.")
    if unknown or empty:
        click.echo(f"note: {unknown:,} of {known + unknown:,} words have no vector; {empty:,} rows are zero.", err=True)
    if as_json:
        print_json({"rows": rows, "words": known + unknown, "unknown": unknown, "zero_rows": empty, "output": output})
    elif output:
        click.echo(f"{rows:,} rows in {output}")


def embed_table(model: Any, path: str, key: str | None, output: str | None, as_json: bool) -> None:
    """`model` is a TableModel. What is unknown are categories that it did not meet when it was fitted."""
    from firth.learners.tables import single_precision

    rows = open_rows(path)
    table = model.open(rows)
    named = None if isinstance(rows, str) else list(rows.keys)  # vectors
    keys = table.categories(key) if key else named or list(map(str, range(1, len(table) + 1)))
    if None in keys:
        raise FirthError(f"The key column {key!r} is empty in row {keys.index(None) + 1:,}.")
    unseen = 0
    with writer(output) as write:
        if not len(table):
            raise FirthError("There is nothing to embed: the table has no rows.")
        for start in range(0, len(table), BATCH):
            coded = model.coded(table.slice(start, start + BATCH))
            write(Rows(keys[start : start + BATCH], single_precision(coded.matrix), coded.unseen.tolist()))
            unseen += int(coded.unseen.sum())
    if unseen:
        click.echo(f"note: {unseen:,} categories are new to the model and coded as missing.", err=True)
    if as_json:
        print_json({"rows": len(table), "features": model.feature_names, "unknown": unseen, "output": output})
    elif output:
        click.echo(f"{len(table):,} rows in {output}")


def batches(model: Model, texts: Any, path: str, smoothing: float) -> Iterator[tuple[Rows, list[int]]]:
    """Batches, each with the number of known words of its texts."""
    pool = getattr(model, "pool", None)
    if pool is None:
        raise FirthError(f"{path} does not embed texts ({type(model.method).method_name()}).")
    settings = {"smoothing": smoothing} if smoothing else {}
    documents = iter(texts)
    while batch := list(islice(documents, BATCH)):
        pooled = pool([text for _, text in batch], **settings)
        yield Rows([key for key, _ in batch], pooled.matrix, pooled.unknown.tolist()), pooled.known.tolist()


def sparse_batches(model: Model, texts: Any, path: str) -> Iterator[tuple[Rows, list[int]]]:
    """`batches` for models that give sparse rows."""
    if not hasattr(model, "transform") or not hasattr(model, "weighed"):
        method = type(model.method).method_name()
        raise FirthError(f"{path} gives no sparse rows ({method}); choose .npy, .parquet or .jsonl.")
    documents = iter(texts)
    while batch := list(islice(documents, BATCH)):
        found = model.weighed([text for _, text in batch])
        yield Rows([key for key, _ in batch], found.matrix, found.unknown.tolist()), found.known.tolist()


@contextlib.contextmanager
def writer(output: str | None) -> Iterator[Write]:
    """A function that writes batches; the file is there when the block ends well, or not at all."""
    from firth.core.storage import new_file

    if output is None:
        yield lambda rows: write_jsonl(sys.stdout, rows)
        return
    kinds: dict[str, Callable[[Path], contextlib.AbstractContextManager[Write]]]
    kinds = {".npy": npy_writer, ".parquet": parquet_writer, ".jsonl": jsonl_writer, ".npz": npz_writer}
    with new_file(Path(output)) as work, kinds[Path(output).suffix](work) as write:
        yield write


@contextlib.contextmanager
def jsonl_writer(path: Path) -> Iterator[Write]:
    with path.open("w", encoding="utf-8") as file:
        yield lambda rows: write_jsonl(file, rows)


def write_jsonl(file: IO[str], rows: Rows) -> None:
    for key, row, unknown in zip(rows.keys, rows.matrix.tolist(), rows.unknown, strict=True):
        numbers = ", ".join([f"{number:.9g}" for number in row])  # 9 digits give each float32 back
        numbers = numbers.replace("nan", "null")  # a missing number of a table
        file.write(f'{{"key": {json.dumps(key, ensure_ascii=False)}, "unknown": {unknown}, "vector": [{numbers}]}}\n')


@contextlib.contextmanager
def npy_writer(path: Path) -> Iterator[Write]:
    """The header, which names the number of rows, is written last into room kept for it."""
    shape = [0, 0]
    with path.open("wb") as file:

        def write(rows: Rows) -> None:
            shape[0] += len(rows.matrix)
            shape[1] = rows.matrix.shape[1]
            file.write(rows.matrix.astype("<f4").tobytes())

        file.write(npy_header(*shape))
        yield write
        file.seek(0)
        file.write(npy_header(*shape))


def npy_header(rows: int, columns: int) -> bytes:
    """128 bytes of the format NPY 1.0."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".encode()
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + text.ljust(117) + b"\n"


@contextlib.contextmanager
def npz_writer(path: Path) -> Iterator[Write]:
    """What `scipy.sparse.load_npz` reads; all sparse rows are held until the end."""
    from scipy import sparse

    found: list[Any] = []
    yield lambda rows: found.append(sparse.csr_matrix(rows.matrix))
    with path.open("wb") as file:
        sparse.save_npz(file, sparse.vstack(found, format="csr"))


@contextlib.contextmanager
def parquet_writer(path: Path) -> Iterator[Write]:
    """Columns key, unknown and vector (a list of fixed length)."""
    import pyarrow
    import pyarrow.parquet

    with contextlib.ExitStack() as stack:
        opened: list[Any] = []

        def write(rows: Rows) -> None:
            vectors = pyarrow.FixedSizeListArray.from_arrays(rows.matrix.ravel(), rows.matrix.shape[1])
            unknown = pyarrow.array(rows.unknown, pyarrow.int64())
            table = pyarrow.table({"key": rows.keys, "unknown": unknown, "vector": vectors})
            if not opened:
                opened.append(stack.enter_context(pyarrow.parquet.ParquetWriter(path, table.schema)))
            opened[0].write_table(table)

        yield write
