"""The native skip-gram and CBOW kernels against their NumPy twin, the gradient and the formulas."""

from __future__ import annotations

import heapq
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from firth import kernels
from firth.kernels.predict import NO_LISTS, Lists, Task, alias_table, huffman_paths, native_trainer, new_table, no_paths
from firth.kernels.predict_twin import TwinTrainer

VARIANTS: list[tuple[str, str, dict[str, Any]]] = [
    ("skipgram", "negative", {}),
    ("skipgram", "negative", {"shared": False}),
    ("skipgram", "negative", {"negatives": 15}),
    ("skipgram", "negative", {"group": 2}),
    ("skipgram", "negative", {"group": 4}),
    ("skipgram", "negative", {"group": 4, "negatives": 15, "window": 2}),
    ("skipgram", "negative", {"group": 4, "group_negatives": 7}),
    ("skipgram", "hierarchical", {}),
    ("skipgram", "softmax", {}),
    ("cbow", "negative", {}),
    ("cbow", "negative", {"mean": False}),
    ("cbow", "negative", {"exact": False}),
    ("cbow", "negative", {"group": 2}),
    ("cbow", "negative", {"group": 4}),
    ("cbow", "negative", {"group": 4, "group_negatives": 17, "window": 2, "mean": False}),
    ("cbow", "negative", {"group": 4, "group_negatives": 8, "exact": False}),
    ("cbow", "hierarchical", {}),
    ("cbow", "softmax", {"shrink": False}),
    # words with subwords (fastText)
    ("cbow", "negative", {"subwords": 30, "exact": False}),
    ("forward", "negative", {"subwords": 30}),
    ("forward", "negative", {"subwords": 30, "exact": False, "negatives": 20}),
    ("forward", "negative", {"subwords": 30, "shared": False}),
    ("forward", "hierarchical", {"subwords": 30}),
    ("forward", "softmax", {}),
    # documents with rows of their own (Doc2Vec)
    ("skipgram", "negative", {"tags": 2}),
    ("skipgram", "negative", {"tags": 2, "group": 4}),
    ("skipgram", "negative", {"tags": 2, "neighbors": False}),
    ("skipgram", "negative", {"tags": 2, "neighbors": False, "group": 4}),
    ("skipgram", "negative", {"tags": 2, "neighbors": False, "group": 4, "negatives": 15}),
    ("skipgram", "negative", {"tags": 2, "neighbors": False, "shared": False}),
    ("skipgram", "hierarchical", {"tags": 1, "neighbors": False}),
    ("skipgram", "negative", {"tags": 2, "shared": False}),
    ("cbow", "negative", {"tags": 2}),
    ("cbow", "hierarchical", {"tags": 1, "mean": False}),
    ("concat", "negative", {"tags": 1, "shrink": False, "window": 2}),
    ("concat", "hierarchical", {"tags": 1, "shrink": False, "window": 3}),
]


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return str(request.param)


def lists(rng: np.random.Generator, own: NDArray[np.int64], first: int, rows: int, more: int) -> Lists:
    """Return lists of the own row and up to `more` of the `rows` rows from `first` on."""
    rows_of_lists = [np.array([row, *rng.integers(first, first + rows, rng.integers(0, more + 1))]) for row in own]
    starts = np.cumsum([0, *map(len, rows_of_lists)])
    return Lists(starts.astype(np.int64), np.concatenate(rows_of_lists).astype(np.int32))


def make_task(
    seed=0,
    words=40,
    tokens=300,
    documents=6,
    dim=20,
    scale=0.5,
    subwords=0,
    tags=0,
    architecture="skipgram",
    **settings,
) -> Task:
    """`subwords` rows are shared by the words; each document has its own row and, with `tags` = 2, maybe another's."""
    rng = np.random.default_rng(seed)
    counts = np.sort(rng.integers(1, 100, words))[::-1].astype(np.int64)
    ids = rng.choice(words, tokens, p=counts / counts.sum()).astype(np.int32)
    cuts = np.sort(rng.integers(0, tokens, documents - 1))  # some documents may be empty
    loss = settings.get("loss", "negative")
    rows = words + subwords + (documents if tags else 0)
    slots = 2 * settings.get("window", 5) + 1 if architecture == "concat" else 1
    inputs, outputs = new_table(rows, dim), new_table(words, slots * (-(-dim // 16) * 16))
    inputs[:, :dim] = rng.normal(0, scale, (rows, dim))
    outputs.reshape(words, slots, -1)[:, :, :dim] = rng.normal(0, scale, (words, slots, dim))
    first = words + subwords
    if subwords:
        settings["subwords"] = lists(rng, np.arange(words), words, subwords, 6)
    if tags:
        settings["tags"] = lists(rng, np.arange(first, rows), first, documents, tags - 1)
    return Task(
        architecture=architecture,
        ids=ids,
        starts=np.concatenate([[0], cuts, [tokens]]).astype(np.int64),
        inputs=inputs,
        outputs=outputs,
        keep=rng.integers(2**31, 2**32, words).astype(np.uint32),
        noise=alias_table(np.power(counts, 0.75, dtype=np.float64)),
        paths=huffman_paths(counts) if loss == "hierarchical" else no_paths(),
        **settings,
    )


def copy_of(task: Task) -> Task:
    inputs, outputs = new_table(*task.inputs.shape), new_table(*task.outputs.shape)
    inputs[:], outputs[:] = task.inputs, task.outputs
    return replace(task, inputs=inputs, outputs=outputs)


@pytest.mark.parametrize("architecture, loss, settings", VARIANTS)
def test_native_equals_twin(isa, architecture, loss, settings):
    task = make_task(architecture=architecture, loss=loss, **settings)
    twin_task = copy_of(task)
    native, twin = native_trainer(task), TwinTrainer(twin_task)
    for epoch in range(2):
        actual = native.racing(0, 300, epoch, 0.1, 0.05, 1)
        expected = twin.racing(0, 300, epoch, 0.1, 0.05, 1)
        assert actual[1:] == tuple(expected[1:])
        assert actual[0] == pytest.approx(expected[0], rel=1e-4)
    np.testing.assert_allclose(task.inputs, twin_task.inputs, atol=2e-5)
    np.testing.assert_allclose(task.outputs, twin_task.outputs, atol=2e-5)
    assert not task.inputs[:, 20:].any()  # the padding stays zero


@pytest.mark.parametrize("architecture, loss, settings", [variant for variant in VARIANTS if variant[1] != "softmax"])
def test_ordered_equals_twin(isa, architecture, loss, settings):
    task = make_task(architecture=architecture, loss=loss, **settings)
    twin_task = copy_of(task)
    native, twin = native_trainer(task), TwinTrainer(twin_task)
    cursors, twin_cursors = (np.array(native.stream_starts(7)[:-1]) for _ in range(2))
    actual = np.add(native.ordered(cursors, 3, 4, 5, 0.1, 0.05, 2), native.ordered(cursors, 3, 100, 5, 0.1, 0.05, 1))
    expected = twin.ordered(twin_cursors, 3, 104, 5, 0.1, 0.05, 1)
    assert tuple(actual[1:]) == tuple(expected[1:])
    assert actual[0] == pytest.approx(expected[0], rel=1e-4)
    assert list(cursors) == native.stream_starts(7)[1:]
    np.testing.assert_allclose(task.inputs, twin_task.inputs, atol=2e-5)
    np.testing.assert_allclose(task.outputs, twin_task.outputs, atol=2e-5)


DOCUMENTS_ONLY = {"tags": 2, "neighbors": False, "group": 4}


@pytest.mark.parametrize(
    "architecture, loss, settings",
    [
        ("skipgram", "negative", {}),
        ("cbow", "hierarchical", {}),
        ("cbow", "negative", {"group": 4, "group_negatives": 8}),
        ("skipgram", "negative", DOCUMENTS_ONLY),
    ],
)
def test_ordered_is_independent_of_threads_and_slices(isa, architecture, loss, settings):
    results = []
    for threads, rounds in [(1, 400), (2, 400), (4, 7), (3, 1)]:
        task = make_task(architecture=architecture, loss=loss, tokens=3000, documents=40, **settings)
        native = native_trainer(task)
        cursors = np.array(native.stream_starts(16)[:-1])
        tally = np.zeros(3)
        while list(cursors) != native.stream_starts(16)[1:]:
            tally = np.add(tally, native.ordered(cursors, 5, rounds, 3, 0.1, 0.05, threads))
        results.append((task.inputs.tobytes(), task.outputs.tobytes(), tally[1], tally[2]))
    assert all(result == results[0] for result in results)


EXACT = [variant for variant in VARIANTS if variant[2].get("exact", True)]


@pytest.mark.parametrize("architecture, loss, settings", EXACT)
def test_step_is_minus_the_gradient_of_the_loss(architecture, loss, settings):
    """With one window and a small rate, every parameter changes by −rate × its numerical derivative.

    If pairs are trained one after the other, this holds to first order in the rate.
    """
    task = make_task(seed=3, words=12, tokens=3, documents=1, dim=4, architecture=architecture, loss=loss, **settings)
    task.keep[:] = 2**32 - 1
    probe = copy_of(task)
    rate, epsilon = 1e-4, 1e-2
    native_trainer(task).racing(0, 3, 1, rate, rate, 1)
    measure = native_trainer(probe)
    rng = np.random.default_rng(0)
    for name in ("inputs", "outputs"):
        table, change = getattr(probe, name), (getattr(task, name) - getattr(probe, name)) / rate
        touched = np.argwhere(np.abs(change) > 0.05)
        assert len(touched)
        for row, column in touched[rng.permutation(len(touched))[:6]]:
            value = table[row, column]
            losses = []
            for side in (1, -1):
                table[row, column] = value + side * epsilon
                losses.append(measure.racing(0, 3, 1, 0.0, 0.0, 1)[0])
            table[row, column] = value
            slope = (losses[0] - losses[1]) / (2 * epsilon)
            assert change[row, column] == pytest.approx(-slope, rel=0.05, abs=0.02)


@pytest.mark.parametrize("architecture, loss, settings", [variant for variant in VARIANTS if "tags" in variant[2]])
def test_inferred_document_equals_twin(isa, architecture, loss, settings):
    """For any number of threads; all other parameters stay fixed."""
    documents_only = {"neighbors": False} if architecture == "skipgram" else {}
    task = make_task(architecture=architecture, loss=loss, **{**settings, **documents_only})
    before = task.inputs.tobytes() + task.outputs.tobytes()
    rows = [new_table(6, 20) for _ in range(3)]
    for table in rows:
        table[:, :20] = np.random.default_rng(1).normal(0, 0.1, (6, 20))
    for threads, table in ((1, rows[0]), (3, rows[1])):
        native_trainer(task).infer(table, 3, 0.1, 7, threads)
    TwinTrainer(task).infer(rows[2], 3, 0.1, 7, 1)
    assert rows[0].tobytes() == rows[1].tobytes()
    np.testing.assert_allclose(rows[0], rows[2], atol=2e-5)
    assert task.inputs.tobytes() + task.outputs.tobytes() == before


def test_inferred_document_is_independent_of_others(isa):
    task = make_task(tags=1, neighbors=False)
    all_rows = new_table(6, 20)
    native_trainer(task).infer(all_rows, 2, 0.1, 7, 2)
    last = slice(int(task.starts[5]), None)
    last_document = replace(task, ids=task.ids[last], starts=np.array([0, len(task.ids[last])]), tags=NO_LISTS)
    row = new_table(1, 20)
    native_trainer(last_document).infer(row, 2, 0.1, 7, 1)
    assert row.tobytes() == all_rows[5:].tobytes() and row.any()


def test_rate_zero_only_computes_the_loss(isa):
    task = make_task()
    before = task.inputs.tobytes() + task.outputs.tobytes()
    tally = native_trainer(task).racing(0, 300, 1, 0.0, 0.0, 2)
    assert tally[0] > 0
    assert task.inputs.tobytes() + task.outputs.tobytes() == before


@pytest.mark.parametrize("settings", [{}, DOCUMENTS_ONLY])
def test_windows_are_independent_of_slices(isa, settings):
    """Windows cross the borders of blocks: any slices of the range give the same windows."""
    tallies = []
    for cuts in ([0, 9000], [0, 4096, 9000], [0, 4096, 8192, 9000]):
        task = make_task(tokens=9000, documents=3, **settings)
        native = native_trainer(task)
        parts = [native.racing(a, b, 1, 0.0, 0.0, 1) for a, b in pairwise(cuts)]
        tallies.append(np.sum(parts, axis=0))
    np.testing.assert_allclose(tallies, [tallies[0]] * 3, rtol=1e-9)


def test_held_out_tokens_are_not_contexts(isa):
    """Training on the tokens before `last` does not depend on the tokens after it."""
    tables = []
    for filler in (0, 1):
        task = make_task(documents=1, last=200)
        task.ids[200:] = filler
        native_trainer(task).racing(0, 200, 1, 0.1, 0.1, 1)
        tables.append(task.inputs.tobytes())
    assert tables[0] == tables[1]


def test_nan_shows_in_the_loss(isa):
    task = make_task()
    task.inputs[0] = np.nan
    assert np.isnan(native_trainer(task).racing(0, 300, 1, 0.0, 0.0, 1)[0])


def test_invalid_arrays_raise():
    task = make_task()
    for invalid in (
        replace(task, ids=np.array([40], np.int32), starts=np.array([0, 1])),
        replace(task, ids=np.array([-1], np.int32), starts=np.array([0, 1])),
        replace(task, starts=np.array([0, 5, 3, 300])),
        replace(task, starts=np.array([0, 299])),
        replace(task, keep=task.keep[:-1]),
        replace(task, window=257),
        replace(task, subwords=Lists(np.arange(41), np.arange(40, dtype=np.int32))),  # not for skip-gram
        replace(task, architecture="cbow", subwords=Lists(np.arange(41), np.arange(1, 41, dtype=np.int32))),
        replace(task, architecture="cbow", subwords=Lists(np.arange(40), np.arange(39, dtype=np.int32))),
        replace(task, tags=Lists(np.arange(7), np.full(6, -1, np.int32))),
        replace(task, tags=Lists(np.arange(0, 455, 65), np.zeros(390, np.int32))),
        replace(task, architecture="concat"),
        replace(task, architecture="cbow", group=4, tags=Lists(np.arange(7), np.arange(6, dtype=np.int32))),
        replace(task, group_negatives=8),  # requires groups
    ):
        with pytest.raises((ValueError, TypeError)):
            native_trainer(invalid)


def test_unknown_instruction_set_is_named(monkeypatch):
    monkeypatch.setenv("FIRTH_ISA", "abacus")
    with pytest.raises(ValueError, match=r"FIRTH_ISA must be one of baseline.*abacus"):
        kernels.active_isa()


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=60))
@settings(deadline=None)
def test_huffman_is_optimal_and_prefix_free(counts):
    counts = np.array(counts, np.int64)
    paths = huffman_paths(counts)
    lengths = np.diff(paths.starts)
    heap = list(map(int, counts))  # the optimal cost, computed separately
    heapq.heapify(heap)
    cost = 0
    while len(heap) > 1:
        merged = heapq.heappop(heap) + heapq.heappop(heap)
        cost += merged
        heapq.heappush(heap, merged)
    assert int((lengths * counts).sum()) == cost
    assert sum(0.5 ** lengths.astype(float)) == pytest.approx(1)
    all_paths = {
        tuple(zip(paths.nodes[a:b], paths.turns[a:b], strict=True))
        for a, b in zip(paths.starts, paths.starts[1:], strict=False)
    }
    assert len(all_paths) == len(counts)
    assert all(path[0][0] == len(counts) - 2 for path in all_paths)  # all start at the root


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50).filter(lambda weights: sum(weights) > 1e-3))
@settings(deadline=None)
def test_alias_table_reproduces_the_weights(weights):
    cut, other = alias_table(np.array(weights)).T
    own_share = cut / 2.0**32
    probabilities = own_share.copy()
    np.add.at(probabilities, other, 1 - own_share)
    np.testing.assert_allclose(probabilities / len(weights), np.array(weights) / sum(weights), atol=1e-6)
