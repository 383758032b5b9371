"""What is wrong with a file is said in one line, with the place and the rule."""

import gzip
import json
import os
import re
import struct
from pathlib import Path

import numpy as np
import pytest

import firth
from firth import FirthError

TWO = b"a " + struct.pack("<2f", 1, 2) + b"\nb " + struct.pack("<2f", 3, 4) + b"\n"
NAN = struct.pack("<2f", 1, float("nan"))

BAD = {
    "empty": (b"", "is empty"),
    "header only": (b"3 2\n", "line 1 says 3 rows, but 0 follow"),
    "zero rows": (b"0 2\n", "0 rows of 2 numbers; there must be at least 1"),
    "zero dimensions": (b"2 0\na\nb\n", "2 rows of 0 numbers"),
    "negative rows": (b"-2 2\na 1 2\nb 3 4\n", "line 1 must be rows and dimensions.*got '-2 2'"),
    "NaN header": (b"nan 2\na 1 2\nb 3 4\n", "line 1 must be rows and dimensions.*got 'nan 2'"),
    "too many rows": (b"1 2\na 1 2\nb 3 4\n", "line 1 says 1 rows, but 2 follow"),
    "too few rows": (b"9 2\na 1 2\nb 3 4\n", "line 1 says 9 rows, but 2 follow"),
    "2^60 rows": (b"1152921504606846976 2\na 1 2\n", "line 1 says 1,152,921,504,606,846,976 rows, but 1 follow"),
    "2^60 dimensions": (b"2 1152921504606846976\na 1 2\n", "1,152,921,504,606,846,976 dimensions; Firth reads at"),
    "10^40 rows": (b"1" + b"0" * 40 + b" 2\na 1 2\n", "line 1 must be rows and dimensions"),
    "4000000 dimensions": (b"2 4000000\na 1 2\n", "line 2 has 2 numbers where 4,000,000 are expected"),
    "short row": (b"2 3\na 1 2 3\nb 3 4\n", "line 3 has 2 numbers where 3 are expected"),
    "long row": (b"2 2\na 1 2\nb 3 4 5\n", r"line 3 has more than 2 numbers, or a word .* \('b 3'\)"),
    "short row of GloVe": (b"a 1 2\nb 3\nc 5 6\n", "line 2 has 1 numbers where 2 are expected"),
    "long row of GloVe": (b"a 1 2\nb 3 4 5\nc 5 6\n", "line 2 has more than 2 numbers"),
    "blank line": (b"a 1 2\n\nc 5 6\n", "line 2 has 0 numbers"),
    "two spaces": (b"a 1 2\nb 3  4\nc 5 6\n", "line 2 has more than 2 numbers"),
    "tab": (b"a 1 2\nb 3\t4\nc 5 6\n", "line 2 has 1 numbers"),
    "no number": (b"3 2\na 1 2\nb 3 x4\nc 5 6\n", "line 3 has 'x4' where a number is expected"),
    "hexadecimal": (b"2 2\na 1 2\nb 3 0x4\n", "line 3 has '0x4' where"),
    "underscore": (b"2 2\na 1 2\nb 3 1_0\n", "line 3 has '1_0' where"),
    "NaN": (b"3 2\na 1 2\nb 3 nan\nc 5 6\n", r"row 2 \('b'\) holds NaN, infinity or a number beyond float32; remove"),
    "infinity": (b"2 2\na 1 2\nb -inf 4\n", r"row 2 \('b'\) holds NaN"),
    "beyond float32": (b"2 2\na 1 2\nb 1e39 4\n", r"row 2 \('b'\)"),
    "binary cut in numbers": (b"2 2\n" + TWO[:-3], "ends at byte 23, before the end of row 2 of 2"),
    "binary cut in a word": (b"3 2\n" + TWO + b"cd", "ends at byte 28, before the end of row 3 of 3"),
    "binary of more rows": (b"3 2\n" + TWO, "before the end of row 3 of 3"),
    "binary of fewer rows": (b"1 2\n" + TWO, "more follows row 1, the last by its first line, from byte 14 on"),
    "binary of 2^60 rows": (b"1152921504606846976 2\n" + TWO, "row 3 of 1,152,921,504,606,846,976"),
    "binary of 10^25 rows": (b"1" + b"0" * 25 + b" 2\n" + TWO, "before the end of row 3"),
    "binary of 2^60 dimensions": (b"2 1152921504606846976\n" + TWO, "Firth reads at most 4,194,304"),
    "binary of 4000000 dimensions": (b"2 4000000\n" + TWO, "before the end of row 1"),
    "binary without a space": (b"2 2\n" + b"\0" * 200_000, "row 1 at byte 4 has no space after its word"),
    "binary NaN": (b"2 2\na " + NAN + b"b " + NAN, r"row 1 \('a'\) holds NaN"),
    "prose": (b"It was a dark night\nand stormy\n", "in none of the formats Firth reads: word2vec .*safetensors"),
    "bytes": (bytes(range(128, 250)), "in none of the formats"),
    "short numpy": (b"\x93NUMPY\x01", "is not a .npy file"),
    "cut gzip": (gzip.compress(b"2 2\na 1 2\nb 3 4\n")[:-9], "Cannot read"),
    "damaged gzip": (gzip.compress(b"2 2\na 1 2\nb 3 4\n")[:-8] + b"12345678", "Cannot read"),
    "not gzip after all": (b"\x1f\x8b not", "Cannot read"),
    "long line": (b"2 2\na " + b"1" * (17 << 20), "a line is longer than 16,777,216 bytes"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_file_is_refused_with_its_reason(tmp_path: Path, case: str) -> None:
    content, reason = BAD[case]
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(FirthError, match=reason) as refused:
        firth.read_vectors(path)
    assert "\n" not in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_header_is_asked_for_where_the_format_is_said(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(b"a 1 2\nb 3 4\n")
    assert firth.read_vectors(tmp_path / "v.txt", "glove").keys == ["a", "b"]
    for name in ("word2vec", "fasttext", "word2vec-binary"):
        with pytest.raises(FirthError, match="line 1 must be rows and dimensions"):
            firth.read_vectors(tmp_path / "v.txt", name)


def test_places_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(FirthError, match="No file at"):
        firth.read_vectors(tmp_path / "none.txt")
    with pytest.raises(FirthError, match=r"is a folder; a model is opened by firth\.load"):
        firth.read_vectors(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FirthError, match="No file at"):
        firth.read_vectors(tmp_path / "pipe")
    with pytest.raises(FirthError, match=r"There is no format 'txt'; there are word2vec, "):
        firth.read_vectors(Path(__file__), "txt")


def npy(folder: Path, matrix: np.ndarray, keys: str = '["a", "b"]') -> Path:
    np.save(folder / "v.npy", matrix)
    (folder / "v.keys.json").write_text(keys)
    return folder / "v.npy"


def test_npy_that_does_not_fit(tmp_path: Path) -> None:
    fine = np.zeros((2, 3), dtype=np.float32)
    for odd in (np.zeros(3), np.zeros((2, 2, 2)), np.zeros((2, 2), int), np.zeros((0, 3)), np.zeros((2, 2), "V4")):
        with pytest.raises(FirthError, match="vectors are a matrix of float"):
            firth.read_vectors(npy(tmp_path, odd))
    path = npy(tmp_path, fine)
    whole = path.read_bytes()
    for content in (whole[:-1], whole + b"x", whole.replace(b"(2, 3)", b"(9, 3)")):
        path.write_bytes(content)
        with pytest.raises(FirthError, match="it is cut or damaged"):
            firth.read_vectors(path)
    with pytest.raises(FirthError, match="vectors are a matrix of float"):
        np.save(path, np.array([["a", 1]], dtype=object), allow_pickle=True)
        firth.read_vectors(path)
    path.write_bytes(whole)
    (tmp_path / "v.keys.json").unlink()
    with pytest.raises(FirthError, match=r"has no keys: put v\.keys\.json, a JSON list of 2 strings, beside it"):
        firth.read_vectors(path)


@pytest.mark.parametrize("keys", ["", '["a"]', '["a", 1]', '{"a": 1}', '["a", "b", "c"]', "[" * 100_000, '["\udc80"]'])
def test_keys_that_do_not_fit_are_refused_at_their_use(tmp_path: Path, keys: str) -> None:
    content = keys.encode(errors="surrogateescape")
    (tmp_path / "v.keys.json").write_bytes(content)
    np.save(tmp_path / "v.npy", np.ones((2, 3), dtype=np.float32))
    arrays = {"vectors": np.ones((2, 3), dtype=np.float32), "keys": np.frombuffer(content, dtype=np.uint8)}
    firth.core.storage.write_arrays(tmp_path / "v.safetensors", arrays)
    for name in ("v.npy", "v.safetensors"):
        vectors = firth.read_vectors(tmp_path / name)
        with pytest.raises(FirthError, match=r"The keys in .*(must be a JSON list of 2 strings|are not a JSON list)"):
            vectors.neighbors("a")


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({}, "holds nothing, but no keys of its rows"),
        ({"weight": np.ones((2, 2))}, "holds weight, but no keys"),
        ({"keys": np.zeros(2)}, "no keys"),
        ({"keys": np.zeros(2, np.uint8)}, 'there must be a matrix named "vectors"'),
        ({"keys": np.zeros(2, np.uint8), "vectors": np.ones(2)}, 'there must be a matrix named "vectors"'),
        ({"keys": np.zeros(2, np.uint8), "vectors": np.ones((2, 2), np.int8)}, 'need float32 "scales"'),
        ({"keys": np.zeros(2, np.uint8), "vectors": np.ones((2, 2), np.int32)}, "must be float or int8; got int32"),
        ({"keys": np.zeros(2, np.uint8), "vectors": np.ones((0, 2))}, "at least 1 × 1"),
        ({"keys": np.zeros(2, np.uint8), "vectors": np.ones((2, 0))}, "at least 1 × 1"),
    ],
)
def test_safetensors_of_other_things(tmp_path: Path, arrays: dict[str, np.ndarray], reason: str) -> None:
    firth.core.storage.write_arrays(tmp_path / "v.safetensors", arrays)
    with pytest.raises(FirthError, match=re.escape(reason)):
        firth.read_vectors(tmp_path / "v.safetensors")


def test_nan_in_a_mapped_file_is_refused_at_the_first_question(tmp_path: Path) -> None:
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
        with pytest.raises(FirthError, match=r"The vector of 'odd' \(row 2\) (holds|contains) NaN"):
            question(firth.read_vectors(path))
    with pytest.raises(FirthError, match="two finite vectors"):
        firth.read_vectors(path).similarity("good", "odd")
    assert not (tmp_path / "copy.txt").exists()


def test_a_model_is_not_a_table(tmp_path):
    model = firth.SkipGram(dim=4, min_count=1).fit(["a b c d"] * 5)
    with pytest.raises(firth.FirthError, match=r"pass model\.vectors"):
        firth.write_vectors(model, tmp_path / "v.npy")
    assert not list(tmp_path.iterdir())
