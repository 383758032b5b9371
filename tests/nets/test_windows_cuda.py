"""Windows and walks of a GPU, in Triton's interpreter, beside the NumPy twin and the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parents[1] / "kernels"

WINDOWS = """
import json, sys
from dataclasses import replace
import numpy as np, torch
sys.path.insert(0, sys.argv[1])
from test_predict import copy_of, make_task
from firth.kernels.predict_twin import TwinTrainer
from firth.nets.windows_cuda import Rules, Tiles, Windows

SEED, CENTERS = 0xF123456789ABCDEF, 24

def on_card(array):
    return torch.from_numpy(np.ascontiguousarray(array.view(np.int32) if array.dtype == np.uint32 else array))

def compared(architecture, group, dim, rate, columns, settings, first=0, dtype="float32"):
    task = make_task(dim=dim, words=500, scale=0.3, architecture=architecture, **settings)
    # Each word once: where one stands twice in a window, the CPU moves it in between.
    task = replace(task, ids=np.random.default_rng(1).permutation(500)[: len(task.ids)].astype(np.int32))
    before, other = copy_of(task), copy_of(task)
    wanted = TwinTrainer(other).racing(first, first + CENTERS, SEED, rate, rate, 1)
    rules = Rules(architecture, task.window, task.negatives, task.shrink, task.mean, task.exact)
    tiles = Tiles.fitting(rules, task.inputs.strides[0] // 4, group)
    tiles = tiles._replace(dtype=dtype, columns=columns or tiles.columns)
    tables = on_card(task.inputs), on_card(task.outputs)
    windows = Windows(rules, *tables, on_card(task.keep), on_card(task.noise), tiles)
    low = max(0, first - 60)  # a slice needn't begin where the text does
    starts = task.starts[task.starts >= low]
    prepared = windows.prepare(on_card(task.ids[low:]), on_card(starts), low, first, first + CENTERS, SEED)
    losses, pairs = windows.train(prepared, rate, rate, 3)
    def error(found, truth, old):
        return float(np.linalg.norm(found.numpy() - truth) / np.linalg.norm(truth - old))
    return {"pairs": [int(pairs.sum()), wanted.pairs], "loss": [float(losses.sum()), wanted.loss],
            "errors": [error(tables[0], other.inputs, before.inputs), error(tables[1], other.outputs, before.outputs)],
            "padding": float(tables[0][:, dim:].abs().max())}
"""

WALKS = """
import json, sys
import numpy as np, torch
sys.path.insert(0, sys.argv[1])
from test_walks import KINDS, all_starts, make_links
from firth.kernels.walks import NativeWalks
from firth.nets.walks_cuda import CudaWalks

found = []
for kind in KINDS:
    links = make_links(*kind)
    for p, q in ((1, 1), (0.25, 4), (1e3, 1e3)):
        given = dict(walk_length=6, p=p, q=q, seed=2**63 + 5)
        wanted = NativeWalks(links).walk(*all_starts(links, 2), **given)
        ids, starts = CudaWalks(links, torch.device("cpu")).walk(*all_starts(links, 2), **given)
        found.append([np.array_equal(ids, wanted.ids), np.array_equal(starts, wanted.starts), len(ids)])
print(json.dumps(found))
"""


def answer(program: str) -> Any:
    """What a program prints. In a process of its own: whether kernels are interpreted is decided when they are read."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(KERNELS)],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def compared(*cases: tuple[Any, ...]) -> list[dict[str, Any]]:
    program = f"{WINDOWS}\nprint(json.dumps([compared(*case) for case in {cases!r}]))"
    results: list[dict[str, Any]] = answer(program)
    for row in results:
        assert row["pairs"][0] == row["pairs"][1] > 12
        assert row["padding"] == 0
    return results


def test_one_window_after_the_other_is_what_the_twin_does() -> None:
    rows = compared(
        ("skipgram", 1, 20, 0.025, 0, {}),
        ("skipgram", 1, 40, 0.025, 16, {"window": 15}, 100),
        ("cbow", 1, 20, 0.025, 0, {"exact": False}),
        ("cbow", 1, 40, 0.025, 16, {"mean": False, "window": 9, "shrink": False}, 100),
    )
    for row in rows:
        assert abs(row["loss"][0] - row["loss"][1]) < 1e-4 * row["loss"][1]
        assert max(row["errors"]) < 1e-4


def test_windows_trained_together_and_in_parts_differ_by_what_they_do_not_yet_know() -> None:
    cases = [(2, {}), (2, {"window": 20, "negatives": 1, "shrink": False})]
    rows = compared(*(("skipgram", group, 20, rate, 0, more) for rate in (1e-4, 1e-2) for group, more in cases))
    small, large = rows[:2], rows[2:]
    for little, much in zip(small, large, strict=True):
        assert max(little["errors"]) < 2e-3  # all but the pairs of the first step are the same
        assert max(little["errors"]) < max(much["errors"]) < 0.1  # and the difference is one of the rate


def test_products_of_halves_are_near_enough() -> None:
    (row,) = compared(("skipgram", 1, 20, 0.025, 0, {}, 0, "float16"))
    assert max(row["errors"]) < 5e-3


def test_walks_are_those_of_the_cpu() -> None:
    walks = answer(WALKS)
    assert len(walks) == 12
    assert all(ids and starts and size > 60 for ids, starts, size in walks)
