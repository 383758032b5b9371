"""The native encoder against its NumPy twin on every instruction set, in float32 and int8; and its invariants."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firth import kernels
from firth.kernels.encoder import ACTIVATIONS, POOLS, Encoder, Shape, Twin

#: Sizes that fill registers and panels, and sizes that don't.
SHAPES = [Shape(2, 64, 2, 96, 60), Shape(1, 12, 4, 20, 60), Shape(2, 30, 3, 37, 60, epsilon=1e-5)]
SHAPES += [Shape(1, 512, 8, 512, 60)]  # rows a power of two apart in memory
LENGTHS = (1, 2, 3, 13, 37, 60)
#: Encoders that are not BERT: changes to the shape, and to the weights (arguments of `make_weights`).
PRE_NORM = {"pre_norm": True, "final_norm": True, "first_norm": False, "embedding_norm": True}
LOCAL = {"window": 7, "local_layers": (1, 2)}
FAMILIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "electra": ({"embedding_dim": 20}, {}),
    "wide tables": ({"embedding_dim": 150}, {}),
    "distilbert": ({}, {"absent": ("segment",)}),
    "mpnet": ({}, {"absent": ("segment",), "distance_bias": True}),
    "modernbert": (
        {**PRE_NORM, **LOCAL, "gated": True, "epsilon": 1e-5},
        {"absent": ("segment", "positions", ".bias"), "rotated": 16, "local_rotated": 16},
    ),
    "nomic": (
        {"gated": True, "activation": "silu"},
        {"absent": ("positions", "value.bias", "output.bias", "gate.bias", "up.bias", "down.bias"), "rotated": 16},
    ),
    "rms": ({"pre_norm": True, "embedding_norm": False, "norm": "rms", "epsilon": 0.3}, {"rotated": 10}),
    "local with distances": ({**LOCAL, "score_scale": 0.7, "gated": True}, {"distance_bias": True, "rotated": 4}),
}
#: What must matter in a family: the same weights with another shape, or without some arrays, give other vectors.
ABLATIONS = [
    ("electra", {}, "positions"),
    ("electra", {}, "embedding_projection.bias"),
    ("mpnet", {}, "distance_bias"),
    ("modernbert", {}, "rotary."),
    ("modernbert", {}, "local_rotary."),
    ("modernbert", {"pre_norm": False}, ""),
    ("modernbert", {"first_norm": True}, ""),
    ("modernbert", {"final_norm": False}, ""),
    ("modernbert", {"gated": False}, ""),
    ("modernbert", {"window": 8}, ""),
    ("modernbert", {"window": 60}, ""),
    ("modernbert", {"local_layers": (0, 1)}, ""),
    ("modernbert", {"embedding_norm": False}, ""),
    ("nomic", {}, "rotary."),
    ("nomic", {"gated": False}, ""),
    ("nomic", {"activation": "gelu"}, ""),
    ("rms", {"norm": "layer"}, ""),
    ("rms", {"epsilon": 1e-12}, ""),
    ("rms", {"embedding_norm": True}, ""),
    ("local with distances", {"score_scale": None}, ""),
    ("local with distances", {"local_layers": ()}, ""),
]


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return str(request.param)


def make_weights(
    shape: Shape,
    absent: tuple[str, ...] = (),
    rotated: int = 0,
    local_rotated: int = 0,
    distance_bias: bool = False,
    scale: float = 0.2,
) -> dict[str, np.ndarray]:
    """Return random weights of every array that a shape can have, but for names that end with one in `absent`."""
    d, h, e = shape.dim, shape.hidden, shape.embedding_dim or shape.dim
    sizes: dict[str, tuple[int, ...]] = {"tokens": (50, e), "positions": (shape.positions, e), "segment": (e,)}
    linear = {"embedding_projection": (d, e)} if shape.embedding_dim else {}
    norms = ({"norm": e} if shape.embedding_norm else {}) | ({"final_norm": d} if shape.final_norm else {})
    for layer in range(shape.layers):
        names = {"query_key_value": (3 * d, d), "attention_output": (d, d), "up": (h, d), "down": (d, h)}
        names |= {"gate": (h, d)} if shape.gated else {}
        linear |= {f"layers.{layer}.{name}": size for name, size in names.items()}
        norms |= {f"layers.{layer}.{name}": d for name in ("attention_norm", "feed_forward_norm")}
    if not shape.first_norm:
        del norms["layers.0.attention_norm"]
    for name, size in [*linear.items(), *((name, (size,)) for name, size in norms.items())]:
        sizes |= {f"{name}.weight": size, f"{name}.bias": size[:1]}
    sizes |= {"distance_bias": (shape.heads, 2 * shape.positions - 1)} if distance_bias else {}
    random = np.random.default_rng(1)
    weights = {
        name: random.normal(scale=scale, size=size).astype(np.float32)
        for name, size in sizes.items()
        if not name.endswith(absent)
    }
    for name in norms:
        weights[f"{name}.weight"] += 1
    for name, dims, base in (("rotary", rotated, 100), ("local_rotary", local_rotated, 7)):
        if dims:
            angles = np.arange(shape.positions)[:, None] * base ** -(np.arange(dims // 2) / (dims // 2))
            weights |= {f"{name}.cos": np.cos(angles).astype("f4"), f"{name}.sin": np.sin(angles).astype("f4")}
    return weights


def family(name: str) -> tuple[Shape, dict[str, np.ndarray]]:
    changes, arrays = FAMILIES[name]
    shape = replace(Shape(3, 48, 3, 70, 60), **changes)
    return shape, make_weights(shape, **arrays)


def without(shape: Shape, weights: dict[str, np.ndarray], changes: dict[str, Any], prefix: str):
    """Return another shape and the weights it has, less those with a prefix; arrays that it needs are added."""
    other = replace(shape, **changes)
    weights = {name: array for name, array in weights.items() if not prefix or not name.startswith(prefix)}
    added = {name: array for name, array in make_weights(other).items() if "norm." in name and name.endswith(".weight")}
    return other, {**added, **weights}


def make_texts(lengths=LENGTHS, seed: int = 2) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(0, 50, size=length).astype(np.int32) for length in lengths]


def concatenated(texts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate(texts), np.concatenate([[0], np.cumsum([len(text) for text in texts])])


def assert_close(rows: np.ndarray, texts: list[np.ndarray], twin: Twin, pool: str) -> None:
    for row, text in zip(rows, texts, strict=True):
        expected = twin(text, pool)
        size = max(1, np.abs(expected).max())  # of sums over positions, and without a final norm
        error = np.abs(row.reshape(expected.shape) - expected) / size
        if twin.quantized:  # a value between two codes may be rounded either way: one step of about 500 in a sum
            assert error.max() < 2e-2 and error.mean() < 1e-3
        else:
            assert error.max() < 2e-5


@pytest.mark.parametrize("quantized", [False, True], ids=["float32", "int8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_native_equals_twin(isa, shape, quantized):
    weights, texts, all_layers = make_weights(shape), make_texts(), np.ones(shape.layers + 1, np.float32)
    encoder = Encoder(weights, shape, quantized)
    for pool in POOLS:
        rows = encoder.encode(*concatenated(texts), all_layers, concat=True, pool=pool)
        assert_close(rows, texts, Twin(weights, shape, quantized), pool)


@pytest.mark.parametrize("quantized", [False, True], ids=["float32", "int8"])
@pytest.mark.parametrize("name", FAMILIES)
def test_families_equal_twin(isa, name, quantized):
    shape, weights = family(name)
    texts, all_layers = make_texts(), np.ones(shape.layers + 1, np.float32)
    rows = Encoder(weights, shape, quantized).encode(*concatenated(texts), all_layers, concat=True)
    assert_close(rows, texts, Twin(weights, shape, quantized), "mean")


@pytest.mark.parametrize(("name", "changes", "prefix"), ABLATIONS, ids=str)
def test_every_option_matters(name, changes, prefix):
    """With the tests above: an encoder that ignored an option would not equal its twin."""
    text, (shape, weights) = make_texts([37])[0], family(name)
    other = Twin(*reversed(without(shape, weights, changes, prefix)))
    assert np.abs(Twin(weights, shape)(text)[-1] - other(text)[-1]).max() > 0.01


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(isa, activation):
    shape = Shape(1, 16, 2, 40, 20, activation)
    weights = make_weights(shape, scale=0.9)  # large values, where activations differ most
    text = make_texts([9])[0]
    rows = Encoder(weights, shape).encode(text, np.array([0, 9]), np.array([0, 1], np.float32))
    np.testing.assert_allclose(rows[0], Twin(weights, shape)(text)[1], atol=1e-4)


@pytest.mark.parametrize("quantized", [False, True], ids=["float32", "int8"])
@pytest.mark.parametrize("name", ["bert", "mpnet", "modernbert", "nomic"])
def test_row_is_independent_of_other_texts(isa, name, quantized):
    """Bitwise equal alone, in any order, among few and many texts, on one thread and three."""
    shape, weights = (SHAPES[0], make_weights(SHAPES[0])) if name == "bert" else family(name)
    encoder, last = Encoder(weights, shape, quantized), np.eye(shape.layers + 1, dtype=np.float32)[-1]
    texts = make_texts([*LENGTHS, *range(1, 61, 3)])
    batch_size = encoder.encode(*concatenated(texts), last, threads=3)
    assert batch_size.tobytes() == encoder.encode(*concatenated(texts), last, threads=1).tobytes()
    reversed_rows = encoder.encode(*concatenated(texts[::-1]), last, threads=2)[::-1]
    assert np.array_equal(reversed_rows, batch_size)
    for row, text in zip(batch_size, texts, strict=True):
        assert np.array_equal(encoder.encode(text, np.array([0, len(text)]), last)[0], row)


def test_layers_are_weighted_or_concatenated():
    shape = SHAPES[0]
    encoder, texts = Encoder(make_weights(shape), shape), concatenated(make_texts())
    each = encoder.encode(*texts, np.ones(3, np.float32), concat=True).reshape(-1, 3, 64)
    weighted = encoder.encode(*texts, np.array([0.5, 0, 2], np.float32))
    np.testing.assert_allclose(weighted, 0.5 * each[:, 0] + 2 * each[:, 2], atol=1e-5)
    low = encoder.encode(*texts, np.array([0, 1, 0], np.float32))
    assert np.array_equal(low, each[:, 1])


def test_int8_is_close_to_float32():
    shape = SHAPES[0]
    weights, texts, last = make_weights(shape, scale=0.1), concatenated(make_texts()), np.array([0, 0, 1], np.float32)
    exact, int8 = (Encoder(weights, shape, quantized).encode(*texts, last) for quantized in (False, True))
    assert not np.array_equal(exact, int8)
    assert np.linalg.norm(exact - int8) < 0.02 * np.linalg.norm(exact)


def test_no_texts_give_no_rows():
    shape = SHAPES[0]
    encoder = Encoder(make_weights(shape), shape)
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
    encoder = Encoder(make_weights(shape), shape)
    with pytest.raises(ValueError, match=rule):
        encoder.encode(np.array(ids, np.int32), np.array(starts), np.array(weights, np.float32))


def test_long_texts(isa):
    """Texts much longer than a window or a tile, with odd lengths."""
    changes, arrays = FAMILIES["modernbert"]
    shape = replace(Shape(3, 16, 1, 24, 1111), **{**changes, "window": 64, "local_layers": (1,)})
    weights, texts = make_weights(shape, **arrays), make_texts([1111, 700, 65, 64])
    rows = Encoder(weights, shape).encode(*concatenated(texts), np.ones(4, np.float32), concat=True, pool="max")
    assert_close(rows, texts, Twin(weights, shape), "max")


def test_memory_grows_with_length_and_not_its_square():
    """The scores of one head alone would be 8192 * 8192 floats, 256 MiB."""
    script = """
import resource, numpy as np
from test_encoder import *
shape = Shape(1, 16, 2, 24, 8192)
encoder, text = Encoder(make_weights(shape), shape), make_texts([8192])[0]
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
encoder.encode(text[:9], np.array([0, 9]), np.array([0, 1], np.float32))
before = peak()
encoder.encode(text, np.array([0, 8192]), np.array([0, 1], np.float32))
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 32


def test_invalid_weights_raise():
    shape, weights = SHAPES[0], make_weights(SHAPES[0])
    missing = {name: array for name, array in weights.items() if name != "layers.1.down.weight"}
    with pytest.raises(ValueError, match=r"missing: layers\.1\.down\.weight"):
        Encoder(missing, shape)
    with pytest.raises(ValueError, match=r"layers.1.down.bias has the wrong shape: expected \(64\), got \(63\)"):
        Encoder({**weights, "layers.1.down.bias": np.zeros(63, np.float32)}, shape)
    with pytest.raises(ValueError, match=r"tokens has the wrong shape: expected \(50, 64\), got \(50, 63\)"):
        Encoder({**weights, "tokens": np.zeros((50, 63), np.float32)}, shape)
    with pytest.raises(ValueError, match=r"unknown array: layers\.2\.up\.weight"):
        Encoder({**weights, "layers.2.up.weight": weights["layers.1.up.weight"]}, shape)
    with pytest.raises(ValueError, match=r"unknown array: layers\.0\.gate"):
        Encoder(make_weights(replace(shape, gated=True)), shape)
    with pytest.raises(ValueError, match=r"missing: rotary\.sin"):
        Encoder({**weights, "rotary.cos": np.ones((60, 4), np.float32)}, shape)
    with pytest.raises(ValueError, match="more dimensions than a head"):
        Encoder({**weights, "rotary.cos": np.ones((60, 17), np.float32)}, shape)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"heads": 3}, "multiple"),
        ({"layers": 0}, "at least 1"),
        ({"local_layers": (1,)}, "window"),
        ({"window": 4, "local_layers": (2,)}, "local_layers"),
        ({"activation": "tanh"}, "activation must be one of"),
        ({"norm": "batch"}, "norm must be one of"),
    ],
)
def test_invalid_shapes_raise(changes, rule):
    with pytest.raises(ValueError, match=rule):
        Encoder(make_weights(SHAPES[0]), replace(SHAPES[0], **changes))
