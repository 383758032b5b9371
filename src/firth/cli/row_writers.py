"""Writers of vectors to one file, which is complete or not written at all."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from firth.core.remote import RemotePath, as_path

if TYPE_CHECKING:
    from firth.core.vectors import Matrix

SUFFIXES = (".npy", ".parquet", ".jsonl", ".npz")


class EmbeddedBatch(NamedTuple):
    """A batch of embedded texts."""

    keys: list[str]
    matrix: Matrix  # (rows, dim); for .npz a scipy.sparse matrix
    unknown: Sequence[int]  # words without a vector, per text


Write = Callable[[EmbeddedBatch], None]


@contextlib.contextmanager
def writer(output: str | None) -> Iterator[Write]:
    """Yield a function that writes batches. The file appears when the block ends without an error."""
    from firth.core.storage import new_file

    if output is None:
        yield lambda rows: write_jsonl(sys.stdout, rows)
        return
    target = as_path(output)
    if target.suffix == ".npy":
        with contextlib.ExitStack() as stack:
            local = stack.enter_context(new_file(target)) if isinstance(target, RemotePath) else target
            yield stack.enter_context(npy_and_keys_writer(local))
        return
    writers: dict[str, Callable[[Path], contextlib.AbstractContextManager[Write]]]
    writers = {".parquet": parquet_writer, ".jsonl": jsonl_writer, ".npz": npz_writer}
    with new_file(target) as work, writers[target.suffix](work) as write:
        yield write


@contextlib.contextmanager
def jsonl_writer(path: Path) -> Iterator[Write]:
    """Yield a writer of JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        yield lambda rows: write_jsonl(file, rows)


def write_jsonl(file: IO[str], rows: EmbeddedBatch) -> None:
    """Write rows as JSON objects with key, unknown and vector."""
    for key, row, unknown in zip(rows.keys, rows.matrix.tolist(), rows.unknown, strict=True):
        numbers = ", ".join([f"{number:.9g}" for number in row])  # 9 digits restore every float32
        numbers = numbers.replace("nan", "null")  # a missing value of a table
        file.write(f'{{"key": {json.dumps(key, ensure_ascii=False)}, "unknown": {unknown}, "vector": [{numbers}]}}\n')


@contextlib.contextmanager
def npy_and_keys_writer(path: Path) -> Iterator[Write]:
    """Yield a writer of NAME.npy and NAME.keys.json; a killed run leaves the old two files or the new two."""
    from firth.formats.arrays import keys_to_json, new_pair

    separator = b"["
    with new_pair(path) as (work, keys_path), npy_writer(work) as write, keys_path.open("wb") as keys:

        def write_both(rows: EmbeddedBatch) -> None:
            nonlocal separator
            write(rows)
            keys.write(separator + keys_to_json(rows.keys)[1:-1])
            separator = b", "

        yield write_both
        keys.write(b"]")


@contextlib.contextmanager
def npy_writer(path: Path) -> Iterator[Write]:
    """Yield a writer of a matrix. The header has a fixed size and is rewritten at the end with the number of rows."""
    shape = [0, 0]
    with path.open("wb") as file:

        def write(rows: EmbeddedBatch) -> None:
            shape[0] += len(rows.matrix)
            shape[1] = rows.matrix.shape[1]
            file.write(rows.matrix.astype("<f4").tobytes())

        file.write(npy_header(*shape))
        yield write
        file.seek(0)
        file.write(npy_header(*shape))


def npy_header(rows: int, columns: int) -> bytes:
    """Return the header of the format NPY 1.0, 128 bytes."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".encode()
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + text.ljust(117) + b"\n"


@contextlib.contextmanager
def npz_writer(path: Path) -> Iterator[Write]:
    """Yield a writer of a file for `scipy.sparse.load_npz`. All rows are kept in memory until the end."""
    from scipy import sparse

    parts: list[Any] = []
    yield lambda rows: parts.append(sparse.csr_matrix(rows.matrix))
    with path.open("wb") as file:
        sparse.save_npz(file, sparse.vstack(parts, format="csr"))


@contextlib.contextmanager
def parquet_writer(path: Path) -> Iterator[Write]:
    """Yield a writer of the columns key, unknown and vector (a list of fixed length)."""
    import pyarrow
    import pyarrow.parquet

    with contextlib.ExitStack() as stack:
        writers: list[Any] = []

        def write(rows: EmbeddedBatch) -> None:
            vectors = pyarrow.FixedSizeListArray.from_arrays(rows.matrix.ravel(), rows.matrix.shape[1])
            unknown = pyarrow.array(rows.unknown, pyarrow.int64())
            table = pyarrow.table({"key": rows.keys, "unknown": unknown, "vector": vectors})
            if not writers:
                writers.append(stack.enter_context(pyarrow.parquet.ParquetWriter(path, table.schema)))
            writers[0].write_table(table)

        yield write
