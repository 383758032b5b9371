"""Token classification: input formats, logits equal to those of transformers, spans as in conlleval, training."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from refusing import refuses, warns_code
from tiny import tiny_bert, tiny_gpt

import firth
from firth.data.tagged_sentences import Sentence, entity_spans
from firth.data.world import World
from firth.finetuning.token_classification import parts_of
from firth.nets.attention import Packed

ONE = firth.Run(threads=1)
QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 8, "dropout": 0.0, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def base():
    return tiny_bert()


def world(count: int = 60):
    """Return sentences with "of", in which the word after it is tagged."""
    rows = []
    for text in (text for text in World(seed=21).sentences(5 * count) if " of " in text):
        words = text.split()
        rows.append((words, ["B-OF" if n and words[n - 1] == "of" else "O" for n in range(len(words))]))
    return rows[:count]


def test_sentences_are_read_from_all_formats(tmp_path):
    expected = [Sentence(("Ada", "writes"), ("B-PER", "O")), Sentence(("Rome",), ("B-LOC",))]
    (tmp_path / "a.conll").write_text("# text\n-DOCSTART- -X- O\n\nAda NNP B-PER\nwrites VB O\n\n\nRome NNP B-LOC\n")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"w": row.words, "t": row.tags}) + "\n" for row in expected))
    (tmp_path / "a.csv").write_text("text,tags\nAda writes,B-PER O\nRome,B-LOC\n")
    assert list(firth.TaggedSentences(tmp_path / "a.conll")) == expected
    assert list(firth.TaggedSentences(tmp_path / "a.jsonl", text="w", tags="t")) == expected
    assert list(firth.TaggedSentences(tmp_path / "a.csv")) == expected
    assert list(firth.TaggedSentences([(row.words, row.tags) for row in expected])) == expected
    assert list(firth.TaggedSentences({"text": ["Ada writes", "Rome"], "tags": ["B-PER O", "B-LOC"]})) == expected


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ([(["a", "b"], ["x"])], {"where": "Row 1", "words": 2, "tags": 1}),
        ({"words": ["a"], "tags": ["x"]}, {"where": "Row 1", "name": "text", "available": "words, tags"}),
        ([(["a", 3], ["x", "y"])], {"where": "Row 1", "got": ["a", 3]}),
        ([3], {"where": "Row 1", "got": 3}),
    ],
)
def test_malformed_sentences_are_refused(source, values):
    with refuses("malformed_data", **values):
        firth.TaggedSentences(source)


def test_a_line_without_a_tag_is_refused(tmp_path):
    (tmp_path / "a.conll").write_text("Ada B-PER\nwrites\n")
    with refuses("malformed_data", path=tmp_path / "a.conll", number=2, got="writes"):
        firth.TaggedSentences(tmp_path / "a.conll")


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("B-X I-X O B-X", {("X", 0, 1), ("X", 3, 3)}),
        ("B-X B-X I-Y I-Y", {("X", 0, 0), ("X", 1, 1), ("Y", 2, 3)}),
        ("I-X I-X O", {("X", 0, 1)}),  # conlleval reads an I without a B as the start of a span
        ("O O", set()),
    ],
)
def test_spans_are_those_of_conlleval(tags, spans):
    assert entity_spans(tags.split()) == spans


def test_long_sentences_are_split_between_words(base):
    words = " ".join(World(seed=21).sentences(30)).split()
    parts = parts_of(base.tokenizer, [words, ["king"]], 40)
    n_parts = (parts.sentence_ids == 0).sum()
    assert parts.texts.lengths.max() <= 40 and parts.sentence_ids[-1] == 1 and n_parts > 3
    word_numbers = parts.words[: parts.texts.starts[n_parts]]
    assert word_numbers[word_numbers >= 0].tolist() == list(range(len(words)))  # each word once, in order
    model = firth.TokenClassifier(**QUICK, max_length=40).fit(world(), ONE, base)
    assert [word.word for word in model.tag([words])[0]] == words


def test_transformers_computes_the_same_logits(base, tmp_path):
    from transformers import AutoTokenizer, BertForTokenClassification

    model = firth.TokenClassifier(**QUICK).fit(world(), ONE, base)
    model.save(tmp_path / "ours")
    net = BertForTokenClassification.from_pretrained(tmp_path / "ours").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "ours")
    words = world(3)[2][0]
    ids, kinds, starts = parts_of(model.tokenizer, [words], 128).texts.tensors([0], True)
    with torch.no_grad():
        ours = model.net(ids, kinds, Packed(starts, len(ids)))
        theirs = net(**tokenizer(words, is_split_into_words=True, return_tensors="pt")).logits[0]
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert net.config.id2label == dict(enumerate(model.labels)) == {0: "O", 1: "B-OF"}
    net.save_pretrained(tmp_path / "theirs")
    tokenizer.save_pretrained(tmp_path / "theirs")
    assert firth.load(tmp_path / "theirs", firth.TokenClassifier).tag([words])[0][0].tag == model.tag([words])[0][0].tag


def test_tags_that_depend_on_the_previous_word_are_learned():
    """Whether a word follows "of" cannot be told from the word alone; the most frequent tag of each word is worse."""
    rows = world(460)
    train, test = rows[:400], rows[400:]
    model = firth.TokenClassifier(epochs=8, learning_rate=4e-3, dropout=0.0, metric="f1").fit(train, ONE, tiny_bert())
    predicted = [[word.tag for word in row] for row in model.tag([words for words, _ in test])]
    expected = [tags for _, tags in test]
    correct = sum(len(entity_spans(a) & entity_spans(b)) for a, b in zip(predicted, expected, strict=True))
    by_word: dict[str, list[str]] = {}
    for words, tags in train:
        for word, tag in zip(words, tags, strict=True):
            by_word.setdefault(word, []).append(tag)
    most_frequent = {word: max(set(tags), key=tags.count) for word, tags in by_word.items()}
    baseline = sum(
        most_frequent.get(word) == "B-OF"
        for words, tags in test
        for word, tag in zip(words, tags, strict=True)
        if tag == "B-OF"
    )
    total = sum(tags.count("B-OF") for tags in expected)
    assert correct > baseline + 0.1 * total and model.training["f1"] > 0.75


def test_plain_text_is_split_into_words_and_punctuation(base):
    model = firth.TokenClassifier(**QUICK).fit(world(), ONE, base)
    assert [word.word for word in model.tag(["The king's men, at 3."])[0]] == [
        "The",
        "king's",
        "men",
        ",",
        "at",
        "3",
        ".",
    ]
    assert model.tag([""]) == [[]] and model.tag([]) == []


def test_words_that_the_tokenizer_drops_are_tagged_too(base):
    """A variation selector and a zero-width space have no tokens, and get a tag nevertheless."""
    words = ["the", "\ufe0f", "king", "\u200b", "sleeps"]
    model = firth.TokenClassifier(**QUICK).fit([*world(), (words, ["O"] * 5)], ONE, base)
    assert [[word.word for word in text] for text in model.tag([words, ["the", "king"]])] == [words, ["the", "king"]]
    assert [word.word for word in model.tag(["the king \u2764\ufe0f"])[0]] == ["the", "king", "\u2764", "\ufe0f"]


def test_invalid_training_data_is_refused_or_reported(base):
    with refuses("no_variation", tag="O"):
        firth.TokenClassifier().fit([(["a", "b"], ["O", "O"])], ONE, base)
    with refuses("incompatible_start", method="TokenClassifier"):
        firth.TokenClassifier().fit(world(), ONE, tiny_gpt())
    with warns_code("unknown_dev_labels") as issued:
        firth.TokenClassifier(**QUICK).fit(firth.TaggedSentences(world(), dev=[(["a"], ["B-NEW"])]), ONE, base)
    assert any("B-NEW" in str(warning) for warning in issued)
