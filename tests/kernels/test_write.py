"""The incremental decoding kernel against its NumPy twin (tests/transformers compares it with PyTorch)."""

from __future__ import annotations

import numpy as np
import pytest

from firth import kernels
from firth.kernels.write import NO_ROTARY, Net, TwinWriter, Writer

DIM, HEADS, HIDDEN, POSITIONS, VOCABULARY = 20, 2, 37, 9, 13  # no multiples of a register


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return request.param


def make_net(activation: str, layers: int = 2) -> Net:
    rng = np.random.default_rng(3)

    def array(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.4, shape).astype(np.float32)

    inner = 2 * HIDDEN if activation == "swiglu" else HIDDEN
    shapes = (
        (DIM,), (DIM,), (3 * DIM, DIM), (3 * DIM,), (DIM, DIM), (DIM,),
        (DIM,), (DIM,), (inner, DIM), (inner,), (DIM, HIDDEN), (DIM,),
    )  # fmt: skip
    layers_arrays = [[array(*shape) for shape in shapes] for _ in range(layers)]
    return Net(layers_arrays, (array(DIM), array(DIM)), array(VOCABULARY, DIM), HEADS, POSITIONS, activation, 1e-5)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu", "swiglu"])
@pytest.mark.parametrize("threads", [1, 3])
def test_native_equals_twin(isa: str, activation: str, threads: int) -> None:
    net, rng = make_net(activation), np.random.default_rng(4)
    native, twin = Writer(net, threads), TwinWriter(net, 1)
    for position in range(POSITIONS):
        x, angles = rng.normal(0, 1, DIM).astype(np.float32), rng.uniform(0, 6, DIM // HEADS // 2)
        rotary = np.concatenate([np.cos(angles), np.sin(angles)]).astype(np.float32)
        rotary = NO_ROTARY if activation == "relu" else rotary
        logits = native.write(x, position, rotary)
        np.testing.assert_allclose(logits, twin.write(x, position, rotary), rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(native.keys, twin.keys, rtol=2e-4, atol=2e-4)
    assert np.abs(twin.values).min() < np.abs(twin.values).max()


def test_invalid_inputs_raise() -> None:
    writer = Writer(make_net("gelu"), 1)
    with pytest.raises(ValueError, match="inside the context"):
        writer.write(np.zeros(DIM, np.float32), POSITIONS)
    with pytest.raises(ValueError, match="one value per dimension"):
        writer.write(np.zeros(DIM + 1, np.float32), 0)
    with pytest.raises(ValueError, match="one value per dimension of a head"):
        writer.write(np.zeros(DIM, np.float32), 0, np.zeros(3, np.float32))
