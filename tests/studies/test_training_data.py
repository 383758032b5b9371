"""Models whose training data overlaps with the compared data: those trained on the labels are never recommended."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tiny

import firth
from firth.core.sketch import KEY
from firth.data.world import World
from firth.studies import write_report
from firth.transformers.bert_model import BertModel

ROWS = [(document.text, document.label) for document in World(seed=4).topics(240)]
ONE = firth.Run(threads=1)


def write_rows(path, rows):
    path.write_text("".join(json.dumps({"text": text, "topic": topic}) + "\n" for text, topic in rows))
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.jsonl", ROWS)


def labelled(rows):
    """A supervised model, whose text vectors are trained on the labels."""
    return firth.FastTextClassifier(dim=20, epochs=30, learning_rate=0.5).fit(rows, ONE)


@pytest.fixture(scope="module")
def words():
    """An unsupervised model trained on other data."""
    return firth.SkipGram(dim=20, epochs=1).fit([document.text for document in World(seed=5).topics(300)], ONE)


@pytest.fixture(scope="module")
def others():
    """Rows of the same corpus that are not among the compared ones."""
    return [(document.text, document.label) for document in list(World(seed=4).topics(480))[240:]]


def compared(models, data, **settings):
    return firth.compare(models, data, column="text", label="topic", **settings)


def test_a_model_is_not_recommended_on_the_labels_it_was_trained_on(file, words, others, tmp_path):
    models = {"cheat": labelled(ROWS), "fair": labelled(others), "words": words}
    result = compared(models, file)
    assert (result.metadata["cheat"].data.what, result.metadata["cheat"].data.share) == ("these labels", 1.0)
    assert (result.metadata["fair"].data.what, result.metadata["fair"].data.share) == ("other labels", 0.0)
    assert result.metadata["words"].data.what == "unknown"
    for measure in result.measures:
        assert measure.best != "cheat" and not measure.is_best("cheat")
    assert result.recommendation.startswith("Use fair: ") and "cheat" not in result.recommendation
    assert any(note.startswith("cheat was trained on these labels") for note in result.notes)
    line = next(line for line in str(result).splitlines() if line.startswith("trained on"))
    assert "these labels (100.0%)" in line and "other labels" in line and "unknown" in line
    assert "† trained on these labels" in str(result)
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))["models"]["cheat"]
    assert (document["trained_on"], document["overlap"], document["excluded"]) == ("these labels", 1.0, True)
    write_report(result, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "these labels (100.0%)" in page and '<span class="mark">†</span>' in page


def test_partial_overlap_is_detected(file, words, others):
    mixed = labelled([*ROWS[:60], *others])
    result = compared({"mixed": mixed, "words": words}, file)
    assert result.metadata["mixed"].data == ("these labels", 0.25)
    assert result.recommendation.startswith("No recommendation: ")
    with_spaces = [(f"  {text.upper()} ", topic) for text, topic in ROWS]
    assert compared({"same": labelled(with_spaces)}, file).metadata["same"].data == ("these labels", 1.0)


def test_a_few_common_rows_do_not_exclude(file, words, others):
    result = compared({"few": labelled([*ROWS[:3], *others]), "words": words}, file)
    assert result.metadata["few"].data == ("other labels", 3 / 240) and not result.metadata["few"].data.excluded
    assert "other labels (1.2%)" in str(result)


def test_labels_in_the_text_are_ignored(words, tmp_path):
    (tmp_path / "labelled.txt").write_text("".join(f"__label__{topic}.x {text}\n" for text, topic in ROWS))
    result = firth.compare({"a": labelled(tmp_path / "labelled.txt"), "words": words}, [text for text, _ in ROWS])
    assert result.metadata["a"].data == ("these labels", 1.0)


def test_texts_without_labels_are_reported_and_allowed(file, words, tmp_path):
    folder = tmp_path / "lsa"
    firth.train(firth.LSA(dim=10), firth.Corpus(file, column="text"), folder)
    firth.train(firth.Doc2Vec(dim=4, epochs=1), firth.Corpus(file, column="text", tags="topic"), tmp_path / "tagged")
    result = compared({"lsa": folder, "words": words, "tagged": tmp_path / "tagged"}, file)
    assert result.metadata["lsa"].data == ("these texts", 1.0) and not result.metadata["lsa"].data.excluded
    assert any(note.startswith("lsa was trained on these texts") for note in result.notes)
    assert result.metadata["tagged"].data == ("these labels", 1.0)  # the topics were its tags
    assert result.recommendation.startswith("Use lsa")


def test_derived_networks_inherit_the_training_rows(tmp_path):
    rows = [(text.partition(" . ")[0], topic) for text, topic in ROWS[:60]]  # one sentence each
    file = write_rows(tmp_path / "short.jsonl", rows)
    table = {"text": [text for text, _ in rows], "topic": [topic for _, topic in rows]}
    examples = firth.Examples(table, text="text", label="topic")
    tuned = firth.TextClassifier(epochs=1).fit(examples, ONE, tiny.tiny_bert())
    tuned.save(tmp_path / "tuned")
    opened = firth.load(tmp_path / "tuned", firth.TextClassifier)
    assert isinstance(opened.base, BertModel)
    models = {
        "tuned": opened,
        "encoder": opened.base,
        "whitened": opened.base.whitened(table["text"], dim=4),
        "distilled": firth.Distil(dim=8).fit(start=opened.base),
        "tuned again": firth.SentenceEncoder(epochs=1).fit(table["text"], ONE, opened),
        "plain": tiny.tiny_bert(),
    }
    result = compared(models, file, texts=40)
    assert {name: metadata.data.what for name, metadata in result.metadata.items()} == {
        **dict.fromkeys(models, "these labels"),
        "plain": "unknown",
    }


def test_pairs_are_compared_as_pairs(tmp_path):
    """Texts of test pairs that occur in other training pairs are no leak, as is the case in public splits."""
    texts = [text for text, _ in ROWS]
    pairs = {"a": texts[:40], "b": texts[40:80], "score": np.linspace(0, 1, 40).tolist()}
    trained = firth.SentenceEncoder(epochs=1).fit(
        firth.SimilarPairs(pairs, text="a", other="b", score="score"), ONE, tiny.tiny_bert()
    )
    lines = {
        "same": zip(pairs["b"], pairs["a"], pairs["score"], strict=True),
        "mixed": zip(pairs["a"], pairs["b"][::-1], pairs["score"], strict=True),
    }
    for name, what in (("same", ("these labels", 1.0)), ("mixed", ("other labels", 0.0))):
        (tmp_path / name).with_suffix(".tsv").write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in lines[name]))
        assert firth.compare({"a": trained}, sts=tmp_path / f"{name}.tsv").metadata["a"].data == what
    as_documents = firth.compare({"a": trained}, texts[:40])  # pairs of texts with a common label are labels too
    assert as_documents.metadata["a"].data == ("these labels", 1.0)


def test_unknown_training_data_is_reported(file, words, others, tmp_path):
    old = labelled(others)
    old.training = {name: value for name, value in old.training.items() if name != KEY}
    result = compared({"old": old, "words": words}, file)
    assert result.metadata["old"].data.what == "unknown labels" and not result.metadata["old"].data.excluded
    assert result.recommendation.startswith("Use old: ")
    assert "whether it was trained on these labels is unknown" in result.recommendation
    firth.train(
        firth.FastTextClassifier(dim=4, epochs=1, held_out=0),
        firth.LabeledTexts(file, column="text", label="topic"),
        tmp_path / "old",
    )
    again = firth.load(tmp_path / "old")
    again.training = {name: value for name, value in again.training.items() if name != KEY}
    assert compared({"old": again, "words": words}, file).metadata["old"].data == (
        "these labels",
        1.0,
    )  # by fingerprint


def test_without_data_no_overlap_is_reported(words):
    result = firth.compare({"a": words, "b": words.vectors})
    assert "trained on" not in str(result) and result.to_json()["models"]["a"]["trained_on"] is None
