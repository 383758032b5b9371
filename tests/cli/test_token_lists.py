"""Models trained from lists of tokens, or with a function as their tokenizer, on the command line and the server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from serving import serving

import firth
from firth.core.report import Nothing

RUN = firth.Run(report=Nothing())


def by_comma(text: str) -> list[str]:
    return text.split(",")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tokens")
    lists, texts = [["Apple", "c++"], ["#tag", "Apple", "runs"]] * 20, ["Apple pie,c++", "c++,runs,Apple pie"] * 20
    labeled = [(text, "ab"[i % 2]) for i, text in enumerate(texts)]
    models = {
        "lists": firth.SkipGram(dim=4, min_count=1, epochs=1).fit(lists, RUN),
        "words": firth.SkipGram(dim=4, min_count=1, epochs=1, tokenizer=by_comma).fit(texts, RUN),
        "documents": firth.TfIdf(tokenizer=by_comma).fit(texts, RUN),
        "labels": firth.FastTextClassifier(dim=4, tokenizer=by_comma).fit(labeled, RUN),
    }
    for name, model in models.items():
        model.save(folder / name)
    (folder / "texts.txt").write_text("Apple pie,c++\nruns\n")
    (folder / "labelled.txt").write_text("__label__a c++\n__label__b runs\n")
    (folder / "pairs.tsv").write_text("c++\truns\t1.0\nruns\tc++\t0.5\nc++\tc++\t2.0\n")
    return {name: folder / name for name in (*models, "texts.txt", "labelled.txt", "pairs.tsv")}


def test_models_trained_on_lists_split_texts_at_whitespace(call, paths):
    embedded = call("embed", paths["lists"], "-", input="Apple c++ #tag\napple C++\n")
    rows = [json.loads(line)["vector"] for line in embedded.stdout.splitlines()]
    assert [any(row) for row in rows] == [True, False]
    assert embedded.stderr.startswith("note: 2 of 5 words ")
    assert "whitespace" in call("info", paths["lists"]).stdout


def test_text_is_refused_by_models_with_a_function_as_tokenizer(refused, paths, tmp_path):
    out, words = tmp_path / "out", paths["words"]
    calls = {
        "embed": ("embed", words, paths["texts.txt"], "-o", f"{out}.npy"),
        "shards": ("embed", words, paths["texts.txt"], "-o", out),
        "index": ("index", "build", words, paths["texts.txt"], "-o", out),
        "sentences": ("evaluate", "sentences", words, paths["pairs.tsv"]),
        "similarity": ("query", "similarity", words, "a text", "another", "--texts"),
        "neighbors": ("query", "neighbors", paths["documents"], "--texts", "Apple pie,c++"),
        "predict": ("predict", paths["labels"], paths["texts.txt"]),
        "classification": ("evaluate", "classification", paths["labels"], paths["labelled.txt"]),
        "fill": ("generate", "fill", words, "Apple pie,[MASK]"),
        "start": ("train", "skipgram", paths["texts.txt"], "--dim", 4, "--min-count", 1, "--start", words, "-o", out),
    }
    for name, arguments in calls.items():
        refused("missing_tokenizer", *arguments, name="by_comma")
        assert list(tmp_path.iterdir()) == [], name  # no partial output


def test_commands_without_text_still_work(call, paths):
    neighbors = call("query", "neighbors", paths["words"], "c++", "-k", 1)
    assert neighbors.exit_code == 0 and neighbors.stdout
    assert "callable:by_comma" in call("info", paths["words"]).stdout
    fields = json.loads(call("info", paths["words"], "--json").stdout)
    assert fields["options"]["tokenizer"] == "callable:by_comma"


def test_the_server_reports_it_too(paths):
    with serving(models={name: paths[name] for name in ("lists", "words", "labels")}) as client:
        request = {"model": "words", "input": "Apple pie,c++"}
        response = client.post("/v1/embeddings", json=request)
        assert response.status_code == 400 and response.json()["error"]["code"] == "missing_tokenizer"
        given = client.post("/v1/embeddings", json={"model": "lists", "input": ["Apple", "c++"]})
        assert given.status_code == 200 and all(any(row["embedding"]) for row in given.json()["data"])
        header = {"x-firth-token": client.settings.token}
        models = {each["name"]: each for each in client.get("/api/models", headers=header).json()["models"]}
        assert models["words"]["options"]["tokenizer"] == "callable:by_comma"
        assert "vectors" in models["words"]["can"] and "embeds" in models["lists"]["can"]
        assert not {"embeds", "predicts", "fills"} & {*models["words"]["can"], *models["labels"]["can"]}
