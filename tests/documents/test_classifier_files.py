"""Classifiers in fastText's files: the same predictions on both sides, by the fasttext package."""

from __future__ import annotations

import os
from pathlib import Path

import fasttext
import numpy as np
import pytest

import firth
from firth.data.world import World
from firth.formats.fasttext import read_fasttext, write_fasttext
from firth.kernels.classify import LOSSES
from firth.model_files import export

TEXTS = [
    *World(seed=8).sentences(40),
    "zzz qqq",
    "",
    "the king __label__king sleeps",
    "naïve café 日本語 🙂 the",
    "the\u00a0king\tthe\x1cking king",
]
SMALL = {
    "dim": 10,
    "epoch": 5,
    "lr": 0.5,
    "thread": 12,
    "verbose": 0,
}  # 12 threads: with fewer it leaves rows as memory was


def theirs(model, texts, k, threshold=0.0):
    """fastText's labels and probabilities."""
    found = []
    for text in texts:
        labels, probabilities = model.predict(text, k=k, threshold=threshold)
        found.append([(label[9:], float(p)) for label, p in zip(labels, probabilities, strict=True)])
    return found


def same_predictions(path, mine, k=3):
    """The same labels in the same order, and the same probabilities (but 1 where fastText tells 1.00001); also of all
    labels and of the probable ones."""
    other = fasttext.load_model(str(path))
    for text in TEXTS:
        np.testing.assert_allclose(mine.embed([text])[0], other.get_sentence_vector(text), atol=1e-6)
    for most, threshold in ((k, 0.0), (len(mine.labels), 0.0), (k, 0.3)):
        for expected, found in zip(
            theirs(other, TEXTS, most, threshold), mine.predict(TEXTS, most, threshold), strict=True
        ):
            assert [label for label, _ in found] == [label for label, _ in expected]
            np.testing.assert_allclose([p for _, p in found], [min(p, 1.0) for _, p in expected], atol=1e-6)


WAYS = {
    "words": {},
    "pairs": {"wordNgrams": 3, "bucket": 500},
    "characters": {"minn": 2, "maxn": 4, "bucket": 400, "wordNgrams": 2},
    "rare words": {"minCount": 30, "wordNgrams": 2, "bucket": 100},
    "tree": {"loss": "hs"},
    "one_vs_all": {"loss": "ova"},
    "negative": {"loss": "ns"},
    "one_vs_all, many equally sure": {"loss": "ova", "lr": 1.0, "epoch": 20},
    "tree, sure": {"loss": "hs", "lr": 2.0, "epoch": 20},
}


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    path = tmp_path_factory.mktemp("labelled") / "topics.txt"
    path.write_text(
        "".join(f"__label__{topic} {text}\n" for text, topic in World(seed=5).topics(400)), encoding="utf-8"
    )
    return path


@pytest.mark.parametrize("name", WAYS)
def test_what_fasttext_trained_predicts_the_same(labelled, tmp_path, name):
    fasttext.train_supervised(str(labelled), **SMALL | WAYS[name]).save_model(str(tmp_path / "m.bin"))
    mine = firth.load(tmp_path / "m.bin")
    same_predictions(tmp_path / "m.bin", mine)
    mine.save(tmp_path / "folder")
    assert firth.load(tmp_path / "folder").predict(TEXTS, 3) == mine.predict(TEXTS, 3)


@pytest.mark.parametrize("name", ["labels", "labels_tree", "codes", "codes_norms", "codes_pruned", "codes_few"])
def test_quantised_and_pruned_files(fasttext_files, name):
    same_predictions(fasttext_files[name], firth.load(fasttext_files[name]), k=2)


@pytest.mark.skipif("FIRTH_LID176" not in os.environ, reason="FIRTH_LID176 names lid.176.ftz where there is one")
def test_the_released_language_model_predicts_the_same():
    path = Path(os.environ["FIRTH_LID176"])
    same_predictions(path, firth.load(path))


def test_quantised_outputs(tmp_path):
    lines = [f"__label__l{i % 300} w{i % 300} w{i % 7} x" for i in range(3000)]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    model = fasttext.train_supervised(str(tmp_path / "t.txt"), **SMALL)
    model.quantize(qout=True)
    model.save_model(str(tmp_path / "m.ftz"))
    mine = firth.load(tmp_path / "m.ftz")
    expected = [row[0] for row in theirs(model, ["w17 x", "w200 w4"], 1)]
    assert [row[0][0] for row in mine.predict(["w17 x", "w200 w4"])] == [label for label, _ in expected]


@pytest.mark.parametrize("options", [{}, {"word_ngrams": 2, "buckets": 700}, {"minn": 2, "maxn": 3, "buckets": 300}])
@pytest.mark.parametrize("loss", LOSSES)
def test_what_firth_trained_opens_in_fasttext(labelled, tmp_path, options, loss):
    method = firth.FastTextClassifier(
        tokenizer="fasttext", lowercase=False, dim=10, learning_rate=0.5, min_count=2, loss=loss, **options
    )
    model = method.fit(firth.LabeledTexts(labelled))
    assert model.vocabulary.counts[model.vocabulary.id("</s>")] == 400
    export(model, tmp_path / "m.bin")
    same_predictions(tmp_path / "m.bin", model)
    again = firth.load(tmp_path / "m.bin")
    assert again.predict(TEXTS, 3) == model.predict(TEXTS, 3) and again.labels.tokens == model.labels.tokens
    write_fasttext(tmp_path / "copy.bin", again.to_file())
    args = read_fasttext(tmp_path / "m.bin").args
    assert read_fasttext(tmp_path / "copy.bin").args == args and args.loss in ("softmax", "hs", "ova", "ns")
    assert (tmp_path / "copy.bin").read_bytes()[100:] == (tmp_path / "m.bin").read_bytes()[100:]


def test_quantised_by_firth_it_opens_in_fasttext(labelled, tmp_path):
    method = firth.FastTextClassifier(
        tokenizer="fasttext", lowercase=False, dim=10, learning_rate=0.5, epochs=40, word_ngrams=2, buckets=5000
    )
    model = method.fit(firth.LabeledTexts(labelled))
    error = export(model, tmp_path / "m.ftz", cutoff=700)
    mine = firth.load(tmp_path / "m.ftz")
    assert 0 < error < 0.2 and len(mine.inputs) == 700
    same_predictions(tmp_path / "m.ftz", mine)
    texts, topics = zip(*list(World(seed=5).topics(500))[400:], strict=True)
    for found in (model, mine):
        assert np.mean([best[0][0] == topic for best, topic in zip(found.predict(texts), topics, strict=True)]) > 0.9
    export(mine, tmp_path / "again.ftz", cutoff=600)
    same_predictions(tmp_path / "again.ftz", firth.load(tmp_path / "again.ftz"))
    with pytest.raises(firth.FirthError) as refused:
        export(mine, tmp_path / "m.bin")
    assert refused.value.code == "conflicting_options"


def test_another_tokenizer_is_told():
    model = firth.FastTextClassifier(dim=4).fit([("a b", "x"), ("c", "y")])
    with pytest.warns(firth.FirthWarning, match="tokenizer=fasttext"):
        model.to_file()


def test_words_of_fasttext_that_no_text_can_have(labelled, tmp_path):
    """A word that is not UTF-8 stays a row; texts don't meet it."""
    (tmp_path / "t.txt").write_bytes(b"__label__a caf\xe9 one\n__label__b two\n" * 9)
    fasttext.train_supervised(str(tmp_path / "t.txt"), **SMALL).save_model(str(tmp_path / "m.bin"))
    mine = firth.load(tmp_path / "m.bin")
    assert "caf\\xe9" in mine.vocabulary and mine.predict(["one", "two"], 1)[1][0][0] == "b"


def test_a_model_of_words_predicts_nothing(fasttext_files):
    from firth.documents.classifier_model import ClassifierModel

    with pytest.raises(firth.FirthError, match="no labels to predict"):
        ClassifierModel.from_file(read_fasttext(fasttext_files["skipgram"]))


@pytest.mark.parametrize("name", ["labels_tree", "labels_ova", "codes_pruned"])
def test_damaged_files_are_refused_or_predict(fasttext_files, tmp_path, name):
    """Bytes changed anywhere: a clear error or a defined result, never a crash."""
    whole = fasttext_files[name].read_bytes()
    rng = np.random.default_rng(7)
    refused = 0
    for _ in range(150):
        data = bytearray(whole)
        places = rng.integers(0, min(len(data), int(rng.choice([120, 3000, len(data)]))), int(rng.integers(1, 4)))
        for place in places:
            data[place] = rng.integers(0, 256)
        (tmp_path / "m.bin").write_bytes(data)
        try:
            found = firth.load(tmp_path / "m.bin").predict(["the king sleeps", ""], k=3)
            assert len(found) == 2 and all(0 <= p <= 1.001 for row in found for _, p in row)
        except firth.FirthError:
            refused += 1
    assert 10 < refused < 150
