"""The native GloVe kernel against its NumPy twin, the gradient and the formulas."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest
from scipy.sparse import random as random_sparse

from firth import kernels
from firth.kernels.glove import RECORD, Strata, Tables, TwinTrainer, native_trainer, new_tables, write_strata

WORDS = 23


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return str(request.param)


def make_strata(parts: int = 4, seed: int = 1, threads: int = 2, density: float = 0.4) -> Strata:
    matrix = random_sparse(WORDS, WORDS, density, "csr", rng=np.random.default_rng(5))
    counts = np.exp(matrix.data * 6)  # from 1 to 400
    with tempfile.TemporaryFile() as file:
        starts = write_strata(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32),
            counts,
            x_max=50.0,
            exponent=0.75,
            parts=parts,
            seed=seed,
            threads=threads,
            file=file.fileno(),
        )
        file.seek(0)
        return Strata(np.frombuffer(file.read(), dtype=RECORD), starts, parts)


def make_tables(dim: int = 20, scale: float = 0.5) -> Tables:
    rng = np.random.default_rng(2)
    tables = new_tables(WORDS, dim, seed=3)
    for table in (tables.words, tables.contexts):
        table[:, :dim] = rng.normal(0, scale, (WORDS, dim))
    for biases in (tables.word_biases, tables.context_biases):
        biases[:, 0] = rng.normal(0, scale, WORDS)
    return tables


def copied(tables: Tables) -> Tables:
    copies = new_tables(WORDS, tables.stride, seed=0)
    for new, old in zip(copies.arrays().values(), tables.arrays().values(), strict=True):
        new[:] = old
    return copies


def train(trainer, parts: int, rate: float = 0.05, pieces: int = 1, threads: int = 2) -> float:
    return float(sum(trainer.diagonal(d, p, pieces, rate, threads) for d in range(parts) for p in range(pieces)))


def test_native_equals_twin(isa):
    strata = make_strata()
    tables, twin_tables = make_tables(), make_tables()
    native, twin = native_trainer(strata, tables), TwinTrainer(strata, twin_tables)
    for _ in range(3):
        assert train(native, 4) == pytest.approx(train(twin, 4), rel=1e-4)
    for name, table in tables.arrays().items():
        np.testing.assert_allclose(table, twin_tables.arrays()[name], atol=2e-5)
    assert not tables.words[:, 20:32].any()  # the padding stays zero


def test_result_is_independent_of_threads_and_pieces(isa):
    results = []
    for threads, pieces in [(1, 1), (2, 1), (4, 3), (3, 50)]:
        tables = make_tables()
        train(native_trainer(make_strata(threads=threads), tables), 4, pieces=pieces, threads=threads)
        results.append(b"".join(table.tobytes() for table in tables.arrays().values()))
    assert all(result == results[0] for result in results)


def test_loss_equals_the_formula(isa):
    strata, tables = make_strata(), make_tables()
    records = strata.records
    before = [table.copy() for table in tables.arrays().values()]
    words, contexts = (table[:, : tables.stride].astype(np.float64) for table in (tables.words, tables.contexts))
    products = (words[records["word"]] * contexts[records["context"]]).sum(axis=1)
    products += tables.word_biases[records["word"], 0] + tables.context_biases[records["context"], 0]
    expected = 0.5 * (records["weight"] * (products - records["log_count"]) ** 2).sum()
    assert train(native_trainer(strata, tables), 4, rate=0.0) == pytest.approx(expected, rel=1e-5)
    for old, table in zip(before, tables.arrays().values(), strict=True):
        assert np.array_equal(old, table)  # a rate of 0 only computes the loss


def test_first_step_is_minus_the_gradient():
    """AdaGrad's sums start at 1, so the first step of a parameter is −rate × its derivative."""
    strata = make_strata(parts=1, density=0.004)
    assert len(strata.records) == 2
    assert len(set(strata.records["word"])) == len(set(strata.records["context"])) == 2  # no row is updated twice
    tables = make_tables(dim=4)
    probe = copied(tables)
    rate, epsilon = 1e-3, 1e-2
    train(native_trainer(strata, tables), 1, rate)
    measure = native_trainer(strata, probe)
    for name, table in probe.arrays().items():
        half = table.shape[1] // 2
        change = (tables.arrays()[name] - table)[:, :half] / rate
        touched = np.argwhere(change != 0)
        assert len(touched) == 2 * (4 if half > 1 else 1)
        for row, column in touched:
            value, losses = table[row, column], []
            for side in (1, -1):
                table[row, column] = value + side * epsilon
                losses.append(train(measure, 1, 0.0))
            table[row, column] = value
            assert change[row, column] == pytest.approx(-(losses[0] - losses[1]) / (2 * epsilon), rel=0.02, abs=2e-3)


def test_second_adagrad_step_by_hand():
    """One pair, one dimension: w = 1, c = 2, biases 0, log X = 1, f = 1, η = 0.1.

    Error 1: steps 0.1·2 = 0.2 for w, 0.1·1 = 0.1 for c and for each bias, over √1. Then w = 0.8, c = 1.9, b = −0.1;
    sums 1.04, 1.01, 1.01. Error 0.8·1.9 − 0.2 − 1 = 0.32: w −= 0.1·0.32·1.9/√1.04.
    """
    records = np.array([(0, 0, 1.0, 1.0)], dtype=RECORD)
    tables = new_tables(1, 1, seed=0)
    tables.words[0, 0], tables.contexts[0, 0] = 1, 2
    tables.word_biases[0, 0] = tables.context_biases[0, 0] = 0
    trainer = native_trainer(Strata(records, np.array([0, 1]), 1), tables)
    assert trainer.diagonal(0, 0, 1, 0.1, 1) == pytest.approx(0.5)
    values = [tables.words[0, 0], tables.contexts[0, 0], tables.word_biases[0, 0], tables.words[0, 16]]
    np.testing.assert_allclose(values, [0.8, 1.9, -0.1, 1.04], rtol=1e-6)
    assert trainer.diagonal(0, 0, 1, 0.1, 1) == pytest.approx(0.5 * 0.32**2, rel=1e-5)
    assert tables.words[0, 0] == pytest.approx(0.8 - 0.1 * 0.32 * 1.9 / 1.04**0.5, rel=1e-6)


@pytest.mark.parametrize("parts", [1, 4, WORDS])
def test_strata_contain_every_pair_once(parts):
    strata = make_strata(parts)
    matrix = random_sparse(WORDS, WORDS, 0.4, "csr", rng=np.random.default_rng(5)).tocoo()
    counts = np.exp(matrix.data * 6)
    expected = {
        (w, c): (np.log(x), min(1, (x / 50) ** 0.75)) for w, c, x in zip(matrix.row, matrix.col, counts, strict=True)
    }
    actual = {(r["word"], r["context"]): (r["log_count"], r["weight"]) for r in strata.records}
    assert len(strata.records) == len(actual) == len(expected)
    assert all(actual[pair] == pytest.approx(values, rel=1e-6) for pair, values in expected.items())
    for block in range(parts * parts):
        part = strata.records[strata.starts[block] : strata.starts[block + 1]]
        assert (part["word"] % parts == block // parts).all()
        assert (part["context"] % parts == block % parts).all()
    other = make_strata(parts, seed=2)
    assert np.array_equal(make_strata(parts, threads=1).records, strata.records)
    assert (len(strata.records) < 3 * parts * parts) or not np.array_equal(other.records, strata.records)


def test_order_within_a_block_is_random():
    """The order of the records is uncorrelated with their sorted order."""
    ranks = sorted(range(len(make_strata(1).records)), key=lambda i: tuple(make_strata(1).records[i])[:2])
    positions = np.empty(len(ranks))
    positions[ranks] = np.arange(len(ranks))
    assert abs(np.corrcoef(positions, np.arange(len(ranks)))[0, 1]) < 0.2


@pytest.mark.parametrize(
    "record", [(WORDS, 0, 0.0, 1.0), (0, -1, 0.0, 1.0), (1, 0, 0.0, 1.0)], ids=["word", "context", "wrong block"]
)
def test_records_outside_their_block_raise(record):
    starts = np.array([0, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="records must be rows of the tables"):
        native_trainer(Strata(np.array([record], dtype=RECORD), starts, 2), make_tables())
