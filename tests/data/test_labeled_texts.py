"""Labeled texts from every kind of source, and their encoding as ids."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from refusing import refuses, warns_code

import firth
from firth.data.labeled_texts import Example, LabeledTexts, read_labeled_texts

FASTTEXT = "__label__x.y Hello World\nfoo __label__b __label__x.y bar\n\nno label here\n__label__ lone\n"
EXAMPLES = [
    Example("Hello World", ("x.y",)),
    Example("foo   bar", ("b", "x.y")),
    Example("", ()),
    Example("no label here", ()),
    Example("lone", ()),
]
PAIRS = [("one two", ("a", "b c")), ("three", ()), ("", ("1",))]
RECORDS = '{"label": ["a", "b c"], "body": "one two"}\n{"label": null, "body": "three"}\n{"label": 1, "body": ""}\n'


def decoded(examples):
    """Return the words and labels of each text, decoded from the ids."""
    texts, words, labels = examples.texts, examples.tokens.vocabulary.tokens, examples.labels.tokens
    return [
        (
            [words[i] for i in texts.ids[slice(*texts.starts[n : n + 2])]],
            [labels[i] for i in texts.labels[slice(*texts.label_starts[n : n + 2])]],
        )
        for n in range(len(texts.starts) - 1)
    ]


@pytest.mark.parametrize("name", ["t.txt", "t.txt.gz"])
def test_fasttext_files(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(FASTTEXT.encode()) if name.endswith("gz") else FASTTEXT.encode())
    data = LabeledTexts(tmp_path / name)
    assert list(data) == list(data) == EXAMPLES
    examples = read_labeled_texts(data)
    assert decoded(examples) == [(str(e.text).lower().split(), list(e.labels)) for e in EXAMPLES]
    assert examples.labels.tokens == ["x.y", "b"] and examples.labels.counts.tolist() == [2, 1]


def test_the_tokenizer_fasttext_ends_each_text(tmp_path):
    (tmp_path / "t.txt").write_text("__label__a Ä\u00a0b  c\n\n__label__b d")
    examples = read_labeled_texts(LabeledTexts(tmp_path / "t.txt"), tokenizer="fasttext", lowercase=False)
    assert decoded(examples) == [(["Ä\u00a0b", "c", "</s>"], ["a"]), (["</s>"], []), (["d", "</s>"], ["b"])]
    assert decoded(read_labeled_texts([("A b", "x")], tokenizer="fasttext")) == [(["a", "b", "</s>"], ["x"])]


def test_records(tmp_path):
    (tmp_path / "t.jsonl").write_text(RECORDS)
    assert [tuple(e) for e in LabeledTexts(tmp_path / "t.jsonl")] == PAIRS
    expected = [(["one", "two"], ["a", "b c"]), (["three"], []), ([], ["1"])]
    assert decoded(read_labeled_texts(LabeledTexts(tmp_path / "t.jsonl", column="body", label="label"))) == expected
    table = pa.table({"body": [text for text, _ in PAIRS], "tags": [list(labels) for _, labels in PAIRS]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    assert [tuple(e) for e in LabeledTexts(tmp_path / "t.parquet", label="tags")] == PAIRS
    (tmp_path / "t.tsv").write_text("sentence\tlabel\ngood film\t1\nbad film\t0\n")
    assert list(LabeledTexts(tmp_path / "t.tsv")) == [Example("good film", ("1",)), Example("bad film", ("0",))]
    (tmp_path / "t.csv").write_text("label,text,note\nx,a text,n\n")
    assert list(LabeledTexts(tmp_path / "t.csv")) == [Example("a text", ("x",))]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_data_frames(frame):
    data = LabeledTexts(frame({"words": ["a b", "c"], "label": ["x", None]}))
    assert list(data) == [Example("a b", ("x",)), Example("c", ())]


def test_iterables_can_be_read_repeatedly():
    pairs = [("a b", "x"), ("c", ["x", "y"]), ("", []), ("d", None)][:3]
    for source in (pairs, iter(pairs), (pair for pair in pairs)):
        data = LabeledTexts(source)
        assert list(data) == list(data) == [Example("a b", ("x",)), Example("c", ("x", "y")), Example("", ())]
        assert decoded(read_labeled_texts(data)) == [(["a", "b"], ["x"]), (["c"], ["x", "y"]), ([], [])]


@pytest.mark.parametrize("tokenizer", ["words", "fasttext"])
def test_result_does_not_depend_on_blocks_and_threads(tmp_path, tokenizer):
    """With a memory limit, blocks have 4 kB; labels and texts stay together."""
    rng = np.random.default_rng(3)
    lines = [
        " ".join([f"__label__l{rng.integers(9)}" * (rng.random() < 0.8), *(f"w{i}" for i in rng.integers(0, 400, n))])
        for n in rng.integers(0, 60, 2000)
    ]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    runs = [firth.Run(threads=1), firth.Run(threads=3), firth.Run(memory="64MB"), firth.Run(memory="200kB", threads=2)]
    results = [read_labeled_texts(LabeledTexts(tmp_path / "t.txt"), tokenizer=tokenizer, run=run) for run in runs]
    assert all(decoded(each) == decoded(results[0]) for each in results)
    assert len({each.fingerprint for each in results}) == 1
    assert [labels for _, labels in decoded(results[0])] == [
        [word[9:] for word in line.split() if word.startswith("__label__")] for line in lines
    ]


def test_fingerprint_depends_on_the_labels():
    prints = {read_labeled_texts([("a b", "x"), ("c", label)]).fingerprint for label in ("x", "y", ["x", "y"])}
    assert len(prints) == 3


def test_invalid_utf8_is_counted(tmp_path):
    (tmp_path / "t.txt").write_bytes(b"__label__a caf\xe9 noir\n__label__b ok\n")
    with warns_code("invalid_utf8") as warned:
        examples = read_labeled_texts(LabeledTexts(tmp_path / "t.txt"))
    assert str(warned[0]).startswith("1 ") and decoded(examples)[0][1] == ["a"]
    assert next(iter(LabeledTexts(tmp_path / "t.txt"))).text == "caf� noir"


@pytest.mark.parametrize(
    "items", [["a"], [("a", [None])], [("a", [["b"]])], [3], [("a", "b", "c")], [("a", "x\0y")], [(None, "x")]]
)
def test_items_that_are_not_pairs_are_refused(items):
    with refuses("invalid_type") as error:
        list(LabeledTexts(items))
    (item,) = items
    is_pair = isinstance(item, tuple) and len(item) == 2
    assert repr(item[0] if is_pair else item) in error.value.values["got"]


def test_labels_may_be_numbers(tmp_path):
    frame = pd.DataFrame({"text": ["a", "b", "c"], "label": [5, None, 4]})  # a missing one makes all of them floats
    for source in (
        frame,
        [("a", 5), ("b", float("nan")), ("c", np.int64(4))],
        iter([("a", 5.0), ("b", []), ("c", 4.0)]),
    ):
        assert [example.labels for example in LabeledTexts(source)] == [("5",), (), ("4",)]


def test_invalid_sources_are_refused(tmp_path):
    (tmp_path / "t.txt").write_text("__label__a b\n")
    (tmp_path / "t.csv").write_text("text,tag\na,b\n")
    with refuses("conflicting_options", options="text files with __label__ words or records"):
        LabeledTexts(tmp_path / "t.txt", [("a", "b")])
    with refuses("unknown_column", name="label", available="text, tag"):
        list(LabeledTexts(tmp_path / "t.csv"))
    (tmp_path / "t.jsonl").write_text('{"text": "a", "label": "x\\u0000y"}\n')
    with refuses("invalid_value", what="label", got="x\0y"):
        read_labeled_texts(tmp_path / "t.jsonl")
    with refuses("missing_option", option="source"):
        LabeledTexts()
