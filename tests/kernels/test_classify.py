"""The native text classifier against its NumPy twin, the gradient of each loss and fastText's hashes."""

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
    return str(request.param)


def make_task(loss: str, dim: int = 21, seed: int = 4, texts: int = TEXTS) -> Task:
    """Return texts of 0 to 12 words with 0 to 3 labels; the last 5 words and some buckets have no row."""
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
    task, twin_task = make_task(loss), make_task(loss)
    native, twin = native_trainer(task), TwinTrainer(twin_task)
    order = np.random.default_rng(1).permutation(TEXTS)
    for seed in (7, 8):
        actual, expected = (trainer.train(order, 3, TEXTS, 0.4, 0.1, seed, 1) for trainer in (native, twin))
        assert actual[1] == expected[1] < TEXTS - 3  # some texts have no label or no row
        assert actual[0] == pytest.approx(expected[0], rel=1e-4)
    np.testing.assert_allclose(task.input_table, twin_task.input_table, atol=3e-5)
    np.testing.assert_allclose(task.output_table, twin_task.output_table, atol=3e-5)
    assert not task.input_table[:, 21:].any() and not task.output_table[LABELS:].any()  # the padding stays zero


@pytest.mark.parametrize("loss", kernel.LOSSES)
def test_step_is_minus_the_gradient(isa, loss):
    """One text: all parameters move by −rate × the derivative of the loss that a rate of 0 measures."""
    task = make_task(loss, dim=3, texts=6)
    lengths = np.diff(task.texts.starts) * np.diff(task.texts.label_starts)
    order = np.array([int(np.argmax(lengths))])
    rate, epsilon = 1e-4, 1e-2
    stepped = copied(task)
    assert native_trainer(stepped).train(order, 0, 1, rate, rate, 9, 1)[1] == 1
    measure = native_trainer(task)
    for name in ("input_table", "output_table"):
        table = getattr(task, name)
        change = (getattr(stepped, name) - table) / rate
        for row, column in np.argwhere(np.abs(change) > 0.02)[::3]:
            value, losses = table[row, column], []
            for side in (1, -1):
                table[row, column] = value + side * epsilon
                losses.append(measure.train(order, 0, 1, 0.0, 0.0, 9, 1)[0])
            table[row, column] = value
            slope = (losses[0] - losses[1]) / (2 * epsilon)
            assert change[row, column] == pytest.approx(-slope, rel=0.03, abs=6e-3)


def test_softmax_step_by_hand():
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


def test_result_is_independent_of_slices_on_one_thread():
    order = np.random.default_rng(1).permutation(TEXTS)
    results = []
    for cuts in ([0, TEXTS], [0, 3, 11, TEXTS]):
        task = make_task("negative")
        trainer = native_trainer(task)
        for first, last in pairwise(cuts):
            trainer.train(order, first, last, 0.4, 0.1, 7, 1)
        results.append(task.input_table.tobytes() + task.output_table.tobytes())
    assert results[0] == results[1]


def test_labels_of_a_text_are_sampled_uniformly():
    trainer = TwinTrainer(make_task("softmax"))
    labels = np.array([3, 5, 11], np.int32)
    rng = np.random.default_rng(2)
    sampled = Counter(
        int(np.flatnonzero(positive)[0])
        for key in rng.integers(0, 2**64, 3000, dtype=np.uint64).tolist()
        for _, positive in trainer.targets(labels, key)
    )
    assert set(sampled) == {3, 5, 11} and min(sampled.values()) > 900


def test_negative_labels_follow_the_square_root_of_their_counts():
    task = replace(make_task("negative"), label_counts=np.array([400, 100, 25]), negatives=3)
    trainer = TwinTrainer(task)
    sampled = Counter(
        int(rows[0])
        for key in np.random.default_rng(2).integers(0, 2**64, 4000, dtype=np.uint64).tolist()
        for rows, positive in trainer.targets(np.array([2], np.int32), key)
        if not positive[0]
    )
    assert sampled[0] / sampled[1] == pytest.approx(2, rel=0.05) and set(sampled) == {0, 1}


def test_word_ngram_buckets_equal_fasttext():
    """h = h · 116049371 + next, in 64 bits, each hash sign-extended."""
    hashes = word_hashes(["the", "cat", "sät"]).tolist()
    assert any(hash >> 31 for hash in hashes)
    signed = [hash - 2**32 if hash >> 31 else hash for hash in hashes]
    pair = (signed[0] * 116049371 + signed[1]) % 2**64
    triple = (pair * 116049371 + signed[2]) % 2**64
    last = (signed[1] * 116049371 + signed[2]) % 2**64
    assert kernel.word_ngram_buckets(hashes, 3, 1000) == [pair % 1000, triple % 1000, last % 1000]
    assert kernel.word_ngram_buckets(hashes, 1, 1000) == []


def test_touched_buckets_equal_those_of_the_rows():
    task = make_task("softmax")
    texts, inputs = task.texts, replace(task.inputs, bucket_rows=np.arange(500, dtype=np.int32))
    inputs = replace(inputs, words=0, ngrams=ngrams(WORDS, 3, 3, 500))
    rows = {
        row
        for i in range(TEXTS)
        for row in kernel.input_rows(texts.ids[slice(*texts.starts[i : i + 2])].tolist(), inputs)
    }
    character_ngrams = {ngram_hash(gram) % 500 for word in WORDS for gram in ngrams_of(word, 3, 3)}
    for threads in (1, 3):
        buckets = kernel.touched_buckets(texts, inputs, 500, threads)
        assert set(buckets.tolist()) == rows | character_ngrams and (np.diff(buckets) > 0).all()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=40))
def test_label_children_equal_huffman_paths(counts):
    ranked = np.sort(np.array(counts, dtype=np.int64))[::-1].copy()
    children, paths = kernel.label_children(ranked), huffman_paths(ranked)
    for label in range(len(ranked)):
        node = len(children) - 1
        for i in range(paths.starts[label], paths.starts[label + 1]):
            assert node == paths.nodes[i]
            node = children[node, paths.turns[i]]
        assert node == ~label


def test_chain_of_labels_takes_linear_memory():
    children = kernel.label_children(np.zeros(50_000, dtype=np.int64))
    assert (children[1:].max(axis=1) == np.arange(49_998)).all()
    assert sorted((~children[children < 0]).tolist()) == list(range(50_000))


SPACES = " \t\n\v\f\r\0"


def split_labels(lines: list[str]) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words and the labels of each line, in plain Python."""
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
def test_labels_are_extracted_from_text(lines):
    data = [(line + "\n").encode() for line in lines]
    ends = np.cumsum([0, *map(len, data)])[1:].astype(np.int64)
    words, labels = split_labels(lines)

    def documents(result):
        array, ends = result
        bounds = [0, *ends.tolist()]
        assert bounds[-1] == len(array)
        return [array[a:b].tobytes().decode() for a, b in pairwise(bounds)]

    raw = np.frombuffer(b"".join(data), dtype=np.uint8)
    text, extracted = kernel.take_labels(raw, ends, take=True, separate=False)
    assert [split_labels([part])[0][0] for part in documents(text)] == words
    assert [part.split("\0")[:-1] for part in documents(extracted)] == labels
    text, again = kernel.take_labels(raw, ends, take=True, separate=True)
    assert [part.split("\0")[:-1] for part in documents(text)] == [[*line, "</s>"] for line in words]
    assert documents(again) == documents(extracted)


@pytest.mark.parametrize("field", ["ids", "labels", "starts", "rows", "outputs"])
def test_indices_out_of_range_raise(field):
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
