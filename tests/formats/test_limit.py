"""`read_vectors(path, limit=N)` reads the first N rows of a file."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors
from refusing import refuses

import firth
from firth.formats import FORMATS

KEYS = [f"w{row}" for row in range(50)]
MATRIX = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("limit", [1, 7, 49, 50, 51, None])
def test_limit_gives_the_first_rows_of_every_format(tmp_path: Path, name: str, limit: int | None) -> None:
    path = tmp_path / f"v{FORMATS[name].suffixes[0]}"
    firth.write_vectors(firth.Vectors(KEYS, MATRIX), path)
    for format in (None, name):
        vectors = firth.read_vectors(path, format, limit=limit)
        assert list(vectors.keys) == KEYS[:limit] and np.array_equal(vectors.matrix, MATRIX[:limit])


@pytest.mark.parametrize("storage", ["float", "half", "int8"])
def test_limit_of_every_storage(tmp_path: Path, storage: str) -> None:
    path = tmp_path / "v.safetensors"
    firth.write_vectors(firth.Vectors(KEYS, MATRIX), path, storage=storage)
    complete, limited = firth.read_vectors(path), firth.read_vectors(path, limit=7)
    assert list(limited.keys) == KEYS[:7] and np.array_equal(limited.matrix, complete.matrix[:7])


@pytest.mark.parametrize("binary", [False, True])
def test_limit_gives_the_same_vectors_as_gensim(tmp_path: Path, binary: bool) -> None:
    path = tmp_path / ("v.bin" if binary else "v.txt")
    firth.write_vectors(firth.Vectors(KEYS, MATRIX), path)
    theirs = KeyedVectors.load_word2vec_format(str(path), binary=binary, limit=7)
    vectors = firth.read_vectors(path, limit=7)
    assert list(vectors.keys) == theirs.index_to_key and np.array_equal(vectors.matrix, theirs.vectors)


def test_limit_of_files_longer_than_a_block(tmp_path: Path) -> None:
    lines = [f"w{row} {row / 4} {-row}" for row in range(120_000)]  # 2.6 MB
    for header, content in ((False, "\n".join(lines)), (True, "\n".join(["120000 2", *lines]))):
        path = tmp_path / "v.txt.gz"
        path.write_bytes(gzip.compress(content.encode(), 1))
        for limit in (1, 50_000, 119_999, 120_000, 500_000):
            vectors = firth.read_vectors(path, limit=limit)
            assert len(vectors) == min(limit, 120_000), (header, limit)
            assert vectors.matrix[-1].tolist() == [(len(vectors) - 1) / 4, 1 - len(vectors)]


def test_the_rest_of_the_file_is_not_read(tmp_path: Path) -> None:
    text, binary = tmp_path / "v.txt", tmp_path / "v.bin"
    text.write_bytes(b"3 2\na 1 2\nb 3 4\nc 5 nan\nd 6\n")
    binary.write_bytes(b"3 1\na " + np.float32(1).tobytes() + b"b " + np.float32(2).tobytes() + b"c")
    for path in (text, binary):
        assert list(firth.read_vectors(path, limit=2).keys) == ["a", "b"]
    with refuses("non_finite", path=text, row=3):
        firth.read_vectors(text, limit=3)
    with refuses("damaged_file", path=binary, row=3, rows=3):
        firth.read_vectors(binary, limit=3)
    text.write_bytes(b"9 2\na 1 2\nb 3 4\n")
    with refuses("damaged_file", path=text, rows=9, got=2):  # fewer rows than the limit and the header
        firth.read_vectors(text, limit=5)
    text.write_bytes(b"1 2\na 1 2\nb 3 4\n")
    with refuses("damaged_file", path=text, rows=1, got=2):  # more rows than the header
        firth.read_vectors(text, limit=2)


def test_keys_are_checked_against_the_whole_matrix(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", MATRIX)
    (tmp_path / "v.keys.json").write_text('["a", "b"]')
    with refuses("damaged_file", rows=50):
        firth.read_vectors(tmp_path / "v.npy", limit=2).neighbors("a")


@pytest.mark.parametrize("limit", [0, -1, 2.0, "5", True])
def test_invalid_limits_are_refused(tmp_path: Path, limit: object) -> None:
    firth.write_vectors(firth.Vectors(KEYS, MATRIX), tmp_path / "v.txt")
    with refuses("invalid_value", option="limit", got=limit):
        firth.read_vectors(tmp_path / "v.txt", limit=limit)  # type: ignore[arg-type]
