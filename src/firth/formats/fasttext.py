"""fastText model files: .bin, and .ftz with quantized matrices. Reads versions 11 and 12, writes version 12.

A file has, little-endian and in this order: magic number and version; the settings, 12 integers and one double; the
numbers of entries, words, labels, tokens and pruned n-grams; the entries (bytes up to a NUL, count, type); (n-gram,
row) pairs if n-grams were pruned; the input matrix; the output matrix. See Dictionary, Args, DenseMatrix, QuantMatrix
and ProductQuantizer in fastText 0.9.2.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.storage import new_file
from firth.core.vectors import Matrix
from firth.formats.files import BLOCK
from firth.formats.mapped import MappedReader
from firth.kernels.product import CENTROIDS, ProductCodes, parts_of

MAGIC, VERSION = 793712314, 12
LOSSES = {1: "hs", 2: "ns", 3: "softmax", 4: "ova"}
MODELS = {1: "cbow", 2: "sg", 3: "sup"}
LONGEST_NGRAM = 100  # fastText has no limit, but a damaged file could then request all substrings of a long word
_ARGS = struct.Struct("<12id")
_SIZES = struct.Struct("<3i2q")
_LEAST_ENTRY = 10  # bytes: NUL, count, type


@dataclass(frozen=True)
class FastTextArgs:
    """The settings, with fastText's own names."""

    dim: int
    ws: int
    epoch: int
    minCount: int  # noqa: N815
    neg: int
    wordNgrams: int  # noqa: N815
    loss: str  # one of LOSSES
    model: str  # one of MODELS
    bucket: int
    minn: int
    maxn: int
    lrUpdateRate: int  # noqa: N815
    t: float


@dataclass(frozen=True)
class SparseRows:
    """A matrix with mostly zero rows at its end: `first`, then `size` rows, of which `row_ids` (sorted) are `rows`."""

    first: Matrix
    rows: Matrix
    row_ids: NDArray[np.int32]
    size: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the whole matrix."""
        return len(self.first) + self.size, int(self.first.shape[1])

    def __getitem__(self, expected: slice) -> Matrix:
        begin, end, _ = expected.indices(self.shape[0])
        block = np.zeros((end - begin, self.shape[1]), dtype=np.float32)
        own = self.first[begin:end]
        block[: len(own)] = own
        low, high = np.searchsorted(self.row_ids, [begin - len(self.first), end - len(self.first)])
        block[self.row_ids[low:high] + len(self.first) - begin] = self.rows[low:high]
        return block


@dataclass(frozen=True)
class FastTextFile:
    """The content of a .bin or .ftz file. Words and labels are bytes, because fastText does not require UTF-8.

    Row i of `inputs` belongs to word i. The rows of n-grams follow: one per bucket, or in a pruned model those listed
    in `pruned` as (bucket, row after the words). `outputs` has one row per label in supervised models, else one per
    word.
    """

    args: FastTextArgs
    words: Sequence[bytes]
    word_counts: NDArray[np.int64]
    labels: Sequence[bytes]
    label_counts: NDArray[np.int64]
    tokens: int
    inputs: Matrix | SparseRows | ProductCodes
    outputs: Matrix | ProductCodes
    pruned: NDArray[np.int32] | None = None
    version: int = VERSION

    @property
    def ngram_rows(self) -> int:
        """Number of n-gram rows of `inputs`."""
        return self.args.bucket if self.pruned is None else len(self.pruned)

    @property
    def targets(self) -> int:
        """Number of rows of `outputs`."""
        return len(self.labels) if self.args.model == "sup" else len(self.words)


def is_fasttext(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins with fastText's magic number."""
    try:
        with Path(path).open("rb") as file:
            return file.read(4) == struct.pack("<i", MAGIC)
    except OSError:
        return False


def read_fasttext(path: str | os.PathLike[str], in_memory: bool = False) -> FastTextFile:
    """Read a .bin or .ftz file. Matrices are memory-mapped, or read if `in_memory` is set.

    Every size is checked before memory is allocated for it.
    """
    reader = MappedReader(Path(path), in_memory)
    magic, version = reader.unpack("<2i", "magic and version")
    if magic != MAGIC:
        raise reader.wrong("the magic number must be", MAGIC, magic)
    if version not in (11, VERSION):
        raise reader.wrong("the version must be", "11 or 12", version)
    args = _read_args(reader)
    if version == 11 and args.model == "sup":
        args = replace(args, maxn=0)  # such models have no character n-grams, even if maxn is set
    size, words, labels, tokens, pruned = reader.unpack(_SIZES.format, "numbers of words and labels")
    if not 0 <= words <= size or labels != size - words or not words + labels:
        raise reader.wrong("the number of words plus labels must be at least 1 and equal", size, f"{words} + {labels}")
    if tokens < 0:
        raise reader.wrong("the number of tokens must be at least", 0, tokens)
    entries, counts = _read_entries(reader, size, words)
    pairs = _read_pairs(reader, pruned, args.bucket) if pruned >= 0 else None
    rows = words + (args.bucket if pairs is None else len(pairs))
    inputs, quantized = _read_matrix(reader, "input", rows, args.dim)
    if pairs is not None and not quantized:
        raise reader.wrong("the input matrix of a pruned model must be", "quantized", "dense")
    targets = labels if args.model == "sup" else words
    outputs, _ = _read_matrix(reader, "output", targets, args.dim, dense_only=not quantized)
    reader.finish()
    return FastTextFile(
        args=args,
        words=entries[:words],
        word_counts=counts[:words],
        labels=entries[words:],
        label_counts=counts[words:],
        tokens=tokens,
        inputs=inputs,
        outputs=outputs,
        pruned=pairs,
        version=version,
    )


def _read_args(reader: MappedReader) -> FastTextArgs:
    *numbers, t = reader.unpack(_ARGS.format, "settings")
    names = list(FastTextArgs.__dataclass_fields__)
    fields: dict[str, Any] = dict(zip(names, [*numbers, t], strict=True))
    for name, choices in (("loss", LOSSES), ("model", MODELS)):
        if fields[name] not in choices:
            listing = ", ".join(f"{number} ({choice})" for number, choice in choices.items())
            raise reader.wrong(f"{name} must be one of", listing, fields[name])
        fields[name] = choices[fields[name]]
    args = FastTextArgs(**fields)
    problem = args_problem(args)
    if problem:
        raise reader.wrong(*problem)
    return args


def args_problem(args: FastTextArgs) -> tuple[str, Any, Any] | None:
    """Return the first violated rule of the settings as (rule, expected, actual), or None."""
    if args.dim < 1:
        return "dim must be at least", 1, args.dim
    for name in ("minn", "maxn"):
        if not 0 <= getattr(args, name) <= LONGEST_NGRAM:
            return f"{name} must be", f"0 to {LONGEST_NGRAM}", getattr(args, name)
    hashed = args.maxn > 0 or (args.model == "sup" and args.wordNgrams > 1)
    if args.bucket < (1 if hashed else 0):
        return "bucket must be at least", 1 if hashed else 0, args.bucket
    if not math.isfinite(args.t):
        return "t must be", "a finite number", args.t
    return None


def _read_entries(reader: MappedReader, size: int, words: int) -> tuple[list[bytes], NDArray[np.int64]]:
    """Read the words and labels with their counts."""
    begin = reader.position
    reader.reserve(size * _LEAST_ENTRY, f"a vocabulary of {size:,} entries")  # checked before the list grows
    data, at = reader.data, begin
    entries: list[bytes] = []
    ends = np.zeros(size, dtype=np.int64)
    for number in range(size):
        end = data.find(b"\0", at)
        if end < 0 or end + _LEAST_ENTRY > reader.size:
            raise FirthError(
                "damaged_file",
                "{path} is truncated or damaged: it ends within entry {entry:,} of {entries:,}.",
                path=reader.path,
                entry=number + 1,
                entries=size,
            )
        entries.append(data[at:end])
        ends[number] = end
        at = end + _LEAST_ENTRY
    reader.position = at
    fields = np.frombuffer(data, dtype=np.uint8)[ends[:, None] + np.arange(1, _LEAST_ENTRY)]
    counts = np.ascontiguousarray(fields[:, :8]).view("<i8").ravel()
    is_label = np.arange(size) >= words
    invalid = np.flatnonzero((fields[:, 8] != is_label) | (counts < 0))
    if len(invalid):
        row = int(invalid[0])
        expected = f"type {int(is_label[row])} and a count of at least 0"
        raise reader.wrong(f"entry {row + 1:,} must have", expected, f"type {fields[row, 8]}, count {counts[row]}")
    return entries, counts


def _read_pairs(reader: MappedReader, count: int, buckets: int) -> NDArray[np.int32]:
    """Read (bucket, row after the words) of each n-gram of a pruned model."""
    pairs = reader.array("<i4", (count, 2), f"a list of {count:,} n-grams")
    for column, rule, most in ((0, "n-grams must be below bucket =", buckets), (1, "their rows must be below", count)):
        invalid = np.flatnonzero((pairs[:, column] < 0) | (pairs[:, column] >= most))
        if len(invalid):
            raise reader.wrong(rule, most, pairs[invalid[0], column])
    different = len(np.unique(pairs[:, 0]))
    if different < count:
        raise reader.wrong("the number of different pruned n-grams must be", count, different)
    return pairs


def _read_matrix(
    reader: MappedReader, name: str, rows: int, dim: int, dense_only: bool = False
) -> tuple[Matrix | ProductCodes, bool]:
    quantized = reader.flag(f"the {name} matrix is quantized")
    if quantized and dense_only:
        raise reader.wrong("with a dense input matrix, the output matrix must be", "dense", "quantized")
    norms = reader.flag("norms are quantized") if quantized else False
    actual = reader.unpack("<2q", f"the shape of the {name} matrix")
    if actual != (rows, dim):
        raise reader.wrong(f"the {name} matrix must be", f"{rows:,} × {dim:,}", " × ".join(f"{n:,}" for n in actual))
    if not quantized:
        return reader.array("<f4", (rows, dim), f"the {name} matrix"), False
    (size,) = reader.unpack("<i", "the number of codes")
    parts = size // rows if rows else 0
    if size < 0 or size != rows * parts or (rows and not 1 <= parts <= dim):
        raise reader.wrong("the number of codes per row must be an integer,", f"1 to {dim} for {rows:,} rows", size)
    codes = reader.array("u1", (rows, parts), f"the codes of the {name} matrix")
    width, centroids = _read_quantizer(reader, dim, parts if rows else None)
    if not norms:
        return ProductCodes(codes, centroids, dim, width), True
    norm_codes = reader.array("u1", (rows,), f"the norms of the {name} matrix")
    _, norm_centroids = _read_quantizer(reader, 1, 1)
    return ProductCodes(codes, centroids, dim, width, norm_codes, norm_centroids), True


def _read_quantizer(reader: MappedReader, dim: int, parts: int | None) -> tuple[int, NDArray[np.float32]]:
    """Read a product quantizer: the width of its subvectors, and its centroids."""
    shape = reader.unpack("<4i", "the shape of the quantizer")
    width = shape[2]
    right = (dim, parts_of(dim, width), width, dim % width or width) if 1 <= width <= dim else None
    if shape != right or parts not in (None, shape[1]):
        expected = f"{dim} columns in {'' if parts is None else f'{parts} '}parts of one width"
        actual = "dim {}, {} parts of {}, the last {}".format(*shape)
        raise reader.wrong("the quantizer must be for", expected, actual)
    return width, reader.array("<f4", (dim * CENTROIDS,), "the quantizer's centroids")


def write_fasttext(path: str | os.PathLike[str], model: FastTextFile) -> None:
    """Write a .bin or .ftz file atomically, in the format of fastText 0.9.2.

    The type of the matrices determines which of the two it is.
    """
    check_file(model)
    args = model.args
    numbers = {"loss": key_of(LOSSES, args.loss), "model": key_of(MODELS, args.model)}
    settings = [numbers.get(name, getattr(args, name)) for name in FastTextArgs.__dataclass_fields__]
    words, labels = len(model.words), len(model.labels)
    pruned = -1 if model.pruned is None else len(model.pruned)
    with new_file(Path(path)) as work, work.open("wb") as file:
        file.write(struct.pack("<2i", MAGIC, VERSION) + _ARGS.pack(*settings))
        file.write(_SIZES.pack(words + labels, words, labels, model.tokens, pruned))
        for dtype, entries, counts in ((0, model.words, model.word_counts), (1, model.labels, model.label_counts)):
            file.writelines(
                b"%b\0%b" % (entry, struct.pack("<qB", count, dtype))
                for entry, count in zip(entries, counts.tolist(), strict=True)
            )
        if model.pruned is not None:
            file.write(np.ascontiguousarray(model.pruned, dtype="<i4").tobytes())
        _write_matrix(file, model.inputs)
        _write_matrix(file, model.outputs)


def check_file(model: FastTextFile) -> None:
    """Refuse content that `read_fasttext` could not read."""
    problem = args_problem(model.args)
    rows, dim = len(model.words) + model.ngram_rows, model.args.dim
    if not problem and model.inputs.shape != (rows, dim):
        problem = ("the input matrix must be", (rows, dim), model.inputs.shape)
    if not problem and model.outputs.shape != (model.targets, dim):
        problem = ("the output matrix must be", (model.targets, dim), model.outputs.shape)
    quantized = isinstance(model.inputs, ProductCodes)
    if not problem and not quantized and (model.pruned is not None or isinstance(model.outputs, ProductCodes)):
        problem = ("with pruned n-grams or quantized outputs, the input matrix must be", "quantized", "dense")
    if not problem and isinstance(model.inputs, ProductCodes) and model.inputs.codes.size >= 1 << 31:
        problem = ("the number of codes must be below", 1 << 31, model.inputs.codes.size)
    for entries in (model.words, model.labels):
        with_nul = None if problem else next((entry for entry in entries if b"\0" in entry), None)
        if with_nul is not None:
            problem = ("words and labels must be", "without NUL", with_nul)
    if problem:
        raise FirthError(
            "conflicting_options",
            "This fastText model cannot be written: {rule} {expected}; got {got}.",
            rule=problem[0],
            expected=problem[1],
            got=problem[2],
        )


def key_of(choices: dict[int, str], expected: str) -> int:
    """Return the number of a setting's value."""
    for number, name in choices.items():
        if name == expected:
            return number
    raise FirthError(
        "invalid_value",
        "The value must be one of {choices} in fastText; got {got!r}.",
        choices=", ".join(choices.values()),
        got=expected,
    )


def _write_matrix(file: BinaryIO, matrix: Matrix | SparseRows | ProductCodes) -> None:
    rows, dim = matrix.shape
    if not isinstance(matrix, ProductCodes):
        file.write(struct.pack("<B2q", False, rows, dim))
        step = max(1, BLOCK // (4 * dim))
        for first in range(0, rows, step):
            file.write(np.ascontiguousarray(matrix[first : first + step], dtype="<f4").data)
        return
    norms = matrix.norm_codes is not None
    file.write(struct.pack("<2B2qi", True, norms, rows, dim, matrix.codes.size))
    file.write(matrix.codes.tobytes())
    _write_quantizer(file.write, dim, matrix.width, matrix.centroids)
    if matrix.norm_codes is not None and matrix.norm_centroids is not None:
        file.write(matrix.norm_codes.tobytes())
        _write_quantizer(file.write, 1, 1, matrix.norm_centroids)


def _write_quantizer(write: Callable[[bytes], Any], dim: int, width: int, centroids: NDArray[np.float32]) -> None:
    write(struct.pack("<4i", dim, parts_of(dim, width), width, dim % width or width))
    write(np.ascontiguousarray(centroids, dtype="<f4").tobytes())
