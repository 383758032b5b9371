"""The command line with fine-tuned models: finetune, predict, evaluate, sweep and plot."""

from __future__ import annotations

import csv
import json

import pytest
from click.testing import CliRunner
from tiny import tiny_bert

import firth
from firth.cli.main import cli
from firth.data.world import World

QUICK = ["--epochs", "1", "--threads", "1", "--dropout", "0"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """base (a small BERT), reviews.csv, tags.conll and questions.csv."""
    folder = tmp_path_factory.mktemp("tasks")
    tiny_bert().save(folder / "base")
    texts = [f"{text} {n}" for n, text in enumerate(World(seed=21).sentences(60))]
    rows = [[text, "xy"[n % 2], n / 3, ["red", "blue"][n % 2], texts[n - 1]] for n, text in enumerate(texts)]
    write(folder / "reviews.csv", ["review", "mood", "price", "colour", "other"], rows)
    (folder / "tags.conll").write_text(
        "\n\n".join("\n".join(f"{word} {word[0]}" for word in text.split()) for text in texts)
    )
    asked = [[row.question, row.passage, row.answer] for row in World(seed=21).questions(40)]
    write(folder / "questions.csv", ["question", "passage", "answer"], asked)
    return folder


def evaluated(call, task, *arguments):
    (result,) = json.loads(call("evaluate", task, *arguments, "--json").stdout).values()
    return result


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def call(place, monkeypatch):
    monkeypatch.chdir(place)

    def invoke(*arguments, code=0, input=None):
        result = CliRunner().invoke(cli, [str(argument) for argument in arguments], input=input)
        assert result.exit_code == code, result.output
        return result

    return invoke


def test_labels_from_a_csv(call, refused, place):
    done = call(
        "finetune",
        "text_classifier",
        "base",
        "reviews.csv",
        "-o",
        "mood",
        "--column",
        "review",
        "--label",
        "mood",
        *QUICK,
    )
    assert "dev accuracy" in done.stdout and "Next: firth predict mood FILE" in done.stdout
    again = call(
        "finetune",
        "text_classifier",
        "base",
        "reviews.csv",
        "-o",
        "mood",
        "--column",
        "review",
        "--label",
        "mood",
        *QUICK,
    )
    assert "already finished" in again.stdout
    lines = call("predict", "mood", "reviews.csv", "--column", "review").stdout.splitlines()
    assert len(lines) == 60 and {line.split("\t")[0] for line in lines} <= {"x", "y"}
    scores = evaluated(call, "classification", "mood", "reviews.csv", "--column", "review", "--label", "mood")
    assert set(scores) >= {"accuracy", "matthews", "confusion"}
    assert call("embed", "mood", "reviews.csv", "--column", "review", "-o", "v.npy").exit_code == 0
    call("inspect", "words", "mood", "reviews.csv", "--column", "review", "-o", "w.vec", "--static")
    senses = json.loads(
        call("inspect", "senses", "mood", "the king sleeps", "a king", "--word", "king", "--json").stdout
    )
    assert len(senses["layers"]) == 3 and senses["layers"][2]["distances"][0][1] > 0
    refused("unsupported_model", "generate", "fill", "mood", "the [MASK]", method="text_classifier")
    refused("unsupported_model", "pooling", "mood", "-o", "m", "--pooling", "cls", method="text_classifier")
    assert (
        json.loads(call("info", "mood", "--json").stdout)["options"]["epochs"] == 1
    )  # a model of Firth has its options
    call("plot", "confusion", "mood", "reviews.csv", "--column", "review", "--label", "mood", "-o", "c.png")
    call("plot", "curve", "mood", "-o", "curve.svg")
    assert (place / "c.png").read_bytes()[:4] == b"\x89PNG" and "score" in (place / "curve.svg").read_text()


@pytest.mark.parametrize(
    "names",
    [("True", "False"), ("01", "02"), ("1.0", "2.0"), ("2024-01-01T10:00", "2024-01-01T11:00")],
)
def test_labels_are_read_the_same_in_training_and_evaluation(call, place, names):
    """Whatever the csv parser makes of them, a model that separates them has the accuracy 1."""
    rows = [[f"{'king' if n % 2 else 'river'} {n}", names[n % 2]] for n in range(60)]
    write(place / "names.csv", ["text", "label"], rows)
    rates = ["--epochs", "8", "--learning-rate", "1e-2", "--dropout", "0", "--threads", "1"]
    call("finetune", "text_classifier", "base", "names.csv", "-o", "names", "--overwrite", *rates)
    assert evaluated(call, "classification", "names", "names.csv")["accuracy"] > 0.9
    swept = call(
        "sweep", "text_classifier", "names.csv", "--start", "base", "-o", "named", "--classification", "names.csv",
        "--overwrite", "--try", "weight_decay=0.01", "--budget", 60, *rates, "--json",
    ).stdout  # fmt: skip
    assert json.loads(swept)["best"]["score"] > 0.9


def test_pairs_numbers_and_other_columns(call, place):
    pairs = ["--column", "review", "--other", "other"]
    call("finetune", "text-classifier", "base", "reviews.csv", "-o", "same", *pairs, "--label", "mood", *QUICK)
    shown = call("predict", "same", "reviews.csv", *pairs, "-k", "2", "--json").stdout
    assert len(json.loads(shown.splitlines()[0])["labels"]) == 2
    call("finetune", "text_regressor", "base", "reviews.csv", "-o", "price", *pairs, "--label", "price", *QUICK)
    lines = call("predict", "price", "reviews.csv", *pairs).stdout.splitlines()
    assert len(lines) == 60 and all(float(line) < 100 for line in lines)
    command = ("evaluate", "classification", "price")
    assert "60 texts: Spearman" in call(*command, "reviews.csv", *pairs, "--label", "price").stdout
    write(place / "gap.csv", ["review", "other", "price"], [["a", "b", 1], ["c", "d", 2], ["e", "f", ""]])
    assert call(*command, "gap.csv", *pairs, "--label", "price").stdout.startswith("2 texts (1 ")
    single = ["--column", "review", "--label", "mood"]
    features = ["--columns", "price,colour"]
    call("finetune", "text_classifier", "base", "reviews.csv", "-o", "both", *single, *features, *QUICK)
    assert len(call("predict", "both", "reviews.csv", "--column", "review").stdout.splitlines()) == 60
    assert evaluated(call, "classification", "both", "reviews.csv", *single)["texts"] == 60


def test_tags_and_answers(call, refused, place):
    call("finetune", "token_classifier", "base", "tags.conll", "-o", "tags", *QUICK)
    lines = call("predict", "tags", "-", input="the king sleeps\na river\n").stdout.split("\n")
    assert [line.split("\t")[0] for line in lines] == ["the", "king", "sleeps", "", "a", "river", "", ""]
    call("finetune", "question_answerer", "base", "questions.csv", "-o", "answers", *QUICK)
    passage = "in the forest the old king sleeps"
    question = ["--question", "who sleeps", "--passage", passage]
    answer = json.loads(call("predict", "answers", *question, "--json").stdout)
    assert passage[answer["start"] : answer["end"]] == answer["text"]
    assert set(answer) == {"text", "start", "end", "score"}
    marked = passage.replace(answer["text"], f"**{answer['text']}**", 1)
    assert call("predict", "answers", *question).stdout == marked + "\n"
    assert call("predict", "answers", *question[:3], "-", input=passage).stdout == marked + "\n"
    assert len(call("predict", "answers", "questions.csv").stdout.splitlines()) == 40
    scores = evaluated(call, "answers", "answers", "questions.csv")
    assert set(scores) == {"questions", "unanswerable", "exact_match", "f1"}
    renamed = (place / "questions.csv").read_text().replace("question,passage,answer", "q,p,a")
    (place / "renamed.csv").write_text(renamed)
    columns = ["--question-column", "q", "--passage-column", "p"]
    assert len(call("predict", "answers", "renamed.csv", *columns).stdout.splitlines()) == 40
    assert evaluated(call, "answers", "answers", "renamed.csv", *columns, "--answer-column", "a") == scores
    refused("unsupported_model", "predict", "answers", "questions.csv", "-k", 2, method="question_answerer")
    refused("conflicting_options", "predict", "answers", "questions.csv", *question)
    refused("usage", "predict", "answers", *question[:2])
    short = ["finetune", "question_answerer", "base", "questions.csv", "-o", "x", "--question-length", "1"]
    refused("text_too_long", *short, "--overlong", "refuse")


def test_a_sweep_evaluates_the_training_column(call):
    swept = call(
        "sweep", "text_classifier", "reviews.csv", "--start", "base", "-o", "swept", "--column", "review",
        "--label", "mood", "--classification", "reviews.csv", "--try", "learning_rate=1e-4",
        "--budget", 60, *QUICK, "--json",
    ).stdout  # fmt: skip
    assert 0 <= json.loads(swept)["best"]["score"] <= 1


def test_evaluate_features(call, place):
    firth.LSA(dim=5).fit(World(seed=21).sentences(60)).save("lsa", overwrite=True)
    printed = call(
        "evaluate", "features", "base", "lsa", "reviews.csv", "--column", "review", "--label", "mood",
        "--columns", "price,colour", "--folds", "3", "--json",
    ).stdout  # fmt: skip
    results = list(json.loads(printed).values())
    accuracies = [result["metrics"]["accuracy"]["mean"] for result in results]
    assert len(results) == 2 and min(accuracies) > 0.95  # the colour determines the label
    assert all(result["learned"] and result["tfidf"]["accuracy"] < 0.8 for result in results)  # the texts do not
    rows = [["", "x"], ["the king", ""], *([f"word {n}", "xy"[n % 2]] for n in range(20))]
    write(place / "gaps.csv", ["text", "label"], rows)
    shown = call("evaluate", "features", "lsa", "gaps.csv", "--folds", "3")
    assert "20 rows × 5" in shown.stdout and "tf-idf 0." in shown.stdout
    assert "1 of 22 rows have no text" in shown.stderr and "1 of 22 rows have no label" in shown.stderr


REVIEWS = ["reviews.csv", "-o", "m", "--column", "review", "--label", "mood"]
CLASSIFIER = ["finetune", "text_classifier"]


@pytest.mark.parametrize(
    ("code", "values", "arguments"),
    [
        ("unknown_column", {"name": "body"}, [*CLASSIFIER, "base", *REVIEWS, "--column", "body"]),
        ("unknown_column", {"name": "text"}, [*CLASSIFIER, "base", *REVIEWS[:3]]),
        ("unknown_column", {"name": "label"}, [*CLASSIFIER, "base", *REVIEWS[:5]]),
        ("not_found", {"folder": "nothing"}, [*CLASSIFIER, "nothing", *REVIEWS]),
        ("invalid_value", {"got": 9}, [*CLASSIFIER, "base", *REVIEWS, "--tune", "9"]),
        ("missing_option", {"option": "--other COLUMN"}, ["predict", "base", "reviews.csv", "--column", "review"]),
        ("unknown_column", {"name": "text"}, ["predict", "base", "reviews.csv", "--other", "other"]),
        ("unsupported_model", {"method": "bert"}, ["predict", "base", "--question", "a", "--passage", "b"]),
        ("unsupported_model", {"method": "bert"}, ["evaluate", "answers", "base", "questions.csv"]),
        ("usage", {}, ["train", "text_classifier", *REVIEWS]),
        ("usage", {}, ["finetune", "skipgram", "base", *REVIEWS]),
        ("unsupported_model", {}, ["plot", "curve", "base", "-o", "x.png"]),
    ],
)
def test_errors(call, refused, code, values, arguments):
    refused(code, *arguments, **values)
