"""The routes of text-embeddings-inference, and /search, /health, /info, /metrics."""

from __future__ import annotations

import numpy as np
import pytest
from near import near
from serving import serving

import firth

TEXT = "the king was old"


def post(client, path, status=200, **body):
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_embed_normalizes_by_default(client, places):
    right = firth.load(places["bert"], firth.BERT).embed([TEXT, "a river"])
    plain = post(client, "/embed", model="bert", inputs=[TEXT, "a river"], normalize=False)
    np.testing.assert_allclose(plain, right, atol=1e-5)
    unit = post(client, "/embed", model="bert", inputs=TEXT)
    np.testing.assert_allclose(unit, right[:1] / np.linalg.norm(right[0]), atol=1e-5)
    assert len(post(client, "/embed", inputs=TEXT)[0]) == 16  # the first model


@pytest.mark.parametrize("name", ["bert", "gpt"])
def test_long_texts_are_refused_or_truncated_and_reported(client, places, name):
    text = "the king was old and the river " * 30
    assert post(client, "/embed", 400, model=name, inputs=text)["code"] == "context_length_exceeded"
    answer = client.post("/embed", json={"model": name, "inputs": [text, TEXT], "truncate": True})
    assert answer.status_code == 200 and answer.headers["x-firth-truncated"] == "1"
    assert "x-firth-truncated" not in client.post("/embed", json={"model": name, "inputs": TEXT}).headers


def test_truncation_equals_that_of_the_model(client, places):
    text = "the king was old and the river " * 30
    result = post(client, "/embed", model="bert", inputs=text, truncate=True, normalize=False)
    with pytest.warns(firth.FirthWarning):
        right = firth.load(places["bert"], firth.BERT).embed([text])
    np.testing.assert_allclose(result, right, atol=1e-5)


def test_embed_all_returns_one_vector_per_token(client, places):
    tokens = post(client, "/tokenize", model="bert", inputs=TEXT)[0]
    rows = np.array(post(client, "/embed_all", model="bert", inputs=TEXT)[0])
    assert rows.shape == (len(tokens), 32)
    np.testing.assert_allclose(rows, firth.load(places["bert"], firth.BERT).states(TEXT)[-1], atol=1e-5)
    assert post(client, "/embed_all", 400, model="words", inputs=TEXT)["code"] == "invalid_request"
    assert len(post(client, "/embed_all", model="bert", inputs="king " * 300, truncate=True)[0]) == 128


def test_similarity_is_the_cosine(client, places):
    result = post(
        client, "/similarity", model="words", inputs={"source_sentence": "king", "sentences": ["king", "queen river"]}
    )
    rows = firth.load(places["words"], firth.SkipGram).embed(["king", "queen river"])
    assert result[0] == pytest.approx(1)
    assert result[1] == pytest.approx(rows[0] @ rows[1] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[1]), abs=1e-5)


def test_tokenize_returns_ids_and_offsets(client, places):
    tokens = post(client, "/tokenize", model="bert", inputs=TEXT)[0]
    assert [token["special"] for token in (tokens[0], tokens[1], tokens[-1])] == [True, False, True]
    for token in tokens[1:-1]:
        assert TEXT[token["start"] : token["stop"]] == token["text"].removeprefix("##")
    words = post(client, "/tokenize", model="words", inputs=["the king", "zzzz"])
    assert [token["text"] for token in words[0]] == ["the", "king"] and words[1][0]["id"] is None
    assert post(client, "/tokenize", model="static", inputs=TEXT)[0][0]["text"] == "the"


def test_predict_returns_all_labels(client, places):
    right = firth.load(places["tuned"], firth.TextClassifier).predict([TEXT], k=9)[0]
    single = post(client, "/predict", model="tuned", inputs=TEXT)
    assert [(each["label"], near(each["score"], abs=1e-5)) for each in single] == right
    assert sum(each["score"] for each in single) == pytest.approx(1, abs=1e-4)
    assert post(client, "/predict", inputs=TEXT) == single  # the first model is one of words
    batch = post(client, "/predict", model="tuned", inputs=[[TEXT], ["a river"]])
    assert len(batch) == 2 and batch[0] == single
    assert post(client, "/predict", 400, model="tuned", inputs=["a", "b"])["code"]  # a pair
    refused = post(client, "/predict", 400, model="words", inputs=TEXT)
    assert refused["code"] == "invalid_request" and "words" in refused["error"]


def test_predict_returns_the_same_probabilities_as_python(tmp_path):
    """fastText's arithmetic would give 1.00001 for a certain label."""
    pairs = [(text, text) for text in ("good", "bad")] * 100
    firth.FastTextClassifier(epochs=50, learning_rate=2.0).fit(pairs).save(tmp_path / "sure")
    right = firth.load(tmp_path / "sure", firth.FastTextClassifier).predict(["good"], k=2)[0]
    with serving(models={"sure": tmp_path / "sure"}) as client:
        result = [(each["label"], each["score"]) for each in post(client, "/predict", inputs="good")]
    assert result == right and right[0] == ("good", 1.0)


def test_predict_refuses_or_truncates_long_texts(client, places):
    text = "the king was old and the river " * 30
    refused = post(client, "/predict", 400, model="tuned", inputs=[[TEXT], [text]])
    assert refused["code"] == "context_length_exceeded" and "Input 1 " in refused["error"]
    answer = client.post("/predict", json={"model": "tuned", "inputs": [[TEXT], [text]], "truncate": True})
    assert answer.status_code == 200 and answer.headers["x-firth-truncated"] == "1"
    with pytest.warns(firth.FirthWarning):
        right = firth.load(places["tuned"], firth.TextClassifier).predict([TEXT, text], k=9)
    assert [[(each["label"], near(each["score"], abs=1e-5)) for each in row] for row in answer.json()] == right
    model = firth.load(places["tuned"], firth.TextClassifier)
    longest = model.tokenizer.decode(model.tokenizer.ids_batch([text], special=False)[0][: model.max_length - 2])
    assert "x-firth-truncated" not in client.post("/predict", json={"model": "tuned", "inputs": longest}).headers


def test_search_refuses_or_truncates_long_texts(places, tmp_path):
    model = firth.load(places["bert"], firth.BERT)
    with firth.Index.create(tmp_path / "index", dim=32, model=model, model_path=str(places["bert"])) as index:
        index.add(["a"], model.embed([TEXT]), {"text": [TEXT], "bytes": [b"\xff"]})
    text = "the king was old and the river " * 30
    with serving(models={}, indexes={"index": tmp_path / "index"}) as client:
        assert post(client, "/search", 400, query=text)["code"] == "context_length_exceeded"
        answer = client.post("/search", json={"query": text, "truncate": True})
        assert answer.headers["x-firth-truncated"] == "1"
        hit = answer.json()["hits"][0]
        assert hit["key"] == "a" and hit["attributes"]["bytes"] == "_w=="  # base64, because it is not UTF-8
        assert "x-firth-truncated" not in client.post("/search", json={"query": text, "mode": "words"}).headers


def test_search_by_similarity_words_and_filter(client, indexed):
    text = firth.Index.open(indexed).attributes("d7")["text"]
    result = post(client, "/search", query=text, k=3, mode="vector")
    assert result["index"] == "texts" and result["hits"][0]["attributes"]["text"] == text
    assert [hit["rank"] for hit in result["hits"]] == [1, 2, 3]
    assert len(post(client, "/search", query=text, index="texts", mode="words", k=2)["hits"]) == 2
    some = post(client, "/search", query=text, where="year >= 2010", k=5)["hits"]
    assert some and all(hit["attributes"]["year"] >= 2010 for hit in some)
    vector = firth.Index.open(indexed)["d7"].tolist()
    assert post(client, "/search", query=vector, k=1)["hits"][0]["attributes"]["text"] == text


@pytest.mark.parametrize(
    ("body", "status", "code", "part"),
    [
        ({"query": ""}, 422, "invalid_request", "query"),
        ({"query": "a", "k": 0}, 422, "invalid_request", "k"),
        ({"query": "a", "k": 100_000}, 422, "invalid_request", "k"),
        ({"query": "a", "index": "/etc"}, 404, "index_not_found", "texts"),
        ({"query": "a", "where": "import os"}, 400, "invalid_filter", "character 1"),
        ({"query": "a", "where": f"year == {10**30}"}, 400, "invalid_filter", "year"),
        ({"query": [1.0, 2.0]}, 400, "shape_mismatch", "16"),
        ({"query": [1.0] * 16, "mode": "words"}, 400, "conflicting_options", "words"),
        ({"query": "a", "mode": "magic"}, 422, "invalid_request", "mode"),
    ],
)
def test_invalid_searches_are_refused(client, body, status, code, part):
    refused = post(client, "/search", status, **body)
    assert refused["code"] == code and part in refused["error"]


@pytest.mark.parametrize(
    "where",
    [
        "year in {[]}",
        "not " * 500 + "text",
        "year == 0x" + "f" * 5000,
        "text or " * 2000 + "text",
        "text" + " " * 70_000,
    ],
    ids=lambda text: repr(text[:16]),
)
@pytest.mark.parametrize("mode", ["words", "vector"])
def test_hostile_conditions_are_refused(client, where, mode):
    assert post(client, "/search", 400, query="a", where=where, mode=mode)["code"] == "invalid_filter"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/embed", {"inputs": []}, 422),
        ("/embed", {"inputs": "a", "normalize": "yes"}, 422),
        ("/embed", {"inputs": ["a"] * 10_000}, 413),
        ("/embed", {"inputs": "a", "model": "nobody"}, 404),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": []}}, 422),
        ("/tokenize", {"inputs": 5}, 422),
        ("/predict", {"inputs": ["a", "b", "c"]}, 422),
        ("/predict", {"inputs": "a", "raw_scores": True}, 422),
    ],
)
def test_errors_have_the_format_of_text_embeddings_inference(client, path, body, status):
    assert set(post(client, path, status, **body)) == {"error", "error_type", "code"}


def test_errors_state_what_the_route_accepts(client):
    assert 'a pair ["a", "b"]' in post(client, "/predict", 422, inputs=["a", "b", "c"])["error"]
    assert "ids" not in post(client, "/tokenize", 422, inputs=[1, 2])["error"]
    assert "source_sentence" in post(client, "/similarity", 422, inputs="a")["error"]
    assert "token ids" in post(client, "/embed", 422, inputs=5)["error"]


def test_health_info_and_metrics(client):
    assert client.get("/health").json() == {"status": "ok"}
    info = client.get("/info").json()
    assert info["model_id"] == "words" and info["indexes"] == ["texts"] and info["max_client_batch_size"] == 2048
    post(client, "/embed", model="words", inputs=[TEXT, TEXT])
    before = metric(client, 'firth_tokens_total{model="words"}')
    post(client, "/embed", model="words", inputs=[TEXT, TEXT])
    assert metric(client, 'firth_tokens_total{model="words"}') == before + 8
    assert metric(client, 'firth_requests_total{route="/embed",status="200"}') >= 2
    client.post("/v1/embeddings", json={"model": "words", "input": TEXT})
    assert metric(client, 'firth_requests_total{route="/v1/embeddings",status="200"}') >= 1
    assert metric(client, "process_resident_memory_bytes") > 1e7
    assert metric(client, "firth_waiting_tokens") == 0


def test_metrics_have_the_format_of_prometheus(client):
    lines = client.get("/metrics").text.splitlines()
    names = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    for line in lines:
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            family = name.partition("{")[0]
            for ending in ("_bucket", "_sum", "_count"):
                family = family.removesuffix(ending) if family not in names else family
            assert family in names and float(value) >= 0


def metric(client, name):
    text = client.get("/metrics").text
    return next(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name + " "))
