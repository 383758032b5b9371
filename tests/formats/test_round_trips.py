"""What is written is read back: exactly, or within the rounding that was asked for."""

import contextlib
import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import firth
from firth import FirthError
from firth.formats import FORMATS, dequantize_rows, quantize_rows

ANY_KEY = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
WORD = ANY_KEY.filter(lambda word: word and not set(word) & set(" \t\n\v\f\r"))
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
MATRIX = arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=FINITE)
LIMITS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def table(key: st.SearchStrategy[str]) -> st.SearchStrategy[firth.Vectors]:
    def with_keys(matrix: np.ndarray) -> st.SearchStrategy[firth.Vectors]:
        rows = len(matrix)
        return st.lists(key, min_size=rows, max_size=rows, unique=True).map(lambda keys: firth.Vectors(keys, matrix))

    return MATRIX.flatmap(with_keys)


def same(found: firth.Vectors, source: firth.Vectors) -> bool:
    return list(found.keys) == list(source.keys) and found.matrix.tobytes() == source.matrix.tobytes()


@pytest.mark.parametrize("name", ["word2vec", "word2vec-binary", "glove", "fasttext"])
@LIMITS
@given(source=table(WORD))
def test_word_files_come_back_exactly(tmp_path: Path, name: str, source: firth.Vectors) -> None:
    path = tmp_path / "v"
    if name == "glove" and source.dim == 1:
        with pytest.raises(FirthError, match="cannot be told from a header"):
            firth.write_vectors(source, path, name)
        return
    firth.write_vectors(source, path, name)
    assert same(firth.read_vectors(path, name), source)
    assert same(firth.read_vectors(path), source)  # nothing but the content tells what it is


@pytest.mark.parametrize("name", ["npy", "safetensors"])
@LIMITS
@given(source=table(ANY_KEY))
def test_mapped_files_take_any_key_and_come_back_exactly(tmp_path: Path, name: str, source: firth.Vectors) -> None:
    firth.write_vectors(source, tmp_path / f"v.{name}")
    assert same(firth.read_vectors(tmp_path / f"v.{name}"), source)


@LIMITS
@given(MATRIX)
def test_int8_is_within_half_a_step_of_each_row(matrix: np.ndarray) -> None:
    matrix = np.where(np.abs(matrix) < 1e-30, 0, np.clip(matrix, -1e30, 1e30))
    codes, scales = quantize_rows(matrix)
    assert codes.dtype == np.int8 and np.abs(codes.astype(int)).max() <= 127
    errors = np.abs(dequantize_rows(codes, scales).astype(float) - matrix)
    largest = np.abs(matrix).max(axis=1, keepdims=True).astype(float)
    assert (errors <= largest / 254 * (1 + 1e-5)).all()
    assert (dequantize_rows(codes, scales)[matrix == 0] == 0).all()


def test_int8_worked_by_hand() -> None:
    codes, scales = quantize_rows(np.array([[63.5, -31.75, 0.2], [0, 0, 0]], dtype=np.float32))
    assert scales.tolist() == [0.5, 0]
    assert codes.tolist() == [[127, -64, 0], [0, 0, 0]]  # −63.5 goes to the even neighbour, 0.4 to 0


def test_int8_of_many_blocks_equals_the_formula() -> None:
    matrix = np.random.default_rng(0).normal(size=(30_000, 80)).astype(np.float32)  # two blocks and a bit
    codes, scales = quantize_rows(matrix)
    assert np.array_equal(codes, np.rint(matrix / scales[:, None].astype(float)))


@pytest.mark.parametrize(("storage", "bytes_each"), [("float", 4), ("half", 2), ("int8", 1)])
def test_storages(tmp_path: Path, storage: str, bytes_each: int) -> None:
    matrix = np.random.default_rng(0).normal(size=(500, 64)).astype(np.float32)
    source = firth.Vectors([f"w{row}" for row in range(500)], matrix)
    path = tmp_path / "v.safetensors"
    firth.write_vectors(source, path, storage=storage)
    assert path.stat().st_size == pytest.approx(500 * (64 * bytes_each + 8), abs=4_500)
    found = firth.read_vectors(path)
    tolerance = {"float": 0, "half": 2e-3, "int8": np.abs(matrix).max() / 254 * 1.001}[storage]
    assert np.abs(found.matrix - matrix).max() <= tolerance
    close = [found.neighbors(f"w{row}", k=1)[0].key == source.neighbors(f"w{row}", k=1)[0].key for row in range(50)]
    assert sum(close) >= 45


def test_storage_that_cannot_hold_it_is_refused(tmp_path: Path) -> None:
    vectors = firth.Vectors(["a"], [[1e6, 1]])
    with pytest.raises(FirthError, match=r"half holds numbers up to 65,504; the largest here is 1e\+06"):
        firth.write_vectors(vectors, tmp_path / "v.safetensors", storage="half")
    with pytest.raises(FirthError, match=r"word2vec-binary holds float only; storage='int8' needs \.safetensors"):
        firth.write_vectors(vectors, tmp_path / "v.bin", storage="int8")
    with pytest.raises(FirthError, match="storage must be one of float, half, int8; got 'int4'"):
        firth.write_vectors(vectors, tmp_path / "v.safetensors", storage="int4")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("word", ["", "new york", "a\n", "\t", "x" * 65_537, "\ud800"])
@pytest.mark.parametrize("name", ["word2vec", "word2vec-binary", "glove", "fasttext"])
def test_words_no_reader_could_tell_apart_are_refused(tmp_path: Path, name: str, word: str) -> None:
    vectors = firth.Vectors(["fine", word], [[1, 2], [3, 4]])
    with pytest.raises(FirthError, match=r"row 2\b"):
        firth.write_vectors(vectors, tmp_path / "v", name)
    assert not list(tmp_path.iterdir())


def test_longest_word_of_the_binary_format(tmp_path: Path) -> None:
    source = firth.Vectors(["x" * 65_536, "y" * 65_536], [[1, 2], [3, 4]])
    firth.write_vectors(source, tmp_path / "v.bin")
    assert same(firth.read_vectors(tmp_path / "v.bin"), source)


@pytest.mark.parametrize("name", ["npy", "safetensors"])
def test_a_key_that_is_no_text_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FirthError, match="is not Unicode text"):
        firth.write_vectors(firth.Vectors(["\ud800"], [[1]]), tmp_path / f"v.{name}")
    assert not list(tmp_path.iterdir())


def test_nothing_and_nan_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(FirthError, match="Nothing to write: there are 0 vectors of 3"):
        firth.write_vectors(firth.Vectors([], np.zeros((0, 3))), tmp_path / "v.txt")
    many = np.ones((300_000, 8), dtype=np.float32)
    many[299_999, 3] = np.inf
    with pytest.raises(FirthError, match=r"'k299999' \(row 300,000\) holds NaN or infinity"):
        firth.write_vectors(firth.Vectors([f"k{row}" for row in range(300_000)], many), tmp_path / "v.txt")
    with pytest.raises(FirthError, match=r"v\.xyz does not say its format; end it with one of: word2vec \(\.txt"):
        firth.write_vectors(firth.Vectors(["a"], [[1]]), tmp_path / "v.xyz")
    with pytest.raises(FirthError, match=r"v\.txt\.gz does not say its format"):
        firth.write_vectors(firth.Vectors(["a"], [[1]]), tmp_path / "v.txt.gz")
    assert not list(tmp_path.iterdir())


@contextlib.contextmanager
def full_disk(after: int) -> Iterator[None]:
    """Files can't grow beyond `after` bytes: write() fails half-way, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", FORMATS)
def test_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"v{FORMATS[name].suffixes[0]}"
    small = firth.Vectors(["a"], [[1, 2]])
    firth.write_vectors(small, path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    large = firth.Vectors([f"w{row}" for row in range(1_000)], np.ones((1_000, 100)))
    said = rf"Cannot write .*/{path.name}: {os.strerror(errno.EFBIG)}\."
    with full_disk(after=20_000), pytest.raises(FirthError, match=said):
        firth.write_vectors(large, path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert same(firth.read_vectors(path), small)


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    vectors = firth.Vectors(["a"], [[1, 2]])
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(FirthError, match="is not a regular file"):
        firth.write_vectors(vectors, tmp_path / "folder.txt")
    with pytest.raises(FirthError, match="is not a regular file"):
        firth.write_vectors(vectors, "/dev/null", "word2vec")
    assert Path("/dev/null").is_char_device()
    (tmp_path / "file").write_text("")
    with pytest.raises(FirthError, match=r"Cannot write .*file/v\.txt: "):
        firth.write_vectors(vectors, tmp_path / "file" / "v.txt")


def test_writing_through_a_link_keeps_the_link_and_open_readers(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "v.npy").symlink_to(tmp_path / "real" / "v.npy")
    firth.write_vectors(firth.Vectors(["a"], [[1, 2]]), tmp_path / "v.npy")
    opened = firth.read_vectors(tmp_path / "v.npy")
    assert (tmp_path / "v.npy").is_symlink() and (tmp_path / "real" / "v.npy").is_file()
    firth.write_vectors(firth.Vectors(["b"], [[3, 4]]), tmp_path / "v.npy")
    assert opened.matrix.tolist() == [[1, 2]]  # the old file lives on for who has it mapped
    assert firth.read_vectors(tmp_path / "v.npy")["b"].tolist() == [3, 4]


def test_mapped_files_open_without_reading_matrix_or_keys(tmp_path: Path) -> None:
    source = firth.Vectors([f"w{row}" for row in range(20_000)], np.ones((20_000, 50)))
    for name in ("npy", "safetensors"):
        firth.write_vectors(source, tmp_path / f"v.{name}")
        vectors = firth.read_vectors(tmp_path / f"v.{name}")
        assert isinstance(vectors.matrix.base, np.memmap) or isinstance(vectors.matrix.base.base, np.memmap)
        assert callable(vectors._keys)
        assert vectors["w19999"].tolist() == [1] * 50
        assert not callable(vectors._keys)
