"""`firth sweep`: killed again and again it ends as an unbroken one does; what is typed wrongly is told."""

from __future__ import annotations

import json
import time

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


def test_killed_again_and_again_it_ends_as_an_unbroken_one(start, call, text, pairs, tmp_path):
    command = ("sweep", "skipgram", text, "--similarity", pairs, *SWEEP, "--checkpoint-every", 0.1)
    record = tmp_path / "broken" / "sweep.json"

    def trials():
        return len(json.loads(record.read_text())["trials"]) if record.exists() else -1

    for number in range(4):
        before = trials()
        process = start(*command, "-o", tmp_path / "broken", "--json")
        while trials() <= before and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.07 * number)  # at the begin, in the midst and at the end of the next trial
        process.kill()
        process.communicate()
    broken, whole = (json.loads(call(*command, "-o", tmp_path / name, "--json").stdout) for name in ("broken", "whole"))
    assert [trial["options"] for trial in broken["trials"]] == [trial["options"] for trial in whole["trials"]]
    assert [trial["score"] for trial in broken["trials"]] == [trial["score"] for trial in whole["trials"]]
    assert len(whole["trials"]) == 5 and whole["ended"] == "Every combination was tried"
    assert broken["test"] == whole["test"] and broken["best"]["options"] == whole["best"]["options"]
    models = [firth.load(tmp_path / name / "best") for name in ("broken", "whole")]
    assert models[0].vectors.fingerprint() == models[1].vectors.fingerprint()
    assert sorted(path.name for path in (tmp_path / "broken").iterdir()) == ["best", "lock", "sweep.json"]
    firth.verify(tmp_path / "broken" / "best")
    shown = call(*command, "-o", tmp_path / "whole")  # nothing is left to do
    assert shown.exit_code == 0 and "On 150 items that did not choose: chosen" in shown.stdout
    told = json.loads(call("info", tmp_path / "whole", "--json").stdout)
    assert told["kind"] == "sweep" and told["trials"] == 5 and told["best"]["score"] == whole["best"]["score"]
    asked = call("query", "neighbors", tmp_path / "whole", "king")
    assert asked.exit_code == 1 and f"its model is {tmp_path / 'whole' / 'best'}" in asked.stderr


def test_bad_requests(call, text, pairs, tmp_path):
    start = ("sweep", "skipgram", text, "-o", tmp_path / "s", "--budget", 5)
    for arguments, message in (
        ((), "A sweep chooses by one task"),
        (("--similarity", pairs, "--analogies", pairs), "got --similarity, --analogies"),
        (("--similarity", pairs, "--try", "dimm=3"), "no option 'dimm'"),
        (("--similarity", pairs, "--try", "dim=3:x"), "takes whole numbers"),
        (("--similarity", tmp_path / "none.tsv"), "none.tsv"),
        (("--similarity", pairs, "--budget", -1), "above 0"),
        (("--ratings", pairs, "--try", "dim=3"), "None of 2 trials gave a score"),
    ):
        result = call(*start, *arguments)
        assert result.exit_code in (1, 2) and message in result.stderr, result.stderr
    unknown = call("sweep", "skipgramm", text)
    assert unknown.exit_code == 1 and "no method 'skipgramm'. Did you mean 'skipgram'?" in unknown.stderr


@pytest.mark.parametrize("name", sorted(registry.method_classes()))
def test_every_method_has_a_command(name):
    """No two of its flags have one name."""
    made = sweep_command(name, registry.method(name))
    names = [flag for parameter in made.params for flag in (*parameter.opts, *parameter.secondary_opts)]
    assert len(names) == len(set(names))
    assert "--try" in made.get_help(click.Context(made, info_name=name))
