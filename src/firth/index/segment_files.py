"""Segments on disk. A stranger's files are checked when they are opened: kinds, shapes, and every number that points at
something; what the numbers of vectors say is theirs alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from firth.core.storage import fingerprint, open_file, read_arrays, read_header, saying_where, sync, write_arrays
from firth.index.folder import MANIFEST, as_damaged_index
from firth.index.segment import BLOCK, KEY, TEXT, WIDEST, Positions, Segment, Space, damaged
from firth.index.where import first_line, is_text

NAME = re.compile(r"segment-\d{1,18}")
WORDS = "word"  # the one column of a segment's words


def write_segment(folder: Path, number: int, segment: Segment, space: Space) -> Segment:
    """Writes and syncs the files of a segment and maps them."""
    name = f"segment-{number}"
    table = f"{name}.arrow"
    write_arrays(folder / f"{name}.safetensors", segment.arrays)
    write_table(folder / table, segment.table)
    files = [f"{name}.safetensors", table]
    if segment.terms is not None:
        files.append(f"{name}-words.arrow")
        write_table(folder / files[-1], pyarrow.table({WORDS: segment.terms}))
    with saying_where(folder):
        record = {"name": name, "rows": len(segment), "files": {file: fingerprint(folder / file) for file in files}}
    return open_segment(folder, record, space)


def open_segment(folder: Path, record: Mapping[str, Any], space: Space) -> Segment:
    """The files of a segment, mapped and checked."""
    name, rows, files = str(record.get("name")), record["rows"], set(record["files"])
    main, words = {f"{name}.safetensors", f"{name}.arrow"}, f"{name}-words.arrow"
    if not NAME.fullmatch(name) or files not in (main, main | {words}):
        raise damaged(folder / MANIFEST, f"it does not name the files of the segment {name!r:.40}")
    path = folder / f"{name}.arrow"
    table = read_table(path)
    names = table.column_names
    if table.num_rows != rows or KEY not in names or len(set(names)) < len(names):
        raise damaged(path, f"it does not hold {rows:,} rows of keys and attributes")
    if (words in files) != (TEXT in names):
        raise damaged(path, "its words are missing, or of no texts")
    for column in (KEY, TEXT) if TEXT in names else (KEY,):
        if table.schema.field(column).type != pyarrow.large_string():
            raise damaged(path, f"its column {column} holds no texts")
    if table.column(KEY).null_count:
        raise damaged(path, "a key is missing")
    terms = read_words(folder / words) if words in files else None
    path = folder / f"{name}.safetensors"
    with as_damaged_index():
        file = open_file(path)
        kinds = {str(entry.get("dtype")) for entry in read_header(file)[0].values() if isinstance(entry, dict)}
        if "BF16" in kinds:  # which would be widened here, whatever its size
            raise damaged(path, "it holds bfloat16, which no index does")
        arrays = read_arrays(file)
    segment = Segment(arrays, table, terms, dict(record), path)
    check_arrays(path, segment, space)
    return segment


def check_arrays(path: Path, segment: Segment, space: Space) -> None:
    """Kinds and shapes of all arrays, and that what they point at is there (postings: `Segment.words`)."""
    arrays = segment.arrays
    for name, (dtype, shape, needed) in expected_arrays(space, segment).items():
        if name not in arrays:
            if needed:
                raise damaged(path, f"it has no array {name}")
            continue
        found = segment.array(name)
        if found.dtype != dtype or found.shape != shape or not found.flags.aligned:
            have, want = (f"{kind} of shape {size}" for kind, size in ((found.dtype, found.shape), (dtype, shape)))
            raise damaged(path, f"{name} is {have}, not {want}")
    hashes, owners = segment.array("hashes"), segment.array("hash_rows")
    if (hashes[1:] < hashes[:-1]).any() or not is_permutation(owners):
        raise damaged(path, "the hashes of its keys are not in order")
    if segment.terms is not None:
        starts, lengths = segment.array("word_starts"), segment.array("lengths")
        right = starts[0] == 0 and starts[-1] == len(segment.array("word_rows")) and (starts[1:] >= starts[:-1]).all()
        if not right or (lengths < 0).any():
            raise damaged(path, "its words do not end where they should")


def expected_arrays(space: Space, segment: Segment) -> dict[str, tuple[Any, tuple[int, ...], bool]]:
    """Of each array its dtype, its shape, and whether it must be there: earlier versions wrote fewer."""
    one, words = (len(segment),), segment.terms is not None
    quantized = (len(segment), -(-space.dim // 4) * 4 if space.dim <= WIDEST else -1)
    vectors = np.float16 if space.numbers == "float16" else np.float32
    found: dict[str, tuple[Any, tuple[int, ...], bool]] = {
        "vectors": (vectors, (len(segment), space.dim), True),
        "scales": (np.float32, one, space.metric == "cosine"),
        "codes": (np.int8, quantized, False),
        "steps": (np.float32, one, False),
        "sums": (np.int32, one, False),
        "errors": (np.float32, one, False),
        "norms": (np.float32, one, False),
        "hashes": (np.uint64, one, True),
        "hash_rows": (np.int64, one, True),
    }
    if words:
        postings = (math.prod(segment.arrays["word_rows"].shape) if "word_rows" in segment.arrays else 0,)
        found["word_starts"] = (np.int64, (len(segment.terms) + 1,), True)
        found["word_rows"] = found["word_counts"] = (np.int32, postings, True)
        found["lengths"] = (np.int32, one, True)
    return found


def is_permutation(rows: Positions) -> bool:
    """Whether every row stands there once."""
    if len(rows) and (rows.min() < 0 or rows.max() >= len(rows)):
        return False
    seen = np.zeros(len(rows), dtype=bool)
    seen[rows] = True
    return bool(seen.all())


def check_columns(folder: Path, segments: Sequence[Segment]) -> None:
    """All segments have the same attributes."""
    for segment in segments[1:]:
        if not segment.table.schema.equals(segments[0].table.schema):
            raise damaged(folder / f"{segment.record['name']}.arrow", "it has other attributes than the first segment")


# ---- tables ----


def write_table(path: Path, table: Any) -> None:
    with saying_where(path):
        table = table.unify_dictionaries()  # an Arrow file holds one for each column
        with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=BLOCK)
        sync(path)


def read_words(path: Path) -> Any:
    table = read_table(path)
    if table.column_names != [WORDS] or table.schema.field(0).type != pyarrow.large_string():
        raise damaged(path, "it holds no words")
    terms = table.column(0).combine_chunks()
    if terms.null_count:
        raise damaged(path, "a word is missing")
    return terms


def read_table(path: Path) -> Any:
    """A table of an Arrow file, mapped. Where texts begin and end is checked: Arrow itself follows any number."""
    try:
        source = pyarrow.memory_map(str(path))
        table = pyarrow.Table.from_batches(*read_batches(source))
        table.validate()
        for column in table.columns:
            text = is_text(column.type)
            column.validate(full=not text and not pyarrow.types.is_primitive(column.type))
            if text and not all(map(offsets_rise, column.chunks)):
                raise pyarrow.ArrowInvalid("texts without an end")
            if any(len(each) > 8 * source.size() for chunk in column.chunks for each in nested(chunk)):
                raise pyarrow.ArrowInvalid("lists longer than the file")
        str(table.schema)  # names that are not Unicode show here
    except Exception as error:  # Arrow reads a stranger's bytes: what it says of them is never a fault of Firth
        raise damaged(path, f"it is no Arrow file ({first_line(error)})") from None
    return table


def read_batches(source: Any) -> tuple[list[Any], Any]:
    """The batches of an Arrow file, and their schema; compressed ones are refused, for they may be of any size.

    They follow each other behind the 8 bytes with which the file begins, as in a stream.
    """
    if source.size() < 8 or source.read(6) != b"ARROW1":
        raise pyarrow.ArrowInvalid("it begins otherwise")
    source.seek(8)
    for message in pyarrow.ipc.MessageReader.open_stream(source):
        if is_compressed(message.metadata.to_pybytes()):
            raise pyarrow.ArrowInvalid("it is compressed, which no index is")
    source.seek(8)
    with pyarrow.ipc.open_stream(source) as reader:
        return list(reader), reader.schema


def is_compressed(message: bytes) -> bool:
    """Whether a message of Arrow's is a batch, or a dictionary, with compressed buffers. It is a flatbuffer of tables,
    whose fields have numbers: 2 is a message's content, 1 a dictionary's batch, 3 a batch's compression."""

    def number(at: int, size: int, signed: bool = False) -> int:
        return int.from_bytes(message[max(at, 0) : max(at, 0) + size], "little", signed=signed)

    def field(table: int, which: int) -> int:
        """Where a field's value stands; 0 if there is none."""
        entries = table - number(table, 4, signed=True)
        slot = 4 + 2 * which
        offset = number(entries + slot, 2) if slot < number(entries, 2) else 0
        return table + offset if offset else 0

    def child(table: int, which: int) -> int:
        at = field(table, which)
        return at + number(at, 4) if at else 0

    root = number(0, 4)
    kind, content = number(field(root, 1), 1), child(root, 2)
    dictionary, batch = 2, 3
    if kind == dictionary:
        content = child(content, 1)
    return kind in (dictionary, batch) and field(content, 3) != 0


def nested(array: Any) -> Iterator[Any]:
    """The arrays inside a list, struct or dictionary, and those inside them."""
    kind, types = array.type, pyarrow.types
    inside: list[Any] = []
    if types.is_dictionary(kind):
        inside = [array.dictionary]
    elif types.is_struct(kind) or types.is_union(kind):
        inside = [array.field(number) for number in range(kind.num_fields)]
    elif types.is_map(kind):
        inside = [array.keys, array.items]
    elif hasattr(array, "storage"):
        inside = [array.storage]
    elif hasattr(array, "values"):
        inside = [array.values]
    for each in inside:
        yield each
        yield from nested(each)


def offsets_rise(chunk: Any) -> bool:
    """Whether every text of a chunk lies inside its data. The texts themselves are not read."""
    kind = np.int64 if pyarrow.types.is_large_string(chunk.type) else np.int32
    _, offsets, data = chunk.buffers()
    if not len(chunk):
        return True
    found: NDArray[Any] = np.frombuffer(offsets, dtype=kind, count=chunk.offset + len(chunk) + 1)
    end = data.size if data is not None else 0
    return bool(found[0] >= 0 and (found[1:] >= found[:-1]).all() and found[-1] <= end)


# ---- deleted rows ----


def write_deleted(folder: Path, name: str, deleted: Positions) -> dict[str, Any]:
    file = f"{name}.safetensors"
    write_arrays(folder / file, {"deleted": deleted})
    with saying_where(folder):
        return {"rows": len(deleted), "files": {file: fingerprint(folder / file)}}


def read_deleted(folder: Path, record: Mapping[str, Any] | None, rows: int) -> Positions:
    """Positions that are deleted, rising, of an index with so many rows."""
    if not record:
        return np.zeros(0, dtype=np.int64)
    (name,) = record["files"]
    with as_damaged_index():
        found = read_arrays(folder / name).get("deleted")
    if found is None or found.shape != (record["rows"],) or found.dtype != np.int64:
        raise damaged(folder / name, "it does not list the deleted rows")
    if len(found) and (found[0] < 0 or found[-1] >= rows or (found[1:] <= found[:-1]).any()):
        raise damaged(folder / name, "it lists rows that the index does not have")
    return np.array(found)
