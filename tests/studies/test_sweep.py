"""`sweep`: known optima, independent test part, budgets, failures, resuming; and the tasks."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from refusing import refuses

import firth
from firth import FirthError, Run
from firth.core.model import HasVectors, Model, Parts
from firth.core.options import option
from firth.data.labeled_texts import LabeledTexts
from firth.data.splits import split
from firth.data.world import World, write_analogies
from firth.studies import Between, draw, sweep, tasks
from firth.studies.space import next_options, parse_range, search_space
from firth.studies.tasks import Part, Task

WORLD = World(seed=1)
FEW = firth.SkipGram(dim=10, epochs=1, min_count=1)
TEXT = ["some words about some other words"] * 5


def one_number(score, items=20):
    """A task whose every item has the same value."""
    part = Part(items, lambda model: np.full(items, score(model.method)))
    return Task("number", "a number", part, part, "number")


def test_the_best_options_are_found_and_saved(tmp_path):
    """The optimum of the grid is dim 12 and window 3."""
    task = one_number(lambda method: -abs(method.dim - 12) - abs(method.window - 3))
    space = {"dim": [8, 12, 16], "window": [2, 3]}
    result = sweep(FEW, TEXT, task, tmp_path / "s", space=space, budget=60)
    assert result.best.options == {"dim": 12, "window": 3} and result.best.score == 0
    assert result.ended == "Every combination was tried" and len(result.trials) == 7
    assert result.trials[0].options == {}  # the method as given
    assert isinstance(result.model, HasVectors) and result.model.vectors.dim == 12
    firth.verify(tmp_path / "s" / "best")
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["best", "lock", "sweep.json"]
    assert result.test.scores["best"].value == 0 and result.test.scores["default"].value == -4
    told = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert told["best"]["options"] == {"dim": 12, "window": 3} and told["distinguishable"] is True
    shown = str(result)
    assert "dim" in shown and "default -4.000" in shown and str(tmp_path / "s" / "best") in shown
    assert len({tuple(sorted(trial.options.items())) for trial in result.trials}) == 7  # no repetitions


def test_the_same_call_resumes_and_another_is_refused(tmp_path, monkeypatch):
    task = one_number(lambda method: method.dim)
    space = {"dim": [8, 12]}
    first = sweep(FEW, TEXT, task, tmp_path / "s", space=space, budget=60)
    monkeypatch.setattr("firth.studies.sweeping.train", lambda *_, **__: pytest.fail("trained again"))
    again = sweep(FEW, TEXT, task, tmp_path / "s", space=space, budget=60)
    assert [trial.to_json() for trial in again.trials] == [trial.to_json() for trial in first.trials]
    others: list[tuple[dict[str, Any], str]] = [
        ({"space": {"dim": [8, 13]}}, "dim was [8, 12], now [8, 13]"),
        ({"run": Run(seed=2)}, "seed was 1, now 2"),
    ]
    for other, reason in others:
        with refuses("other_run", folder=tmp_path / "s", reason=reason):
            sweep(FEW, TEXT, task, tmp_path / "s", **{"space": space, **other})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("work")
    with refuses("unsafe_output", folder=tmp_path / "mine", examples="notes.txt"):
        sweep(FEW, TEXT, task, tmp_path / "mine", space=space)
    with refuses("locked"), firth.studies.sweeping.locked_study(tmp_path / "s", {}, True):
        sweep(FEW, TEXT, task, tmp_path / "s", space=space)


def test_overwrite_removes_earlier_trials(tmp_path):
    task = one_number(lambda method: method.dim)
    sweep(FEW, TEXT, task, tmp_path / "s", space={"dim": [8, 12]}, budget=60)
    result = sweep(FEW, TEXT, task, tmp_path / "s", space={"dim": [6]}, budget=60, overwrite=True)
    assert isinstance(result.model, HasVectors)
    assert len(result.trials) == 2 and result.model.vectors.dim == 10


def test_the_test_score_is_independent_of_the_selection(tmp_path):
    """With random scores on both parts, the best on dev is not the best on test."""
    luck = np.random.default_rng(0).normal(size=(2, 65))

    def part(row):
        return Part(1, lambda model: np.array([row[model.method.options()["dim"]]]))

    dev, test = map(part, luck)
    result = sweep(
        FEW, TEXT, Task("luck", "luck", dev, test, "luck"), tmp_path / "s", space={"dim": [*range(4, 20)]}, budget=60
    )
    dim = result.best.options["dim"]
    assert luck[0, dim] == max(luck[0, 4:20]) == result.best.score
    assert result.test.scores["best"].value == luck[1, dim] < max(luck[1, 4:20])


# ---- a method that takes time or fails on demand ----


class Clock:
    """A clock that only `Slow` advances."""

    now = 0.0

    def monotonic(self):
        return self.now


CLOCK = Clock()


class SlowModel(Model):
    def __init__(self, method, training):
        self.method, self.training = method, training

    def parts(self):
        return Parts({"x": np.zeros(1, np.float32)})

    @classmethod
    def from_parts(cls, method, parts, training):
        return cls(method, training)


@dataclass(frozen=True, kw_only=True)
class Slow(firth.Method):
    model: ClassVar[type[Model]] = SlowModel
    summary: ClassVar[str] = "sleeps"
    value: float = option(1.0, "what it is worth", low=0, high=10)
    seconds: float = option(0.0, "how long it takes", low=0)
    fails: bool = option(False, "refuse")

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Model:
        run.report.begin("Sleeping", self.seconds, "s")
        if self.fails:
            raise FirthError("invalid_value", "the value {value:g} is not to be had", value=self.value)
        for done in range(int(self.seconds * 10)):
            run.report.step(done / 10)
            CLOCK.now += 0.1
        run.report.end()
        return SlowModel(self, {"seconds": self.seconds})


@pytest.fixture
def slow(monkeypatch):
    monkeypatch.setattr("firth.core.registry.method", lambda name: Slow)
    monkeypatch.setattr("firth.studies.sweeping.time", CLOCK)
    return one_number(lambda method: method.value)


def test_the_budget_is_not_exceeded(slow, tmp_path):
    """Of trials of 3 s in 8 s, the third is interrupted; it resumes with a larger budget."""
    method, space = Slow(seconds=3), {"value": [2.0, 3.0, 4.0, 5.0]}
    began = CLOCK.now
    result = sweep(method, None, slow, tmp_path / "s", space=space, budget=8)
    assert CLOCK.now - began == pytest.approx(8, abs=0.2)
    assert result.ended == "The budget of 8 s is spent" and result.seconds == pytest.approx(8, abs=0.2)
    assert [trial.problem for trial in result.trials] == ["", "", "out of time"]
    assert sweep(method, None, slow, tmp_path / "s", space=space, budget=8).trials == result.trials
    more = sweep(method, None, slow, tmp_path / "s", space=space, budget=100)
    assert [trial.problem for trial in more.trials] == [""] * 5 and more.best.score == 5
    assert [trial.options for trial in more.trials[:3]] == [trial.options for trial in result.trials]


def test_a_budget_too_small_for_one_trial(slow, tmp_path):
    with refuses("conflicting_options", option="budget"):
        sweep(Slow(seconds=5), None, slow, tmp_path / "s", space={"value": [2.0]}, budget=0.1)
    with refuses("invalid_value", option="budget", got=0):
        sweep(Slow(), None, slow, tmp_path / "t", space={"value": [2.0]}, budget=0)
    with refuses("conflicting_options", option="Run.budget"):
        sweep(Slow(), None, slow, tmp_path / "t", space={"value": [2.0]}, run=Run(budget=3))


def test_failed_trials_are_reported_and_skipped(slow, tmp_path):
    result = sweep(Slow(), None, slow, tmp_path / "s", space={"fails": [True, False], "value": [2.0, 3.0]}, budget=30)
    failed = [trial for trial in result.trials if trial.score is None]
    assert len(failed) == 2 and all("is not to be had" in trial.problem for trial in failed)
    assert result.best.options == {"fails": False, "value": 3.0} and "is not to be had" in str(result)


def test_a_sweep_ends_if_all_trials_fail(slow, tmp_path):
    values = {"value": [float(value) for value in range(2, 9)]}
    with refuses("sweep_failed", n_done=5, problem="the value 1 is not to be had"):
        sweep(Slow(fails=True), None, slow, tmp_path / "s", space=values, budget=30)
    assert len(json.loads((tmp_path / "s" / "sweep.json").read_text())["trials"]) == 5
    with refuses("sweep_failed", n_failed=2, problem="the value 1 is not to be had"):
        sweep(Slow(fails=True), None, slow, tmp_path / "t", space={"value": [2.0]}, budget=30)
    nothing = one_number(lambda method: np.nan)
    with refuses("sweep_failed", n_failed=2, problem="the score is not defined"):
        sweep(Slow(), None, nothing, tmp_path / "u", space={"value": [2.0]}, budget=30)


def test_a_kill_before_the_best_model_is_moved(slow, tmp_path):
    """The record says that trial 2 is best, and its model is still in `trial`; the next call moves it."""
    sweep(Slow(), None, slow, tmp_path / "s", space={"value": [2.0]}, budget=30)
    folder = tmp_path / "s"
    shutil.copytree(folder / "best", folder / "trial")
    firth.train(Slow(value=1.0), None, folder / "best", overwrite=True)
    result = sweep(Slow(), None, slow, folder, space={"value": [2.0]}, budget=30)
    assert isinstance(result.model.method, Slow)
    assert result.model.method.value == 2 and not (folder / "trial").exists()


def test_a_kill_during_writing(slow, tmp_path):
    """Partial files and folders are removed."""
    folder = tmp_path / "s"
    (folder / ".trial-x1").mkdir(parents=True)
    (folder / ".trial-x1" / "config.json").write_text("{")
    (folder / ".sweep.json-x2").write_text("{")
    sweep(Slow(), None, slow, folder, space={"value": [2.0]}, budget=30)
    assert sorted(path.name for path in folder.iterdir()) == ["best", "lock", "sweep.json"]


def test_a_range_and_a_list_are_different_spaces(slow, tmp_path):
    method = Slow(seconds=3)
    sweep(method, None, slow, tmp_path / "s", space={"value": Between(2.0, 3.0)}, budget=5)
    with refuses("other_run", reason="value was '2.0 to 3.0', now [2.0, 3.0]"):
        sweep(method, None, slow, tmp_path / "s", space={"value": [2.0, 3.0]}, budget=5)


# ---- the search space ----


def test_default_ranges():
    space = search_space(firth.SkipGram(), None)
    assert space["dim"] == Between(33, 300) and space["learning_rate"] == Between(0.025 / 3, 0.025 * 3)
    assert isinstance(space["subsample"], Between)
    assert space["window"] == Between(1, 15) and space["subsample"].high <= 1
    assert not {"loss", "lowercase", "tokenizer", "phrases", "held_out"} & set(space)
    assert search_space(firth.SkipGram(), {"loss": None})["loss"] == ("negative", "hierarchical", "softmax")
    assert search_space(firth.SkipGram(), {"lowercase": None})["lowercase"] == (False, True)


def test_drawn_options_are_in_range_reproducible_and_distinct():
    method = firth.SkipGram()
    space = search_space(
        method, {"dim": Between(10, 1000), "learning_rate": Between(0.001, 1), "phrases": Between(0, 3)}
    )

    def some(seed):
        tried = list[dict[str, Any]]()
        for _ in range(60):
            options = next_options(method, space, seed, tried)
            assert options is not None
            tried.append(options)
        return tried

    one = some(1)
    assert one == some(1) != some(2) and one[0] == {}
    assert all(10 <= options["dim"] <= 1000 and 0.001 <= options["learning_rate"] <= 1 for options in one[1:])
    assert {options["phrases"] for options in one[1:]} == {0, 1, 2, 3}
    below = np.mean([options["dim"] < 100 for options in one[1:]])
    assert 0.3 < below < 0.7  # log-uniform: half below the geometric mean
    assert all(a != b for a, b in itertools.combinations(one, 2))


def test_invalid_spaces_are_refused():
    method = firth.SkipGram()
    for space, code, values in (
        ({"dims": [5]}, "unknown_option", {"kind": "SkipGram", "name": "dims"}),
        ({"dim": [5, 0]}, "invalid_value", {"name": "dim", "got": 0}),
        ({"dim": [5.5]}, "invalid_value", {"name": "dim", "got": 5.5}),
        ({"dim": Between(9, 3)}, "invalid_value", {"name": "dim", "low": 9, "high": 3}),
        ({"dim": Between(0, 3)}, "invalid_value", {"name": "dim", "got": 0}),
        ({"lowercase": Between(0, 1)}, "invalid_type", {"name": "lowercase"}),
        ({"loss": ["hinge"]}, "invalid_value", {"name": "loss", "got": "hinge"}),
        ({"phrases": None}, "invalid_value", {"name": "phrases", "value": 0}),
        ({"dim": []}, "empty_data", {"name": "dim"}),
    ):
        with refuses(code, **values):
            search_space(method, space)
    assert parse_range(firth.SkipGram, "dim=5,10") == ("dim", [5, 10])
    assert parse_range(firth.SkipGram, "learning-rate=0.01:0.1") == ("learning_rate", Between(0.01, 0.1))
    assert parse_range(firth.SkipGram, "lowercase=on,off") == ("lowercase", [True, False])
    assert parse_range(firth.SkipGram, "loss") == ("loss", None)
    for text, code, values in (
        ("dimm=5", "unknown_option", {"name": "dimm"}),
        ("dim=five", "invalid_value", {"name": "dim", "expected": "integers", "got": "five"}),
        ("dim=", "invalid_value", {"name": "dim", "got": ""}),
        ("dim=1:2:3", "invalid_value", {"name": "dim", "got": "1:2:3"}),
        ("lowercase=maybe", "invalid_value", {"name": "lowercase", "got": "maybe"}),
    ):
        with refuses(code, **values):
            parse_range(firth.SkipGram, text)


# ---- tasks ----


@pytest.fixture(scope="module")
def learned():
    texts = [*WORLD.sentences(12_000), *(document.text for document in WORLD.topics(800))]
    return firth.SkipGram(dim=40, epochs=8, window=8).fit(texts, run=Run(threads=1))


@pytest.fixture(scope="module")
def untrained(learned):
    """The same words with random vectors."""
    parts = learned.parts()
    noise = np.random.default_rng(0).standard_normal(parts.arrays["words"].shape).astype(np.float32)
    return type(learned).from_parts(learned.method, Parts({**parts.arrays, "words": noise}, parts.documents), {})


def text_tasks(folder: Path) -> Mapping[str, Task]:
    write_analogies(folder / "questions.txt", WORLD.analogies(most=60))
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in WORLD.similarities(300)))
    topics = list(WORLD.topics(1400))[800:]
    rows = [
        {"title": d.text.split(" . ")[0], "text": " . ".join(d.text.split(" . ")[1:]), "topic": d.label} for d in topics
    ]
    (folder / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    halves = [(row["title"], row["text"], 1.0) for row in rows[:150]]
    others = [
        (a["title"], b["text"], 0.0)
        for a, b in zip(rows[150:300], rows[300:450], strict=True)
        if a["topic"] != b["topic"]
    ]
    (folder / "sts.tsv").write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in halves + others))
    return {
        "similarity": tasks.similarity_task(folder / "pairs.tsv"),
        "analogies": tasks.analogy_task(folder / "questions.txt"),
        "sts": tasks.sentence_task(folder / "sts.tsv"),
        "documents": tasks.document_task(draw(folder / "documents.jsonl", column="text", title="title")),
        "labelled": tasks.labeled_task(LabeledTexts(folder / "documents.jsonl", column="text", label="topic")),
    }


def test_tasks_distinguish_a_trained_model_from_random_vectors(learned, untrained, tmp_path):
    for name, task in text_tasks(tmp_path).items():
        for part in (task.dev, task.test):
            good, bad = part.score(learned), part.score(untrained)
            assert good > min(1.5 * bad + 0.01, 0.95), (name, good, bad)
            assert len(part.values(learned)) == part.items >= 10


def test_dev_and_test_are_disjoint_and_depend_on_the_seed(learned, tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"river\tbank\t{score}\n" for score in range(50)))
    one = tasks.similarity_task(tmp_path / "pairs.tsv")
    assert one.dev.truth is not None and one.test.truth is not None
    assert sorted([*one.dev.truth, *one.test.truth]) == list(range(50)) and one.dev.items == 25
    other = tasks.similarity_task(tmp_path / "pairs.tsv", seed=2)
    assert other.dev.truth is not None
    assert sorted(one.dev.truth) != sorted(other.dev.truth) and one.identity != other.identity
    assert one.identity == tasks.similarity_task(tmp_path / "pairs.tsv").identity


def test_a_smaller_vocabulary_is_no_advantage(learned, tmp_path):
    """Questions with words that a model lacks count as wrong."""
    task = text_tasks(tmp_path)
    few = firth.SkipGram(dim=40, epochs=8, window=8, min_count=150).fit(WORLD.sentences(12_000), run=Run(threads=1))
    assert len(few.vectors) < len(learned.vectors) / 2
    assert task["analogies"].dev.score(few) < task["analogies"].dev.score(learned)
    assert len(task["similarity"].dev.values(few)) == task["similarity"].dev.items
    unknown = firth.SkipGram(dim=4, min_count=1).fit(["other words"] * 9)
    assert task["analogies"].dev.score(unknown) == 0
    assert np.isnan(task["similarity"].dev.score(unknown))


def test_a_classifier_is_scored_by_its_own_predictions():
    reviews = [(example.text, example.label) for example in WORLD.sentiment(900)]
    task = tasks.labeled_task(LabeledTexts(reviews[600:]))
    model = firth.FastTextClassifier(dim=10, epochs=10).fit(LabeledTexts(reviews[:600]), run=Run(threads=1))
    right = [
        bool(result) and result[0][0] == label
        for (_, label), result in zip(reviews[600:], model.predict([t for t, _ in reviews[600:]]), strict=True)
    ]
    assert task.dev.score(model) > 0.8
    assert min(task.dev.score(model), task.test.score(model)) <= np.mean(right) + 0.1


def test_nodes_and_ratings(tmp_path):
    society = WORLD.friendships(people=200)
    (tmp_path / "labels.txt").write_text(
        "".join(f"{node}\t{label}\n" for node, label in enumerate(society.communities))
    )
    task = tasks.node_task(tmp_path / "labels.txt")
    walks = firth.DeepWalk(dim=16, walks_per_node=4, epochs=1).fit(firth.Graph(society.edges))
    assert task.dev.score(walks) > 0.7 and task.test.score(walks) > 0.7

    next_options = WORLD.ratings(users=200, items=80, each=20)
    rows = [(f"u{user}", f"i{item}", float(value)) for user, item, value in zip(*next_options[:3], strict=True)]
    both = split(firth.Interactions(rows), share=0.2)
    task = tasks.rating_task(both.test)
    good, poor = firth.ALS(dim=8).fit(both.train), firth.ALS(dim=8, epochs=1, regularization=1e6).fit(both.train)
    assert task.dev.score(good) > task.dev.score(poor)
    truth = firth.evaluate.recommendations(good, {**both.test.histories()}, metrics=["ndcg@100"], baselines=False)
    sizes = np.array([task.dev.items, task.test.items])
    mean = (task.dev.score(good) * sizes[0] + task.test.score(good) * sizes[1]) / sizes.sum()
    assert mean == pytest.approx(truth["ndcg@100"], abs=0.02)  # except for users without new items


def test_unsuitable_tasks_are_refused(learned, tmp_path):
    (tmp_path / "few.tsv").write_text("a\tb\t1\n" * 5)
    with refuses("too_few", least=20, parts=2, got=5):
        tasks.similarity_task(tmp_path / "few.tsv")
    with refuses("too_few", got=1):
        tasks.labeled_task(LabeledTexts([("text", "one")] * 40))
    (tmp_path / "pairs.tsv").write_text("a\tb\t1\n" * 25)
    neither = SlowModel(Slow(), {})
    with refuses("unsupported_model", needed="words or nodes", method="Slow"):
        tasks.similarity_task(tmp_path / "pairs.tsv").dev.score(neither)
    (tmp_path / "sts.tsv").write_text("a text\tanother\t1\n" * 25)
    with refuses("unsupported_model", needed="texts", method="Slow"):
        tasks.sentence_task(tmp_path / "sts.tsv").dev.score(neither)


def by_blank(text: str) -> list[str]:
    return text.split()


def known_words(model):
    return model.embed_with_counts(["some words"]).known[0]


def test_a_sweep_with_a_tokenizer_function(tmp_path):
    part = Part(20, lambda model: np.full(20, float(known_words(model)) + model.method.options()["dim"]))
    method = firth.SkipGram(dim=10, epochs=1, min_count=1, tokenizer=by_blank)
    settings: dict[str, Any] = {"space": {"dim": [8, 12]}, "budget": 60}
    result = sweep(method, TEXT, Task("known", "known words", part, part, "known"), tmp_path / "s", **settings)
    assert result.best.options == {"dim": 12} and result.test.scores["best"].value == 14
    assert isinstance(result.model.method, firth.SkipGram)
    assert result.model.method.tokenizer is by_blank and known_words(result.model) == 2
    with refuses("invalid_value", name="tokenizer", got=by_blank):
        search_space(method, {"tokenizer": ["words", by_blank]})
