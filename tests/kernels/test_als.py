"""The native ALS kernel against its NumPy twin, dense solutions and the objective."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import random as random_sparse

from firth import kernels
from firth.data.interactions import rows_of
from firth.kernels.als import Side, TwinSolver, gram, native_solver
from firth.kernels.predict import new_table

USERS, ITEMS = 53, 41


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return str(request.param)


def make_side(dim: int = 20, **settings) -> Side:
    """Return users to solve for; one has no items, one has all."""
    random = np.random.default_rng(4)
    matrix = random_sparse(USERS, ITEMS, 0.3, "lil", rng=random, dtype=np.float32)
    matrix[7], matrix[9] = 0, random.random(ITEMS)
    matrix = matrix.tocsr()
    matrix.eliminate_zeros()
    matrix.data = matrix.data * 4 + 0.1
    stride = -(-dim // 16) * 16
    rows, others = new_table(USERS, stride), new_table(ITEMS, stride)
    rows[:, :dim], others[:, :dim] = random.normal(0, 0.3, (USERS, dim)), random.normal(0, 0.3, (ITEMS, dim))
    ridge = random.uniform(0.05, 0.5, USERS).astype(np.float32)
    return Side(rows_of(matrix), rows, others, ridge, **{"alpha": 2.0, **settings})


def copied(side: Side) -> Side:
    rows = new_table(*side.rows.shape)
    rows[:] = side.rows
    return dataclasses.replace(side, rows=rows)


@pytest.mark.parametrize("dim", [3, 16, 20, 72])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_native_equals_twin(isa, dim, steps):
    native = make_side(dim, steps=steps)
    twin = copied(native)
    products = gram(native.others)
    loss = native_solver(native).solve(products, 0, USERS, 2)
    assert loss == pytest.approx(TwinSolver(twin).solve(products, 0, USERS, 1), rel=1e-4)
    np.testing.assert_allclose(native.rows, twin.rows, atol=2e-4)
    assert not native.rows[:, dim:].any()  # the padding stays zero
    if steps == 0:
        assert not native.rows[7].any()  # a user without items


@pytest.mark.parametrize("dim", [3, 30, 62])
def test_native_equals_twin_on_ratings(isa, dim):
    native = make_side(dim + 2, mean=1.5, bias_column=dim + 1)
    native.others[:, dim], native.rows[:, dim + 1] = 1, 1
    twin = copied(native)
    loss = native_solver(native).solve(None, 0, USERS, 2)
    assert loss == pytest.approx(TwinSolver(twin).solve(None, 0, USERS, 1), rel=1e-4)
    np.testing.assert_allclose(native.rows, twin.rows, atol=2e-3)
    assert (native.rows[:, dim + 1] == 1).all()


def test_solution_minimizes_the_dense_objective(isa):
    """Hu et al. 2008, eq. 4 with all zeros written out: x = (Yᵀ C Y + λ)⁻¹ Yᵀ C p."""
    side = make_side(20)
    loss = native_solver(side).solve(gram(side.others), 0, USERS, 1)
    weights, y = np.zeros((USERS, ITEMS)), side.others.astype(np.float64)
    owners = np.repeat(np.arange(USERS), np.diff(side.entries.starts))
    weights[owners, side.entries.columns] = side.entries.values
    confidence, preference = 1 + 2.0 * weights, (weights > 0).astype(np.float64)
    parts = zip(confidence, preference, side.ridge, strict=True)
    expected = np.stack([np.linalg.solve((y.T * c) @ y + r * np.eye(32), (y.T * c) @ p) for c, p, r in parts])
    np.testing.assert_allclose(side.rows, expected, atol=1e-4)
    objective = (confidence * (preference - expected @ y.T) ** 2).sum() + (side.ridge * (expected**2).sum(axis=1)).sum()
    assert loss == pytest.approx(objective, rel=1e-5)


def test_conjugate_gradients_converge_monotonically(isa):
    exact = make_side(20)
    products = gram(exact.others)
    best = native_solver(exact).solve(products, 0, USERS, 1)
    losses = []
    for steps in (1, 2, 4, 8, 40):
        side = make_side(20, steps=steps)
        losses.append(native_solver(side).solve(products, 0, USERS, 1))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == pytest.approx(best, rel=1e-5)
    np.testing.assert_allclose(side.rows, exact.rows, atol=1e-3)


@pytest.mark.parametrize("steps", [0, 3])
def test_result_is_independent_of_threads_and_slices(isa, steps):
    results = []
    for threads, cuts in [(1, [0, USERS]), (2, [0, USERS]), (3, [0, 5, 6, 33, USERS])]:
        side = make_side(20, steps=steps)
        products = gram(side.others, threads)
        for first, last in pairwise(cuts):
            native_solver(side).solve(products, first, last, threads)
        results.append((products.tobytes(), side.rows.tobytes()))
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("rows", [1, 15, 300, 5000])
def test_gram_equals_dense_product(isa, rows):
    table = new_table(rows, 48)
    table[:, :40] = np.random.default_rng(1).normal(size=(rows, 40))
    np.testing.assert_allclose(gram(table, 2), table.T.astype(np.float64) @ table, rtol=1e-4, atol=1e-3)


def test_nearly_singular_matrix_stays_finite(isa):
    side = make_side(20, mean=0.0, bias_column=21)
    side.others[:] = side.others[0] * 1e5  # all rows are parallel and huge
    native_solver(side).solve(None, 0, USERS, 1)
    assert np.isfinite(side.rows).all()


def test_invalid_arrays_raise():
    side = make_side()
    with pytest.raises(ValueError, match="columns must be inside"):
        native_solver(dataclasses.replace(side, others=new_table(3, 32)))
    with pytest.raises(ValueError, match="require the gram"):
        native_solver(make_side(steps=3)).solve(None, 0, USERS, 1)
    with pytest.raises(ValueError, match="range of the rows"):
        native_solver(side).solve(gram(side.others), 0, USERS + 1, 1)
