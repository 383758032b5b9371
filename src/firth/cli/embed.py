"""`firth embed MODEL DATA… -o OUT`: texts as vectors, one row a document, in bounded memory."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from firth.cli.common import data_options, json_flag, open_model, print_json
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
@data_options
@json_flag
def command(
    model: str,
    data: tuple[str, ...],
    output: str | None,
    unit: str,
    column: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Turn texts into vectors, one row a line (or record) of DATA; - reads standard input."""
    from firth.data.corpus import Corpus

    if output and Path(output).suffix not in SUFFIXES:
        raise FirthError(f"The output must end with one of {', '.join(SUFFIXES)}; got {output}.")
    if as_json and not output:
        raise click.UsageError("--json needs -o OUT: without it the rows themselves are JSON.")
    embedder = open_model(model)
    texts = Corpus(*data, unit=unit, column=column, key=key)
    rows = known = unknown = empty = 0
    with writer(output) as write:
        find = sparse_batches if output and output.endswith(".npz") else batches
        for batch, counts in find(embedder, texts, model):
            write(batch)
            rows += len(batch.keys)
            known += sum(counts)
            unknown += sum(batch.unknown)
            empty += sum(count == 0 for count in counts)
    if unknown or empty:
        click.echo(f"note: {unknown:,} of {known + unknown:,} words have no vector; {empty:,} rows are zero.", err=True)
    if as_json:
        print_json({"rows": rows, "words": known + unknown, "unknown": unknown, "zero_rows": empty, "output": output})
    elif output:
        click.echo(f"{rows:,} rows in {output}")


def batches(model: Model, texts: Any, path: str) -> Iterator[tuple[Rows, list[int]]]:
    """Batches, each with the number of known words of its texts."""
    pool = getattr(model, "pool", None)
    if pool is None:
        raise FirthError(f"{path} does not embed texts ({type(model.method).method_name()}).")
    documents = iter(texts)
    while batch := list(islice(documents, BATCH)):
        pooled = pool([text for _, text in batch])
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
        stream = click.get_text_stream("stdout", encoding="utf-8")
        yield lambda rows: write_jsonl(stream, rows)
        return
    kinds = {".npy": npy_writer, ".parquet": parquet_writer, ".jsonl": jsonl_writer, ".npz": npz_writer}
    with new_file(Path(output)) as work, kinds[Path(output).suffix](work) as write:
        yield write


@contextlib.contextmanager
def jsonl_writer(path: Path) -> Iterator[Write]:
    with path.open("w", encoding="utf-8") as file:
        yield lambda rows: write_jsonl(file, rows)


def write_jsonl(file: IO[str], rows: Rows) -> None:
    for key, row, unknown in zip(rows.keys, rows.matrix.tolist(), rows.unknown, strict=True):
        numbers = ", ".join(["%.9g" % number for number in row])  # 9 digits give each float32 back
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
    yield lambda rows: found.append(rows.matrix)
    if not found:
        raise FirthError("There is no text to embed: the input is empty.")
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
        if not opened:
            raise FirthError("There is no text to embed: the input is empty.")
