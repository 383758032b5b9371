"""firth train bert."""

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
    """Documents with blank lines between them, a sentence a line."""
    documents = [document.text.replace(" . ", "\n") for document in World(seed=5).topics(60)]
    (folder / "text.txt").write_text("\n\n".join(documents))
    return folder / "text.txt"


def test_a_text_becomes_a_bert(call, tmp_path):
    text, folder = write_text(tmp_path), tmp_path / "bert"
    result = call("train", "bert", text, "-o", folder, *SMALL, "--threads", 1)
    assert result.exit_code == 0 and "tokens/s" in result.output and "masked tokens" in result.output
    training = json.loads((folder / "training.json").read_text())
    assert training["documents"] == 60 and training["sentences"] == 360
    assert {"share", "held_out_loss", "perplexity", "masked_accuracy", "next_accuracy"} == training["held_out"][
        0
    ].keys()
    again = call("train", "bert", text, "-o", folder, *SMALL, "--threads", 1)
    assert again.exit_code == 0 and "finished already" in again.output


def test_what_goes_wrong_is_one_line(call, tmp_path):
    text, empty = write_text(tmp_path), tmp_path / "empty.txt"
    empty.write_text("\n\n")
    for arguments, why in (
        ((text, "--dim", "10", "--heads", "4"), "dim must be a multiple of heads; got dim=10 and heads=4"),
        ((text, "--size", "huge"), "'huge' is not one of 'tiny', 'mini', 'small', 'base'"),
        ((text, "--mask-rate", "0"), "mask_rate must be at least 0.001; got 0.0"),
        ((text, "--tokenizer", tmp_path / "nowhere"), "Cannot read"),
        ((empty,), "empty"),
    ):
        result = call("train", "bert", *arguments, "-o", tmp_path / "bert", "--threads", 1)
        assert result.exit_code in (1, 2) and why in result.stderr, result.stderr
        assert "Traceback" not in result.stderr and not (tmp_path / "bert").exists()


def test_two_processes_train_one_model(tmp_path):
    """torchrun starts them; a budget of seconds takes both to long sequences, and ends both, at the same step."""
    write_text(tmp_path)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "firth"]
    command += ["train", "bert", "text.txt", "-o", "bert", *SMALL, "--context-length", "160", "--short-first", "0.5"]
    command += ["--epochs", "1000", "--budget", "3", "--device", "cpu", "--threads", "1"]
    paths = os.pathsep.join([str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "FIRTH_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-1000:]
    assert 0 <= firth.load(tmp_path / "bert").training["finished_epochs"] < 1000
