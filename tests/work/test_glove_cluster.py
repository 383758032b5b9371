"""GloVe on a cluster: the blocks of a diagonal are trained by several workers, and the model is that of one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refusing import refuses

import firth
from firth.core.report import Nothing
from firth.core.run import Run
from firth.core.train import train
from firth.data.corpus import Corpus
from firth.work.executors import Cluster, LocalProcesses, executor

METHOD = firth.GloVe(dim=8, epochs=3, window=4)


class Doing(Nothing):
    """Does something once, when so many pairs were trained."""

    def __init__(self, act: Any, pairs: float) -> None:
        self.act, self.pairs, self.task = act, pairs, ""

    def begin(self, task: str, total: float, unit: str) -> None:
        self.task = task

    def step(self, done: float, **metrics: float) -> None:
        if self.act and self.task.startswith("training") and done >= self.pairs:
            act, self.act = self.act, None
            act()


@pytest.fixture
def text(tmp_path, monkeypatch) -> Corpus:
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("firth.words.glove_training.CHUNK_RECORDS", 40)  # several chunks per diagonal
    words = np.random.default_rng(1).zipf(1.5, 6000) % 90
    path = tmp_path / "text.txt"
    path.write_text("\n".join(" ".join(f"w{word}" for word in row) for row in words.reshape(-1, 10)))
    return Corpus(path)


def tables(model: Any) -> list[bytes]:
    return [vectors.matrix.tobytes() for vectors in model.tables.values()] + [model.biases.tobytes()]


def test_lost_workers_and_resumed_commands_give_the_tables_of_one_process(text, tmp_path):
    """Three workers; 16 parts are not divisible by three."""
    expected = tables(METHOD.fit(text, Run(report=Nothing())))
    three: dict[str, Any] = {"cluster": "processes", "workers": 3}
    with executor(Cluster("processes", 3)) as workers:
        assert isinstance(workers, LocalProcesses)
        report = Doing(lambda: next(iter(workers.processes)).kill(), 1)
        assert tables(METHOD.fit(text, Run(report=report, **three))) == expected
    assert report.act is None

    def stop() -> None:
        raise RuntimeError("stopped")

    pairs = METHOD.fit(text, Run(report=Nothing())).training["epochs"][0]["pairs"]
    with pytest.raises(RuntimeError, match="stopped"):
        train(
            METHOD, text, tmp_path / "model", run=Run(report=Doing(stop, 1.5 * pairs), checkpoint_every=1e-9, **three)
        )
    resumed = train(METHOD, text, tmp_path / "model", run=Run(report=Nothing())).model  # one process resumes
    assert tables(resumed) == expected


def test_a_budget_is_refused(text):
    with refuses("conflicting_options", options="budget and cluster"):
        METHOD.fit(text, Run(cluster="processes", workers=2, budget=5))
