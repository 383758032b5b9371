"""The page, its token, and what it is told of the models."""

from __future__ import annotations


def test_the_page_brings_the_token_that_its_calls_need(client, api):
    page = client.get("/")
    assert page.status_code == 200 and "default-src 'self'" in page.headers["content-security-policy"]
    assert client.get("/api/models").status_code == 403
    assert client.get("/api/models", headers={"X-Firth-Token": "wrong"}).status_code == 403
    assert client.get("/api/models", headers=api()).status_code == 200


def test_a_wrong_address_or_method_is_told_where_to_look(client):
    assert "/docs lists" in client.get("/v1/embedding").json()["error"]["message"]
    wrong = client.get("/v1/embeddings")
    assert wrong.status_code == 405 and wrong.json()["error"]["message"].startswith("GET is not for this address")


def test_models_say_what_they_can_do(client, api):
    found = {model["name"]: model for model in client.get("/api/models", headers=api()).json()["models"]}
    assert set(found) == {"words", "counts", "bert", "gpt", "tuned", "static", "table"}
    assert {"embeds", "vectors", "fills"} <= set(found["words"]["can"]) and "fills" not in found["counts"]["can"]
    assert {"embeds", "contextual", "attends"} <= set(found["bert"]["can"])
    assert found["words"]["tables"]["words"]["dim"] == 16 and "word vectors" in found["words"]["summary"]
    unknown = client.get("/api/models/nobody", headers=api())
    assert unknown.status_code == 404 and "words, counts, bert" in unknown.json()["error"]
