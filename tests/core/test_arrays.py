"""safetensors: read and written by others as by Firth, and hostile files refused."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusing import refuses

from firth import FirthError
from firth.core import storage
from firth.core.storage import read_arrays, write_arrays

ARRAYS: dict[str, NDArray[Any]] = {
    "codes": np.arange(-3, 3, dtype=np.int8).reshape(2, 3),
    "single": np.array([[1.5, -2]], dtype=np.float32),
    "half": np.array([0.5], dtype=np.float16),
    "double": np.array([1e300]),
    "ids": np.array([2**31 - 1], dtype=np.int32),
    "starts": np.array([2**62], dtype=np.int64),
    "none": np.zeros((0, 4), dtype=np.float32),
    "scalar": np.array(7, dtype=np.int64),
    "flags": np.array([True, False]),
    "columns": np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
    "big-endian": np.array([1.5, 2], dtype=">f4"),
    "every other": np.arange(10, dtype=np.int32)[::2],
}


def test_arrays_come_back_aligned_and_are_read_by_safetensors(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    write_arrays(tmp_path / "a", ARRAYS)
    ours, theirs = read_arrays(tmp_path / "a"), load_file(tmp_path / "a")
    assert set(ours) == set(theirs) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert ours[name].shape == theirs[name].shape == array.shape
        assert ours[name].tolist() == theirs[name].tolist() == array.tolist()
        assert ours[name].flags.aligned


def test_arrays_of_safetensors_are_read(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    kept = {name: array for name, array in ARRAYS.items() if array.dtype.byteorder != ">"}
    by_rows = {name: np.array(array, order="C") for name, array in kept.items()}
    save_file(by_rows, tmp_path / "a", metadata={"by": "them"})
    assert {name: array.tolist() for name, array in read_arrays(tmp_path / "a").items()} == {
        name: array.tolist() for name, array in kept.items()
    }


def test_kinds_safetensors_has_not(tmp_path: Path) -> None:
    with refuses("invalid_type", name="words"):
        write_arrays(tmp_path / "a", {"words": np.array(["a"])})


def with_header(header: Any, data: bytes = bytes(24)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(kind: Any = "F32", shape: Any = (2, 3), offsets: Any = (0, 24)) -> dict[str, Any]:
    return {"a": {"dtype": kind, "shape": shape, "data_offsets": offsets}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", ("damaged_model", {"length": 0, "size": 0})),
        (b"\x00" * 7, ("damaged_model", {"length": 0, "size": 7})),
        (b"\xff" * 30, ("damaged_model", {"length": 18446744073709551615, "size": 30})),
        (with_header(b"[]"), ("damaged_model", {})),
        (with_header(b"{"), ("damaged_model", {})),
        (with_header(b"[" * 100_000), ("damaged_model", {})),
        (with_header(b"\xff\xfe"), ("damaged_model", {})),
        (with_header(b'{"a": ' + b"9" * 5000 + b"}"), ("damaged_model", {})),
        (with_header({"a": []}), ("damaged_model", {"name": "a", "kind": None})),
        (with_header(entry(kind="F8_E5M2")), ("damaged_model", {"name": "a", "kind": "F8_E5M2"})),
        (with_header(entry(kind=["F32"])), ("damaged_model", {"name": "a", "kind": ["F32"]})),
        (with_header(entry(shape="23")), ("damaged_model", {"name": "a"})),
        (with_header(entry(shape=[2.0, 3])), ("damaged_model", {"name": "a"})),
        (with_header(entry(shape=[True, 6])), ("damaged_model", {"name": "a"})),
        (
            with_header(b'{"a": {"dtype": "F32", "shape": [1e999], "data_offsets": [0, 24]}}'),
            ("damaged_model", {"name": "a"}),
        ),
        (with_header(entry(offsets=[0])), ("damaged_model", {"name": "a"})),
        (with_header(entry(shape=[2, 4])), ("damaged_model", {"name": "a", "shape": (2, 4), "size": 97})),
        (with_header(entry(shape=[-2, -3])), ("damaged_model", {"name": "a", "shape": (-2, -3), "size": 99})),
        (with_header(entry(offsets=[-24, 0])), ("damaged_model", {"name": "a", "shape": (2, 3), "size": 98})),
        (with_header(entry(offsets=[1, 25])), ("damaged_model", {"name": "a", "shape": (2, 3), "size": 97})),
        (
            with_header(entry(shape=[2**60], offsets=[0, 2**62])),
            ("damaged_model", {"name": "a", "shape": (1152921504606846976,), "size": 129}),
        ),
        (
            with_header(entry(shape=[2**64, 2**64], offsets=[0, 2**130])),
            ("damaged_model", {"name": "a", "shape": (18446744073709551616, 18446744073709551616), "size": 173}),
        ),
        (
            with_header(entry(shape=[0, 2**63], offsets=[0, 0])),
            ("damaged_model", {"name": "a", "shape": (0, 9223372036854775808)}),
        ),
        (with_header(entry(shape=[1] * 100, offsets=[0, 4])), ("damaged_model", {"name": "a"})),
        (with_header(entry(shape=[0] * 100, offsets=[0, 0])), ("damaged_model", {"name": "a"})),
    ],
)
def test_hostile_safetensors(tmp_path: Path, content: bytes, reason: tuple[str, dict[str, Any]]) -> None:
    (tmp_path / "a").write_bytes(content)
    with refuses(reason[0], **reason[1]):
        read_arrays(tmp_path / "a")


def test_missing_safetensors(tmp_path: Path) -> None:
    with refuses("unreadable_file"):
        read_arrays(tmp_path / "none")


NUMBER = st.one_of(st.integers(-2, 10), st.sampled_from([2**31, 2**60, 2**63, 2**64, 2**200, -(2**63), 1.5]), st.none())
SHAPE = st.lists(NUMBER, max_size=5)
ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.one_of(st.sampled_from([*storage.KINDS, "BF16", ""]), st.integers()),
        "shape": st.one_of(SHAPE, st.just("2")),
        "data_offsets": st.one_of(SHAPE, st.tuples(st.just(0), st.integers(0, 40)).map(list)),
    },
)
SHORT = st.text(max_size=3)
DEEP = st.recursive(NUMBER | SHORT, lambda inner: st.lists(inner) | st.dictionaries(SHORT, inner), max_leaves=5)
HEADER = st.dictionaries(st.sampled_from(["a", "b", "__metadata__"]), st.one_of(ENTRY, DEEP), max_size=3)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    header=st.one_of(HEADER.map(lambda header: json.dumps(header).encode()), st.binary(max_size=60)),
    data=st.binary(max_size=40),
)
def test_any_header_gives_arrays_or_a_firth_error(tmp_path: Path, header: bytes, data: bytes) -> None:
    (tmp_path / "a").write_bytes(with_header(header, data))
    tracemalloc.start()
    try:
        for array in read_arrays(tmp_path / "a").values():
            assert array.nbytes <= len(data)
            array.tolist()
    except FirthError as error:
        assert str(tmp_path) in str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 2_000_000
