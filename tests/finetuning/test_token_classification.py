"""Tags of words: what is read, the same logits as transformers', stretches as conlleval counts them, learning."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tiny import tiny_bert, tiny_gpt

import firth
from firth.data.tagged_sentences import Sentence, entity_spans
from firth.data.world import World
from firth.finetuning.token_classification import parts_of
from firth.nets.attention import Packed

ONE = firth.Run(threads=1)
QUICK = {"epochs": 1, "batch_size": 8, "dropout": 0.0, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def base():
    return tiny_bert()


def world(count: int = 60):
    """Sentences with "of": the word behind it is tagged, whatever it is."""
    rows = []
    for text in (text for text in World(seed=21).sentences(5 * count) if " of " in text):
        words = text.split()
        rows.append((words, ["B-OF" if n and words[n - 1] == "of" else "O" for n in range(len(words))]))
    return rows[:count]


def test_sentences_are_read_from_all_kinds(tmp_path):
    right = [Sentence(("Ada", "writes"), ("B-PER", "O")), Sentence(("Rome",), ("B-LOC",))]
    (tmp_path / "a.conll").write_text("# text\n-DOCSTART- -X- O\n\nAda NNP B-PER\nwrites VB O\n\n\nRome NNP B-LOC\n")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"w": row.words, "t": row.tags}) + "\n" for row in right))
    (tmp_path / "a.csv").write_text("text,tags\nAda writes,B-PER O\nRome,B-LOC\n")
    assert list(firth.TaggedSentences(tmp_path / "a.conll")) == right
    assert list(firth.TaggedSentences(tmp_path / "a.jsonl", text="w", tags="t")) == right
    assert list(firth.TaggedSentences(tmp_path / "a.csv")) == right
    assert list(firth.TaggedSentences([(row.words, row.tags) for row in right])) == right
    assert list(firth.TaggedSentences({"text": ["Ada writes", "Rome"], "tags": ["B-PER O", "B-LOC"]})) == right


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ([(["a", "b"], ["x"])], "Row 1 has 2 words and 1 tags"),
        ({"words": ["a"], "tags": ["x"]}, "Row 1 has no column 'text'; it has words, tags. Pass text="),
        ([(["a", 3], ["x", "y"])], "must be text"),
        ([3], "must be a pair of words and tags; got 3"),
    ],
)
def test_what_is_wrong_is_said(source, rule):
    with pytest.raises(firth.FirthError, match=rule):
        firth.TaggedSentences(source)


def test_a_line_without_a_tag_is_named(tmp_path):
    (tmp_path / "a.conll").write_text("Ada B-PER\nwrites\n")
    with pytest.raises(firth.FirthError, match="line 2: expected a word and its tag"):
        firth.TaggedSentences(tmp_path / "a.conll")


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("B-X I-X O B-X", {("X", 0, 1), ("X", 3, 3)}),
        ("B-X B-X I-Y I-Y", {("X", 0, 0), ("X", 1, 1), ("Y", 2, 3)}),
        ("I-X I-X O", {("X", 0, 1)}),  # conlleval takes an I without a B for a beginning
        ("O O", set()),
    ],
)
def test_stretches_as_conlleval_reads_them(tags, found):
    assert entity_spans(tags.split()) == found


def test_long_sentences_are_cut_between_words(base):
    words = " ".join(World(seed=21).sentences(30)).split()
    parts = parts_of(base.tokenizer, [words, ["king"]], 40)
    assert parts.texts.lengths.max() <= 40 and parts.owners[-1] == 1 and (parts.owners == 0).sum() > 3
    own = parts.words[: parts.texts.starts[(parts.owners == 0).sum()]]
    assert own[own >= 0].tolist() == list(range(len(words)))  # each word once, in order
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
    assert firth.load(tmp_path / "theirs").tag([words])[0][0].tag == model.tag([words])[0][0].tag


def test_it_learns_what_the_word_before_tells():
    """Which word stands behind "of" can't be told from the word alone: each word's most frequent tag finds fewer."""
    rows = world(460)
    train, test = rows[:400], rows[400:]
    model = firth.TokenClassifier(epochs=8, learning_rate=4e-3, dropout=0.0, metric="f1").fit(train, ONE, tiny_bert())
    found = [[word.tag for word in row] for row in model.tag([words for words, _ in test])]
    right = [tags for _, tags in test]
    same = sum(len(entity_spans(a) & entity_spans(b)) for a, b in zip(found, right, strict=True))
    by_word: dict[str, list[str]] = {}
    for words, tags in train:
        for word, tag in zip(words, tags, strict=True):
            by_word.setdefault(word, []).append(tag)
    usual = {word: max(set(tags), key=tags.count) for word, tags in by_word.items()}
    guessed = sum(
        usual.get(word) == "B-OF"
        for words, tags in test
        for word, tag in zip(words, tags, strict=True)
        if tag == "B-OF"
    )
    total = sum(tags.count("B-OF") for tags in right)
    assert same > guessed + 0.1 * total and model.training["f1"] > 0.75


def test_plain_text_is_cut_into_words_and_signs(base):
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


def test_what_the_tokenizer_leaves_nothing_of_keeps_its_place(base):
    """The second half of an emoji, a space without width: one tag for each word nevertheless."""
    words = ["the", "\ufe0f", "king", "\u200b", "sleeps"]
    model = firth.TokenClassifier(**QUICK).fit([*world(), (words, ["O"] * 5)], ONE, base)
    assert [[word.word for word in text] for text in model.tag([words, ["the", "king"]])] == [words, ["the", "king"]]
    assert [word.word for word in model.tag(["the king \u2764\ufe0f"])[0]] == ["the", "king", "\u2764", "\ufe0f"]


def test_what_teaches_nothing_is_refused(base):
    with pytest.raises(firth.FirthError, match="all words have the tag 'O'"):
        firth.TokenClassifier().fit([(["a", "b"], ["O", "O"])], ONE, base)
    with pytest.raises(firth.FirthError, match="TokenClassifier begins with a BERT"):
        firth.TokenClassifier().fit(world(), ONE, tiny_gpt())
    with pytest.warns(firth.FirthWarning, match="count as wrong: B-NEW"):
        firth.TokenClassifier(**QUICK).fit(firth.TaggedSentences(world(), dev=[(["a"], ["B-NEW"])]), ONE, base)
