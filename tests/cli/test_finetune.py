"""The command line: finetune, predict, evaluate, answer and plot for networks that learn a task."""

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
    """base: a small BERT; reviews.csv, pairs.csv, tags.conll, questions.csv."""
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


def test_labels_from_a_csv(call, place):
    done = call(
        "finetune",
        "text_classifier",
        "base",
        "reviews.csv",
        "-o",
        "mood",
        "--text",
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
        "--text",
        "review",
        "--label",
        "mood",
        *QUICK,
    )
    assert "finished already" in again.stdout
    lines = call("predict", "mood", "reviews.csv", "--column", "review").stdout.splitlines()
    assert len(lines) == 60 and {line.split("\t")[0] for line in lines} <= {"x", "y"}
    found = json.loads(
        call("evaluate", "mood", "--labelled", "reviews.csv", "--column", "review", "--label", "mood", "--json").stdout
    )
    assert set(found["mood"]["reviews.csv"]) >= {"accuracy", "matthews", "confusion"}
    assert call("embed", "mood", "reviews.csv", "--column", "review", "-o", "v.npy").exit_code == 0
    call("words", "mood", "reviews.csv", "--column", "review", "-o", "w.vec", "--static")
    told = json.loads(call("senses", "mood", "the king sleeps", "a king", "--word", "king", "--json").stdout)
    assert len(told["layers"]) == 3 and told["layers"][2]["distances"][0][1] > 0
    assert "ask the BERT that it began with" in call("fill", "mood", "the [MASK]", code=1).stderr
    assert "--pooling is for" in call("pool", "mood", "-o", "m", "--pooling", "cls", code=1).stderr
    assert json.loads(call("info", "mood", "--json").stdout)["options"]["epochs"] == 1  # Firth's own: known
    call("plot", "confusion", "mood", "reviews.csv", "--column", "review", "--label", "mood", "-o", "c.png")
    call("plot", "curve", "mood", "-o", "curve.svg")
    assert (place / "c.png").read_bytes()[:4] == b"\x89PNG" and "score" in (place / "curve.svg").read_text()


@pytest.mark.parametrize(
    "names",
    [("True", "False"), ("01", "02"), ("1.0", "2.0"), ("2024-01-01T10:00", "2024-01-01T11:00")],
)
def test_labels_are_judged_as_they_were_learned(call, place, names):
    """However a csv writes them: a model that tells them all apart is right about all."""
    rows = [[f"{'king' if n % 2 else 'river'} {n}", names[n % 2]] for n in range(60)]
    write(place / "names.csv", ["text", "label"], rows)
    rates = ["--epochs", "8", "--learning-rate", "1e-2", "--dropout", "0", "--threads", "1"]
    call("finetune", "text_classifier", "base", "names.csv", "-o", "names", "--overwrite", *rates)
    told = json.loads(call("evaluate", "names", "--labelled", "names.csv", "--json").stdout)["names"]["names.csv"]
    assert told["accuracy"] > 0.9
    found = call(
        "sweep", "text_classifier", "names.csv", "--start", "base", "-o", "named", "--labelled", "names.csv",
        "--overwrite", "--try", "weight_decay=0.01", "--budget", 60, *rates, "--json",
    ).stdout  # fmt: skip
    assert json.loads(found)["best"]["score"] > 0.9


def test_pairs_numbers_and_other_columns(call, place):
    pairs = ["--text", "review", "--other", "other"]
    call("finetune", "pairs", "base", "reviews.csv", "-o", "same", *pairs, "--label", "mood", *QUICK)
    shown = call("predict", "same", "reviews.csv", "--column", "review", "--other", "other", "-k", "2", "--json").stdout
    assert len(json.loads(shown.splitlines()[0])["labels"]) == 2
    call("finetune", "text_regressor", "base", "reviews.csv", "-o", "price", *pairs, "--label", "price", *QUICK)
    lines = call("predict", "price", "reviews.csv", "--column", "review", "--other", "other").stdout.splitlines()
    assert len(lines) == 60 and all(float(line) < 100 for line in lines)
    told = call(
        "evaluate", "price", "--labelled", "reviews.csv", "--column", "review", "--other", "other", "--label", "price"
    )
    assert "60 texts: Spearman" in told.stdout
    write(place / "gap.csv", ["review", "other", "price"], [["a", "b", 1], ["c", "d", 2], ["e", "f", ""]])
    told = call(
        "evaluate", "price", "--labelled", "gap.csv", "--column", "review", "--other", "other", "--label", "price"
    )
    assert "2 texts (1 without a number left out): Spearman" in told.stdout
    single = ["--column", "review", "--label", "mood", "--columns", "price,colour"]
    call("finetune", "text_classifier", "base", "reviews.csv", "-o", "both", *single, *QUICK)
    assert len(call("predict", "both", "reviews.csv", "--column", "review").stdout.splitlines()) == 60
    told = call("evaluate", "both", "--labelled", "reviews.csv", "--column", "review", "--label", "mood")
    assert "60 texts: accuracy" in told.stdout


def test_tags_and_answers(call, place):
    call("finetune", "token_classifier", "base", "tags.conll", "-o", "tags", *QUICK)
    lines = call("predict", "tags", "-", input="the king sleeps\na river\n").stdout.split("\n")
    assert [line.split("\t")[0] for line in lines] == ["the", "king", "sleeps", "", "a", "river", "", ""]
    call("finetune", "question_answerer", "base", "questions.csv", "-o", "answers", *QUICK)
    asked = ["--question", "who sleeps", "--passage", "in the forest the old king sleeps"]
    found = json.loads(call("answer", "answers", *asked, "--json").stdout)
    assert asked[3][found["start"] : found["end"]] == found["text"] and set(found) == {"text", "start", "end", "score"}
    assert call("answer", "answers", *asked).stdout == asked[3].replace(found["text"], f"**{found['text']}**", 1) + "\n"
    assert len(call("answer", "answers", "questions.csv").stdout.splitlines()) == 40
    figures = json.loads(call("evaluate", "answers", "--questions", "questions.csv", "--json").stdout)
    assert set(figures["answers"]["questions.csv"]) == {"questions", "unanswerable", "exact_match", "f1"}
    named = (place / "questions.csv").read_text().replace("question,passage,answer", "q,p,a")
    (place / "named.csv").write_text(named)
    columns = ["--question-column", "q", "--passage-column", "p", "--answer-column", "a"]
    again = json.loads(call("evaluate", "answers", "--questions", "named.csv", *columns, "--json").stdout)
    assert again["answers"]["named.csv"] == figures["answers"]["questions.csv"]
    short = [
        "finetune",
        "question_answerer",
        "base",
        "questions.csv",
        "-o",
        "x",
        "--question-length",
        "1",
        "--overlong",
        "refuse",
    ]
    assert "questions have more than 1 tokens. Use overlong=cut" in call(*short, code=1).stderr


def test_a_sweep_judges_by_the_column_it_learns_from(call):
    told = call(
        "sweep", "text_classifier", "reviews.csv", "--start", "base", "-o", "swept", "--column", "review",
        "--label", "mood", "--labelled", "reviews.csv", "--try", "learning_rate=1e-4", "--budget", 60, *QUICK, "--json",
    ).stdout  # fmt: skip
    assert 0 <= json.loads(told)["best"]["score"] <= 1


def test_features_are_judged_by_cross_validation(call, place):
    firth.LSA(dim=5).fit(World(seed=21).sentences(60)).save("lsa", overwrite=True)
    told = call(
        "evaluate", "base", "lsa", "--features", "reviews.csv", "--column", "review", "--label", "mood",
        "--columns", "price,colour", "--folds", "3", "--json",
    ).stdout  # fmt: skip
    figures = [found["reviews.csv"]["figures"]["accuracy"]["mean"] for found in json.loads(told).values()]
    assert len(figures) == 2 and min(figures) > 0.95  # the colour tells
    both = [found["reviews.csv"] for found in json.loads(told).values()]
    assert all(found["learned"] and found["tfidf"]["accuracy"] < 0.8 for found in both)  # the texts alone do not
    rows = [["", "x"], ["the king", ""], *([f"word {n}", "xy"[n % 2]] for n in range(20))]
    write(place / "gaps.csv", ["text", "label"], rows)
    told = call("evaluate", "lsa", "--features", "gaps.csv", "--folds", "3")
    assert "20 rows × 5" in told.stdout and "1 of 22 rows have no text" in told.stderr
    assert "tf-idf 0." in told.stdout and "nothing was learned" in told.stdout
    assert "1 of 22 rows have no label" in told.stderr


REVIEWS = ["reviews.csv", "-o", "m", "--text", "review", "--label", "mood"]


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["finetune", "text_classifier", "base", *REVIEWS, "--text", "body"], "no column 'body'; it has review, mood"),
        (["finetune", "text_classifier", "base", *REVIEWS[:3]], "Pass text=… (--column)"),
        (["finetune", "text_classifier", "base", *REVIEWS[:5]], "Pass label=… (--label)"),
        (["finetune", "pairs", "base", *REVIEWS], "name them by --column and --other"),
        (["finetune", "text_classifier", "nothing", *REVIEWS], "No model folder at nothing"),
        (["finetune", "text_classifier", "base", *REVIEWS, "--tune", "9"], "at most 2"),
        (["predict", "base", "reviews.csv", "--column", "review"], "(bert) does not predict labels"),
        (["predict", "base", "reviews.csv", "--other", "other"], "pairs are for"),
        (["answer", "base", "--question", "a", "--passage", "b"], "answers no questions (bert)"),
        (["train", "text_classifier", *REVIEWS], "needs a pretrained model"),
        (["plot", "curve", "base", "-o", "x.png"], "needs scores on dev data"),
    ],
)
def test_mistakes_are_one_line(call, arguments, rule):
    result = call(*arguments, code=1)
    assert result.stderr.startswith("firth: ") and rule in result.stderr and result.stderr.count("\n") == 1
