"""The decoding kernel against its NumPy twin, with each of its options (tests/transformers compares with PyTorch)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from firth import kernels
from firth.kernels.blocks import dequantize, quantize
from firth.kernels.decoder import CHUNK, Decoder, Layer, Linear, Net, Norm, PackedWeights
from firth.kernels.decoder_twin import TwinDecoder, product

DIM, HEADS, HEAD_DIM, HIDDEN, POSITIONS, VOCABULARY = 20, 2, 10, 37, 40, 13  # no multiples of a register
STORAGES = ["F32", "F16", "Q8_0", "Q4_0", "Q4_1"]
TOLERANCE = {"F32": 2e-4, "F16": 2e-4, "Q8_0": 2e-2, "Q4_0": 2e-2, "Q4_1": 2e-2}  # one input byte may round otherwise


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return str(request.param)


class Maker:
    """Makes random parts of a network."""

    def __init__(self, storage: str = "F32", bias: bool = True) -> None:
        self.rng, self.storage, self.bias = np.random.default_rng(3), storage, bias

    def array(self, *shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return self.rng.normal(0, 0.4, shape).astype(np.float32)

    def linear(self, out: int, columns: int, bias: bool | None = None) -> Linear:
        rows = self.array(out, columns) if self.storage == "F32" else quantize(self.array(out, columns), self.storage)
        return Linear(rows, self.storage, self.array(out) if (self.bias if bias is None else bias) else None)

    def norm(self, width: int) -> Norm:
        return Norm(1 + self.array(width), self.array(width) if self.bias else None)

    def net(self, layers: int = 2, gated: bool = False, **settings: Any) -> Net:
        """A network in the style of GPT-2 with learned positions, changed by settings."""
        shape = {"heads": HEADS, "kv_heads": HEADS, "head_dim": HEAD_DIM, "max_positions": POSITIONS} | settings
        dim, hidden = shape.pop("dim", DIM), shape.pop("hidden", HIDDEN)
        query, key = shape["heads"] * shape["head_dim"], shape["kv_heads"] * shape["head_dim"]
        parts = [
            Layer(
                query=self.linear(query, dim),
                key=self.linear(key, dim),
                value=self.linear(key, dim),
                output=self.linear(dim, query),
                up=self.linear(hidden, dim),
                down=self.linear(dim, hidden),
                gate=self.linear(hidden, dim) if gated else None,
                attention_norm=self.norm(dim),
                feed_norm=self.norm(dim),
            )
            for _ in range(layers)
        ]
        options: dict[str, Any] = {
            "activation": "gelu",
            "epsilon": 1e-5,
            "position_vectors": self.array(POSITIONS, dim),
        } | shape
        return Net(self.linear(VOCABULARY, dim, bias=False), parts, self.norm(dim), **options)

    def rotary(self, tables: int, pairs: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return self.rng.uniform(0, 1, (tables, pairs)).astype(np.float32)

    def with_layers(self, net: Net, *changes: dict[str, Any]) -> Net:
        """Change the layers in turn."""
        return replace(net, layers=[replace(*pair[:1], **pair[1]) for pair in zip(net.layers, changes, strict=True)])


def compare(net: Net, threads: int = 2, tolerance: float = 2e-4) -> None:
    """A prompt, single tokens and more tokens give the logits and states of the twin."""
    native, twin = Decoder(net, threads).start(), TwinDecoder(net)
    rng = np.random.default_rng(4)
    for count in (17, 1, 1, 6, 1, 13):
        ids = rng.integers(0, VOCABULARY, count).tolist()
        expected = twin.logits(ids)
        difference = np.abs(native.logits(ids) - expected).max()
        assert difference < tolerance * max(1.0, float(np.abs(expected).max())), (count, difference)
    assert native.length == twin.length


def differ(net: Net, other: Net) -> None:
    """The option has an effect, or a comparison would not show that it is missing."""
    ids = np.random.default_rng(5).integers(0, VOCABULARY, 30).tolist()
    assert np.abs(TwinDecoder(net).logits(ids) - TwinDecoder(other).logits(ids)).max() > 1e-2


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu", "silu"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("gated", [False, True])
def test_activations_and_gates(isa: str, activation: str, threads: int, gated: bool) -> None:
    net = Maker().net(gated=gated, activation=activation)
    differ(net, replace(net, activation="relu" if activation == "silu" else "silu"))
    compare(net, threads)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rms", [False, True])
def test_norms_and_biases(isa: str, bias: bool, rms: bool) -> None:
    net = Maker(bias=bias).net(rms=rms)
    differ(net, replace(net, rms=not rms))
    compare(net)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("pairs", [5, 3])
def test_rotary_positions(isa: str, interleaved: bool, pairs: int) -> None:
    """In part of a head's dimensions too, and with a table per layer (Gemma 3)."""
    maker = Maker()
    net = maker.net(rotary=maker.rotary(2, pairs), interleaved=interleaved, position_vectors=None)
    net = maker.with_layers(net, {"rotary": 1}, {"rotary": 0})
    differ(net, replace(net, interleaved=not interleaved))
    differ(net, maker.with_layers(net, {"rotary": 0}, {"rotary": 0}))
    differ(net, maker.with_layers(net, {"rotary": -1}, {"rotary": -1}))
    compare(net)


@pytest.mark.parametrize("heads, kv_heads, head_dim", [(6, 2, 10), (3, 1, 7), (5, 5, 4), (9, 3, 48)])
@pytest.mark.parametrize("half_cache", [False, True])
def test_grouped_queries_and_any_head_dim(isa: str, heads: int, kv_heads: int, head_dim: int, half_cache: bool) -> None:
    net = Maker().net(heads=heads, kv_heads=kv_heads, head_dim=head_dim, half_cache=half_cache)
    compare(net, 2, 5e-3 if half_cache else 2e-4)  # a number may round to the neighboring half


@pytest.mark.parametrize("windows", [(1, 0), (3, 3), (16, 17), (0, 25)])
def test_sliding_windows(isa: str, windows: tuple[int, int]) -> None:
    maker = Maker()
    net = maker.with_layers(maker.net(), *({"window": window} for window in windows))
    differ(net, maker.with_layers(net, {"window": 0}, {"window": 0}))
    for threads in (1, 3):
        compare(net, threads)


def test_norms_of_queries_and_keys(isa: str) -> None:
    maker = Maker(bias=False)
    net = maker.net(rms=True)
    norms = {"query_norm": maker.norm(HEAD_DIM), "key_norm": maker.norm(HEAD_DIM)}
    differ(net, maker.with_layers(net, norms, norms))
    compare(maker.with_layers(net, norms, norms))


def test_norms_after_sublayers(isa: str) -> None:
    maker = Maker()
    net = maker.net()
    norms = {"attention_post_norm": maker.norm(DIM), "feed_post_norm": maker.norm(DIM)}
    differ(net, maker.with_layers(net, norms, norms))
    compare(maker.with_layers(net, norms, norms))
    only_after = {**norms, "attention_norm": None, "feed_norm": None}  # OLMo 2
    compare(maker.with_layers(net, only_after, only_after))


@pytest.mark.parametrize(
    "option, value",
    [("score_cap", 0.7), ("logit_cap", 1.5), ("attention_scale", 0.9), ("embedding_scale", 3.0)],
)
def test_caps_and_scales(isa: str, option: str, value: float) -> None:
    net = Maker().net()
    change: dict[str, Any] = {option: value}
    differ(net, replace(net, **change))
    compare(replace(net, **change))


def test_separate_outputs(isa: str) -> None:
    maker = Maker()
    net = replace(maker.net(), outputs=maker.linear(VOCABULARY + 4, DIM))
    compare(net)
    assert Decoder(net, 1).start().logits([1]).shape == (VOCABULARY + 4,)


@pytest.mark.parametrize("storage", STORAGES)
def test_storages(isa: str, storage: str) -> None:
    maker = Maker(storage)
    sizes: dict[str, Any] = {"dim": 64, "hidden": 96, "head_dim": 32, "heads": 4, "kv_heads": 2}
    net = maker.net(gated=True, activation="silu", rms=True, **sizes)
    compare(net, 1, TOLERANCE[storage])
    compare(net, 3, TOLERANCE[storage])


def test_storages_mixed_in_a_layer(isa: str) -> None:
    maker, sizes = Maker("Q4_1"), {"dim": 64, "hidden": 96, "head_dim": 32}
    net = maker.net(gated=True, **sizes)
    maker.storage = "F16"
    changes = {"key": maker.linear(64, 64), "down": maker.linear(64, 96), "gate": maker.linear(96, 64)}
    compare(maker.with_layers(net, changes, {"output": maker.linear(64, 64)}), 2, 2e-2)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("rows", [1, 16, 37, 100])
@pytest.mark.parametrize("tokens", [1, 3, 29])
def test_products(isa: str, storage: str, rows: int, tokens: int) -> None:
    """One product is equal to the twin's up to the order of its sums."""
    maker = Maker(storage)
    linear, x = maker.linear(rows, 96), maker.array(tokens, 96)
    x[0, :32] = 0  # a block without a scale
    out, packed = np.empty((tokens, rows), np.float32), PackedWeights([linear])
    packed[linear].multiply(x, out, 2)
    np.testing.assert_allclose(out, product(linear, x), atol=2e-5)


@pytest.mark.parametrize("storage", STORAGES[2:])
def test_extreme_codes(isa: str, storage: str) -> None:
    """All codes at their ends: sums of products must not saturate, and a file may have codes that ggml never writes."""
    rows = np.full((16, {"Q8_0": 34, "Q4_0": 18, "Q4_1": 20}[storage]), 0xFF, np.uint8)
    rows[::2] = 0x80 if storage == "Q8_0" else 0
    rows[:, :2] = np.array([1], "<f2").view(np.uint8)
    if storage == "Q4_1":
        rows[:, 2:4] = np.array([-3], "<f2").view(np.uint8)
    for sign in (1, -1):
        x = np.full((1, 32), sign * 127, np.float32)
        linear, out = Linear(rows, storage), np.empty((1, 16), np.float32)
        packed = PackedWeights([linear])
        packed[linear].multiply(x, out, 1)
        np.testing.assert_array_equal(out, x @ dequantize(rows, storage).T)


def test_long_prompts_are_split(isa: str) -> None:
    """The states do not depend on how a prompt is divided into calls."""
    net = replace(Maker().net(position_vectors=None), max_positions=2 * CHUNK + 30)
    ids = np.random.default_rng(6).integers(0, VOCABULARY, 2 * CHUNK + 9, dtype=np.int32)
    whole, parts = Decoder(net, 2).start(), Decoder(net, 2).start()
    states = whole.states(ids)
    pieces = [parts.states(part) for part in np.split(ids, [1, 2, 200, 300])]
    np.testing.assert_allclose(np.concatenate(pieces), states, rtol=2e-4, atol=2e-4)
    assert whole.length == len(ids)


@pytest.mark.parametrize("storage", ["F32", "Q8_0"])
def test_nan_is_not_lost(isa: str, storage: str) -> None:
    """Rounding to bytes must not turn NaN into a number."""
    net = Maker(storage).net(dim=64, hidden=96, head_dim=32)
    broken = np.array(net.norm.weight)
    broken[5] = np.nan
    assert np.isnan(Decoder(replace(net, norm=Norm(broken)), 1).start().logits([1])).all()


def test_invalid_inputs_raise() -> None:
    maker = Maker()
    net = maker.net()
    state = Decoder(net, 1).start()
    with pytest.raises(ValueError, match="inside the context"):
        state.logits([1] * (POSITIONS + 1))
    with pytest.raises(ValueError, match="in the vocabulary"):
        state.logits([VOCABULARY])
    with pytest.raises(ValueError, match="in the vocabulary"):
        state.logits([-1])
    with pytest.raises(ValueError, match="rotary table"):
        Decoder(maker.with_layers(net, {"rotary": 0}, {}), 1)
    with pytest.raises(ValueError, match="wrong size"):
        Decoder(maker.with_layers(net, {"up": maker.linear(HIDDEN, DIM + 1)}, {}), 1)
    with pytest.raises(ValueError, match="number of bytes"):
        PackedWeights([Linear(np.zeros((2, 35), np.uint8), "Q8_0")])
    with pytest.raises(ValueError, match="storage must be"):
        PackedWeights([Linear(np.zeros((2, 8), np.uint8), "BF16")])
