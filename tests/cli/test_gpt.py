"""firth train gpt, generate, attention."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import firth
from firth.data.world import World

SMALL = [
    "--layers",
    "1",
    "--dim",
    "16",
    "--heads",
    "2",
    "--context",
    "30",
    "--vocabulary",
    "300",
    "--epochs",
    "2",
    "--batch-tokens",
    "512",
    "--threads",
    "1",
]


@pytest.fixture(scope="module")
def writer(tmp_path_factory) -> Path:
    from click.testing import CliRunner

    from firth.cli.main import cli

    folder = tmp_path_factory.mktemp("gpt")
    (folder / "text.txt").write_text("\n".join(World(seed=5).sentences(300)))
    result = CliRunner().invoke(cli, ["train", "gpt", str(folder / "text.txt"), "-o", str(folder / "gpt"), *SMALL])
    assert result.exit_code == 0, result.output
    assert "tokens/s" in result.output and f"Next: firth generate text {folder / 'gpt'} PROMPT" in result.output
    return folder / "gpt"


def test_generate_writes_after_the_prompt(call, writer):
    result = call("generate", "text", writer, "the king", "--tokens", 8, "--seed", 2)
    assert result.exit_code == 0 and result.stdout.startswith("the king") and result.stdout.endswith("\n")
    assert result.stdout == call("generate", "text", writer, "the king", "--tokens", 8, "--seed", 2).stdout
    told = json.loads(call("generate", "text", writer, "the king", "--tokens", 8, "--seed", 2, "--json").stdout)
    assert told["prompt"] == "the king" and "the king" + told["text"] + "\n" == result.stdout


@pytest.fixture(scope="module")
def ends_at_once(tmp_path_factory) -> Path:
    """Trained on two lines again and again: behind each it has only ever seen the end."""
    folder = tmp_path_factory.mktemp("lines")
    method = firth.GPT(layers=1, dim=16, heads=2, context=32, vocabulary=300, batch_tokens=512, dropout=0)
    method = replace(method, epochs=12, learning_rate=0.01)
    with pytest.warns(firth.FirthWarning):  # so little text gives fewer tokens
        model = method.fit(["the king is old", "the queen is young"] * 150, firth.Run(threads=1, device="cpu"))
    return model.save(folder / "gpt")


def test_an_empty_continuation_is_explained(call, ends_at_once):
    command = ("generate", "text", ends_at_once, "the king is old", "--temperature", 0)
    result = call(*command, "--json")
    assert json.loads(result.stdout)["text"] == ""
    note = json.loads(result.stderr)
    assert note["event"] == "note" and note["code"] == "empty_continuation"
    assert "--unit block" in note["text"] and "5 tokens" in note["text"]  # what its documents have on average
    plain = call(*command)
    assert plain.stdout == "the king is old\n" and plain.stderr == f"note: {note['text']}\n"
    assert json.loads(call(*command, "--stop", "zzz", "--json").stderr)["code"] == "empty_continuation"


def test_what_was_asked_to_be_empty_is_not_explained(call, ends_at_once):
    for words in (("the king is old", "--tokens", 0), ("the king", "--stop", " is"), ("the king",)):
        assert call("generate", "text", ends_at_once, *words, "--temperature", 0).stderr == ""


def test_as_much_is_written_as_there_is_room_for(call, writer):
    assert call("generate", "text", writer, "the king").exit_code == 0
    told = call("generate", "text", writer, "the king sleeps", "--temperature", 0, "--json")
    room = 30 - len(firth.load(writer).ids("the king sleeps")) + 2
    assert (
        told.stdout
        == call("generate", "text", writer, "the king sleeps", "--temperature", 0, "--tokens", room, "--json").stdout
    )
    assert call("generate", "text", writer, "the king sleeps", "--tokens", room + 1).exit_code == 1


def test_attention_as_table_json_picture_and_page(call, writer, tmp_path):
    table = call("inspect", "attention", writer, "the king").stdout
    assert table.startswith("layer 1, mean of its heads") and "the  " in table
    told = json.loads(call("inspect", "attention", writer, "the king", "--json").stdout)
    assert len(told["weights"]) == 1 and len(told["weights"][0]) == 2 and told["keys"][0] == "<|endoftext|>"
    head = json.loads(call("inspect", "attention", writer, "the king", "--layer", 1, "--head", 2, "--json").stdout)
    assert head["weights"] == told["weights"][0][1] and (head["layer"], head["head"]) == (1, 2)
    drawn = call(
        "inspect", "attention", writer, "the king", "--layer", 1, "--head", 2, "-o", tmp_path / "page.html", "--json"
    )
    assert json.loads(drawn.stdout) == {**head, "output": str(tmp_path / "page.html")}
    assert '"first":[0,1]' in (tmp_path / "page.html").read_text()
    for name in ("heads.png", "heads.svg", "heads.html"):
        assert call("inspect", "attention", writer, "the king", "-o", tmp_path / name).stdout == f"{tmp_path / name}\n"
        assert (tmp_path / name).stat().st_size > 1000


def test_what_goes_wrong_is_one_line(call, writer, model, tmp_path):
    for arguments, why in (
        (("generate", "text", writer, "the king", "--tokens", 100), "do not fit the context of 30"),
        (("generate", "text", writer, "--temperature", -1), "temperature must be at least 0; got -1.0"),
        (("generate", "text", model, "the king"), "does not write text (skipgram)"),
        (("inspect", "attention", model, "the king"), "does not attend (skipgram)"),
        *(
            (("inspect", "attention", writer, "the king", *place, *form), rule)
            for form in ((), ("--json",), ("-o", tmp_path / "a.png"), ("-o", tmp_path / "a.html"))
            for place, rule in (
                (("--layer", 3), "layer must be from 1 to 1; got 3"),
                (("--layer", 0), "layer must be from 1 to 1; got 0"),
                (("--layer", -1), "layer must be from 1 to 1; got -1"),
                (("--layer", 1, "--head", 0), "head must be from 1 to 2; got 0"),
                (("--head", 2), "head=2 needs the layer it belongs to"),
            )
        ),
        (("inspect", "attention", writer, "the king", "a pair"), "pair is for translators"),
    ):
        result = call(*arguments)
        assert result.exit_code == 1 and why in result.stderr and result.stderr.count("\n") == 1
        assert result.stdout == "" and not list(tmp_path.iterdir())


def test_two_processes_train_one_model(tmp_path):
    """torchrun starts them; one tells and writes, and a budget of seconds ends both at the same step."""
    (tmp_path / "text.txt").write_text("\n".join(World(seed=5).sentences(300)))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "firth"]
    command += ["train", "gpt", "text.txt", "-o", "gpt", *SMALL, "--epochs", "1000", "--budget", "2", "--device", "cpu"]
    paths = os.pathsep.join([str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "FIRTH_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-1000:]
    assert done.stdout.count("Next: firth generate text gpt PROMPT") == 1
    assert 0 < firth.load(tmp_path / "gpt").training["finished_epochs"] < 1000
