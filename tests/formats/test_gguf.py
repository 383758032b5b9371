"""GGUF files against the package gguf; damaged and hostile files are refused without allocating what they claim."""

from __future__ import annotations

import struct
import tracemalloc
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import gguf
import numpy as np
import pytest
from formats.gguf_files import TYPES, small_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusing import refuses

from firth import FirthError
from firth.core.errors import CODES
from firth.formats.gguf import is_gguf, read_gguf
from firth.kernels.blocks import STORAGES, dequantize, quantize

LIMITS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_metadata_and_tensors(tmp_path: Path) -> None:
    arrays = small_file(tmp_path / "m.gguf")
    file = read_gguf(tmp_path / "m.gguf")
    expected = {"a.text": "naïve", "a.int": 7, "a.float": 0.5, "a.bool": True, "a.texts": ["x", "", "川"]}
    assert {key: file.metadata[key] for key in expected} == expected
    assert file.metadata["a.ints"].tolist() == [1, 2, 3] and file.metadata["a.floats"].tolist() == [0.5, 1.5]
    assert file.version == 3 and file.metadata["general.architecture"] == "llama"
    reader = gguf.GGUFReader(tmp_path / "m.gguf")
    assert list(file.tensors) == [tensor.name for tensor in reader.tensors] == list(arrays)
    for theirs in reader.tensors:
        ours = file.tensors[theirs.name]
        assert ours.shape == arrays[theirs.name].shape and ours.storage.name == theirs.tensor_type.name
        np.testing.assert_array_equal(ours.floats(), gguf.quants.dequantize(theirs.data, theirs.tensor_type))
        assert not ours.rows.flags.owndata and not ours.rows.flags.writeable  # mapped from the file


@pytest.mark.parametrize("kind", TYPES)
def test_blocks_are_those_of_ggml(kind: str) -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(40, 96)).astype(np.float32)
    values[3], values[4, :32], values[5] = 0, 2.5, np.abs(values[5])
    theirs = gguf.quants.quantize(values, gguf.GGMLQuantizationType[kind])
    stored = quantize(values, kind)
    np.testing.assert_array_equal(stored, theirs.view(np.uint8).reshape(stored.shape))
    assert stored.shape[1] == STORAGES[kind].row_bytes(96)
    back = gguf.quants.dequantize(theirs, gguf.GGMLQuantizationType[kind])
    np.testing.assert_array_equal(dequantize(stored, kind), back)


# ---- damaged files ----


@cache
def valid() -> bytes:
    with TemporaryDirectory() as folder:
        small_file(Path(folder) / "m.gguf")
        return (Path(folder) / "m.gguf").read_bytes()


def open_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for tensor in read_gguf(path).tensors.values():
        with np.errstate(all="ignore"):
            tensor.floats()


def replaced(before: bytes, after: bytes) -> bytes:
    assert valid().count(before) == 1
    return valid().replace(before, after)


def named(name: bytes) -> bytes:
    return struct.pack("<Q", len(name)) + name


NORM = named(b"norm") + struct.pack("<IQ", 1, 7)


def test_false_headers(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    with refuses("damaged_file", expected="GGUF"):
        open_bytes(path, b"GGML" + valid()[4:])
    assert not is_gguf(path) and not is_gguf(tmp_path / "missing")
    with refuses("unsupported_format", got=1):
        open_bytes(path, b"GGUF" + struct.pack("<I", 1) + valid()[8:])
    with refuses("unsupported_format", got="3 in big-endian order"):
        open_bytes(path, b"GGUF" + struct.pack(">I", 3) + valid()[8:])
    with refuses("damaged_file"):
        open_bytes(path, b"")
    with refuses("unreadable_file"):
        read_gguf(tmp_path / "missing")


@pytest.mark.parametrize("at", [8, 16])
def test_false_counts_of_tensors_and_entries(tmp_path: Path, at: int) -> None:
    for count in (2**63, 10**9, 1000):
        with refuses("damaged_file"):
            open_bytes(tmp_path / "m.gguf", valid()[:at] + struct.pack("<Q", count) + valid()[at + 8 :])


def test_false_sizes(tmp_path: Path) -> None:
    path, big = tmp_path / "m.gguf", struct.pack("<Q", 2**60)
    with refuses("damaged_file", part="a.text"):
        open_bytes(path, replaced(named("naïve".encode()), big + "naïve".encode()))
    texts = struct.pack("<IIQ", 9, 8, 3)
    with refuses("damaged_file", length=2**60 * 8):
        open_bytes(path, replaced(named(b"a.texts") + texts, named(b"a.texts") + texts[:8] + big))
    with refuses("damaged_file", part="a.ints"):
        ints = named(b"a.ints") + struct.pack("<II", 9, 5)
        open_bytes(path, replaced(ints + struct.pack("<Q", 3), ints + big))
    with refuses("damaged_file", part="the tensor norm", length=4 * 2**60):
        open_bytes(path, replaced(NORM, NORM[:-8] + big))


def test_false_tensors(tmp_path: Path) -> None:
    path, end = tmp_path / "m.gguf", NORM + struct.pack("<I", 0)
    for kind, name in ((12, "Q4_K"), (99, "99, which is unknown")):
        with refuses("unsupported_format", name="norm", got=name, available="F32, F16, BF16, Q8_0, Q4_0, Q4_1"):
            open_bytes(path, replaced(end, end[:-4] + struct.pack("<I", kind)))
    with refuses("damaged_file", got="7"):  # 7 is no multiple of a block
        open_bytes(path, replaced(end, end[:-4] + struct.pack("<I", 8)))
    with refuses("damaged_file", got=9):
        open_bytes(path, replaced(NORM, named(b"norm") + struct.pack("<IQ", 9, 7)))
    with refuses("damaged_file", got="0"):
        open_bytes(path, replaced(NORM, NORM[:-8] + struct.pack("<Q", 0)))
    with refuses("damaged_file", expected="t.F16", got="occurs twice"):
        open_bytes(path, replaced(named(b"t.F32"), named(b"t.F16")))
    at = valid().index(end) + len(end)
    offset = struct.unpack_from("<Q", valid(), at)[0]
    for false in (offset + 1, offset - 32, 2**63):  # unaligned, within another tensor, outside of the file
        with refuses("damaged_file"):
            open_bytes(path, valid()[:at] + struct.pack("<Q", false) + valid()[at + 8 :])


def test_missing_and_mistyped_entries(tmp_path: Path) -> None:
    small_file(tmp_path / "m.gguf")
    file = read_gguf(tmp_path / "m.gguf")
    assert file.value("a.int", int) == 7 and file.value("missing", int, 3) == 3
    with refuses("incomplete_model", name="missing"):
        file.value("missing", int)
    with refuses("damaged_file", name="a.text"):
        file.value("a.text", int)
    with refuses("damaged_file", name="a.bool"):
        file.value("a.bool", int)


TOKENS = [struct.pack("<Q", n) for n in (0, 1, 32, 2**31, 2**40, 2**63, 2**64 - 1)]
TOKENS += [struct.pack("<I", n) for n in range(14)] + [b"GGUF", b"\xff" * 8, b"\0" * 8]


@LIMITS
@given(
    edits=st.lists(
        st.tuples(
            st.sampled_from(["replace", "insert", "delete", "cut"]),
            st.floats(0, 1),
            st.one_of(st.sampled_from(TOKENS), st.binary(min_size=1, max_size=9)),
        ),
        min_size=1,
        max_size=5,
    ),
    header=st.booleans(),
)
def test_fuzz(tmp_path: Path, edits: list[tuple[str, float, bytes]], header: bool) -> None:
    """A file is opened or refused with a code, with memory bounded by its size."""
    content = valid()
    limit = content.index(b"t.F32") + 600 if header else len(content)
    for kind, where, token in edits:
        at = int(where * min(limit, len(content)))
        if kind == "cut":
            content = content[:at]
        else:
            rest = at + (0 if kind == "insert" else len(token))
            content = content[:at] + (b"" if kind == "delete" else token) + content[rest:]
    tracemalloc.start()
    try:
        open_bytes(tmp_path / "m.gguf", content)
    except FirthError as error:
        assert error.code in CODES and "\n" not in str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1_000_000 + 100 * len(content)
