"""`sweep`: planted truths found, the test part kept out of the choice, budgets kept, failures told; the tasks."""

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

import firth
from firth import FirthError, Run
from firth.core.model import Model, Parts
from firth.core.options import option
from firth.data.labeled_texts import LabeledTexts
from firth.data.splits import split
from firth.data.world import World, write_analogies
from firth.studies import Between, draw, sweep, tasks
from firth.studies.space import drawn, parsed_try, search_space
from firth.studies.tasks import Part, Task

WORLD = World(seed=1)
FEW = firth.SkipGram(dim=10, epochs=1, min_count=1)
TEXT = ["some words about some other words"] * 5


def one_number(score, items=20):
    """A task whose every item has the same value."""
    part = Part(items, lambda model: np.full(items, score(model.method)))
    return Task("number", "a number", part, part, "number")


def test_the_best_is_found_kept_and_told(tmp_path):
    """Of a grid, the planted best: dim 12 and window 3."""
    task = one_number(lambda method: -abs(method.dim - 12) - abs(method.window - 3))
    tries = {"dim": [8, 12, 16], "window": [2, 3]}
    found = sweep(FEW, TEXT, task, tmp_path / "s", tries=tries, budget=60)
    assert found.best.options == {"dim": 12, "window": 3} and found.best.score == 0
    assert found.ended == "Every combination was tried" and len(found.trials) == 7
    assert found.trials[0].options == {}  # as it is, to compare with
    assert found.model.vectors.dim == 12
    firth.verify(tmp_path / "s" / "best")
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["best", "lock", "sweep.json"]
    assert found.test.scores["chosen"].value == 0 and found.test.scores["as it is"].value == -4
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert told["best"]["options"] == {"dim": 12, "window": 3} and told["distinguishable"] is True
    shown = str(found)
    assert "dim" in shown and "as it is -4.000" in shown and str(tmp_path / "s" / "best") in shown
    assert len({tuple(sorted(trial.options.items())) for trial in found.trials}) == 7  # nothing twice


def test_the_same_call_goes_on_and_another_is_refused(tmp_path, monkeypatch):
    task = one_number(lambda method: method.dim)
    tries = {"dim": [8, 12]}
    first = sweep(FEW, TEXT, task, tmp_path / "s", tries=tries, budget=60)
    monkeypatch.setattr("firth.studies.sweeping.train", lambda *_, **__: pytest.fail("trained again"))
    again = sweep(FEW, TEXT, task, tmp_path / "s", tries=tries, budget=60)
    assert [trial.to_json() for trial in again.trials] == [trial.to_json() for trial in first.trials]
    for other, message in (
        ({"tries": {"dim": [8, 13]}}, r"another sweep \(dim was \[8, 12\], now \[8, 13\]\)"),
        ({"run": Run(seed=2)}, r"another sweep \(seed was 1, now 2\)"),
    ):
        with pytest.raises(FirthError, match=message):
            sweep(FEW, TEXT, task, tmp_path / "s", **{"tries": tries, **other})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("work")
    with pytest.raises(FirthError, match=r"other files \(notes.txt\)"):
        sweep(FEW, TEXT, task, tmp_path / "mine", tries=tries)
    with pytest.raises(FirthError, match="Another process"), firth.studies.sweeping.alone(tmp_path / "s", {}, True):
        sweep(FEW, TEXT, task, tmp_path / "s", tries=tries)


def test_overwriting_forgets(tmp_path):
    task = one_number(lambda method: method.dim)
    sweep(FEW, TEXT, task, tmp_path / "s", tries={"dim": [8, 12]}, budget=60)
    found = sweep(FEW, TEXT, task, tmp_path / "s", tries={"dim": [6]}, budget=60, overwrite=True)
    assert len(found.trials) == 2 and found.model.vectors.dim == 10


def test_what_chose_does_not_tell(tmp_path):
    """Scores of pure luck, other luck on the two parts: the best of the dev part is nothing special on the other."""
    luck = np.random.default_rng(0).normal(size=(2, 65))
    dev, test = (Part(1, lambda model, row=row: np.array([row[model.method.dim]])) for row in luck)
    found = sweep(
        FEW, TEXT, Task("luck", "luck", dev, test, "luck"), tmp_path / "s", tries={"dim": [*range(4, 20)]}, budget=60
    )
    dim = found.best.options["dim"]
    assert luck[0, dim] == max(luck[0, 4:20]) == found.best.score
    assert found.test.scores["chosen"].value == luck[1, dim] < max(luck[1, 4:20])


# ---- a method that takes its time, fails, or gives nonsense, as it is told ----


class Clock:
    """Time that passes in `Slow` alone."""

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


def test_the_budget_is_kept(slow, tmp_path):
    """Trials of 3 s in 8 s: the third is cut, and goes on when there is more time."""
    method, tries = Slow(seconds=3), {"value": [2.0, 3.0, 4.0, 5.0]}
    began = CLOCK.now
    found = sweep(method, None, slow, tmp_path / "s", tries=tries, budget=8)
    assert CLOCK.now - began == pytest.approx(8, abs=0.2)
    assert found.ended == "The budget of 8 s is spent" and found.seconds == pytest.approx(8, abs=0.2)
    assert [trial.problem for trial in found.trials] == ["", "", "out of time"]
    assert sweep(method, None, slow, tmp_path / "s", tries=tries, budget=8).trials == found.trials
    more = sweep(method, None, slow, tmp_path / "s", tries=tries, budget=100)
    assert [trial.problem for trial in more.trials] == [""] * 5 and more.best.score == 5
    assert [trial.options for trial in more.trials[:3]] == [trial.options for trial in found.trials]


def test_a_budget_too_small_for_one(slow, tmp_path):
    with pytest.raises(FirthError, match="No trial was finished in the time given"):
        sweep(Slow(seconds=5), None, slow, tmp_path / "s", tries={"value": [2.0]}, budget=0.1)
    with pytest.raises(FirthError, match="above 0"):
        sweep(Slow(), None, slow, tmp_path / "t", tries={"value": [2.0]}, budget=0)
    with pytest.raises(FirthError, match="budget is its own"):
        sweep(Slow(), None, slow, tmp_path / "t", tries={"value": [2.0]}, run=Run(budget=3))


def test_failures_are_told_and_passed_over(slow, tmp_path):
    found = sweep(Slow(), None, slow, tmp_path / "s", tries={"fails": [True, False], "value": [2.0, 3.0]}, budget=30)
    failed = [trial for trial in found.trials if trial.score is None]
    assert len(failed) == 2 and all("is not to be had" in trial.problem for trial in failed)
    assert found.best.options == {"fails": False, "value": 3.0} and "is not to be had" in str(found)


def test_all_trials_fail(slow, tmp_path):
    values = {"value": [float(value) for value in range(2, 9)]}
    with pytest.raises(FirthError, match=r"All of the first 5 trials failed\. The first: the value 1 is not to be had"):
        sweep(Slow(fails=True), None, slow, tmp_path / "s", tries=values, budget=30)
    assert len(json.loads((tmp_path / "s" / "sweep.json").read_text())["trials"]) == 5
    with pytest.raises(FirthError, match="None of 2 trials gave a score"):
        sweep(Slow(fails=True), None, slow, tmp_path / "t", tries={"value": [2.0]}, budget=30)
    nothing = one_number(lambda method: np.nan)
    with pytest.raises(FirthError, match=r"None of 2 trials gave a score\. The first: the score is not defined"):
        sweep(Slow(), None, nothing, tmp_path / "u", tries={"value": [2.0]}, budget=30)


def test_killed_between_the_record_and_the_move(slow, tmp_path):
    """The record says that trial 2 is best, its model still stands under `trial`: the next call moves it."""
    sweep(Slow(), None, slow, tmp_path / "s", tries={"value": [2.0]}, budget=30)
    folder = tmp_path / "s"
    shutil.copytree(folder / "best", folder / "trial")
    firth.train(Slow(value=1.0), None, folder / "best", overwrite=True)
    found = sweep(Slow(), None, slow, folder, tries={"value": [2.0]}, budget=30)
    assert found.model.method.value == 2 and not (folder / "trial").exists()


def test_killed_in_the_midst_of_writing(slow, tmp_path):
    """Halves of files and folders are cleared, and no obstacle."""
    folder = tmp_path / "s"
    (folder / ".trial-x1").mkdir(parents=True)
    (folder / ".trial-x1" / "config.json").write_text("{")
    (folder / ".sweep.json-x2").write_text("{")
    sweep(Slow(), None, slow, folder, tries={"value": [2.0]}, budget=30)
    assert sorted(path.name for path in folder.iterdir()) == ["best", "lock", "sweep.json"]


def test_a_range_is_not_a_list(slow, tmp_path):
    method = Slow(seconds=3)
    sweep(method, None, slow, tmp_path / "s", tries={"value": Between(2.0, 3.0)}, budget=5)
    with pytest.raises(FirthError, match=r"value was '2\.0 to 3\.0', now \[2\.0, 3\.0\]"):
        sweep(method, None, slow, tmp_path / "s", tries={"value": [2.0, 3.0]}, budget=5)


# ---- what is drawn ----


def test_ranges_come_from_the_fields():
    space = search_space(firth.SkipGram(), None)
    assert space["dim"] == Between(33, 300) and space["learning_rate"] == Between(0.025 / 3, 0.025 * 3)
    assert space["window"] == Between(1, 15) and space["subsample"].high <= 1
    assert not {"loss", "lowercase", "tokenizer", "phrases", "held_out"} & set(space)
    assert search_space(firth.SkipGram(), {"loss": None})["loss"] == ("negative", "hierarchical", "softmax")
    assert search_space(firth.SkipGram(), {"lowercase": None})["lowercase"] == (False, True)


def test_draws_stay_within_depend_on_the_seed_and_never_repeat():
    method = firth.SkipGram()
    space = search_space(
        method, {"dim": Between(10, 1000), "learning_rate": Between(0.001, 1), "phrases": Between(0, 3)}
    )

    def some(seed):
        tried = []
        for _ in range(60):
            tried.append(drawn(method, space, seed, tried))
        return tried

    one = some(1)
    assert one == some(1) != some(2) and one[0] == {}
    assert all(10 <= options["dim"] <= 1000 and 0.001 <= options["learning_rate"] <= 1 for options in one[1:])
    assert {options["phrases"] for options in one[1:]} == {0, 1, 2, 3}
    below = np.mean([options["dim"] < 100 for options in one[1:]])
    assert 0.3 < below < 0.7  # evenly by ratio: half below the geometric mean
    assert all(a != b for a, b in itertools.combinations(one, 2))


def test_bad_names_and_values():
    method = firth.SkipGram()
    for tries, message in (
        ({"dims": [5]}, "SkipGram has no option 'dims'. Did you mean 'dim'"),
        ({"dim": [5, 0]}, "dim must be at least 1; got 0"),
        ({"dim": [5.5]}, "must be a whole number"),
        ({"dim": Between(9, 3)}, "a range rises from low to high; got 9 to 3"),
        ({"dim": Between(0, 3)}, "at least 1; got 0"),
        ({"lowercase": Between(0, 1)}, "lowercase is no number"),
        ({"loss": ["hinge"]}, "must be one of"),
        ({"phrases": None}, "phrases is 0, about which no range can be laid"),
        ({"dim": []}, "dim has no values to try"),
    ):
        with pytest.raises(FirthError, match=message):
            search_space(method, tries)
    assert parsed_try(firth.SkipGram, "dim=5,10") == ("dim", [5, 10])
    assert parsed_try(firth.SkipGram, "learning-rate=0.01:0.1") == ("learning_rate", Between(0.01, 0.1))
    assert parsed_try(firth.SkipGram, "lowercase=on,off") == ("lowercase", [True, False])
    assert parsed_try(firth.SkipGram, "loss") == ("loss", None)
    for text, message in (
        ("dimm=5", "no option 'dimm'"),
        ("dim=five", "takes whole numbers"),
        ("dim=", "takes whole numbers"),
        ("dim=1:2:3", "takes whole numbers"),
        ("lowercase=maybe", "is on or off"),
    ):
        with pytest.raises(FirthError, match=message):
            parsed_try(firth.SkipGram, text)


# ---- tasks ----


@pytest.fixture(scope="module")
def learned():
    texts = [*WORLD.sentences(12_000), *(document.text for document in WORLD.topics(800))]
    return firth.SkipGram(dim=40, epochs=8, window=8).fit(texts, run=Run(threads=1))


@pytest.fixture(scope="module")
def untrained(learned):
    """The same words with random numbers."""
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
        "labelled": tasks.labelled_task(LabeledTexts(folder / "documents.jsonl", column="text", label="topic")),
    }


def test_tasks_tell_what_was_learned_from_random_numbers(learned, untrained, tmp_path):
    for name, task in text_tasks(tmp_path).items():
        for part in (task.dev, task.test):
            good, bad = part.score(learned), part.score(untrained)
            assert good > min(1.5 * bad + 0.01, 0.95), (name, good, bad)
            assert len(part.values(learned)) == part.items >= 10


def test_the_parts_share_nothing_and_the_seed_deals_them(learned, tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"river\tbank\t{score}\n" for score in range(50)))
    one = tasks.similarity_task(tmp_path / "pairs.tsv")
    assert sorted([*one.dev.truth, *one.test.truth]) == list(range(50)) and one.dev.items == 25
    other = tasks.similarity_task(tmp_path / "pairs.tsv", seed=2)
    assert sorted(one.dev.truth) != sorted(other.dev.truth) and one.identity != other.identity
    assert one.identity == tasks.similarity_task(tmp_path / "pairs.tsv").identity


def test_to_know_fewer_words_is_no_gain(learned, tmp_path):
    """A model without the hard words is asked about them all the same."""
    task = text_tasks(tmp_path)
    few = firth.SkipGram(dim=40, epochs=8, window=8, min_count=150).fit(WORLD.sentences(12_000), run=Run(threads=1))
    assert len(few.vectors) < len(learned.vectors) / 2
    assert task["analogies"].dev.score(few) < task["analogies"].dev.score(learned)
    assert len(task["similarity"].dev.values(few)) == task["similarity"].dev.items
    unknown = firth.SkipGram(dim=4, min_count=1).fit(["other words"] * 9)
    assert task["analogies"].dev.score(unknown) == 0
    assert np.isnan(task["similarity"].dev.score(unknown))


def test_a_classifier_is_asked_itself():
    reviews = [(example.text, example.label) for example in WORLD.sentiment(900)]
    task = tasks.labelled_task(LabeledTexts(reviews[600:]))
    model = firth.FastTextClassifier(dim=10, epochs=10).fit(LabeledTexts(reviews[:600]), run=Run(threads=1))
    right = [
        bool(found) and found[0][0] == label
        for (_, label), found in zip(reviews[600:], model.predict([t for t, _ in reviews[600:]]), strict=True)
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

    drawn = WORLD.ratings(users=200, items=80, each=20)
    rows = [(f"u{user}", f"i{item}", float(value)) for user, item, value in zip(*drawn[:3], strict=True)]
    both = split(firth.Interactions(rows), share=0.2)
    task = tasks.rating_task(both.test)
    good, poor = firth.ALS(dim=8).fit(both.train), firth.ALS(dim=8, epochs=1, regularization=1e6).fit(both.train)
    assert task.dev.score(good) > task.dev.score(poor)
    truth = firth.evaluate.recommendations(good, {**both.test.histories()}, metrics=["ndcg@100"], baselines=False)
    sizes = np.array([task.dev.items, task.test.items])
    mean = (task.dev.score(good) * sizes[0] + task.test.score(good) * sizes[1]) / sizes.sum()
    assert mean == pytest.approx(truth["ndcg@100"], abs=0.02)  # but for users without anything new


def test_a_task_that_does_not_fit(learned, tmp_path):
    (tmp_path / "few.tsv").write_text("a\tb\t1\n" * 5)
    with pytest.raises(FirthError, match="at least 20 items to deal into 2; got 5"):
        tasks.similarity_task(tmp_path / "few.tsv")
    with pytest.raises(FirthError, match="needs two of them; got 1"):
        tasks.labelled_task(LabeledTexts([("text", "one")] * 40))
    (tmp_path / "pairs.tsv").write_text("a\tb\t1\n" * 25)
    neither = SlowModel(Slow(), {})
    with pytest.raises(FirthError, match="a Slow has no table"):
        tasks.similarity_task(tmp_path / "pairs.tsv").dev.score(neither)
    (tmp_path / "sts.tsv").write_text("a text\tanother\t1\n" * 25)
    with pytest.raises(FirthError, match="a Slow does not embed"):
        tasks.sentence_task(tmp_path / "sts.tsv").dev.score(neither)


def by_blank(text: str) -> list[str]:
    return text.split()


def test_a_tokenizer_that_is_a_function_goes_through_a_sweep(tmp_path):
    part = Part(20, lambda model: np.full(20, float(model.pool(["some words"]).known[0]) + model.method.dim))
    method = firth.SkipGram(dim=10, epochs=1, min_count=1, tokenizer=by_blank)
    settings = {"tries": {"dim": [8, 12]}, "budget": 60}
    found = sweep(method, TEXT, Task("known", "known words", part, part, "known"), tmp_path / "s", **settings)
    assert found.best.options == {"dim": 12} and found.test.scores["chosen"].value == 14
    assert found.model.method.tokenizer is by_blank and found.model.pool(["some words"]).known.tolist() == [2]
    with pytest.raises(FirthError) as refused:
        search_space(method, {"tokenizer": ["words", by_blank]})
    assert refused.value.code == "invalid_value"
