"""How a translator learns: ids, batches, the loss, exact resume, two processes."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from breaking import Breaks, Notes
from refusing import refuses
from torch.nn import functional

import firth
from firth.core.report import Silence
from firth.data.subwords import Characters
from firth.data.translation_pairs import Pair
from firth.data.world import World
from firth.training.network_options import SPECIAL_TOKENS
from firth.transformers.translation_model import BEGIN, END, PAD, new_net
from firth.transformers.translation_training import Translating, bucketed, encode, smoothed_loss

torch.set_num_threads(1)
PAIRS = [Pair(*pair) for pair in World(seed=2).translations(60)]


def tokenizer():
    return Characters(special_tokens=SPECIAL_TOKENS).train([text for pair in PAIRS for text in pair])


def test_smoothed_cross_entropy_is_the_kl_divergence_and_a_constant():
    """Σ H(q, p) = Σ KL(q ‖ p) + n H(q), so the gradients are the same; without smoothing H(q) is 0."""
    torch.manual_seed(0)
    vocabulary_size, smoothing = 7, 0.1
    logits = torch.randn(2, 3, vocabulary_size, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([[3, 4, PAD], [5, END, 6]])
    truth = torch.full((2, 3, vocabulary_size), smoothing / vocabulary_size, dtype=torch.float64)
    truth.scatter_(2, target[..., None], 1 - smoothing + smoothing / vocabulary_size)
    inside = (target != PAD)[..., None]
    divergence = (functional.kl_div(logits.log_softmax(-1), truth, reduction="none") * inside).sum()
    entropy = -(truth[0, 0] * truth[0, 0].log()).sum()
    loss = smoothed_loss(logits, target, smoothing)
    assert float(loss.detach()) == pytest.approx(float((divergence + 5 * entropy).detach()), rel=1e-5)
    one, other = (torch.autograd.grad(value, logits, retain_graph=True)[0] for value in (loss, divergence))
    torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)
    by_hand = -torch.stack(
        [
            logits.log_softmax(-1)[row, position, target[row, position]]
            for row, position in ((0, 0), (0, 1), (1, 0), (1, 1), (1, 2))
        ]
    ).sum()
    assert smoothed_loss(logits, target, 0.0).item() == pytest.approx(by_hand.item(), rel=1e-6)


def real(row: torch.Tensor) -> list[int]:
    """A row without what fills it up at its end."""
    ids = row.tolist()
    while ids[-1] == PAD:
        ids.pop()
    return ids


def test_pairs_become_ids_with_their_marks():
    trained = tokenizer()
    encoded = encode(PAIRS, trained, 200, Silence(), "pairs")
    first = np.array([0])
    source, target = (real(encoded.padded(first, side)[0]) for side in (0, 1))
    assert source[-1] == END and trained.decode(source) == PAIRS[0].source
    assert target[0] == BEGIN and target[-1] == END and trained.decode(target) == PAIRS[0].target
    rows = encoded.padded(np.arange(10), 1)
    assert [len(PAIRS[row].target) + 2 for row in range(10)] == (rows != PAD).sum(1).tolist()


def test_what_is_left_out_is_told():
    report = Notes()
    pairs = [*PAIRS[:5], Pair("", "a dog"), Pair("a dog", "  "), Pair("dog " * 20, "dog")]
    encoded = encode(pairs, tokenizer(), 70, report, "pairs")
    assert len(encoded) == 5
    assert report.codes == ["empty_pairs", "long_pairs"]
    assert "2 of 8 pairs" in report.notes[0] and "1 of 8 pairs" in report.notes[1]
    assert "context_length=70" in report.notes[1]


def test_marks_in_a_text_are_text():
    trained = firth.BPE(size=300, special_tokens=SPECIAL_TOKENS).train([text for pair in PAIRS for text in pair])
    encoded = encode([Pair("a </s> b", "<pad> c")], trained, 50, Silence(), "pairs")
    source, target = (real(encoded.padded(np.array([0]), side)[0]) for side in (0, 1))
    assert source.count(END) == 1 and len(target) == encoded.lengths[0, 1]
    assert trained.decode(source) == "a </s> b" and trained.decode(target) == "<pad> c"


def test_batches_hold_every_pair_once_and_little_padding():
    pairs = [Pair("x" * n, "y" * n) for n in (3, 30, 9, 27, 5, 12, 44, 8) for _ in range(25)]
    encoded = encode(pairs, Characters(special_tokens=SPECIAL_TOKENS).train(["xy"]), 99, Silence(), "pairs")
    groups = bucketed(encoded, np.random.default_rng(1), 200)
    assert sorted(np.concatenate(groups).tolist()) == list(range(200))
    tokens = [int((encoded.lengths[group, 1] - 1).sum()) for group in groups]
    shapes = [tuple(encoded.padded(group, 1)[:, 1:].shape) for group in groups]
    assert max(tokens) < 250 and sum(count > 150 for count in tokens) >= len({length for _, length in shapes})
    assert len(set(shapes)) <= 2 * len({length for _, length in shapes})  # whole groups of one shape, and a rest
    assert all(length % 8 == 0 for _, length in shapes)
    assert sum(rows * length for rows, length in shapes) < 1.3 * (encoded.lengths[:, 1] - 1).sum()
    again = bucketed(encoded, np.random.default_rng(2), 200)
    assert [group.tolist() for group in again] != [group.tolist() for group in groups]


# ---- exact resume, two processes ----


def training(run: firth.Run, dropout: float = 0.2, held_out: int = 10, **options) -> Translating:
    sizes: dict[str, Any] = {"layers": 1, "dim": 8, "heads": 2, "context_length": 100, "epochs": 2, "batch_tokens": 300}
    method = firth.Seq2Seq(dropout=dropout, tokenizer="characters", **sizes, **options)
    trained = tokenizer()
    encoded = encode(PAIRS, trained, 100, Silence(), "pairs")
    numbers = np.arange(len(encoded))
    net = new_net(method, len(trained), run.seed)
    return Translating(method, net, encoded.part(numbers[held_out:]), encoded.part(numbers[:held_out]), run)


def weights(task: Translating) -> bytes:
    return b"".join(tensor.numpy().tobytes() for tensor in task.net.state_dict().values())


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_a_resumed_run_equals_an_unbroken_one(tmp_path: Path, monkeypatch, architecture):
    uninterrupted = training(firth.Run(deterministic=True), architecture=architecture)
    uninterrupted.go()
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 1e-9)  # a slice is a step
    with pytest.raises(KeyboardInterrupt):
        run = firth.Run(deterministic=True, checkpoint_folder=tmp_path, report=Breaks(7))
        training(run, architecture=architecture).go()
    notes = Breaks(-1)
    run = firth.Run(deterministic=True, checkpoint_folder=tmp_path, report=notes)
    resumed = training(run, architecture=architecture)
    metrics = resumed.go()
    assert notes.notes and weights(resumed) == weights(uninterrupted)
    assert metrics["steps"] == uninterrupted.progress.steps > 7
    assert metrics["perplexity"] == pytest.approx(math.exp(metrics["held_out_loss"]), rel=0.2)


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
import torch.distributed as dist
from test_translation import firth, said, training
task = training(firth.Run(deterministic=True, device="cpu"), dropout=0.0, held_out=0)
task.go()
if task.rank == 0:
    said(task).tofile({out!r})
dist.barrier()  # neither process closes its connections while the other one is still at work
dist.destroy_process_group()
"""


@torch.no_grad()
def said(task: Translating) -> np.ndarray:
    """Logits of some pairs. Weights can't be compared: a key's bias shifts all scores of a query alike, its gradient is
    rounding, and Adam makes steps of full length from that."""
    task.net.eval()
    return task.predicted(*task.load(np.arange(5)))[0].numpy()


def test_two_processes_equal_one_with_the_doubled_batch(tmp_path: Path):
    """Each of the two takes half of what the one takes in a step: the same but for the order of additions."""
    alone = training(firth.Run(deterministic=True, device="cpu"), dropout=0.0, held_out=0)
    before = said(alone)
    alone.go()
    program, out = tmp_path / "two.py", tmp_path / "logits"
    program.write_text(PROGRAM.format(tests=str(Path(__file__).parent), out=str(out)))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(program)]
    path = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    logits = np.fromfile(out, np.float32).reshape(before.shape)
    np.testing.assert_allclose(logits, said(alone), atol=1e-3)
    assert np.abs(logits - before).max() > 0.1  # it did learn


def test_a_context_of_any_length_is_learned_to_its_end():
    """Batches are padded to few lengths, also beyond a context that is none of them."""
    method = firth.Seq2Seq(layers=1, dim=8, heads=2, context_length=9, tokenizer="characters", epochs=1, held_out=0.0)
    model = method.fit([("abcdefgh", "hgfedcba")], firth.Run(threads=1))
    assert model.training["pairs"] == 1
    with refuses("text_too_long", tokens=10, limit=9):
        model.translations(["abcdefghh"])
