"""`firth sweep`: resuming after kills, and errors."""

from __future__ import annotations

import json

import click
import pytest

import firth
from firth.cli.sweep import sweep_command
from firth.core import registry
from firth.data.world import World

SWEEP = ("--dim", 20, "--try", "window=2,8", "--try", "epochs=2,14", "--deterministic", "--threads", 1, "--budget", 90)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in World(seed=5).similarities(300)))
    return path


def test_a_killed_sweep_equals_an_uninterrupted_one(start, call, refused, text, pairs, tmp_path):
    command = ("sweep", "skipgram", text, "--similarity", pairs, *SWEEP, "--checkpoint-every", 0.1)
    record = tmp_path / "broken" / "sweep.json"

    def trials():
        return len(json.loads(record.read_text())["trials"]) if record.exists() else -1

    for number in range(4):
        before = trials()
        process = start(*command, "-o", tmp_path / "broken", "--progress", "json")
        while trials() <= before and process.stderr.readline():
            pass
        for _ in range(4 * number):  # events: at the start, in the middle and at the end of the next trial
            process.stderr.readline()
        process.kill()
        process.communicate()
    broken, whole = (json.loads(call(*command, "-o", tmp_path / name, "--json").stdout) for name in ("broken", "whole"))
    assert [trial["options"] for trial in broken["trials"]] == [trial["options"] for trial in whole["trials"]]
    assert [trial["score"] for trial in broken["trials"]] == [trial["score"] for trial in whole["trials"]]
    assert len(whole["trials"]) == 5 and whole["ended"] == "Every combination was tried"
    assert broken["test"] == whole["test"] and broken["best"]["options"] == whole["best"]["options"]
    models = [firth.load(tmp_path / name / "best", firth.SkipGram) for name in ("broken", "whole")]
    assert models[0].vectors.fingerprint() == models[1].vectors.fingerprint()
    assert sorted(path.name for path in (tmp_path / "broken").iterdir()) == ["best", "lock", "sweep.json"]
    firth.verify(tmp_path / "broken" / "best")
    shown = call(*command, "-o", tmp_path / "whole")  # nothing remains to be done
    assert shown.exit_code == 0 and "On 150 held-out test items" in shown.stdout
    fields = json.loads(call("info", tmp_path / "whole", "--json").stdout)
    assert fields["kind"] == "sweep" and fields["trials"] == 5 and fields["best"]["score"] == whole["best"]["score"]
    refused("wrong_input", "query", "neighbors", tmp_path / "whole", "king", best=tmp_path / "whole" / "best")


def test_errors(refused, text, pairs, tmp_path):
    command = ("sweep", "skipgram", text, "-o", tmp_path / "s", "--budget", 5)
    assert "got none" in refused("usage", *command)
    message = refused("usage", *command, "--similarity", pairs, "--analogies", pairs)
    assert "got --similarity, --analogies" in message
    refused("unknown_option", *command, "--similarity", pairs, "--try", "dimm=3")
    refused("invalid_value", *command, "--similarity", pairs, "--try", "dim=3:x")
    refused("unreadable_file", *command, "--similarity", tmp_path / "none.tsv", path=tmp_path / "none.tsv")
    refused("invalid_value", *command, "--similarity", pairs, "--budget", -1, got=-1.0)
    refused("sweep_failed", *command, "--recommendations", pairs, "--try", "dim=3")
    assert "'skipgram'" in refused("unknown_method", "sweep", "skipgramm", text, name="skipgramm")


@pytest.mark.parametrize("name", sorted(registry.method_classes()))
def test_every_method_has_a_command(name):
    """All of its flags have different names."""
    command = sweep_command(name, registry.method(name))
    names = [flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)]
    assert len(names) == len(set(names))
    assert "--try" in command.get_help(click.Context(command, info_name=name))
