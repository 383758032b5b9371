"""Damaged and malformed files are refused with the position and the reason."""

import gzip
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from refusing import refuses

import firth
from firth import FirthError
from firth.formats import FORMATS, listing

TWO = b"a " + struct.pack("<2f", 1, 2) + b"\nb " + struct.pack("<2f", 3, 4) + b"\n"
NAN = struct.pack("<2f", 1, float("nan"))

BAD: dict[str, Any] = {  # content, code, values
    "empty": (b"", "damaged_file", {}),
    "header only": (b"3 2\n", "damaged_file", {"rows": 3, "got": 0}),
    "zero rows": (b"0 2\n", "damaged_file", {"rows": 0, "dims": 2}),
    "zero dimensions": (b"2 0\na\nb\n", "damaged_file", {"rows": 2, "dims": 0}),
    "negative rows": (b"-2 2\na 1 2\nb 3 4\n", "damaged_file", {"line": 1, "got": "'-2 2'"}),
    "NaN header": (b"nan 2\na 1 2\nb 3 4\n", "damaged_file", {"line": 1, "got": "'nan 2'"}),
    "too many rows": (b"1 2\na 1 2\nb 3 4\n", "damaged_file", {"rows": 1, "got": 2}),
    "too few rows": (b"9 2\na 1 2\nb 3 4\n", "damaged_file", {"rows": 9, "got": 2}),
    "2^60 rows": (b"1152921504606846976 2\na 1 2\n", "damaged_file", {"rows": 1 << 60, "got": 1}),
    "2^60 dimensions": (b"2 1152921504606846976\na 1 2\n", "damaged_file", {"dims": 1 << 60, "maximum": 1 << 22}),
    "10^40 rows": (b"1" + b"0" * 40 + b" 2\na 1 2\n", "damaged_file", {"line": 1}),
    "4000000 dimensions": (b"2 4000000\na 1 2\n", "damaged_file", {"line": 2, "got": 2, "dims": 4_000_000}),
    "short row": (b"2 3\na 1 2 3\nb 3 4\n", "damaged_file", {"line": 3, "got": 2, "dims": 3}),
    "long row": (b"2 2\na 1 2\nb 3 4 5\n", "damaged_file", {"line": 3, "dims": 2, "word": "'b 3'"}),
    "short row of GloVe": (b"a 1 2\nb 3\nc 5 6\n", "damaged_file", {"line": 2, "got": 1, "dims": 2}),
    "long row of GloVe": (b"a 1 2\nb 3 4 5\nc 5 6\n", "damaged_file", {"line": 2, "dims": 2, "word": "'b 3'"}),
    "blank line": (b"a 1 2\n\nc 5 6\n", "damaged_file", {"line": 2, "got": 0}),
    "two spaces": (b"a 1 2\nb 3  4\nc 5 6\n", "damaged_file", {"line": 2, "dims": 2, "word": "'b 3'"}),
    "tab": (b"a 1 2\nb 3\t4\nc 5 6\n", "damaged_file", {"line": 2, "got": 1}),
    "no number": (b"3 2\na 1 2\nb 3 x4\nc 5 6\n", "damaged_file", {"line": 3, "got": "'x4'"}),
    "hexadecimal": (b"2 2\na 1 2\nb 3 0x4\n", "damaged_file", {"line": 3, "got": "'0x4'"}),
    "underscore": (b"2 2\na 1 2\nb 3 1_0\n", "damaged_file", {"line": 3, "got": "'1_0'"}),
    "NaN": (b"3 2\na 1 2\nb 3 nan\nc 5 6\n", "non_finite", {"row": 2, "word": "'b'"}),
    "infinity": (b"2 2\na 1 2\nb -inf 4\n", "non_finite", {"row": 2, "word": "'b'"}),
    "beyond float32": (b"2 2\na 1 2\nb 1e39 4\n", "non_finite", {"row": 2, "word": "'b'"}),
    "binary cut in numbers": (b"2 2\n" + TWO[:-3], "damaged_file", {"byte": 23, "row": 2, "rows": 2}),
    "binary cut in a word": (b"3 2\n" + TWO + b"cd", "damaged_file", {"byte": 28, "row": 3, "rows": 3}),
    "binary of more rows": (b"3 2\n" + TWO, "damaged_file", {"row": 3, "rows": 3}),
    "binary of fewer rows": (b"1 2\n" + TWO, "damaged_file", {"rows": 1, "byte": 14}),
    "binary of 2^60 rows": (b"1152921504606846976 2\n" + TWO, "damaged_file", {"row": 3, "rows": 1 << 60}),
    "binary of 10^25 rows": (b"1" + b"0" * 25 + b" 2\n" + TWO, "damaged_file", {"row": 3, "rows": 10**25}),
    "binary of 2^60 dimensions": (b"2 1152921504606846976\n" + TWO, "damaged_file", {"maximum": 4_194_304}),
    "binary of 4000000 dimensions": (b"2 4000000\n" + TWO, "damaged_file", {"row": 1, "rows": 2}),
    "binary without a space": (b"2 2\n" + b"\0" * 200_000, "damaged_file", {"row": 1, "byte": 4}),
    "binary NaN": (b"2 2\na " + NAN + b"b " + NAN, "non_finite", {"row": 1, "word": "'a'"}),
    "prose": (b"It was a dark night\nand stormy\n", "unknown_format", {"formats": listing()}),
    "bytes": (bytes(range(128, 250)), "unknown_format", {"formats": listing()}),
    "short numpy": (b"\x93NUMPY\x01", "damaged_file", {}),
    "cut gzip": (gzip.compress(b"2 2\na 1 2\nb 3 4\n")[:-9], "unreadable_file", {}),
    "damaged gzip": (gzip.compress(b"2 2\na 1 2\nb 3 4\n")[:-8] + b"12345678", "unreadable_file", {}),
    "not gzip after all": (b"\x1f\x8b not", "unreadable_file", {}),
    "long line": (b"2 2\na " + b"1" * (17 << 20), "damaged_file", {"maximum": 1 << 24}),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused(tmp_path: Path, case: str) -> None:
    content, code, values = BAD[case]
    path = tmp_path / "file"
    path.write_bytes(content)
    with refuses(code, path=path, **values) as refused:
        firth.read_vectors(path)
    assert "\n" not in str(refused.value)


def test_header_is_required_by_a_given_format(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(b"a 1 2\nb 3 4\n")
    assert firth.read_vectors(tmp_path / "v.txt", "glove").keys == ["a", "b"]
    for name in ("word2vec", "fasttext", "word2vec-binary"):
        with refuses("damaged_file", path=tmp_path / "v.txt", line=1):
            firth.read_vectors(tmp_path / "v.txt", name)


def test_paths_that_are_not_files_are_refused(tmp_path: Path) -> None:
    with refuses("not_found", path=tmp_path / "none.txt"):
        firth.read_vectors(tmp_path / "none.txt")
    with refuses("wrong_input", path=tmp_path):
        firth.read_vectors(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with refuses("not_found", path=tmp_path / "pipe"):
        firth.read_vectors(tmp_path / "pipe")
    with refuses("unknown_format", got="txt", choices=", ".join(FORMATS)):
        firth.read_vectors(Path(__file__), "txt")


def npy(folder: Path, matrix: np.ndarray, keys: str = '["a", "b"]') -> Path:
    np.save(folder / "v.npy", matrix)
    (folder / "v.keys.json").write_text(keys)
    return folder / "v.npy"


def test_invalid_npy_files_are_refused(tmp_path: Path) -> None:
    fine = np.zeros((2, 3), dtype=np.float32)
    for invalid in (np.zeros(3), np.zeros((2, 2, 2)), np.zeros((2, 2), int), np.zeros((0, 3)), np.zeros((2, 2), "V4")):
        with refuses("damaged_file", dtype=invalid.dtype, shape=invalid.shape):
            firth.read_vectors(npy(tmp_path, invalid))
    path = npy(tmp_path, fine)
    complete = path.read_bytes()
    size = len(complete)
    for content, expected in (
        (complete[:-1], size),
        (complete + b"x", size),
        (complete.replace(b"(2, 3)", b"(9, 3)"), size + 84),
    ):
        path.write_bytes(content)
        with refuses("damaged_file", path=path, size=len(content), expected=expected):
            firth.read_vectors(path)
    np.save(path, np.array([["a", 1]], dtype=object), allow_pickle=True)
    with refuses("damaged_file", dtype=np.dtype(object), shape=(1, 2)):
        firth.read_vectors(path)
    path.write_bytes(complete)
    (tmp_path / "v.keys.json").unlink()
    with refuses("damaged_file", path=path, name="v.keys.json", rows=2):
        firth.read_vectors(path)


@pytest.mark.parametrize("keys", ["", '["a"]', '["a", 1]', '{"a": 1}', '["a", "b", "c"]', "[" * 100_000, '["\udc80"]'])
def test_invalid_keys_are_refused_at_their_first_use(tmp_path: Path, keys: str) -> None:
    content = keys.encode(errors="surrogateescape")
    (tmp_path / "v.keys.json").write_bytes(content)
    np.save(tmp_path / "v.npy", np.ones((2, 3), dtype=np.float32))
    arrays: dict[str, NDArray[Any]] = {
        "vectors": np.ones((2, 3), dtype=np.float32),
        "keys": np.frombuffer(content, dtype=np.uint8),
    }
    firth.core.storage.write_arrays(tmp_path / "v.safetensors", arrays)
    for name, keys_file in (("v.npy", "v.keys.json"), ("v.safetensors", "v.safetensors")):
        vectors = firth.read_vectors(tmp_path / name)
        with refuses("damaged_file", path=tmp_path / keys_file) as error:
            vectors.neighbors("a")
        assert error.value.values.get("rows", 2) == 2


@pytest.mark.parametrize(
    ("arrays", "values"),
    [
        ({}, {"available": "nothing"}),
        ({"weight": np.ones((2, 2))}, {"available": "weight"}),
        ({"keys": np.zeros(2)}, {"available": "keys"}),
        ({"keys": np.zeros(2, np.uint8)}, {"reason": 'the matrix "vectors" is missing'}),
        ({"keys": np.zeros(2, np.uint8), "vectors": np.ones(2)}, {"reason": 'the matrix "vectors" is missing'}),
        (
            {"keys": np.zeros(2, np.uint8), "vectors": np.ones((2, 2), np.int8)},
            {"reason": 'int8 vectors need a float32 array "scales", one per row'},
        ),
        (
            {"keys": np.zeros(2, np.uint8), "vectors": np.ones((2, 2), np.int32)},
            {"reason": "vectors must be float or int8; got int32"},
        ),
        ({"keys": np.zeros(2, np.uint8), "vectors": np.ones((0, 2))}, {"shape": (0, 2)}),
        ({"keys": np.zeros(2, np.uint8), "vectors": np.ones((2, 0))}, {"shape": (2, 0)}),
    ],
)
def test_safetensors_files_without_vectors_are_refused(
    tmp_path: Path, arrays: dict[str, np.ndarray], values: dict[str, object]
) -> None:
    firth.core.storage.write_arrays(tmp_path / "v.safetensors", arrays)
    with refuses("damaged_file", path=tmp_path / "v.safetensors", **values):
        firth.read_vectors(tmp_path / "v.safetensors")


def test_nan_in_a_mapped_file_is_refused_at_the_first_use(tmp_path: Path) -> None:
    path = npy(tmp_path, np.array([[1, 2], [np.nan, 3]], dtype=np.float32), json.dumps(["good", "odd"]))
    questions = [
        lambda vectors: vectors.neighbors("good"),
        lambda vectors: vectors.neighbors("good", metric="dot"),
        lambda vectors: vectors.neighbors("good", metric="euclidean"),
        lambda vectors: vectors.analogy("good", "odd", "good"),
        lambda vectors: firth.odd_one_out(vectors, ["good", "odd", "good"]),
        lambda vectors: firth.write_vectors(vectors, tmp_path / "copy.txt"),
    ]
    for question in questions:
        with refuses("non_finite", key="odd", row=2):
            question(firth.read_vectors(path))
    with pytest.raises(FirthError) as error:
        firth.read_vectors(path).similarity("good", "odd")
    assert error.value.code in ("non_finite", "shape_mismatch")
    assert not (tmp_path / "copy.txt").exists()


def test_writing_a_model_is_refused(tmp_path):
    model = firth.SkipGram(dim=4, min_count=1).fit(["a b c d"] * 5)
    with refuses("invalid_type", got=type(model).__name__):
        firth.write_vectors(model, tmp_path / "v.npy")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
