"""The command line with classifiers: train, predict, evaluate, convert."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import firth
from firth.cli.main import cli
from firth.data.world import World


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """train.txt and test.txt in the format of fastText, test.jsonl, and a model trained on train.txt."""
    folder = tmp_path_factory.mktemp("labels")
    examples = list(World(seed=9).topics(500))
    for name, part in (("train", examples[:400]), ("test", examples[400:])):
        (folder / f"{name}.txt").write_text("".join(f"__label__{topic} {text}\n" for text, topic in part))
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps({"words": text, "topic": topic}) + "\n" for text, topic in part)
        )
    (folder / "plain.txt").write_text("".join(f"{text}\n" for text, _ in examples[400:410]) + "\n")
    method = firth.FastTextClassifier(dim=10, learning_rate=0.5, epochs=10)
    firth.train(method, firth.LabeledTexts(folder / "train.txt"), folder / "model")
    return folder


@pytest.fixture
def call(place, monkeypatch):
    monkeypatch.chdir(place)

    def invoke(*arguments, code=0, input=None):
        result = CliRunner().invoke(cli, arguments, input=input)
        assert result.exit_code == code, result.output
        return result

    return invoke


def test_train_proposes_the_next_command(call):
    trained = call("train", "fasttext_classifier", "train.txt", "-o", "m2", "--dim", "8", "--epochs", "20")
    assert "labels" in trained.stdout and "Next: firth predict m2 FILE" in trained.stdout
    metrics = json.loads(
        call(
            "train", "fasttext_classifier", "train.jsonl", "-o", "m3", "--column", "words", "--label", "topic", "--json"
        ).stdout
    )
    assert metrics["labels"] == 8 and metrics["documents"] == 400


def test_train_prints_the_held_out_score_and_baselines(call, place):
    trained = call("train", "fasttext_classifier", "train.txt", "-o", "m4", "--dim", "8")
    assert "automatic   epochs 100, learning_rate 0.5" in trained.stdout
    assert "on 40 rows" in trained.stdout and "majority label 0." in trained.stdout
    assert "tf-idf + logistic regression 1.0000" in trained.stdout
    metrics = json.loads(call("train", "fasttext_classifier", "train.txt", "-o", "m4", "--dim", "8", "--json").stdout)
    assert metrics["held_out_score"]["learned"] and metrics["held_out_score"]["rows"] == 40
    assert metrics["automatic"] == {"epochs": 100, "learning_rate": 0.5}
    assert json.loads((place / "m4" / "training.json").read_text())["held_out_score"] == metrics["held_out_score"]
    shown = call("info", "m4").stdout
    assert "training.held_out_score.baselines.majority label" in shown and "training.automatic.epochs" in shown


def test_a_model_that_learned_nothing_is_noted(call):
    slow = ["--dim", "8", "--epochs", "1", "--learning-rate", "0.001"]
    shown = call("train", "fasttext_classifier", "train.txt", "-o", "m5", *slow)
    assert shown.stderr.count("note: ") == 2
    events = call("train", "fasttext_classifier", "train.txt", "-o", "m6", *slow, "--progress", "json").stderr
    codes = [json.loads(line).get("code") for line in events.splitlines()]
    assert "nothing_learned" in codes and "weaker_than_baseline" in codes
    silent = call("train", "fasttext_classifier", "train.txt", "-o", "m7", *slow, "--held-out", "0")
    assert silent.stderr == "" and "held out" not in silent.stdout


def test_too_few_texts_for_an_evaluation_are_reported(call, place):
    lines = (place / "train.txt").read_text().splitlines(keepends=True)
    for count, shown in ((4, "held out    no rows"), (60, "on 6 rows, too few to compare (less than 20)")):
        (place / "few.txt").write_text("".join(lines[:count]))
        trained = call("train", "fasttext_classifier", "few.txt", "-o", f"few{count}", "--dim", "8")
        assert shown in trained.stdout
    without = call("train", "fasttext_classifier", "few.txt", "-o", "few0", "--dim", "8", "--held-out", "0")
    assert "held out" not in without.stdout


def test_predict_prints_one_line_per_text(call, place):
    lines = call("predict", "model", "plain.txt").stdout.split("\n")
    assert len(lines) == 12 and lines[10:] == ["", ""]  # an empty line for the empty text
    model = firth.load(place / "model", firth.FastTextClassifier)
    for line, text in zip(lines[:10], (place / "plain.txt").read_text().split("\n"), strict=False):
        label, probability = line.split("\t")
        assert [(label, float(probability))] == [(name, round(p, 4)) for name, p in model.predict([text])[0]]
    several = call("predict", "model", "-", "-k", "3", input=(place / "plain.txt").read_text()).stdout.split("\n")
    assert [line.count("\t") for line in several[:2]] == [5, 5] and several[0].startswith(lines[0] + "\t")
    sure = call("predict", "model", "plain.txt", "-k", "8", "--threshold", "0.5").stdout.split("\n")
    assert sure[:10] == [line if float(line.split("\t")[1]) >= 0.5 else "" for line in lines[:10]]


def test_predictions_as_json(call):
    predictions = [
        json.loads(line)
        for line in call("predict", "model", "test.jsonl", "--column", "words", "--json").stdout.splitlines()
    ]
    assert len(predictions) == 100 and predictions[0]["key"] == "1"
    assert set(predictions[0]["labels"][0]) == {"label", "probability"}


def evaluated(call, *arguments):
    (result,) = json.loads(call("evaluate", "classification", *arguments, "--json").stdout).values()
    return result


def test_evaluate_classification(call):
    scores = evaluated(call, "model", "test.txt")
    assert scores["accuracy"] > 0.9 and scores["texts"] == 100 and len(scores["labels"]) == 8
    assert scores == evaluated(call, "model", "test.jsonl", "--column", "words", "--label", "topic")
    text = call("evaluate", "classification", "model", "test.txt", "-k", "2").stdout
    assert f"accuracy {scores['accuracy']:.3f}, P@2" in text and "precision" in text


def test_unseen_labels_count_as_errors(call, place):
    (place / "new.txt").write_text("__label__unheard the king\n" + (place / "test.txt").read_text())
    scores = evaluated(call, "model", "new.txt")
    assert scores["labels"]["unheard"]["recall"] == 0 and scores["texts"] == 101


def test_files_of_fasttext(call, place):
    """`predict` and `evaluate` open .bin and .ftz like a folder."""
    call(
        "train",
        "fasttext_classifier",
        "train.txt",
        "-o",
        "ft",
        "--tokenizer",
        "fasttext",
        "--no-lowercase",
        "--dim",
        "8",
    )
    call("convert", "ft", "ft.bin")
    assert call("predict", "ft.bin", "plain.txt").stdout == call("predict", "ft", "plain.txt").stdout
    assert evaluated(call, "ft.bin", "test.txt") == evaluated(call, "ft", "test.txt")
    assert "classifier" in call("info", "ft.bin").stdout


@pytest.mark.parametrize(
    ("code", "values", "arguments"),
    [
        ("invalid_value", {"got": 0}, ["predict", "model", "plain.txt", "-k", "0"]),
        ("invalid_value", {"got": 2.0}, ["predict", "model", "plain.txt", "--threshold", "2"]),
        ("wrong_input", {"path": "plain.txt"}, ["predict", "plain.txt", "plain.txt"]),
        ("unsupported_model", {"method": "counts"}, ["predict", "words", "plain.txt"]),
        ("unsupported_model", {"method": "counts"}, ["evaluate", "classification", "words", "test.txt"]),
        (
            "unsupported_model",
            {"method": "fasttext_classifier"},
            ["predict", "model", "plain.txt", "--question", "who"],
        ),
        ("empty_data", {"n_texts": 11}, ["evaluate", "classification", "model", "plain.txt"]),
        ("unknown_column", {}, ["evaluate", "classification", "model", "test.jsonl", "--column", "words"]),
        ("too_few", {}, ["train", "fasttext_classifier", "plain.txt", "-o", "x"]),
        ("usage", {}, ["evaluate", "classification", "model"]),
        ("usage", {}, ["predict", "model"]),
    ],
)
def test_errors(call, refused, place, code, values, arguments):
    if not (place / "words").exists():
        call("train", "counts", "plain.txt", "-o", "words")
    refused(code, *arguments, **values)


def test_a_missing_label_column_names_the_option(refused, place):
    (place / "reviews.csv").write_text("text,stars\nfine,5\n")
    message = refused("unknown_column", "train", "fasttext_classifier", "reviews.csv", "-o", "m", name="label")
    assert "text, stars" in message and "label=" in message
