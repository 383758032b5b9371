"""Doc2Vec from the command line: keys, tags, texts, and what is refused."""

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
    assert f"firth query neighbors {tmp_path / 'news'} KEY" in result.output
    return tmp_path / "news"


def answer(call, *arguments):
    found = call(*arguments, "--json")
    assert found.exit_code == 0, found.output
    return json.loads(found.output)


def test_documents_tags_and_texts_have_neighbours(news, call, data):
    model = firth.load(news)
    assert answer(call, "neighbors", news, "n7", "-k", 2)["n7"][0]["key"] == model.documents.neighbors("n7", 1)[0].key
    assert {hit["key"] for hit in answer(call, "neighbors", news, "--table", "tags", "0")["0"]} >= {"1", "any"}
    text = json.loads(data.read_text().split("\n")[3])["text"]
    assert answer(call, "neighbors", news, "--texts", text, "-k", 1)[text][0]["key"] == model.neighbors(text, 1)[0].key
    tables = answer(call, "info", news)["tables"]
    assert tables["documents"]["rows"] == 300 and tables["tags"]["rows"] == len(model.tags) and "words" not in tables


def test_new_documents_are_embedded(news, call, data, tmp_path):
    texts = tmp_path / "new.txt"
    texts.write_text("the king and the queen\n\nzzyzx\n")
    result = call("embed", news, texts, "-o", tmp_path / "new.npy")
    assert result.exit_code == 0 and "3 rows" in result.output
    found = np.load(tmp_path / "new.npy")
    assert found.tobytes() == firth.load(news).embed(["the king and the queen", "", "zzyzx"]).tobytes()
    assert found[0].any() and not found[1:].any()


def test_what_is_refused(news, call, data, place, tmp_path):
    plain = tmp_path / "plain.txt"
    plain.write_text("the king\nthe queen\n")

    def problem(*arguments):
        found = call(*arguments)
        assert found.exit_code != 0
        return found.output + str(found.exception)

    train = ("train", "doc2vec", data, "--column", "text", "-o", tmp_path / "other")
    assert "no column 'author'" in problem(*train, "--tags", "author")
    assert "is plain text, without a column" in problem("train", "doc2vec", plain, "-o", tmp_path / "p", "--tags", "t")
    assert "room for one vector a document" in problem(*train, "--tags", "half", "--mode", "dm_concat")
    assert "No such option" in problem("train", "skipgram", data, "-o", tmp_path / "s", "--tags", "half")
    assert "has no table 'words'; it has documents, tags" in problem(
        "query", "neighbors", news, "the", "--table", "words"
    )
    assert "No vector for 'n999'" in problem("query", "neighbors", news, "n999")
    assert "--texts goes with" in problem("query", "neighbors", news, "n1", "--texts", "--together")
    assert "no model of documents (skipgram)" in problem("query", "neighbors", place / "model", "king", "--texts")
    assert not (tmp_path / "other").exists()
