"""The native classifier against its NumPy twin, the gradient of each loss and fastText's hashes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firth import kernels
from firth.kernels import classify as kernel
from firth.kernels.classify import Inputs, Task, Texts, TwinTrainer, native_trainer
from firth.kernels.predict import huffman_paths, new_table
from firth.kernels.subwords import ngram_hash, ngrams, ngrams_of, word_hashes

WORDS = [f"word{i}é" for i in range(30)]
ROWS_OF_WORDS, LABELS, BUCKETS, TEXTS = 25, 19, 60, 40


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return request.param


def make_task(loss: str, dim: int = 21, seed: int = 4, texts: int = TEXTS) -> Task:
    """Texts of 0 to 12 words with 0 to 3 labels; the last 5 words have no row of their own; some buckets have none."""
    rng = np.random.default_rng(seed)
    lengths, label_lengths = rng.integers(0, 13, texts), rng.integers(0, 4, texts)
    starts, label_starts = (
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64) for sizes in (lengths, label_lengths)
    )
    ids = rng.integers(0, len(WORDS), starts[-1]).astype(np.int32)
    labels = np.concatenate([rng.choice(LABELS, size, replace=False) for size in label_lengths]).astype(np.int32)
    rows = rng.integers(ROWS_OF_WORDS, ROWS_OF_WORDS + 20, BUCKETS).astype(np.int32)
    rows[::7] = -1
    inputs = Inputs(ROWS_OF_WORDS, word_hashes(WORDS), ngrams(WORDS, 2, 3, BUCKETS), rows, word_ngrams=3)
    table, outputs = new_table(ROWS_OF_WORDS + 20, dim), kernel.new_outputs(LABELS, dim)
    table[:, :dim] = rng.normal(0, 0.5, (len(table), dim))
    outputs[:LABELS, :dim] = rng.normal(0, 0.5, (LABELS, dim))
    counts = np.sort(rng.integers(1, 50, LABELS))[::-1].astype(np.int64)
    return Task(Texts(ids, starts, labels, label_starts), inputs, table, outputs, counts, loss, negatives=4)


def copied(task: Task) -> Task:
    tables = []
    for table in (task.input_table, task.output_table):
        tables.append(new_table(*table.shape))
        tables[-1][:] = table
    return replace(task, input_table=tables[0], output_table=tables[1])


@pytest.mark.parametrize("loss", kernel.LOSSES)
def test_native_equals_twin(isa, loss):
    mine, theirs = make_task(loss), make_task(loss)
    native, twin = native_trainer(mine), TwinTrainer(theirs)
    order = np.random.default_rng(1).permutation(TEXTS)
    for seed in (7, 8):
        found, expected = (trainer.train(order, 3, TEXTS, 0.4, 0.1, seed, 1) for trainer in (native, twin))
        assert found[1] == expected[1] < TEXTS - 3  # some have no label or no row
        assert found[0] == pytest.approx(expected[0], rel=1e-4)
    np.testing.assert_allclose(mine.input_table, theirs.input_table, atol=3e-5)
    np.testing.assert_allclose(mine.output_table, theirs.output_table, atol=3e-5)
    assert not mine.input_table[:, 21:].any() and not mine.output_table[LABELS:].any()  # the padding stays zero


@pytest.mark.parametrize("loss", kernel.LOSSES)
def test_the_step_is_minus_the_gradient(isa, loss):
    """One text: all parameters move by −rate × the derivative of the loss that a rate of 0 measures."""
    task = make_task(loss, dim=3, texts=6)
    lengths = np.diff(task.texts.starts) * np.diff(task.texts.label_starts)
    order = np.array([int(np.argmax(lengths))])
    rate, little = 1e-4, 1e-2
    stepped = copied(task)
    assert native_trainer(stepped).train(order, 0, 1, rate, rate, 9, 1)[1] == 1
    measure = native_trainer(task)
    for name in ("input_table", "output_table"):
        table = getattr(task, name)
        change = (getattr(stepped, name) - table) / rate
        for row, column in np.argwhere(np.abs(change) > 0.02)[::3]:
            value, losses = table[row, column], []
            for side in (1, -1):
                table[row, column] = value + side * little
                losses.append(measure.train(order, 0, 1, 0.0, 0.0, 9, 1)[0])
            table[row, column] = value
            slope = (losses[0] - losses[1]) / (2 * little)
            assert change[row, column] == pytest.approx(-slope, rel=0.03, abs=6e-3)


def test_a_step_of_the_softmax_by_hand():
    """h = mean(1, 3) = 2, one dimension, outputs 0 and log 3 / 2: probabilities 1/4 and 3/4, label 0, rate 0.8.

    Outputs move by 0.8 · (3/4) · 2 = 1.2 and −1.2; both inputs by half of 0.8 · (0 · 3/4 − (log 3 / 2) · 3/4).
    """
    texts = Texts(np.array([0, 1], np.int32), np.array([0, 2]), np.array([0], np.int32), np.array([0, 1]))
    inputs = Inputs(2, word_hashes(["a", "b"]), ngrams(["a", "b"], 0, 0, 1), np.zeros(0, np.int32))
    task = Task(texts, inputs, new_table(2, 1), kernel.new_outputs(2, 1), np.array([1, 1]))
    task.input_table[:, 0], task.output_table[1, 0] = [1, 3], np.log(3) / 2
    loss, trained = native_trainer(task).train(np.array([0]), 0, 1, 0.8, 0.8, 1, 1)
    assert trained == 1 and loss == pytest.approx(np.log(4))
    np.testing.assert_allclose(task.output_table[:2, 0], [1.2, np.log(3) / 2 - 1.2], rtol=1e-5)
    moved = -0.5 * 0.8 * 0.75 * np.log(3) / 2
    np.testing.assert_allclose(task.input_table[:, 0], [1 + moved, 3 + moved], rtol=1e-5)


def test_one_thread_gives_the_same_bytes_in_any_pieces():
    order = np.random.default_rng(1).permutation(TEXTS)
    results = []
    for cuts in ([0, TEXTS], [0, 3, 11, TEXTS]):
        task = make_task("negative")
        trainer = native_trainer(task)
        for first, last in pairwise(cuts):
            trainer.train(order, first, last, 0.4, 0.1, 7, 1)
        results.append(task.input_table.tobytes() + task.output_table.tobytes())
    assert results[0] == results[1]


def test_of_several_labels_each_is_drawn_equally_often():
    trainer = TwinTrainer(make_task("softmax"))
    labels = np.array([3, 5, 11], np.int32)
    rng = np.random.default_rng(2)
    drawn = Counter(
        int(np.flatnonzero(answers)[0])
        for key in rng.integers(0, 2**64, 3000, dtype=np.uint64).tolist()
        for _, answers in trainer.questions(labels, key)
    )
    assert set(drawn) == {3, 5, 11} and min(drawn.values()) > 900


def test_noise_labels_are_drawn_by_the_root_of_their_counts():
    task = replace(make_task("negative"), label_counts=np.array([400, 100, 25]), negatives=3)
    trainer = TwinTrainer(task)
    drawn = Counter(
        int(rows[0])
        for key in np.random.default_rng(2).integers(0, 2**64, 4000, dtype=np.uint64).tolist()
        for rows, answers in trainer.questions(np.array([2], np.int32), key)
        if not answers[0]
    )
    assert drawn[0] / drawn[1] == pytest.approx(2, rel=0.05) and set(drawn) == {0, 1}


def test_word_ngrams_have_fasttexts_buckets():
    """h = h · 116049371 + next, in 64 bits, each hash widened with its sign."""
    hashes = word_hashes(["the", "cat", "sät"]).tolist()
    assert any(hash >> 31 for hash in hashes)
    signed = [hash - 2**32 if hash >> 31 else hash for hash in hashes]
    pair = (signed[0] * 116049371 + signed[1]) % 2**64
    triple = (pair * 116049371 + signed[2]) % 2**64
    last = (signed[1] * 116049371 + signed[2]) % 2**64
    assert kernel.word_ngram_buckets(hashes, 3, 1000) == [pair % 1000, triple % 1000, last % 1000]
    assert kernel.word_ngram_buckets(hashes, 1, 1000) == []


def test_touched_buckets_are_those_of_the_rows():
    task = make_task("softmax")
    texts, inputs = task.texts, replace(task.inputs, bucket_rows=np.arange(500, dtype=np.int32))
    inputs = replace(inputs, words=0, ngrams=ngrams(WORDS, 3, 3, 500))
    rows = {
        row for i in range(TEXTS) for row in kernel.rows_of(texts.ids[slice(*texts.starts[i : i + 2])].tolist(), inputs)
    }
    every = {ngram_hash(gram) % 500 for word in WORDS for gram in ngrams_of(word, 3, 3)}
    for threads in (1, 3):
        found = kernel.touched_buckets(texts, inputs, 500, threads)
        assert set(found.tolist()) == rows | every and (np.diff(found) > 0).all()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=40))
def test_the_tree_by_its_nodes_is_the_tree_by_its_paths(counts):
    ranked = np.sort(np.array(counts, dtype=np.int64))[::-1].copy()
    children, paths = kernel.label_children(ranked), huffman_paths(ranked)
    for label in range(len(ranked)):
        node = len(children) - 1
        for place in range(paths.starts[label], paths.starts[label + 1]):
            assert node == paths.nodes[place]
            node = children[node, paths.turns[place]]
        assert node == ~label


def test_labels_without_counts_make_a_chain_in_linear_memory():
    children = kernel.label_children(np.zeros(50_000, dtype=np.int64))
    assert (children[1:].max(axis=1) == np.arange(49_998)).all()
    assert sorted((~children[children < 0]).tolist()) == list(range(50_000))


SPACES = " \t\n\v\f\r\0"


def plainly_taken(lines: list[str]) -> tuple[list[list[str]], list[list[str]]]:
    words, labels = [], []
    for line in lines:
        tokens = line.translate({ord(space): " " for space in SPACES}).split(" ")
        words.append([token for token in tokens if token and not token.startswith("__label__")])
        labels.append([token[9:] for token in tokens if token.startswith("__label__") and len(token) > 9])
    return words, labels


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(alphabet="ab_é\u00a0 \t\0" + "\x1c").map(lambda text: text.replace("a_", "__label__")), max_size=6)
)
def test_labels_are_taken_out_of_text(lines):
    data = [(line + "\n").encode() for line in lines]
    ends = np.cumsum([0, *map(len, data)])[1:].astype(np.int64)
    words, labels = plainly_taken(lines)

    def cut(found):
        array, places = found
        bounds = [0, *places.tolist()]
        assert bounds[-1] == len(array)
        return [array[a:b].tobytes().decode() for a, b in pairwise(bounds)]

    raw = np.frombuffer(b"".join(data), dtype=np.uint8)
    text, taken = kernel.take_labels(raw, ends, take=True, separate=False)
    assert [plainly_taken([part])[0][0] for part in cut(text)] == words
    assert [part.split("\0")[:-1] for part in cut(taken)] == labels
    text, again = kernel.take_labels(raw, ends, take=True, separate=True)
    assert [part.split("\0")[:-1] for part in cut(text)] == [[*line, "</s>"] for line in words]
    assert cut(again) == cut(taken)


@pytest.mark.parametrize("field", ["ids", "labels", "starts", "rows", "outputs"])
def test_what_leads_outside_is_refused(field):
    task = make_task("softmax")
    texts, inputs = task.texts, task.inputs
    if field == "ids":
        texts = texts._replace(ids=texts.ids + len(WORDS))
    elif field == "labels":
        texts = texts._replace(labels=texts.labels + LABELS)
    elif field == "starts":
        texts = texts._replace(starts=texts.starts[:-1])
    elif field == "rows":
        inputs = replace(inputs, bucket_rows=inputs.bucket_rows + 100)
    outputs = new_table(LABELS, 21) if field == "outputs" else task.output_table
    with pytest.raises(ValueError, match=r"\."):
        native_trainer(replace(task, texts=texts, inputs=inputs, output_table=outputs))
