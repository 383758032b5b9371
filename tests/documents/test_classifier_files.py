"""Classifiers in fastText's files: Firth and the fasttext package make the same predictions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pytest
from refusing import refuses, warns_code

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
}  # with fewer than 12 threads fastText leaves some rows uninitialized


def fasttext_predictions(model, texts, k, threshold=0.0):
    """Return fastText's labels and probabilities."""
    predictions = []
    for text in texts:
        labels, probabilities = model.predict(text, k=k, threshold=threshold)
        predictions.append([(label[9:], float(p)) for label, p in zip(labels, probabilities, strict=True)])
    return predictions


def same_predictions(path, mine, k=3):
    """Assert that labels, their order and their probabilities are equal, for k labels, all labels, and a threshold.

    Only probabilities of 1.00001 in fastText are 1 here.
    """
    other = fasttext.load_model(str(path))
    for text in TEXTS:
        np.testing.assert_allclose(mine.embed([text])[0], other.get_sentence_vector(text), atol=1e-6)
    for most, threshold in ((k, 0.0), (len(mine.labels), 0.0), (k, 0.3)):
        for expected, actual in zip(
            fasttext_predictions(other, TEXTS, most, threshold), mine.predict(TEXTS, most, threshold), strict=True
        ):
            assert [label for label, _ in actual] == [label for label, _ in expected]
            np.testing.assert_allclose([p for _, p in actual], [min(p, 1.0) for _, p in expected], atol=1e-6)


SETTINGS: dict[str, dict[str, Any]] = {
    "words": {},
    "pairs": {"wordNgrams": 3, "bucket": 500},
    "characters": {"minn": 2, "maxn": 4, "bucket": 400, "wordNgrams": 2},
    "rare words": {"minCount": 30, "wordNgrams": 2, "bucket": 100},
    "tree": {"loss": "hs"},
    "one_vs_all": {"loss": "ova"},
    "negative": {"loss": "ns"},
    "one_vs_all, many probabilities near 1": {"loss": "ova", "lr": 1.0, "epoch": 20},
    "tree, probabilities near 1": {"loss": "hs", "lr": 2.0, "epoch": 20},
}


@pytest.fixture(scope="module")
def labeled(tmp_path_factory):
    path = tmp_path_factory.mktemp("labeled") / "topics.txt"
    path.write_text(
        "".join(f"__label__{topic} {text}\n" for text, topic in World(seed=5).topics(400)), encoding="utf-8"
    )
    return path


@pytest.mark.parametrize("name", SETTINGS)
def test_models_of_fasttext_predict_the_same(labeled, tmp_path, name):
    fasttext.train_supervised(str(labeled), **SMALL | SETTINGS[name]).save_model(str(tmp_path / "m.bin"))
    mine = firth.load(tmp_path / "m.bin", firth.FastTextClassifier)
    same_predictions(tmp_path / "m.bin", mine)
    mine.save(tmp_path / "folder")
    assert firth.load(tmp_path / "folder", firth.FastTextClassifier).predict(TEXTS, 3) == mine.predict(TEXTS, 3)


@pytest.mark.parametrize("name", ["labels", "labels_tree", "codes", "codes_norms", "codes_pruned", "codes_few"])
def test_quantized_and_pruned_files(fasttext_files, name):
    same_predictions(fasttext_files[name], firth.load(fasttext_files[name], firth.FastTextClassifier), k=2)


@pytest.mark.skipif("FIRTH_LID176" not in os.environ, reason="FIRTH_LID176 is not the path of lid.176.ftz")
def test_the_released_language_model_predicts_the_same():
    path = Path(os.environ["FIRTH_LID176"])
    same_predictions(path, firth.load(path, firth.FastTextClassifier))


def test_quantized_outputs(tmp_path):
    lines = [f"__label__l{i % 300} w{i % 300} w{i % 7} x" for i in range(3000)]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    model = fasttext.train_supervised(str(tmp_path / "t.txt"), **SMALL)
    model.quantize(qout=True)
    model.save_model(str(tmp_path / "m.ftz"))
    mine = firth.load(tmp_path / "m.ftz", firth.FastTextClassifier)
    expected = [row[0] for row in fasttext_predictions(model, ["w17 x", "w200 w4"], 1)]
    assert [row[0][0] for row in mine.predict(["w17 x", "w200 w4"])] == [label for label, _ in expected]


@pytest.mark.parametrize("options", [{}, {"word_ngrams": 2, "buckets": 700}, {"minn": 2, "maxn": 3, "buckets": 300}])
@pytest.mark.parametrize("loss", LOSSES)
def test_fasttext_opens_exported_classifiers(labeled, tmp_path, options, loss):
    method = firth.FastTextClassifier(
        tokenizer="fasttext", lowercase=False, dim=10, learning_rate=0.5, min_count=2, loss=loss, **options
    )
    model = method.fit(firth.LabeledTexts(labeled))
    assert model.vocabulary.counts[model.vocabulary.id("</s>")] == 400
    export(model, tmp_path / "m.bin")
    same_predictions(tmp_path / "m.bin", model)
    again = firth.load(tmp_path / "m.bin", firth.FastTextClassifier)
    assert again.predict(TEXTS, 3) == model.predict(TEXTS, 3) and again.labels.tokens == model.labels.tokens
    write_fasttext(tmp_path / "copy.bin", again.to_file())
    args = read_fasttext(tmp_path / "m.bin").args
    assert read_fasttext(tmp_path / "copy.bin").args == args and args.loss in ("softmax", "hs", "ova", "ns")
    assert (tmp_path / "copy.bin").read_bytes()[100:] == (tmp_path / "m.bin").read_bytes()[100:]


def test_fasttext_opens_quantized_classifiers(labeled, tmp_path):
    method = firth.FastTextClassifier(
        tokenizer="fasttext", lowercase=False, dim=10, learning_rate=0.5, epochs=40, word_ngrams=2, buckets=5000
    )
    model = method.fit(firth.LabeledTexts(labeled))
    error = export(model, tmp_path / "m.ftz", cutoff=700)
    mine = firth.load(tmp_path / "m.ftz", firth.FastTextClassifier)
    assert error is not None and 0 < error < 0.2 and len(mine.inputs) == 700
    same_predictions(tmp_path / "m.ftz", mine)
    texts, topics = zip(*list(World(seed=5).topics(500))[400:], strict=True)
    for classifier in (model, mine):
        predicted = [labels[0][0] for labels in classifier.predict(texts)]
        assert np.mean([label == topic for label, topic in zip(predicted, topics, strict=True)]) > 0.9
    export(mine, tmp_path / "again.ftz", cutoff=600)
    same_predictions(tmp_path / "again.ftz", firth.load(tmp_path / "again.ftz", firth.FastTextClassifier))
    with refuses("conflicting_options"):  # a pruned model cannot be written as .bin
        export(mine, tmp_path / "m.bin")


def test_exporting_another_tokenizer_warns():
    model = firth.FastTextClassifier(dim=4).fit([("a b", "x"), ("c", "y")])
    with warns_code("tokenizer_mismatch"):
        model.to_file()


def test_words_that_are_not_utf8_keep_their_rows(labeled, tmp_path):
    (tmp_path / "t.txt").write_bytes(b"__label__a caf\xe9 one\n__label__b two\n" * 9)
    fasttext.train_supervised(str(tmp_path / "t.txt"), **SMALL).save_model(str(tmp_path / "m.bin"))
    mine = firth.load(tmp_path / "m.bin", firth.FastTextClassifier)
    assert "caf\\xe9" in mine.vocabulary and mine.predict(["one", "two"], 1)[1][0][0] == "b"


def test_a_file_of_word_vectors_is_refused(fasttext_files):
    from firth.documents.classifier_model import ClassifierModel

    with refuses("unsupported_model", model="sg"):
        ClassifierModel.from_file(read_fasttext(fasttext_files["skipgram"]))


@pytest.mark.parametrize("name", ["labels_tree", "labels_ova", "codes_pruned"])
def test_damaged_files_are_refused_or_usable(fasttext_files, tmp_path, name):
    """Whichever bytes change, the result is a FirthError or a valid prediction."""
    original = fasttext_files[name].read_bytes()
    rng = np.random.default_rng(7)
    refused = 0
    for _ in range(150):
        data = bytearray(original)
        positions = rng.integers(0, min(len(data), int(rng.choice([120, 3000, len(data)]))), int(rng.integers(1, 4)))
        for position in positions:
            data[position] = rng.integers(0, 256)
        (tmp_path / "m.bin").write_bytes(data)
        try:
            predicted = firth.load(tmp_path / "m.bin", firth.FastTextClassifier).predict(["the king sleeps", ""], k=3)
            assert len(predicted) == 2 and all(0 <= p <= 1.001 for row in predicted for _, p in row)
        except firth.FirthError:
            refused += 1
    assert 10 < refused < 150
