"""Damaged index folders: whatever is done with one works or is refused with a FirthError; never a raw error, a crash,
or memory beyond the size of the files.

    python tests/fuzz/index_folders.py [COUNT [FIRST]]    variants FIRST to FIRST + COUNT; `make fuzz` runs this

A variant is a function of its number: one kind of index, one to three damages, and mostly a manifest whose sizes and
hashes were made to fit, as an attacker would. They run in processes with a limit on memory, so that a crash is seen.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from firth import FirthError
from firth.core.storage import fingerprint, read_arrays, write_arrays
from firth.index import Index, verify_index

MOST = 1 << 30  # bytes beyond what a process has when it begins
SECONDS = 30  # a variant takes part of one
BATCH = 500  # variants of a process
ODD = [0, 1, -1, 2, 3, 7, 63, 64, 127, -128, 255, 1 << 15, 1 << 16, (1 << 31) - 1, -(1 << 31), 1 << 31, 1 << 32]
ODD += [1 << 40, (1 << 62), (1 << 63) - 1, -(1 << 63), 1 << 64, 10**30]
ODD_VALUES: list[Any] = [
    *ODD,
    None,
    True,
    "",
    "x",
    "../x",
    "\0",
    "x" * 5000,
    [],
    {},
    [1],
    0.5,
    -0.0,
    1e308,
    "cosine",
    "dot",
    "float16",
    "int8",
]


# ---- indexes ----


def texts(count: int) -> list[str | None]:
    words = ["river", "king", "the", "queen", "violin", "ok", "été"]
    return [None if i % 9 == 5 else " ".join(words[(i * k) % 7] for k in range(1, 2 + i % 5)) for i in range(count)]


def attributes(kind: str, count: int) -> dict[str, Any]:
    found: dict[str, Any] = {} if kind == "bare" else {"text": texts(count), "year": list(range(count))}
    if kind == "typed":
        found["kind"] = pyarrow.array(["a", "b", None] * count).slice(0, count).dictionary_encode()
        found["tags"] = [["x", "y"][: i % 3] for i in range(count)]
        found["day"] = pyarrow.array(range(count), pyarrow.date32())
        found["when"] = pyarrow.array(range(count), pyarrow.timestamp("us", "UTC"))
        found["open"] = [bool(i % 2) for i in range(count)]
        found["nothing"] = [None] * count
        found["pair"] = [{"a": i, "b": str(i)} for i in range(count)]
        found["raw"] = [b"x" * (i % 3) for i in range(count)]
    return found


#: Of each kind of index: dim, metric, numbers, attributes.
KINDS = {
    "plain": (4, "cosine", "float32", "texts"),
    "wide": (64, "dot", "float32", "bare"),
    "half": (5, "euclidean", "float16", "texts"),
    "bytes": (6, "cosine", "int8", "typed"),
    "typed": (3, "euclidean", "float32", "typed"),
}


def make(folder: Path, kind: str) -> None:
    """Two segments, deleted rows, and a graph of the first rows."""
    dim, metric, numbers, columns = KINDS[kind]
    rng = np.random.default_rng(1)
    with Index.create(folder, dim=dim, metric=metric, dtype=numbers, metadata={"made": "here"}) as index:
        for first, count in ((0, 40), (40, 9)):
            keys = [f"k{i}" for i in range(first, first + count)]
            index.add(keys, rng.normal(size=(count, dim)), attributes(columns, count) or None)
            if not first:
                index.optimize(approximate=True, threads=1)
        index.delete(["k3", "k41"])


# ---- damages ----


def damage_bytes(rng: random.Random, folder: Path) -> None:
    path = rng.choice(files_of(folder))
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 2, 8])):
        if not data:
            break
        place = rng.randrange(len(data))
        how = rng.randrange(5)
        if how == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif how == 1:
            data[place : place + 8] = rng.randbytes(8)[: len(data) - place]
        elif how == 2:
            data[place : place + 8] = (rng.choice(ODD) % (1 << 64)).to_bytes(8, "little")[: len(data) - place]
        elif how == 3:
            data[place : place + 4] = (rng.choice(ODD) % (1 << 32)).to_bytes(4, "little")[: len(data) - place]
        else:
            data[place] = rng.choice([0, 255])
    path.write_bytes(data)


def damage_length(rng: random.Random, folder: Path) -> None:
    path = rng.choice(files_of(folder))
    data = path.read_bytes()
    cut = rng.choice([0, 1, 7, 8, len(data) // 2, max(0, len(data) - 1), rng.randrange(len(data) + 1)])
    path.write_bytes(rng.choice([data[:cut], data + bytes(cut), data + data, data[cut:]]))


def damage_json(rng: random.Random, folder: Path) -> None:
    manifest = json.loads((folder / "index.json").read_text())
    change_json(rng, manifest)
    (folder / "index.json").write_text(json.dumps(manifest))


def change_json(rng: random.Random, document: Any) -> None:
    """A value at any depth becomes another, or goes."""
    places = list(json_places(document))
    holder, name = rng.choice(places)
    how = rng.randrange(4)
    if how == 0 and isinstance(holder, dict):
        del holder[name]
    elif how == 1:
        other, from_name = rng.choice(places)
        holder[name] = other[from_name]
    else:
        holder[name] = rng.choice(ODD_VALUES)


def json_places(document: Any) -> Any:
    if isinstance(document, dict | list):
        for name in list(document) if isinstance(document, dict) else range(len(document)):
            yield document, name
            yield from json_places(document[name])


def damage_header(rng: random.Random, folder: Path) -> None:
    """Dtypes, shapes and places of the arrays in a safetensors file."""
    path = rng.choice(files_of(folder, ".safetensors"))
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    entry = header[rng.choice(list(header))]
    how = rng.randrange(4)
    if how == 0:
        entry["dtype"] = rng.choice(["F64", "F32", "F16", "BF16", "I64", "I32", "I8", "U64", "U8", "BOOL", "X", 3])
    elif how == 1 and entry["shape"]:
        count = int(np.prod(entry["shape"]))
        entry["shape"] = rng.choice(
            [[count], [1, count], [count, 1], [], [-1], [0], [rng.choice(ODD)], [count, 0, 1 << 62]]
        )
    elif how == 2:
        change_json(rng, header)
    else:
        other = header[rng.choice(list(header))]
        if isinstance(other, dict) and isinstance(entry, dict):
            entry.update(
                {name: other[name] for name in rng.choice([("data_offsets",), ("dtype", "shape", "data_offsets")])}
            )
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


def damage_numbers(rng: random.Random, folder: Path) -> None:
    """Numbers of an array, in a file that is right in all else."""
    path = rng.choice(files_of(folder, ".safetensors"))
    arrays = {name: np.array(array) for name, array in read_arrays(path).items()}
    name = rng.choice(list(arrays))
    array = arrays[name]
    if not array.size:
        return
    flat = array.reshape(-1)
    how = rng.randrange(6)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if array.dtype.kind == "f":
            odd = rng.choice([np.nan, np.inf, -np.inf, 0, 3e38, -1, 1e-45])
        else:
            info = np.iinfo(array.dtype)
            odd = rng.choice(
                [info.max, info.min, len(array), 1, 0, *(each for each in ODD if info.min <= each <= info.max)]
            )
        if how == 0:
            flat[:] = odd
        elif how == 1:
            flat[:] = flat[::-1].copy()
        elif how == 2:
            flat[rng.randrange(flat.size) :] = odd
        elif how == 3 and array.ndim == 1:
            arrays[name] = array[: rng.randrange(len(array))]
        elif how == 4:
            arrays[name] = np.concatenate([array, array])
        else:
            flat[rng.randrange(flat.size)] = odd
    write_arrays(path, arrays)


def damage_table(rng: random.Random, folder: Path) -> None:
    """Another table in a right Arrow file: other types, other rows, compressed, lists without end."""
    path = rng.choice(files_of(folder, ".arrow"))
    try:
        table = pyarrow.ipc.open_file(pyarrow.OSFile(str(path))).read_all()
        table.validate(full=True)
    except (pyarrow.ArrowException, OSError):  # damaged before
        return
    name = rng.choice(table.column_names)
    number, rows = table.column_names.index(name), table.num_rows
    how = rng.randrange(8)
    options = None
    if how == 0:
        table = table.set_column(number, name, rng.choice(odd_columns(rows)))
    elif how == 1:
        table = table.append_column(rng.choice(["new", name, "", "key", "text"]), rng.choice(odd_columns(rows)))
    elif how == 2:
        table = table.drop_columns([name])
    elif how == 3:
        table = table.slice(rng.randrange(rows + 1))
    elif how == 4:
        options = pyarrow.ipc.IpcWriteOptions(compression=rng.choice(["lz4", "zstd"]))
    elif how == 5:
        table = pyarrow.concat_tables([table, table])
    elif how == 6:
        table = table.take([rng.randrange(rows) for _ in range(rows)] if rows else [])
    else:
        table = table.rename_columns([rng.choice(["x", each, "text", "key"]) for each in table.column_names])
    table = table.unify_dictionaries()
    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rng.choice([1, 5, 10_000]))


def odd_columns(rows: int) -> list[Any]:
    endless = pyarrow.ListArray.from_buffers(
        pyarrow.list_(pyarrow.null()),
        rows,
        [None, pyarrow.py_buffer(np.arange(rows + 1, dtype=np.int32) * ((1 << 31) // (rows + 2)))],
        children=[pyarrow.nulls(1 << 31)],
    )
    letters = pyarrow.py_buffer(b"\xff\xfe" * rows)
    offsets = pyarrow.py_buffer(2 * np.arange(rows + 1, dtype=np.int64))
    no_unicode = pyarrow.LargeStringArray.from_buffers(rows, offsets, letters)
    return [
        pyarrow.array(range(rows), pyarrow.int64()),
        pyarrow.array([str(i) for i in range(rows)]),
        pyarrow.array([str(i) for i in range(rows)], pyarrow.large_string()),
        pyarrow.array([None] * rows, pyarrow.large_string()),
        pyarrow.array([0.5] * rows, pyarrow.float32()),
        pyarrow.array([(1 << 63) - 1] * rows, pyarrow.timestamp("us", "Nowhere/Land")),
        pyarrow.array([-(1 << 63)] * rows, pyarrow.int64()).cast(pyarrow.date64(), safe=False),
        pyarrow.array([(1 << 31) - 1] * rows, pyarrow.int32()).cast(pyarrow.date32()),
        pyarrow.nulls(rows),
        pyarrow.array([[[]]] * rows),
        pyarrow.array(["same"] * rows).dictionary_encode(),
        endless,
        no_unicode,
    ]


def swap_files(rng: random.Random, folder: Path) -> None:
    one, other = rng.choices(files_of(folder), k=2)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    if rng.random() < 0.7:
        other.write_bytes(first)


def swap_kinds(rng: random.Random, folder: Path) -> None:
    """Files of an index of another kind."""
    own = rng.choice(files_of(folder))
    other = folder.parent / "whole" / rng.choice(list(KINDS)) / own.name
    if other.is_file():
        own.write_bytes(other.read_bytes())


def remove_file(rng: random.Random, folder: Path) -> None:
    rng.choice(files_of(folder)).unlink()


DAMAGES: list[Callable[[random.Random, Path], None]] = [
    damage_bytes, damage_bytes, damage_bytes, damage_length, damage_json, damage_json, damage_header, damage_header,
    damage_numbers, damage_numbers, damage_table, damage_table, swap_files, swap_kinds, remove_file,
]  # fmt: skip


def files_of(folder: Path, suffix: str = "") -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name != "lock" and path.name.endswith(suffix))


def fit_manifest(folder: Path) -> None:
    """Sizes and hashes as the files now have them."""
    try:
        manifest = json.loads((folder / "index.json").read_text())
        records = [*manifest["segments"], *([manifest["deleted"]] if manifest["deleted"] else [])]
        for record in records:
            for name in record["files"]:
                record["files"][name] = fingerprint(folder / name)
        (folder / "index.json").write_text(json.dumps(manifest))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass  # the manifest itself is damaged


# ---- what is done with them ----


def use(folder: Path) -> None:
    """All that can be done with an index, each by itself: what one refuses, another may do."""
    verified(lambda: verify_index(folder))
    index = verified(lambda: Index.open(folder))
    if index is None:
        return
    dim = index.space.dim
    query = np.ones(dim if dim < 100_000 else 1)
    steps: list[Callable[[], Any]] = [
        lambda: (len(index), index.columns, index.metadata, repr(index)),
        lambda: index.search(query, 5),
        lambda: index.search(query, 100, exact=True),
        lambda: index.find([query, query], 3),
        lambda: index.search("river the", 5, mode="words"),
        lambda: index.search(query, 5, where="year > 3 and key != 'k5'"),
        lambda: [
            index.search(query, 5, where=f"{name} != None") for name in ("kind", "tags", "day", "when", "nothing", "x")
        ],
        lambda: index.search(query, 5, where="day > '2020-01-01' or kind in ('a', 'b')"),
        lambda: [index[f"k{i}"] for i in (0, 45)],
        lambda: [index.attributes(f"k{i}") for i in (1, 47)],
        lambda: [f"k{i}" in index for i in range(50)],
        lambda: index.delete(["k7", "k44"]),
        lambda: index.add_metadata(seen=True),
        lambda: index.add(["new"], [query], attributes(columns_of(index), 1) or None),
        lambda: index.update(["k1", "k45"], [query, query], attributes(columns_of(index), 2) or None),
        lambda: index.optimize(approximate=False),
        lambda: index.optimize(approximate=True, threads=1),
        lambda: index.search(query, 5),
        lambda: index.close(),
        lambda: Index.open(folder).search(query, 3),
    ]
    for step in steps:
        verified(step)


def columns_of(index: Index) -> str:
    return "typed" if "kind" in index.columns else "texts" if "text" in index.columns else "bare"


def verified(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except FirthError as error:
        assert error.code and str(error) and len(str(error)) < 2000, error
        return None


def variant(number: int, work: Path) -> None:
    """Makes and uses one; the damages it had are in the error."""
    rng = random.Random(number)
    kind = rng.choice(list(KINDS))
    folder = work / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(work / "whole" / kind, folder)
    names = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        damage = rng.choice(DAMAGES)
        names.append(damage.__name__)
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError):
            damage(rng, folder)  # or it is damaged too much to be damaged again
        if rng.random() < 0.85:
            fit_manifest(folder)
    pool = pyarrow.proxy_memory_pool(pyarrow.default_memory_pool())
    pyarrow.set_memory_pool(pool)
    signal.alarm(SECONDS)
    try:
        use(folder)
    except BaseException as error:
        raise AssertionError(f"variant {number} ({kind}: {', '.join(names)}): {error!r}") from error
    finally:
        signal.alarm(0)
        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    most = pool.max_memory()
    assert most < MOST / 16, f"variant {number} ({kind}: {', '.join(names)}): Arrow took {most:,} bytes"


def run(first: int, count: int) -> int:
    """Variants in this process; how many failed."""
    warnings.simplefilter("ignore")
    os.fsync = lambda fd: None  # no power is lost here
    failed = 0
    with tempfile.TemporaryDirectory(prefix="firth-fuzz-") as place:
        work = Path(place)
        os.environ["FIRTH_CACHE"] = str(work / "cache")
        for kind in KINDS:
            make(work / "whole" / kind, kind)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MOST, used + MOST))
        for number in range(first, first + count):
            print(number, flush=True)
            try:
                variant(number, work)
            except AssertionError:
                failed += 1
                traceback.print_exc()
    return failed


def fuzz(count: int, first: int = 0) -> list[str]:
    """Variants in processes of their own; what went wrong."""
    wrong, number = [], first
    while number < first + count:
        some = min(BATCH, first + count - number)
        command = [sys.executable, __file__, "--run", str(number), str(some)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode < 0 or done.returncode > 1:
            crashed = int((done.stdout.split() or [str(number)])[-1])
            wrong.append(f"variant {crashed} ended its process with {done.returncode}: {done.stderr[-2000:]}")
            number = crashed + 1
            continue
        if done.returncode:
            wrong.append(done.stderr)
        number += some
        print(f"{number - first:,} of {count:,} variants, {len(wrong)} batches with faults", flush=True)
    return wrong


def main() -> None:
    if sys.argv[1:2] == ["--run"]:
        sys.exit(bool(run(int(sys.argv[2]), int(sys.argv[3]))))
    count, first = ([int(each) for each in sys.argv[1:3]] + [5000, 0][len(sys.argv) - 1 :])[:2]
    wrong = fuzz(count, first)
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
