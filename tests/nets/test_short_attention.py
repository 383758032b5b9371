"""The kernel for short packed sequences, in Triton's interpreter, beside the formula written out."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import torch
from firth.nets.attention import attention_steps
from firth.nets.short_attention import attend_short

torch.manual_seed(0)
heads, dim, lengths = 3, 16, [5, 1, 0, 16, 9, 0]
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
found, truth = attend_short(ours, starts, heads, 16), wanted(plain)
found.backward(slope)
truth.backward(slope.float())
print(float((found - truth).abs().max()), float((ours.grad - plain.grad).abs().max()))
print(float(truth.abs().max()), float(plain.grad.abs().max()))
"""


def test_forward_and_back_equal_the_formula() -> None:
    # A process of its own: whether kernels are interpreted is decided when they are read.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    (forward, back), (size, slope) = ([float(part) for part in line.split()] for line in done.stdout.splitlines())
    assert forward < 2e-3 * size
    assert back < 4e-3 * slope
    assert size > 1 and slope > 1
