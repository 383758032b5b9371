"""Encoding of a corpus: comparison with Counter for any threads and blocks; the cache; notes and errors."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusing import refuses, warns_code

from firth import Corpus, FirthError, Run, Tokens, Vocabulary
from firth.data import corpus_encoding, streams
from firth.data.corpus import Document
from firth.data.tokens import read_tokens
from firth.kernels.text import tokenize_twin

words = st.sampled_from(["the", "of", "Paris", "don't", "3.14", "naïve", "Ωmega", "x" * 20, "x" * 20 + "é", "中文"])
line = st.lists(words, max_size=8).map(" ".join)


Plain = tuple[list[str], list[int], list[list[int]]]


def plain(documents: Sequence[Sequence[str]], min_count: int, max_size: int | None = None) -> Plain:
    """Return the vocabulary, the counts and the ids of each document, computed with Counter."""
    counts = Counter(token for document in documents for token in document)
    order = sorted((t for t in counts if counts[t] >= min_count), key=lambda t: (-counts[t], t.encode()))[:max_size]
    ids = {token: id for id, token in enumerate(order)}
    return order, [counts[token] for token in order], [[ids[t] for t in d if t in ids] for d in documents]


def split(tokens: Tokens) -> list[list[int]]:
    return [tokens.ids[a:b].tolist() for a, b in zip(tokens.starts[:-1], tokens.starts[1:], strict=True)]


def same(tokens: Tokens, expected: Plain) -> bool:
    return (list(tokens.vocabulary.tokens), tokens.vocabulary.counts.tolist(), split(tokens)) == expected


class Notes:
    """Records notes and progress."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []
        self.steps: list[float] = []
        self.open = 0

    def begin(self, task: str, total: float, unit: str) -> None:
        self.open += 1
        self.total, self.unit = total, unit

    def step(self, done: float, **metrics: float) -> None:
        self.steps.append(done)

    def end(self) -> None:
        self.open -= 1

    def note(self, text: str, code: str = "note") -> None:
        self.notes.append((code, text))


@given(
    st.lists(line, min_size=1, max_size=30), st.sampled_from([1, 2, 4]), st.integers(16, 300),
    st.integers(1, 3), st.sampled_from([None, 1, 3]), st.sampled_from(["words", "whitespace", "characters"]),
)  # fmt: skip
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_result_equals_counter_for_any_threads_and_blocks(
    monkeypatch: pytest.MonkeyPatch, lines: list[str], threads: int, block: int, min_count: int,
    max_size: int | None, name: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(corpus_encoding, "BLOCK", block)
    expected = plain([tokenize_twin(line, name, True) for line in lines], min_count, max_size)
    options: dict[str, Any] = {"tokenizer": name, "min_count": min_count, "max_size": max_size}
    if not expected[0]:
        with pytest.raises(FirthError) as error:
            read_tokens(lines, run=Run(threads=threads), **options)
        assert error.value.code in ("empty_data", "empty_vocabulary")
        return
    assert same(read_tokens(lines, run=Run(threads=threads), **options), expected)


def test_large_text_on_several_threads(tmp_path: Path) -> None:
    """The text is large enough to be split over threads; the result does not depend on their number."""
    random = np.random.default_rng(7)
    lines = [" ".join(f"w{n}" for n in random.zipf(1.3, 40) % 5000) for _ in range(3000)]
    path = tmp_path / "text.txt"
    path.write_text("\n".join(lines))
    expected = plain([line.split() for line in lines], 2)
    results = [read_tokens(path, min_count=2, run=Run(threads=threads, memory="1GB")) for threads in (1, 2, 4)]
    assert all(same(tokens, expected) for tokens in results)
    assert len({tokens.fingerprint for tokens in results}) == 1
    assert results[0].raw_tokens == 120_000
    assert results[0].vocabulary.dropped_tokens == 120_000 - len(results[0].ids)


def test_folder_is_read_with_its_text_files(tmp_path: Path) -> None:
    for name, text in (
        ("b.txt", "b"),
        ("a.md", "a"),
        ("deep/c.jsonl", '{"text": "c"}'),
        (".hidden.txt", "d"),
        ("e.png", "e"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert [text for _, text in Corpus(tmp_path)] == ["a", "b", "c"]
    (tmp_path / "config.json").write_text("{}")
    with refuses("wrong_input", path=tmp_path):
        Corpus(tmp_path)


def test_one_long_line_is_one_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_encoding, "BLOCK", 1000)
    # Ids per mapped window: some windows have several segments, and some segments are cut by the end of a window.
    monkeypatch.setattr(corpus_encoding, "WINDOW", 300)
    text = [f"word{n % 77}" for n in range(20_000)]
    (tmp_path / "text8").write_text(" ".join(text))
    assert same(read_tokens(tmp_path / "text8", min_count=1, run=Run(threads=2)), plain([text], 1))


def test_text_without_spaces_is_cut_between_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_encoding, "BLOCK", 1000)
    text = "我们在北京，他们在上海。" * 500
    (tmp_path / "zh.txt").write_text(text)
    tokens = read_tokens(tmp_path / "zh.txt", tokenizer="characters", min_count=1, run=Run(threads=2))
    assert same(tokens, plain([tokenize_twin(text, "characters", True)], 1))
    with warns_code("unsegmented_script"):
        read_tokens([text.replace("，", "")], min_count=1, run=Run(threads=1))


def test_empty_documents_are_kept() -> None:
    tokens = read_tokens(["", "a b", "rare", "", "b a", ""], min_count=2, run=Run(threads=1))
    assert tokens.starts.tolist() == [0, 0, 2, 2, 2, 4, 4]
    assert (tokens.vocabulary.dropped_types, tokens.vocabulary.dropped_tokens, tokens.raw_tokens) == (1, 1, 5)


def test_words_of_the_start_vocabulary_keep_their_ids() -> None:
    start = Vocabulary(["zebra", "b", "a"], [9, 5, 2])
    lines = ["a a new new", "b new other"]
    for data in (lines, Tokens.from_lists([line.split() for line in lines])):
        tokens = read_tokens(data, min_count=2, start_vocabulary=start, run=Run(threads=2))
        assert list(tokens.vocabulary.tokens) == ["zebra", "b", "a", "new"]
        assert tokens.vocabulary.counts.tolist() == [0, 1, 2, 3]
        assert split(tokens) == [[2, 2, 3, 3], [1, 3]]
        assert tokens.vocabulary.dropped_types == 1


def test_words_of_the_start_vocabulary_must_be_different() -> None:
    for words in (["a", "a"], [""]):
        with pytest.raises(ValueError, match="must be distinct and not empty"):
            read_tokens(["a"], start_vocabulary=Vocabulary(words, [1] * len(words)))


def test_custom_tokenizer_and_lists() -> None:
    tokens = Tokens.from_lists([["New York", "a\nb", ""], [], ("New York", "é" * 40)])
    assert list(tokens.vocabulary.tokens) == ["New York", "a\nb", "é" * 40]
    assert split(tokens) == [[0, 1], [], [0, 2]]
    with warns_code("invalid_utf8"):
        assert list(Tokens.from_lists([["\ud800"]]).vocabulary.tokens) == ["���"]
    with warns_code("invalid_utf8") as warned:
        read_tokens(["a-\udcff"], tokenizer=lambda text: text.split("-"), min_count=1)
    assert str(warned[0]).startswith("1 ")
    halves = read_tokens(["a-b", "b-c"], tokenizer=lambda text: text.split("-"), min_count=1)
    assert same(halves, plain([["a", "b"], ["b", "c"]], 1))
    with refuses("invalid_value", what="token", number=1):
        Tokens.from_lists([["a\0b"]])


def test_tokens_with_another_vocabulary() -> None:
    documents = [["a", "b", "a"], [], ["b", "c", "a"], []]
    tokens = Tokens.from_lists(documents)
    assert read_tokens(tokens, min_count=1) is tokens
    assert same(read_tokens(tokens, min_count=2), plain(documents, 2))
    assert same(read_tokens(tokens, min_count=1, max_size=1), plain(documents, 1, 1))
    assert read_tokens(tokens, min_count=2).vocabulary.dropped_tokens == 1


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=20), st.integers(1, 7))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_flat_ids_as_a_stream(monkeypatch: pytest.MonkeyPatch, documents: list[list[str]], piece: int) -> None:
    monkeypatch.setattr(streams, "PIECE", piece)
    ids = np.array([ord(token) - 97 for document in documents for token in document], dtype=np.int32)
    starts = np.cumsum([0, *map(len, documents)])
    pieces = streams.flat_pieces(ids, starts, np.arange(3, dtype=np.int32))()
    streamed = [int(id) for part in pieces for id in part.ids]
    assert streamed == [id for document in documents for id in [*(ord(token) - 97 for token in document), -1]]


# ---- the cache ----


def entries(cache: Path) -> list[Path]:
    return sorted(path for path in cache.iterdir() if (path / "entry.json").is_file()) if cache.is_dir() else []


def test_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.txt").write_bytes("über größe café\n".encode("latin-1" if number == 2 else "utf-8"))
    notes = Notes()
    read_tokens(f"{tmp_path}/*.txt", min_count=1, run=Run(report=notes))
    ((code, text),) = notes.notes
    assert code == "invalid_utf8" and f"first in {tmp_path / '2.txt'}. " in text and "iconv" in text


def test_second_reading_uses_the_cache(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a b a caf\xe9\n")
    first, second, third = Notes(), Notes(), Notes()
    one = read_tokens(path, min_count=1, run=Run(report=first))
    assert first.steps and first.open == 0 and (first.total, first.unit) == (11, "B") and first.steps[-1] == 11
    two = read_tokens(path, min_count=1, run=Run(report=second))
    assert not second.steps
    ((code, text),) = first.notes
    assert second.notes == first.notes and code == "invalid_utf8" and text.startswith("1 ")
    assert (split(two), two.fingerprint, two.raw_tokens) == (split(one), one.fingerprint, one.raw_tokens)
    assert two.vocabulary.to_json() == one.vocabulary.to_json()
    read_tokens(path, min_count=2, run=Run(report=third))
    assert third.steps and len(entries(cache)) == 2
    path.write_text("c")
    assert list(read_tokens(path, min_count=1).vocabulary.tokens) == ["c"]


def test_notes_of_earlier_cache_entries_are_read(tmp_path: Path, cache: Path) -> None:
    """Entries of earlier versions have notes without codes."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"a b a caf\xe9\n")
    first, second = Notes(), Notes()
    read_tokens(path, min_count=1, run=Run(report=first))
    (entry,) = entries(cache)
    document = json.loads((entry / "entry.json").read_text())
    document["facts"]["notes"] = ["An old note."]
    (entry / "entry.json").write_text(json.dumps(document))
    read_tokens(path, min_count=1, run=Run(report=second))
    assert second.notes == [("note", "An old note.")] and not second.steps


@pytest.mark.parametrize("harm", ["cut", "zeros", "json", "words", "gone"])
def test_damaged_cache_entries_are_rebuilt(tmp_path: Path, cache: Path, harm: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a b a\n" * 100)
    good = split(read_tokens(path, min_count=1))
    (entry,) = entries(cache)
    ids = entry / "ids.i32"
    match harm:
        case "cut":
            os.truncate(ids, 100)
        case "zeros":
            ids.write_bytes(bytes(ids.stat().st_size))
        case "json":
            (entry / "entry.json").write_text("{")
        case "words":
            (entry / "words.utf8").write_bytes(b"\xff\0b\0")
        case "gone":
            ids.unlink()
    again = Notes()
    assert split(read_tokens(path, min_count=1, run=Run(report=again))) == good
    assert again.steps
    third = Notes()
    read_tokens(path, min_count=1, run=Run(report=third))
    assert not third.steps  # repaired


def test_least_recently_used_entries_are_removed_first(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{n}.txt" for n in range(3)]
    for number, path in enumerate(paths):
        path.write_text(f"w{number} " * 10_000)
    read_tokens(paths[0], min_count=1)
    read_tokens(paths[1], min_count=1)
    for entry in entries(cache):
        words = (entry / "words.utf8").read_bytes()
        os.utime(entry / "entry.json", (1, 1) if words == b"w1\0" else (2, 2))
    monkeypatch.setenv("FIRTH_CACHE_SIZE", "100KB")
    read_tokens(paths[2], min_count=1)
    assert sorted((entry / "words.utf8").read_bytes() for entry in entries(cache)) == [b"w0\0", b"w2\0"]


def test_folder_of_a_killed_process_is_removed(tmp_path: Path, cache: Path) -> None:
    program = (
        "import os, signal, sys; from firth.data.tokens import read_tokens\n"
        "read_tokens((n and os.kill(os.getpid(), signal.SIGKILL)) or 'a b' for n in range(3))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL and len(list(cache.iterdir())) == 1

    def texts() -> Iterator[str]:
        (killed,) = cache.iterdir()
        yield "a b c"
        (writing,) = cache.iterdir()
        read_tokens(["d e f"], min_count=1)
        assert writing.exists() and not killed.exists()

    read_tokens(texts(), min_count=1)
    assert list(cache.iterdir()) == []


def test_two_concurrent_processes(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("some words again " * 200_000)
    program = (
        "import sys; from firth.data.tokens import read_tokens\n"
        "for n in range(1, 6): t = read_tokens(sys.argv[1], min_count=n)\n"
        "print(t.fingerprint)"
    )
    command = [sys.executable, "-c", program, str(path)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = {child.communicate(timeout=60)[0] for child in children}
    assert [child.returncode for child in children] == [0, 0]
    assert outputs == {read_tokens(path, min_count=5).fingerprint + "\n"}
    assert len(entries(cache)) == len(list(cache.iterdir())) == 5


def test_unwritable_cache_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "file" / "cache"))
    (tmp_path / "a.txt").write_text("a b")
    report = Notes()
    tokens = read_tokens(tmp_path / "a.txt", min_count=1, run=Run(report=report))
    assert split(tokens) == [[0, 1]]
    ((code, text),) = report.notes
    assert code == "cache_unwritable" and str(tmp_path / "file" / "cache") in text


def test_iterables_leave_nothing_behind(cache: Path) -> None:
    tokens = read_tokens(iter(["a b", "b"]), min_count=1)
    assert list(cache.iterdir()) == []
    assert split(tokens) == [[1, 0], [0]]


def test_error_while_reading_leaves_nothing_behind(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{')
    with refuses("malformed_data", number=2):
        read_tokens(tmp_path / "a.jsonl", min_count=1)
    assert list(cache.iterdir()) == []


def test_full_disk_is_reported_with_the_path(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: object, values: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for module in (corpus_encoding, streams):
        monkeypatch.setattr(module, "write_all", full)
        with refuses("unwritable_file", reason=os.strerror(errno.ENOSPC)) as error:
            read_tokens(["a b"], min_count=1)
        assert str(cache) in str(error.value.values["path"])
        monkeypatch.undo()
        monkeypatch.setenv("FIRTH_CACHE", str(cache))
    assert list(cache.iterdir()) == []


def test_errors_of_the_source_are_not_changed() -> None:
    def broken() -> Iterator[str]:
        yield "a"
        raise ConnectionError("the line is dead")

    with pytest.raises(ConnectionError, match="the line is dead"):
        read_tokens(broken(), min_count=1)


def test_interrupt_leaves_nothing_behind(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "a.txt").write_text("some words " * 3_000_000)
    program = (
        "import sys; from firth import Run; from firth.data.tokens import read_tokens\n"
        "class Report:\n"
        "    def begin(self, *a): pass\n"
        "    def step(self, *a, **k): print('step', flush=True)\n"
        "    def end(self): pass\n"
        "    def note(self, text, code='note'): pass\n"
        "read_tokens(sys.argv[1], run=Run(threads=1, report=Report()))\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "a.txt")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout and child.stdout.readline() == b"step\n"
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert child.returncode != 0 and b"KeyboardInterrupt" in errors
    assert list(cache.iterdir()) == []


# ---- limits and errors ----


@pytest.mark.parametrize(("threads", "memory"), [(1, "2MB"), (2, "8MB"), (4, "1KB")])
def test_rarest_words_are_dropped_under_a_memory_limit(tmp_path: Path, threads: int, memory: str) -> None:
    frequent = [f"common{n}" for n in range(200)]
    lines = [" ".join([*frequent, *(f"rare{number}x{n}" for n in range(200))]) for number in range(200)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    report = Notes()
    run = Run(threads=threads, memory=memory, report=report)
    tokens = read_tokens(tmp_path / "a.txt", min_count=50, run=run)
    assert set(tokens.vocabulary.tokens) == set(frequent)
    assert tokens.vocabulary.counts.tolist() == [200] * 200
    assert tokens.raw_tokens == 80_000
    assert same(tokens, plain([line.split() for line in lines], 50))
    ((code, text),) = report.notes
    assert code == "memory_limit" and f"memory={memory}" in text and "40,000 of 80,000" in text


def test_corpora_without_words_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    sources: list[Any] = [tmp_path / "empty.txt", ["", " ... "], [], iter([])]
    for data in sources:
        with refuses("empty_data"):
            read_tokens(data)
    with refuses("empty_vocabulary", min_count=5, types=3, tokens=5, top_count=2):
        read_tokens(["a b a", "b c"])
    with refuses("invalid_value", option="tokenizer", choices="words, whitespace, characters, jieba", got="bpe"):
        read_tokens(["a"], tokenizer="bpe")


def test_vocabulary_json() -> None:
    vocabulary = Vocabulary(["b", "a"], [3, 2], min_count=2, dropped_types=4, dropped_tokens=5)
    again = Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json())))
    assert again.to_json() == vocabulary.to_json()
    assert (again.id("a"), again.id("x"), "b" in again, len(again)) == (1, None, True, 2)
    for bad, values in (
        (None, {}),
        ({}, {"reason": "'tokens'"}),
        ({"tokens": ["a"], "counts": ["1"]}, {"field": "counts"}),
        ({"tokens": [1], "counts": [1]}, {"field": "tokens"}),
        ({"tokens": ["a", "a"], "counts": [1, 1]}, {"repeated": 1}),
        ({"tokens": ["a"], "counts": [1, 2]}, {"got": 2, "tokens": 1}),
        ({"tokens": ["a"], "counts": [-1]}, {"field": "counts"}),
        ({"tokens": ["a"], "counts": [2**70]}, {"field": "counts"}),
    ):
        with refuses("damaged_model", **values):
            Vocabulary.from_json(bad)


def test_no_warnings_on_plain_text() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_tokens(["plain text ❤️ 中文字"], min_count=1).raw_tokens


def test_jieba_is_used_if_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    with refuses("missing_package") as error:
        read_tokens(["中文"], tokenizer="jieba")
    assert "pip install jieba" in str(error.value)

    class Jieba:
        __version__ = "0"
        lcut = staticmethod(lambda text: ["我们", "，", "Go".lower()])

    monkeypatch.setitem(sys.modules, "jieba", Jieba)
    assert list(read_tokens(["我们，Go"], tokenizer="jieba", min_count=1).vocabulary.tokens) == ["go", "我们"]


@pytest.mark.parametrize("tokenizer", ["words", str.split])
def test_keys_are_stored_on_request(tokenizer: Any) -> None:
    documents = [Document("x", "a b"), Document("y", ""), Document("z", "b")]
    assert read_tokens(Corpus(documents), tokenizer=tokenizer, min_count=1, keys=True).keys == ["x", "y", "z"]
    assert read_tokens(Corpus(documents), tokenizer=tokenizer, min_count=1).keys == ["1", "2", "3"]
    fewer = read_tokens(read_tokens(Corpus(documents), min_count=1, keys=True), min_count=2)
    assert fewer.keys == ["x", "y", "z"] and len(fewer.vocabulary) == 1


@pytest.mark.parametrize("tokenizer", ["words", str.split])
def test_tags_are_stored_with_the_keys(tokenizer: Any, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"text": "a b", "tag": "x"}\n{"text": "", "tag": null}\n{"text": "b", "tag": ["y", "x"]}\n')
    for _ in range(2):  # the second time from the cache
        tokens = read_tokens(Corpus(path, column="text", tags="tag"), tokenizer=tokenizer, min_count=1, keys=True)
        assert tokens.tags == [("x",), (), ("y", "x")]
    assert read_tokens(tokens, min_count=2).tags == tokens.tags
    assert read_tokens(Corpus(path, column="text"), tokenizer=tokenizer, min_count=1, keys=True).tags == ()


def test_lists_of_tokens_have_keys_and_tags() -> None:
    tokens = Tokens.from_lists([["a"], ["b", "a"]], keys=["k", "l"], tags=[["x"], []])
    assert tokens.keys == ["k", "l"] and tokens.tags == [("x",), ()]
    with refuses("shape_mismatch", option="tags", got=1, documents=2):
        Tokens.from_lists([["a"], ["b"]], tags=[["x"]])
