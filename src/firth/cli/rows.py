"""Rows of vectors to files: one file, whole or not there at all, or shards, of which those that are done stay done."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.core.vectors import Matrix

SUFFIXES = (".npy", ".parquet", ".jsonl", ".npz")
RECORD = "embedding.json"  # of a folder of shards: what they are of, which are done, how many rows once all are


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


class Shards:
    """A folder of files with `rows` rows each: part-00000.parquet, part-00001.parquet, …

    `identity` says what is embedded by what and how. A folder of something else is refused; of the same, the shards
    that were done are kept: `done` has what the record tells of each, by its number. `lost` names those that are not
    there any more, or not of the size they had.
    """

    def __init__(self, folder: Path, kind: str, rows: int, identity: Mapping[str, Any]) -> None:
        from firth.core.storage import read_json, saying_where

        if rows < 1:
            raise FirthError("too_few", "A shard needs at least 1 row; got {got}.", got=rows)
        self.folder, self.kind, self.rows = folder, kind, rows
        self.identity = {**identity, "kind": kind, "rows a shard": rows}
        with saying_where(folder):
            folder.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in folder.iterdir())
        record = read_json(folder / RECORD) if RECORD in there else None
        if record is None and there:
            raise FirthError(
                "unsafe_output",
                "{folder} holds other files ({available}); shards need a folder of their own.",
                folder=folder,
                available=there[0],
            )
        if record is not None and record.get("identity") != self.identity:
            known = record.get("identity") or {}
            other = [name for name, value in self.identity.items() if known.get(name) != value]
            raise FirthError(
                "other_run",
                "{folder} holds shards of something else (another {other}); choose another folder, or remove it.",
                folder=folder,
                other=", ".join(other),
            )
        told = {int(number): figures for number, figures in (record or {}).get("shards", {}).items()}
        self.done = {number: figures for number, figures in told.items() if self.size(number) == figures["bytes"]}
        self.lost = [self.files(number)[0].name for number in sorted(told) if number not in self.done]
        self.finished = bool(record and record["finished"]) and not self.lost
        whole = {path for number in self.done for path in self.files(number)}
        for path in folder.iterdir():  # what a killed run was writing
            if path not in whole and re.match(r"\.part-|part-\d{5,}\.", path.name):
                path.unlink()
        if record is None:
            self.tell()

    def files(self, number: int) -> list[Path]:
        from firth.formats.arrays import keys_path

        path = self.folder / f"part-{number:05d}.{self.kind}"
        return [path, keys_path(path)] if self.kind == "npy" else [path]

    def size(self, number: int) -> int:
        """Bytes of a shard."""
        return sum(path.stat().st_size for path in self.files(number) if path.is_file())

    @contextlib.contextmanager
    def writing(self, number: int, figures: dict[str, int]) -> Iterator[Write]:
        """Writes a shard; it is done, with what `figures` then says, when the block ends well."""
        with writer(str(self.files(number)[0])) as write:
            yield write
        self.done[number] = {"bytes": self.size(number), **figures}
        self.tell()

    def tell(self) -> None:
        """Writes what the folder is."""
        from firth.core.storage import new_file

        rows = self.figures()["rows"] if self.finished else 0
        record = {"identity": self.identity, "finished": rows, "shards": dict(sorted(self.done.items()))}
        with new_file(self.folder / RECORD) as work:
            work.write_text(json.dumps(record, indent=2) + "\n")

    def figures(self) -> Counter[str]:
        """Of all shards that are done."""
        total = Counter[str]()
        for each in self.done.values():
            total.update(each)
        del total["bytes"]
        return total


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
