"""Rows of vectors to one file, which is whole or not there at all."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from firth.core.vectors import Matrix

SUFFIXES = (".npy", ".parquet", ".jsonl", ".npz")


class Rows(NamedTuple):
    """A batch of embedded texts."""

    keys: list[str]
    matrix: Matrix  # for .npz a scipy.sparse one
    unknown: Sequence[int]  # words without a vector, a text


Write = Callable[[Rows], None]


@contextlib.contextmanager
def writer(output: str | None) -> Iterator[Write]:
    """A function that writes batches; the file is there when the block ends well, or not at all."""
    from firth.core.storage import new_file

    if output is None:
        yield lambda rows: write_jsonl(sys.stdout, rows)
        return
    if Path(output).suffix == ".npy":
        with npy_and_keys(Path(output)) as write:
            yield write
        return
    kinds: dict[str, Callable[[Path], contextlib.AbstractContextManager[Write]]]
    kinds = {".parquet": parquet_writer, ".jsonl": jsonl_writer, ".npz": npz_writer}
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
def npy_and_keys(place: Path) -> Iterator[Write]:
    """NAME.npy and NAME.keys.json: the old two or the new two, whenever it is killed."""
    from firth.formats.arrays import keys_to_json, new_pair

    between = b"["
    with new_pair(place) as (work, beside), npy_writer(work) as write, beside.open("wb") as keys:

        def write_both(rows: Rows) -> None:
            nonlocal between
            write(rows)
            keys.write(between + keys_to_json(rows.keys)[1:-1])
            between = b", "

        yield write_both
        keys.write(b"]")


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
