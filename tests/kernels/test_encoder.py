"""The native encoder against its NumPy twin on every instruction set, in float32 and int8; and its invariants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from firth import kernels
from firth.kernels.encoder import ACTIVATIONS, POOLS, Encoder, Shape, encode_twin

#: Sizes that fill registers and panels, and sizes that don't.
SHAPES = [Shape(2, 64, 2, 96, 60), Shape(1, 12, 4, 20, 60), Shape(2, 30, 3, 37, 60, epsilon=1e-5)]
SHAPES += [Shape(1, 512, 8, 512, 60)]  # rows a power of two apart in memory
LENGTHS = (1, 2, 3, 13, 37, 60)
#: Each variant of a published family by itself, then together; "bare" has no biases, no positions and no segment.
LOCAL = Shape(3, 64, 2, 80, 200, pre_norm=True, rotary_dim=32, window=9, local_layers=(0, 2))
VARIANTS = {
    "score bias": (Shape(2, 64, 4, 96, 60), ("score_bias",)),
    "score bias, odd sizes": (Shape(2, 30, 3, 37, 60), ("score_bias", "bare")),
    "scaled scores": (Shape(1, 64, 2, 96, 60, score_scale=1.0), ()),
    "projected": (Shape(2, 64, 2, 96, 60, embedding_dim=20), ()),
    "projected from wide": (Shape(1, 20, 2, 96, 60, embedding_dim=70), ("bare",)),
    "pre-norm": (Shape(2, 64, 2, 96, 60, pre_norm=True), ()),
    "pre-norm, first without": (Shape(2, 30, 3, 37, 60, pre_norm=True), ("no first norm", "bare")),
    "pre-norm, embeddings without": (Shape(2, 64, 2, 96, 60, pre_norm=True), ("no embedding norm",)),
    "rotary": (Shape(2, 128, 2, 96, 60, rotary_dim=64), ()),
    "rotary, part of a head": (Shape(2, 30, 3, 37, 60, rotary_dim=6), ("bare",)),
    "gated": (Shape(2, 64, 2, 96, 60, gated=True), ()),
    "gated, odd sizes": (Shape(2, 30, 3, 37, 60, "silu", gated=True), ("bare",)),
    "gated, half a panel": (Shape(1, 64, 2, 48, 60, "gelu_tanh", gated=True), ()),
    "local": (LOCAL, ()),
    "local, window 1": (replace(LOCAL, window=1), ()),
    "local, wide window": (replace(LOCAL, window=70, local_layers=(1,)), ("score_bias",)),
    "local, longer than texts": (replace(LOCAL, window=500), ()),
    "NomicBERT": (Shape(2, 96, 3, 80, 60, "silu", gated=True, rotary_dim=32), ("bare",)),
    "ModernBERT": (replace(LOCAL, gated=True, window=17, epsilon=1e-5), ("no first norm", "bare")),
}


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return request.param


def weight_shapes(shape: Shape, parts: tuple[str, ...] = ()) -> dict[str, tuple[int, ...]]:
    """Return the shape of every array by its name."""
    d, h, width = shape.dim, shape.hidden, shape.embedding_dim or shape.dim
    shapes = {"input.tokens.weight": (50, width), "input.positions.weight": (shape.max_positions, width)}
    shapes |= {"input.segment": (width,), "input.norm.weight": (width,), "input.norm.bias": (width,)}
    linears = {"input.projection": (d, width)} if width != d else {}
    norms = ["stack.norm"] if shape.pre_norm else []
    for number in range(shape.layers):
        prefix = f"stack.blocks.{number}."
        linears |= {f"{prefix}attention.query_key_value": (3 * d, d), f"{prefix}attention.output": (d, d)}
        linears |= {f"{prefix}feed.wide": (2 * h if shape.gated else h, d), f"{prefix}feed.back": (d, h)}
        norms += [f"{prefix}attention_norm", f"{prefix}feed_norm"]
    shapes |= {f"{name}.weight": size for name, size in linears.items()}
    shapes |= {f"{name}.bias": size[:1] for name, size in linears.items()}
    shapes |= {f"{name}.{part}": (d,) for name in norms for part in ("weight", "bias")}
    if "score_bias" in parts:
        shapes["score_bias"] = (shape.heads, 2 * shape.max_positions - 1)
    missing = [".bias", "input.positions.weight", "input.segment"] if "bare" in parts else []
    missing += ["stack.blocks.0.attention_norm"] if "no first norm" in parts else []
    missing += ["input.norm"] if "no embedding norm" in parts else []
    return {name: size for name, size in shapes.items() if not any(part in name for part in missing)}


def make_arrays(shape: Shape, parts: tuple[str, ...] = (), seed: int = 1) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    arrays = {
        name: random.normal(scale=0.3, size=size).astype(np.float32)
        for name, size in weight_shapes(shape, parts).items()
    }
    if shape.rotary_dim:
        local = set(shape.local_layers)
        used = {"rotary_local": bool(local), "rotary": len(local) < shape.layers}
        for theta, table in ((30.0, "rotary"), (300.0, "rotary_local")):
            if used[table]:
                powers = theta ** -(np.arange(shape.rotary_dim // 2) / shape.rotary_dim * 2)
                angles = np.arange(shape.max_positions)[:, None] * powers
                arrays |= {f"{table}.cos": np.cos(angles), f"{table}.sin": np.sin(angles)}
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def make_texts(lengths=LENGTHS, seed: int = 2) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(0, 50, size=length).astype(np.int32) for length in lengths]


def concatenated(texts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate(texts), np.concatenate([[0], np.cumsum([len(text) for text in texts])])


def check_against_twin(
    arrays: Mapping[str, np.ndarray], shape: Shape, quantized: bool, texts: list[np.ndarray], pools: tuple[str, ...]
) -> None:
    encoder, all_layers = Encoder(arrays, shape, quantized), np.ones(shape.layers + 1, np.float32)
    for pool in pools:
        rows = encoder.encode(*concatenated(texts), all_layers, concat=True, pool=pool)
        for row, text in zip(rows, texts, strict=True):
            expected = encode_twin(arrays, shape, text, pool, quantized)
            error, terms = np.abs(row.reshape(expected.shape) - expected), len(text) if pool == "sum" else 1
            scale = max(1.0, np.abs(expected).max())  # without a norm after them, layers grow
            if quantized:  # a value between two codes may be rounded either way: one step of about 500 in a sum
                assert error.max() < 2e-2 * terms * scale and error.mean() < 1e-3 * terms * scale
            else:
                assert error.max() < 2e-5 * terms * scale


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("quantized", [False, True], ids=["float32", "int8"])
def test_native_equals_twin(isa, shape, quantized):
    check_against_twin(make_arrays(shape), shape, quantized, make_texts(), POOLS)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("quantized", [False, True], ids=["float32", "int8"])
def test_variants_equal_twin(isa, variant, quantized):
    shape, parts = VARIANTS[variant]
    lengths = [*LENGTHS, 100, 200] if shape.max_positions == 200 else LENGTHS
    check_against_twin(make_arrays(shape, parts), shape, quantized, make_texts(lengths), ("mean", "max"))


@pytest.mark.parametrize(
    ("variant", "weakened", "names"),
    [
        ("score bias", {}, ["score_bias"]),
        ("rotary", {"rotary_dim": 0}, ["rotary.cos", "rotary.sin"]),
        ("gated", {"activation": "relu"}, []),
        ("local", {"window": 10}, []),
        ("scaled scores", {"score_scale": 0.0}, []),
        ("pre-norm", {}, ["stack.blocks.0.attention_norm.weight", "stack.blocks.0.attention_norm.bias"]),
        ("projected", {}, ["input.projection.bias"]),
    ],
)
def test_every_part_matters(variant, weakened, names):
    """Leaving a part out moves the vectors far beyond the tolerance of the tests above."""
    shape, parts = VARIANTS[variant]
    arrays, texts = make_arrays(shape, parts), make_texts()
    last = np.eye(shape.layers + 1, dtype=np.float32)[-1]
    whole = Encoder(arrays, shape).encode(*concatenated(texts), last)
    rest = {name: array for name, array in arrays.items() if name not in names}
    without = Encoder(rest, replace(shape, **weakened)).encode(*concatenated(texts), last)
    assert np.abs(whole - without).max() > 1e-2


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(isa, activation):
    shape = Shape(1, 16, 2, 40, 20, activation)
    arrays = {name: 3 * array for name, array in make_arrays(shape).items()}  # large values, where they differ most
    text = make_texts([9])[0]
    rows = Encoder(arrays, shape).encode(text, np.array([0, 9]), np.array([0, 1], np.float32))
    np.testing.assert_allclose(rows[0], encode_twin(arrays, shape, text)[1], atol=1e-4)


@pytest.mark.parametrize("quantized", [False, True], ids=["float32", "int8"])
@pytest.mark.parametrize("variant", ["bert", "score bias", "NomicBERT", "ModernBERT"])
def test_row_is_independent_of_other_texts(isa, quantized, variant):
    """Bitwise equal alone, in any order, among few and many texts, on one thread and three."""
    shape, parts = VARIANTS.get(variant, (SHAPES[0], ()))
    encoder = Encoder(make_arrays(shape, parts), shape, quantized)
    last = np.eye(shape.layers + 1, dtype=np.float32)[-1]
    texts = make_texts([*LENGTHS, *range(1, 61, 3)])
    rows = encoder.encode(*concatenated(texts), last, threads=3)
    assert rows.tobytes() == encoder.encode(*concatenated(texts), last, threads=1).tobytes()
    reversed_rows = encoder.encode(*concatenated(texts[::-1]), last, threads=2)[::-1]
    assert np.array_equal(reversed_rows, rows)
    for row, text in zip(rows, texts, strict=True):
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


@pytest.mark.parametrize(
    ("name", "change", "rule"),
    [
        ("stack.blocks.1.feed.back.weight", None, "feed.back.weight is missing"),
        ("stack.blocks.1.feed_norm.weight", None, "feed_norm.weight is missing"),
        ("stack.blocks.1.attention_norm.weight", None, "attention_norm.weight is missing"),
        ("input.tokens.weight", None, "input.tokens.weight is missing"),
        ("stack.blocks.0.attention.output.bias", np.zeros(63), "output.bias must have 64 numbers; got 63"),
        ("input.positions.weight", np.zeros((59, 64)), "positions.weight must have 3840 numbers; got 3776"),
        ("score_bias", np.zeros((2, 60)), "score_bias must have 238 numbers; got 120"),
        ("stack.norm.weight", np.zeros(64), "stack.norm.weight is not a weight"),
        ("rotary.cos", np.zeros((60, 16)), "rotary.cos is not a weight"),
    ],
)
def test_invalid_weights_raise(name, change, rule):
    arrays = make_arrays(SHAPES[0])
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change
    with pytest.raises(ValueError, match=rule):
        Encoder(arrays, SHAPES[0])


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"heads": 3}, "multiple"),
        ({"layers": 0}, "at least 1"),
        ({"rotary_dim": 3}, "rotary_dim"),
        ({"rotary_dim": 34}, "rotary_dim"),
        ({"rotary_dim": 8}, "rotary.cos is missing"),
        ({"local_layers": (0,)}, "window"),
        ({"window": 3, "local_layers": (2,)}, "below layers"),
        ({"pre_norm": True}, "stack.norm.weight is missing"),
        ({"embedding_dim": 32}, "positions.weight must have 1920 numbers"),
    ],
)
def test_invalid_shapes_raise(changes, rule):
    with pytest.raises(ValueError, match=rule):
        Encoder(make_arrays(SHAPES[0]), replace(SHAPES[0], **changes))
