"""The native BPR kernel against its NumPy twin, the gradient and the sampling probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from near import near
from scipy.sparse import random as random_sparse

from firth import kernels
from firth.data.interactions import rows_of
from firth.kernels.bpr import Task, TwinTrainer, native_trainer
from firth.kernels.predict import alias_table, new_table

USERS, ITEMS = 31, 23


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return str(request.param)


def make_task(dim: int = 20, regularization: float = 0.02, density: float = 0.2) -> Task:
    random = np.random.default_rng(6)
    rows = rows_of(random_sparse(USERS, ITEMS, density, "csr", rng=random, dtype=np.float32))
    users, items = (new_table(count, -(-(dim + 1) // 16) * 16) for count in (USERS, ITEMS))
    users[:, :dim], items[:, : dim + 1] = random.normal(0, 0.5, (USERS, dim)), random.normal(0, 0.5, (ITEMS, dim + 1))
    users[:, dim] = 1
    noise = alias_table(np.arange(1.0, ITEMS + 1))
    owners = np.repeat(np.arange(USERS, dtype=np.int32), np.diff(rows.starts))
    return Task(rows.starts, rows.columns, owners, users, items, noise, dim, regularization)


@pytest.mark.parametrize("dim", [1, 15, 40])
def test_native_equals_twin(isa, dim):
    task, twin_task = make_task(dim), make_task(dim)
    native, twin = native_trainer(task), TwinTrainer(twin_task)
    for seed in (1, 2):
        loss, samples = native.train(0, 400, 0.05, seed, 1)
        expected = twin.train(0, 400, 0.05, seed, 1)
        # Rows are prefetched four samples ahead, but updated in the order of the samples.
        assert (loss, samples) == (near(expected[0], rel=1e-4), expected[1])
    np.testing.assert_allclose(task.users, twin_task.users, atol=1e-4)
    np.testing.assert_allclose(task.items, twin_task.items, atol=1e-4)
    assert (task.users[:, dim] == 1).all() and not task.users[:, dim + 1 :].any()


def test_fold_in_equals_twin_and_keeps_items_fixed(isa):
    task, twin_task = make_task(), make_task()
    before = task.items.copy()
    native_trainer(task).fold(5, 0.1, 3, 2)
    TwinTrainer(twin_task).fold(5, 0.1, 3, 1)
    np.testing.assert_allclose(task.users, twin_task.users, atol=1e-4)
    assert np.array_equal(task.items, before)


def test_step_follows_the_gradient(isa):
    """The change of one sample over the rate is minus the numerical gradient of −log σ(u · (i − j)) + λ/2 |…|²."""
    task = make_task(dim=4, regularization=0.1)
    before = {"users": task.users.astype(np.float64), "items": task.items.astype(np.float64)}
    native_trainer(task).train(0, 1, 1e-3, 9, 1)
    change = {name: (getattr(task, name) - table) / 1e-3 for name, table in before.items()}
    user = int(np.flatnonzero(change["users"].any(axis=1))[0])
    touched = np.flatnonzero(change["items"].any(axis=1))
    history = set(task.columns[task.starts[user] : task.starts[user + 1]].tolist())
    (positive,), (negative,) = [i for i in touched if i in history], [i for i in touched if i not in history]

    def objective(tables: dict[str, np.ndarray]) -> float:
        u, i, j = tables["users"][user], tables["items"][positive], tables["items"][negative]
        squares = (u[:4] ** 2).sum() + (i**2).sum() + (j**2).sum()
        return float(np.logaddexp(0, -u @ (i - j)) + 0.05 * squares)

    for name, row, columns in (("users", user, 4), ("items", positive, 5), ("items", negative, 5)):
        for column in range(columns):
            sides = []
            for epsilon in (1e-5, -1e-5):
                tables = {key: table.copy() for key, table in before.items()}
                tables[name][row, column] += epsilon
                sides.append(objective(tables))
            assert change[name][row, column] == pytest.approx(-(sides[0] - sides[1]) / 2e-5, rel=0.01, abs=2e-3)


def test_negatives_follow_the_noise_table_and_exclude_the_history():
    task = make_task()
    twin, random = TwinTrainer(task), np.random.default_rng(2)
    counts = np.zeros(ITEMS)
    for state in random.integers(0, 2**63, 20_000).tolist():
        counts[twin.negative_item(3, state)] += 1
    history = task.columns[task.starts[3] : task.starts[4]]
    weights = np.arange(1.0, ITEMS + 1)
    weights[history] = 0
    assert not counts[history].any()
    np.testing.assert_allclose(counts / 20_000, weights / weights.sum(), atol=0.006)


def test_user_with_every_item_is_skipped(isa):
    task = make_task(density=1.0)
    before = task.users.copy()
    assert native_trainer(task).train(0, 100, 0.1, 1, 2) == (0.0, 0)
    native_trainer(task).fold(3, 0.1, 1, 1)
    assert np.array_equal(task.users, before)
