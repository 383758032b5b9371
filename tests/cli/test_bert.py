"""`firth train bert`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import firth
from firth.data.world import World

SMALL = [
    "--layers", "1", "--dim", "16", "--heads", "2", "--context-length", "32", "--vocabulary-size", "200",
    "--batch-tokens", "512", "--epochs", "2", "--unit", "block",
]  # fmt: skip


def write_text(folder: Path) -> Path:
    """Documents separated by blank lines, one sentence per line."""
    documents = [document.text.replace(" . ", "\n") for document in World(seed=5).topics(60)]
    (folder / "text.txt").write_text("\n\n".join(documents))
    return folder / "text.txt"


def test_train_bert(call, tmp_path):
    text, folder = write_text(tmp_path), tmp_path / "bert"
    result = call("train", "bert", text, "-o", folder, *SMALL, "--threads", 1)
    assert result.exit_code == 0 and "tokens/s" in result.output and "masked tokens" in result.output
    training = json.loads((folder / "training.json").read_text())
    assert training["documents"] == 60 and training["sentences"] == 360
    assert {"share", "held_out_loss", "perplexity", "masked_accuracy", "next_accuracy"} == training["held_out"][
        0
    ].keys()
    again = call("train", "bert", text, "-o", folder, *SMALL, "--threads", 1)
    assert again.exit_code == 0 and "already finished" in again.output


def test_errors(refused, tmp_path):
    text, empty = write_text(tmp_path), tmp_path / "empty.txt"
    empty.write_text("\n\n")
    output = ("-o", tmp_path / "bert", "--threads", 1)
    refused("invalid_value", "train", "bert", text, "--dim", "10", "--heads", "4", *output)
    assert "'huge' is not one of 'tiny', 'mini'" in refused("usage", "train", "bert", text, "--size", "huge", *output)
    refused("invalid_value", "train", "bert", text, "--mask-rate", "0", *output, got=0.0)
    refused("unreadable_file", "train", "bert", text, "--tokenizer", tmp_path / "nowhere", *output)
    refused("empty_data", "train", "bert", empty, *output)
    assert not (tmp_path / "bert").exists()


def test_two_processes_train_one_model(tmp_path):
    """With torchrun, a time budget ends both processes, and their phase of short sequences, at the same step."""
    write_text(tmp_path)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "firth"]
    command += ["train", "bert", "text.txt", "-o", "bert", *SMALL, "--context-length", "160", "--short-first", "0.5"]
    command += ["--epochs", "1000", "--budget", "3", "--device", "cpu", "--threads", "1"]
    paths = os.pathsep.join([str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "FIRTH_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-1000:]
    assert 0 <= firth.load(tmp_path / "bert").training["finished_epochs"] < 1000
