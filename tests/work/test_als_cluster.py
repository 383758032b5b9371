"""ALS on a cluster: workers solve ranges of rows, and the model is that of one process."""

from __future__ import annotations

import numpy as np
import pytest

import firth
from firth.core.report import Nothing
from firth.core.run import Run
from firth.recommenders import als_cluster
from firth.work.executors import Cluster, LocalProcesses, executor


def ratings() -> list[tuple[str, str, float]]:
    rng = np.random.default_rng(1)
    columns = (rng.integers(0, 80, 900), rng.integers(0, 60, 900), rng.integers(1, 5, 900))
    return [(f"u{user}", f"i{item}", float(weight)) for user, item, weight in zip(*columns, strict=True)]


@pytest.fixture(autouse=True)
def small_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(als_cluster, "LEAST_ENTRIES", 200)
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))


def files(model: firth.Model, folder) -> dict[str, bytes]:
    model.save(folder)
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


@pytest.mark.parametrize(
    "method",
    [
        firth.ALS(dim=8, epochs=2),
        firth.ALS(dim=8, epochs=2, solver="cholesky"),
        firth.RatingFactors(dim=8, epochs=2, held_out=0),
    ],
)
def test_rows_solved_by_workers_have_the_same_bytes(method, tmp_path):
    one = method.fit(ratings(), Run(report=Nothing()))
    two = method.fit(ratings(), Run(report=Nothing(), cluster="processes", workers=2))
    assert files(one, tmp_path / "one") == files(two, tmp_path / "two")
    assert one.training["loss"] == pytest.approx(two.training["loss"])


def test_a_killed_worker_does_not_change_the_rows(tmp_path):
    class Killing(Nothing):
        killed = False

        def step(self, done: float, **metrics: float) -> None:
            if done and not self.killed:
                self.killed = True
                next(iter(workers.processes)).kill()

    method, report = firth.ALS(dim=8, epochs=2), Killing()
    one = method.fit(ratings(), Run(report=Nothing()))
    with executor(Cluster("processes", 2)) as workers:
        assert isinstance(workers, LocalProcesses)
        two = method.fit(ratings(), Run(report=report, cluster="processes", workers=2))
    assert report.killed and files(one, tmp_path / "one") == files(two, tmp_path / "two")
