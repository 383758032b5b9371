"""Files with the exact bytes that word2vec, GloVe, fastText and gensim write."""

import gzip
import struct
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from refusing import refuses, warns_code

import firth
from firth.formats import FORMATS


def read(folder: Path, content: bytes, name: str = "file", format: str | None = None) -> firth.Vectors:
    path = folder / name
    path.write_bytes(content)
    return firth.read_vectors(path, format)


def floats(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


C_TEXT = b"3 2\n</s> 0.002001 -0.002210 \nthe -0.000048 0.125000 \nof 1.000000 2.500000 \n"
C_TABLE = {"</s>": [0.002001, -0.00221], "the": [-0.000048, 0.125], "of": [1.0, 2.5]}


def as_table(vectors: firth.Vectors) -> dict[str, list[float]]:
    return {key: vectors[key].tolist() for key in vectors.keys}


def single(table: dict[str, list[float]]) -> dict[str, list[float]]:
    return {key: np.array(row, dtype=np.float32).tolist() for key, row in table.items()}


@pytest.mark.parametrize(
    "content",
    [
        C_TEXT,
        C_TEXT.replace(b" \n", b"\n"),  # gensim: no trailing space
        C_TEXT.replace(b"\n", b"\r\n"),
        C_TEXT[:-2],  # no newline at the end
        C_TEXT[4:],  # GloVe: no header
        C_TEXT[4:].replace(b" \n", b"\n"),
        C_TEXT.replace(b"-0.000048", b"-4.8e-05").replace(b"0.125000", b"+.125"),
        gzip.compress(C_TEXT, mtime=0),
        gzip.compress(C_TEXT[4:], mtime=0),
    ],
)
def test_text_dialects_give_the_same_table(tmp_path: Path, content: bytes) -> None:
    assert as_table(read(tmp_path, content)) == single(C_TABLE)


@pytest.mark.parametrize("end", [b"\n", b""], ids=["word2vec.c", "gensim"])
@pytest.mark.parametrize("packed", [False, True])
def test_binary_dialects(tmp_path: Path, end: bytes, packed: bool) -> None:
    rows = [b"</s> " + floats(1, -2), "naïve ".encode() + floats(0.5, 1e-30), b"a" * 300 + b" " + floats(0, 0)]
    content = b"3 2\n" + b"".join(row + end for row in rows)
    vectors = read(tmp_path, gzip.compress(content) if packed else content)
    assert as_table(vectors) == single({"</s>": [1, -2], "naïve": [0.5, 1e-30], "a" * 300: [0, 0]})


def test_binary_row_with_bytes_of_spaces_and_newlines(tmp_path: Path) -> None:
    row = b"\n   \n\n\n\n"
    vectors = read(tmp_path, b"2 2\na " + row + b"\nb " + row + b"\n", format="word2vec-binary")
    assert vectors.keys == ["a", "b"]
    assert vectors["b"].tobytes() == row


def test_binary_longer_than_a_block(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(size=(9_000, 64)).astype(np.float32)  # 2.3 MB
    content = b"9000 64\n" + b"".join(b"w%d " % row + matrix[row].tobytes() for row in range(9_000))
    vectors = read(tmp_path, content)
    assert vectors.keys == [f"w{row}" for row in range(9_000)]
    assert np.array_equal(vectors.matrix, matrix)


def test_word_truncated_within_a_character_is_replaced_and_counted(tmp_path: Path) -> None:
    cut = ("é" * 50).encode()[:99]  # word2vec keeps 99 bytes
    with warns_code("invalid_utf8") as warned:
        vectors = read(tmp_path, b"2 1\n" + cut + b" " + floats(1) + b"\nok " + floats(2) + b"\n")
    assert vectors.keys == ["é" * 49 + "\ufffd", "ok"] and ": 1 words " in str(warned[0])
    with warns_code("invalid_utf8") as warned:
        assert read(tmp_path, b"1 2\n\xff 0.5 0.5\n").keys == ["\ufffd"]
    assert ": 1 words " in str(warned[0])


def test_replacement_character_in_the_file_is_not_counted(tmp_path: Path) -> None:
    with warns_code("invalid_utf8") as warned:
        read(tmp_path, b"2 2\n\xff 0.5 0.5\n\xef\xbf\xbd2 0.5 0.5\n")
    assert ": 1 words " in str(warned[0])


def test_glove_words_with_spaces_are_split_from_the_right(tmp_path: Path) -> None:
    content = (
        b", 0.1 0.2 0.3\n. . . 1 2 3\nat name@domain.com 4 5 6\na\xc2\xa0b 7 8 9\na\xe2\x80\xa8b 7 8 9\n<unk> 0 0 0\n"
    )
    vectors = read(tmp_path, content)
    assert vectors.keys == [",", ". . .", "at name@domain.com", "a\u00a0b", "a\u2028b", "<unk>"]
    assert vectors["at name@domain.com"].tolist() == [4, 5, 6]


def test_glove_first_word_with_spaces(tmp_path: Path) -> None:
    assert read(tmp_path, b". . 1 2\nb 3 4\nc 5 6\n").keys == [". .", "b", "c"]


def test_text_longer_than_a_block(tmp_path: Path) -> None:
    lines = [f"w{row} {row / 4} {-row}" for row in range(120_000)]  # 2.6 MB
    vectors = read(tmp_path, "\n".join(lines).encode())
    assert len(vectors) == 120_000 and vectors.dim == 2
    assert vectors["w99999"].tolist() == [99999 / 4, -99999]


def test_one_row_longer_than_a_block(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=150_000).astype(np.float32)
    text = b"1 150000\nlong " + " ".join(map(repr, values.tolist())).encode() + b"\n"
    assert np.array_equal(read(tmp_path, text)["long"], values)


def test_first_row_of_repeated_words_is_used(tmp_path: Path) -> None:
    with warns_code("repeated_words") as warned:
        vectors = read(tmp_path, b"4 2\na 1 2\nb 3 4\na 5 6\nb 7 8\n")
    assert as_table(vectors) == {"a": [1, 2], "b": [3, 4]}
    assert ": 2 rows " in str(warned[0]) and "'a'" in str(warned[0])


def test_format_is_detected_from_the_content_before_the_name(tmp_path: Path) -> None:
    source = firth.Vectors(["a", "b"], [[1, 2], [3, 4]])
    for name in FORMATS:
        if name == "npy":
            continue  # its keys are in a file named after it
        firth.write_vectors(source, tmp_path / "any.name", name)
        vectors = firth.read_vectors(tmp_path / "any.name")
        assert as_table(vectors) == {"a": [1, 2], "b": [3, 4]}, name
        (tmp_path / "any.name").rename(tmp_path / "wrong.bin")
        assert firth.read_vectors(tmp_path / "wrong.bin").keys == ["a", "b"]


@pytest.mark.parametrize("suffix", [suffix for entry in FORMATS.values() for suffix in entry.suffixes])
def test_every_suffix_writes_its_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"vectors{suffix}"
    firth.write_vectors(firth.Vectors(["a"], [[1.5, 2]]), path)
    name = next(name for name, entry in FORMATS.items() if suffix in entry.suffixes)
    assert as_table(firth.read_vectors(path, name)) == {"a": [1.5, 2]}


def test_exact_bytes_of_the_writers(tmp_path: Path) -> None:
    vectors = firth.Vectors(["the", "été"], [[0.1, -1e-7], [3, 0.33333334]])
    expected = {
        "v.txt": "2 2\nthe 0.1 -1e-7\nété 3 0.33333334\n".encode(),
        "v.vec": "2 2\nthe 0.1 -1e-7\nété 3 0.33333334\n".encode(),
        "v.glove.txt": "the 0.1 -1e-7\nété 3 0.33333334\n".encode(),
        "v.bin": b"2 2\nthe " + floats(0.1, -1e-7) + "\nété ".encode() + floats(3, 0.33333334) + b"\n",
    }
    for name, content in expected.items():
        firth.write_vectors(vectors, tmp_path / name)
        assert (tmp_path / name).read_bytes() == content, name


def test_npy_is_read_by_numpy_and_its_keys_by_json(tmp_path: Path) -> None:
    firth.write_vectors(firth.Vectors(["a b", "\n"], [[1, 2], [3, 4]]), tmp_path / "v.npy")
    assert np.load(tmp_path / "v.npy").tolist() == [[1, 2], [3, 4]]
    assert (tmp_path / "v.keys.json").read_text() == '["a b", "\\n"]'


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_other_dtypes_and_orders(tmp_path: Path, dtype: str, order: Literal["C", "F"]) -> None:
    np.save(tmp_path / "v.npy", np.array([[1.0, 2.5], [3.0, 4.0]], np.dtype(dtype), order=order))
    (tmp_path / "v.keys.json").write_text('["a", "b"]')
    assert as_table(firth.read_vectors(tmp_path / "v.npy")) == {"a": [1, 2.5], "b": [3, 4]}


def test_safetensors_is_read_by_safetensors(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    firth.write_vectors(firth.Vectors(["a", "b"], [[1, 2, 3], [4, 5, 6]]), tmp_path / "v.safetensors")
    arrays = load_file(tmp_path / "v.safetensors")
    assert arrays["vectors"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert arrays["keys"].tobytes() == b'["a", "b"]'


def test_fasttext_model_is_recognized_and_refused(tmp_path: Path) -> None:
    with refuses("wrong_input", path=tmp_path / "cc.bin", found="fastText model"):
        read(tmp_path, struct.pack("<ii", 793712314, 12) + bytes(100), "cc.bin")
