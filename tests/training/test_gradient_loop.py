"""The one gradient loop: it learns, stops, goes on exactly where it was, and counts the same on two processes."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from breaking import Breaks

from firth.core.errors import FirthError
from firth.core.run import Run
from firth.nets.transformer import Decoder, Size
from firth.training.gradient_loop import AHEAD
from firth.training.network_options import GradientOptions
from firth.training.optimizers import rate_share
from firth.transformers.language_modeling import LanguageTraining, Sampling, continued


@dataclass(frozen=True, kw_only=True)
class Options(GradientOptions):
    def fit(self, data, run=Run(), start=None):
        raise NotImplementedError

    @classmethod
    def method_name(cls):
        return "options"


def counting(length: int = 4000) -> np.ndarray:
    """0 1 2 … 9 0 1 2 …: each token tells the next."""
    return (np.arange(length) % 10).astype(np.int32)


def training(run: Run, ids: np.ndarray | None = None, held_out: float = 0.1, **options) -> LanguageTraining:
    torch.manual_seed(0)
    size = Size(layers=1, dim=32, heads=2, max_positions=16, dropout=options.pop("dropout", 0.0))
    settings = {"epochs": 3, "batch_tokens": 128, "learning_rate": 1e-2} | options
    return LanguageTraining(
        Options(**settings), Decoder(10, size), counting() if ids is None else ids, 16, held_out, "data", run
    )


def weights(task: LanguageTraining) -> bytes:
    return b"".join(tensor.numpy().tobytes() for tensor in task.net.state_dict().values())


def answers(task: LanguageTraining) -> np.ndarray:
    """What the net says to some tokens. (Weights that make no difference, as the keys' biases, may differ.)"""
    with torch.no_grad():
        return task.net.logits(task.net(torch.arange(10)[None])).numpy()


def test_a_step_has_about_the_tokens_asked_for():
    """Also where no number of stretches makes up just as many."""
    task = training(Run(threads=1), batch_tokens=100)
    assert sum(batch.tokens for batch in task.next_group(task.batches())) == 112


def test_it_learns_what_there_is_to_learn():
    task = training(Run(threads=1))
    figures = task.go()
    assert figures["held_out_loss"] < 0.05 < math.log(10) and figures["perplexity"] < 1.06
    assert figures["epochs"][0]["loss"] > figures["epochs"][-1]["loss"] and figures["steps"] > 60
    assert list(continued(task.net, 10, [3, 4], 8, Sampling(temperature=0), False)) == [5, 6, 7, 8, 9, 0, 1, 2]
    assert not task.net.training


def test_the_callers_generator_is_left_alone():
    task = training(Run(threads=1), epochs=1)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    task.go()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("after", [1, 4])
def test_a_resumed_run_equals_an_unbroken_one(tmp_path: Path, monkeypatch, after):
    """Dropout's random numbers, moments, the rate and the order of the data all go on."""
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 1e-9)  # a slice is a step
    whole = training(Run(deterministic=True), dropout=0.2)
    whole.go()
    with pytest.raises(KeyboardInterrupt):
        training(Run(deterministic=True, checkpoint_folder=tmp_path, report=Breaks(after)), dropout=0.2).go()
    resumed = training(Run(deterministic=True, checkpoint_folder=tmp_path, report=Breaks(-1)), dropout=0.2)
    figures = resumed.go()
    assert weights(resumed) == weights(whole) and figures["steps"] == whole.progress.steps


def test_batches_are_loaded_ahead_and_in_order():
    """As for a GPU; those of another epoch are dropped."""
    task = training(Run(threads=1))
    with ThreadPoolExecutor(1) as task.loader:
        for epoch in (0, 1):
            task.progress.epoch = epoch
            for number, batch in enumerate(task.batches()):
                assert torch.equal(task.loaded(number)[0], task.load(batch.what)[0])
                assert set(task.loading) == set(range(number + 1, min(number + 1 + AHEAD, len(task.batches()))))
                if number == 5:
                    break


def test_large_steps_are_added_up_from_batches(monkeypatch):
    """Four batches of 32 tokens are one of 128."""
    one = training(Run(deterministic=True), epochs=1, held_out=0.0)
    one.go()
    monkeypatch.setattr("firth.transformers.language_modeling.MOST_TOKENS", 32)
    four = training(Run(deterministic=True), epochs=1, held_out=0.0)
    four.go()
    assert four.progress.steps == one.progress.steps
    np.testing.assert_allclose(answers(one), answers(four), atol=2e-3)


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
import torch.distributed as dist
from test_gradient_loop import Run, answers, np, training
task = training(Run(deterministic=True, device="cpu"), epochs=1, held_out=0.0)
task.go()
if task.rank == 0:
    np.save({out!r}, answers(task))
dist.destroy_process_group()
"""


def test_two_processes_equal_one_with_the_same_step(tmp_path: Path):
    """Each takes half of a step's tokens: the same weights but for the order of additions."""
    alone = training(Run(deterministic=True, device="cpu"), epochs=1, held_out=0.0)
    alone.go()
    program, out = tmp_path / "two.py", tmp_path / "answers.npy"
    program.write_text(PROGRAM.format(tests=str(Path(__file__).parent), out=str(out)))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(program)]
    path = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    np.testing.assert_allclose(np.load(out), answers(alone), atol=2e-3)


def test_a_budget_ends_it_and_shapes_the_rate():
    task = training(Run(threads=1, budget=0.5), epochs=10_000)
    figures = task.go()
    assert figures["finished_epochs"] < 10_000 and figures["seconds"] < 10
    assert task.share() == 1.0


def test_judging_at_the_end_keeps_to_the_budget_too():
    """A third of what was trained on is judged, not a held-out part of any size."""
    random = np.random.default_rng(1).integers(0, 10, 400_000).astype(np.int32)
    ids = np.concatenate([counting(400_000), counting(2000), random])
    task = training(Run(threads=1, budget=0.1), ids, held_out=0.5, epochs=100)
    figures = task.go()
    assert 0 < task.progress.words // 3 < 100_000
    assert figures["held_out_loss"] == task.judge(task.progress.words // 3)["held_out_loss"]
    assert figures["held_out_loss"] != task.judge(sys.maxsize)["held_out_loss"]


def test_the_rate_warms_up_and_falls():
    method = Options(warmup=0.1, schedule="cosine")
    rates = [rate_share(method, share) for share in (0.05, 0.1, 0.55, 1.0)]
    assert rates == pytest.approx([0.5, 1.0, 0.55, 0.1])
    assert rate_share(Options(warmup=0.1, schedule="linear"), 0.55) == pytest.approx(0.5)
    assert rate_share(Options(warmup=0.1, schedule="inverse_sqrt"), 0.4) == pytest.approx(0.5)
    assert rate_share(Options(warmup=0.0, schedule="none"), 1.0) == 1.0


def test_a_loss_that_is_no_number_stops_with_the_last_checkpoint_kept(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 1e-9)
    with pytest.raises(KeyboardInterrupt):
        training(Run(checkpoint_folder=tmp_path, report=Breaks(3), threads=1)).go()
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    broken = training(Run(checkpoint_folder=tmp_path, report=Breaks(-1), threads=1))
    monkeypatch.setattr(broken, "loss_of", lambda tensors: broken.batch_loss(*tensors) * float("nan"))
    with pytest.raises(FirthError, match="no longer a number"):
        broken.go()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == kept


def test_deterministic_needs_the_cpu_and_cuda_a_gpu(monkeypatch):
    if not torch.cuda.is_available():
        with pytest.raises(FirthError, match="sees no GPU"):
            training(Run(device="cuda"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(FirthError, match="give device=cpu"):
        training(Run(device="auto", deterministic=True))


@pytest.mark.parametrize(
    ("settings", "message"), [({"temperature": -1}, "temperature"), ({"top_k": -1}, "top_k"), ({"top_p": 0}, "top_p")]
)
def test_sampling_is_checked(settings, message):
    with pytest.raises(FirthError, match=message):
        Sampling(**settings)


def test_sampling_keeps_to_the_likeliest():
    logits = torch.log(torch.tensor([0.5, 0.3, 0.15, 0.05]))
    random = torch.Generator().manual_seed(0)
    drawn = {Sampling(temperature=1, top_k=2).choose(logits, random) for _ in range(200)}
    assert drawn == {0, 1}
    assert {Sampling(temperature=1, top_p=0.79).choose(logits, random) for _ in range(200)} == {0, 1}
    assert {Sampling(temperature=1, top_p=0.01).choose(logits, random) for _ in range(50)} == {0}
    counts = np.bincount([Sampling(temperature=1).choose(logits, random) for _ in range(2000)], minlength=4)
    np.testing.assert_allclose(counts / 2000, [0.5, 0.3, 0.15, 0.05], atol=0.04)
    assert Sampling(temperature=0).choose(logits, random) == 0
