"""The gradient loop: it learns, keeps its budget, resumes exactly, and gives the same result on two processes."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from breaking import Breaks
from counting import Options, answers, counting, training, weights
from refusing import refuses

from firth.core.run import Run
from firth.nets.transformer import Decoder
from firth.training.gradient_loop import PREFETCHED_BATCHES
from firth.training.optimizers import rate_share
from firth.transformers.generation import Sampling, engine_of, generate_ids


def test_a_step_has_at_least_batch_tokens():
    """Here batch_tokens is not a multiple of the sequence length."""
    task = training(Run(threads=1), batch_tokens=100)
    assert sum(batch.tokens for batch in task.next_group(task.batches())) == 112


def test_a_predictable_sequence_is_learned():
    task = training(Run(threads=1))
    metrics = task.go()
    assert metrics["held_out_loss"] < 0.05 < math.log(10) and metrics["perplexity"] < 1.06
    assert metrics["epochs"][0]["loss"] > metrics["epochs"][-1]["loss"] and metrics["steps"] > 60
    assert isinstance(task.net, Decoder)
    tokens = generate_ids(engine_of(task.net, 10), [3, 4], 8, Sampling(temperature=0), False)
    assert list(tokens) == [5, 6, 7, 8, 9, 0, 1, 2]
    assert not task.net.training


def test_the_random_generator_of_the_caller_is_unchanged():
    task = training(Run(threads=1), epochs=1)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    task.go()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("after", [1, 4])
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path, monkeypatch, after):
    """The random state of dropout, the moments, the learning rate and the order of the data are restored."""
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 1e-9)  # a slice is a step
    uninterrupted = training(Run(deterministic=True), dropout=0.2)
    uninterrupted.go()
    with pytest.raises(KeyboardInterrupt):
        training(Run(deterministic=True, checkpoint_folder=tmp_path, report=Breaks(after)), dropout=0.2).go()
    resumed = training(Run(deterministic=True, checkpoint_folder=tmp_path, report=Breaks(-1)), dropout=0.2)
    metrics = resumed.go()
    assert weights(resumed) == weights(uninterrupted) and metrics["steps"] == uninterrupted.progress.steps


def test_batches_are_prefetched_in_order():
    """As on a GPU; prefetched batches of another epoch are discarded."""
    task = training(Run(threads=1))
    with ThreadPoolExecutor(1) as task.loader:
        for epoch in (0, 1):
            task.progress.epoch = epoch
            for number, batch in enumerate(task.batches()):
                assert torch.equal(task.loaded(number)[0], task.load(batch.what)[0])
                assert set(task.loading) == set(
                    range(number + 1, min(number + 1 + PREFETCHED_BATCHES, len(task.batches())))
                )
                if number == 5:
                    break


def test_gradients_are_accumulated_over_batches(monkeypatch):
    """Four batches of 32 tokens give the same step as one of 128."""
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
import numpy as np
import torch.distributed as dist
from counting import answers, training
from firth.core.run import Run
task = training(Run(deterministic=True, device="cpu"), epochs=1, held_out=0.0)
task.go()
if task.rank == 0:
    np.save({out!r}, answers(task))
dist.barrier()  # neither process closes its connections while the other one is still at work
dist.destroy_process_group()
"""


def test_two_processes_equal_one(tmp_path: Path):
    """Each process takes half of the tokens of a step; only the order of additions differs."""
    alone = training(Run(deterministic=True, device="cpu"), epochs=1, held_out=0.0)
    alone.go()
    program, out = tmp_path / "two.py", tmp_path / "answers.npy"
    program.write_text(PROGRAM.format(tests=str(Path(__file__).parents[1]), out=str(out)))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(program)]
    path = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(out), answers(alone), atol=2e-3)


def test_a_budget_ends_training_and_the_schedule():
    task = training(Run(threads=1, budget=0.5), epochs=10_000)
    metrics = task.go()
    assert metrics["finished_epochs"] < 10_000 and metrics["seconds"] < 10
    assert task.share() == 1.0


def test_the_final_evaluation_is_bounded_under_a_budget():
    """It uses a third as many tokens as were trained on, however large the held-out part is."""
    random = np.random.default_rng(1).integers(0, 10, 400_000).astype(np.int32)
    ids = np.concatenate([counting(400_000), counting(2000), random])
    task = training(Run(threads=1, budget=0.1), ids, held_out=0.5, epochs=100)
    metrics = task.go()
    assert 0 < task.progress.words // 3 < 100_000
    assert metrics["held_out_loss"] == task.evaluate_held_out(task.progress.words // 3)["held_out_loss"]
    assert metrics["held_out_loss"] != task.evaluate_held_out(sys.maxsize)["held_out_loss"]


def test_learning_rate_schedules():
    method = Options(warmup=0.1, schedule="cosine")
    rates = [rate_share(method, share) for share in (0.05, 0.1, 0.55, 1.0)]
    assert rates == pytest.approx([0.5, 1.0, 0.55, 0.1])
    assert rate_share(Options(warmup=0.1, schedule="linear"), 0.55) == pytest.approx(0.5)
    assert rate_share(Options(warmup=0.1, schedule="inverse_sqrt"), 0.4) == pytest.approx(0.5)
    assert rate_share(Options(warmup=0.0, schedule="none"), 1.0) == 1.0


def test_divergence_keeps_the_last_checkpoint(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 1e-9)
    with pytest.raises(KeyboardInterrupt):
        training(Run(checkpoint_folder=tmp_path, report=Breaks(3), threads=1)).go()
    checkpoint = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    broken = training(Run(checkpoint_folder=tmp_path, report=Breaks(-1), threads=1))
    monkeypatch.setattr(broken, "loss_of", lambda tensors: broken.batch_loss(*tensors) * float("nan"))
    with refuses("diverged", epoch=1):
        broken.go()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == checkpoint


def test_deterministic_needs_the_cpu_and_cuda_a_gpu(monkeypatch):
    if not torch.cuda.is_available():
        with refuses("no_gpu", reason="torch finds no GPU"):
            training(Run(device="cuda"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with refuses("unsupported_device", option="deterministic=True"):
        training(Run(device="auto", deterministic=True))


@pytest.mark.parametrize(("option", "value"), [("temperature", -1), ("top_k", -1), ("top_p", 0)])
def test_sampling_options_are_checked(option, value):
    with refuses("invalid_value", option=option, got=value):
        Sampling(**{option: value})


def test_sampling_is_restricted_to_the_likeliest_tokens():
    logits = torch.log(torch.tensor([0.5, 0.3, 0.15, 0.05]))
    random = torch.Generator().manual_seed(0)
    drawn = {Sampling(temperature=1, top_k=2).choose(logits, random) for _ in range(200)}
    assert drawn == {0, 1}
    assert {Sampling(temperature=1, top_p=0.79).choose(logits, random) for _ in range(200)} == {0, 1}
    assert {Sampling(temperature=1, top_p=0.01).choose(logits, random) for _ in range(50)} == {0}
    counts = np.bincount([Sampling(temperature=1).choose(logits, random) for _ in range(2000)], minlength=4)
    np.testing.assert_allclose(counts / 2000, [0.5, 0.3, 0.15, 0.05], atol=0.04)
    assert Sampling(temperature=0).choose(logits, random) == 0
