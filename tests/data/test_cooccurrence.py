"""`Cooccurrence`: counts computed by hand, the memory limit, Stanford's files and errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refuses

import firth
from firth.data.cooccurrence import RECORD, Cooccurrence, read_vocabulary


def tokens_of(*documents: str) -> firth.Tokens:
    return firth.Tokens.from_lists([document.split() for document in documents])


def table(counted: Cooccurrence) -> dict[str, float]:
    """ "a b": weight."""
    words, matrix = counted.vocabulary.tokens, counted.matrix.tocoo()
    return {f"{words[w]} {words[c]}": x for w, c, x in zip(matrix.row, matrix.col, matrix.data, strict=True)}


def test_counts_equal_those_computed_by_hand():
    tokens = tokens_of("a b a c", "", "c b")
    assert table(Cooccurrence.count(tokens, window=1, weighting="flat")) == {
        "a b": 2, "b a": 2, "a c": 1, "c a": 1, "c b": 1, "b c": 1,
    }  # fmt: skip
    assert table(Cooccurrence.count(tokens, window=3, side="left")) == {
        "b a": 1, "a b": 1, "a a": 1 / 2, "c a": 1 + 1 / 3, "c b": 1 / 2, "b c": 1,
    }  # fmt: skip
    right = Cooccurrence.count(tokens, window=3, side="right")
    both = Cooccurrence.count(tokens, window=3)
    assert table(right)["a c"] == 1 + 1 / 3
    assert table(both)["a a"] == 1  # each of the two sees the other at distance 2
    assert (both.matrix != (right.matrix + right.matrix.T)).nnz == 0


def test_words_without_neighbors_have_no_pairs():
    empty = Cooccurrence.count(tokens_of("a", "b", "a"))
    assert len(empty) == 0
    assert empty.matrix.shape == (2, 2)


MEASURE = """
import sys, threading, time
import numpy as np, firth
from firth.data.cooccurrence import Cooccurrence
rng = np.random.default_rng(0)
words, size = 5000, 4_000_000
ids = (rng.zipf(1.3, size) % words).astype(np.int32)
vocabulary = firth.Vocabulary([str(i) for i in range(words)], np.bincount(ids, minlength=words))
tokens = firth.Tokens(ids, np.array([0, size]), vocabulary, size)
Cooccurrence.count(firth.Tokens(ids[:100], np.array([0, 100]), vocabulary, 100))  # everything is imported
def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon"))
before, peak, done = anonymous(), 0, False
def watch():
    global peak
    while not done:
        peak = max(peak, anonymous())
        time.sleep(0.0005)
watcher = threading.Thread(target=watch)
watcher.start()
counted = Cooccurrence.count(tokens, window=5, run=firth.Run(memory=sys.argv[1], threads=2))
done = True
watcher.join()
print(peak - before, counted.fingerprint)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_limit_is_respected():
    def measure(memory: str) -> tuple[int, str]:
        command = [sys.executable, "-c", MEASURE, memory]
        output = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout
        peak, fingerprint = output.split()
        return int(peak), fingerprint

    bound, result = measure("8MB")
    free, same = measure("")
    assert bound < 8_000_000 + 1_000_000
    assert free > 12_000_000  # without a limit more is used
    assert result == same


def test_too_small_memory_limit_is_refused_with_a_sufficient_one():
    tokens = firth.Tokens.from_lists([[f"w{i}" for i in range(3000)]] * 2)
    with refuses("out_of_memory", memory="100KB", words=3000, tokens=6000) as error:
        Cooccurrence.count(tokens, run=firth.Run(memory="100KB"))
    enough = f"{error.value.values['enough']}B".upper()
    bounded = Cooccurrence.count(tokens, run=firth.Run(memory=f"{float(enough[:-2]) * 1.01}{enough[-2:]}"))
    assert bounded.fingerprint == Cooccurrence.count(tokens).fingerprint


def test_settings_are_checked():
    tokens = tokens_of("a b")
    with refuses("invalid_value", option="side", choices="both, left, right", got="up"):
        Cooccurrence.count(tokens, side="up")
    with refuses("invalid_value", option="weighting", got="triangular"):
        Cooccurrence.count(tokens, weighting="triangular")
    with refuses("invalid_value", option="window", maximum=256, got=0):
        Cooccurrence.count(tokens, window=0)


# ---- Stanford's files ----


def test_bytes_of_stanfords_format(tmp_path: Path):
    counted = Cooccurrence.count(tokens_of("b a b"), window=2)
    counted.write(tmp_path / "cooccurrence.bin")
    # b is id 1 (two occurrences), a is id 2; each record is two int32 and a float64, little-endian.
    assert (tmp_path / "cooccurrence.bin").read_bytes() == b"".join(
        np.array([word, context], "<i4").tobytes() + np.array([weight], "<f8").tobytes()
        for word, context, weight in [(1, 1, 1.0), (1, 2, 2.0), (2, 1, 2.0)]
    )


def test_written_files_are_read_back_even_if_shuffled(tmp_path: Path):
    rng = np.random.default_rng(1)
    documents = [[f"w{i}" for i in rng.integers(0, 40, 30)] for _ in range(20)]
    counted = Cooccurrence.count(firth.Tokens.from_lists(documents), window=4)
    counted.write(tmp_path / "a.bin")
    vocabulary = "".join(
        f"{w} {n}\n" for w, n in zip(counted.vocabulary.tokens, counted.vocabulary.counts, strict=True)
    )
    (tmp_path / "vocab.txt").write_text(vocabulary)
    words = read_vocabulary(tmp_path / "vocab.txt")
    assert list(words.tokens) == list(counted.vocabulary.tokens)
    records = np.fromfile(tmp_path / "a.bin", dtype=RECORD)
    rng.shuffle(records)
    records.tofile(tmp_path / "b.bin")
    for name in ("a.bin", "b.bin"):
        assert Cooccurrence.read(tmp_path / name, words).fingerprint == counted.fingerprint
    np.concatenate([records, records]).tofile(tmp_path / "twice.bin")  # repeated pairs are added up
    assert (Cooccurrence.read(tmp_path / "twice.bin", words).matrix != 2 * counted.matrix).nnz == 0


@pytest.fixture
def words() -> firth.Vocabulary:
    return firth.Vocabulary(["a", "b"], [2, 1])


@pytest.mark.parametrize(
    ("record", "field", "got"),
    [
        ((0, 1, 1.0), "word", 0),
        ((1, 3, 1.0), "context", 3),
        ((-5, 1, 1.0), "word", -5),
        ((1, 1, -1.0), "weight", -1.0),
        ((1, 1, 0.0), "weight", 0.0),
        ((1, 1, np.nan), "weight", np.nan),
        ((1, 1, np.inf), "weight", np.inf),
    ],
)
def test_invalid_records_are_refused(record, field, got, words, tmp_path: Path):
    np.array([(1, 2, 1.0), record], dtype=RECORD).tofile(tmp_path / "bad.bin")
    with refuses("malformed_data", path=tmp_path / "bad.bin", record=2, field=field, got=got) as error:
        Cooccurrence.read(tmp_path / "bad.bin", words)
    assert field == "weight" or error.value.values["words"] == 2


def test_unreadable_files_are_refused(words, tmp_path: Path):
    (tmp_path / "cut.bin").write_bytes(b"\1\0\0\0" * 5)
    with refuses("malformed_data", path=tmp_path / "cut.bin", size=20, records=1, itemsize=16, rest=4):
        Cooccurrence.read(tmp_path / "cut.bin", words)
    with refuses("unreadable_file", path=tmp_path / "absent.bin"):
        Cooccurrence.read(tmp_path / "absent.bin", words)
    (tmp_path / "none.bin").write_bytes(b"")
    assert len(Cooccurrence.read(tmp_path / "none.bin", words)) == 0
    (tmp_path / "vocab.txt").write_text("a 3\nb\n")
    with refuses("malformed_data", path=tmp_path / "vocab.txt", number=2, got="b"):
        read_vocabulary(tmp_path / "vocab.txt")
    with refuses("unreadable_file", path=tmp_path / "absent.txt"):
        read_vocabulary(tmp_path / "absent.txt")


@settings(deadline=None, max_examples=150)
@given(data=st.one_of(st.binary(max_size=200), st.lists(st.tuples(
    st.integers(-1, 4), st.integers(-1, 4), st.floats()), max_size=8).map(lambda rows: np.array(rows, RECORD).tobytes())
))  # fmt: skip
def test_any_bytes_are_read_or_refused(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "x.bin"
    path.write_bytes(data)
    vocabulary = firth.Vocabulary(["a", "b", "c"], [3, 2, 1])
    try:
        counted = Cooccurrence.read(path, vocabulary)
    except firth.FirthError:
        return
    records = np.frombuffer(data, dtype=RECORD)
    expected = np.zeros((3, 3))
    np.add.at(expected, (records["word"] - 1, records["context"] - 1), records["weight"])
    np.testing.assert_allclose(counted.matrix.toarray(), expected, rtol=1e-12)


def test_inconsistent_arrays_are_refused(words):
    good: dict[str, Any] = {
        "indptr": np.array([0, 1, 2]),
        "indices": np.array([1, 0], np.int32),
        "weights": np.array([1.0, 2.0]),
    }
    assert len(Cooccurrence(**good, vocabulary=words)) == 2
    for name, bad, values in (
        ("indptr", np.array([0, 2]), {"records": 2, "words": 2}),
        ("indices", np.array([1, 2], np.int32), {"last_id": 1, "got": 2}),
        ("weights", np.array([1.0, np.nan]), {"lowest": np.nan}),
    ):
        with refuses("damaged_file", **values):
            Cooccurrence(**{**good, name: bad}, vocabulary=words)
