"""All kernels of a GPU are compiled for one that is not here: what the interpreter bears, a compiler may refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

COMPILED = """
import json
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from firth.nets import gelu, long_attention, positioned_attention, short_attention, token_loss, walks_cuda, windows_cuda

found = {}

def make(kernel, kinds, num_warps=4, num_stages=1, maxnreg=None, **constants):
    kinds, names = kinds.split(), kernel.arg_names
    signature = dict(zip(names, kinds + ["constexpr"] * (len(names) - len(kinds)), strict=True))
    aligned = {(place,): [["tt.divisibility", 16]] for place, kind in enumerate(kinds) if kind[0] == "*"}
    source = ASTSource(kernel, signature, {(names.index(name),): x for name, x in constants.items()}, aligned)
    options = {"num_warps": num_warps, "num_stages": num_stages, "maxnreg": maxnreg}
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm
    products = made["ptx"].count("mma.sync") + made["ptx"].count("wgmma.mma_async")
    found[kernel.__module__.split(".")[-1] + "." + kernel.__name__] = [products, len(made["cubin"])]

half = triton.language.float16
text = "*fp32 *fp32 *i32 *i32 *i32 *fp32 *i64 i32 i32 i32 i32 fp32 fp32"
tile = dict(STRIDE=128, CONTEXTS=16, PARTS=1, TARGETS=16, COLUMNS=128, CHUNKS=1, MOVE=True)
make(windows_cuda.keep_kernel, "*i32 *i32 *i64 *i1 i32 i32", BLOCK=1024)
make(windows_cuda.prepare_kernel, "*i32 *i64 *i32 *i64 *i32 *i64 *i32 *i32 *i32 i32 i32 i32 i32 i32",
     SHRINK=True, BLOCK=1024)
make(windows_cuda.skipgram_kernel, text, 2, GROUP=2, DTYPE=half, **tile)
make(windows_cuda.cbow_kernel, text, 1, MEAN=True, EXACT=False, **tile)
make(walks_cuda.walk_kernel, "*i64 *i32 *fp32 *i32 *fp64 *fp64 *i32 *i32 *i64 *i32 i32 i32 i32",
     SECOND=True, DIRECTED=False, WEIGHTED=True, BLOCK=128)
make(gelu.forward_kernel, "*bf16 *fp32 *bf16 i32 i32", TANH=True, ROWS=gelu.ROWS, COLUMNS=gelu.COLUMNS)
make(gelu.backward_kernel, "*bf16 *fp32 *bf16 *bf16 *fp32 i32 i32",
     TANH=False, ROWS=gelu.ROWS, COLUMNS=gelu.COLUMNS, CHUNK=gelu.CHUNK)
make(token_loss.gradient_kernel, "*bf16 *fp32 *i64 *fp32 i32", BIAS=True, BLOCK=token_loss.BLOCK)
sides = dict(HEADS=12, DIM=64)
make(short_attention.forward_kernel, "*bf16 *i32 *bf16 fp32", 8, **sides, TILE=128)
make(short_attention.backward_kernel, "*bf16 *i32 *bf16 *bf16 fp32", 8, 2, **sides, EACH=6, TILE=128)
make(long_attention.forward_kernel, "*bf16 *i32 *bf16 *fp32 i32 fp32", **sides, **long_attention.FORWARD)
make(long_attention.queries_kernel, "*bf16 *i32 *bf16 *fp32 *bf16 *fp32 *bf16 i32 fp32",
     **sides, **long_attention.QUERIES_BACK)
make(long_attention.keys_kernel, "*bf16 *i32 *fp32 *bf16 *fp32 *bf16 i32 fp32", **sides, **long_attention.KEYS_BACK)
make(positioned_attention.forward_kernel, "*bf16 *i32 *fp32 *fp32 *fp32 *bf16 fp32 i32 i32", **sides,
     ROTARY=True, BIAS=True, WINDOW=True, **positioned_attention.SETTINGS)
print(json.dumps(found))
"""


def test_every_kernel_compiles_for_a_card_that_is_not_here(tmp_path: Path) -> None:
    # A process of its own, without the interpreter and with nothing compiled before.
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    result = subprocess.run(
        [sys.executable, "-c", COMPILED],
        env={**environment, "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not result.returncode, result.stderr
    compiled = json.loads(result.stdout)
    assert len(compiled) == 14
    assert all(size > 1000 for _, size in compiled.values())
    kernels = {
        "short": ("forward", "backward"),
        "long": ("forward", "queries", "keys"),
        "positioned": ("forward",),
    }
    attending = [f"{part}_attention.{kernel}_kernel" for part in kernels for kernel in kernels[part]]
    for name in ("windows_cuda.skipgram_kernel", *attending):
        assert compiled[name][0] > 0, f"{name} does not use the tensor cores"
