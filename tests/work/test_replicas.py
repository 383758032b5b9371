"""Static vectors trained by several workers, each with a copy of the tables."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusing import refuses

import firth
from firth.core.report import Nothing
from firth.core.run import Run
from firth.core.train import train
from firth.data.corpus import Corpus
from firth.training import replicas
from firth.training.replicas import adaptive_sum, add_pair, bounds, periods_of
from firth.words import window_replicas
from firth.work.executors import Cluster, LocalProcesses, executor

TWO = {"cluster": "processes", "workers": 2, "deterministic": True}


class Doing(Nothing):
    """Does something once, when so much was trained."""

    def __init__(self, act: Callable[[], Any], units: float = 1) -> None:
        self.act, self.units, self.done, self.task = act, units, False, ""

    def begin(self, task: str, total: float, unit: str) -> None:
        self.task = task

    def step(self, done: float, **metrics: float) -> None:
        if self.task.startswith("training") and done >= self.units and not self.done:
            self.done = True
            self.act()


@pytest.fixture
def text(tmp_path, monkeypatch) -> Corpus:
    """Two topics with 100 words each; 40,000 words in all."""
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    rng = random.Random(1)
    lines = []
    for _ in range(4000):
        topic = rng.choice("ab")
        lines.append(" ".join(f"{topic}{min(99, int(rng.paretovariate(0.7)))}" for _ in range(10)))
    (tmp_path / "text.txt").write_text("\n".join(lines))
    return Corpus(tmp_path / "text.txt")


METHOD = firth.SkipGram(dim=16, epochs=3)


def tables(model: Any) -> list[bytes]:
    return [vectors.matrix.tobytes() for vectors in model.tables.values()]


# ---- arithmetic ----


def test_changes_are_added_if_orthogonal_and_averaged_if_equal():
    one = np.array([[3, 0, 0], [1, 2, 2], [0, 0, 0], [2, 0, 0]], np.float32)
    two = np.array([[0, 4, 0], [1, 2, 2], [5, 6, 7], [1, 1, 0]], np.float32)
    # last row: d1·d2 = 2, |d1|² = 4, |d2|² = 2: (1 - 2/8) d1 + (1 - 2/4) d2
    expected = [[3, 4, 0], [1, 2, 2], [5, 6, 7], [2, 0.5, 0]]
    assert np.allclose(add_pair(one, two), expected)


def test_changes_of_several_workers_are_added_pair_by_pair():
    changes = [np.random.default_rng(number).normal(size=(5, 4)).astype(np.float32) for number in range(5)]
    expected = add_pair(add_pair(add_pair(changes[0], changes[1]), add_pair(changes[2], changes[3])), changes[4])
    assert np.array_equal(adaptive_sum(changes), expected)


def test_rows_are_exchanged_after_as_many_steps_as_they_are_seldom():
    assert periods_of(np.array([50, 1, 0.6, 0.5, 0.1])).tolist() == [1, 1, 2, 2, 16]
    assert periods_of(np.zeros(1))[0] > window_replicas.ROUND_STEPS  # only at the end of a round


def test_blocks_cover_a_table():
    assert bounds(10, 4) == [0, 2, 5, 7, 10] and bounds(1, 3) == [0, 0, 0, 1]


# ---- training ----


def test_one_worker_is_one_process(text):
    """Up to rounding: tables are passed on as the sum of their last state and the changes."""
    alone = METHOD.fit(text, Run(threads=1, report=Nothing()))
    worker = METHOD.fit(text, Run(report=Nothing(), cluster="processes", workers=1, deterministic=True))
    assert worker.training["workers"] == 1
    for name, vectors in alone.tables.items():
        assert np.allclose(worker.tables[name].matrix, vectors.matrix, atol=1e-4)
    assert worker.training["loss"] == pytest.approx(alone.training["loss"], rel=1e-4)


@pytest.mark.parametrize(
    "method",
    [
        firth.CBOW(dim=16, epochs=3, loss="hierarchical"),
        firth.SkipGram(dim=16, epochs=10, loss="softmax"),
        firth.FastText(dim=16, epochs=10, maxn=3, buckets=1000, held_out=0.1),
    ],
    ids=lambda method: f"{type(method).__name__}-{method.loss}",
)
def test_losses_and_subwords(method, text):
    three = method.fit(text, Run(report=Nothing(), workers=3, deterministic=True))  # local processes
    assert three.training["trained_loss"] < 0.9 * three.training["untrained_loss"]
    assert method.loss != "negative" or three.training["epochs"][0]["held_out_loss"] > 0
    neighbors = three.vectors.neighbors("a3", 10)
    assert sum(key.startswith("a") for key, _ in neighbors) >= 9


def test_a_killed_worker_is_replaced(text, tmp_path):
    """With the same bytes, although the others had already used what it published."""
    expected = tables(METHOD.fit(text, Run(report=Nothing(), **TWO)))
    with executor(Cluster("processes", 2)) as workers:
        assert isinstance(workers, LocalProcesses)
        killing = Doing(lambda: next(iter(workers.processes)).kill())
        model = METHOD.fit(text, Run(report=killing, **TWO))
    assert killing.done and tables(model) == expected


def test_a_killed_command_resumes(text, tmp_path):
    """It resumes from the last round."""

    def stop() -> None:
        raise RuntimeError("stopped")

    run = {"checkpoint_every": 1e-9, **TWO}
    with pytest.raises(RuntimeError, match="stopped"):
        train(METHOD, text, tmp_path / "model", run=Run(report=Doing(stop, 45_000), **run))
    notes: list[str] = []
    report = Nothing()
    report.note = lambda text, code="": notes.append(code)  # type: ignore[method-assign]
    resumed = train(METHOD, text, tmp_path / "model", run=Run(report=report, **run)).model
    whole = METHOD.fit(text, Run(report=Nothing(), **TWO))
    assert "resumed" in notes and tables(resumed) == tables(whole)


def test_training_continues_from_a_model(text):
    first = METHOD.fit(text, Run(report=Nothing(), **TWO))
    second = METHOD.fit(text, Run(report=Nothing(), **TWO), start=first)
    assert second.training["loss"] < first.training["epochs"][0]["loss"]


def graph_of_two_communities() -> list[tuple[str, str]]:
    rng = random.Random(2)
    return [(f"{side}{rng.randrange(100)}", f"{side}{rng.randrange(100)}") for side in "ab" for _ in range(800)]


def test_walks(tmp_path, monkeypatch):
    """A worker walks from its nodes; one worker does what one process does with the same chunks."""
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path))
    method = firth.Node2Vec(dim=16, walk_length=20, window=3, p=0.5, q=2)
    edges = [*graph_of_two_communities(), ("a1", "b1")]
    monkeypatch.setattr("firth.graphs.walk_training.Training.chunk_steps", 4000)
    monkeypatch.setattr("firth.graphs.walk_replicas.ReplicatedTraining.chunk_steps", 4000)
    alone = method.fit(edges, Run(threads=1, report=Nothing()))
    one = method.fit(edges, Run(cluster="processes", workers=1, deterministic=True, report=Nothing()))
    assert np.allclose(one.vectors.matrix, alone.vectors.matrix, atol=1e-4)
    two, again = (method.fit(edges, Run(report=Nothing(), **TWO)) for _ in range(2))
    assert tables(two) == tables(again)
    assert all(key.startswith("b") for key, _ in two.vectors.neighbors("b7", 10))


def test_ray_gives_the_bytes_of_local_processes_when_a_node_is_lost(ray_cluster, text):
    expected = tables(METHOD.fit(text, Run(report=Nothing(), **TWO)))

    def replace_a_node() -> None:
        ray_cluster.remove_node(next(iter(ray_cluster.worker_nodes)), allow_graceful=False)
        ray_cluster.add_node(num_cpus=1, object_store_memory=80_000_000)

    losing = Doing(replace_a_node)
    model = METHOD.fit(text, Run(report=losing, **{**TWO, "cluster": "ray"}))
    assert losing.done and tables(model) == expected
    with refuses("invalid_value", option="workers", limit=3, got=4):
        METHOD.fit(text, Run(report=Nothing(), cluster="ray", workers=4))


def test_shards_in_threads_give_the_same_tables(text, tmp_path, monkeypatch):
    """The function of a shard depends on its parameters and on the files of the others, wherever it runs."""
    kept: dict[str, Any] = {}
    original = window_replicas.ReplicatedTraining.before_slice

    def first_round(self: Any) -> None:
        original(self)
        if not kept:
            for worker in range(2):
                steps = self.steps(0, self.round[2])
                parameters = {"round": 0, "worker": worker, "seed": self.epoch_seed()}
                kept[str(worker)] = parameters | {"steps": [step[worker] for step in steps]}
            again = {**self.common, "folder": str(tmp_path / "again")}
            (tmp_path / "again").mkdir()
            for path in Path(self.folder).iterdir():
                if path.is_file() and not path.name.startswith("000001"):
                    (tmp_path / "again" / path.name).write_bytes(path.read_bytes())
            out = [tmp_path / "0", tmp_path / "1"]

            def work(worker: int) -> None:
                out[worker].mkdir()
                replica = window_replicas.WindowReplica(again)
                replicas.train_round(replica, again, kept[str(worker)], out[worker])

            threads = [threading.Thread(target=work, args=(worker,)) for worker in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for worker in range(2):
                for path in out[worker].iterdir():
                    assert path.read_bytes() == (Path(self.folder) / path.name).read_bytes(), path.name

    monkeypatch.setattr(window_replicas.ReplicatedTraining, "before_slice", first_round)
    METHOD.fit(text, Run(report=Nothing(), **TWO))
    assert len(kept) == 2


# ---- refusals ----


@pytest.mark.parametrize(("options", "settings"), [("budget", {"budget": 5.0}), ("device=cuda", {"device": "cuda"})])
@pytest.mark.parametrize(
    "method", [METHOD, firth.FastText(), firth.DeepWalk()], ids=lambda method: type(method).__name__
)
def test_settings_that_workers_cannot_follow(method, options, settings):
    with refuses("conflicting_options", options=f"{options} and cluster"):
        method.fit(None, Run(cluster="processes", workers=2, **settings))


def test_tables_larger_than_memory_are_refused_with_their_size(text, monkeypatch):
    monkeypatch.setattr(replicas, "available_memory", lambda: 50_000)
    with refuses("too_large", workers=2, needed=2 * 5 * 64 * len(METHOD.fit(text, Run()).vectors) / 1e9):
        METHOD.fit(text, Run(report=Nothing(), **TWO))
    with refuses("too_large", workers=2):
        firth.DeepWalk().fit(graph_of_two_communities(), Run(report=Nothing(), **TWO))


def test_a_worker_that_is_not_replaced_ends_the_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(replicas, "WAIT_SECONDS", 0.01)
    exchange = replicas.Exchange(tmp_path / "exchange", 0, 2)
    with refuses("lost_process", worker=2, workers=2):
        exchange.publish("rows", np.zeros((2, 2), np.float32))
