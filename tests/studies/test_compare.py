"""`compare` on a synthetic corpus: a trained model and random vectors, sampled documents, the recommendation."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
import tiny
from refusing import refuses

import firth
from firth.data.world import World, write_analogies
from firth.studies import Drawn, draw, write_report
from firth.studies.comparison import Comparison, ModelMetadata, make_measure, recommend
from firth.studies.documents import lookups

WORLD = World(seed=1)


@pytest.fixture(scope="module")
def texts():
    return [*WORLD.sentences(12_000), *(document.text for document in WORLD.topics(1500))]


@pytest.fixture(scope="module")
def learned(texts):
    return firth.SkipGram(dim=40, epochs=3, min_count=5).fit(texts, run=firth.Run(threads=1))


@pytest.fixture(scope="module")
def guess(learned):
    """The trivial baseline: random vectors. They only identify equal words."""
    shape = learned.vectors.matrix.shape
    return firth.Vectors(learned.vectors.keys, np.random.default_rng(0).standard_normal(shape))


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Documents outside the training data, with titles (their first sentence), names and topics."""
    path = tmp_path_factory.mktemp("records") / "documents.jsonl"
    with path.open("w") as file:
        for document in list(WORLD.topics(1900))[1500:]:
            title, *rest = document.text.split(" . ")
            name = "".join(word.title() for word in rest[0].split())
            row = {"title": title, "text": " . ".join(rest), "name": name, "topic": document.label}
            file.write(json.dumps(row) + "\n")
    return path


@pytest.fixture(scope="module")
def compared(learned, guess, records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tests")
    write_analogies(folder / "questions.txt", WORLD.analogies(most=60))
    pairs = "".join(f"{a}\t{b}\t{score}\n" for a, b, score in WORLD.similarities(300))
    (folder / "pairs.tsv").write_text(pairs)
    topics = [(document.text.split(" . ")[0], document.label) for document in list(WORLD.topics(300))]
    sts = [(a[0], b[0], float(a[1] == b[1])) for a, b in zip(topics[::2], topics[1::2], strict=True)]
    (folder / "sts.tsv").write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in sts))
    return firth.compare(
        {"learned": learned, "guess": guess},
        records,
        analogies=folder / "questions.txt",
        similarity=folder / "pairs.tsv",
        sts=folder / "sts.tsv",
        column="text",
        title="title",
        name="name",
        label="topic",
    )


def named(comparison, name):
    return next(measure for measure in comparison.measures if measure.name == name)


def test_a_trained_model_is_distinguished_from_random_vectors(compared):
    for name in ("analogies", "word similarity", "cluster purity", "labels, accuracy", "title → body, MRR"):
        measure = named(compared, name)
        assert measure.best == "learned" and not measure.is_best("guess"), name
    assert named(compared, "cluster purity").scores["learned"].value > 0.8  # scikit-learn's k-means: 0.83 to 0.88
    assert named(compared, "cluster purity").scores["guess"].value < 0.4
    assert compared.recommendation.startswith("Use learned: best, or not distinguishable from the best, in ")


def test_every_measure_is_present_once(compared):
    kinds = ["title → body", "text → name", "sentence → next"]
    retrieval = [f"{kind}, {metric}" for kind in kinds for metric in ("MRR", "recall@10")]
    words = ["analogies", "word similarity", "STS"]
    assert [measure.name for measure in compared.measures] == [*words, *retrieval, "labels, accuracy", "cluster purity"]
    for measure in compared.measures:
        for score in measure.scores.values():
            assert score.low <= score.value <= score.high
        assert (measure.baseline_name == "BM25") == ("→" in measure.name)


def test_measures_agree_with_evaluate(compared, learned):
    """On questions that all models can answer, the scores equal those of `analogies` and `word_similarity`."""
    sections = [firth.evaluate.Section(name, tuple(questions)) for name, questions in WORLD.analogies(most=60).items()]
    alone = firth.evaluate.analogies(learned.vectors, sections)
    measure = named(compared, "analogies")
    assert (measure.items, measure.scores["learned"].value) == (alone.total.answered, pytest.approx(alone.accuracy))
    pairs = [firth.evaluate.Pair(*pair) for pair in WORLD.similarities(300)]
    similar = firth.evaluate.word_similarity(learned.vectors, pairs)
    assert named(compared, "word similarity").scores["learned"].value == pytest.approx(similar.spearman)


def test_metadata_and_overlap(compared, learned):
    metadata = compared.metadata["guess"]
    assert metadata.bytes == learned.vectors.matrix.nbytes and metadata.dim == 40 and metadata.speed > 0
    assert 0.99 < metadata.coverage <= 1 and metadata.memory == metadata.bytes and math.isnan(metadata.training)
    assert compared.metadata["learned"].training == learned.training["seconds"] > 0
    assert compared.metadata["learned"].memory >= 2 * learned.vectors.matrix.nbytes  # words and contexts
    told = compared.to_json()["models"]
    assert told["guess"]["training_seconds"] is None and told["learned"]["training_seconds"] > 0
    assert told["guess"]["memory_bytes"] == metadata.memory
    assert list(compared.overlap) == [("learned", "guess")] and 0 < compared.overlap["learned", "guess"] < 0.6


def test_the_same_seed_gives_the_same_scores(learned, guess, records):
    def run(seed):
        result = firth.compare([learned, guess], records, column="text", label="topic", texts=60, seed=seed)
        return [measure.to_json() for measure in result.measures]

    assert run(3) == run(3) != run(4)


def test_table_and_json(compared):
    shown = str(compared)
    assert "learned" in shown.splitlines()[0] and "* best" in shown and compared.recommendation in shown
    document = json.loads(json.dumps(compared.to_json(), allow_nan=False))
    first = document["measures"][0]
    assert set(first["scores"]) == {"learned", "guess"} and first["best"] == "learned" and first["baseline"] is None
    assert document["recommendation"] == compared.recommendation


def test_without_data_words_are_compared(learned, guess):
    result = firth.compare({"a": learned, "b": learned.vectors, "c": guess})
    assert result.overlap["a", "b"] == 1 and result.overlap["a", "c"] < 0.1
    assert result.measures == () and result.recommendation.startswith("No recommendation: nothing was measured")


def test_names_of_models(learned, tmp_path):
    for folder in ("old/model", "new/model", "dim=40"):
        learned.save(tmp_path / folder)
    named = [f"old={tmp_path / 'old/model'}", str(tmp_path / "new/model"), str(tmp_path / "dim=40")]
    assert list(firth.compare(named).models) == ["old", "model", "dim=40"]


def test_a_model_without_text_vectors_is_reported_and_left_out(learned, records):
    table = firth.Table({"x": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 0.0, 1.0, 0.0]})
    rows = firth.PCA(dim=1).fit(table)
    result = firth.compare({"rows": rows, "words": learned}, records, column="text")
    assert all(measure.models == ["words"] for measure in result.measures) and "rows" in result.notes[0]
    assert "–" in str(result)


def test_questions_that_not_all_models_can_answer_are_left_out(learned, tmp_path):
    tiny = firth.Vectors(["king", "queen"], [[1, 0], [0, 1]])
    write_analogies(tmp_path / "q.txt", WORLD.analogies(most=5))
    result = firth.compare({"learned": learned, "tiny": tiny}, analogies=tmp_path / "q.txt")
    assert result.measures == () and result.notes[0].startswith("Analogies left out")
    assert " 0 of " in result.notes[0] and result.notes[0].endswith("at least 10 are needed.")


def test_stability_of_random_and_deterministic_methods(texts):
    """LSA is nearly deterministic, so almost all neighbors stay. Skip-gram keeps some, more than by chance."""
    few = texts[12_000:12_600]
    models = {"lsa": firth.LSA(dim=20).fit(few), "skipgram": firth.SkipGram(dim=20, epochs=2).fit(few)}
    result = named(firth.compare(models, few, texts=100, retrain=2), "stability")
    assert result.scores["lsa"].value > 0.95
    assert 20 / result.items < result.scores["skipgram"].value < 0.9  # by chance: 10 / items
    assert not result.counted and not result.are_indistinguishable("lsa", "skipgram")


def test_too_few_pairs_are_left_out(learned, tmp_path):
    (tmp_path / "few.tsv").write_text("a king\ta queen\t1\n")
    (tmp_path / "words.tsv").write_text("king\tqueen\t1\n")
    result = firth.compare({"a": learned}, sts=tmp_path / "few.tsv", similarity=tmp_path / "words.tsv")
    assert result.measures == () and len(result.notes) == 2 and result.notes[1].startswith("STS left out")


def test_the_words_of_a_document_model_are_evaluated(learned, texts, tmp_path):
    """Its main table, of documents, has none of the questions' words, and must not exclude the questions."""
    documents = firth.Doc2Vec(dim=20, epochs=1).fit(texts[:2000])
    write_analogies(tmp_path / "q.txt", WORLD.analogies(most=20))
    result = firth.compare({"words": learned, "documents": documents}, analogies=tmp_path / "q.txt")
    assert named(result, "analogies").items > 50


def test_a_network_is_evaluated_on_texts_only(learned, records, tmp_path):
    write_analogies(tmp_path / "q.txt", WORLD.analogies(most=20))
    models = {"network": tiny.tiny_bert(), "words": learned}
    result = firth.compare(models, records, column="text", texts=40, analogies=tmp_path / "q.txt")
    assert named(result, "analogies").models == ["words"]
    assert named(result, "sentence → next, MRR").models == ["network", "words"] and result.metadata["network"].dim == 32


# ---- documents ----


def test_documents_are_sampled_uniformly():
    texts = [f"text {number}" for number in range(40)]
    counts = Counter(text for seed in range(400) for text in draw(texts, texts=10, seed=seed).texts)
    assert sum(counts.values()) == 4000 and len(counts) == 40
    assert min(counts.values()) > 60 and max(counts.values()) < 140  # 100 ± 8.7 each


def test_known_item_searches_of_documents():
    texts = [f"One is {n}. Two is {n}." for n in range(20)]
    names = [f"json.load{n}FromText" for n in range(20)]
    titles = [f"title {n}" for n in range(18)] + ["", " "]
    by_title, by_name, sentences = lookups(Drawn(texts, titles, names, [""] * 20), seed=1)
    assert (by_title.queries, by_title.targets) == (titles[:18], texts[:18])
    assert (by_name.queries, by_name.targets[7]) == (texts, "json load 7 from text")
    assert sentences.queries == [f"One is {n}." for n in range(20)]
    assert sentences.targets == [f"Two is {n}." for n in range(20)]


def test_repeated_targets_are_removed():
    texts = [f"One is {n}. Two is the same." for n in range(20)]
    assert lookups(Drawn(texts, [""] * 20, [""] * 20, [""] * 20), seed=1) == []


# ---- the recommendation ----


def comparison(sizes, *measures, speeds=(), memory=(), training=()):
    speeds, memory, training = dict(speeds), dict(memory), dict(training)
    metadata = {
        name: ModelMetadata(
            size, 10, math.nan, speeds.get(name, math.nan), memory.get(name, 0), training.get(name, math.nan)
        )
        for name, size in sizes.items()
    }
    return Comparison(metadata, measures, {}, "", ())


def test_the_fastest_of_indistinguishable_models_is_recommended():
    values = np.random.default_rng(0).random(50)
    same = make_measure("x", "x", {"slow": values, "quick": values})
    result = recommend(comparison({"slow": 5, "quick": 9}, same, speeds={"slow": 100, "quick": 4000}))
    assert result.startswith("Use quick: best, or not distinguishable from the best, in the one measure. ")
    assert result.endswith("quick is as good as slow within the interval and 40× faster.")
    better = make_measure("y", "y", {"slow": values + 1, "quick": values})
    result = recommend(comparison({"slow": 5, "quick": 9}, better, speeds={"slow": 100, "quick": 4000}))
    assert result == "Use slow: best, or not distinguishable from the best, in the one measure."


def test_the_smallest_of_similarly_fast_models_is_recommended():
    """Timings vary by a few dozen percent."""
    values = np.random.default_rng(0).random(50)
    same = make_measure("x", "x", {"large": values, "small": values})
    for speeds in ({}, {"large": 190, "small": 100}):
        result = recommend(comparison({"large": 9000, "small": 5000}, same, speeds=speeds))
        assert result.startswith("Use small: ")
        assert result.endswith("small is as good as large within the interval and smaller (5.0 kB, not 9.0 kB).")


def test_memory_and_then_training_time_decide_between_similarly_fast_models():
    values = np.random.default_rng(0).random(50)
    same = make_measure("x", "x", {"a": values, "b": values})
    speeds = {"a": 100, "b": 120}

    def recommended(**costs):
        return recommend(comparison({"a": 2000, "b": 1000}, same, speeds=speeds, **costs))

    result = recommended(memory={"a": 4000, "b": 9000}, training={"a": 500.0, "b": 1.0})
    assert result.startswith("Use a: ") and result.endswith("needs less memory (4.0 kB, not 9.0 kB).")
    result = recommended(memory={"a": 6000, "b": 9000}, training={"a": 1.0, "b": 500.0})
    assert result.startswith("Use a: ") and result.endswith("was trained in less time (1.0 s, not 500.0 s).")
    for unknown in ({"memory": {"a": 4000}}, {"training": {"a": 1.0}}, {"memory": {"a": 6000, "b": 9000}}):
        assert recommended(**unknown).endswith("smaller (1.0 kB, not 2.0 kB)."), unknown
    assert recommended(memory={"a": 1, "b": 9000}).startswith("Use a: ")
    faster = comparison({"a": 1, "b": 1}, same, speeds={"a": 100, "b": 300}, memory={"a": 1, "b": 9000})
    assert recommend(faster).startswith("Use b: ")


def test_reasons_for_no_recommendation():
    values = np.random.default_rng(0).random(30)
    alone = [make_measure(name, name, {name: values}) for name in "ab"]
    assert recommend(comparison({"a": 1}, alone[0])) == "No recommendation: one model was given."
    result = recommend(comparison({"a": 1, "b": 1}, *alone))
    assert result == "No recommendation: no measure applies to two of the models."


def test_models_that_are_best_equally_often():
    high, low = np.ones(30), np.zeros(30)
    measures = [make_measure("x", "x", {"a": high, "b": low}), make_measure("y", "y", {"a": low, "b": high})]
    result = recommend(comparison({"a": 1, "b": 1}, *measures, speeds={"a": 10, "b": 35}))
    assert result.endswith("1 of 2 measures. b is best as often as a and 3.5× faster.")


def test_an_equally_good_baseline_is_reported():
    values = np.linspace(0, 1, 50)
    weak = make_measure("x", "x", {"a": values, "b": values / 2}, baseline=("BM25", values + 0.1))
    assert recommend(comparison({"a": 1, "b": 1}, weak)).endswith("; but BM25 does as well or better in x.")


def test_measures_that_do_not_count_are_ignored():
    high, low = np.ones(30), np.zeros(30)
    first = make_measure("x", "x", {"a": high, "b": low})
    other = [make_measure(name, "y", {"a": low, "b": high}, counted=False) for name in "yz"]
    assert recommend(comparison({"a": 1, "b": 1}, first, *other)).startswith("Use a: ")


def test_a_measure_of_a_single_model_does_not_count():
    high, low = np.ones(30), np.zeros(30)
    both = make_measure("x", "x", {"a": high, "b": low})
    alone = [make_measure(name, "y", {"b": high}) for name in "yz"]
    result = recommend(comparison({"a": 1, "b": 1}, both, *alone))
    assert result == "Use a: best, or not distinguishable from the best, in the one measure."


def test_an_undefined_score_is_never_the_best():
    """The correlation of constant cosines is undefined."""
    truth = np.arange(30.0)
    for values in ({"flat": np.zeros(30), "a": -truth}, {"a": -truth, "flat": np.zeros(30)}):
        result = make_measure("x", "x", values, truth=truth)
        assert result.best == "a" and not result.is_best("flat")
        assert result.to_json()["scores"]["flat"]["value"] is None


def test_a_model_may_have_the_name_of_the_baseline():
    result = make_measure("x", "x", {"BM25": np.zeros(20)}, baseline=("BM25", np.ones(20)))
    assert result.models == ["BM25"] and result.scores["BM25"].value == 0 and result.baseline_name == "BM25 (baseline)"


# ---- the report ----


def test_the_report_is_self_contained(compared, tmp_path):
    write_report(compared, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg ") == len(compared.measures) + 1 and page.count("</svg>") == page.count("<svg ")
    for loading in (
        "<script",
        "<img",
        "<link",
        "src=",
        "@import",
        "url(http",
        'href="http',
        "<metadata",
        "<!DOCTYPE svg",
    ):
        assert loading not in page, loading
    assert "default-src 'none'" in page and "prefers-color-scheme: dark" in page
    assert "#2b6a99" not in page.split("</style>", 1)[1]  # colours of the plots are the page's own
    ids = [part.split('"')[0] for part in page.split(' id="')[1:]]
    assert len(ids) == len(set(ids)) and compared.recommendation in page
    write_report(compared, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "report.html").read_bytes()


def test_names_of_models_are_escaped_in_html(tmp_path):
    values = np.random.default_rng(0).random(30)
    odd = {"<b>a$x$</b>": values, "b": values / 2}
    result = comparison(dict.fromkeys(odd, 1), make_measure("x", "x", odd))
    write_report(result, tmp_path / "report.html")
    assert "<b>" not in (tmp_path / "report.html").read_text(encoding="utf-8")


# ---- invalid input ----


def test_invalid_arguments_are_refused(learned, records, tmp_path):
    def check(refused, *arguments, **settings):
        with refused:
            firth.compare(*arguments, **settings)

    check(refuses("too_few"), [])
    check(refuses("invalid_type", got=type(learned).__name__), learned)
    check(refuses("not_found", path=tmp_path / "nowhere"), [tmp_path / "nowhere"])
    check(refuses("duplicate_name", path="a"), ["a", "a"])
    check(refuses("duplicate_name", name="a", model="c"), ["a=b", "a=c"])
    check(refuses("not_found", path="runs/dim=5"), ["runs/dim=5"])
    check(refuses("invalid_type", name="x", got="int"), {"x": 3})
    check(refuses("too_few", least=10, got=2), [learned], ["a b", "c d"])
    check(refuses("invalid_value", option="texts", least=10, got=3), [learned], records, column="text", texts=3)
    check(refuses("unknown_column"), [learned], records, column="text", label="topics")
    check(refuses("conflicting_options", columns="label"), [learned], label="topic")
    check(refuses("invalid_value", option="retrain", got=1), [learned], records, column="text", retrain=1)
    check(refuses("invalid_value", option="retrain", got=2), [learned], retrain=2)
    odd = firth.Vectors(learned.vectors.keys, np.full(learned.vectors.matrix.shape, np.nan))
    check(refuses("non_finite", name="odd"), {"odd": odd}, records, column="text")
