"""`firth compare` and `firth align`: from models and documents to a table, JSON and a page; what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import firth


@pytest.fixture(scope="module")
def models(tmp_path_factory, place):
    """The world's model, a file of random numbers for the same words, and 300 records."""
    folder = tmp_path_factory.mktemp("compare")
    vectors = firth.load(place / "model").vectors
    numbers = np.random.default_rng(0).standard_normal(vectors.matrix.shape)
    firth.write_vectors(firth.Vectors(vectors.keys, numbers), folder / "random.safetensors")
    lines = (place / "world.txt").read_text().splitlines()[:600]
    with (folder / "docs.csv").open("w") as file:
        file.write("heading,body,kind\n")
        for number, (a, b) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
            file.write(f'"{a}","{b}",{"king" if "king" in b else "other"}{number % 2}\n')
    return folder


def refused(result, *parts, code=1):
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    for part in parts:
        assert part in result.stderr


def test_table_json_and_report(call, place, models, tmp_path):
    columns = ["--column", "body", "--title", "heading", "--label", "kind", "--texts", 200]
    command = ["compare", place / "model", models / "random.safetensors", "--data", models / "docs.csv", *columns]
    command += ["--analogies", place / "questions.txt"]
    shown = call(*command, "-o", tmp_path / "report.html")
    assert shown.exit_code == 0, shown.output
    header, first, *_ = shown.stdout.splitlines()
    assert header.split() == ["model", "random.safetensors", "baseline", "items"] and first.startswith("analogies")
    assert shown.stdout.splitlines()[-1].startswith("Use ")
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    told = json.loads(call(*command, "--json").stdout)
    assert told["output"] is None and set(told["models"]) == {"model", "random.safetensors"}
    titles = next(measure for measure in told["measures"] if measure["name"] == "title → body, MRR")
    assert titles["baseline"]["name"] == "BM25" and titles["items"] > 150
    assert told["models"]["model"]["bytes"] > 10_000 and told["models"]["model"]["coverage"] > 0.99
    again = json.loads(call(*command, "--json").stdout)
    assert again["measures"] == told["measures"] and again["recommendation"] == told["recommendation"]


def test_what_was_trained_on_the_labels_is_marked_and_not_recommended(call, place, models, tmp_path):
    columns = ["--column", "body", "--label", "kind"]
    trained = call("train", "fasttext_classifier", models / "docs.csv", "-o", tmp_path / "cheat", *columns, "--dim", 8)
    assert trained.exit_code == 0, trained.output
    lsa = call("train", "lsa", models / "docs.csv", "-o", tmp_path / "lsa", "--column", "body", "--dim", 8)
    assert lsa.exit_code == 0, lsa.output
    assert "labelled_rows" not in json.loads(call("info", tmp_path / "cheat", "--json").stdout)["training"]
    command = [
        "compare",
        tmp_path / "cheat",
        tmp_path / "lsa",
        place / "model",
        "--data",
        models / "docs.csv",
        *columns,
    ]
    told = json.loads(call(*command, "--json").stdout)
    known = {name: (facts["trained_on"], facts["overlap"], facts["excluded"]) for name, facts in told["models"].items()}
    assert known["cheat"] == ("these labels", 1.0, True)
    assert known["lsa"] == ("these texts", 1.0, False) and known["model"] == ("unknown", None, False)
    assert told["recommendation"].startswith(("Use lsa: ", "Use model: ")) and "cheat" not in told["recommendation"]
    assert all(facts["training_seconds"] > 0 and facts["memory_bytes"] > 0 for facts in told["models"].values())
    shown = call(*command).stdout
    assert "these labels (100.0%)" in shown and "cheat was trained on these labels" in shown


def test_mistakes_are_one_line(call, place, models, tmp_path):
    model = place / "model"
    refused(call("compare", model, tmp_path / "nowhere"), "There is no model or file of vectors")
    refused(call("compare", model, model), "given twice")
    refused(call("compare", model, "-o", tmp_path / "report.pdf"), "written as .html")
    refused(call("compare", model, "--title", "heading"), "there is no --data", code=2)
    refused(call("compare", model, "--data", models / "docs.csv", "--column", "bdy"), "no column 'bdy'")
    refused(call("compare", model, "--data", place / "world.txt", "--label", "kind"), "plain text")
    (tmp_path / "few.txt").write_text("one\ntwo\n")
    refused(call("compare", model, "--data", tmp_path / "few.txt"), "at least 10 documents; got 2")
    refused(call("compare"), "Missing argument", code=2)


def test_align_turns_and_tells_what_moved(call, place, models, tmp_path):
    vectors = firth.load(place / "model").vectors
    rotation, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((vectors.dim, vectors.dim)))
    matrix = vectors.matrix @ rotation.astype(np.float32)
    matrix[vectors.rows["king"]] *= -1
    firth.write_vectors(firth.Vectors(vectors.keys, matrix), tmp_path / "turned.safetensors")
    command = ["align", place / "model", tmp_path / "turned.safetensors"]
    told = json.loads(call(*command, "--json", "-o", tmp_path / "aligned.safetensors").stdout)
    assert told["moved"][0]["word"] == "king" and told["moved"][0]["cosine"] < -0.9
    assert told["mean_cosine"]["after"] > 0.99 > told["mean_cosine"]["before"]
    aligned = firth.read_vectors(tmp_path / "aligned.safetensors")
    assert aligned.matrix[10:] == pytest.approx(vectors.matrix[10:] @ rotation, abs=0.05)
    shown = call(*command, "-k", 3)
    assert shown.exit_code == 0 and shown.stdout.splitlines()[0].split()[:2] == ["common", "words"]
    assert shown.stdout.splitlines()[4].split()[0] == "king"
    refused(call("align", place / "model", tmp_path / "nothing.txt"), "nothing.txt")
    (tmp_path / "pairs.txt").write_text("king queen too\n")
    refused(call(*command, "--pairs", tmp_path / "pairs.txt"), "line 1: expected two words")
