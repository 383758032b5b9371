"""`firth evaluate`, `compare models` and `sweep` with workers: the results of one process; a failing model's name."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import firth
from firth.data.world import World

TWO = ("--cluster", "processes", "--workers", 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models of words, pairs of words, and labeled texts."""
    made = tmp_path_factory.mktemp("evaluated")
    world = World(seed=5)
    lines = list(world.sentences(3_000))
    (made / "text.txt").write_text("\n".join(lines) + "\n")
    (made / "pairs.tsv").write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in world.similarities(200)))
    for dim in (10, 20):
        firth.SkipGram(dim=dim, epochs=2).fit(lines, firth.Run(threads=1)).save(made / f"words-{dim}")
    with (made / "docs.csv").open("w") as file:
        file.write("heading,body,kind\n")
        for a, b in zip(lines[:400:2], lines[1:400:2], strict=True):
            file.write(f'"{a}","{b}",{"king" if "king" in b else "other"}\n')
    return made


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are relative."""
    monkeypatch.chdir(folder)


def output(result: Any) -> str:
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def test_models_are_evaluated_as_by_one_process(call):
    command = ["evaluate", "similarity", "words-10", "words-20", "pairs.tsv"]
    one, two = (json.loads(output(call(*command, "--json", *more))) for more in ((), TWO))
    assert one == two and list(one) == ["words-10", "words-20"]
    assert output(call(*command)) == output(call(*command, *TWO))


def test_a_failing_model_is_named_once(call):
    result = call("evaluate", "similarity", "words-10", "words-30", "pairs.tsv", "--json", *TWO)
    errors = [json.loads(line)["error"] for line in result.stderr.splitlines() if line.startswith('{"error"')]
    assert [error["code"] for error in errors] == ["not_found"] and result.exit_code == 1 and result.stdout == ""
    assert errors[0]["values"]["shard"] == "words-30" and errors[0]["message"].startswith("words-30: ")


def test_a_cluster_needs_files_and_a_place(call, refused):
    refused("missing_option", "evaluate", "similarity", "words-10", "pairs.tsv", "--workers", 2)
    refused("conflicting_options", "evaluate", "similarity", "words-10", "-", *TWO, option="--cluster")
    refused("conflicting_options", "sweep", "skipgram", "-", "-o", "s", "--similarity", "pairs.tsv", *TWO)


def test_models_are_compared_as_by_one_process(call):
    """Except for the speed, which the recommendation considers."""
    columns = ["--column", "body", "--title", "heading", "--label", "kind", "--sample-size", 150]
    command = ["compare", "models", "words-10", "words-20", "--data", "docs.csv", *columns, "--similarity", "pairs.tsv"]
    one, two = (json.loads(output(call(*command, "--json", *more))) for more in ((), TWO))
    assert one["measures"] == two["measures"] and len(one["measures"]) >= 4
    for model in ("words-10", "words-20"):
        changing = {"speed", "texts_per_second"}
        ours, theirs = ({k: v for k, v in each["models"][model].items() if k not in changing} for each in (one, two))
        assert ours == theirs


def test_models_are_trained_again_by_workers(call):
    """For the measure of stability; trainings with several threads differ from run to run."""
    command = ["compare", "models", "words-10", "words-20", "--data", "text.txt", "--sample-size", 20, "--retrain", 2]
    found = json.loads(output(call(*command, "--json", *TWO)))
    [stability] = [measure for measure in found["measures"] if measure["name"] == "stability"]
    assert {name: 0 < score["value"] < 1 for name, score in stability["scores"].items()} == {
        "words-10": True,
        "words-20": True,
    }


def test_models_in_memory_are_refused(folder):
    from refusing import refuses

    from firth.studies import compare
    from firth.work.executors import Cluster

    model = firth.load(folder / "words-10")
    texts = (folder / "text.txt").read_text().splitlines()[:50]
    with refuses("unsupported_cluster"):
        compare([model, folder / "words-20"], texts, cluster=Cluster("processes", workers=2))


def test_a_sweep_with_workers_and_a_killed_one(call, start, folder):
    """The same trials and scores as in one process, also if the command is killed while two trials are trained."""
    tries = ["--try", "window=2,8", "--try", "epochs=2,9", "--dim", 8, "--deterministic", "--threads", 1]
    words = ["sweep", "skipgram", "text.txt", "--similarity", "pairs.tsv", *tries, "--budget", 90]
    words += ["--checkpoint-every", 0.1, "-o"]
    process = start(*words, "two", *TWO, "--progress", "json")
    record = folder / "two" / "sweep.json"
    while not (record.exists() and json.loads(record.read_text())["trials"]):
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.communicate()
    one, two = (json.loads(output(call(*words, name, *more, "--json"))) for name, more in (("one", ()), ("two", TWO)))
    assert [(each["options"], each["score"]) for each in one["trials"]] == [
        (each["options"], each["score"]) for each in two["trials"]
    ]
    assert one["test"] == two["test"] and one["ended"] == two["ended"] and len(two["trials"]) == 5
    assert sorted(path.name for path in (folder / "two").iterdir()) == ["best", "lock", "sweep.json"]
