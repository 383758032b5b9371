"""Splitting of documents into sentences, and their encoding as ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import firth
from firth.data.sentences import read_sentences, split_sentences
from firth.data.subwords import WordPiece

TEXTS = [
    "The king slept. The queen woke! Who was there?",
    "",
    "One sentence only",
    "A first.\nA second line",
    " \x00 \n",
]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("The king slept. The queen woke! Who?", ["The king slept.", "The queen woke!", "Who?"]),
        ('"Stop!" he cried. "Go." She went.', ['"Stop!" he cried.', '"Go."', "She went."]),
        ("Mr. Smith met J. R. Firth. It is e.g. No. 5.", ["Mr. Smith met J. R. Firth.", "It is e.g. No. 5."]),
        ("It cost 3.14 then. 5 p.m. came.", ["It cost 3.14 then.", "5 p.m. came."]),
        ("Wait... what? I see.", ["Wait... what?", "I see."]),
        ("no capitals here. so case says nothing.", ["no capitals here.", "so case says nothing."]),
        ("Cut into tokens . and so on .", ["Cut into tokens .", "and so on ."]),
        ("one\ntwo\r\n\r\nthree\u2028four", ["one", "two", "three", "four"]),
        ("今天很好。去吧！“好。”他说", ["今天很好。", "去吧！", "“好。”", "他说"]),
        ("यह एक है। दूसरा।", ["यह एक है।", "दूसरा।"]),
        ("", []),
        ("\x00\n \u200b \n\ufffd\n\u0301", []),  # nothing that a tokenizer would keep
        ("x" * 1_000_000, ["x" * 1_000_000]),
    ],
)  # fmt: skip
def test_text_is_split_at_punctuation(text, sentences):
    assert list(split_sentences(text)) == sentences


def test_long_runs_of_punctuation_are_kept():
    """The time is linear in the length: a quadratic search would not end."""
    for text in ("!" * 300_000, "." + '"' * 300_000, "a." * 150_000, ". " * 100_000):
        assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@pytest.fixture(scope="module")
def tokenizer():
    return WordPiece(size=80, min_count=1).train(firth.Corpus(TEXTS))


def test_each_document_has_its_sentences(tokenizer):
    sentences = read_sentences(tokenizer, TEXTS)
    starts = sentences.starts
    texts = [
        [tokenizer.decode(sentences.ids[starts[s] : starts[s + 1]]) for s in range(first, last)]
        for first, last in zip(sentences.documents, sentences.documents[1:], strict=False)
    ]
    plain = [[sentence.lower() for sentence in split_sentences(text)] for text in TEXTS]
    assert [[text.replace(" ", "") for text in each] for each in texts] == [
        [text.replace(" ", "") for text in each] for each in plain if each
    ]  # documents without text are left out
    assert sentences.of.tolist() == [0, 0, 0, 1, 2, 2]
    part = sentences.part(1, 5)
    assert part.documents.tolist() == [0, 2, 3, 4] and part.starts.tolist() == starts[1:6].tolist()
    assert sentences.part(2, 2).documents.tolist() == [0]


def test_sentences_are_cached(tokenizer, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "text.txt").write_text("\n\n".join(TEXTS[:3]))
    corpus = firth.Corpus(tmp_path / "text.txt", unit="block")
    one = read_sentences(tokenizer, corpus)
    monkeypatch.setattr("firth.data.sentences.split_sentences", None)
    again = read_sentences(tokenizer, firth.Corpus(tmp_path / "text.txt", unit="block"))
    for mine, theirs in zip(one[:3], again[:3], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert again.fingerprint == one.fingerprint
