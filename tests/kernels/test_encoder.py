"""The encoder's kernel against NumPy on every instruction set, in floats and in bytes; and what holds for any texts."""

from __future__ import annotations

import numpy as np
import pytest

from firth import kernels
from firth.kernels.encoder import ACTIVATIONS, POOLS, Encoder, Shape, encode_twin

#: Sizes that fill vectors and panels, and sizes that don't; one, two and many tokens.
SHAPES = [Shape(2, 64, 2, 96, 60), Shape(1, 12, 4, 20, 60), Shape(2, 30, 3, 37, 60, epsilon=1e-5)]
SHAPES += [Shape(1, 512, 8, 512, 60)]  # rows a power of two apart
LENGTHS = (1, 2, 3, 13, 37, 60)


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return request.param


def some_arrays(shape: Shape, seed: int = 1) -> list[np.ndarray]:
    random, d, h = np.random.default_rng(seed), shape.dim, shape.hidden
    sizes = [(50, d), (shape.places, d), (d,), (d,), (d,)]
    sizes += [(3 * d, d), (3 * d,), (d, d), (d,), (d,), (d,), (h, d), (h,), (d, h), (d,), (d,), (d,)] * shape.layers
    return [random.normal(scale=0.3, size=size).astype(np.float32) for size in sizes]


def some_texts(lengths=LENGTHS, seed: int = 2) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(0, 50, size=length).astype(np.int32) for length in lengths]


def together(texts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate(texts), np.concatenate([[0], np.cumsum([len(text) for text in texts])])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bytes", [False, True], ids=["floats", "bytes"])
def test_native_equals_twin(isa, shape, bytes):
    arrays, texts = some_arrays(shape), some_texts()
    encoder, every = Encoder(arrays, shape, bytes), np.ones(shape.layers + 1, np.float32)
    for pool in POOLS:
        found = encoder.encode(*together(texts), every, concat=True, pool=pool)
        for row, text in zip(found, texts, strict=True):
            right = encode_twin(arrays, shape, text, pool, bytes)
            away, added = np.abs(row.reshape(right.shape) - right), len(text) if pool == "sum" else 1
            if bytes:  # a number that falls between two bytes may be rounded either way: one step of some 500 in a sum
                assert away.max() < 2e-2 * added and away.mean() < 1e-3 * added
            else:
                assert away.max() < 2e-5 * added


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(isa, activation):
    shape = Shape(1, 16, 2, 40, 20, activation)
    arrays = [3 * array for array in some_arrays(shape)]  # far out, where they differ most
    text = some_texts([9])[0]
    found = Encoder(arrays, shape).encode(text, np.array([0, 9]), np.array([0, 1], np.float32))
    np.testing.assert_allclose(found[0], encode_twin(arrays, shape, text)[1], atol=1e-4)


@pytest.mark.parametrize("bytes", [False, True], ids=["floats", "bytes"])
def test_a_text_does_not_depend_on_its_neighbours(isa, bytes):
    """To the last bit: alone, in any order, among few and many, on one thread and three."""
    shape = SHAPES[0]
    encoder, last = Encoder(some_arrays(shape), shape, bytes), np.array([0, 0, 1], np.float32)
    texts = some_texts([*LENGTHS, *range(1, 61, 3)])
    together_rows = encoder.encode(*together(texts), last, threads=3)
    assert together_rows.tobytes() == encoder.encode(*together(texts), last, threads=1).tobytes()
    turned = encoder.encode(*together(texts[::-1]), last, threads=2)[::-1]
    assert np.array_equal(turned, together_rows)
    for row, text in zip(together_rows, texts, strict=True):
        assert np.array_equal(encoder.encode(text, np.array([0, len(text)]), last)[0], row)


def test_layers_are_weighed_or_stand_side_by_side():
    shape = SHAPES[0]
    encoder, texts = Encoder(some_arrays(shape), shape), together(some_texts())
    each = encoder.encode(*texts, np.ones(3, np.float32), concat=True).reshape(-1, 3, 64)
    weighed = encoder.encode(*texts, np.array([0.5, 0, 2], np.float32))
    np.testing.assert_allclose(weighed, 0.5 * each[:, 0] + 2 * each[:, 2], atol=1e-5)
    low = encoder.encode(*texts, np.array([0, 1, 0], np.float32))
    assert np.array_equal(low, each[:, 1])


def test_bytes_are_near_floats():
    shape = SHAPES[0]
    arrays, texts, last = some_arrays(shape), together(some_texts()), np.array([0, 0, 1], np.float32)
    floats, bytes = (Encoder(arrays, shape, each).encode(*texts, last) for each in (False, True))
    assert not np.array_equal(floats, bytes)
    assert np.linalg.norm(floats - bytes) < 0.02 * np.linalg.norm(floats)


def test_nothing_to_encode():
    shape = SHAPES[0]
    encoder = Encoder(some_arrays(shape), shape)
    assert encoder.encode(np.zeros(0, np.int32), np.zeros(1, np.int64), np.ones(3, np.float32)).shape == (0, 64)


@pytest.mark.parametrize(
    ("ids", "starts", "weights", "rule"),
    [
        ([50], [0, 1], [0, 0, 1], "columns"),
        ([-1], [0, 1], [0, 0, 1], "columns"),
        ([1], [0, 0, 1], [0, 0, 1], "token"),
        ([1] * 61, [0, 61], [0, 0, 1], "places"),
        ([1], [0, 2], [0, 0, 1], "last start"),
        ([1], [0, 1], [0, 1], "weight a layer"),
        ([1], [0, 1], [0, 0, 0], "asked for"),
    ],
)
def test_what_does_not_fit_is_refused(ids, starts, weights, rule):
    shape = SHAPES[0]
    encoder = Encoder(some_arrays(shape), shape)
    with pytest.raises(ValueError, match=rule):
        encoder.encode(np.array(ids, np.int32), np.array(starts), np.array(weights, np.float32))


def test_arrays_that_do_not_fit_are_refused():
    arrays = some_arrays(SHAPES[0])
    with pytest.raises(ValueError, match="missing"):
        Encoder(arrays[:-1], SHAPES[0])
    with pytest.raises(ValueError, match="another size"):
        Encoder([*arrays[:-1], arrays[-1][:-1]], SHAPES[0])
    with pytest.raises(ValueError, match="multiple"):
        Encoder(arrays, Shape(2, 64, 3, 96, 60))
