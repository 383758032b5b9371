"""Segments on disk. Files are untrusted: dtypes, shapes and all indices into other arrays are checked when a segment is
opened. The values of vectors are not."""

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
from firth.index.segment import BLOCK, KEY, MAX_QUANTIZED_DIM, TEXT, Positions, Segment, Space, damaged
from firth.index.where import first_line, is_text

NAME = re.compile(r"segment-\d{1,18}")
WORDS = "word"  # the only column of the file with a segment's words


def write_segment(folder: Path, number: int, segment: Segment, space: Space) -> Segment:
    """Write and sync the files of a segment, and return it memory-mapped."""
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
    """Return a segment whose files are memory-mapped and validated."""
    name, rows, files = str(record.get("name")), record["rows"], set(record["files"])
    main, words = {f"{name}.safetensors", f"{name}.arrow"}, f"{name}-words.arrow"
    if not NAME.fullmatch(name) or files not in (main, main | {words}):
        raise damaged(folder / MANIFEST, f"it does not list the files of the segment {name!r:.40}")
    path = folder / f"{name}.arrow"
    table = read_table(path)
    names = table.column_names
    if table.num_rows != rows or KEY not in names or len(set(names)) < len(names):
        raise damaged(path, f"it does not contain {rows:,} rows of keys and attributes")
    if (words in files) != (TEXT in names):
        raise damaged(path, "it has texts without words, or words without texts")
    for column in (KEY, TEXT) if TEXT in names else (KEY,):
        if table.schema.field(column).type != pyarrow.large_string():
            raise damaged(path, f"its column {column} does not contain strings")
    if table.column(KEY).null_count:
        raise damaged(path, "a key is missing")
    terms = read_words(folder / words) if words in files else None
    path = folder / f"{name}.safetensors"
    with as_damaged_index():
        file = open_file(path)
        dtypes = {str(entry.get("dtype")) for entry in read_header(file)[0].values() if isinstance(entry, dict)}
        if "BF16" in dtypes:  # reading would convert it to float32, of any size
            raise damaged(path, "it contains bfloat16, which an index never does")
        arrays = read_arrays(file)
    segment = Segment(arrays, table, terms, dict(record), path)
    check_arrays(path, segment, space)
    return segment


def check_arrays(path: Path, segment: Segment, space: Space) -> None:
    """Check the dtypes and shapes of all arrays, and the indices in them (postings: `Segment.words`)."""
    arrays = segment.arrays
    for name, (dtype, shape, needed) in expected_arrays(space, segment).items():
        if name not in arrays:
            if needed:
                raise damaged(path, f"it has no array {name}")
            continue
        array = segment.array(name)
        if array.dtype != dtype or array.shape != shape or not array.flags.aligned:
            actual, expected = (
                f"{kind} of shape {size}" for kind, size in ((array.dtype, array.shape), (dtype, shape))
            )
            raise damaged(path, f"{name} is {actual}, not {expected}")
    hashes, hash_rows = segment.array("hashes"), segment.array("hash_rows")
    if (hashes[1:] < hashes[:-1]).any() or not is_permutation(hash_rows):
        raise damaged(path, "the hashes of its keys are not sorted")
    if segment.terms is not None:
        starts, lengths = segment.array("word_starts"), segment.array("lengths")
        is_valid = (
            starts[0] == 0 and starts[-1] == len(segment.array("word_rows")) and (starts[1:] >= starts[:-1]).all()
        )
        if not is_valid or (lengths < 0).any():
            raise damaged(path, "the offsets of its postings are invalid")


def expected_arrays(space: Space, segment: Segment) -> dict[str, tuple[Any, tuple[int, ...], bool]]:
    """Return the dtype and shape of each array, and whether it is required: earlier versions wrote fewer."""
    per_row, has_words = (len(segment),), segment.terms is not None
    codes = (len(segment), -(-space.dim // 4) * 4 if space.dim <= MAX_QUANTIZED_DIM else -1)
    vectors = np.float16 if space.dtype == "float16" else np.float32
    expected: dict[str, tuple[Any, tuple[int, ...], bool]] = {
        "vectors": (vectors, (len(segment), space.dim), True),
        "scales": (np.float32, per_row, space.metric == "cosine"),
        "codes": (np.int8, codes, False),
        "steps": (np.float32, per_row, False),
        "sums": (np.int32, per_row, False),
        "errors": (np.float32, per_row, False),
        "norms": (np.float32, per_row, False),
        "hashes": (np.uint64, per_row, True),
        "hash_rows": (np.int64, per_row, True),
    }
    if has_words:
        postings = (math.prod(segment.arrays["word_rows"].shape) if "word_rows" in segment.arrays else 0,)
        expected["word_starts"] = (np.int64, (len(segment.terms) + 1,), True)
        expected["word_rows"] = expected["word_counts"] = (np.int32, postings, True)
        expected["lengths"] = (np.int32, per_row, True)
    return expected


def is_permutation(rows: Positions) -> bool:
    """Return whether every row number occurs exactly once."""
    if len(rows) and (rows.min() < 0 or rows.max() >= len(rows)):
        return False
    seen = np.zeros(len(rows), dtype=bool)
    seen[rows] = True
    return bool(seen.all())


def check_columns(folder: Path, segments: Sequence[Segment]) -> None:
    """Check that all segments have the same attributes."""
    for segment in segments[1:]:
        if not segment.table.schema.equals(segments[0].table.schema):
            raise damaged(
                folder / f"{segment.record['name']}.arrow", "its attributes differ from those of the first segment"
            )


# ---- tables ----


def write_table(path: Path, table: Any) -> None:
    """Write and sync an Arrow file."""
    with saying_where(path):
        table = table.unify_dictionaries()  # an Arrow file has one dictionary per column
        with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=BLOCK)
        sync(path)


def read_words(path: Path) -> Any:
    """Read the sorted words of a segment."""
    table = read_table(path)
    if table.column_names != [WORDS] or table.schema.field(0).type != pyarrow.large_string():
        raise damaged(path, "it is not a list of words")
    terms = table.column(0).combine_chunks()
    if terms.null_count:
        raise damaged(path, "a word is missing")
    return terms


def read_table(path: Path) -> Any:
    """Return the table of an Arrow file, memory-mapped. String offsets are checked, because Arrow trusts them."""
    try:
        source = pyarrow.memory_map(str(path))
        table = pyarrow.Table.from_batches(*read_batches(source))
        table.validate()
        for column in table.columns:
            text = is_text(column.type)
            column.validate(full=not text and not pyarrow.types.is_primitive(column.type))
            if text and not all(map(offsets_rise, column.chunks)):
                raise pyarrow.ArrowInvalid("invalid string offsets")
            if any(len(each) > 8 * source.size() for chunk in column.chunks for each in nested(chunk)):
                raise pyarrow.ArrowInvalid("lists longer than the file")
        str(table.schema)  # raises if a name is not valid Unicode
    except Exception as error:  # Arrow reads untrusted bytes: whatever it raises is an error of the file
        raise damaged(path, f"it is not a valid Arrow file ({first_line(error)})") from None
    return table


def read_batches(source: Any) -> tuple[list[Any], Any]:
    """Return the batches of an Arrow file and their schema. Compressed batches are refused: they can expand to any
    size.

    The batches follow the first 8 bytes of the file, in the format of an Arrow stream.
    """
    if source.size() < 8 or source.read(6) != b"ARROW1":
        raise pyarrow.ArrowInvalid("it does not begin with ARROW1")
    source.seek(8)
    for message in pyarrow.ipc.MessageReader.open_stream(source):
        if is_compressed(message.metadata.to_pybytes()):
            raise pyarrow.ArrowInvalid("it is compressed, which an index never is")
    source.seek(8)
    with pyarrow.ipc.open_stream(source) as reader:
        return list(reader), reader.schema


def is_compressed(message: bytes) -> bool:
    """Return whether an Arrow message is a record batch or a dictionary batch with compressed buffers. The message is a
    flatbuffer of tables with numbered fields: 2 is a message's content, 1 a dictionary's batch, 3 a batch's
    compression.
    """

    def number(at: int, size: int, signed: bool = False) -> int:
        return int.from_bytes(message[max(at, 0) : max(at, 0) + size], "little", signed=signed)

    def field(table: int, which: int) -> int:
        """Return the offset of a field's value; 0 if the field is missing."""
        entries = table - number(table, 4, signed=True)
        slot = 4 + 2 * which
        offset = number(entries + slot, 2) if slot < number(entries, 2) else 0
        return table + offset if offset else 0

    def child(table: int, which: int) -> int:
        at = field(table, which)
        return at + number(at, 4) if at else 0

    root = number(0, 4)
    message_type, content = number(field(root, 1), 1), child(root, 2)
    dictionary, batch = 2, 3
    if message_type == dictionary:
        content = child(content, 1)
    return message_type in (dictionary, batch) and field(content, 3) != 0


def nested(array: Any) -> Iterator[Any]:
    """Yield the arrays nested in a list, struct or dictionary, recursively."""
    array_type, types = array.type, pyarrow.types
    children: list[Any] = []
    if types.is_dictionary(array_type):
        children = [array.dictionary]
    elif types.is_struct(array_type) or types.is_union(array_type):
        children = [array.field(number) for number in range(array_type.num_fields)]
    elif types.is_map(array_type):
        children = [array.keys, array.items]
    elif hasattr(array, "storage"):
        children = [array.storage]
    elif hasattr(array, "values"):
        children = [array.values]
    for each in children:
        yield each
        yield from nested(each)


def offsets_rise(chunk: Any) -> bool:
    """Return whether the offsets of all strings are sorted and within the data. The strings are not read."""
    offset_type = np.int64 if pyarrow.types.is_large_string(chunk.type) else np.int32
    _, offsets, data = chunk.buffers()
    if not len(chunk):
        return True
    values: NDArray[Any] = np.frombuffer(offsets, dtype=offset_type, count=chunk.offset + len(chunk) + 1)
    end = data.size if data is not None else 0
    return bool(values[0] >= 0 and (values[1:] >= values[:-1]).all() and values[-1] <= end)


# ---- deleted rows ----


def write_deleted(folder: Path, name: str, deleted: Positions) -> dict[str, Any]:
    """Write the deleted positions and return their manifest record."""
    file = f"{name}.safetensors"
    write_arrays(folder / file, {"deleted": deleted})
    with saying_where(folder):
        return {"rows": len(deleted), "files": {file: fingerprint(folder / file)}}


def read_deleted(folder: Path, record: Mapping[str, Any] | None, rows: int) -> Positions:
    """Read the sorted deleted positions of an index with `rows` rows."""
    if not record:
        return np.zeros(0, dtype=np.int64)
    (name,) = record["files"]
    with as_damaged_index():
        deleted = read_arrays(folder / name).get("deleted")
    if deleted is None or deleted.shape != (record["rows"],) or deleted.dtype != np.int64:
        raise damaged(folder / name, "it is not a list of deleted rows")
    if len(deleted) and (deleted[0] < 0 or deleted[-1] >= rows or (deleted[1:] <= deleted[:-1]).any()):
        raise damaged(folder / name, "it lists rows that the index does not have")
    return np.array(deleted)
