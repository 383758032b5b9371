"""Window training on a GPU: from text to a saved model in Triton's interpreter, and what is refused without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusing import refuses

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
kernel.BLOCK = words_cuda.SLICE = 40  # tokens: two slices per epoch
cuda.ROWS_PER_PROGRAM = 16
rng = np.random.default_rng(0)
docs = [" ".join(f"w{word}" for word in rng.integers(0, 40, 10)) for _ in range(9)]
edges = [(str(a), str(b)) for a, b in rng.integers(0, 12, (30, 2))]
shape = dict(dim=20, window=2, negatives=2)
text = dict(min_count=1, subsample=0, **shape)
notes = []

class Interrupts(Silence):
    def step(self, done, **metrics):
        if metrics.get("loss") and done > 90:  # within the second epoch
            raise KeyboardInterrupt

class Notes(Silence):
    def note(self, text, code="note"):
        notes.append([code, text])

method = firth.SkipGram(epochs=2, held_out=0.2, **text)
whole = method.fit(docs, firth.Run(device="cuda"))
try:
    method.fit(docs, firth.Run(device="cuda", checkpoint_folder=folder / "unfinished", report=Interrupts()))
except KeyboardInterrupt:
    resumed = method.fit(docs, firth.Run(device="cuda", checkpoint_folder=folder / "unfinished", report=Notes()))
same = [np.array_equal(whole.vectors.matrix, resumed.vectors.matrix), np.array_equal(whole.outputs, resumed.outputs)]
whole.save(folder / "gpu")
cpu = method.fit(docs, firth.Run(device="cpu", threads=1))
cpu.save(folder / "cpu")
both = [[whole.training, cpu.training]]
shape |= {"share_negatives": True}  # always on a GPU, and the default of large graphs on a CPU
for other, data in ((firth.CBOW(epochs=1, **text), docs),
                    (firth.DeepWalk(walks_per_node=1, walk_length=5, **shape), edges),
                    (firth.Node2Vec(walks_per_node=1, walk_length=5, q=2.0, **shape), edges)):
    both.append([other.fit(data, firth.Run(device=device, threads=1)).training for device in ("cuda", "cpu")])
try:
    firth.SkipGram(epochs=1, learning_rate=100, **text).fit(docs, firth.Run(device="cuda"))
except firth.FirthError as error:
    refusal = [error.code, error.values]
print(json.dumps({"same": same, "notes": notes, "both": both, "refusal": refusal}, default=str))
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder of models, and the JSON output of a process that ran interpreted kernels."""
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


def test_a_resumed_run_equals_an_uninterrupted_one(trained: tuple[Path, dict[str, Any]]) -> None:
    _, output = trained
    assert output["same"] == [True, True]  # the interpreter runs programs in turn, so the order is fixed
    assert any(code == "resumed" and " 7" in text for code, text in output["notes"])  # at 70% to 79%


def test_the_same_pairs_and_about_the_same_loss_as_on_the_cpu(trained: tuple[Path, dict[str, Any]]) -> None:
    _, output = trained
    assert len(output["both"]) == 4
    for gpu, cpu in output["both"]:
        assert gpu["kernel_seconds"] > 0 and "kernel_seconds" not in cpu
        assert gpu["pairs_per_second"] > 0 and gpu["bytes_per_second"] > 0
        for gpu_epoch, cpu_epoch in zip(gpu["epochs"], cpu["epochs"], strict=True):
            assert gpu_epoch["pairs"] == cpu_epoch["pairs"] > 20
            assert gpu_epoch["loss"] == pytest.approx(cpu_epoch["loss"], rel=1e-3)
            assert gpu_epoch.keys() == cpu_epoch.keys()
    words, nodes = output["both"][0][0], output["both"][2][0]
    assert [epoch["held_out_loss"] > 0 for epoch in words["epochs"]] == [True, True]
    assert (words["programs"], nodes["programs"]) == (2, 1)


def test_divergence_is_an_error(trained: tuple[Path, dict[str, Any]]) -> None:
    code, values = trained[1]["refusal"]
    assert code == "diverged" and values["epoch"] == 1 and "learning_rate=100 " in values["cause"]


def test_files_equal_those_of_the_cpu_and_load_without_a_gpu(trained: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = trained
    gpu, cpu = (firth.load(folder / name, firth.SkipGram) for name in ("gpu", "cpu"))
    assert sorted(path.name for path in (folder / "gpu").iterdir()) == sorted(
        path.name for path in (folder / "cpu").iterdir()
    )
    assert type(gpu) is type(cpu) and gpu.method == cpu.method
    assert list(gpu.vectors.keys) == list(cpu.vectors.keys)
    assert gpu.vectors.matrix.shape == cpu.vectors.matrix.shape
    assert np.abs(gpu.vectors.matrix - cpu.vectors.matrix).max() < 1e-3 < np.abs(gpu.vectors.matrix).max()


REFUSED = [
    (firth.SkipGram(loss="hierarchical"), {}, {"method": "SkipGram", "option": "loss=hierarchical"}),
    (firth.CBOW(loss="softmax"), {}, {"method": "CBOW", "option": "loss=softmax"}),
    (firth.SkipGram(share_negatives=False), {}, {"option": "share_negatives=False"}),
    (firth.SkipGram(negatives=200), {}, {"option": "negatives above 127"}),
    (firth.SkipGram(), {"deterministic": True}, {"option": "deterministic=True"}),
    (firth.FastText(), {}, {"method": "FastText"}),
]


@pytest.mark.parametrize("method, settings, values", REFUSED)
def test_unsupported_options_are_refused_on_a_gpu(
    method: firth.Method, settings: dict[str, Any], values: dict[str, str]
) -> None:
    with refuses("unsupported_device", **values):
        method.fit(["a b c d"] * 9, firth.Run(device="cuda", **settings))


def test_without_a_gpu_cuda_is_refused_and_auto_uses_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_choice, "NVIDIA_PATHS", ())
    monkeypatch.setattr(gpu_choice, "MIN_UNITS_PER_CORE", 0)
    method = firth.SkipGram(dim=8, epochs=1, min_count=1)
    with refuses("no_gpu", reason="there is no NVIDIA GPU"):
        method.fit(["a b c d"] * 9, firth.Run(device="cuda"))
    assert "kernel_seconds" not in method.fit(["a b c d"] * 9, firth.Run(device="auto")).training


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gpu_choice, "NVIDIA_PATHS", (str(tmp_path),))
    monkeypatch.setattr(gpu_choice, "find_spec", lambda name: None)
    with refuses("no_gpu") as caught:
        on_gpu(firth.SkipGram(), firth.Run(device="cuda"), 0)
    assert "package torch" in caught.value.values["reason"]


def test_auto_uses_the_gpu_for_large_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_choice, "missing_requirement", lambda: "")
    most = 2 * MIN_UNITS_PER_CORE
    assert on_gpu(firth.SkipGram(), firth.Run(threads=2), most)
    assert not on_gpu(firth.SkipGram(), firth.Run(threads=2), most - 1)
    assert not on_gpu(firth.SkipGram(), firth.Run(threads=2, device="cpu"), most)
    assert not on_gpu(firth.SkipGram(), firth.Run(threads=2, deterministic=True), most)
    assert not on_gpu(firth.SkipGram(loss="hierarchical"), firth.Run(threads=2), most)


def test_fewer_programs_run_when_each_changes_more() -> None:
    from firth.kernels import predict as kernel
    from firth.training.gpu_tables import MAX_CONCURRENT_UPDATE, MAX_PROGRAMS, stable_programs

    def programs(rows: int, window: int = 5, rate: float = 0.05, exponent: float = 1.0, **settings: Any) -> int:
        counts = (10_000_000 / np.arange(1, rows + 1) ** exponent).astype(np.int64)
        weights = np.power(counts, 0.75, dtype=np.float64)
        task = kernel.Task(
            ids=np.zeros(1, np.int32), starts=np.array([0, 1]), inputs=kernel.new_table(rows, 4),
            outputs=kernel.new_table(rows, 4), keep=kernel.keep_thresholds(counts, 1e-3),
            noise=kernel.alias_table(weights), paths=kernel.no_paths(), window=window, **settings,
        )  # fmt: skip
        return stable_programs(task, counts, weights, rate)

    assert programs(80_000, exponent=0.5) == MAX_PROGRAMS  # many rows of similar frequency
    assert programs(640) <= 640 // 64
    wide = programs(50_000, window=15)
    assert 1 < wide < programs(50_000, window=10) < MAX_PROGRAMS
    assert programs(50_000, window=15, rate=0.1) == pytest.approx(wide / 2, abs=1)
    assert programs(50_000, window=15, negatives=10) == pytest.approx(wide / 2, abs=1)
    # With equal frequencies a pair of rows is in a share of 1 / rows² of the pairs; the norm of all shares is 1 / rows.
    assert (
        programs(820, window=1, rate=20, exponent=0.0, shrink=False)
        == int(MAX_CONCURRENT_UPDATE * 820 / (20 * 2 * 5))
        == 8
    )
