"""Training windows on a GPU: from text to a saved model in Triton's interpreter, and what is refused without a card."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firth
from firth.training import gpu_choice
from firth.training.gpu_choice import MIN_UNITS_PER_CORE, on_gpu

TRAINED = """
import json, sys
from pathlib import Path
import numpy as np
import firth
from firth.core.report import Silence
from firth.kernels import predict as kernel
from firth.training import gpu_tables as cuda
from firth.words import window_training_gpu as words_cuda

folder = Path(sys.argv[1])
kernel.BLOCK = words_cuda.SLICE = 40  # tokens: two slices an epoch
cuda.ROWS_PER_PROGRAM = 16
rng = np.random.default_rng(0)
docs = [" ".join(f"w{word}" for word in rng.integers(0, 40, 10)) for _ in range(9)]
edges = [(str(a), str(b)) for a, b in rng.integers(0, 12, (30, 2))]
shape = dict(dim=20, window=2, negatives=2)
text = dict(min_count=1, subsample=0, **shape)
notes = []

class PowerCut(Silence):
    def step(self, done, **figures):
        if figures.get("loss") and done > 90:  # within the second epoch
            raise KeyboardInterrupt

class Notes(Silence):
    def note(self, text, code="note"):
        notes.append(text)

method = firth.SkipGram(epochs=2, held_out=0.2, **text)
whole = method.fit(docs, firth.Run(device="cuda"))
try:
    method.fit(docs, firth.Run(device="cuda", checkpoint_folder=folder / "unfinished", report=PowerCut()))
except KeyboardInterrupt:
    resumed = method.fit(docs, firth.Run(device="cuda", checkpoint_folder=folder / "unfinished", report=Notes()))
same = [np.array_equal(whole.vectors.matrix, resumed.vectors.matrix), np.array_equal(whole.outputs, resumed.outputs)]
whole.save(folder / "gpu")
cpu = method.fit(docs, firth.Run(device="cpu", threads=1))
cpu.save(folder / "cpu")
both = [[whole.training, cpu.training]]
shape |= {"share_negatives": True}  # which is the rule there, and here for large graphs
for other, data in ((firth.CBOW(epochs=1, **text), docs),
                    (firth.DeepWalk(walks_per_node=1, walk_length=5, **shape), edges),
                    (firth.Node2Vec(walks_per_node=1, walk_length=5, q=2.0, **shape), edges)):
    both.append([other.fit(data, firth.Run(device=device, threads=1)).training for device in ("cuda", "cpu")])
try:
    firth.SkipGram(epochs=1, learning_rate=100, **text).fit(docs, firth.Run(device="cuda"))
except firth.FirthError as error:
    trouble = str(error)
print(json.dumps({"same": same, "notes": notes, "both": both, "trouble": trouble}, default=str))
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder of models, and what a process with interpreted kernels told."""
    folder = tmp_path_factory.mktemp("cuda")
    done = subprocess.run(
        [sys.executable, "-c", TRAINED, str(folder)],
        env={**os.environ, "TRITON_INTERPRET": "1", "FIRTH_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    return folder, json.loads(done.stdout)


def test_an_interrupted_run_goes_on_to_the_same_end(trained: tuple[Path, dict[str, Any]]) -> None:
    _, told = trained
    assert told["same"] == [True, True]  # the interpreter's programs take turns, so there is no chance in it
    assert any("Going on from a checkpoint at 7" in note for note in told["notes"])


def test_the_same_pairs_and_about_the_same_loss_as_on_the_cpu(trained: tuple[Path, dict[str, Any]]) -> None:
    _, told = trained
    assert len(told["both"]) == 4
    for gpu, cpu in told["both"]:
        assert gpu["kernel_seconds"] > 0 and "kernel_seconds" not in cpu
        assert gpu["pairs_per_second"] > 0 and gpu["bytes_per_second"] > 0
        for mine, theirs in zip(gpu["epochs"], cpu["epochs"], strict=True):
            assert mine["pairs"] == theirs["pairs"] > 20
            assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-3)
            assert mine.keys() == theirs.keys()
    words, nodes = told["both"][0][0], told["both"][2][0]
    assert [epoch["held_out_loss"] > 0 for epoch in words["epochs"]] == [True, True]
    assert (words["programs"], nodes["programs"]) == (2, 1)


def test_a_run_that_diverges_says_so(trained: tuple[Path, dict[str, Any]]) -> None:
    assert "The loss is no longer a number in epoch 1: learning_rate=100 is too high" in trained[1]["trouble"]


def test_files_are_those_of_the_cpu_and_open_without_a_card(trained: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = trained
    gpu, cpu = (firth.load(folder / name) for name in ("gpu", "cpu"))
    assert sorted(path.name for path in (folder / "gpu").iterdir()) == sorted(
        path.name for path in (folder / "cpu").iterdir()
    )
    assert type(gpu) is type(cpu) and gpu.method == cpu.method
    assert list(gpu.vectors.keys) == list(cpu.vectors.keys)
    assert gpu.vectors.matrix.shape == cpu.vectors.matrix.shape
    assert np.abs(gpu.vectors.matrix - cpu.vectors.matrix).max() < 1e-3 < np.abs(gpu.vectors.matrix).max()


REFUSED = [
    (firth.SkipGram(loss="hierarchical"), {}, "loss=hierarchical runs on the CPU"),
    (firth.CBOW(loss="softmax"), {}, "loss=softmax runs on the CPU"),
    (firth.SkipGram(share_negatives=False), {}, "share_negatives=False runs on the CPU"),
    (firth.SkipGram(negatives=200), {}, "negatives above 127 runs on the CPU"),
    (firth.SkipGram(), {"deterministic": True}, "in no fixed order; give device=cpu"),
    (firth.FastText(), {}, "FastText runs on the CPU"),
]


@pytest.mark.parametrize("method, settings, reason", REFUSED)
def test_what_a_gpu_cannot_is_refused(method: firth.Method, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(firth.FirthError, match=reason):
        method.fit(["a b c d"] * 9, firth.Run(device="cuda", **settings))


def test_without_a_card_it_says_so_and_auto_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_choice, "NVIDIA_PATHS", ())
    monkeypatch.setattr(gpu_choice, "MIN_UNITS_PER_CORE", 0)
    method = firth.SkipGram(dim=8, epochs=1, min_count=1)
    with pytest.raises(firth.FirthError, match="there is no NVIDIA GPU here; device must be auto or cpu"):
        method.fit(["a b c d"] * 9, firth.Run(device="cuda"))
    assert "kernel_seconds" not in method.fit(["a b c d"] * 9, firth.Run(device="auto")).training


def test_without_triton_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gpu_choice, "NVIDIA_PATHS", (str(tmp_path),))
    monkeypatch.setattr(gpu_choice, "find_spec", lambda name: None)
    with pytest.raises(firth.FirthError, match="the package torch is not installed"):
        on_gpu(firth.SkipGram(), firth.Run(device="cuda"), 0)


def test_auto_takes_the_card_when_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_choice, "missing_requirement", lambda: "")
    most = 2 * MIN_UNITS_PER_CORE
    assert on_gpu(firth.SkipGram(), firth.Run(threads=2), most)
    assert not on_gpu(firth.SkipGram(), firth.Run(threads=2), most - 1)
    assert not on_gpu(firth.SkipGram(), firth.Run(threads=2, device="cpu"), most)
    assert not on_gpu(firth.SkipGram(), firth.Run(threads=2, deterministic=True), most)
    assert not on_gpu(firth.SkipGram(loss="hierarchical"), firth.Run(threads=2), most)


def test_the_more_a_program_moves_the_fewer_there_are() -> None:
    from firth.kernels import predict as kernel
    from firth.training.gpu_tables import MAX_CONCURRENT_UPDATE, MAX_PROGRAMS, stable_programs

    def programs(rows: int, window: int = 5, rate: float = 0.05, exponent: float = 1.0, **settings: Any) -> int:
        counts = (10_000_000 / np.arange(1, rows + 1) ** exponent).astype(np.int64)
        task = kernel.Task(
            ids=np.zeros(1, np.int32), starts=np.array([0, 1]), inputs=kernel.new_table(rows, 4),
            outputs=kernel.new_table(rows, 4), keep=kernel.keep_thresholds(counts, 1e-3),
            noise=kernel.alias_table(counts**0.75), paths=kernel.no_paths(), window=window, **settings,
        )  # fmt: skip
        return stable_programs(task, counts, counts**0.75, rate)

    assert programs(80_000, exponent=0.5) == MAX_PROGRAMS  # many rows, none of them much more frequent
    assert programs(640) <= 640 // 64
    wide = programs(50_000, window=15)
    assert 1 < wide < programs(50_000, window=10) < MAX_PROGRAMS
    assert programs(50_000, window=15, rate=0.1) == pytest.approx(wide / 2, abs=1)
    assert programs(50_000, window=15, negatives=10) == pytest.approx(wide / 2, abs=1)
    # All rows alike: a pair of rows is met by a share of 1 / rows² of the pairs, the norm of all shares is 1 / rows.
    assert (
        programs(820, window=1, rate=20, exponent=0.0, shrink=False)
        == int(MAX_CONCURRENT_UPDATE * 820 / (20 * 2 * 5))
        == 8
    )
