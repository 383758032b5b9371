"""Networks in several processes: the same steps with divided weights, and checkpoints for any number of processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from counting import answers, training
from process_scenarios import (
    CPU,
    ODD,
    curve,
    finished,
    killed_while_writing,
    left_unfinished,
    resumed_exactly,
    sharded_and_not,
)
from refusing import refuses

import firth
from firth.core.run import Run
from firth.data.world import World


def together(processes: int, scenario: Callable[[Path], None], folder: Path, status: int = 0) -> str:
    """Run a scenario in several processes, which torchrun starts; return their standard error."""
    code = f"import sys; sys.path[:0] = {sys.path!r}; import process_scenarios as t; from pathlib import Path\n"
    program = folder / f"{scenario.__name__}.py"
    program.write_text(code + f"t.{scenario.__name__}(Path({str(folder)!r}))\nt.leave()\n")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*command, str(program)], env=environment, capture_output=True, text=True, timeout=200)
    assert bool(done.returncode) == bool(status), done.stderr[-3000:]
    return done.stderr


def test_accumulation_gives_the_same_step():
    one = training(Run(**CPU), epochs=1, held_out=0.0)
    four = training(Run(**CPU, accumulation=4), epochs=1, held_out=0.0)
    assert [len(task.next_group(task.batches())) for task in (one, four)] == [1, 4]
    one.go()
    four.go()
    assert four.progress.steps == one.progress.steps
    for name, tensor in one.net.state_dict().items():
        np.testing.assert_allclose(tensor.numpy(), four.net.state_dict()[name].numpy(), atol=2e-3, err_msg=name)
    np.testing.assert_allclose(answers(one), answers(four), atol=2e-3)


def test_divided_weights_give_the_same_losses(tmp_path):
    together(2, sharded_and_not, tmp_path)
    for name, options in ODD.items():
        task = training(Run(**CPU), epochs=2, **options)
        metrics = task.go()
        *losses, held_out, parameters = json.loads((tmp_path / f"{name}.json").read_text())
        assert losses == pytest.approx(curve(task), rel=1e-3) and parameters == metrics["parameters"]
        assert held_out == pytest.approx(metrics.get("held_out_loss", 0.0), rel=1e-2)
        np.testing.assert_allclose(np.load(tmp_path / f"{name}.npy"), answers(task), atol=5e-3)


def test_two_processes_resume_exactly(tmp_path):
    together(2, resumed_exactly, tmp_path)
    assert (tmp_path / "same-True").read_text() == (tmp_path / "same-False").read_text()


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (2, 3)])
def test_checkpoints_resume_with_another_number_of_processes(tmp_path, monkeypatch, before, after):
    alone = training(Run(**CPU), epochs=2, held_out=0.0)
    alone.go()
    if before > 1:
        together(before, left_unfinished, tmp_path)
    else:
        monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 1e-9)
        left_unfinished(tmp_path)
    files = sorted(path.name for path in (tmp_path / "left").iterdir())
    parts = [f"checkpoint-0-0000{part + 1}-of-0000{before}.safetensors" for part in range(before)]
    assert files == [*(parts if before > 1 else ["checkpoint-0.safetensors"]), "checkpoint.json"]
    if after > 1:
        together(after, finished, tmp_path)
    else:
        finished(tmp_path)
    np.testing.assert_allclose(np.load(tmp_path / "finished.npy"), answers(alone), atol=5e-3)


def test_a_process_killed_while_writing_leaves_the_previous_checkpoint(tmp_path):
    errors = together(2, killed_while_writing, tmp_path, status=1)
    assert "lost_process" in errors or "SIGKILL" in errors
    record = json.loads((tmp_path / "left" / "checkpoint.json").read_text())
    assert len(record["arrays"]) == 2 and record["state"]["steps"] == 1
    finished(tmp_path)
    alone = training(Run(**CPU), epochs=2, held_out=0.0)
    alone.go()
    np.testing.assert_allclose(np.load(tmp_path / "finished.npy"), answers(alone), atol=5e-3)


def test_settings_that_a_method_lacks_are_refused():
    with refuses("conflicting_options", method="SkipGram", options="accumulation"):
        firth.SkipGram().fit(["a text"], Run(accumulation=2))
    with refuses("conflicting_options", method="VAE", option="shard_weights"):
        firth.VAE().fit([[1.0], [2.0]], Run(shard_weights=True))
    with refuses("conflicting_options", method="SentenceEncoder", option="accumulation"):
        firth.SentenceEncoder().fit([("a", "b")], Run(accumulation=2))
    with refuses("conflicting_options"):
        firth.GPT().fit(["a text"], Run(workers=2))


@pytest.mark.parametrize(
    "method",
    [
        firth.BERT(layers=1, dim=16, heads=2, context_length=32, vocabulary_size=300, dropout=0.0, epochs=1),
        firth.Autoencoder(dim=2, hidden_sizes="8", epochs=2, batch_size=30),
        firth.Seq2Seq(layers=1, dim=16, heads=2, dropout=0.0, epochs=1, tokenizer="characters"),
    ],
    ids=lambda method: method.method_name(),
)
def test_every_network_accumulates_the_same_gradient(method):
    """The mean is over the tokens, masked tokens, pairs or rows of the step, not over the means of its passes."""
    sentences = list(World(seed=3).sentences(300))
    data = {"autoencoder": np.random.default_rng(0).normal(size=(100, 4)), "seq2seq": list(pairwise(sentences))}
    nets = []
    for accumulation in (1, 3):
        run = Run(**CPU, accumulation=accumulation)
        model = method.fit(data.get(method.method_name(), sentences), run)
        nets.append((model.training, model.net.state_dict()))
    assert nets[0][0]["steps"] == nets[1][0]["steps"]
    assert nets[0][0]["loss"] == pytest.approx(nets[1][0]["loss"], rel=1e-4)
    for name, tensor in nets[0][1].items():
        if tensor.ndim < 2:  # biases of keys have no effect, and so no gradient but that of rounding
            continue
        np.testing.assert_allclose(nets[1][1][name].numpy(), tensor.numpy(), atol=1e-3, err_msg=name)
