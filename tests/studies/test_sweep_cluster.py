"""`sweep` on a cluster: the trials of one process, failed and lost trials, driver and workers that die."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from refusing import refuses
from sweep_inputs import opened

import firth
from firth.core.model import HasVectors
from firth.data.world import World
from firth.studies import sweep
from firth.studies.sweeping import Opener
from firth.studies.sweeping import sweep as the_sweep
from firth.work.executors import Cluster

TWO = Cluster("processes", workers=2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("\n".join(World(seed=5).sentences(200)))
    return tmp_path


def run_sweep(folder: Path, name: str, cluster: Cluster = Cluster(), **more: Any) -> firth.studies.Sweep:
    space = more.pop("space", {"dim": [8, 9, 12], "window": [2, 3]})
    arguments = {"folder": str(folder), **more}
    inputs = opened(**arguments)
    opener = Opener(opened, arguments, [folder / "text.txt"])
    settings: dict[str, Any] = {"space": space, "budget": 100, "run": inputs.run, "cluster": cluster}
    return sweep(*inputs[:3], folder / name, opener=opener, **settings)


def what(result: firth.studies.Sweep) -> Any:
    assert isinstance(result.model, HasVectors)
    trials = [(trial.number, dict(trial.options), trial.score, trial.problem) for trial in result.trials]
    scores = {name: score.to_json() for name, score in result.test.scores.items()}
    return trials, scores, result.model.vectors.fingerprint(), result.ended


def test_workers_have_the_trials_of_one_process(folder):
    one, two = run_sweep(folder, "one"), run_sweep(folder, "two", TWO)
    assert what(one) == what(two) and len(one.trials) == 7 and len(one.test.scores) == 2
    assert sorted(path.name for path in (folder / "two").iterdir()) == ["best", "lock", "sweep.json"]
    firth.verify(folder / "two" / "best")
    log = (folder / "log").read_text()
    assert len({line.split()[1] for line in log.splitlines()}) == 3  # this process and two workers
    assert what(run_sweep(folder, "two", TWO)) == what(two)  # nothing is left to be done
    assert what(run_sweep(folder, "two")) == what(two)


def test_a_trial_that_fails_is_reported_once_and_one_that_kills_its_workers_too(folder):
    space = {"dim": [9, 12], "min_count": [1, 1_000_000]}
    result = run_sweep(folder, "s", TWO, space=space, deadly=9)
    failed = {trial.number: trial for trial in result.trials if trial.score is None}
    problems = {(trial.options["dim"], trial.options["min_count"]): trial.problem for trial in failed.values()}
    assert set(problems) == {(9, 1), (9, 1_000_000), (12, 1_000_000)} and len(result.trials) == 5
    assert "SIGKILL" in problems[9, 1] and "SIGKILL" not in problems[12, 1_000_000]
    assert str(result).count("SIGKILL") == 1
    assert [line.split()[0] for line in (folder / "log").read_text().splitlines()].count("9") == 3  # attempts


def test_a_killed_sweep_keeps_its_trials(folder):
    """The record has gaps, and the model of a trial is finished, but not recorded."""
    whole = run_sweep(folder, "whole", TWO)
    run_sweep(folder, "broken", TWO)
    record = folder / "broken" / "sweep.json"
    kept = json.loads(record.read_text())
    best = what(whole)[0].index(max(what(whole)[0], key=lambda trial: trial[2]))
    lost = [number for number in (1, 4, best) if number != best][:2]
    kept["trials"] = [trial for trial in kept["trials"] if trial["number"] - 1 not in lost]
    record.write_text(json.dumps(kept))
    log = len((folder / "log").read_text().splitlines())
    again = run_sweep(folder, "broken", TWO)
    assert what(again) == what(whole)
    assert len((folder / "log").read_text().splitlines()) - log == len(lost) + 1  # trials, and the test part


def test_python_needs_to_know_how_workers_open_the_data(folder):
    inputs = opened(str(folder))
    with refuses("missing_option", option="cluster", missing="opener"):
        the_sweep(*inputs[:3], folder / "s", cluster=TWO)


def test_a_file_that_workers_do_not_see(ray_cluster, folder, monkeypatch):
    """And the same sweep on Ray."""
    import firth.work.job as jobs

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "size_of", lambda path: 7)
        with refuses("not_shared", expected="7 bytes"):
            run_sweep(folder, "ray", Cluster("ray"))
    assert what(run_sweep(folder, "ray", Cluster("ray"))) == what(run_sweep(folder, "one"))
