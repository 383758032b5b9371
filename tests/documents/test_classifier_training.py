"""Classifiers: the invented world's labels recovered, and what happens at the edges."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from breaking import Notes

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
    """The baseline: the most frequent label for every text."""
    label = Counter(example.label for example in train).most_common(1)[0][0]
    return np.mean([example.label == label for example in test])


@pytest.mark.parametrize("loss", kernel.LOSSES)
def test_the_worlds_topics_are_recovered(loss):
    train, test = split(World(seed=31).topics(1600))
    model = firth.FastTextClassifier(dim=20, learning_rate=0.5, loss=loss).fit(
        LabeledTexts(train), firth.Run(threads=2)
    )
    assert majority(train, test) < 0.25
    assert classification(model, test).accuracy > 0.97


def test_the_worlds_sentiment_needs_pairs_of_words():
    """ "not dreadful" is praise: single words say less than pairs do."""
    train, test = split(World(seed=32).sentiment(3000))
    found = {}
    for length in (1, 2):
        method = firth.FastTextClassifier(dim=20, learning_rate=0.5, epochs=10, word_ngrams=length, buckets=50_000)
        found[length] = classification(method.fit(LabeledTexts(train), firth.Run(threads=2)), test).accuracy
    assert majority(train, test) < 0.6
    assert found[2] > 0.97 and found[2] > found[1] + 0.02


def test_characters_tell_words_never_met():
    """The label is the ending of a made-up word; of new words the model knows the endings alone."""
    rng = np.random.default_rng(1)
    stems = ["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(600)]
    pairs = [(stem + ending, ending) for stem, ending in zip(stems, ["ung", "ity", "isme"] * 200, strict=True)]
    by_characters = fit(pairs[:400], minn=3, maxn=4, buckets=20_000, epochs=20)
    assert classification(by_characters, pairs[400:]).accuracy > 0.97
    assert classification(fit(pairs[:400]), pairs[400:]).accuracy < 0.1


def test_sorted_texts_are_learned_as_shuffled_ones():
    train, test = split(World(seed=33).topics(800))
    ordered = sorted(train, key=lambda example: example.label)
    assert classification(fit(ordered), test).accuracy > 0.97


def test_several_labels_at_once():
    colours, shapes = ["red", "blue", "green"], ["round", "square"]
    rng = np.random.default_rng(2)
    pairs = []
    for _ in range(600):
        chosen = [str(rng.choice(colours)), str(rng.choice(shapes))]
        pairs.append((" ".join([*chosen, *rng.choice(["x", "y", "z"], 3)]), chosen))
    model = fit(pairs, loss="one_vs_all", epochs=20)
    found = classification(model, pairs, k=5, threshold=0.5)
    assert found.precision > 0.99 and found.recall > 0.99
    assert isinstance(model, Predicts)


def test_probabilities_best_first_add_up_to_one():
    pairs = [(f"w{i % 7} w{i % 5}", f"l{i % 7}") for i in range(400)]
    for loss in ("softmax", "hierarchical"):
        model = fit(pairs, loss=loss, epochs=2)
        for found in model.predict(["w1 w2", "w6", "w3 w3 w4"], k=7):
            probabilities = [p for _, p in found]
            assert len(found) == 7 or loss == "hierarchical"  # which leaves out what is below 1e-5
            assert probabilities == sorted(probabilities, reverse=True)
            assert sum(probabilities) == pytest.approx(1, abs=8e-5)  # 1e-5 for each of 7 labels
        few = model.predict(["w1 w2"], k=3)[0]
        assert few == model.predict(["w1 w2"], k=100)[0][:3]
        least = few[1][1] - 1e-4  # the threshold holds for what nothing was added to
        assert model.predict(["w1 w2"], k=7, threshold=least)[0] == few[:2]


@pytest.mark.parametrize("loss", kernel.LOSSES)
def test_a_sure_label_has_probability_one_not_more(loss):
    """fastText tells 1.00001, for it adds 1e-5 to each probability (of a tree, at each level)."""
    pairs = [(f"w{i % 7}", f"l{i % 7}") for i in range(700)]
    model = fit(pairs, loss=loss)
    model.outputs = 100 * model.outputs  # as after long training
    found = model.predict([f"w{i}" for i in range(7)], k=7)
    assert max(p for row in found for _, p in row) == 1.0 and all(0 <= p <= 1 for row in found for _, p in row)
    assert [row[0][0] for row in found] == [f"l{i}" for i in range(7)]


@pytest.mark.parametrize("loss", kernel.LOSSES)
def test_predictions_are_the_formula(loss):
    pairs = [(f"w{i % 7} w{i % 5}", f"l{i % 6}") for i in range(300)]
    model = fit(pairs, loss=loss, epochs=3, word_ngrams=2, buckets=50)
    text = "w1 w2 w9"
    expected = kernel.label_probabilities(model.outputs @ model.embed([text])[0], loss, model.labels.counts)
    found = dict(model.predict([text], k=6)[0])
    expected = np.minimum(expected, 1)
    assert [found[label] for label in model.labels.tokens] == pytest.approx(expected.tolist(), abs=1e-6)


def test_a_text_is_the_mean_of_its_rows():
    model = fit([*PAIRS, ("rare", "no")], min_count=2, word_ngrams=2, buckets=1000)
    words, rows = model.vocabulary, model.inputs
    assert "rare" not in words and not rows[-1].any()
    hashes = word_hashes(["good", "rare", "bad"])
    bigrams = kernel.word_ngram_buckets(hashes.tolist(), 2, 1000)
    known = dict(zip(model.buckets.tolist(), rows[len(words) :], strict=False))
    parts = [rows[words.id("good")], rows[words.id("bad")], *(known.get(bucket, rows[-1]) for bucket in bigrams)]
    np.testing.assert_allclose(model.embed(["Good, rare bad!"])[0], np.mean(parts, axis=0), atol=1e-6)
    assert model.pool(["good rare bad"]).known.tolist() == [2]


@pytest.mark.parametrize("options", [{}, {"word_ngrams": 2, "buckets": 500}, {"loss": "hierarchical"}])
def test_texts_that_say_nothing(options):
    model = fit(**options)
    assert model.predict(["", "  ", "…"]) == [[], [], []] and model.predict([]) == []
    assert not model.embed(["", "…"]).any()
    found = model.predict(["unheard of"])[0]
    assert found == [] if not options.get("word_ngrams") else found[0][1] == pytest.approx(0.50001)


def test_batches_and_threads_predict_the_same():
    model = fit(word_ngrams=2, buckets=500)
    texts = [text for text, _ in PAIRS] * 20 + ["", "poor good"]
    assert model.predict(texts) == [model.predict([text])[0] for text in texts]


def test_texts_without_label_or_word_are_told_and_left_out():
    run = firth.Run(deterministic=True)
    plain = fit(run=run)
    with pytest.warns(firth.FirthWarning) as told:
        fit([*PAIRS, ("good", []), ("", "yes"), ("…", "yes")], run=run)
    assert [str(note.message) for note in told] == [
        "1 of 83 texts have no label and are not learned from.",
        "2 of 83 texts have no word and are not learned from.",
    ]
    assert plain.training["labels"] == 2


@pytest.mark.parametrize(
    ("pairs", "options", "why"),
    [
        ([("a b", "x")] * 9, {}, "at least two different labels; got only 'x'"),
        ([("a b", [])] * 9, {}, "at least two different labels; got none"),
        ([("", "x"), ("…", "y")], {}, "no words"),
        (PAIRS, {"min_count": 1000}, "No word occurs min_count=1000 times"),
        (PAIRS, {"minn": 4, "maxn": 2}, "minn must be at most maxn=2; got 4"),
    ],
)
def test_what_can_not_be_learned_is_refused(pairs, options, why):
    with pytest.raises(firth.FirthError, match=why):
        fit(pairs, **options)


@pytest.mark.parametrize(
    "arguments", [{"k": 0}, {"k": 1.5}, {"k": True}, {"threshold": -1}, {"threshold": float("nan")}]
)
def test_bad_questions_are_refused(arguments):
    with pytest.raises(firth.FirthError, match="must be"):
        fit().predict(["good"], **arguments)


def test_one_text_instead_of_a_list_is_refused():
    with pytest.raises(firth.FirthError, match="Put it in a list"):
        fit().predict("good")


def test_words_begin_with_the_vectors_of_start():
    vectors = firth.SkipGram(dim=8, min_count=1, epochs=1).fit(firth.Corpus(["good fine poor"] * 50))
    model = fit(epochs=1, learning_rate=1e-9).method.fit(PAIRS, firth.Run(threads=1), start=vectors)
    for word in ("good", "poor"):
        np.testing.assert_allclose(model.vectors[word], vectors.vectors[word], atol=1e-6)
    with pytest.raises(firth.FirthError, match="dim=9"):
        firth.FastTextClassifier(dim=9).fit(PAIRS, start=vectors)


def test_phrases_and_other_tokenizers_predict_as_they_were_trained():
    pairs = [("new york is big", "us"), ("old york is small", "uk")] * 60
    model = fit(pairs, phrases=1, dim=4)
    assert [found[0][0] for found in model.predict(["new york", "old york"])] == ["us", "uk"]
    by_letters = fit([("aab", "x"), ("bba", "y")] * 30, tokenizer="characters", word_ngrams=2, buckets=100)
    assert by_letters.predict(["aab"])[0][0][0] == "x"


def test_a_resumed_run_is_the_same(tmp_path):
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
    whole = method.fit(PAIRS, firth.Run(deterministic=True))
    with pytest.raises(KeyboardInterrupt):
        method.fit(PAIRS, firth.Run(deterministic=True, checkpoint_folder=tmp_path, report=StopsAt(3)))
    with pytest.warns(firth.FirthWarning, match="Going on from a checkpoint at 33%"):
        resumed = method.fit(PAIRS, firth.Run(deterministic=True, checkpoint_folder=tmp_path))
    assert resumed.inputs.tobytes() == whole.inputs.tobytes() and resumed.outputs.tobytes() == whole.outputs.tobytes()


@pytest.mark.parametrize("name", ["inputs", "outputs", "buckets"])
def test_a_damaged_model_is_refused(name):
    model = fit(word_ngrams=2, buckets=500)
    parts = model.parts()
    arrays = dict(parts.arrays)
    arrays[name] = arrays[name] + 500 if name == "buckets" else arrays[name][:-3]
    broken = type(model).from_parts(model.method, firth.core.model.Parts(arrays, parts.documents), {})
    with pytest.raises(firth.FirthError, match="broken"):
        broken.predict(["good"])


# ---- defaults and the held-out score ----


def test_the_defaults_learn_from_few_texts():
    """With fastText's own (5 epochs, 0.1), 300 texts teach nothing."""
    train, test = split(World(seed=34).topics(400))
    model = firth.FastTextClassifier().fit(LabeledTexts(train), firth.Run(threads=1))
    assert classification(model, test).accuracy > 0.9 > 0.3 > majority(train, test)
    assert model.training["chosen"] == {"epochs": 100, "learning_rate": 0.5}
    assert model.method == firth.FastTextClassifier()  # as it was asked for


def test_epochs_fall_with_the_number_of_texts_and_what_is_given_stays():
    method = firth.FastTextClassifier()
    assert [method.for_texts(n).epochs for n in (1, 200, 5000, 10_000, 100_000, 10**6)] == [100, 100, 50, 25, 10, 5]
    given = firth.FastTextClassifier(epochs=3, learning_rate=0.02)
    assert given.for_texts(200) == given
    assert fit(epochs=3).training["chosen"] == {}


def test_the_held_out_score_is_that_of_texts_the_model_never_saw():
    """Each text has a word of its own: those of held-out texts are not in the vocabulary."""
    examples = [(f"{text} only{number}", label) for number, (text, label) in enumerate(World(seed=35).topics(400))]
    model = firth.FastTextClassifier(dim=10).fit(examples, firth.Run(threads=1))
    found = model.training["held_out_score"]
    assert (found["metric"], found["rows"], found["learned"]) == ("accuracy", 40, True)
    assert model.training["held_out_documents"] == 40 and model.training["documents"] == 400
    held = [pair for number, pair in enumerate(examples) if f"only{number}" not in model.vocabulary]
    assert len(held) == 40
    assert classification(model, held).accuracy == pytest.approx(found["score"])
    majority, linear = found["baselines"].values()
    assert list(found["baselines"]) == ["majority label", "tf-idf + logistic regression"]
    assert majority < 0.3 < 0.9 < linear


@pytest.mark.parametrize("options", [{"word_ngrams": 2, "buckets": 5000}, {"minn": 3, "maxn": 4, "buckets": 5000}])
def test_n_grams_of_held_out_texts_are_not_trained(options):
    examples = [
        (f"{text} x{number}y z{number}", label) for number, (text, label) in enumerate(World(seed=36).topics(200))
    ]
    model = firth.FastTextClassifier(dim=6, epochs=5, **options).fit(examples, firth.Run(threads=1, report=Nothing()))
    held = [number for number in range(200) if f"x{number}y" not in model.vocabulary]
    assert len(held) == 20
    rest = [pair for number, pair in enumerate(examples) if number not in held]
    alone = firth.FastTextClassifier(dim=6, epochs=5, held_out=0.0, **options).fit(rest, firth.Run(threads=1))
    assert model.buckets.tolist() == alone.buckets.tolist()
    assert sorted(model.vocabulary.tokens) == sorted(alone.vocabulary.tokens)


def test_labels_are_held_out_in_proportion_and_none_is_lost():
    pairs = [(f"word{i}", "often") for i in range(300)] + [(f"seldom{i}", "rare") for i in range(100)]
    pairs += [(f"once{i}", f"single{i}") for i in range(5)]
    model = firth.FastTextClassifier(dim=4, epochs=1).fit(pairs, firth.Run(threads=1, report=Nothing()))
    held = [label for text, label in pairs if text not in model.vocabulary]
    assert Counter(held) == {"often": 30, "rare": 10}


def test_what_learned_nothing_says_so():
    rng = np.random.default_rng(3)
    random = [(" ".join(f"w{n}" for n in rng.integers(0, 50, 6)), f"l{rng.integers(0, 4)}") for _ in range(600)]
    told = Notes()
    model = firth.FastTextClassifier(dim=10).fit(random, firth.Run(threads=1, report=told))
    assert told.codes.count("nothing_learned") == 1 and model.training["held_out_score"]["learned"] is False
    few, told = World(seed=37).topics(400), Notes()
    model = firth.FastTextClassifier(dim=10, epochs=1, learning_rate=0.01).fit(
        LabeledTexts(list(few)), firth.Run(threads=1, report=told)
    )
    assert sorted(told.codes) == ["nothing_learned", "weaker_than_baseline"]  # counted words do learn these
    assert model.training["held_out_score"]["baselines"]["tf-idf + logistic regression"] > 0.9


def test_several_labels_are_right_where_one_of_them_is():
    rng = np.random.default_rng(4)
    pairs = [([f"c{a}", f"s{b}"], a, b) for a, b in rng.integers(0, 3, (400, 2))]
    pairs = [(f"colour{a} shape{b}", labels) for labels, a, b in pairs]
    model = firth.FastTextClassifier(dim=8, loss="one_vs_all").fit(pairs, firth.Run(threads=1))
    found = model.training["held_out_score"]
    assert found["score"] == found["baselines"]["tf-idf + logistic regression"] == 1.0
