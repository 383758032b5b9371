"""Malicious files: a reader returns Vectors or raises a FirthError, with memory bounded by the file size."""

import gzip
import tracemalloc
import warnings
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import firth
from firth import FirthError, FirthWarning
from firth.core.errors import CODES
from firth.formats import FORMATS

LIMITS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TOKENS = [b" ", b"\n", b"\r\n", b"\t", b"0", b"-1", b"1.5", b"nan", b"1e999", b"9" * 19, b"9" * 6, b"\x00", b"\xff" * 8]
TOKENS += [b"{", b'"', b"[" * 50, b"(9, 9)", b"F16", b"I8", b"keys"]
TOKENS += [b"\x93NUMPY", b"\x1f\x8b", (793712314).to_bytes(4, "little")]


@cache
def valid(name: str) -> bytes:
    keys = ["</s>", "the", "of", "naïve", "川"]
    matrix = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "v.npy"
        firth.write_vectors(firth.Vectors(keys, matrix), path, name)
        return path.read_bytes()


EDIT = st.tuples(
    st.sampled_from(["replace", "insert", "delete", "cut", "repeat"]),
    st.floats(0, 1),
    st.integers(1, 12),
    st.one_of(st.sampled_from(TOKENS), st.binary(min_size=1, max_size=9)),
)


def mutated(content: bytes, edits: list[tuple[str, float, int, bytes]]) -> bytes:
    for kind, where, length, token in edits:
        at = int(where * len(content))
        if kind == "cut":
            content = content[:at]
        elif kind == "repeat":
            content = content[:at] + content[at : at + 10 * length] * length + content[at:]
        else:
            keep = at + (0 if kind == "insert" else length)
            content = content[:at] + (b"" if kind == "delete" else token) + content[keep:]
    return content


def read_or_refuse(path: Path, format: str | None) -> None:
    """Read the vectors and use them, so that lazily opened parts are read too."""
    size = path.stat().st_size
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FirthWarning)
            vectors = firth.read_vectors(path, format)
            assert len(vectors.keys) == len(vectors.matrix) > 0
            vectors.neighbors(vectors.keys[0])
    except FirthError as error:
        assert error.code in CODES and "\n" not in str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4_000_000 + 100 * size  # blocks of 1 MB and what is built from them


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("given_format", [True, False], ids=["format given", "format detected"])
@LIMITS
@given(edits=st.lists(EDIT, max_size=6), other=st.sampled_from([*FORMATS, ""]), packed=st.booleans())
def test_damaged_files(
    tmp_path: Path, name: str, given_format: bool, edits: list[tuple[str, float, int, bytes]], other: str, packed: bool
) -> None:
    content = mutated(valid(name) + (valid(other) if other and len(edits) > 4 else b""), edits)
    path = tmp_path / "v.npy"
    path.write_bytes(gzip.compress(content, 1) if packed and len(edits) % 2 else content)
    (tmp_path / "v.keys.json").write_text('["a", "b", "c", "d", "e"]')
    read_or_refuse(path, name if given_format else None)


@pytest.mark.parametrize("name", [*FORMATS, None])
@LIMITS
@given(content=st.one_of(st.binary(max_size=200), st.lists(st.sampled_from(TOKENS), max_size=40).map(b"".join)))
def test_any_bytes(tmp_path: Path, name: str | None, content: bytes) -> None:
    (tmp_path / "v.npy").write_bytes(content)
    (tmp_path / "v.keys.json").write_text('["a"]')
    read_or_refuse(tmp_path / "v.npy", name)


@pytest.mark.parametrize("name", ["npy", "safetensors"])
@LIMITS
@given(edits=st.lists(EDIT, min_size=1, max_size=6))
def test_damaged_headers_of_mapped_files(tmp_path: Path, name: str, edits: list[tuple[str, float, int, bytes]]) -> None:
    """Only the header is changed, which is rare in `test_damaged_files`."""
    complete = valid(name)
    length = 128 if name == "npy" else 8 + int.from_bytes(complete[:8], "little")
    header = mutated(complete[8:length], edits)
    size = len(header).to_bytes(8, "little") if name == "safetensors" else complete[:8]
    (tmp_path / "v.npy").write_bytes(size + header + complete[length:])
    (tmp_path / "v.keys.json").write_text('["a", "b", "c", "d", "e"]')
    read_or_refuse(tmp_path / "v.npy", name)
