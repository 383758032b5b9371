"""Damaged or malicious indexes: they are refused when they are opened, even if their hashes are right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from refusing import refuses

import firth
from firth.core.storage import fingerprint, read_arrays, write_arrays
from firth.index import Index

FUZZ = Path(__file__).parents[1] / "fuzz" / "index_folders.py"
DIM, ROWS = 4, 6
Arrays = dict[str, np.ndarray]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two segments with texts, an attribute and deleted rows."""
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    with Index.create(tmp_path / "index", dim=DIM, dtype="int8") as index:
        for prefix in "ab":
            keys = [f"{prefix}{i}" for i in range(ROWS)]
            texts = [f"the river {i}" for i in range(ROWS)]
            index.add(keys, np.random.default_rng(0).normal(size=(ROWS, DIM)), {"text": texts, "year": range(ROWS)})
        index.delete(["a0", "b1"])
    return tmp_path / "index"


def fit_manifest(folder: Path, **changes: Any) -> None:
    """Update sizes and hashes to those of the current files, as an attacker would."""
    manifest = json.loads((folder / "index.json").read_text())
    for record in [*manifest["segments"], manifest["deleted"]]:
        record["files"] = {name: fingerprint(folder / name) for name in record["files"]}
    (folder / "index.json").write_text(json.dumps({**manifest, **changes}))


def write_table(path: Path, table: Any, options: Any = None) -> None:
    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    fit_manifest(path.parent)


def changed(arrays: Arrays, name: str, change: Callable[[np.ndarray], Any]) -> Arrays:
    return {**arrays, name: np.ascontiguousarray(change(arrays[name]))}


def filled(value: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: np.full_like(array, value)


def last(value: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: np.append(array[:-1], array.dtype.type(value))


ARRAYS: dict[str, tuple[str, Callable[[np.ndarray], Any]]] = {
    "words that fill the memory": ("word_starts", lambda array: np.arange(len(array)) << 28),
    "words that end early": ("word_starts", last(1)),
    "words before the first": ("word_starts", lambda array: array - 1),
    "words that fall": ("word_starts", lambda array: np.concatenate([array[:1], array[-2:0:-1], array[-1:]])),
    "too few words": ("word_starts", lambda array: array[1:]),
    "words of other rows": ("word_rows", filled(ROWS)),
    "words of rows below 0": ("word_rows", filled(-1)),
    "words of no number": ("word_rows", lambda array: array.astype(np.float32)),
    "words that are not there": ("word_counts", filled(0)),
    "counts of fewer words": ("word_counts", lambda array: array[:-1]),
    "lengths below 0": ("lengths", filled(-5)),
    "lengths of other rows": ("lengths", lambda array: array[:-1]),
    "keys of other rows": ("hash_rows", filled(1 << 40)),
    "keys of rows below 0": ("hash_rows", last(-1)),
    "keys of one row": ("hash_rows", filled(0)),
    "hashes in no order": ("hashes", lambda array: array[::-1]),
    "hashes of another dtype": ("hashes", lambda array: array.astype(np.float64)),
    "vectors of another width": ("vectors", lambda array: array[:, :-1]),
    "vectors of other rows": ("vectors", lambda array: array[:-1]),
    "vectors in one row": ("vectors", lambda array: array.reshape(1, -1)),
    "vectors of another dtype": ("vectors", lambda array: array.astype(np.float16)),
    "vectors without dimensions": ("vectors", lambda array: array.ravel()),
    "scales of other rows": ("scales", lambda array: array[:-1]),
    "scales of another dtype": ("scales", lambda array: array.astype(np.float64)),
    "codes of another width": ("codes", lambda array: array[:, :-1]),
    "steps of other rows": ("steps", lambda array: array[:-1]),
    "sums of another dtype": ("sums", lambda array: array.astype(np.int64)),
    "errors of other rows": ("errors", lambda array: array[:, None]),
    "norms of other rows": ("norms", lambda array: array[:0]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_invalid_arrays_are_refused(folder, name):
    path, (array, change) = folder / "segment-1.safetensors", ARRAYS[name]
    arrays = {each: np.array(numbers) for each, numbers in read_arrays(path).items()}
    write_arrays(path, changed(arrays, array, change))
    fit_manifest(folder)
    with refuses("damaged_index", path=path):
        Index.open(folder).search("river", mode="words")  # postings are checked at the first word search


@pytest.mark.parametrize("array", ["vectors", "hashes", "hash_rows", "scales", "word_starts", "lengths", "word_rows"])
def test_missing_arrays_are_refused(folder, array):
    path = folder / "segment-2.safetensors"
    write_arrays(path, {name: np.array(numbers) for name, numbers in read_arrays(path).items() if name != array})
    fit_manifest(folder)
    with refuses("damaged_index", path=path) as caught:
        Index.open(folder)
    assert array in caught.value.values["reason"]


@pytest.mark.parametrize(
    "deleted",
    [[-1, 2], [3, 12], [2, 2], [5, 1], [1 << 60], np.array([0.5]), np.zeros((2, 1), np.int64), np.zeros(2, np.int32)],
    ids=str,
)
def test_invalid_deleted_rows_are_refused(folder, deleted):
    path = next(folder.glob("deleted-*"))
    write_arrays(path, {"deleted": np.array(deleted)})
    fit_manifest(folder, deleted={"rows": len(deleted), "files": {path.name: fingerprint(path)}})
    with refuses("damaged_index", path=path):
        Index.open(folder)


def endless(rows: int) -> Any:
    """Return a list of 2³¹ − 1 nulls, which takes only a few bytes."""
    offsets = pyarrow.py_buffer(np.linspace(0, (1 << 31) - 1, rows + 1).astype(np.int32))
    kind = pyarrow.list_(pyarrow.null())
    return pyarrow.ListArray.from_buffers(kind, rows, [None, offsets], children=[pyarrow.nulls((1 << 31) - 1)])


TABLES: dict[str, Callable[[Any], Any]] = {
    "no keys": lambda table: table.drop_columns(["key"]),
    "missing keys": lambda table: table.set_column(0, "key", pyarrow.array([None] * ROWS, pyarrow.large_string())),
    "keys of another type": lambda table: table.set_column(0, "key", pyarrow.array(range(ROWS))),
    "short keys": lambda table: table.set_column(0, "key", table.column("key").cast(pyarrow.string())),
    "keys twice": lambda table: table.append_column("key", table.column("key")),
    "no texts": lambda table: table.drop_columns(["text"]),
    "texts of another type": lambda table: table.set_column(1, "text", pyarrow.array(range(ROWS))),
    "fewer rows": lambda table: table.slice(1),
    "more rows": lambda table: pyarrow.concat_tables([table, table]),
    "other attributes": lambda table: table.append_column("more", pyarrow.array(range(ROWS))),
    "attributes of other types": lambda table: table.set_column(2, "year", pyarrow.array(["x"] * ROWS)),
    "lists without end": lambda table: table.append_column("list", endless(ROWS)),
}


@pytest.mark.parametrize("name", TABLES)
def test_invalid_tables_are_refused(folder, name):
    path = folder / "segment-2.arrow"
    table = TABLES[name](pyarrow.ipc.open_file(pyarrow.OSFile(str(path))).read_all())
    write_table(path, table)
    with refuses("damaged_index", path=path):
        Index.open(folder)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("file", ["segment-1.arrow", "segment-1-words.arrow"])
def test_compressed_tables_are_refused_before_they_are_unpacked(folder, codec, file):
    """A megabyte of zstd can expand to gigabytes; Firth writes no compressed tables."""
    table = pyarrow.ipc.open_file(pyarrow.OSFile(str(folder / file))).read_all()
    column = table.column(0).combine_chunks().dictionary_encode()
    for each in (table, table.set_column(0, table.column_names[0], column)):  # batches, and dictionaries of batches
        options = pyarrow.ipc.IpcWriteOptions(compression=codec)
        write_table(folder / file, each, options)
        with refuses("damaged_index", path=folder / file) as caught:
            Index.open(folder)
        assert "compressed" in caught.value.values["reason"]


def test_values_without_a_python_equivalent_are_refused_when_they_are_read(folder):
    path = folder / "segment-1.arrow"
    table = pyarrow.ipc.open_file(pyarrow.OSFile(str(path))).read_all()
    bad = pyarrow.py_buffer(b"\xff\xfe" * ROWS)
    letters = pyarrow.LargeStringArray.from_buffers(ROWS, pyarrow.py_buffer(2 * np.arange(ROWS + 1)), bad)
    table = table.set_column(1, "text", letters)
    write_table(path, table)
    index = Index.open(folder)
    for ask in (lambda: index.search(np.ones(DIM), 20), lambda: index.attributes("a3")):
        with refuses("damaged_index", name="text"):
            ask()
    assert index.search(np.ones(DIM), 20, where="key >= 'b'")


def test_categorical_columns_can_be_added_to_repeatedly(tmp_path):
    """Each addition has its own dictionary; an Arrow file has only one."""
    with Index.create(tmp_path / "index", dim=1, metric="dot") as index:
        for first in range(0, 12, 2):
            kinds = pyarrow.array([f"kind {first}", "other"]).dictionary_encode()
            index.add([str(first), str(first + 1)], [[first], [1]], {"kind": kinds})
        index.optimize()
    again = Index.open(tmp_path / "index")
    assert [hit.key for hit in again.search([1], 1, where="kind == 'kind 10'")] == ["10"] and len(again) == 12


def test_randomly_damaged_indexes_are_used_or_refused():
    """`make fuzz` tries thousands; see tests/fuzz/index_folders.py."""
    paths = [str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, str(FUZZ), "240"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
