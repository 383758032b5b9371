"""/v1/embeddings and /v1/models, asked by OpenAI's own client; and what is refused, in the shape it understands."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import openai
import pytest
from serving import serving

import firth
from firth.core.embedding import EmbedsTexts
from firth.transformers.bert_model import BertModel
from firth.transformers.pooling import Pooling

TEXTS = ["the king was old", "a river", "the king was old"]


def opened(path: Path) -> EmbedsTexts:
    model = firth.load(path)
    assert isinstance(model, EmbedsTexts)
    return model


@pytest.fixture
def theirs(client):
    return openai.OpenAI(base_url=f"{client.base_url}/v1", api_key="none", max_retries=0)


@pytest.mark.parametrize("name", ["words", "counts", "bert", "gpt", "tuned", "static"])
def test_the_openai_client_works_with_any_model(theirs, places, name):
    right = opened(places[name]).embed(TEXTS)
    vector = theirs.embeddings.create(model=name, input=TEXTS)
    assert [row.index for row in vector.data] == [0, 1, 2] and vector.model == name
    np.testing.assert_allclose([row.embedding for row in vector.data], right, atol=1e-5)
    assert vector.usage.total_tokens == vector.usage.prompt_tokens >= 6
    single = theirs.embeddings.create(model=name, input=TEXTS[0], encoding_format="float")
    np.testing.assert_allclose(single.data[0].embedding, right[0], atol=1e-5)


def test_floats_and_base64_are_the_same_numbers(client):
    body = {"model": "bert", "input": "a river"}
    plain = client.post("/v1/embeddings", json=body).json()["data"][0]["embedding"]
    packed = client.post("/v1/embeddings", json={**body, "encoding_format": "base64"}).json()["data"][0]["embedding"]
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(packed), "<f4"), np.float32(plain))


@pytest.mark.parametrize("name", ["words", "bert", "gpt", "static"])
def test_token_ids_equal_their_text(client, theirs, places, name):
    texts = ["the king", "king the queen"]
    read = client.post("/tokenize", json={"model": name, "inputs": texts, "add_special_tokens": False}).json()
    ids = [[token["id"] for token in tokens] for tokens in read]
    right = opened(places[name]).embed(texts)
    several = theirs.embeddings.create(model=name, input=ids)
    np.testing.assert_allclose([row.embedding for row in several.data], right, atol=1e-5)
    one = theirs.embeddings.create(model=name, input=ids[0])
    np.testing.assert_allclose(one.data[0].embedding, right[0], atol=1e-5)


def test_models_are_listed(theirs):
    listed = list(theirs.models.list())
    assert [model.id for model in listed] == ["words", "counts", "bert", "gpt", "tuned", "static", "table"]
    assert listed[0].created > 1_600_000_000 and theirs.models.retrieve("bert").owned_by == "firth"
    with pytest.raises(openai.NotFoundError, match="words, counts, bert"):
        theirs.models.retrieve("nobody")


def test_vectors_are_shortened_by_the_same_rule_as_in_python(places, tmp_path):
    """Vectors ordered by importance or trained for it can be shortened; refusals have the same code as in Python."""
    sentences = [f"the {noun} was {how}" for noun in ("king", "river", "old queen") for how in ("old", "far", "near")]
    bert = firth.load(places["bert"], firth.BERT)
    trained = firth.SentenceEncoder(epochs=1, matryoshka_dims="8").fit(sentences, firth.Run(threads=1), bert)
    models = {"lsa": firth.LSA(dim=5).fit(sentences), "white": bert.whitened(sentences, dim=5), "trained": trained}
    for name, model in models.items():
        model.save(tmp_path / name)
    folders = {name: places[name] for name in ("words", "bert", "static")}
    with serving(models={**{name: tmp_path / name for name in models}, **folders}) as client:
        for name in (*models, "static"):
            body = {"model": name, "input": TEXTS, "dimensions": 3}
            answer = client.post("/v1/embeddings", json=body)
            assert answer.status_code == 200, answer.json()
            rows = opened(tmp_path / name if name in models else folders[name]).embed(TEXTS)[:, :3]
            rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
            np.testing.assert_allclose([row["embedding"] for row in answer.json()["data"]], rows, atol=1e-5)
        np.testing.assert_array_equal(trained.shortened(3).embed(TEXTS), trained.embed(TEXTS)[:, :3])
        for name in ("words", "bert"):
            answer = client.post("/v1/embeddings", json={"model": name, "input": TEXTS, "dimensions": 3})
            error = answer.json()["error"]
            assert (answer.status_code, error["code"], error["param"]) == (400, "unsupported_model", "dimensions")
    for dim, code in ((3, "unsupported_model"), (33, "invalid_value"), (0, "invalid_value")):
        with pytest.raises(firth.FirthError) as refused:
            bert.shortened(dim)
        assert refused.value.code == code
        with pytest.raises(firth.FirthError) as refused:
            bert.with_settings(truncate_dim=dim)
        assert refused.value.code == code
    short = trained.with_settings(truncate_dim=3)
    np.testing.assert_array_equal(short.embed(TEXTS), trained.embed(TEXTS)[:, :3])
    assert short.with_settings(truncate_dim=5).embed(TEXTS).shape[1] == 5
    assert short.with_settings(similarity="dot").embed(TEXTS).shape[1] == 3


def test_model_names_can_have_an_owner(places):
    name = "sentence-transformers/all-MiniLM-L6-v2"
    with serving(models={name: places["words"]}) as client:
        for written in (name, name.replace("/", "%2F")):
            assert client.get(f"/v1/models/{written}").json()["id"] == name
        assert client.get("/v1/models/nobody/else").json()["error"]["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("body", "status", "part", "field"),
    [
        ({"input": ""}, 400, "not empty", "input"),
        ({"input": []}, 400, "not empty", "input"),
        ({"input": ["a", ""]}, 400, "An input is empty", "input"),
        ({"input": [[]]}, 400, "not empty", "input"),
        ({"input": 5}, 400, "must be a text", "input"),
        ({"input": [1, "a"]}, 400, "must be a text", "input"),
        ({"input": [1.5]}, 400, "must be a text", "input"),
        ({"input": [True]}, 400, "must be a text", "input"),
        ({"input": {"text": "a"}}, 400, "must be a text", "input"),
        ({"input": ["a"] * 10_000}, 413, "at most 2,048 inputs; got 10,000", "input"),
        ({"input": [600]}, 400, "0 to 599", "input"),
        ({"input": [[1, 2], [1 << 30]]}, 400, "There is no token 1073741824", "input"),
        ({"input": [-1]}, 400, "must be a text", "input"),
        ({"input": "a river " * 100}, 400, "402 tokens; the limit is 128", "input"),
        ({"input": list(range(5, 205))}, 400, "202 tokens; the limit is 128", "input"),
        ({"input": "a", "dimensions": 33}, 400, "from 1 to 32", "dimensions"),
        ({"input": "a", "dimensions": 8}, 400, "not trained for shorter vectors", "dimensions"),
        ({"input": "a", "dimensions": 0}, 400, "dimensions", "dimensions"),
        ({"input": "a", "encoding_format": "int8"}, 400, "encoding_format", "encoding_format"),
        ({"input": "a", "model": "nobody"}, 404, "words, counts, bert", "model"),
        ({"input": "a", "model": "../bert"}, 404, "no model '../bert'", "model"),
        ({"input": "a", "model": None}, 400, "model", "model"),
        ({"input": "a", "model": "table"}, 400, "does not embed texts", "model"),
        ({"input": "a", "temperature": 1}, 400, "temperature", "temperature"),
        ({}, 400, "input must be", "input"),
    ],
)
def test_errors_have_the_format_of_openai(client, body, status, part, field):
    answer = client.post("/v1/embeddings", json={"model": "bert", **body})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (status, field), error
    assert part in error["message"] and set(error) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"model": "bert", "input": "\xff\xfe"}',
        b'{"model": "bert", "input": "\\ud800"}',
        b'{"model": "bert", "input": NaN}',
        "{'model': 'bert'}".encode("utf-16"),
    ],
)
def test_invalid_json_is_refused(client, body):
    answer = client.post("/v1/embeddings", content=body)
    assert answer.status_code == 400 and answer.json()["error"]["type"] == "invalid_request_error"


def test_the_full_dimension_is_accepted(theirs, places):
    vector = theirs.embeddings.create(model="bert", input="a river", dimensions=32).data[0].embedding
    np.testing.assert_allclose(vector, firth.load(places["bert"], firth.BERT).embed(["a river"])[0], atol=1e-5)


def test_a_matryoshka_model_supports_fewer_dimensions(places, tmp_path):
    base = firth.load(places["bert"], firth.BERT)
    BertModel(firth.SentenceEncoder(matryoshka_dims="8"), base.net, base.tokenizer, Pooling(), {}).save(
        tmp_path / "nested"
    )
    with serving(models={"nested": tmp_path / "nested"}) as client:
        body = {"model": "nested", "input": "a river", "dimensions": 8}
        vector = client.post("/v1/embeddings", json=body).json()["data"][0]["embedding"]
    first = base.embed(["a river"])[0, :8]
    np.testing.assert_allclose(vector, first / np.linalg.norm(first), atol=1e-5)


def test_errors_become_exceptions_of_the_openai_client(theirs):
    with pytest.raises(openai.BadRequestError) as caught:
        theirs.embeddings.create(model="bert", input="word " * 400)
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(openai.NotFoundError):
        theirs.embeddings.create(model="text-embedding-3-small", input="a")
