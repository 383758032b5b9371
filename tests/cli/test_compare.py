"""`firth compare models` and `firth compare spaces`: tables, JSON, the report and errors."""

from __future__ import annotations

import json

import numpy as np
import pytest

import firth


@pytest.fixture(scope="module")
def models(tmp_path_factory, place):
    """A vector file of random numbers for the words of the model, and 300 records."""
    folder = tmp_path_factory.mktemp("compare")
    vectors = firth.load(place / "model", firth.SkipGram).vectors
    numbers = np.random.default_rng(0).standard_normal(vectors.matrix.shape)
    firth.write_vectors(firth.Vectors(vectors.keys, numbers), folder / "random.safetensors")
    lines = (place / "world.txt").read_text().splitlines()[:600]
    with (folder / "docs.csv").open("w") as file:
        file.write("heading,body,kind\n")
        for number, (a, b) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
            file.write(f'"{a}","{b}",{"king" if "king" in b else "other"}{number % 2}\n')
    return folder


def test_table_json_and_report(call, place, models, tmp_path):
    columns = ["--column", "body", "--title", "heading", "--label", "kind", "--sample-size", 200]
    command = [
        "compare",
        "models",
        place / "model",
        models / "random.safetensors",
        "--data",
        models / "docs.csv",
        *columns,
    ]
    command += ["--analogies", place / "questions.txt"]
    shown = call(*command, "-o", tmp_path / "report.html")
    assert shown.exit_code == 0, shown.output
    header, first, *_ = shown.stdout.splitlines()
    assert header.split() == ["model", "random.safetensors", "baseline", "items"] and first.startswith("analogies")
    assert shown.stdout.splitlines()[-1].startswith("Use ")
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    comparison = json.loads(call(*command, "--json").stdout)
    assert comparison["output"] is None and set(comparison["models"]) == {"model", "random.safetensors"}
    titles = next(measure for measure in comparison["measures"] if measure["name"] == "title → body, MRR")
    assert titles["baseline"]["name"] == "BM25" and titles["items"] > 150
    assert comparison["models"]["model"]["bytes"] > 10_000 and comparison["models"]["model"]["coverage"] > 0.99
    again = json.loads(call(*command, "--json").stdout)
    assert again["measures"] == comparison["measures"] and again["recommendation"] == comparison["recommendation"]


def test_models_trained_on_the_labels_are_not_recommended(call, place, models, tmp_path):
    columns = ["--column", "body", "--label", "kind"]
    trained = call("train", "fasttext_classifier", models / "docs.csv", "-o", tmp_path / "cheat", *columns, "--dim", 8)
    assert trained.exit_code == 0, trained.output
    lsa = call("train", "lsa", models / "docs.csv", "-o", tmp_path / "lsa", "--column", "body", "--dim", 8)
    assert lsa.exit_code == 0, lsa.output
    assert "labelled_rows" not in json.loads(call("info", tmp_path / "cheat", "--json").stdout)["training"]
    command = [
        "compare",
        "models",
        tmp_path / "cheat",
        tmp_path / "lsa",
        place / "model",
        "--data",
        models / "docs.csv",
        *columns,
    ]
    comparison = json.loads(call(*command, "--json").stdout)
    trained_on = {
        name: (fields["trained_on"], fields["overlap"], fields["excluded"])
        for name, fields in comparison["models"].items()
    }
    assert trained_on["cheat"] == ("these labels", 1.0, True)
    assert trained_on["lsa"] == ("these texts", 1.0, False) and trained_on["model"] == ("unknown", None, False)
    assert (
        comparison["recommendation"].startswith(("Use lsa: ", "Use model: "))
        and "cheat" not in comparison["recommendation"]
    )
    assert all(
        fields["training_seconds"] > 0 and fields["memory_bytes"] > 0 for fields in comparison["models"].values()
    )
    shown = call(*command).stdout
    assert "these labels (100.0%)" in shown and "cheat was trained on these labels" in shown


def test_errors_of_compare_models(refused, place, models, tmp_path):
    model, docs = place / "model", models / "docs.csv"
    (tmp_path / "few.txt").write_text("one\ntwo\n")
    refused("not_found", "compare", "models", model, tmp_path / "nowhere", path=tmp_path / "nowhere")
    refused("duplicate_name", "compare", "models", model, model, path=model)
    report = tmp_path / "report.pdf"
    refused("unknown_format", "compare", "models", model, "-o", report, got=report)
    assert "--data" in refused("usage", "compare", "models", model, "--title", "heading")
    refused("unknown_column", "compare", "models", model, "--data", docs, "--column", "bdy", name="bdy")
    refused("unknown_column", "compare", "models", model, "--data", place / "world.txt", "--label", "kind", name="kind")
    refused("too_few", "compare", "models", model, "--data", tmp_path / "few.txt", least=10, got=2)
    assert "MODEL" in refused("usage", "compare", "models")


def test_compare_spaces_rotates_and_lists_moved_words(call, refused, place, models, tmp_path):
    vectors = firth.load(place / "model", firth.SkipGram).vectors
    rotation, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((vectors.dim, vectors.dim)))
    matrix = vectors.matrix @ rotation.astype(np.float32)
    matrix[vectors.rows["king"]] *= -1
    firth.write_vectors(firth.Vectors(vectors.keys, matrix), tmp_path / "turned.safetensors")
    command = ["compare", "spaces", place / "model", tmp_path / "turned.safetensors"]
    comparison = json.loads(call(*command, "--json", "-o", tmp_path / "aligned.safetensors").stdout)
    assert comparison["moved"][0]["word"] == "king" and comparison["moved"][0]["cosine"] < -0.9
    assert comparison["mean_cosine"]["after"] > 0.99 > comparison["mean_cosine"]["before"]
    aligned = firth.read_vectors(tmp_path / "aligned.safetensors")
    assert aligned.matrix[10:] == pytest.approx(vectors.matrix[10:] @ rotation, abs=0.05)
    shown = call(*command, "-k", 3)
    assert shown.exit_code == 0 and shown.stdout.splitlines()[0].split()[:2] == ["common", "words"]
    assert shown.stdout.splitlines()[4].split()[0] == "king"
    missing = tmp_path / "nothing.txt"
    refused("not_found", "compare", "spaces", place / "model", missing, path=missing)
    (tmp_path / "pairs.txt").write_text("king queen too\n")
    refused("malformed_data", *command, "--pairs", tmp_path / "pairs.txt", number=1, got="king queen too")
