"""Written vectors are read back exactly, or within the rounding of the storage."""

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
from refusing import refuses

import firth
from firth.formats import FORMATS, dequantize_rows, listing, quantize_rows

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


def same(vectors: firth.Vectors, source: firth.Vectors) -> bool:
    return list(vectors.keys) == list(source.keys) and vectors.matrix.tobytes() == source.matrix.tobytes()


@pytest.mark.parametrize("name", ["word2vec", "word2vec-binary", "glove", "fasttext"])
@LIMITS
@given(source=table(WORD))
def test_word_files_are_read_back_exactly(tmp_path: Path, name: str, source: firth.Vectors) -> None:
    path = tmp_path / "v"
    if name == "glove" and source.dim == 1:
        with refuses("conflicting_options", dim=1):
            firth.write_vectors(source, path, name)
        return
    firth.write_vectors(source, path, name)
    assert same(firth.read_vectors(path, name), source)
    assert same(firth.read_vectors(path), source)  # the format is detected from the content alone


@pytest.mark.parametrize("name", ["npy", "safetensors"])
@LIMITS
@given(source=table(ANY_KEY))
def test_mapped_files_accept_any_key_and_are_read_back_exactly(
    tmp_path: Path, name: str, source: firth.Vectors
) -> None:
    firth.write_vectors(source, tmp_path / f"v.{name}")
    assert same(firth.read_vectors(tmp_path / f"v.{name}"), source)


@LIMITS
@given(MATRIX)
def test_int8_error_is_at_most_half_a_step(matrix: np.ndarray) -> None:
    matrix = np.where(np.abs(matrix) < 1e-30, 0, np.clip(matrix, -1e30, 1e30))
    codes, scales = quantize_rows(matrix)
    assert codes.dtype == np.int8 and np.abs(codes.astype(int)).max() <= 127
    errors = np.abs(dequantize_rows(codes, scales).astype(float) - matrix)
    largest = np.abs(matrix).max(axis=1, keepdims=True).astype(float)
    assert (errors <= largest / 254 * (1 + 1e-5)).all()
    assert (dequantize_rows(codes, scales)[matrix == 0] == 0).all()


def test_int8_example_computed_by_hand() -> None:
    codes, scales = quantize_rows(np.array([[63.5, -31.75, 0.2], [0, 0, 0]], dtype=np.float32))
    assert scales.tolist() == [0.5, 0]
    assert codes.tolist() == [[127, -64, 0], [0, 0, 0]]  # −63.5 is rounded to even, 0.4 to 0


def test_int8_of_many_blocks_equals_the_formula() -> None:
    matrix = np.random.default_rng(0).normal(size=(30_000, 80)).astype(np.float32)  # two blocks and a bit
    codes, scales = quantize_rows(matrix)
    assert np.array_equal(codes, np.rint(matrix / scales[:, None].astype(float)))


@pytest.mark.parametrize(("storage", "bytes_each"), [("float", 4), ("half", 2), ("int8", 1)])
def test_storage_size_and_precision(tmp_path: Path, storage: str, bytes_each: int) -> None:
    matrix = np.random.default_rng(0).normal(size=(500, 64)).astype(np.float32)
    source = firth.Vectors([f"w{row}" for row in range(500)], matrix)
    path = tmp_path / "v.safetensors"
    firth.write_vectors(source, path, storage=storage)
    assert path.stat().st_size == pytest.approx(500 * (64 * bytes_each + 8), abs=4_500)
    vectors = firth.read_vectors(path)
    tolerance = {"float": 0, "half": 2e-3, "int8": np.abs(matrix).max() / 254 * 1.001}[storage]
    assert np.abs(vectors.matrix - matrix).max() <= tolerance
    same_neighbor = [
        vectors.neighbors(f"w{row}", k=1)[0].key == source.neighbors(f"w{row}", k=1)[0].key for row in range(50)
    ]
    assert sum(same_neighbor) >= 45


def test_unsuitable_storage_is_refused(tmp_path: Path) -> None:
    vectors = firth.Vectors(["a"], [[1e6, 1]])
    with refuses("out_of_range", got=1e6):
        firth.write_vectors(vectors, tmp_path / "v.safetensors", storage="half")
    with refuses("conflicting_options", format="word2vec-binary", storage="int8"):
        firth.write_vectors(vectors, tmp_path / "v.bin", storage="int8")
    with refuses("invalid_value", option="storage", choices="float, half, int8", got="int4"):
        firth.write_vectors(vectors, tmp_path / "v.safetensors", storage="int4")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("word", ["", "new york", "a\n", "\t", "x" * 65_537, "\ud800"])
@pytest.mark.parametrize("name", ["word2vec", "word2vec-binary", "glove", "fasttext"])
def test_words_that_cannot_be_delimited_are_refused(tmp_path: Path, name: str, word: str) -> None:
    vectors = firth.Vectors(["fine", word], [[1, 2], [3, 4]])
    with refuses("invalid_encoding" if word == "\ud800" else "invalid_value", row=2):
        firth.write_vectors(vectors, tmp_path / "v", name)
    assert not list(tmp_path.iterdir())


def test_longest_word_of_the_binary_format(tmp_path: Path) -> None:
    source = firth.Vectors(["x" * 65_536, "y" * 65_536], [[1, 2], [3, 4]])
    firth.write_vectors(source, tmp_path / "v.bin")
    assert same(firth.read_vectors(tmp_path / "v.bin"), source)


@pytest.mark.parametrize("name", ["npy", "safetensors"])
def test_keys_with_lone_surrogates_are_refused(tmp_path: Path, name: str) -> None:
    with refuses("invalid_encoding", reason="surrogates not allowed"):
        firth.write_vectors(firth.Vectors(["\ud800"], [[1]]), tmp_path / f"v.{name}")
    assert not list(tmp_path.iterdir())


def test_empty_tables_nan_and_unknown_suffixes_are_refused(tmp_path: Path) -> None:
    with refuses("empty_data", rows=0, dim=3):
        firth.write_vectors(firth.Vectors([], np.zeros((0, 3))), tmp_path / "v.txt")
    many = np.ones((300_000, 8), dtype=np.float32)
    many[299_999, 3] = np.inf
    with refuses("non_finite", key="k299999", row=300_000):
        firth.write_vectors(firth.Vectors([f"k{row}" for row in range(300_000)], many), tmp_path / "v.txt")
    with refuses("unknown_format", name="v.xyz", formats=listing()):
        firth.write_vectors(firth.Vectors(["a"], [[1]]), tmp_path / "v.xyz")
    with refuses("unknown_format", name="v.txt.gz"):
        firth.write_vectors(firth.Vectors(["a"], [[1]]), tmp_path / "v.txt.gz")
    assert not list(tmp_path.iterdir())


@contextlib.contextmanager
def full_disk(after: int) -> Iterator[None]:
    """Limit the size of files to `after` bytes, so that write() fails midway, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", FORMATS)
def test_full_disk_leaves_only_the_old_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"v{FORMATS[name].suffixes[0]}"
    small = firth.Vectors(["a"], [[1, 2]])
    firth.write_vectors(small, path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    large = firth.Vectors([f"w{row}" for row in range(1_000)], np.ones((1_000, 100)))
    with refuses("unwritable_file", reason=os.strerror(errno.EFBIG)) as error, full_disk(after=20_000):
        firth.write_vectors(large, path)
    assert Path(str(error.value.values["path"])).name == path.name
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert same(firth.read_vectors(path), small)


def test_unwritable_paths_are_refused(tmp_path: Path) -> None:
    vectors = firth.Vectors(["a"], [[1, 2]])
    (tmp_path / "folder.txt").mkdir()
    with refuses("unsafe_output", path=tmp_path / "folder.txt"):
        firth.write_vectors(vectors, tmp_path / "folder.txt")
    with refuses("unsafe_output", path="/dev/null"):
        firth.write_vectors(vectors, "/dev/null", "word2vec")
    assert Path("/dev/null").is_char_device()
    (tmp_path / "file").write_text("")
    with refuses("unwritable_file", path=tmp_path / "file" / "v.txt"):
        firth.write_vectors(vectors, tmp_path / "file" / "v.txt")


def test_writing_through_a_link_keeps_the_link_and_open_vectors(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "v.npy").symlink_to(tmp_path / "real" / "v.npy")
    firth.write_vectors(firth.Vectors(["a"], [[1, 2]]), tmp_path / "v.npy")
    before = firth.read_vectors(tmp_path / "v.npy")
    assert (tmp_path / "v.npy").is_symlink() and (tmp_path / "real" / "v.npy").is_file()
    firth.write_vectors(firth.Vectors(["b"], [[3, 4]]), tmp_path / "v.npy")
    assert before.matrix.tolist() == [[1, 2]]  # the old file stays available while it is mapped
    assert firth.read_vectors(tmp_path / "v.npy")["b"].tolist() == [3, 4]


def test_mapped_files_are_opened_without_reading_matrix_or_keys(tmp_path: Path) -> None:
    source = firth.Vectors([f"w{row}" for row in range(20_000)], np.ones((20_000, 50)))
    for name in ("npy", "safetensors"):
        firth.write_vectors(source, tmp_path / f"v.{name}")
        vectors = firth.read_vectors(tmp_path / f"v.{name}")
        base = vectors.matrix.base
        assert base is not None and (isinstance(base, np.memmap) or isinstance(base.base, np.memmap))
        assert callable(vectors._keys)
        assert vectors["w19999"].tolist() == [1] * 50
        assert not callable(vectors._keys)
