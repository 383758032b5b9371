"""The native encoder against its NumPy twin on every instruction set, in float32 and int8; and its invariants."""

from __future__ import annotations

import numpy as np
import pytest

from firth import kernels
from firth.kernels.encoder import ACTIVATIONS, POOLS, Encoder, Shape, encode_twin

#: Sizes that fill registers and panels, and sizes that don't.
SHAPES = [Shape(2, 64, 2, 96, 60), Shape(1, 12, 4, 20, 60), Shape(2, 30, 3, 37, 60, epsilon=1e-5)]
SHAPES += [Shape(1, 512, 8, 512, 60)]  # rows a power of two apart in memory
LENGTHS = (1, 2, 3, 13, 37, 60)


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return request.param


def make_arrays(shape: Shape, seed: int = 1) -> list[np.ndarray]:
    random, d, h = np.random.default_rng(seed), shape.dim, shape.hidden
    sizes = [(50, d), (shape.positions, d), (d,), (d,), (d,)]
    sizes += [(3 * d, d), (3 * d,), (d, d), (d,), (d,), (d,), (h, d), (h,), (d, h), (d,), (d,), (d,)] * shape.layers
    return [random.normal(scale=0.3, size=size).astype(np.float32) for size in sizes]


def make_texts(lengths=LENGTHS, seed: int = 2) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(0, 50, size=length).astype(np.int32) for length in lengths]


def concatenated(texts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate(texts), np.concatenate([[0], np.cumsum([len(text) for text in texts])])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("quantized", [False, True], ids=["float32", "int8"])
def test_native_equals_twin(isa, shape, quantized):
    arrays, texts = make_arrays(shape), make_texts()
    encoder, all_layers = Encoder(arrays, shape, quantized), np.ones(shape.layers + 1, np.float32)
    for pool in POOLS:
        rows = encoder.encode(*concatenated(texts), all_layers, concat=True, pool=pool)
        for row, text in zip(rows, texts, strict=True):
            expected = encode_twin(arrays, shape, text, pool, quantized)
            error, terms = np.abs(row.reshape(expected.shape) - expected), len(text) if pool == "sum" else 1
            if quantized:  # a value between two codes may be rounded either way: one step of about 500 in a sum
                assert error.max() < 2e-2 * terms and error.mean() < 1e-3 * terms
            else:
                assert error.max() < 2e-5 * terms


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(isa, activation):
    shape = Shape(1, 16, 2, 40, 20, activation)
    arrays = [3 * array for array in make_arrays(shape)]  # large values, where activations differ most
    text = make_texts([9])[0]
    rows = Encoder(arrays, shape).encode(text, np.array([0, 9]), np.array([0, 1], np.float32))
    np.testing.assert_allclose(rows[0], encode_twin(arrays, shape, text)[1], atol=1e-4)


@pytest.mark.parametrize("quantized", [False, True], ids=["float32", "int8"])
def test_row_is_independent_of_other_texts(isa, quantized):
    """Bitwise equal alone, in any order, among few and many texts, on one thread and three."""
    shape = SHAPES[0]
    encoder, last = Encoder(make_arrays(shape), shape, quantized), np.array([0, 0, 1], np.float32)
    texts = make_texts([*LENGTHS, *range(1, 61, 3)])
    batch_size = encoder.encode(*concatenated(texts), last, threads=3)
    assert batch_size.tobytes() == encoder.encode(*concatenated(texts), last, threads=1).tobytes()
    reversed_rows = encoder.encode(*concatenated(texts[::-1]), last, threads=2)[::-1]
    assert np.array_equal(reversed_rows, batch_size)
    for row, text in zip(batch_size, texts, strict=True):
        assert np.array_equal(encoder.encode(text, np.array([0, len(text)]), last)[0], row)


def test_layers_are_weighted_or_concatenated():
    shape = SHAPES[0]
    encoder, texts = Encoder(make_arrays(shape), shape), concatenated(make_texts())
    each = encoder.encode(*texts, np.ones(3, np.float32), concat=True).reshape(-1, 3, 64)
    weighted = encoder.encode(*texts, np.array([0.5, 0, 2], np.float32))
    np.testing.assert_allclose(weighted, 0.5 * each[:, 0] + 2 * each[:, 2], atol=1e-5)
    low = encoder.encode(*texts, np.array([0, 1, 0], np.float32))
    assert np.array_equal(low, each[:, 1])


def test_int8_is_close_to_float32():
    shape = SHAPES[0]
    arrays, texts, last = make_arrays(shape), concatenated(make_texts()), np.array([0, 0, 1], np.float32)
    exact, int8 = (Encoder(arrays, shape, quantized).encode(*texts, last) for quantized in (False, True))
    assert not np.array_equal(exact, int8)
    assert np.linalg.norm(exact - int8) < 0.02 * np.linalg.norm(exact)


def test_no_texts_give_no_rows():
    shape = SHAPES[0]
    encoder = Encoder(make_arrays(shape), shape)
    assert encoder.encode(np.zeros(0, np.int32), np.zeros(1, np.int64), np.ones(3, np.float32)).shape == (0, 64)


@pytest.mark.parametrize(
    ("ids", "starts", "weights", "rule"),
    [
        ([50], [0, 1], [0, 0, 1], "columns"),
        ([-1], [0, 1], [0, 0, 1], "columns"),
        ([1], [0, 0, 1], [0, 0, 1], "from 1 token"),
        ([1] * 61, [0, 61], [0, 0, 1], "as there are positions"),
        ([1], [0, 2], [0, 0, 1], "last start"),
        ([1], [0, 1], [0, 1], "weight per layer"),
        ([1], [0, 1], [0, 0, 0], "not be zero"),
    ],
)
def test_invalid_inputs_raise(ids, starts, weights, rule):
    shape = SHAPES[0]
    encoder = Encoder(make_arrays(shape), shape)
    with pytest.raises(ValueError, match=rule):
        encoder.encode(np.array(ids, np.int32), np.array(starts), np.array(weights, np.float32))


def test_invalid_weights_raise():
    arrays = make_arrays(SHAPES[0])
    with pytest.raises(ValueError, match="missing"):
        Encoder(arrays[:-1], SHAPES[0])
    with pytest.raises(ValueError, match="wrong size"):
        Encoder([*arrays[:-1], arrays[-1][:-1]], SHAPES[0])
    with pytest.raises(ValueError, match="multiple"):
        Encoder(arrays, Shape(2, 64, 3, 96, 60))
