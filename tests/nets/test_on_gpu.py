"""The kernels in Triton, in its interpreter, beside the formulas written out."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SHORT = """
import torch
from firth.nets.attention import attention_steps
from firth.nets import long_attention, short_attention

torch.manual_seed(0)
heads, dim, lengths = 3, 16, [5, 1, 0, 32, 19, 0]
starts = torch.tensor([0, *lengths]).cumsum(0).int()
qkv = torch.randn(sum(lengths), 3 * heads * dim).half()
slope = torch.randn(len(qkv), heads * dim).half()

def wanted(qkv):
    q, k, v = qkv.view(len(qkv), 3, heads, dim).unbind(1)
    found = torch.zeros(len(qkv), heads, dim)
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist()):
        if end > begin:
            part = (x[begin:end].transpose(0, 1) for x in (q, k, v))
            found[begin:end] = attention_steps(*part).output.transpose(0, 1)
    return found.flatten(1)

ours, plain = qkv.clone().requires_grad_(), qkv.float().requires_grad_()
found, truth = short_attention.attend_short(ours, starts, heads, 32), wanted(plain)
found.backward(slope)
truth.backward(slope.float())
compared = [(found, truth), (ours.grad, plain.grad)]
"""

LONG = SHORT.replace(
    "heads, dim, lengths = 3, 16, [5, 1, 0, 32, 19, 0]",
    """heads, dim, lengths = 3, 16, [5, 1, 0, 32, 33, 0, 64, 70]
long_attention.FORWARD.update(QUERIES=32, KEYS=16)
long_attention.QUERIES_BACK.update(TILE=32, STEP=16)
long_attention.KEYS_BACK.update(TILE=16, STEP=32)""",
)
LONG = LONG.replace(
    "short_attention.attend_short(ours, starts, heads, 32)", "long_attention.attend_long(ours, starts, heads, 70)[0]"
)

GELU = """
import torch
from firth.nets.gelu import bias_gelu

torch.manual_seed(0)
x, bias, compared = 2 * torch.randn(3, 47, 300).half(), torch.randn(300), []
slope = torch.randn(x.shape).half()
for tanh in (False, True):
    ours, plain = [x.clone().requires_grad_(), bias.clone().requires_grad_()], [x.float(), bias.clone()]
    plain = [part.requires_grad_() for part in plain]
    found = bias_gelu(*ours, tanh)
    truth = torch.nn.functional.gelu(plain[0] + plain[1], approximate="tanh" if tanh else "none")
    found.backward(slope)
    truth.backward(slope.float())
    compared += [(found, truth), *((a.grad, b.grad) for a, b in zip(ours, plain))]
"""

LOSS = """
import torch
from firth.nets import token_loss

token_loss.BLOCK = 16
torch.manual_seed(0)
hidden, tokens, bias = torch.randn(7, 24).half(), torch.randn(53, 24).half(), torch.randn(53)
targets, weights, compared = torch.randint(53, (7,)), torch.rand(7) + 0.5, []
for added in (None, bias):
    ours = [hidden.clone().requires_grad_(), tokens.clone().requires_grad_()]
    plain = [hidden.float().requires_grad_(), tokens.float().requires_grad_()]
    if added is not None:
        ours, plain = [*ours, bias.clone().requires_grad_()], [*plain, bias.clone().requires_grad_()]
    found, _ = token_loss.token_losses(*(ours if added is not None else [*ours, None]), targets)
    logits = torch.nn.functional.linear(*plain)
    truth = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    (found * weights).sum().backward()
    (truth * weights).sum().backward()
    compared += [(found, truth), *((a.grad, b.grad) for a, b in zip(ours, plain))]
"""

POSITIONED = """
import torch
from firth.nets import positioned_attention
from firth.nets.positions import Rotary, rotate, score_bias

torch.manual_seed(0)
positioned_attention.SETTINGS.update(QUERIES=16, KEYS=32)
heads, dim, lengths, compared = 2, 32, [5, 1, 0, 70, 33, 0], []
starts = torch.tensor([0, *lengths]).cumsum(0).int()
qkv = torch.randn(sum(lengths), 3 * heads * dim).half()
positions = torch.cat([torch.arange(length) for length in lengths])
table = torch.randn(heads, 2 * 70 - 1)

def wanted(rotary, bias, window):
    truth = torch.zeros(len(qkv), heads, dim)
    for begin, length in zip(starts[:-1].tolist(), lengths):
        q, k, v = (x.transpose(0, 1) for x in qkv[begin:begin + length].float().view(length, 3, heads, dim).unbind(1))
        if rotary is not None:
            q, k = (rotate(x, rotary(torch.arange(length)), True) for x in (q, k))
        scores = q @ k.transpose(1, 2) * 0.3
        if bias is not None:
            scores = scores + score_bias(bias, 70, 70)[:, :length, :length]
        if window:
            far = (torch.arange(length)[:, None] - torch.arange(length)).abs() > window
            scores = scores.masked_fill(far, -torch.inf)
        truth[begin:begin + length] = (torch.softmax(scores, -1) @ v).transpose(0, 1)
    return truth.flatten(1)

for rotary in (None, Rotary(dim)):
    for bias in (None, table):
        for window in (0, 9):
            rotation = None if rotary is None else rotary(positions)
            ours = positioned_attention.attend(qkv, starts, heads, 70, 0.3, rotation, bias, window)
            compared.append((ours, wanted(rotary, bias, window)))
"""

ERRORS = """
for ours, plain in compared:
    print(float((ours.float() - plain).abs().max() / plain.abs().max()), float(plain.abs().max()))
"""


OLDER = """
import contextlib, torch
torch.compiler._compile_session_context = contextlib.nullcontext  # torch before 2.13 traces the way back without it
"""

CALLS = (
    "short_attention.attend_short(",
    "long_attention.attend_long(",
    "found = bias_gelu(",
    "token_loss.token_losses(",
)
both = pytest.mark.parametrize("compiled", [False, True])


def errors(program: str, compiled: bool) -> list[float]:
    """How far the kernel's results are from the formula's, as a share of the largest; called as they are, or as the
    operators that torch's compiler knows."""
    if compiled:
        call = next(call for call in CALLS if call in program)
        said, name = call[: call.rfind(" ") + 1], call[call.rfind(" ") + 1 : -1]
        program = program.replace(call, f'{said}torch.compile({name}, backend="aot_eager", fullgraph=True)(')
        assert "torch.compile" in program
        program = OLDER + program
    # A process of its own: whether kernels are interpreted is decided when they are read.
    done = subprocess.run(
        [sys.executable, "-c", program + ERRORS],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    lines = [[float(part) for part in line.split()] for line in done.stdout.splitlines()]
    assert all(size > 0.5 for _, size in lines)
    return [error for error, _ in lines]


@both
def test_attention_of_short_sequences_forward_and_back(compiled: bool) -> None:
    deviations = errors(SHORT, compiled)
    assert len(deviations) == 2 and max(deviations) < 4e-3


@both
def test_attention_of_longer_sequences_forward_and_back(compiled: bool) -> None:
    deviations = errors(LONG, compiled)
    assert len(deviations) == 2 and max(deviations) < 4e-3


@both
def test_bias_and_gelu_forward_and_back(compiled: bool) -> None:
    deviations = errors(GELU, compiled)
    assert len(deviations) == 6 and max(deviations) < 2e-3


@both
def test_loss_of_tokens_forward_and_back(compiled: bool) -> None:
    deviations = errors(LOSS, compiled)
    assert len(deviations) == 7 and max(deviations) < 4e-3


def test_attention_with_positions_equals_the_formula():
    found = errors(POSITIONED, compiled=False)
    assert len(found) == 8 and max(found) < 3e-3
