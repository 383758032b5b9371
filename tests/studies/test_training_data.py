"""Models that were trained on what they are compared on: those that saw the labels are marked and never recommended."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tiny

import firth
from firth.core.sketch import KEY
from firth.data.world import World
from firth.studies import write_report

ROWS = [(document.text, document.label) for document in World(seed=4).topics(240)]
ONE = firth.Run(threads=1)


def write_rows(path, rows):
    path.write_text("".join(json.dumps({"text": text, "topic": topic}) + "\n" for text, topic in rows))
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.jsonl", ROWS)


def labelled(rows):
    """A supervised model: its vectors of texts are made to tell the labels."""
    return firth.FastTextClassifier(dim=20, epochs=30, learning_rate=0.5).fit(rows, ONE)


@pytest.fixture(scope="module")
def words():
    """An unsupervised model that saw none of it."""
    return firth.SkipGram(dim=20, epochs=1).fit([document.text for document in World(seed=5).topics(300)], ONE)


@pytest.fixture(scope="module")
def others():
    """Rows of the same world that are not among those compared on."""
    return [(document.text, document.label) for document in list(World(seed=4).topics(480))[240:]]


def compared(models, data, **settings):
    return firth.compare(models, data, column="text", label="topic", **settings)


def test_a_model_is_not_recommended_on_the_labels_it_was_trained_on(file, words, others, tmp_path):
    models = {"cheat": labelled(ROWS), "fair": labelled(others), "words": words}
    found = compared(models, file)
    assert (found.facts["cheat"].data.what, found.facts["cheat"].data.share) == ("these labels", 1.0)
    assert (found.facts["fair"].data.what, found.facts["fair"].data.share) == ("other labels", 0.0)
    assert found.facts["words"].data.what == "unknown"
    for measure in found.measures:
        assert measure.best != "cheat" and not measure.is_best("cheat")
    assert found.recommendation.startswith("Use fair: ") and "cheat" not in found.recommendation
    assert any(note.startswith("cheat was trained on these labels") for note in found.notes)
    line = next(line for line in str(found).splitlines() if line.startswith("trained on"))
    assert "these labels (100.0%)" in line and "other labels" in line and "unknown" in line
    assert "† trained on these labels" in str(found)
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))["models"]["cheat"]
    assert (told["trained_on"], told["overlap"], told["excluded"]) == ("these labels", 1.0, True)
    write_report(found, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "these labels (100.0%)" in page and '<span class="mark">†</span>' in page


def test_a_file_that_shares_some_rows_is_found_out(file, words, others):
    mixed = labelled([*ROWS[:60], *others])
    found = compared({"mixed": mixed, "words": words}, file)
    assert found.facts["mixed"].data == ("these labels", 0.25)
    assert found.recommendation.startswith("No recommendation: ")
    with_spaces = [(f"  {text.upper()} ", topic) for text, topic in ROWS]
    assert compared({"same": labelled(with_spaces)}, file).facts["same"].data == ("these labels", 1.0)


def test_a_few_common_rows_are_told_and_no_reason(file, words, others):
    found = compared({"few": labelled([*ROWS[:3], *others]), "words": words}, file)
    assert found.facts["few"].data == ("other labels", 3 / 240) and not found.facts["few"].data.excluded
    assert "other labels (1.2%)" in str(found)


def test_labels_in_the_text_are_no_part_of_it(words, tmp_path):
    (tmp_path / "labelled.txt").write_text("".join(f"__label__{topic}.x {text}\n" for text, topic in ROWS))
    found = firth.compare({"a": labelled(tmp_path / "labelled.txt"), "words": words}, [text for text, _ in ROWS])
    assert found.facts["a"].data == ("these labels", 1.0)


def test_texts_without_labels_are_reported_and_allowed(file, words, tmp_path):
    folder = tmp_path / "lsa"
    firth.train(firth.LSA(dim=10), firth.Corpus(file, column="text"), folder)
    firth.train(firth.Doc2Vec(dim=4, epochs=1), firth.Corpus(file, column="text", tags="topic"), tmp_path / "tagged")
    found = compared({"lsa": folder, "words": words, "tagged": tmp_path / "tagged"}, file)
    assert found.facts["lsa"].data == ("these texts", 1.0) and not found.facts["lsa"].data.excluded
    assert any(note.startswith("lsa was trained on these texts") for note in found.notes)
    assert found.facts["tagged"].data == ("these labels", 1.0)  # the topics were its tags
    assert found.recommendation.startswith("Use lsa")


def test_networks_and_what_is_made_of_them_remember_the_labels(tmp_path):
    rows = [(text.partition(" . ")[0], topic) for text, topic in ROWS[:60]]  # one sentence each
    file = write_rows(tmp_path / "short.jsonl", rows)
    table = {"text": [text for text, _ in rows], "topic": [topic for _, topic in rows]}
    examples = firth.Examples(table, text="text", label="topic")
    tuned = firth.TextClassifier(epochs=1).fit(examples, ONE, tiny.tiny_bert())
    tuned.save(tmp_path / "tuned")
    opened = firth.load(tmp_path / "tuned")
    models = {
        "tuned": opened,
        "encoder": opened.base,
        "whitened": opened.base.whitened(table["text"], dim=4),
        "distilled": firth.Distil(dim=8).fit(start=opened.base),
        "tuned again": firth.SentenceEncoder(epochs=1).fit(table["text"], ONE, opened),
        "plain": tiny.tiny_bert(),
    }
    found = compared(models, file, texts=40)
    assert {name: facts.data.what for name, facts in found.facts.items()} == {
        **dict.fromkeys(models, "these labels"),
        "plain": "unknown",
    }


def test_pairs_are_the_same_as_pairs_only(tmp_path):
    """Texts of test pairs that stand in other pairs of the training data are no leak: that is so in public splits."""
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
        assert firth.compare({"a": trained}, sts=tmp_path / f"{name}.tsv").facts["a"].data == what
    as_documents = firth.compare({"a": trained}, texts[:40])  # pairs of texts with a common label are labels too
    assert as_documents.facts["a"].data == ("these labels", 1.0)


def test_what_is_not_known_is_said(file, words, others, tmp_path):
    old = labelled(others)
    old.training = {name: value for name, value in old.training.items() if name != KEY}
    found = compared({"old": old, "words": words}, file)
    assert found.facts["old"].data.what == "unknown labels" and not found.facts["old"].data.excluded
    assert found.recommendation.startswith("Use old: ")
    assert "whether it was trained on these labels is unknown" in found.recommendation
    firth.train(
        firth.FastTextClassifier(dim=4, epochs=1, held_out=0),
        firth.LabeledTexts(file, column="text", label="topic"),
        tmp_path / "old",
    )
    again = firth.load(tmp_path / "old")
    again.training = {name: value for name, value in again.training.items() if name != KEY}
    assert compared({"old": again, "words": words}, file).facts["old"].data == ("these labels", 1.0)  # by fingerprint


def test_without_data_nothing_is_said_of_it(words):
    found = firth.compare({"a": words, "b": words.vectors})
    assert "trained on" not in str(found) and found.to_json()["models"]["a"]["trained_on"] is None
