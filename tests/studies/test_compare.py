"""`compare` on the invented world: a model that learned it against one of random numbers; documents drawn and asked."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
import tiny

import firth
from firth.data.world import World, write_analogies
from firth.studies import Drawn, draw, write_report
from firth.studies.comparison import Comparison, ModelMetadata, measured, recommend
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
    """The trivial baseline: random numbers in place of what was learned. It knows which words are the same, no more."""
    shape = learned.vectors.matrix.shape
    return firth.Vectors(learned.vectors.keys, np.random.default_rng(0).standard_normal(shape))


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Documents that the models did not see, with titles (their first sentence), names and topics."""
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


def test_what_learned_the_world_is_told_from_random_numbers(compared):
    for name in ("analogies", "word similarity", "cluster purity", "labels, accuracy", "title → body, MRR"):
        measure = named(compared, name)
        assert measure.best == "learned" and not measure.is_best("guess"), name
    assert named(compared, "cluster purity").scores["learned"].value > 0.8  # scikit-learn's k-means: 0.83 to 0.88
    assert named(compared, "cluster purity").scores["guess"].value < 0.4
    assert compared.recommendation.startswith("Use learned: best, or not distinguishable from the best, in ")


def test_every_kind_of_measure_is_there_once(compared):
    kinds = ["title → body", "text → name", "sentence → next"]
    retrieval = [f"{kind}, {figure}" for kind in kinds for figure in ("MRR", "recall@10")]
    words = ["analogies", "word similarity", "STS"]
    assert [measure.name for measure in compared.measures] == [*words, *retrieval, "labels, accuracy", "cluster purity"]
    for measure in compared.measures:
        for score in measure.scores.values():
            assert score.low <= score.value <= score.high
        assert (measure.baseline_name == "BM25") == ("→" in measure.name)


def test_figures_agree_with_evaluate(compared, learned):
    """On questions that all models know, they are the same as `analogies` and `word_similarity` have."""
    sections = [firth.evaluate.Section(name, tuple(asked)) for name, asked in WORLD.analogies(most=60).items()]
    alone = firth.evaluate.analogies(learned.vectors, sections)
    measure = named(compared, "analogies")
    assert (measure.items, measure.scores["learned"].value) == (alone.total.answered, pytest.approx(alone.accuracy))
    pairs = [firth.evaluate.Pair(*pair) for pair in WORLD.similarities(300)]
    similar = firth.evaluate.word_similarity(learned.vectors, pairs)
    assert named(compared, "word similarity").scores["learned"].value == pytest.approx(similar.spearman)


def test_facts_and_overlap(compared, learned):
    facts = compared.facts["guess"]
    assert facts.bytes == learned.vectors.matrix.nbytes and facts.dim == 40 and facts.speed > 0
    assert 0.99 < facts.coverage <= 1 and facts.memory == facts.bytes and math.isnan(facts.training)
    assert compared.facts["learned"].training == learned.training["seconds"] > 0
    assert compared.facts["learned"].memory >= 2 * learned.vectors.matrix.nbytes  # words and contexts
    told = compared.to_json()["models"]
    assert told["guess"]["training_seconds"] is None and told["learned"]["training_seconds"] > 0
    assert told["guess"]["memory_bytes"] == facts.memory
    assert list(compared.overlap) == [("learned", "guess")] and 0 < compared.overlap["learned", "guess"] < 0.6


def test_the_same_seed_gives_the_same_figures(learned, guess, records):
    def run(seed):
        found = firth.compare([learned, guess], records, column="text", label="topic", texts=60, seed=seed)
        return [measure.to_json() for measure in found.measures]

    assert run(3) == run(3) != run(4)


def test_table_and_json(compared):
    shown = str(compared)
    assert "learned" in shown.splitlines()[0] and "* best" in shown and compared.recommendation in shown
    document = json.loads(json.dumps(compared.to_json(), allow_nan=False))
    first = document["measures"][0]
    assert set(first["scores"]) == {"learned", "guess"} and first["best"] == "learned" and first["baseline"] is None
    assert document["recommendation"] == compared.recommendation


def test_without_data_words_are_compared(learned, guess):
    found = firth.compare({"a": learned, "b": learned.vectors, "c": guess})
    assert found.overlap["a", "b"] == 1 and found.overlap["a", "c"] < 0.1
    assert found.measures == () and found.recommendation.startswith("No recommendation: nothing was measured")


def test_models_are_called_as_they_are_named(learned, tmp_path):
    for folder in ("old/model", "new/model", "dim=40"):
        learned.save(tmp_path / folder)
    named = [f"old={tmp_path / 'old/model'}", str(tmp_path / "new/model"), str(tmp_path / "dim=40")]
    assert list(firth.compare(named).models) == ["old", "model", "dim=40"]


def test_a_model_that_does_not_read_texts_is_named_and_left_out(learned, records):
    table = firth.Table({"x": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 0.0, 1.0, 0.0]})
    rows = firth.PCA(dim=1).fit(table)
    found = firth.compare({"rows": rows, "words": learned}, records, column="text")
    assert all(measure.models == ["words"] for measure in found.measures) and "rows" in found.notes[0]
    assert "–" in str(found)


def test_questions_that_not_all_can_answer_are_left_out(learned, tmp_path):
    tiny = firth.Vectors(["king", "queen"], [[1, 0], [0, 1]])
    write_analogies(tmp_path / "q.txt", WORLD.analogies(most=5))
    found = firth.compare({"learned": learned, "tiny": tiny}, analogies=tmp_path / "q.txt")
    assert found.measures == () and found.notes[0].startswith("Analogies left out: 0 of ")
    assert found.notes[0].endswith("all models know; 10 are needed.")


def test_stability_tells_methods_that_draw_from_those_that_do_not(texts):
    """LSA draws nothing that matters: all neighbours survive. Skip-gram keeps some, more than by chance."""
    few = texts[12_000:12_600]
    models = {"lsa": firth.LSA(dim=20).fit(few), "skipgram": firth.SkipGram(dim=20, epochs=2).fit(few)}
    found = named(firth.compare(models, few, texts=100, retrain=2), "stability")
    assert found.scores["lsa"].value > 0.95
    assert 20 / found.items < found.scores["skipgram"].value < 0.9  # by chance: 10 / items
    assert not found.counted and not found.are_indistinguishable("lsa", "skipgram")


def test_too_few_pairs_are_left_out(learned, tmp_path):
    (tmp_path / "few.tsv").write_text("a king\ta queen\t1\n")
    (tmp_path / "words.tsv").write_text("king\tqueen\t1\n")
    found = firth.compare({"a": learned}, sts=tmp_path / "few.tsv", similarity=tmp_path / "words.tsv")
    assert found.measures == () and len(found.notes) == 2 and found.notes[1].startswith("STS left out")


def test_a_model_of_documents_is_asked_for_its_words(learned, texts, tmp_path):
    """Its main table, the documents, has none of the questions' words: that must not spoil the question for others."""
    documents = firth.Doc2Vec(dim=20, epochs=1).fit(texts[:2000])
    write_analogies(tmp_path / "q.txt", WORLD.analogies(most=20))
    found = firth.compare({"words": learned, "documents": documents}, analogies=tmp_path / "q.txt")
    assert named(found, "analogies").items > 50


def test_a_network_embeds_texts_and_is_not_asked_for_words(learned, records, tmp_path):
    write_analogies(tmp_path / "q.txt", WORLD.analogies(most=20))
    models = {"network": tiny.tiny_bert(), "words": learned}
    found = firth.compare(models, records, column="text", texts=40, analogies=tmp_path / "q.txt")
    assert named(found, "analogies").models == ["words"]
    assert named(found, "sentence → next, MRR").models == ["network", "words"] and found.facts["network"].dim == 32


# ---- documents ----


def test_every_document_is_drawn_as_often_as_any_other():
    texts = [f"text {number}" for number in range(40)]
    counts = Counter(text for seed in range(400) for text in draw(texts, texts=10, seed=seed).texts)
    assert sum(counts.values()) == 4000 and len(counts) == 40
    assert min(counts.values()) > 60 and max(counts.values()) < 140  # 100 ± 8.7 each


def test_what_is_asked_of_documents():
    texts = [f"One is {n}. Two is {n}." for n in range(20)]
    names = [f"json.load{n}FromText" for n in range(20)]
    titles = [f"title {n}" for n in range(18)] + ["", " "]
    by_title, by_name, sentences = lookups(Drawn(texts, titles, names, [""] * 20), seed=1)
    assert (by_title.queries, by_title.targets) == (titles[:18], texts[:18])
    assert (by_name.queries, by_name.targets[7]) == (texts, "json load 7 from text")
    assert sentences.queries == [f"One is {n}." for n in range(20)]
    assert sentences.targets == [f"Two is {n}." for n in range(20)]


def test_targets_that_stand_twice_are_asked_for_once():
    texts = [f"One is {n}. Two is the same." for n in range(20)]
    assert lookups(Drawn(texts, [""] * 20, [""] * 20, [""] * 20), seed=1) == []


# ---- what is recommended ----


def comparison(sizes, *measures, speeds=()):
    speeds = dict(speeds)
    facts = {name: ModelMetadata(size, 10, math.nan, speeds.get(name, math.nan)) for name, size in sizes.items()}
    return Comparison(facts, measures, {}, "", ())


def test_of_models_that_are_not_distinguishable_the_fastest_is_recommended():
    values = np.random.default_rng(0).random(50)
    same = measured("x", "x", {"slow": values, "quick": values})
    found = recommend(comparison({"slow": 5, "quick": 9}, same, speeds={"slow": 100, "quick": 4000}))
    assert found.startswith("Use quick: best, or not distinguishable from the best, in the one measure. ")
    assert found.endswith("quick is as good as slow within the interval and 40× faster.")
    better = measured("y", "y", {"slow": values + 1, "quick": values})
    found = recommend(comparison({"slow": 5, "quick": 9}, better, speeds={"slow": 100, "quick": 4000}))
    assert found == "Use slow: best, or not distinguishable from the best, in the one measure."


def test_speeds_that_are_nearly_the_same_do_not_decide_then_the_smallest_does():
    """One timing differs from the next by a few dozen percent."""
    values = np.random.default_rng(0).random(50)
    same = measured("x", "x", {"large": values, "small": values})
    for speeds in ({}, {"large": 190, "small": 100}):
        found = recommend(comparison({"large": 9000, "small": 5000}, same, speeds=speeds))
        assert found.startswith("Use small: ")
        assert found.endswith("small is as good as large within the interval and smaller (5.0 kB, not 9.0 kB).")


def test_why_nothing_is_recommended():
    values = np.random.default_rng(0).random(30)
    alone = [measured(name, name, {name: values}) for name in "ab"]
    assert recommend(comparison({"a": 1}, alone[0])) == "No recommendation: one model was given."
    found = recommend(comparison({"a": 1, "b": 1}, *alone))
    assert found == "No recommendation: no measure applies to two of the models."


def test_as_often_best_is_not_as_good():
    high, low = np.ones(30), np.zeros(30)
    measures = [measured("x", "x", {"a": high, "b": low}), measured("y", "y", {"a": low, "b": high})]
    found = recommend(comparison({"a": 1, "b": 1}, *measures, speeds={"a": 10, "b": 35}))
    assert found.endswith("1 of 2 measures. b is best as often as a and 3.5× faster.")


def test_a_baseline_that_does_as_well_is_said():
    values = np.linspace(0, 1, 50)
    weak = measured("x", "x", {"a": values, "b": values / 2}, baseline=("BM25", values + 0.1))
    assert recommend(comparison({"a": 1, "b": 1}, weak)).endswith("; but BM25 does as well or better in x.")


def test_what_does_not_count_does_not_decide():
    high, low = np.ones(30), np.zeros(30)
    first = measured("x", "x", {"a": high, "b": low})
    other = [measured(name, "y", {"a": low, "b": high}, counted=False) for name in "yz"]
    assert recommend(comparison({"a": 1, "b": 1}, first, *other)).startswith("Use a: ")


def test_a_measure_of_one_model_alone_is_no_win():
    high, low = np.ones(30), np.zeros(30)
    both = measured("x", "x", {"a": high, "b": low})
    alone = [measured(name, "y", {"b": high}) for name in "yz"]
    found = recommend(comparison({"a": 1, "b": 1}, both, *alone))
    assert found == "Use a: best, or not distinguishable from the best, in the one measure."


def test_a_figure_that_is_not_defined_is_never_the_best():
    """Cosines that are all alike have no correlation with anything."""
    truth = np.arange(30.0)
    for values in ({"flat": np.zeros(30), "a": -truth}, {"a": -truth, "flat": np.zeros(30)}):
        found = measured("x", "x", values, truth=truth)
        assert found.best == "a" and not found.is_best("flat")
        assert found.to_json()["scores"]["flat"]["value"] is None


def test_a_model_may_be_called_like_the_baseline():
    found = measured("x", "x", {"BM25": np.zeros(20)}, baseline=("BM25", np.ones(20)))
    assert found.models == ["BM25"] and found.scores["BM25"].value == 0 and found.baseline_name == "BM25 (baseline)"


# ---- the report ----


def test_report_is_one_page_that_loads_nothing(compared, tmp_path):
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


def test_names_of_models_are_no_html(tmp_path):
    values = np.random.default_rng(0).random(30)
    odd = {"<b>a$x$</b>": values, "b": values / 2}
    found = comparison(dict.fromkeys(odd, 1), measured("x", "x", odd))
    write_report(found, tmp_path / "report.html")
    assert "<b>" not in (tmp_path / "report.html").read_text(encoding="utf-8")


# ---- bad input ----


def test_bad_input_is_refused(learned, records, tmp_path):
    def refused(match, *arguments, **settings):
        with pytest.raises(firth.FirthError, match=match):
            firth.compare(*arguments, **settings)

    refused("at least one model", [])
    refused("Put it in a list", learned)
    refused("no such model", [tmp_path / "nowhere"])
    refused("is given twice", ["a", "a"])
    refused("Two are called 'a': give one another name, as in other=c", ["a=b", "a=c"])
    refused("runs/dim=5: no such model", ["runs/dim=5"])
    refused("got int", {"x": 3})
    refused("at least 10 documents; the data has 2", [learned], ["a b", "c d"])
    refused("texts must be at least 10; got 3", [learned], records, column="text", texts=3)
    refused("no column 'topics'", [learned], records, column="text", label="topics")
    refused("there is none to read", [learned], label="topic")
    refused("2 or more trainings", [learned], records, column="text", retrain=1)
    refused("data to train on", [learned], retrain=2)
    odd = firth.Vectors(learned.vectors.keys, np.full(learned.vectors.matrix.shape, np.nan))
    refused("odd gives a text NaN", {"odd": odd}, records, column="text")
