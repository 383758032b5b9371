"""Interrupted runs: killed, stopped, out of disk space; and two runs at once."""

from __future__ import annotations

import json
import resource
import signal
import time
from pathlib import Path

import pytest

import firth
from firth.core.storage import read_arrays

# Seconds of training, so that there is time for a kill (one thread: two wait for each other on a busy machine).
OPTIONS = ("--dim", 50, "--epochs", 100, "--deterministic", "--threads", 1, "--checkpoint-every", 0.2)
FILES = ("vectors.safetensors", "vocabulary.json")


def wait_for(condition, process):
    """Wait until `condition` holds; the process must not end before."""
    end = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.01)


def finish(process, code=0):
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    return out, err


def content(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in FILES]


def test_a_run_killed_and_stopped_equals_an_unbroken_one(start, text, tmp_path):
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    command = ("train", "skipgram", text, *OPTIONS)
    state = broken / ".unfinished" / "checkpoint.json"
    for end, threads in ((signal.SIGKILL, 2), (signal.SIGINT, 1), (signal.SIGKILL, 1)):
        before = state.read_bytes() if state.exists() else b""
        process = start(*command, "-o", broken, "--threads", threads, "--progress", "json")
        while not state.exists() or state.read_bytes() == before:
            assert process.stderr.readline()
        process.stderr.readline()  # the next event after the checkpoint: in the middle of training
        process.send_signal(end)
        finish(process, code=130 if end == signal.SIGINT else -end)
        assert not (broken / "config.json").exists()
        text.touch()  # still the same data
    out, err = finish(start(*command, "-o", broken, "--json"))
    assert json.loads(out.splitlines()[-1])["status"] == "resumed" and err
    finish(start(*command, "-o", whole))
    assert content(broken) == content(whole)
    assert sorted(path.name for path in broken.iterdir()) == sorted(path.name for path in whole.iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "whole"]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_leaves_a_checkpoint(start, call, refused, text, tmp_path, stop):
    command = ("train", "cbow", text, "-o", tmp_path / "m", "--dim", 50, "--epochs", 200)
    process = start(*command, "--progress", "json")
    while json.loads(process.stderr.readline())["event"] != "step":
        pass
    refused("locked", *command)
    process.send_signal(stop)
    _, err = finish(process, code=130)
    assert err.splitlines()[-1] == "firth: stopped; run the same command again to resume."
    unfinished = json.loads(call("info", tmp_path / "m", "--json").output)
    assert unfinished["kind"] == "unfinished run" and unfinished["resume"].startswith("firth train cbow")
    refused("other_run", "query", "neighbors", tmp_path / "m", "king", path=tmp_path / "m")
    assert "epochs was 200, now 199" in refused("other_run", *command[:-1], 199)
    short = call(*command[:-1], 1, "--overwrite", "--json")
    assert json.loads(short.stdout)["status"] == "trained" and len(firth.load(tmp_path / "m").training["epochs"]) == 1


def test_stopped_before_the_first_checkpoint(start, text, tmp_path):
    process = start("train", "skipgram", "-", "-o", tmp_path / "m")
    wait_for((tmp_path / "m" / ".unfinished" / "command.json").exists, process)
    process.send_signal(signal.SIGINT)
    _, err = finish(process, code=130)
    assert err == "firth: stopped before the first checkpoint; nothing was saved.\n" and not list(tmp_path.iterdir())


def test_the_same_command_trains_once(call, refused, text, tmp_path):
    command = ("train", "skipgram", text, "-o", tmp_path / "m", "--dim", 8, "--epochs", 1)
    first = call(*command)
    before = content(tmp_path / "m")
    again = call(*command, "--json")
    assert first.exit_code == again.exit_code == 0
    assert json.loads(again.stdout)["status"] == "already finished" and content(tmp_path / "m") == before
    message = refused("other_run", *command, "--seed", 2)
    assert "seed was 1, now 2" in message and "--overwrite" in message
    assert content(tmp_path / "m") == before
    replaced = call(*command, "--seed", 2, "--overwrite")
    assert replaced.exit_code == 0 and content(tmp_path / "m")[0] != before[0]


def test_a_full_disk_leaves_the_old_model(start, call, text, tmp_path):
    command = ("train", "skipgram", text, "-o", tmp_path / "m", "--epochs", 1)
    assert call(*command, "--dim", 8).exit_code == 0
    before = content(tmp_path / "m")

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    # 800 words of 400 numbers do not fit.
    process = start(*command, "--dim", 400, "--overwrite", preexec_fn=small_files)
    out, err = finish(process, code=1)
    assert out == "" and err.startswith("firth: Cannot write ") and "File too large" in err and err.count("\n") == 1
    assert content(tmp_path / "m") == before and call("verify", tmp_path / "m").exit_code == 0
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(
        ["m", "README.md", "config.json", "training.json", *FILES]
    )


def test_a_full_disk_keeps_the_previous_checkpoint(start, text, tmp_path):
    command = ("train", "skipgram", text, "-o", tmp_path / "m", *OPTIONS)
    state = tmp_path / "m" / ".unfinished" / "checkpoint.json"
    process = start(*command)
    wait_for(state.exists, process)
    process.kill()
    process.wait()

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    before = state.read_bytes()
    _, err = finish(start(*command, preexec_fn=small_files), code=1)
    assert "File too large" in err and state.read_bytes() == before
    assert set(read_arrays(state.with_name(json.loads(before)["arrays"]))) == {"inputs", "outputs"}


@pytest.mark.parametrize("folder", ["file/model", "file"])
def test_a_folder_that_cannot_be_written(refused, text, tmp_path, folder):
    (tmp_path / "file").write_text("kept")
    code = "unwritable_file" if folder == "file/model" else "unsafe_output"
    refused(code, "train", "skipgram", text, "-o", tmp_path / folder, "--overwrite")
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "kept"


def test_an_unwritable_output_is_reported_before_training(start, text):
    """The training itself would take years."""
    process = start("train", "skipgram", text, "-o", "/proc/firth-model", "--epochs", 10**9)
    _, err = finish(process, code=1)
    assert err.startswith("firth: Cannot write /proc/firth-model")


def test_other_files_are_never_replaced(refused, text, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "thesis.tex").write_text("years")
    for more in ((), ("--overwrite",)):
        assert "thesis.tex" in refused("unsafe_output", "train", "skipgram", text, "-o", tmp_path / "m", *more)
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["thesis.tex"]
