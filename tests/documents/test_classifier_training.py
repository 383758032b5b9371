"""FastTextClassifier: labels of the synthetic corpus are recovered; edge cases, defaults and the held-out score."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from breaking import Notes
from refusing import refuses, warns_code

import firth
from firth.core.model import Predicts
from firth.core.report import Nothing
from firth.data.labeled_texts import LabeledTexts
from firth.data.world import World
from firth.evaluate import classification
from firth.kernels import classify as kernel
from firth.kernels.subwords import word_hashes

PAIRS = [("good fine good", "yes"), ("fine good", "yes"), ("bad poor", "no"), ("poor bad bad", "no")] * 20


def fit(pairs=PAIRS, run=None, **options):
    settings = {"dim": 8, "learning_rate": 0.5, "epochs": 10, "held_out": 0.0, **options}
    return firth.FastTextClassifier(**settings).fit(pairs, run or firth.Run(threads=1))


def split(examples, share=0.75):
    examples = list(examples)
    cut = int(len(examples) * share)
    return examples[:cut], examples[cut:]


def majority(train, test):
    """Return the accuracy of predicting the most frequent label."""
    label = Counter(example.label for example in train).most_common(1)[0][0]
    return np.mean([example.label == label for example in test])


@pytest.mark.parametrize("loss", kernel.LOSSES)
def test_synthetic_topics_are_recovered(loss):
    train, test = split(World(seed=31).topics(1600))
    model = firth.FastTextClassifier(dim=20, learning_rate=0.5, loss=loss).fit(
        LabeledTexts(train), firth.Run(threads=2)
    )
    assert majority(train, test) < 0.25
    assert classification(model, test).accuracy > 0.97


def test_bigrams_improve_sentiment():
    """Negations such as "not dreadful" need bigrams."""
    train, test = split(World(seed=32).sentiment(3000))
    accuracies = {}
    for length in (1, 2):
        method = firth.FastTextClassifier(dim=20, learning_rate=0.5, epochs=10, word_ngrams=length, buckets=50_000)
        accuracies[length] = classification(method.fit(LabeledTexts(train), firth.Run(threads=2)), test).accuracy
    assert majority(train, test) < 0.6
    assert accuracies[2] > 0.97 and accuracies[2] > accuracies[1] + 0.02


def test_character_ngrams_classify_unseen_words():
    """The label is the ending of a random word, and test words have unseen stems."""
    rng = np.random.default_rng(1)
    stems = ["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(600)]
    pairs = [(stem + ending, ending) for stem, ending in zip(stems, ["ung", "ity", "isme"] * 200, strict=True)]
    by_characters = fit(pairs[:400], minn=3, maxn=4, buckets=20_000, epochs=20)
    assert classification(by_characters, pairs[400:]).accuracy > 0.97
    assert classification(fit(pairs[:400]), pairs[400:]).accuracy < 0.1


def test_texts_sorted_by_label_are_shuffled():
    train, test = split(World(seed=33).topics(800))
    ordered = sorted(train, key=lambda example: example.label)
    assert classification(fit(ordered), test).accuracy > 0.97


def test_several_labels_at_once():
    colours, shapes = ["red", "blue", "green"], ["round", "square"]
    rng = np.random.default_rng(2)
    pairs = []
    for _ in range(600):
        labels = [str(rng.choice(colours)), str(rng.choice(shapes))]
        pairs.append((" ".join([*labels, *rng.choice(["x", "y", "z"], 3)]), labels))
    model = fit(pairs, loss="one_vs_all", epochs=20)
    scores = classification(model, pairs, k=5, threshold=0.5)
    assert scores.precision > 0.99 and scores.recall > 0.99
    assert isinstance(model, Predicts)


def test_probabilities_are_sorted_and_sum_to_one():
    pairs = [(f"w{i % 7} w{i % 5}", f"l{i % 7}") for i in range(400)]
    for loss in ("softmax", "hierarchical"):
        model = fit(pairs, loss=loss, epochs=2)
        for predicted in model.predict(["w1 w2", "w6", "w3 w3 w4"], k=7):
            probabilities = [p for _, p in predicted]
            assert len(predicted) == 7 or loss == "hierarchical"  # which excludes labels below 1e-5
            assert probabilities == sorted(probabilities, reverse=True)
            assert sum(probabilities) == pytest.approx(1, abs=8e-5)  # 1e-5 for each of 7 labels
        few = model.predict(["w1 w2"], k=3)[0]
        assert few == model.predict(["w1 w2"], k=100)[0][:3]
        least = few[1][1] - 1e-4  # the threshold is compared before 1e-5 is added
        assert model.predict(["w1 w2"], k=7, threshold=least)[0] == few[:2]


@pytest.mark.parametrize("loss", kernel.LOSSES)
def test_probabilities_do_not_exceed_one(loss):
    """fastText returns 1.00001, because it adds 1e-5 to each probability (in a tree, at each level)."""
    pairs = [(f"w{i % 7}", f"l{i % 7}") for i in range(700)]
    model = fit(pairs, loss=loss)
    model.outputs = 100 * model.outputs  # as after long training
    predicted = model.predict([f"w{i}" for i in range(7)], k=7)
    assert max(p for row in predicted for _, p in row) == 1.0 and all(0 <= p <= 1 for row in predicted for _, p in row)
    assert [row[0][0] for row in predicted] == [f"l{i}" for i in range(7)]


@pytest.mark.parametrize("loss", kernel.LOSSES)
def test_predictions_equal_the_formula(loss):
    pairs = [(f"w{i % 7} w{i % 5}", f"l{i % 6}") for i in range(300)]
    model = fit(pairs, loss=loss, epochs=3, word_ngrams=2, buckets=50)
    text = "w1 w2 w9"
    expected = kernel.label_probabilities(model.outputs @ model.embed([text])[0], loss, model.labels.counts)
    predicted = dict(model.predict([text], k=6)[0])
    expected = np.minimum(expected, 1)
    assert [predicted[label] for label in model.labels.tokens] == pytest.approx(expected.tolist(), abs=1e-6)


def test_a_text_is_the_mean_of_its_rows():
    model = fit([*PAIRS, ("rare", "no")], min_count=2, word_ngrams=2, buckets=1000)
    words, rows = model.vocabulary, model.inputs
    assert "rare" not in words and not rows[-1].any()
    hashes = word_hashes(["good", "rare", "bad"])
    bigrams = kernel.word_ngram_buckets(hashes.tolist(), 2, 1000)
    known = dict(zip(model.buckets.tolist(), rows[len(words) :], strict=False))
    parts = [rows[words.id("good")], rows[words.id("bad")], *(known.get(bucket, rows[-1]) for bucket in bigrams)]
    np.testing.assert_allclose(model.embed(["Good, rare bad!"])[0], np.mean(parts, axis=0), atol=1e-6)
    assert model.embed_with_counts(["good rare bad"]).known.tolist() == [2]


@pytest.mark.parametrize("options", [{}, {"word_ngrams": 2, "buckets": 500}, {"loss": "hierarchical"}])
def test_texts_without_known_words(options):
    model = fit(**options)
    assert model.predict(["", "  ", "…"]) == [[], [], []] and model.predict([]) == []
    assert not model.embed(["", "…"]).any()
    predicted = model.predict(["unheard of"])[0]
    assert predicted == [] if not options.get("word_ngrams") else predicted[0][1] == pytest.approx(0.50001)


def test_predictions_do_not_depend_on_the_batch():
    model = fit(word_ngrams=2, buckets=500)
    texts = [text for text, _ in PAIRS] * 20 + ["", "poor good"]
    assert model.predict(texts) == [model.predict([text])[0] for text in texts]


def test_texts_without_labels_or_words_are_reported_and_skipped():
    run = firth.Run(deterministic=True)
    plain = fit(run=run)
    with warns_code("texts_without_labels", "texts_without_words") as issued:
        fit([*PAIRS, ("good", []), ("", "yes"), ("…", "yes")], run=run)
    assert [str(warning).split(" texts")[0] for warning in issued] == ["1 of 83", "2 of 83"]
    assert plain.training["labels"] == 2


@pytest.mark.parametrize(
    ("pairs", "options", "code", "values"),
    [
        ([("a b", "x")] * 9, {}, "too_few", {"method": "FastTextClassifier", "got": "only 'x'"}),
        ([("a b", [])] * 9, {}, "too_few", {"method": "FastTextClassifier", "got": "none"}),
        ([("", "x"), ("…", "y")], {}, "empty_data", {}),
        (PAIRS, {"min_count": 1000}, "empty_vocabulary", {"min_count": 1000, "n_words": 4}),
        (PAIRS, {"minn": 4, "maxn": 2}, "invalid_value", {"option": "FastTextClassifier.minn", "maxn": 2, "got": 4}),
    ],
)
def test_invalid_training_is_refused(pairs, options, code, values):
    with refuses(code, **values):
        fit(pairs, **options)


@pytest.mark.parametrize("arguments", [{"k": 0}, {"threshold": -1}, {"threshold": float("nan")}])
def test_invalid_arguments_of_predict_are_refused(arguments):
    ((option, value),) = arguments.items()
    with refuses("invalid_value", option=option) as refused:
        fit().predict(["good"], **arguments)
    assert refused.value.values["got"] is value


@pytest.mark.parametrize(("k", "kind"), [(1.5, "float"), (True, "bool")])
def test_a_number_of_labels_that_is_no_integer_is_refused(k, kind):
    with refuses("invalid_type", option="k", got=kind):
        fit().predict(["good"], k)


def test_one_text_instead_of_a_list_is_refused():
    with refuses("invalid_type", got="str"):
        fit().predict("good")


def test_words_are_initialized_with_the_vectors_of_start():
    vectors = firth.SkipGram(dim=8, min_count=1, epochs=1).fit(firth.Corpus(["good fine poor"] * 50))
    model = fit(epochs=1, learning_rate=1e-9).method.fit(PAIRS, firth.Run(threads=1), start=vectors)
    for word in ("good", "poor"):
        np.testing.assert_allclose(model.vectors[word], vectors.vectors[word], atol=1e-6)
    with refuses("incompatible_start", dim=9, got=vectors):
        firth.FastTextClassifier(dim=9).fit(PAIRS, start=vectors)
    with refuses("incompatible_start", got=model):
        firth.FastTextClassifier(dim=8).fit(PAIRS, start=model)


def test_phrases_and_other_tokenizers():
    pairs = [("new york is big", "us"), ("old york is small", "uk")] * 60
    model = fit(pairs, phrases=1, dim=4)
    assert [labels[0][0] for labels in model.predict(["new york", "old york"])] == ["us", "uk"]
    by_letters = fit([("aab", "x"), ("bba", "y")] * 30, tokenizer="characters", word_ngrams=2, buckets=100)
    assert by_letters.predict(["aab"])[0][0][0] == "x"


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path):
    class StopsAt:
        def __init__(self, step):
            self.left = step

        def begin(self, *_): ...
        def end(self): ...
        def note(self, *_): ...

        def step(self, *_, **__):
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt

    method = firth.FastTextClassifier(dim=8, epochs=6, word_ngrams=2, buckets=500)
    uninterrupted = method.fit(PAIRS, firth.Run(deterministic=True))
    with pytest.raises(KeyboardInterrupt):
        method.fit(PAIRS, firth.Run(deterministic=True, checkpoint_folder=tmp_path, report=StopsAt(3)))
    with warns_code("resumed"):
        resumed = method.fit(PAIRS, firth.Run(deterministic=True, checkpoint_folder=tmp_path))
    assert resumed.inputs.tobytes() == uninterrupted.inputs.tobytes()
    assert resumed.outputs.tobytes() == uninterrupted.outputs.tobytes()


@pytest.mark.parametrize(
    ("name", "values"),
    [("inputs", {"n_labels": 2}), ("outputs", {"n_outputs": 0}), ("buckets", {"name": "buckets", "last": 499})],
)
def test_a_damaged_model_is_refused(name, values):
    model = fit(word_ngrams=2, buckets=500)
    parts = model.parts()
    arrays = dict(parts.arrays)
    arrays[name] = arrays[name] + 500 if name == "buckets" else arrays[name][:-3]
    damaged = type(model).from_parts(model.method, firth.core.model.Parts(arrays, parts.documents), {})
    with refuses("damaged_model", **values):
        damaged.predict(["good"])


# ---- defaults and the held-out score ----


def test_the_defaults_work_with_few_texts():
    """With fastText's defaults (5 epochs, learning rate 0.1), 300 texts are not enough."""
    train, test = split(World(seed=34).topics(400))
    model = firth.FastTextClassifier().fit(LabeledTexts(train), firth.Run(threads=1))
    assert classification(model, test).accuracy > 0.9 > 0.3 > majority(train, test)
    assert model.training["automatic"] == {"epochs": 100, "learning_rate": 0.5}
    assert model.method == firth.FastTextClassifier(epochs=100, learning_rate=0.5)


def test_automatic_epochs_decrease_with_the_number_of_texts():
    method = firth.FastTextClassifier()
    assert [method.for_texts(n).epochs for n in (1, 200, 5000, 10_000, 100_000, 10**6)] == [100, 100, 50, 25, 10, 5]
    explicit = firth.FastTextClassifier(epochs=3, learning_rate=0.02)
    assert explicit.for_texts(200) == explicit
    assert "epochs" not in fit(epochs=3).training.get("automatic", {})


def test_the_held_out_score_is_measured_on_unseen_texts():
    """Each text has a unique word; the unique words of held-out texts are not in the vocabulary."""
    examples = [(f"{text} only{number}", label) for number, (text, label) in enumerate(World(seed=35).topics(400))]
    model = firth.FastTextClassifier(dim=10).fit(examples, firth.Run(threads=1))
    score = model.training["held_out_score"]
    assert (score["metric"], score["rows"], score["learned"]) == ("accuracy", 40, True)
    assert model.training["held_out_documents"] == 40 and model.training["documents"] == 400
    held_out = [pair for number, pair in enumerate(examples) if f"only{number}" not in model.vocabulary]
    assert len(held_out) == 40
    assert classification(model, held_out).accuracy == pytest.approx(score["score"])
    majority, linear = score["baselines"].values()
    assert list(score["baselines"]) == ["majority label", "tf-idf + logistic regression"]
    assert majority < 0.3 < 0.9 < linear


@pytest.mark.parametrize("options", [{"word_ngrams": 2, "buckets": 5000}, {"minn": 3, "maxn": 4, "buckets": 5000}])
def test_n_grams_of_held_out_texts_are_not_trained(options):
    examples = [
        (f"{text} x{number}y z{number}", label) for number, (text, label) in enumerate(World(seed=36).topics(200))
    ]
    model = firth.FastTextClassifier(dim=6, epochs=5, **options).fit(examples, firth.Run(threads=1, report=Nothing()))
    held_out = [number for number in range(200) if f"x{number}y" not in model.vocabulary]
    assert len(held_out) == 20
    rest = [pair for number, pair in enumerate(examples) if number not in held_out]
    without = firth.FastTextClassifier(dim=6, epochs=5, held_out=0.0, **options).fit(rest, firth.Run(threads=1))
    assert model.buckets.tolist() == without.buckets.tolist()
    assert sorted(model.vocabulary.tokens) == sorted(without.vocabulary.tokens)


def test_held_out_texts_are_stratified_and_leave_one_text_per_label():
    pairs = [(f"word{i}", "often") for i in range(300)] + [(f"seldom{i}", "rare") for i in range(100)]
    pairs += [(f"once{i}", f"single{i}") for i in range(5)]
    model = firth.FastTextClassifier(dim=4, epochs=1).fit(pairs, firth.Run(threads=1, report=Nothing()))
    held_out = [label for text, label in pairs if text not in model.vocabulary]
    assert Counter(held_out) == {"often": 30, "rare": 10}


def test_models_at_chance_level_are_reported():
    rng = np.random.default_rng(3)
    random = [(" ".join(f"w{n}" for n in rng.integers(0, 50, 6)), f"l{rng.integers(0, 4)}") for _ in range(600)]
    notes = Notes()
    model = firth.FastTextClassifier(dim=10).fit(random, firth.Run(threads=1, report=notes))
    assert notes.codes.count("nothing_learned") == 1 and model.training["held_out_score"]["learned"] is False
    few, notes = World(seed=37).topics(400), Notes()
    model = firth.FastTextClassifier(dim=10, epochs=1, learning_rate=0.01).fit(
        LabeledTexts(list(few)), firth.Run(threads=1, report=notes)
    )
    assert sorted(notes.codes) == ["nothing_learned", "weaker_than_baseline"]
    assert model.training["held_out_score"]["baselines"]["tf-idf + logistic regression"] > 0.9


def test_a_prediction_is_correct_if_it_is_one_of_several_labels():
    rng = np.random.default_rng(4)
    pairs = [(f"colour{a} shape{b}", [f"c{a}", f"s{b}"]) for a, b in rng.integers(0, 3, (400, 2))]
    model = firth.FastTextClassifier(dim=8, loss="one_vs_all").fit(pairs, firth.Run(threads=1))
    score = model.training["held_out_score"]
    assert score["score"] == score["baselines"]["tf-idf + logistic regression"] == 1.0
