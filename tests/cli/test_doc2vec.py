"""Doc2Vec on the command line: keys, tags, texts and errors."""

from __future__ import annotations

import json

import numpy as np
import pytest

import firth
from firth.data.world import World


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("news") / "news.jsonl"
    records = [
        {"id": f"n{i}", "text": text, "topics": [label, "any"], "half": i % 2}
        for i, (text, label) in enumerate(World(seed=5).topics(300))
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def news(call, data, tmp_path):
    options = ["--key", "id", "--column", "text", "--tags", "topics,half", "--dim", 20, "--min-count", 2]
    result = call("train", "doc2vec", data, "-o", tmp_path / "news", "--epochs", 10, *options)
    assert result.exit_code == 0, result.output
    assert f"firth query neighbors {tmp_path / 'news'} DOCUMENT" in result.output
    return tmp_path / "news"


def result(call, *arguments):
    done = call(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_neighbors_of_documents_tags_and_texts(news, call, data):
    model = firth.load(news, firth.Doc2Vec)
    assert (
        result(call, "query", "neighbors", news, "n7", "-k", 2)["n7"][0]["key"]
        == model.documents.neighbors("n7", 1)[0].key
    )
    assert {hit["key"] for hit in result(call, "query", "neighbors", news, "--table", "tags", "0")["0"]} >= {"1", "any"}
    text = json.loads(data.read_text().split("\n")[3])["text"]
    assert (
        result(call, "query", "neighbors", news, "--texts", text, "-k", 1)[text][0]["key"]
        == model.neighbors(text, 1)[0].key
    )
    tables = result(call, "info", news)["tables"]
    assert tables["documents"]["rows"] == 300 and tables["tags"]["rows"] == len(model.tags) and "words" not in tables


def test_new_documents_are_embedded(news, call, data, tmp_path):
    texts = tmp_path / "new.txt"
    texts.write_text("the king and the queen\n\nzzyzx\n")
    result = call("embed", news, texts, "-o", tmp_path / "new.npy")
    assert result.exit_code == 0 and "3 rows" in result.output
    rows = np.load(tmp_path / "new.npy")
    assert rows.tobytes() == firth.load(news, firth.Doc2Vec).embed(["the king and the queen", "", "zzyzx"]).tobytes()
    assert rows[0].any() and not rows[1:].any()


def test_errors(refused, news, data, place, tmp_path):
    plain, output = tmp_path / "plain.txt", ("-o", tmp_path / "other")
    plain.write_text("the king\nthe queen\n")
    train = ("train", "doc2vec", data, "--column", "text", *output)
    refused("unknown_column", *train, "--tags", "author", name="author")
    refused("unknown_column", "train", "doc2vec", plain, *output, "--tags", "t", name="t")
    refused("conflicting_options", *train, "--tags", "half", "--mode", "dm_concat")
    assert "No such option" in refused("usage", "train", "skipgram", data, *output, "--tags", "half")
    neighbors = ("query", "neighbors", news)
    refused("unknown_table", *neighbors, "the", "--table", "words", table="words")
    refused("unknown_key", *neighbors, "n999", key="n999")
    refused("usage", *neighbors, "n1", "--texts", "--together")
    refused("unsupported_model", "query", "neighbors", place / "model", "king", "--texts", method="skipgram")
    assert not (tmp_path / "other").exists()
