"""The kernel that writes token by token, beside its NumPy twin (beside torch's net: tests/methods/test_gpt.py)."""

from __future__ import annotations

import numpy as np
import pytest

from firth import kernels
from firth.kernels.write import NOTHING, Net, TwinWriter, Writer

DIM, HEADS, HIDDEN, PLACES, WORDS = 20, 2, 37, 9, 13  # nothing is a multiple of a register


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return request.param


def make_net(activation: str, layers: int = 2) -> Net:
    rng = np.random.default_rng(3)

    def array(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.4, shape).astype(np.float32)

    wide = 2 * HIDDEN if activation == "swiglu" else HIDDEN
    shapes = (
        (DIM,), (DIM,), (3 * DIM, DIM), (3 * DIM,), (DIM, DIM), (DIM,),
        (DIM,), (DIM,), (wide, DIM), (wide,), (DIM, HIDDEN), (DIM,),
    )  # fmt: skip
    made = [[array(*shape) for shape in shapes] for _ in range(layers)]
    return Net(made, (array(DIM), array(DIM)), array(WORDS, DIM), HEADS, PLACES, activation, 1e-5)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu", "swiglu"])
@pytest.mark.parametrize("threads", [1, 3])
def test_native_equals_the_twin(isa: str, activation: str, threads: int) -> None:
    net, rng = make_net(activation), np.random.default_rng(4)
    native, twin = Writer(net, threads), TwinWriter(net, 1)
    for place in range(PLACES):
        x, angles = rng.normal(0, 1, DIM).astype(np.float32), rng.uniform(0, 6, DIM // HEADS // 2)
        rotary = np.concatenate([np.cos(angles), np.sin(angles)]).astype(np.float32)
        given = NOTHING if activation == "relu" else rotary
        np.testing.assert_allclose(native.write(x, place, given), twin.write(x, place, given), rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(native.keys, twin.keys, rtol=2e-4, atol=2e-4)
    assert np.abs(twin.values).min() < np.abs(twin.values).max()


def test_what_does_not_fit_is_refused() -> None:
    writer = Writer(make_net("gelu"), 1)
    with pytest.raises(ValueError, match="within the context"):
        writer.write(np.zeros(DIM, np.float32), PLACES)
    with pytest.raises(ValueError, match="a number a dimension"):
        writer.write(np.zeros(DIM + 1, np.float32), 0)
    with pytest.raises(ValueError, match="a number a dimension of a head"):
        writer.write(np.zeros(DIM, np.float32), 0, np.zeros(3, np.float32))
