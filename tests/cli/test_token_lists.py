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
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tokens")
    lists, texts = [["Apple", "c++"], ["#tag", "Apple", "runs"]] * 20, ["Apple pie,c++", "c++,runs,Apple pie"] * 20
    labelled = [(text, "ab"[i % 2]) for i, text in enumerate(texts)]
    made = {
        "lists": firth.SkipGram(dim=4, min_count=1, epochs=1).fit(lists, RUN),
        "words": firth.SkipGram(dim=4, min_count=1, epochs=1, tokenizer=by_comma).fit(texts, RUN),
        "documents": firth.TfIdf(tokenizer=by_comma).fit(texts, RUN),
        "labels": firth.FastTextClassifier(dim=4, tokenizer=by_comma).fit(labelled, RUN),
    }
    for name, model in made.items():
        model.save(folder / name)
    (folder / "texts.txt").write_text("Apple pie,c++\nruns\n")
    (folder / "labelled.txt").write_text("__label__a c++\n__label__b runs\n")
    (folder / "pairs.tsv").write_text("c++\truns\t1.0\nruns\tc++\t0.5\nc++\tc++\t2.0\n")
    return {name: folder / name for name in (*made, "texts.txt", "labelled.txt", "pairs.tsv")}


def test_texts_of_a_model_of_lists_are_split_at_white_space(call, places):
    embedded = call("embed", places["lists"], "-", input="Apple c++ #tag\napple C++\n")
    rows = [json.loads(line)["vector"] for line in embedded.stdout.splitlines()]
    assert [any(row) for row in rows] == [True, False]
    assert "2 of 5 words have no vector" in embedded.stderr
    assert "whitespace" in call("info", places["lists"]).stdout


def test_raw_text_is_refused_where_a_function_splits_it(call, places, tmp_path):
    out, words = tmp_path / "out", places["words"]
    calls = {
        "embed": ("embed", words, places["texts.txt"], "-o", f"{out}.npy"),
        "shards": ("embed", words, places["texts.txt"], "-o", out),
        "index": ("index", "build", words, places["texts.txt"], "-o", out),
        "sentences": ("evaluate", words, "--sentences", places["pairs.tsv"]),
        "similarity": ("query", "similarity", words, "a text", "another", "--texts"),
        "neighbors": ("query", "neighbors", places["documents"], "--texts", "Apple pie,c++"),
        "predict": ("predict", places["labels"], places["texts.txt"]),
        "labelled": ("evaluate", places["labels"], "--labelled", places["labelled.txt"]),
        "fill": ("generate", "fill", words, "Apple pie,[MASK]"),
        "start": ("train", "skipgram", places["texts.txt"], "--dim", 4, "--min-count", 1, "--start", words, "-o", out),
    }
    for name, arguments in calls.items():
        found = call(*arguments, "--json")
        assert found.exit_code == 1, (name, found.output)
        error = json.loads(found.stderr.splitlines()[-1])["error"]
        assert error["code"] == "missing_tokenizer", (name, error)
        assert error["values"]["name"] == "by_comma"
        assert list(tmp_path.iterdir()) == [], name  # nothing is left half made


def test_what_needs_no_text_goes_on(call, places):
    near = call("query", "neighbors", places["words"], "c++", "-k", 1)
    assert near.exit_code == 0 and near.stdout
    assert "callable:by_comma" in call("info", places["words"]).stdout
    listed = json.loads(call("info", places["words"], "--json").stdout)
    assert listed["options"]["tokenizer"] == "callable:by_comma"


def test_the_server_says_it_too(places):
    with serving(models={name: places[name] for name in ("lists", "words", "labels")}) as client:
        asked = {"model": "words", "input": "Apple pie,c++"}
        refused = client.post("/v1/embeddings", json=asked)
        assert refused.status_code == 400 and refused.json()["error"]["code"] == "missing_tokenizer"
        given = client.post("/v1/embeddings", json={"model": "lists", "input": ["Apple", "c++"]})
        assert given.status_code == 200 and all(any(row["embedding"]) for row in given.json()["data"])
        header = {"x-firth-token": client.settings.token}
        told = {each["name"]: each for each in client.get("/api/models", headers=header).json()["models"]}
        assert told["words"]["options"]["tokenizer"] == "callable:by_comma"
        assert "vectors" in told["words"]["can"] and "embeds" in told["lists"]["can"]
        assert not {"embeds", "predicts", "fills"} & {*told["words"]["can"], *told["labels"]["can"]}
