"""GPT on the command line: train, generate text, inspect attention."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
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
    "--context-length",
    "30",
    "--vocabulary-size",
    "300",
    "--epochs",
    "2",
    "--batch-tokens",
    "512",
    "--threads",
    "1",
]


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from click.testing import CliRunner

    from firth.cli.main import cli

    folder = tmp_path_factory.mktemp("gpt")
    (folder / "text.txt").write_text("\n".join(World(seed=5).sentences(300)))
    result = CliRunner().invoke(cli, ["train", "gpt", str(folder / "text.txt"), "-o", str(folder / "gpt"), *SMALL])
    assert result.exit_code == 0, result.output
    assert "tokens/s" in result.output and f"Next: firth generate text {folder / 'gpt'} PROMPT" in result.output
    return folder / "gpt"


def test_generate_text_continues_the_prompt(call, writer):
    result = call("generate", "text", writer, "the king", "--max-new-tokens", 8, "--seed", 2)
    assert result.exit_code == 0 and result.stdout.startswith("the king") and result.stdout.endswith("\n")
    assert result.stdout == call("generate", "text", writer, "the king", "--max-new-tokens", 8, "--seed", 2).stdout
    generated = json.loads(
        call("generate", "text", writer, "the king", "--max-new-tokens", 8, "--seed", 2, "--json").stdout
    )
    assert generated["prompt"] == "the king" and "the king" + generated["text"] + "\n" == result.stdout


@pytest.fixture(scope="module")
def ends_at_once(tmp_path_factory) -> Path:
    """A model trained on two lines only, so that the end follows each of them."""
    folder = tmp_path_factory.mktemp("lines")
    method = firth.GPT(layers=1, dim=16, heads=2, context_length=32, vocabulary_size=300, batch_tokens=512, dropout=0)
    method = replace(method, epochs=12, learning_rate=0.01)
    with pytest.warns(firth.FirthWarning):  # a small text gives fewer tokens
        model = method.fit(["the king is old", "the queen is young"] * 150, firth.Run(threads=1, device="cpu"))
    return model.save(folder / "gpt")


def test_an_empty_continuation_is_explained(call, ends_at_once):
    command = ("generate", "text", ends_at_once, "the king is old", "--temperature", 0)
    result = call(*command, "--json")
    assert json.loads(result.stdout)["text"] == ""
    note = json.loads(result.stderr)
    assert note["event"] == "note" and note["code"] == "empty_continuation"
    assert "--unit block" in note["text"] and "5 tokens" in note["text"]  # the average length of its documents
    plain = call(*command)
    assert plain.stdout == "the king is old\n" and plain.stderr == f"note: {note['text']}\n"
    assert json.loads(call(*command, "--stop", "zzz", "--json").stderr)["code"] == "empty_continuation"


def test_a_requested_empty_continuation_is_not_explained(call, ends_at_once):
    for words in (("the king is old", "--max-new-tokens", 0), ("the king", "--stop", " is"), ("the king",)):
        assert call("generate", "text", ends_at_once, *words, "--temperature", 0).stderr == ""


def test_the_context_length_limits_the_text(call, writer):
    assert call("generate", "text", writer, "the king").exit_code == 0
    generated = call("generate", "text", writer, "the king sleeps", "--temperature", 0, "--json")
    room = 30 - len(firth.load(writer, firth.GPT).ids("the king sleeps")) + 2
    assert (
        generated.stdout
        == call(
            "generate", "text", writer, "the king sleeps", "--temperature", 0, "--max-new-tokens", room, "--json"
        ).stdout
    )
    assert call("generate", "text", writer, "the king sleeps", "--max-new-tokens", room + 1).exit_code == 1


def test_attention_as_table_json_picture_and_page(call, writer, tmp_path):
    table = call("inspect", "attention", writer, "the king").stdout
    assert table.startswith("layer 1, mean of its heads") and "the  " in table
    attention = json.loads(call("inspect", "attention", writer, "the king", "--json").stdout)
    assert (
        len(attention["weights"]) == 1 and len(attention["weights"][0]) == 2 and attention["keys"][0] == "<|endoftext|>"
    )
    head = json.loads(call("inspect", "attention", writer, "the king", "--layer", 1, "--head", 2, "--json").stdout)
    assert head["weights"] == attention["weights"][0][1] and (head["layer"], head["head"]) == (1, 2)
    drawn = call(
        "inspect", "attention", writer, "the king", "--layer", 1, "--head", 2, "-o", tmp_path / "page.html", "--json"
    )
    assert json.loads(drawn.stdout) == {**head, "output": str(tmp_path / "page.html")}
    assert '"first":[0,1]' in (tmp_path / "page.html").read_text()
    for name in ("heads.png", "heads.svg", "heads.html"):
        assert call("inspect", "attention", writer, "the king", "-o", tmp_path / name).stdout == f"{tmp_path / name}\n"
        assert (tmp_path / name).stat().st_size > 1000


def test_errors(refused, writer, model, tmp_path):
    refused("text_too_long", "generate", "text", writer, "the king", "--max-new-tokens", 100)
    refused("invalid_value", "generate", "text", writer, "--temperature", -1, got=-1.0)
    refused("unsupported_model", "generate", "text", model, "the king", path=model, method="skipgram")
    refused("unsupported_model", "inspect", "attention", model, "the king", path=model, method="skipgram")
    attention = ("inspect", "attention", writer, "the king")
    for output in ((), ("-o", tmp_path / "a.png"), ("-o", tmp_path / "a.html")):
        for layer in (3, 0, -1):
            refused("invalid_value", *attention, "--layer", layer, *output, got=layer)
        refused("invalid_value", *attention, "--layer", 1, "--head", 0, *output, got=0)
        refused("missing_option", *attention, "--head", 2, *output)
    refused("unsupported_model", *attention, "a pair")
    assert not list(tmp_path.iterdir())


def test_two_processes_train_one_model(tmp_path):
    """With torchrun, one process prints and writes, and a time budget ends both at the same step."""
    (tmp_path / "text.txt").write_text("\n".join(World(seed=5).sentences(300)))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "firth"]
    command += ["train", "gpt", "text.txt", "-o", "gpt", *SMALL, "--epochs", "1000", "--budget", "2", "--device", "cpu"]
    paths = os.pathsep.join([str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "FIRTH_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-1000:]
    assert done.stdout.count("Next: firth generate text gpt PROMPT") == 1
    assert 0 < firth.load(tmp_path / "gpt").training["finished_epochs"] < 1000


def test_embedding_from_a_layer(call, refused, writer, tmp_path):
    model = firth.load(writer, firth.GPT)
    (tmp_path / "texts.txt").write_text("the king rules\nthe river flows\n")
    rows = {}
    for layer in ("0", "-1", "-2"):
        result = call("embed", writer, tmp_path / "texts.txt", "-o", tmp_path / f"{layer}.npy", "--layers", layer)
        assert result.exit_code == 0, result.output
        rows[layer] = np.load(tmp_path / f"{layer}.npy")
        expected = model.embed(["the king rules", "the river flows"], layer=int(layer))
        np.testing.assert_allclose(rows[layer], expected, atol=1e-6)
    np.testing.assert_array_equal(rows["0"], rows["-2"])  # one block: its input is layer 0
    assert not np.allclose(rows["0"], rows["-1"])
    embed = ("embed", writer, tmp_path / "texts.txt", "-o", tmp_path / "refused.npy", "--layers")
    refused("invalid_value", *embed, "0,1", option="--layers", got="0,1")
    refused("invalid_value", *embed, "7", option="layer", got=7)
